"""A mean over units that differ, each known with its own error: the network is the unit, not the trial.

y_i = mu + u_i + e_i with u_i ~ N(0, tau²) between units and e_i ~ N(0, s_i²) within unit i, s_i known. tau² is Paule
and Mandel's estimate (J Res Nat Bur Stand 1982), the interval of mu Hartung and Knapp's (Stat Med 2001), which has its
level with few units, too; where errors within units differ tenfold it covers a little less (0.92, by simulation).
Without errors within units this is the mean with Student's interval.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from lapsus.statistics.intervals import robust_sd


@dataclass(frozen=True)
class Ensemble:
    """Mean over units with its 95 % interval, s.d. between units (what errors within them do not explain), the interval
    in which 95 % of further units are expected, and how many units it rests on. NaN where there are too few."""

    mean: float
    low: float
    high: float
    between: float
    next_low: float
    next_high: float
    units: int


def _weighted(y: np.ndarray, variance: np.ndarray) -> tuple[float, float]:
    """Mean by inverse variance, and the sum of weighted squares around it."""
    weight = 1 / variance
    mean = float((weight * y).sum() / weight.sum())
    return mean, float((weight * (y - mean) ** 2).sum())


def _between(y: np.ndarray, within: np.ndarray) -> float:
    """tau² at which the weighted squares are as large as they should be on average, k - 1."""
    due = len(y) - 1
    if not within.any():
        return float(y.var(ddof=1))
    surplus = lambda tau2: _weighted(y, within + tau2)[1] - due
    # A unit without error would weigh infinitely much at tau² = 0.
    least = 0.0 if (within > 0).all() else 1e-12 * float(y.var(ddof=1)) + 1e-300
    if surplus(least) <= 0:
        return 0.0
    top = float(y.var(ddof=1)) + 1e-300
    while surplus(top) > 0:
        top *= 2
    return float(optimize.brentq(surplus, least, top))


def ensemble_mean(values: np.ndarray, errors: np.ndarray | None = None, level: float = 0.95) -> Ensemble:
    """values [unit] and, where known, their standard errors [unit]; units that are not finite are left out."""
    y = np.asarray(values, float)
    s = np.zeros_like(y) if errors is None else np.nan_to_num(np.asarray(errors, float))
    y, within = y[np.isfinite(y)], (s**2)[np.isfinite(y)]
    k, nan = len(y), float("nan")
    if k < 2:
        return Ensemble(float(y[0]) if k else nan, nan, nan, nan, nan, nan, k)
    if y.var(ddof=1) == 0 and not within.any():  # so, too, where their squares vanish
        return Ensemble(float(y[0]), float(y[0]), float(y[0]), 0.0, float(y[0]), float(y[0]), k)
    tau2 = _between(y, within)
    total = within + tau2
    if not total.all():  # units without error that agree, beside others
        total = total + 1e-12 * float(total.max())
    mean, squares = _weighted(y, total)
    # Never narrower than the errors within units allow (Hartung and Knapp's factor at least one where there are any).
    scale = squares / (k - 1) if not within.any() else max(1.0, squares / (k - 1))
    variance = scale / float((1 / total).sum())
    t = float(stats.t.ppf(0.5 + level / 2, k - 1))
    half, further = t * np.sqrt(variance), t * np.sqrt(variance + tau2)
    return Ensemble(mean, mean - half, mean + half, float(np.sqrt(tau2)), mean - further, mean + further, k)


def differences_within(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, ...]:
    """Means of first - second [unit, statistic] over units that both have, with Student's interval, and how many units
    these are: mean, low, high, units, each [statistic]. NaN where there are none, or for an interval fewer than two."""
    apart = np.asarray(first, float) - np.asarray(second, float)
    known = np.isfinite(apart)
    units = known.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, apart, 0.0).sum(0) / units
        variance = np.where(known, (apart - mean) ** 2, 0.0).sum(0) / np.maximum(units - 1, 0)
        half = stats.t.ppf(0.975, units - 1) * np.sqrt(variance / units)
    return mean, mean - half, mean + half, units


def outliers(values: np.ndarray) -> np.ndarray:
    """Which units [unit] lie further than 3.5 robust s.d. from the median; none where there are fewer than five."""
    y = np.asarray(values, float)
    known = np.isfinite(y)
    if known.sum() < 5:
        return np.zeros(len(y), bool)
    away = np.abs(y - np.median(y[known]))
    return known & (away > 3.5 * robust_sd(away[known])) & (away > 1e-9 * np.abs(y[known]).max(initial=0.0))
