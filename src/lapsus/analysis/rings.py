"""Two rings at the time of response: one a role of the fixed colour, turned by the other item's colour (Fig 4C, D;
appendix).

Locations and one item's colour are fixed, the other item's colour varies. Principal components of memory activity m_T
are fitted on trials in which the fixed-colour item was cued; trials in which it was not are projected into the same
components.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from lapsus.analysis.activity import memory, require_trials, two_items

__all__ = ["RingProjection", "Rings", "cyclic_alignment", "fit_rings", "random_alignment", "ring_geometry"]


@dataclass(frozen=True)
class Rings:
    """Mean [unit] and first three principal components [3, unit] of m_T; variance [3] is each one's share."""

    mean: np.ndarray
    components: np.ndarray
    variance: np.ndarray


@dataclass(frozen=True)
class RingProjection:
    """Trials in the components of `Rings`.

    points: [trial, 3]; free: [trial] colour of the item whose colour varies; fixed_cued: [trial] bool; swap: [trial]
    bool.
    """

    points: np.ndarray
    free: np.ndarray
    fixed_cued: np.ndarray
    swap: np.ndarray


def fit_rings(m: np.ndarray) -> Rings:
    """Principal components of m [trial, unit]: activity at the response on trials in which the fixed-colour item was
    cued.

    The sign of each component is arbitrary; here its largest weight is positive.
    """
    require_trials(len(m), 10, "trials with the fixed-colour item cued")
    mean = m.mean(0)
    centred = m - mean
    spectrum, vectors = np.linalg.eigh(centred.T @ centred / len(m))
    components = vectors[:, ::-1][:, :3].T
    components = components * np.sign(components[np.arange(3), np.abs(components).argmax(1)])[:, None]
    return Rings(mean, components, spectrum[::-1][:3] / spectrum.sum())


def ring_geometry(dataset: xr.Dataset) -> tuple[Rings, RingProjection]:
    """Components and projected trials at the last time step; the first item's colour is fixed."""
    items = two_items(dataset)
    m = memory(dataset.isel(time=[-1]))[:, 0]
    fixed_cued = items.cued == 0
    rings = fit_rings(m[fixed_cued])
    points = (m - rings.mean) @ rings.components.T
    return rings, RingProjection(points, items.report[:, 1], fixed_cued, items.swap)


# --- Normals across locations and colours ---


def random_alignment(units: int, *, count: int = 10_000, seed: int = 0) -> np.ndarray:
    """|cos| between pairs of random unit vectors: [count]."""
    pairs = np.random.default_rng(seed).standard_normal((2, count, units))
    first, second = pairs / np.linalg.norm(pairs, axis=-1, keepdims=True)
    return np.abs((first * second).sum(-1))


def cyclic_alignment(normals: np.ndarray) -> np.ndarray:
    """Mean |cos| of normals between fixed colours, over pairs of different configurations: [colour, colour].

    normals: [configuration, colour, unit], unit vectors.
    """
    cosine = np.abs(np.einsum("acu,bdu->abcd", normals, normals)).clip(0, 1)
    different = ~np.eye(len(normals), dtype=bool)
    known = np.isfinite(cosine[different])
    total = np.where(known, cosine[different], 0).sum(0)
    return np.where(known.any(0), total / np.maximum(known.sum(0), 1), np.nan)
