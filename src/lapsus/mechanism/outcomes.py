"""Was a trial a swap, correct, or a guess? By probability, from a mixture fitted to the trials themselves.

A response near an item may report it or be a guess that landed there, and a response far from every item is a guess
whichever item is nearest. The mixture is that of the behaviour models: a density about each item and a uniform one. A
network that is not matched to its target is judged
by what it does, not by what it should do, so that rates and scatter come from its own responses.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import i0e

from lapsus.circular import difference, distance
from lapsus.statistics.intervals import robust_sd
from lapsus.statistics.swaps import nearest_item

__all__ = ["SURE", "Outcomes", "guess_of", "outcomes", "responsibilities", "scatter_of"]

# A trial counts as a swap or as correct where that has at least this probability; others are left out.
SURE = 0.9


def scatter_of(response: np.ndarray, report: np.ndarray) -> float:
    """S.d. in radians of responses [trial] about the nearest of the items [trial, item]; the median resists strays."""
    return float(robust_sd(nearest_item(response, report)[1]))


def guess_of(response: np.ndarray, report: np.ndarray, scatter: float) -> float:
    """Share of guesses: responses further than four s.d. (at least 0.5 rad) from every item, over the share of the
    circle that lies so far; 0 where items leave next to none of it, at most one half."""
    far = max(4 * scatter, 0.5)
    circle = -np.pi + 2 * np.pi * (np.arange(72) + 0.5) / 72
    some = report[:: max(1, len(report) // 500)]
    room = float((distance(some[:, :, None], circle).min(1) > far).mean())
    if room < 0.1:
        return 0.0
    return float(min((nearest_item(response, report)[1] > far).mean() / room, 0.5))


def responsibilities(
    response: np.ndarray, report: np.ndarray, cued: np.ndarray, weights: np.ndarray, scatter: float, guess: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Probability that each response reports an item that was not cued, and the one that was, [trial] both.

    A mixture of von Mises densities about the items: response [trial] and report [trial, item] in radians, cued [trial]
    counted from 0, weights [trial, item] the prior probability of each item where there is no guess, scatter their
    common s.d.; the rest of the probability is that of a guess.
    """
    kappa = 1 / max(scatter, 1e-3) ** 2
    density = np.exp(kappa * (np.cos(difference(response[:, None], report)) - 1)) / (2 * np.pi * i0e(kappa))
    joint = (1 - guess) * np.asarray(weights) * density
    total = joint.sum(1) + guess / (2 * np.pi)
    own = np.arange(joint.shape[1]) == np.asarray(cued)[:, None]
    # Where every density underflows and there are no guesses, the nearest item is as good as certain.
    nearest = (nearest_item(response, report)[0] != cued).astype(float)
    known = total > 0
    safe = np.where(known, total, 1)
    swap = np.where(known, np.where(own, 0.0, joint).sum(1) / safe, nearest)
    return swap, np.where(known, np.where(own, joint, 0.0).sum(1) / safe, 1 - nearest)


@dataclass(frozen=True)
class Outcomes:
    """What became of each trial: probability of a swap and of a correct report, both of any one shape, and the trials
    that are surely one or the other."""

    probability: np.ndarray
    correct_probability: np.ndarray

    @property
    def swap(self) -> np.ndarray:
        """Trials that are surely swaps."""
        return self.probability > SURE

    @property
    def correct(self) -> np.ndarray:
        """Trials that are surely correct."""
        return self.correct_probability > SURE

    @property
    def unclear(self) -> int:
        """Trials that are left out of comparisons of swaps with correct trials."""
        return int((~self.swap & ~self.correct).sum())


def outcomes(response: np.ndarray, report: np.ndarray, cued: np.ndarray) -> Outcomes:
    """Outcomes of trials with the swap rate, the scatter and the guesses of these trials themselves."""
    cued = np.asarray(cued)
    rate = np.clip((nearest_item(response, report)[0] != cued).mean(), 1e-3, 1 - 1e-3)
    weights = np.full(report.shape, rate / max(report.shape[1] - 1, 1))
    np.put_along_axis(weights, cued[:, None], 1 - rate, 1)
    scatter = scatter_of(response, report)
    return Outcomes(*responsibilities(response, report, cued, weights, scatter, guess_of(response, report, scatter)))
