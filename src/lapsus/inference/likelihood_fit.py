"""Maximum likelihood, without priors: one logit for all distractors, or one at each distinct distance."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize

from lapsus.errors import LapsusError
from lapsus.inference.emissions import EMISSIONS
from lapsus.inference.likelihood import Likelihood, one_thread_each
from lapsus.inference.model import FEATURES
from lapsus.inference.variational import curvature

__all__ = ["MaximumLikelihood", "maximum_likelihood"]


@dataclass
class MaximumLikelihood:
    """distances and logits f there (one logit, no distance, for "constant"), emission parameters, probability of a
    guess."""

    log_likelihood: float
    distances: np.ndarray | None
    f: np.ndarray | None
    emission: dict
    uniform: float | None


def maximum_likelihood(trials, model="constant", emission="von_mises", uniform=True, even=True) -> MaximumLikelihood:
    """The likelihood's maximum for one group of trials: every set size shares one emission.

    With model "probe" or "report" f is free at every distinct distance (at most 48 of them, as on a ring of positions).
    """
    kind = EMISSIONS[emission]()
    with one_thread_each():
        likelihood = Likelihood(
            trials, kind, np.zeros(len(trials), int), FEATURES[model], model == "constant", even, uniform
        )
        if likelihood.sites is not None and not all(likelihood.sites.exact):
            raise LapsusError(
                f"maximum likelihood with model '{model}' needs at most 48 distinct distances; use lapsus.fit."
            )
        count, size = likelihood.values, len(kind.names)

        def value_and_gradient(x):
            f = x[:count] if count else None
            guess = x[-1:] if uniform else None
            value, on_f, on_emission, on_guess = likelihood.total(f, x[count : count + size, None], guess)
            parts = [on_f, on_emission[:, 0], on_guess]
            return value, torch.cat([part for part in parts if part is not None])

        def objective(x):
            value, gradient = value_and_gradient(torch.tensor(x)[:, None])
            return -value.item(), -gradient[:, 0].numpy()

        best = None
        for start in (-1.0, -3.0):
            x = np.concatenate([np.full(count, start), kind.initial(trials), np.full(int(uniform), start)])
            found = minimize(
                objective, x, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-8}
            )
            if best is None or found.fun < best.fun:
                best = found
        x = best.x
        for _ in range(3):  # Newton: the last digits, where the maximum is inside the parameter space
            value, gradient = objective(x)
            step = np.linalg.lstsq(curvature(value_and_gradient, x), -gradient, rcond=1e-10)[0]
            if np.abs(step).max() > 0.1 or objective(x + step)[0] > value:
                break
            x = x + step
        value = -objective(x)[0]
    named = {name: float(v) for name, v in kind.natural(x[count : count + size, None]).items() for v in v}
    return MaximumLikelihood(
        value,
        likelihood.sites.points if likelihood.sites is not None else None,
        x[:count] if count else None,
        named,
        float(1 / (1 + np.exp(-x[-1]))) if uniform else None,
    )
