"""From a fit to what a network with two items should answer: points around the items of a plane."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.special import ive

from lapsus.behaviour import BNS, ConstantSwap

__all__ = ["LEAST_GUESS", "RADIUS", "fitted_behaviour", "left_out", "planar_scatter"]

# Of the circle on which responses lie (the paper's A).
RADIUS = 2.5
# Guesses rarer than this are left out of the target: the uniform component costs a quarter of the training time.
LEAST_GUESS = 0.01


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


def left_out(fit: Any, fitted: BNS, cueing: str) -> list[str]:
    """What the fit describes and the target of a network lacks, in sentences."""
    sentences = []
    if fit.bias is not None:
        degrees = fit.trials.degrees * fit.bias["bias"]
        sentences.append(f"The fitted bias of all responses ({degrees:+.1f}°) was left out of the target.")
    if 0 < fitted.uniform < LEAST_GUESS:
        sentences.append(f"Guesses ({100 * fitted.uniform:.1f} %) were left out of the target.")
    if fit.model.emission.name in ("variable_precision", "wrapped_stable"):
        sentences.append(
            "The target's scatter is Gaussian: of the fitted scatter it has the s.d., not the heavy tails."
        )
    if cueing == "index" and "probe" in fit.swap_model.features:
        sentences.append(
            f"The target has the mean swap probability over distances in {fit.trials.probe_name}: an index-cued network"
            " is not told where items are."
        )
    return sentences


def planar_scatter(circular_sd: float) -> float:
    """sigma_x / A at which the angle of a response in the plane has this circular s.d. (the projected normal's
    resultant length)."""

    def resultant(scatter: float) -> float:
        x = 1 / (4 * scatter**2)
        return math.sqrt(math.pi / 2 * x) * (ive(0, x) + ive(1, x))

    wanted = math.exp(-(circular_sd**2) / 2)
    return brentq(lambda scatter: resultant(scatter) - wanted, 1e-3, 50.0)
