"""The denoising process in trial time: t = 0 is cue offset (pure noise), t = T the response (data).

Paper: Background ("Denoising diffusion probabilistic models") and the appendix on constants; Ho et al. 2020 with
time reversed. All functions are pure. A state x has its coordinates on the third axis from the right and
conditions and trials after it: [..., d, C, K].
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from lapsus.errors import LapsusError

__all__ = ["Mixture", "Schedule", "corrupt", "exact_mean", "linear_schedule", "posterior_mean", "reverse_sample"]


@dataclass(frozen=True)
class Schedule:
    """Noise of each of the T denoising steps, in float64.

    beta[t] corrupts x_{t+1} to x_t; alpha_bar[t] = prod_{s >= t} (1 - beta[s]) with alpha_bar[T] = 1, so that
    x_t given x_T is N(sqrt(alpha_bar[t]) x_T, 1 - alpha_bar[t]). The posterior of x_{t+1} given x_t and x_T has mean
    from_x_t[t] x_t + from_x_T[t] x_T and standard deviation sigma[t].
    """

    beta: Tensor
    alpha_bar: Tensor
    sigma: Tensor
    from_x_t: Tensor
    from_x_T: Tensor

    @property
    def T(self) -> int:
        """Denoising steps."""
        return len(self.beta)

    @cached_property
    def mixing(self) -> Tensor:
        """[T, T]: how much of each step's noise is in x_t (that of steps s >= t, shrunk by the steps in between)."""
        shrink = torch.sqrt(self.alpha_bar[:-1, None] / self.alpha_bar[None, :-1])
        return torch.triu(shrink * torch.sqrt(self.beta))

    @classmethod
    def of(cls, beta: Tensor) -> "Schedule":
        """All that follows from beta [T], the corruption variances in trial time."""
        beta = torch.as_tensor(beta, dtype=torch.float64)
        if beta.ndim != 1 or len(beta) == 0 or not bool(((beta > 0) & (beta < 1)).all()):
            raise LapsusError("The noise schedule needs one beta strictly between 0 and 1 for each denoising step.")
        alpha_bar = torch.cat([torch.flip(torch.cumprod(torch.flip(1 - beta, [0]), 0), [0]), beta.new_ones(1)])
        now, after = alpha_bar[:-1], alpha_bar[1:]
        return cls(
            beta=beta,
            alpha_bar=alpha_bar,
            sigma=torch.sqrt(beta * (1 - after) / (1 - now)),
            from_x_t=torch.sqrt(1 - beta) * (1 - after) / (1 - now),
            from_x_T=torch.sqrt(after) * beta / (1 - now),
        )


@lru_cache
def linear_schedule(T: int = 40, first: float = 0.3, last: float = 0.01) -> Schedule:
    """beta falls linearly from `first` at t = 0 to `last` at t = T - 1 (the paper: 0.3 to 0.01 over 40 steps)."""
    if T < 1:
        raise LapsusError(f"The denoising delay needs at least one step, not {T}.")
    return Schedule.of(torch.linspace(first, last, T, dtype=torch.float64) if T > 1 else torch.tensor([first]))


def corrupt(x_T: Tensor, schedule: Schedule, noise: Tensor) -> Tensor:
    """The noising process: x*_0 … x*_T as [T + 1, ...] from data x_T [...] and standard normal noise [T, ...].

    x_t = sqrt(1 - beta_t) x_{t+1} + sqrt(beta_t) noise_t, written out as one matrix product over all steps.
    """
    corrupted = schedule.mixing.to(noise.dtype) @ noise.flatten(1)
    path = corrupted.view(noise.shape) + _per_step(torch.sqrt(schedule.alpha_bar[:-1]), noise) * x_T
    return torch.cat([path, x_T[None]])


def _per_step(values: Tensor, like: Tensor) -> Tensor:
    return values.to(like.dtype).view(-1, *[1] * (like.ndim - 1))


def posterior_mean(path: Tensor, schedule: Schedule) -> Tensor:
    """mu_q(x_t, x_T) for t = 0 … T - 1 as [T, ...], from the states x_0 … x_T [T + 1, ...]."""
    x_t, x_T = path[: schedule.T], path[schedule.T]
    return _per_step(schedule.from_x_t, x_t) * x_t + _per_step(schedule.from_x_T, x_t) * x_T


