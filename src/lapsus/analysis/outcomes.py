"""Was a trial a swap? The probability that a response came from an item that was not cued."""

from dataclasses import dataclass

import numpy as np
from scipy.special import i0e

from lapsus.circular import difference, distance

__all__ = ["SURE", "Outcomes", "outcomes", "scatter_of", "swap_probability"]

# A trial counts as a swap above this probability and as correct below one minus it; in between it is left out.
SURE = 0.9


def scatter_of(response: np.ndarray, report: np.ndarray) -> float:
    """S.d. in radians of responses [trial] about the nearest of the items [trial, item]; the median resists strays."""
    return float(np.median(distance(report, response[:, None]).min(1)) / 0.6745)


def swap_probability(
    response: np.ndarray, report: np.ndarray, cued: np.ndarray, weights: np.ndarray, scatter: float
) -> np.ndarray:
    """Probability that each response reports an item that was not cued, [trial].

    A mixture of von Mises densities about the items: response [trial] and report [trial, item] in radians, cued [trial]
    counted from 0, weights [trial, item] the prior probability that each item is reported, scatter their common s.d.
    """
    kappa = 1 / max(scatter, 1e-3) ** 2
    density = np.exp(kappa * (np.cos(difference(response[:, None], report)) - 1)) / (2 * np.pi * i0e(kappa))
    joint = np.asarray(weights) * density
    total = joint.sum(1)
    others = np.where(np.arange(joint.shape[1]) == np.asarray(cued)[:, None], 0.0, joint).sum(1)
    nearest = distance(report, response[:, None]).argmin(1) != cued
    # Where every density underflows, the nearest item is as good as certain.
    return np.where(total > 0, others / np.where(total > 0, total, 1), nearest.astype(float))


@dataclass(frozen=True)
class Outcomes:
    """What became of each trial: probability [trial] of a swap, and the trials that are surely one or the other."""

    probability: np.ndarray

    @property
    def swap(self) -> np.ndarray:
        return self.probability > SURE

    @property
    def correct(self) -> np.ndarray:
        return self.probability < 1 - SURE

    @property
    def unclear(self) -> int:
        """Trials that are left out of comparisons of swaps with correct trials."""
        return int((~self.swap & ~self.correct).sum())


def outcomes(response: np.ndarray, report: np.ndarray, cued: np.ndarray) -> Outcomes:
    """Outcomes of trials with the swap rate and the scatter of these trials themselves."""
    cued = np.asarray(cued)
    rate = np.clip((distance(report, response[:, None]).argmin(1) != cued).mean(), 1e-3, 1 - 1e-3)
    weights = np.full(report.shape, rate / max(report.shape[1] - 1, 1))
    np.put_along_axis(weights, cued[:, None], 1 - rate, 1)
    return Outcomes(swap_probability(response, report, cued, weights, scatter_of(response, report)))
