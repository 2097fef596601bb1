"""How errors grow with the delay: what is lost in writing and reading a memory, and what in holding it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls


@dataclass(frozen=True)
class Growth:
    """error(d)² = written² + held² (d / 40)^exponent: what is lost in writing and reading, and in a delay of 40 steps
    (radians). Diffusion of the memory has an exponent of 1, a drift at constant speed one of 2."""

    written: float
    held: float
    exponent: float


def growth(delays: Sequence[int], errors: Sequence[float]) -> Growth:
    """The least-squares fit to errors (radians) at some delays, relative to their squares; the exponent is found on a
    grid from 0.05 to 4."""
    d, square = np.asarray(delays, float) / 40, np.square(np.asarray(errors, float))
    least, best = np.inf, Growth(np.nan, np.nan, np.nan)
    for exponent in np.arange(0.05, 4.0001, 0.05):
        design = np.stack([np.ones_like(d), d**exponent], 1) / square[:, None]
        found, rest = nnls(design, np.ones_like(d))
        if rest < least:
            written, held = np.sqrt(found)
            least, best = rest, Growth(float(written), float(held), round(float(exponent), 2))
    return best
