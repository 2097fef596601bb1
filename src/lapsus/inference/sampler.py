"""Short Hamiltonian chains that take draws of the Gaussian approximation to the exact posterior.

Many chains run side by side as the columns of one array, so a step costs one pass over the trials. The approximation's
covariance is the metric: in it the posterior is nearly a standard normal, and a few leapfrog steps give a new draw.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

__all__ = ["Chains", "sample", "split_rhat"]


@dataclass
class Chains:
    """draws [P, chains, kept], log joint of each [chains, kept], share of accepted moves, split R-hat per coordinate [P]."""

    draws: np.ndarray
    log_joint: np.ndarray
    accepted: float
    rhat: np.ndarray


def sample(model, centre, precision, rng, chains=32, kept=24, warm_up=12, progress=None) -> Chains:
    """Hamiltonian Monte Carlo from N(centre [P], precision⁻¹ [P, P])."""
    dimension = model.dimension
    factor = _factor(precision)
    position = torch.tensor(centre)[:, None] + factor @ torch.tensor(rng.standard_normal((dimension, chains)))
    value, gradient = model.log_joint(position)
    step = min(0.8, 1.2 / dimension**0.25)
    draws, values, accepted = [], [], []
    history = []
    for iteration in range(warm_up + kept):
        # A quarter of a turn forgets the start in a standard normal; the jitter keeps orbits from closing.
        steps = max(2, round(math.pi / 2 / step))
        length = step * rng.uniform(0.7, 1.2)
        momentum = torch.tensor(rng.standard_normal((dimension, chains)))
        start = value - 0.5 * (momentum**2).sum(0)
        x, g, v = position, gradient, value
        momentum = momentum + 0.5 * length * (factor.T @ g)
        for leap in range(steps):
            x = x + length * (factor @ momentum)
            v, g = model.log_joint(x)
            momentum = momentum + (1.0 if leap < steps - 1 else 0.5) * length * (factor.T @ g)
        change = torch.nan_to_num(v - 0.5 * (momentum**2).sum(0) - start, nan=-math.inf)
        rate = change.clamp(max=0.0).exp()
        move = torch.tensor(rng.uniform(size=chains)) < rate
        position = torch.where(move, x, position)
        gradient = torch.where(move, g, gradient)
        value = torch.where(move, v, value)
        if iteration < warm_up:
            # Towards an acceptance of 0.8; the gain falls so that the last steps hardly move.
            step = min(0.9, step * math.exp((rate.mean().item() - 0.8) * 1.5 / math.sqrt(iteration + 1)))
            history.append(position)
            if iteration == warm_up // 2 and chains * len(history[2:]) > 6 * dimension:
                factor = _pooled_factor(torch.cat(history[2:], 1), factor)
        else:
            draws.append(position.numpy())
            values.append(value.numpy())
            accepted.append(rate.mean().item())
        if progress is not None:
            progress()
    draws = np.stack(draws, -1)
    return Chains(draws, np.stack(values, -1), float(np.mean(accepted)), split_rhat(draws))


def _factor(precision):
    """A square root of the inverse, with directions that the data leave to the prior kept at prior width."""
    values, vectors = np.linalg.eigh(precision)
    return torch.tensor(vectors / np.sqrt(np.maximum(values, 0.5)))


def _pooled_factor(draws, factor):
    """Square root of the covariance of draws [P, n] from every chain."""
    covariance = torch.cov(draws)
    covariance = 0.9 * covariance + 0.1 * factor @ factor.T
    return torch.linalg.cholesky(covariance)


def split_rhat(draws):
    """Potential scale reduction of draws [P, chains, n], every chain cut in two (Gelman et al., 2013)."""
    half = draws.shape[-1] // 2
    parts = np.concatenate([draws[..., :half], draws[..., half : 2 * half]], 1)
    within = parts.var(-1, ddof=1).mean(1)
    between = half * parts.mean(-1).var(1, ddof=1)
    return np.sqrt((half - 1) / half + between / (half * np.maximum(within, 1e-300)))
