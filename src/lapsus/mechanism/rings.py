"""Rings fitted directly: plane, centre, radius and phase of each ring, and how far two rings lie apart (Fig 4C, D).

Locations and one item's colour are fixed, the other item's colour varies. Memory activity at the response lies, if it
lies on rings, on one for each role of the fixed item: where it was recalled, and where the other was. Each ring is a
regression of activity on cosine and sine of the free colour; nothing is said about which principal component is what.
"""

from dataclasses import dataclass

import numpy as np

from lapsus.circular import embed
from lapsus.mechanism.activity import require_trials

__all__ = ["Ring", "RingPair", "colour_explained", "fit_ring", "fit_ring_pair", "plane_cosine"]


@dataclass(frozen=True)
class Ring:
    """centre [unit]; plane [2, unit], orthonormal; radii [2] along its axes; phase: where on the ring colour 0 lies, in
    radians from the first axis; turns: +1 or -1, the sense in which colours run; explained: held-out share of the
    variance of the free colour's [cos, sin] that activity explains; dimensions: the fewest principal components that
    give nine tenths of it; trials: how many."""

    centre: np.ndarray
    plane: np.ndarray
    radii: np.ndarray
    phase: float
    turns: int
    explained: float
    dimensions: int
    trials: int

    def at(self, colour: np.ndarray) -> np.ndarray:
        """Where colours [...] in radians lie on the ring: [..., unit]."""
        start = np.arctan2(np.sin(self.phase) / self.radii[1], np.cos(self.phase) / self.radii[0])
        return self.centre + (embed(start + self.turns * np.asarray(colour)) * self.radii) @ self.plane


@dataclass(frozen=True)
class RingPair:
    """recalled, other: the rings of trials that report the fixed and the free colour. normal [unit]: the direction
    between their centres that is normal to both planes, of unit length, towards `other`. distance: of the centres along
    it, in s.d. of trials about their ring along it. parallel: mean cos of the principal angles between the planes."""

    recalled: Ring
    other: Ring
    normal: np.ndarray
    distance: float
    parallel: float

    @property
    def explained(self) -> float:
        """Of the ring on which the free colour is less visible."""
        return min(self.recalled.explained, self.other.explained)


def colour_explained(m: np.ndarray, colour: np.ndarray, *, folds: int = 5) -> np.ndarray:
    """Held-out R² of [cos, sin] of colour [trial] predicted linearly from the first 1, 2, … principal components (of
    the training trials) of activity m [trial, unit]: [unit], the last from all of it."""
    y = embed(colour)
    fold = np.arange(len(m)) % folds
    left, total = np.zeros(m.shape[1]), 0.0
    for k in range(folds):
        train, test = fold != k, fold == k
        mean, goal = m[train].mean(0), y[train].mean(0)
        x = m[train] - mean
        power, axes = np.linalg.eigh(x.T @ x)
        power, axes = power[::-1].clip(0), axes[:, ::-1]
        # Components do not correlate, so each has its own weight, whichever others are used.
        weights = (axes.T @ x.T @ (y[train] - goal)) / (power + 1e-6 * max(power.mean(), 1e-12))[:, None]
        parts = ((m[test] - mean) @ axes)[:, :, None] * weights
        aim = y[test] - goal
        left += ((aim[:, None] - parts.cumsum(1)) ** 2).sum((0, 2))
        total += (aim**2).sum()
    return 1 - left / max(total, 1e-12)


def fit_ring(m: np.ndarray, colour: np.ndarray) -> Ring:
    """One ring through activity m [trial, unit] of trials with free colours [trial]."""
    require_trials(len(m), 20, "trials on a ring")
    design = np.concatenate([np.ones((len(m), 1)), embed(colour)], 1)
    centre, cosine, sine = np.linalg.lstsq(design, m, rcond=None)[0]
    # [cos, sin] of colour → plane: two orthonormal axes, radii along them, and a rotation of the colours.
    left, radii, plane = np.linalg.svd(np.stack([cosine, sine]), full_matrices=False)
    start = (left * radii)[0]
    turns = 1 if np.linalg.det(left) > 0 else -1
    explained = colour_explained(m, colour)
    enough = np.flatnonzero(explained >= 0.9 * explained[-1])
    dimensions = int(enough[0]) + 1 if len(enough) else m.shape[1]
    phase = float(np.arctan2(start[1], start[0]))
    return Ring(centre, plane, radii, phase, turns, float(explained[-1]), dimensions, len(m))


def plane_cosine(first: np.ndarray, second: np.ndarray) -> float:
    """Mean cos of the principal angles between planes with orthonormal bases [2, unit]."""
    return float(np.linalg.svd(first @ second.T)[1].clip(0, 1).mean())


def fit_ring_pair(m: np.ndarray, colour: np.ndarray, recalled: np.ndarray) -> RingPair:
    """Both rings through activity m [trial, unit]: recalled [trial] bool says on which a trial should lie."""
    recalled = np.asarray(recalled, dtype=bool)
    first, second = (fit_ring(m[rows], colour[rows]) for rows in (recalled, ~recalled))
    gap = second.centre - first.centre
    # What the colour itself does in either plane is no distance between rings. Where the planes are nearly parallel,
    # the directions in which they differ are those of estimation error and are not taken off.
    extent, span = np.linalg.svd(np.concatenate([r.radii[:, None] * r.plane for r in (first, second)]))[1:]
    span = span[: len(extent)][extent > 0.3 * extent[0]].T
    normal = gap - span @ (span.T @ gap)
    length = float(np.linalg.norm(normal))
    normal = normal / max(length, 1e-12)
    spread = np.sqrt(np.mean([(m[rows] @ normal).var(ddof=1) for rows in (recalled, ~recalled)]))
    return RingPair(first, second, normal, float(length / max(spread, 1e-12)), plane_cosine(first.plane, second.plane))
