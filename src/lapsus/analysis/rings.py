"""Two rings at the time of response: one a role of the fixed colour, turned by the other item's colour (Fig 4C, D;
appendix).

Locations and one item's colour are fixed, the other item's colour varies. Principal components of memory activity m_T
are fitted on trials in which the fixed-colour item was cued; trials in which it was not are projected into the same
components.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy import stats

from lapsus.analysis.activity import memory, require_trials, two_items

__all__ = [
    "RingProjection",
    "Rings",
    "cyclic_alignment",
    "fit_rings",
    "pairwise_alignment",
    "random_alignment",
    "ring_geometry",
    "roc_area",
    "roc_curve",
    "separation",
]


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
    bool;
    recalled_fixed: [trial] bool, whether the response was nearest to the fixed colour: the ring on which a trial should
    lie.
    """

    points: np.ndarray
    free: np.ndarray
    fixed_cued: np.ndarray
    swap: np.ndarray
    recalled_fixed: np.ndarray


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


def ring_geometry(dataset: xr.Dataset, *, fixed: int = 1) -> tuple[Rings, RingProjection]:
    """Components and projected trials at the last time step; `fixed` is the number of the item whose colour is
    fixed."""
    items = two_items(dataset)
    m = memory(dataset.isel(time=[-1]))[:, 0]
    fixed_cued = items.cued == fixed - 1
    rings = fit_rings(m[fixed_cued])
    points = (m - rings.mean) @ rings.components.T
    return rings, RingProjection(
        points, items.report[:, 2 - fixed], fixed_cued, items.swap, items.recalled == fixed - 1
    )


def separation(projection: RingProjection) -> dict[str, float]:
    """How well the two-ring description fits trials with the fixed-colour item cued.

    distance: between the rings along PC3 in units of their s.d. (d'); turn_correct, turn_swap: share of the variance of
    [cos, sin] of the free colour that the first two components explain linearly on each ring (1: a perfect ring).
    """
    own = projection.fixed_cued
    require_trials(int((own & projection.swap).sum()), 10, "swap trials with the fixed-colour item cued")
    height = projection.points[:, 2]
    upper, lower = height[own & ~projection.swap], height[own & projection.swap]
    within = np.sqrt((upper.var(ddof=1) + lower.var(ddof=1)) / 2)
    result = {"distance": float(abs(upper.mean() - lower.mean()) / within)}
    for name, ring in (("turn_correct", own & ~projection.swap), ("turn_swap", own & projection.swap)):
        result[name] = _explained(projection.points[ring, :2], projection.free[ring])
    return result


def _explained(points: np.ndarray, colour: np.ndarray) -> float:
    """Adjusted R² of [cos, sin] of colours regressed on points [trial, 2]."""
    y = np.stack([np.cos(colour), np.sin(colour)], 1)
    y = y - y.mean(0)
    x = points - points.mean(0)
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    n = len(y)
    return float(1 - (residual**2).sum() / (y**2).sum() * (n - 1) / (n - 3))


# --- The third component across locations and colours ---


def pairwise_alignment(first: np.ndarray, second: np.ndarray | None = None) -> np.ndarray:
    """|cos| between unit vectors first [configuration, unit] and second, over pairs of *different* configurations:
    [pair]."""
    cosine = np.abs(first @ (first if second is None else second).T).clip(0, 1)
    rows, columns = np.triu_indices(len(first), 1) if second is None else np.nonzero(~np.eye(len(first), dtype=bool))
    return cosine[rows, columns]


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


# --- Swaps from correct trials ---


def roc_area(scores: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve: the probability that a positive trial scores above another one, ties half."""
    positive = np.asarray(positive, dtype=bool)
    count, rest = int(positive.sum()), int((~positive).sum())
    require_trials(count, 1, "swap trials")
    require_trials(rest, 1, "correct trials")
    ranks = stats.rankdata(scores)
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * rest))


def roc_curve(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates as the criterion falls: [point] each, from (0, 0) to (1, 1)."""
    scores, positive = np.asarray(scores), np.asarray(positive, dtype=bool)
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)
    hits, misses = np.cumsum(positive[order])[last], np.cumsum(~positive[order])[last]
    return np.append(0, misses / misses[-1]), np.append(0, hits / hits[-1])
