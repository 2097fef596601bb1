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
LONGER, CHAINS, LARGE = 16, 32, 300
ACCEPTED = 0.9  # of moves: with fewer, chains stay for long where the density bends most
LONGEST = math.pi / 2  # the longest step: a quarter of a turn
# A quarter of a turn forgets the start in a standard normal; where tails are wider than that, more of a turn does.
TURN = 2.2
RENEWALS, TAIL, WIDER = 2, 5, 1.2  # proposals for each unit in a move; degrees of freedom; their variance, relative


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

    Where R-hat is above its target, the metric is taken from the last draws and `kept` more are drawn, up to LONGER
    times `kept` in all.
    """
    state = _State(model, centre, factor, rng, chains)
    state.run(warm_up if len(centre) <= 30 else 2 * warm_up, progress, adapt=True)
    draws, values, accepted = state.run(kept, progress)
    while draws.shape[-1] < LONGER * kept:
        if split_rhat(draws).max() < target_rhat:
            break
        state.learn(torch.tensor(draws[..., -4 * kept :].reshape(len(draws), -1), dtype=torch.float64))
        more, more_values, accepted = state.run(kept, progress)
        draws, values = np.concatenate([draws, more], -1), np.concatenate([values, more_values], -1)
    rhat = split_rhat(draws)
    every = slice(None, None, -(-draws.shape[-1] // (4 * kept)))  # more draws would only fill the memory
    return Chains(draws[..., every], values[..., every], accepted, rhat)


class _State:
    """Chains side by side: x [P, chains], the value and gradient of each, and the step that they share.

    y with x = centre + root y is nearly standard normal. Where the model has units to be `renewed` [U, k] (coordinates
    that matter to some trials alone), these are also drawn unit by unit."""

    def __init__(
        self, model: Any, centre: np.ndarray, factor: torch.Tensor, rng: np.random.Generator, chains: int
    ) -> None:
        self.model, self.rng, self.moves = model, rng, 0
        self.step = min(LONGEST, 2.4 / len(centre) ** 0.25)
        start = torch.tensor(centre)
        self.x = start[:, None] + factor @ torch.tensor(rng.standard_normal((len(centre), chains)))
        renewed = getattr(model, "renewed", None)
        self.units = torch.zeros(0, 0, dtype=torch.long) if renewed is None else renewed
        self._use(start, factor @ factor.T)

    def _use(self, centre: torch.Tensor, covariance: torch.Tensor) -> None:
        """Take the metric from a centre [P] and a covariance [P, P]."""
        self.centre, self.covariance = centre, covariance
        self.root = torch.linalg.cholesky(covariance)
        # Many coordinates are mapped in single precision, like the likelihood: any metric will do.
        self.map = self.root.float() if len(centre) > LARGE else self.root
        if len(self.units):
            within = covariance[self.units[:, :, None], self.units[:, None, :]]
            self.unit_root = torch.linalg.cholesky(WIDER * within)
        self.value, self.gradient = self.model.log_joint(self.x)

    def learn(self, draws: torch.Tensor) -> None:
        """Take centre and metric from draws [P, n] of x, leaning on the present ones while draws are few.

        Of very many coordinates only the widths are learned: correlations from few draws are noise, and moves that
        follow them are refused."""
        if len(draws) > LARGE:
            y = torch.linalg.solve_triangular(self.root, draws - draws.mean(1, keepdim=True), upper=False)
            self._use(self.centre, self.root * y.var(1).clamp(0.5, 4.0) @ self.root.T)
            return
        share = draws.shape[1] / (draws.shape[1] + 5 * draws.shape[0])
        centre = share * draws.mean(1) + (1 - share) * self.centre
        self._use(centre, share * torch.cov(draws) + (1 - share) * self.covariance)

    def run(
        self, iterations: int, progress: Callable[[], object] | None, adapt: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Draws [P, chains, iterations], their log joint [chains, iterations], mean acceptance."""
        draws: list[np.ndarray] = []
        values, rates = [], []
        stored = np.float32 if len(self.x) > LARGE else np.float64
        for iteration in range(iterations):
            if len(self.units):
                self.renew()
            rate = self.move()
            if adapt:
                # The gain falls so that the last steps hardly move.
                gain = (rate - ACCEPTED) * 1.5 / math.sqrt(iteration + 1)
                self.step = min(LONGEST, self.step * math.exp(gain))
            draws.append(self.x.numpy().astype(stored))
            done = iteration + 1
            if adapt and done in (iterations // 5, 2 * iterations // 5, 3 * iterations // 4):
                self.learn(torch.tensor(np.concatenate(draws[done // 3 :], 1), dtype=torch.float64))
            values.append(self.value.numpy())
            rates.append(rate)
            if progress is not None:
                progress()
        return np.stack(draws, -1), np.stack(values, -1), float(np.mean(rates))

    def renew(self) -> None:
        """New coordinates of each unit, accepted unit by unit.

        Scatter with heavy tails and few guesses, or with light tails and more guesses, can be two modes of one set
        size. Trajectories seldom cross between them, and of several set sizes one is always where it seldom is."""
        value = self.model.by_unit(self.x)
        (count, size), chains = self.units.shape, self.x.shape[1]
        for _ in range(RENEWALS):
            z = torch.tensor(self.rng.standard_normal((count, size, chains)))
            scale = torch.tensor(self.rng.chisquare(TAIL, (count, 1, chains)) / TAIL).rsqrt()
            proposal = self.centre[self.units][..., None] + self.unit_root @ (z * scale)
            present = self.x[self.units]
            moved = self.x.clone()
            moved[self.units] = proposal
            new = self.model.by_unit(moved)
            ratio = new - value + self._log_proposal(present) - self._log_proposal(proposal)
            accept = torch.tensor(self.rng.uniform(size=(count, chains))).log() < ratio
            self.x = self.x.clone()
            self.x[self.units] = torch.where(accept[:, None], proposal, present)
            value = torch.where(accept, new, value)
        self.value, self.gradient = self.model.log_joint(self.x)

    def _log_proposal(self, own: torch.Tensor) -> torch.Tensor:
        """Log density [U, chains], up to a constant, of a unit's coordinates [U, k, chains] in `renew`."""
        z = torch.linalg.solve_triangular(self.unit_root, own - self.centre[self.units][..., None], upper=False)
        return -0.5 * (TAIL + own.shape[1]) * torch.log1p((z**2).sum(1) / TAIL)

    def move(self) -> float:
        """One trajectory of every chain; returns the mean acceptance probability.

        A standard normal's own flow is a rotation of y and momentum, which is exact; only what the posterior has
        beyond the normal is integrated by steps (split Hamiltonian Monte Carlo, Shahbaba et al. 2014)."""
        steps = math.ceil(TURN / self.step)  # of a length that varies: orbits must not close
        angle = self.step * self.rng.uniform(0.8, 1.2)
        # The step suits most places; a chain that sits where the density bends more would never leave. Every eighth
        # move is made of small steps, wherever the chains are, so that all get away.
        self.moves += 1
        if self.moves % 8 == 0:
            angle = angle / 4
        cosine, sine = math.cos(angle), math.sin(angle)
        y = torch.linalg.solve_triangular(self.root, self.x - self.centre[:, None], upper=False)
        g = _apply(self.map.T, self.gradient)
        momentum = torch.tensor(self.rng.standard_normal(tuple(y.shape)))
        energy = self.value - 0.5 * (momentum**2).sum(0)
        for _ in range(steps):
            momentum = momentum + 0.5 * angle * (g + y)
            y, momentum = cosine * y + sine * momentum, cosine * momentum - sine * y
            x = self.centre[:, None] + _apply(self.map, y)
            value, gradient = self.model.log_joint(x)
            g = _apply(self.map.T, gradient)
            momentum = momentum + 0.5 * angle * (g + y)
        change = torch.nan_to_num(value - 0.5 * (momentum**2).sum(0) - energy, nan=-math.inf, posinf=-math.inf)
        rate = change.clamp(max=0.0).exp()
        accept = torch.tensor(self.rng.uniform(size=len(rate))) < rate
        self.x = torch.where(accept, x, self.x)
        self.gradient = torch.where(accept, gradient, self.gradient)
        self.value = torch.where(accept, value, self.value)
        return rate.mean().item()


def _apply(matrix: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    return (matrix @ vectors.to(matrix.dtype)).to(vectors.dtype)


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
