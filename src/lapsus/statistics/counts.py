"""How many of many uncertain events happened: expected counts with intervals."""

import numpy as np
from scipy.special import bdtr


def expected_count(probability: np.ndarray) -> dict[str, float]:
    """Number of events with probabilities [T], or [T, S] at each of S posterior draws: expected, and low and high of
    its 95 % interval.

    Given a draw the events are independent, and their count is taken as binomial with its own mean and variance (within
    one of the exact quantiles unless the events are a handful); what the draws do not agree on widens the interval.
    """
    p = np.asarray(probability)
    p = p[:, None] if p.ndim == 1 else p
    mean, certain = p.sum(0, dtype=float), np.einsum("ts,ts->s", p, p, dtype=float)  # the variance is their difference
    trials = np.round(np.divide(mean**2, certain, out=np.zeros_like(mean), where=certain > 0))
    trials = np.maximum(trials, np.ceil(mean - 1e-9))
    chance = np.minimum(np.divide(mean, trials, out=np.zeros_like(mean), where=trials > 0), 1.0)

    def quantile(share: float) -> float:
        """The smallest count that is not exceeded with probability `share`, by bisection."""
        below, at = -1, len(p)
        while at - below > 1:
            middle = (at + below) // 2
            enough = bdtr(np.minimum(middle, trials), trials.astype(int), chance).mean() >= share
            below, at = (below, middle) if enough else (middle, at)
        return float(at)

    return {"expected": float(mean.mean()), "low": quantile(0.025), "high": quantile(0.975)}
