"""From a fit to what a network with two items should answer: points around the items of a plane."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import ive

from lapsus.behaviour import BNS, ConstantSwap

__all__ = ["RADIUS", "fitted_behaviour", "planar_scatter"]

# Of the circle on which responses lie (the paper's A).
RADIUS = 2.5


def fitted_behaviour(fit: Any, set_size: int, cueing: str) -> BNS:
    """What the fit says a subject does with two items: posterior mean of p(swap), the fitted scatter and guesses.

    An index-cued network is not told where items are, so a swap function of the probe distance becomes its mean over
    the data's.
    """
    fitted = fit.behaviour(average="posterior", radius=RADIUS, set_size=set_size)
    fitted = replace(fitted, spread=RADIUS * planar_scatter(fitted.spread / RADIUS))
    features = fit.swap_model.features
    if cueing == "index" and fit.swap_model.swaps and features != ("report",):
        gaps = [fit.trials.distance(name)[:, 1:].ravel() for name in features]
        gaps = [torch.tensor(g[np.isfinite(g)]) for g in gaps] or [torch.zeros(1)]
        p = float(torch.sigmoid(fitted.swap(*gaps)).mean())
        return BNS(
            swap=ConstantSwap(min(max(p, 1e-4), 1 - 1e-4)), uniform=fitted.uniform, radius=RADIUS, spread=fitted.spread
        )
    return fitted


def planar_scatter(circular_sd: float) -> float:
    """sigma_x / A at which the angle of a response in the plane has this circular s.d. (the projected normal's
    resultant length)."""

    def resultant(scatter: float) -> float:
        x = 1 / (4 * scatter**2)
        return math.sqrt(math.pi / 2 * x) * (ive(0, x) + ive(1, x))

    wanted = math.exp(-(circular_sd**2) / 2)
    return brentq(lambda scatter: resultant(scatter) - wanted, 1e-3, 50.0)
