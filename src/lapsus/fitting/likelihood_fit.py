"""Maximum likelihood, without priors: one logit for all distractors, or one at each distinct distance."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize

from lapsus.engine.threads import torch_threads
from lapsus.errors import LapsusError
from lapsus.fitting.emissions import EMISSIONS
from lapsus.fitting.laplace import curvature
from lapsus.fitting.likelihood import Likelihood, Parameters
from lapsus.fitting.swap_models import SWAP_MODELS
from lapsus.trials import Trials

__all__ = ["MaximumLikelihood", "maximum_likelihood"]


@dataclass
class MaximumLikelihood:
    """distances (radians) and logits f there (one logit, no distance, for "constant"), emission parameters,
    probability of a guess."""

    log_likelihood: float
    distances: np.ndarray | None
    f: np.ndarray | None
    emission: dict[str, float]
    uniform: float | None


def maximum_likelihood(
    trials: Trials, model: str = "constant", emission: str = "von_mises", uniform: bool = True, even: bool = True
) -> MaximumLikelihood:
    """The likelihood's maximum for one group of trials: every set size shares one emission and one f.

    With model "probe" or "report" f is free at every distinct distance (at most 48 of them, as on a ring of positions).
    """
    kind = EMISSIONS[emission]()
    with torch_threads(1):
        sizes, groups = np.unique(trials.set_size, return_inverse=True)
        likelihood = Likelihood(trials, kind, groups, SWAP_MODELS[model].features, even)
        if likelihood.sites is not None and not all(likelihood.sites.exact):
            raise LapsusError(
                f"maximum likelihood with model '{model}' needs at most 48 distinct distances; use lapsus.fit."
            )
        swaps = SWAP_MODELS[model].swaps and sizes.max() > 1
        count = (len(likelihood.sites.points) if likelihood.sites is not None else 1) if swaps else 0
        size = len(kind.names)

        def value_and_gradient(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            columns = x.shape[1]
            rows = [x[i : i + 1].expand(len(sizes), -1) for i in range(count, count + size)]
            level = shape = None
            if swaps:
                free = likelihood.sites is not None
                level = x.new_zeros(len(sizes), columns) if free else x[:1].expand(len(sizes), -1)
                shape = x[None, :count] if free else None
            guess = x[-1:].expand(len(sizes), -1) if uniform else None
            value, on = likelihood.total(Parameters(shape, level, torch.stack(rows), None, guess))
            parts = []
            if shape is not None and on.coefficients is not None:
                parts.append(on.coefficients[0])
            elif on.level is not None:
                parts.append(on.level.sum(0)[None])
            parts.append(on.emission.sum(1))
            if on.guess is not None:
                parts.append(on.guess.sum(0)[None])
            return value, torch.cat(parts)

        def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = value_and_gradient(torch.tensor(x)[:, None])
            return -value.item(), -gradient[:, 0].numpy()

        tried = []
        for start in (-1.0, -3.0):
            x = np.concatenate([np.full(count, start), kind.initial(trials), np.full(int(uniform), start)])
            found = minimize(
                objective, x, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-8}
            )
            tried.append(found)
        x = min(tried, key=lambda one: one.fun).x
        for _ in range(3):  # Newton: the last digits, where the maximum is inside the parameter space
            value, gradient = objective(x)
            step = np.linalg.lstsq(curvature(value_and_gradient, x), -gradient, rcond=1e-10)[0]
            if np.abs(step).max() > 0.1 or objective(x + step)[0] > value:
                break
            x = x + step
        value = -objective(x)[0]
    named = {name: float(v) for name, vs in kind.natural(x[count : count + size, None]).items() for v in vs}
    points = None
    if likelihood.sites is not None:
        points = likelihood.sites.points
        points = points[:, 0] if points.shape[1] == 1 else points
    return MaximumLikelihood(
        value, points, x[:count] if count else None, named, float(1 / (1 + np.exp(-x[-1]))) if uniform else None
    )
