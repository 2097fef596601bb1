"""What a network is trained for: each objective turns a batch of simulated trials into loss terms [C], one a condition.

Paper: appendix "Training details". An objective is any callable of a Batch with the attribute `forced`, which says
whether the behavioural subspace is clamped to the corrupted target during denoising (teacher forcing).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from lapsus.diffusion import Mixture, Schedule, exact_mean, posterior_mean
from lapsus.errors import LapsusError

__all__ = ["Batch", "Diffusion", "TaskOptimal", "SampleMSE", "predicted_mean", "denoising_loss", "exact_loss"]


@dataclass(frozen=True)
class Batch:
    """Simulated trials and what they should have been; arrays put conditions and trials last.

    trajectory [S + 1, n, C, K] and noise [S, n, C, K] of the rollout, readout [d, n], the schedule of the T last steps,
    path [T + 1, d, C, K] the corrupted target x*_0 … x*_T, optimal [C, d] (or None), target (or None) the exact density.
    """

    trajectory: Tensor
    noise: Tensor
    readout: Tensor
    schedule: Schedule
    path: Tensor
    optimal: Tensor | None = None
    target: Mixture | None = None

    @cached_property
    def _read(self) -> tuple[Tensor, Tensor]:
        return _Read.apply(self.trajectory, self.readout)

    @property
    def x(self) -> Tensor:
        """x = W_x r of the whole trajectory, [S + 1, d, C, K]."""
        return self._read[0]

    @property
    def power(self) -> Tensor:
        """Sum over all steps and units of the squared rates, [C, K]."""
        return self._read[1]

    def responses(self, last: int) -> Tensor:
        """x over the last steps, [last, d, C, K]."""
        return self.x[-last:]


class _Read(torch.autograd.Function):
    """W_x r and the sum of r² in one node of the graph, whose gradient passes over the trajectory once instead of six times."""

    @staticmethod
    def forward(ctx, trajectory: Tensor, readout: Tensor):
        ctx.save_for_backward(trajectory, readout)
        ctx.set_materialize_grads(False)
        return _project(readout, trajectory), torch.linalg.vector_norm(trajectory, dim=(0, 1)).square()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, in_x: Tensor | None, in_power: Tensor | None):
        trajectory, readout = ctx.saved_tensors
        if in_x is None and in_power is None:
            return None, None
        total = torch.zeros_like(trajectory) if in_power is None else trajectory * (2 * in_power)
        if in_x is not None:
            W_x = readout.T.expand(len(trajectory), -1, -1)
            total.flatten(2).baddbmm_(W_x, in_x.flatten(2))
        return total, None


def _project(readout: Tensor, r: Tensor) -> Tensor:
    """W_x r for r [steps, n, C, K]."""
    return (readout @ r.flatten(2)).unflatten(2, r.shape[2:])


def predicted_mean(batch: Batch) -> Tensor:
    """mu_hat(r_t, t) for t = 0 … T - 1: the behavioural part of each step before its noise, [T, d, C, K]."""
    T = batch.schedule.T
    sigma = batch.schedule.sigma.to(batch.trajectory.dtype).view(-1, 1, 1, 1)
    return batch.responses(T) - sigma * _project(batch.readout, batch.noise[-T:])


def _denoising_error(goal: Tensor, mean: Tensor) -> Tensor:
    """Sum over the T steps of |goal - mean|², mean over trials: [C]."""
    return (goal - mean).square().sum((0, 1)).mean(-1)


def denoising_loss(batch: Batch) -> Tensor:
    """The paper's loss of the network on sampled responses, [C], whatever its objective regresses on."""
    return _denoising_error(posterior_mean(batch.path, batch.schedule), predicted_mean(batch))


def exact_loss(batch: Batch) -> Tensor:
    """The same loss of the exact Bayes denoiser on the same trials, [C]: the floor of any network's."""
    exact = exact_mean(batch.path, batch.schedule, batch.target)
    return _denoising_error(posterior_mean(batch.path, batch.schedule), exact)


