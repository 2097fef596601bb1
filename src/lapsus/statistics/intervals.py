"""Intervals of rates and medians: of single observations, and of observations that come in units (trials of one
condition share their stimuli, so that the condition is what was sampled)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

# A number with the lower and the upper limit of its 95 % interval.
Interval = tuple[float, float, float]
Z95 = float(ndtri(0.975))


def limits(drawn: np.ndarray | Sequence[float], axis: int | None = 0) -> np.ndarray:
    """Lower and upper 95 % limit [2, ...] of draws (bootstrap samples, posterior draws) that lie along `axis`."""
    return np.quantile(drawn, (0.025, 0.975), axis=axis)


def robust_sd(away: np.ndarray) -> np.ndarray:
    """S.d. [...] from distances to the centre, away [..., observation], in their unit: their median over that of a
    normal distribution, which strays hardly change."""
    return np.median(away, -1) / 0.6745


def proportion_interval(hits: ArrayLike, count: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Wilson 95 % interval of a proportion: low and high, of the shape of `hits` (successes) over `count`."""
    hits, count = np.asarray(hits, dtype=float), np.asarray(count, dtype=float)
    z = Z95
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (hits + z**2 / 2) / (count + z**2)
        half = z / (count + z**2) * np.sqrt(hits * (count - hits) / count + z**2 / 4)
    # At 0 or 1 the interval ends there exactly, which rounding would miss.
    return np.where(hits > 0, centre - half, 0.0)[()], np.where(hits < count, centre + half, 1.0)[()]


def rate_interval(hits: np.ndarray, unit: np.ndarray | None = None) -> Interval:
    """Mean of 0/1 values (or probabilities) [observation] and its 95 % interval.

    unit [observation] numbers the independent units; None: every observation is one, and the interval is Wilson's.
    """
    hits = np.asarray(hits, float)
    rate, count = float(hits.mean()), len(hits)
    if unit is not None:
        of = np.unique(unit, return_inverse=True)[1]
        size, total = np.bincount(of), np.bincount(of, hits)
        units = len(size)
        # The rate is a ratio of two sums over units; equal units give the standard error of their mean.
        error = np.sqrt(units / max(units - 1, 1) * ((total - rate * size) ** 2).sum()) / count
        if units > 1 and error > 0:
            return rate, max(0.0, rate - Z95 * float(error)), min(1.0, rate + Z95 * float(error))
    # Single observations, or no variation was seen: Wilson's bound on what was.
    low, high = proportion_interval(hits.sum(), count)
    return rate, float(low), float(high)


def resampled_interval(value: float | np.ndarray, drawn: np.ndarray) -> Interval:
    """A number with the 95 % interval of its bootstrap samples [sample], by their quantiles."""
    low, high = limits(drawn)
    return float(value), float(low), float(high)


def median_interval(values: np.ndarray) -> Interval:
    """Median of values [unit, trial], with a 95 % interval from order statistics that is widened for units."""
    flat = np.sort(np.asarray(values, float), axis=None)
    median = float(flat[(len(flat) - 1) // 2])
    below = (values <= median).mean(1)
    error = float(below.std(ddof=1)) / np.sqrt(len(below)) if len(below) > 1 else 0.5
    at = lambda level: float(flat[round(float(np.clip(level, 0, 1)) * (len(flat) - 1))])
    return median, at(0.5 - Z95 * error), at(0.5 + Z95 * error)
