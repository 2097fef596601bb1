"""The two rings at the response by location pair and fixed colour (Fig 4C, D; appendix): principal components, normals,
and how well swaps are told from correct trials along them.

Locations and one item's colour are fixed, the other item's colour varies. Principal components of memory activity m_T
are fitted on trials in which the fixed-colour item was cued; trials in which it was not are projected into the same
components.
"""

from dataclasses import dataclass

import numpy as np
import xarray as xr

from lapsus.errors import LapsusError
from lapsus.evaluation.simulation import Simulated
from lapsus.mechanism.activity import NO_SWAPS, memory, require_trials, two_items
from lapsus.mechanism.designs import grid, ring_design
from lapsus.mechanism.discriminants import discriminant_scores, effective_dimension, roc_area
from lapsus.mechanism.rings import RingPair, fit_ring_pair

__all__ = [
    "FIXED",
    "Normals",
    "RingProjection",
    "Rings",
    "axis_areas",
    "cyclic_alignment",
    "fit_rings",
    "normals",
    "projected_rings",
    "random_alignment",
    "ring_geometry",
]

FIXED = -np.pi / 2
# Trials on a ring, at least.
LEAST = 20
# Probe distances of the location pairs, degrees.
DISTANCES = (45, 75, 105, 135, 165)


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


def projected_rings(
    simulated: Simulated, probes: tuple[float, float], colours: int, trials: int
) -> tuple[RingProjection, int]:
    """Trials of one pair of locations and one fixed colour in their components, and how many there are."""
    dataset = simulated(ring_design(np.array([FIXED]), np.array([probes]), free=colours), trials, seed=22)
    return ring_geometry(dataset)[1], dataset.sizes["trial"]


@dataclass(frozen=True)
class Normals:
    """Rings by location pair and fixed colour; NaN where one had fewer than twenty trials.

    cued, uncued: normals [configuration, colour, unit] of trials with the fixed item cued, and with the other cued;
    planes [configuration, colour, 2, unit]: PC1 and PC2; colours [colour]; distance, explained [configuration, colour];
    area [configuration]: held-out ROC area along the normal; scores, swap [trial]: held-out coordinates along it, and
    which trials were swaps; dimension: in how many directions memory varies at the response.
    """

    cued: np.ndarray
    uncued: np.ndarray
    planes: np.ndarray
    colours: np.ndarray
    distance: np.ndarray
    explained: np.ndarray
    area: np.ndarray
    scores: np.ndarray
    swap: np.ndarray
    dimension: float


def _ring_pair(m: np.ndarray, free: np.ndarray, recalled: np.ndarray) -> RingPair | None:
    if min(recalled.sum(), (~recalled).sum()) < LEAST:
        return None
    return fit_ring_pair(m, free, recalled)


def normals(simulated: Simulated, colours: int, rotations: int, trials: int) -> Normals:
    """Rings fitted for each fixed colour and location pair (five distances in some rotations)."""
    probes = np.array([(start, start + gap) for gap in np.radians(DISTANCES) for start in grid(rotations)])
    fixed = grid(colours)
    units, rows = 0, []
    area, scores, swaps, spread = [], [], [], []
    for k, pair in enumerate(probes):
        dataset = simulated(ring_design(fixed, pair[None]), trials, seed=100 + k)
        items, m = two_items(dataset), memory(dataset.isel(time=[-1]))[:, 0]
        label, units = dataset["fixed_colour"].to_numpy(), m.shape[1]
        spread.append(effective_dimension(m))
        row, score = [], np.full(len(m), np.nan)
        half = np.arange(len(m)) % 2
        for colour in range(len(fixed)):
            found = []
            for cued in (True, False):
                own = (label == colour) & ((items.cued == 0) == cued)
                found.append(_ring_pair(m[own], items.report[own, 1], items.recalled[own] == 0))
            own = (label == colour) & (items.cued == 0)
            row.append((*found, fit_rings(m[own]).components[:2]))
            for side in (0, 1):
                train, test = own & (half != side), own & (half == side)
                part = _ring_pair(m[train], items.report[train, 1], items.recalled[train] == 0)
                if part is not None:
                    height = m @ part.normal
                    score[test] = (height[test] - height[train].mean()) / height[train].std()
        known = np.isfinite(score)
        swap = items.swap[known]
        area.append(roc_area(score[known], swap) if 0 < swap.sum() < len(swap) else np.nan)
        scores.append(score[known])
        swaps.append(swap)
        rows.append(row)
    blank = np.full(units, np.nan)
    of = lambda k, get, other: np.array([[other if c[k] is None else get(c[k]) for c in row] for row in rows])
    return Normals(
        cued=of(0, lambda r: r.normal, blank),
        uncued=of(1, lambda r: r.normal, blank),
        planes=np.array([[c[2] for c in row] for row in rows]),
        colours=fixed,
        distance=of(0, lambda r: r.distance, np.nan),
        explained=of(0, lambda r: r.explained, np.nan),
        area=np.array(area),
        scores=np.concatenate(scores),
        swap=np.concatenate(swaps),
        dimension=float(np.mean(spread)),
    )


def axis_areas(simulated: Simulated, rotations: int, trials: int) -> np.ndarray:
    """Held-out area of the swap axis with the reported colour held fixed, [rotation]; items 45 degrees apart.

    The fixed colour is shown at either place of a pair, so that neither place nor cue alone tells swaps.
    """
    found = []
    for k, start in enumerate(grid(rotations)):
        pairs = np.array([(start, start + np.pi / 4), (start + np.pi / 4, start)])
        dataset = simulated(ring_design(grid(4), pairs), trials, seed=300 + k)
        items, m = two_items(dataset), memory(dataset.isel(time=[-1]))[:, 0]
        label, areas = dataset["fixed_colour"].to_numpy(), []
        for colour in range(4):
            own = (label == colour) & (items.recalled == 0)
            if items.swap[own].sum() < LEAST:
                raise LapsusError(NO_SWAPS if not items.swap.any() else "too few swap trials")
            free = items.report[own, 1]
            areas.append(roc_area(discriminant_scores(m[own], items.swap[own], free), items.swap[own]))
        found.append(np.mean(areas))
    return np.array(found)
