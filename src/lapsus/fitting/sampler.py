"""Short Hamiltonian chains that take draws of the Gaussian approximation to the exact posterior.

Many chains run side by side as the columns of one array, so a step costs one pass over the trials. The approximation's
covariance is the metric: in it the posterior is nearly a standard normal, and a few leapfrog steps give a new draw.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

__all__ = ["CHAINS", "RHAT", "Chains", "effective_draws", "sample", "split_rhat"]

# Chains that differ more have not converged: at 1.05 the shortest are worth 430 independent draws, of which 400 are
# usually asked for (Vehtari et al. 2021). The usual limit for a few long chains, 1.01, takes about 4,000 draws of ours.
RHAT = 1.05
ATTEMPTS, CHAINS, LARGE = 4, 32, 300


@dataclass
class Chains:
    """draws [P, chains, kept], log joint of each [chains, kept], share of accepted moves, split R-hat per coordinate
    [P]."""

    draws: np.ndarray
    log_joint: np.ndarray
    accepted: float
    rhat: np.ndarray


def sample(
    model: Any,
    centre: np.ndarray,
    factor: torch.Tensor,
    rng: np.random.Generator,
    chains: int = CHAINS,
    kept: int = 32,
    warm_up: int = 12,
    target_rhat: float = RHAT,
    progress: Callable | None = None,
) -> Chains:
    """Hamiltonian Monte Carlo from N(centre [P], factor factorᵀ [P, P]); model has `log_joint`.

    Where R-hat is above its target, what was kept becomes warm-up and twice as much is drawn; where that is not enough,
    twice as much again is added to it, twice: where swaps and guesses are hard to tell apart, chains cross seldom
    between the two.
    """
    state = _State(model, centre, factor, rng, chains)
    warm_up = warm_up if len(centre) <= 30 else 2 * warm_up
    state.run(warm_up, progress, adapt=True)
    draws, values, accepted = state.run(kept, progress)
    rhat = split_rhat(draws)
    for attempt in range(1, ATTEMPTS):
        if rhat.max() < target_rhat:
            break
        if attempt == 1:
            state.factor = _pooled_factor(torch.tensor(draws.reshape(len(draws), -1)), state.factor)
            state.run(warm_up, progress, adapt=True)
            draws, values = draws[..., :0], values[..., :0]
        more, more_values, accepted = state.run(kept * 2**attempt, progress)
        draws, values = np.concatenate([draws, more], -1), np.concatenate([values, more_values], -1)
        rhat = split_rhat(draws)
    every = slice(None, None, -(-draws.shape[-1] // (4 * kept)))  # more draws would only fill the memory
    return Chains(draws[..., every], values[..., every], accepted, rhat)


class _State:
    """Chains side by side: position, gradient and value of each, the metric's factor and the step that they share."""

    def __init__(
        self, model: Any, centre: np.ndarray, factor: torch.Tensor, rng: np.random.Generator, chains: int
    ) -> None:
        self.model, self.factor, self.rng = model, factor, rng
        self.position = torch.tensor(centre)[:, None] + factor @ torch.tensor(
            rng.standard_normal((len(centre), chains))
        )
        self.value, self.gradient = model.log_joint(self.position)
        self.step, self.moves = min(0.8, 1.2 / len(centre) ** 0.25), 0

    def run(
        self, iterations: int, progress: Callable[[], object] | None, adapt: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Draws [P, chains, iterations], their log joint [chains, iterations], mean acceptance."""
        draws: list[np.ndarray] = []
        values, rates = [], []
        for iteration in range(iterations):
            rate = self.move()
            if adapt:
                # Towards an acceptance of 0.8; the gain falls so that the last steps hardly move.
                self.step = min(0.9, self.step * math.exp((rate - 0.8) * 1.5 / math.sqrt(iteration + 1)))
                if iteration == iterations // 2:
                    self.factor = _pooled_factor(torch.cat([torch.tensor(d) for d in draws[2:]], 1), self.factor)
            draws.append(self.position.numpy())
            values.append(self.value.numpy())
            rates.append(rate)
            if progress is not None:
                progress()
        return np.stack(draws, -1), np.stack(values, -1), float(np.mean(rates))

    def move(self) -> float:
        """One trajectory of every chain; returns the mean acceptance probability."""
        # A little over a quarter of a turn forgets the start in a standard normal; the jitter keeps orbits from
        # closing.
        steps = max(2, math.ceil(1.8 / self.step))
        length = self.step * self.rng.uniform(0.7, 1.2)
        # The step suits most places; a chain that sits where the density bends more would never leave. Every eighth
        # move is made of small steps, wherever the chains are, so that all get away.
        self.moves += 1
        if self.moves % 8 == 0:
            length, steps = length / 4, 3 * steps
        momentum = torch.tensor(self.rng.standard_normal(tuple(self.position.shape)))
        energy = self.value - 0.5 * (momentum**2).sum(0)
        x, g = self.position, self.gradient
        # Many coordinates are mapped in single precision, like the likelihood: any metric will do.
        factor = self.factor.float() if len(x) > LARGE else self.factor
        momentum = momentum + 0.5 * length * _apply(factor.T, g)
        for leap in range(steps):
            x = x + length * _apply(factor, momentum)
            v, g = self.model.log_joint(x)
            momentum = momentum + (1.0 if leap < steps - 1 else 0.5) * length * _apply(factor.T, g)
        change = torch.nan_to_num(v - 0.5 * (momentum**2).sum(0) - energy, nan=-math.inf, posinf=-math.inf)
        rate = change.clamp(max=0.0).exp()
        accept = torch.tensor(self.rng.uniform(size=len(rate))) < rate
        self.position = torch.where(accept, x, self.position)
        self.gradient = torch.where(accept, g, self.gradient)
        self.value = torch.where(accept, v, self.value)
        return rate.mean().item()


def _apply(matrix: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    return (matrix @ vectors.to(matrix.dtype)).to(vectors.dtype)


def _pooled_factor(draws: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """Square root of the covariance of draws [P, n] from every chain, leaning on the present one while draws are
    few."""
    share = draws.shape[1] / (draws.shape[1] + 5 * draws.shape[0])
    covariance = share * torch.cov(draws) + (1 - share) * factor @ factor.T
    return torch.linalg.cholesky(covariance)


def split_rhat(draws: np.ndarray) -> np.ndarray:
    """Potential scale reduction of draws [P, chains, n], every chain cut in two (Gelman et al., 2013)."""
    half = draws.shape[-1] // 2
    parts = np.concatenate([draws[..., :half], draws[..., half : 2 * half]], 1)
    within = parts.var(-1, ddof=1).mean(1)
    between = half * parts.mean(-1).var(1, ddof=1)
    return np.sqrt((half - 1) / half + between / (half * np.maximum(within, 1e-300)))


def effective_draws(rhat: float, chains: int = CHAINS, kept: int = 32) -> float:
    """How many independent draws would give means as exact as chains with this split R-hat do.

    The variance of the means of half-chains over that of the draws is what R-hat measures: (R² − (n − 1)/n) / R², with
    n draws in each half, taken as independent of each other.
    """
    half = kept // 2
    return 2 * chains * min(rhat**2 / (max(rhat**2 - (half - 1) / half, 1e-12)), half)