def _rate_term(batch: Batch) -> Tensor:
    """Sum over all steps of the squared norm of the rates, mean over trials."""
    return batch.power.mean(-1)


def _base_term(batch: Batch) -> Tensor:
    """Distance of x_0 = W_x r_0 from N(0, I) over the trials of each condition: |mean|² + |Cov - I|²_F."""
    x_0 = batch.x[-batch.schedule.T - 1]  # [d, C, K]
    if x_0.shape[-1] < 2:
        raise LapsusError("objective.base_penalty needs at least two trials a condition (batch.trials).")
    mean = x_0.mean(-1)
    centred = x_0 - mean[..., None]
    covariance = torch.einsum("ick,jck->cij", centred, centred) / (x_0.shape[-1] - 1)
    identity = torch.eye(len(x_0), dtype=x_0.dtype, device=x_0.device)
    return mean.square().sum(0) + (covariance - identity).square().sum((1, 2))


def _regularised(main: dict[str, Tensor], batch: Batch, rate_penalty: float, base_penalty: float = 0.0) -> dict:
    if rate_penalty:
        main["rate"] = rate_penalty * _rate_term(batch)
    if base_penalty:
        main["base"] = base_penalty * _base_term(batch)
    return main


@dataclass(frozen=True)
class Diffusion:
    """Sum over the T denoising steps of |mu_q - mu_hat|², with the paper's two regularisers.

    regress "sample" takes mu_q of the sampled response as in the paper; "expectation" takes its exact mean given x_t,
    where the behaviour has it in closed form: the same expected gradient with less noise.
    """

    rate_penalty: float = 1e-8
    base_penalty: float = 0.01
    regress: Literal["sample", "expectation"] = "sample"
    forced = True

    def __call__(self, batch: Batch) -> dict[str, Tensor]:
        if self.regress == "sample":
            goal = posterior_mean(batch.path, batch.schedule)
        elif batch.target is not None:
            goal = exact_mean(batch.path, batch.schedule, batch.target)
        else:
            raise LapsusError('objective.regress = "expectation" needs a behaviour with a closed form (mixture).')
        loss = _denoising_error(goal, predicted_mean(batch))
        return _regularised({"ddpm": loss}, batch, self.rate_penalty, self.base_penalty)


@dataclass(frozen=True)
class TaskOptimal:
    """Mean over the last T* steps of |A [cos, sin] - x|²; a window of 0, or beyond the delay, means all of it."""

    window: int = 0
    rate_penalty: float = 1e-8
    forced = False

    def __post_init__(self):
        _check_window(self.window)

    def __call__(self, batch: Batch) -> dict[str, Tensor]:
        if batch.optimal is None:
            raise LapsusError("The task-optimal objective needs a behaviour that defines `optimal(conditions)`.")
        goal = batch.optimal.T[None, :, :, None]
        return _regularised({"mse": _window_mse(self.window, goal, batch)}, batch, self.rate_penalty)


@dataclass(frozen=True)
class SampleMSE:
    """The same loss against samples of the target: the control that must average the modes."""

    window: int = 0
    rate_penalty: float = 1e-8
    forced = False

    def __post_init__(self):
        _check_window(self.window)

    def __call__(self, batch: Batch) -> dict[str, Tensor]:
        return _regularised({"mse": _window_mse(self.window, batch.path[-1], batch)}, batch, self.rate_penalty)


def _window_mse(window: int, goal: Tensor, batch: Batch) -> Tensor:
    last = min(window, batch.schedule.T) if window else batch.schedule.T
    return (goal - batch.responses(last)).square().sum(1).mean((0, 2))


def _check_window(window: int) -> None:
    if window < 0:
        raise LapsusError(f"objective.window is a number of steps and cannot be negative (it is {window}).")
