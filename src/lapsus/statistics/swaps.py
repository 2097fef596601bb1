"""The swap curve: how often an item that was not cued is reported, by its distance from the cued one.

Everything that counts swaps counts them here. What a swap is depends on what is known:

nearest item      here: the item nearest to the response is the one reported. What anybody can count; evaluation,
                  matches, manipulations and claims use it. A guess near an item counts as its report.
surplus           here: how many more responses lie near the non-target than scatter and guesses bring there; the
                  tolerance of a match, which must not count these.
by likelihood     behaviour/measures.py: a mixture fitted to the same responses, so that guesses are not swaps; the
                  column `likelihood` of an evaluation.
target            behaviour/measures.py, prior_swap_probability: what a network was asked for.
fitted to data    fitting: the probability of each trial under the fitted model (Fit.swap_probability).
single trials     mechanism/outcomes.py: trials of a network or a recording that are swaps with near certainty.

Where there are probabilities, they take the place of 0 and 1.
"""

from dataclasses import dataclass

import numpy as np

from lapsus.circular import difference, distance
from lapsus.statistics.intervals import rate_interval

# A response further than this from every item reports none of them (radians).
AWAY = 0.6
# Distances closer than this are one distance that was rounded (radians; 0.06°).
_SAME = 1e-3


def nearest_item(response: np.ndarray, report: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of the items' report features [trial, item] is nearest to the response [..., trial], and how near: item
    [..., trial] and gap [..., trial] in radians. Items that are not there are NaN."""
    gap = distance(np.asarray(response)[..., None], report)
    item = np.nanargmin(gap, -1)
    return item, np.take_along_axis(gap, item[..., None], -1)[..., 0]


def surplus_rate(response: np.ndarray, report: np.ndarray) -> float:
    """Rate of swaps among responses [..., trial] to a target and a non-target [trial, 2]: how many more lie near the
    non-target than near its mirror image on the other side of the target, which scatter and guesses reach as often."""
    target, other = report.T
    gap = difference(other, target)
    # Opposite the target the two are one; a right angle from it lie guesses alone.
    opposite = np.abs(gap) > np.pi - AWAY
    image = target + np.where(opposite, np.pi / 2, -gap)
    near_other, near_image = (distance(response, angle) < AWAY for angle in (other, image))
    apart = np.abs(gap) > AWAY
    return float((near_other.astype(float) - near_image)[..., apart].mean()) if apart.any() else 0.0


def distinct(values: np.ndarray) -> np.ndarray:
    """The different values among many, ascending; those closer than rounding makes them are one, their mean.

    Values that lie close all along a stretch are not rounded ones of a few: they are anywhere, and are told apart by
    the same width."""
    values = np.sort(values, axis=None)
    if not len(values):
        return values
    parts = np.split(values, np.flatnonzero(np.diff(values) > _SAME) + 1)
    if max(group[-1] - group[0] for group in parts) > 3 * _SAME:
        return np.unique(np.round(values / _SAME)) * _SAME
    return np.array([group.mean() for group in parts])


def distance_edges(gap: np.ndarray, most: int = 8, *, equally_many: bool = False) -> np.ndarray:
    """Edges [bin + 1] in radians of at most `most` bins of distances: one for each distinct distance if they are so
    few, else bins of equal width (or with equally many distances in each)."""
    gap = np.sort(gap[np.isfinite(gap)], axis=None)
    if not len(gap):
        return np.array([0.0, np.pi + 1e-6])
    different = distinct(gap)
    if len(different) <= most:
        return np.concatenate([[-1e-6], (different[1:] + different[:-1]) / 2, [np.pi + 1e-6]])
    if equally_many:
        inner = np.unique(np.round(np.quantile(gap, np.linspace(0, 1, most + 1)[1:-1]), 4)) + 1e-4
        return np.concatenate([[-1e-6], inner, [np.pi + 1e-6]])
    return np.linspace(gap[0] - 1e-6, gap[-1] + 1e-6, most + 1)


def rate_by_distance(hit: np.ndarray, gap: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Mean of `hit` [..., pair] in each bin of the distances `gap` [pair]: [..., bin], NaN where a bin is empty.

    A pair is a trial and one of its items that was not cued.
    """
    bin = np.searchsorted(edges, gap) - 1
    member = (bin[:, None] == np.arange(len(edges) - 1)).astype(float)  # [pair, bin]
    with np.errstate(invalid="ignore"):
        return np.asarray(hit, float) @ member / member.sum(0)


@dataclass(frozen=True)
class SwapCurve:
    """One entry for each bin that has pairs: its place in `edges`, mean distance (radians), rate with its 95 %
    interval, pairs and reports."""

    bin: np.ndarray
    distance: np.ndarray
    rate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pairs: np.ndarray
    swaps: np.ndarray

    def rows(self) -> list[dict]:
        """One dictionary a bin, of plain numbers."""
        names = ("distance", "rate", "low", "high", "pairs", "swaps")
        return [{name: getattr(self, name)[k].item() for name in names} for k in range(len(self.bin))]


def swap_curve(
    hit: np.ndarray, gap: np.ndarray, edges: np.ndarray | None = None, unit: np.ndarray | None = None
) -> SwapCurve:
    """How often items were reported, hit [pair], by their distance from the cued one, gap [pair] in radians.

    unit [pair] numbers what was sampled independently (conditions, say), over which intervals are taken; None: pairs.
    """
    edges = distance_edges(gap) if edges is None else np.asarray(edges)
    bin = np.searchsorted(edges, gap) - 1
    there = [k for k in range(len(edges) - 1) if (bin == k).any()]
    rows = []
    for k in there:
        in_bin = bin == k
        rows.append(
            (gap[in_bin].mean(), *rate_interval(hit[in_bin], None if unit is None else unit[in_bin]), in_bin.sum())
        )
    mean, rate, low, high, pairs = np.array(rows, float).reshape(-1, 5).T
    swaps = np.array([np.asarray(hit, float)[bin == k].sum() for k in there])
    return SwapCurve(np.array(there, int), mean, rate, low, high, pairs.astype(int), swaps)