@dataclass(frozen=True)
class Mixture:
    """For each condition a mixture of M isotropic Gaussians in d dimensions: weights [C, M], means [C, M, d], scales
    [C, M]. modes: how many of the components, which come first, are modes of their own; the others together make up
    one broad component, as guesses do. None: all are."""

    weights: Tensor
    means: Tensor
    scales: Tensor
    modes: int | None = None

    def __getitem__(self, conditions: slice | Tensor) -> "Mixture":
        return Mixture(self.weights[conditions], self.means[conditions], self.scales[conditions], self.modes)

    def double(self) -> "Mixture":
        """The same in double precision."""
        return Mixture(self.weights.double(), self.means.double(), self.scales.double(), self.modes)

    @property
    def response_size(self) -> int:
        """Dimensions d of a response."""
        return self.means.shape[-1]

    def sample(self, trials: int, generator: torch.Generator) -> Tensor:
        """x_T [d, C, K]."""
        component = torch.multinomial(self.weights.float(), trials, replacement=True, generator=generator)
        means = torch.gather(self.means, 1, component[..., None].expand(-1, -1, self.response_size))
        scales = torch.gather(self.scales, 1, component)
        noise = torch.randn(means.shape, generator=generator, dtype=means.dtype)
        return (means + scales[..., None] * noise).permute(2, 0, 1).contiguous()

    def _log_joint(self, x: Tensor, corrupted: tuple[Tensor, ...]) -> Tensor:
        """log of weight times density of x_t for each component: [M, ..., C, K], from what `_corrupted` gives.

        The square is written out, so that what depends on trials is a sum and a product or two.
        """
        d = self.response_size
        shrink, variance, means, _ = corrupted
        constant = (
            self.weights.T.reshape(-1, *[1] * (x.ndim - 3), len(self.weights), 1).log() - 0.5 * d * variance.log()
        )
        constant = constant - 0.5 * (shrink**2 * means.square().sum(-3) / variance + d * math.log(2 * math.pi))
        along = sum(x[..., i, :, :] * means[..., i, :, :] for i in range(d))
        return constant + along * (shrink / variance) - x.square().sum(-3) * (0.5 / variance)

    def _corrupted(self, x: Tensor, alpha_bar: Tensor | float) -> tuple[Tensor, ...]:
        """sqrt(alpha_bar), which broadcasts against x[..., 0, :, :]; variances [M, ..., C, 1] of the components at x_t;
        their means [M, 1 ..., d, C, 1] and scales [M, 1 ..., C, 1] at x_T."""
        alpha_bar = torch.as_tensor(alpha_bar, dtype=x.dtype)
        between = [1] * (x.ndim - 3)
        scales = self.scales.T.reshape(-1, *between, len(self.scales), 1)
        means = self.means.permute(1, 2, 0).reshape(-1, *between, self.response_size, len(self.scales), 1)
        return alpha_bar.sqrt(), alpha_bar * scales**2 + (1 - alpha_bar), means, scales

    def log_density(self, x: Tensor, alpha_bar: Tensor | float = 1.0) -> Tensor:
        """log density of x [..., d, C, K] under the target corrupted to alpha_bar (1: the target itself): [..., C,
        K]."""
        return torch.logsumexp(self._log_joint(x, self._corrupted(x, alpha_bar)), 0)

    def responsibilities(self, x: Tensor, alpha_bar: Tensor | float = 1.0) -> Tensor:
        """Posterior probability of each component given x [..., d, C, K]: [M, ..., C, K]."""
        return torch.softmax(self._log_joint(x, self._corrupted(x, alpha_bar)), 0)

    def denoise(self, x_t: Tensor, alpha_bar: Tensor | float) -> Tensor:
        """The Bayes denoiser E[x_T | x_t], in closed form; same shape as x_t [..., d, C, K]."""
        shrink, variance, means, scales = corrupted = self._corrupted(x_t, alpha_bar)
        gain = shrink * scales**2 / variance
        weights = torch.softmax(self._log_joint(x_t, corrupted), 0)
        towards = (1 - gain * shrink).unsqueeze(-3) * means  # [M, ..., d, C, 1]: where a component pulls x_T
        return (weights * gain).sum(0).unsqueeze(-3) * x_t + (weights.unsqueeze(-3) * towards).sum(0)


def exact_mean(path: Tensor, schedule: Schedule, target: Mixture) -> Tensor:
    """E[mu_q | x_t] for t = 0 … T - 1: the best that any denoiser can do. path [T or more, d, C, K] → [T, d, C, K]."""
    x_t = path[: schedule.T]
    alpha_bar = schedule.alpha_bar[:-1].to(x_t.dtype).view(-1, 1, 1)
    x_T = target.denoise(x_t, alpha_bar)
    return _per_step(schedule.from_x_t, x_t) * x_t + _per_step(schedule.from_x_T, x_t) * x_T


def reverse_sample(x_0: Tensor, schedule: Schedule, target: Mixture, noise: Tensor) -> Tensor:
    """Ancestral sampling with the exact denoiser: x_0 [d, C, K] and standard normal noise [T, d, C, K] → x_T.

    This is what a perfect network would do. At few steps it is not quite the target (docs/fidelity.md).
    """
    x = x_0
    for t in range(schedule.T):
        x_T = target.denoise(x, float(schedule.alpha_bar[t]))
        x = float(schedule.from_x_t[t]) * x + float(schedule.from_x_T[t]) * x_T + float(schedule.sigma[t]) * noise[t]
    return x
