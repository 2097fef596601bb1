"""How many of many uncertain events happened: expected counts with intervals."""

import numpy as np
from scipy.stats import norm

__all__ = ["expected_count"]


def expected_count(probability: np.ndarray, level: float = 0.95) -> dict[str, float]:
    """Sum of independent events with probabilities [T]: expected, low and high of the central interval.

    The count of independent events that differ in probability is Poisson-binomial; up to 2,000 events its distribution
    is worked out, beyond that it is normal to all purposes.
    """
    p = np.clip(np.asarray(probability, float), 0.0, 1.0)
    mean, tail = float(p.sum()), (1 - level) / 2
    if len(p) > 2000:
        half = float(norm.ppf(1 - tail)) * float(np.sqrt((p * (1 - p)).sum()))
        return {"expected": mean, "low": max(0.0, mean - half), "high": min(float(len(p)), mean + half)}
    chance = np.ones(1)
    for one in p:
        chance = np.convolve(chance, [1 - one, one])
    cumulative = np.cumsum(chance)
    low, high = (float(np.searchsorted(cumulative, q)) for q in (tail, 1 - tail))
    return {"expected": mean, "low": low, "high": min(high, float(len(p)))}
