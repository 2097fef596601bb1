"""Rings fitted directly: plane, centre, radius and phase of each ring, and how far two rings lie apart (Fig 4C, D).

Locations and one item's colour are fixed, the other item's colour varies. Memory activity at the response lies, if it
lies on rings, on one for each role of the fixed item: where it was recalled, and where the other was. Each ring is a
regression of activity on cosine and sine of the free colour; nothing is said about which principal component is what.
"""

from dataclasses import dataclass

import numpy as np

from lapsus.analysis.activity import require_trials
from lapsus.circular import embed

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


def colour_explained(m: np.ndarray, colour: np.ndarray, *, folds: int = 5, components: int | None = None) -> float:
    """Held-out R² of [cos, sin] of colour [trial] predicted linearly from activity m [trial, unit].

    components: from so many principal components only (of the training trials); None: from all of m.
    """
    y = embed(colour)
    fold = np.arange(len(m)) % folds
    residual = np.empty_like(y)
    total = np.empty_like(y)
    for k in range(folds):
        train, test = fold != k, fold == k
        mean, goal = m[train].mean(0), y[train].mean(0)
        x, new = m[train] - mean, m[test] - mean
        if components is not None:
            axes = np.linalg.svd(x, full_matrices=False)[2][:components].T
            x, new = x @ axes, new @ axes
        ridge = 1e-6 * max(np.trace(x.T @ x) / x.shape[1], 1e-12) * np.eye(x.shape[1])
        weights = np.linalg.solve(x.T @ x + ridge, x.T @ (y[train] - goal))
        residual[test], total[test] = y[test] - goal - new @ weights, y[test] - goal
    return float(1 - (residual**2).sum() / max((total**2).sum(), 1e-12))


def fit_ring(m: np.ndarray, colour: np.ndarray, *, count: bool = True) -> Ring:
    """One ring through activity m [trial, unit] of trials with free colours [trial]; count: its dimensions, too."""
    require_trials(len(m), 20, "trials on a ring")
    design = np.concatenate([np.ones((len(m), 1)), embed(colour)], 1)
    centre, cosine, sine = np.linalg.lstsq(design, m, rcond=None)[0]
    # [cos, sin] of colour → plane: two orthonormal axes, radii along them, and a rotation of the colours.
    left, radii, plane = np.linalg.svd(np.stack([cosine, sine]), full_matrices=False)
    start = (left * radii)[0]
    turns = 1 if np.linalg.det(left) > 0 else -1
    explained = colour_explained(m, colour)
    dimensions = m.shape[1]
    for number in range(1, m.shape[1] + 1) if count else ():
        if colour_explained(m, colour, components=number) >= 0.9 * explained:
            dimensions = number
            break
    return Ring(
        centre, plane, radii, float(np.arctan2(start[1], start[0])), turns, float(explained), dimensions, len(m)
    )


def plane_cosine(first: np.ndarray, second: np.ndarray) -> float:
    """Mean cos of the principal angles between planes with orthonormal bases [2, unit]."""
    return float(np.linalg.svd(first @ second.T)[1].clip(0, 1).mean())


def fit_ring_pair(m: np.ndarray, colour: np.ndarray, recalled: np.ndarray, *, count: bool = True) -> RingPair:
    """Both rings through activity m [trial, unit]: recalled [trial] bool says on which a trial should lie."""
    recalled = np.asarray(recalled, dtype=bool)
    first, second = (fit_ring(m[rows], colour[rows], count=count) for rows in (recalled, ~recalled))
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
