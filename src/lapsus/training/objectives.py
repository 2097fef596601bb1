"""What a network is trained for: each objective turns a batch of simulated trials into loss terms [C], one a condition.
The first is the one by which conditions are called hard (`hard_example_fraction` of a stage).

Paper: appendix "Training details". An objective is any callable of a Batch with the attribute `forced`, which says
whether the behavioural subspace is clamped to the corrupted target during denoising (teacher forcing).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from lapsus.diffusion import Mixture, Schedule, exact_mean, posterior_mean
from lapsus.energy import energy_excess, has_closed_form, sampled_energy_excess, weighted_energy_excess
from lapsus.engine.read_out import project
from lapsus.errors import LapsusError
from lapsus.protocols import Behaviour, Conditions, HasMixture, HasOptimum

# Name of a term of the loss → its values [C].
Terms = dict[str, Tensor]


@dataclass(frozen=True)
class Draws:
    """What is drawn for a batch of trials before any network runs; arrays put conditions and trials last.

    The schedule of the T last steps, path [T + 1, d, C, K] the corrupted target x*_0 … x*_T, noise [S, n, C, K] and
    first rates r0 [n, C, K] of the rollout; readout [d, n].
    """

    behaviour: Behaviour
    conditions: Conditions
    schedule: Schedule
    readout: Tensor
    path: Tensor
    noise: Tensor
    r0: Tensor

    @cached_property
    def optimal(self) -> Tensor | None:
        """The best response [C, d], where the behaviour defines one."""
        return self.behaviour.optimal(self.conditions) if isinstance(self.behaviour, HasOptimum) else None

    @cached_property
    def target(self) -> Mixture | None:
        """The exact density of the responses, where the behaviour has it."""
        return self.behaviour.mixture(self.conditions) if isinstance(self.behaviour, HasMixture) else None

    @cached_property
    def behavioural_noise(self) -> Tensor:
        """What the noise of each denoising step does to x, [T, d, C, K]."""
        sigma = self.schedule.sigma.to(self.noise.dtype).view(-1, 1, 1, 1)
        return sigma * project(self.noise[-self.schedule.T :], self.readout)

    @cached_property
    def sampled_mean(self) -> Tensor:
        """mu_q of the sampled response for t = 0 … T - 1, [T, d, C, K]."""
        return posterior_mean(self.path, self.schedule)

    @cached_property
    def exact_mean(self) -> Tensor:
        """Its mean over all responses that the behaviour may give from x_t."""
        if self.target is None:
            raise LapsusError("The exact denoiser needs a behaviour with a closed form (mixture).")
        return exact_mean(self.path, self.schedule, self.target)

    @cached_property
    def sampled_aim(self) -> Tensor:
        """x_1 … x_T that a network with the sampled mean would reach on the same noise, [T, d, C, K]."""
        return self.sampled_mean + self.behavioural_noise

    @cached_property
    def exact_aim(self) -> Tensor:
        """The same with the exact mean."""
        return self.exact_mean + self.behavioural_noise


@dataclass(frozen=True)
class Batch:
    """Simulated trials: what was drawn for them, the trajectory [S + 1, n, C, K] of the rollout, x = W_x r of all of it
    [S + 1, d, C, K], and the power [C, K], the sum over all steps and units of the squared rates."""

    draws: Draws
    trajectory: Tensor
    x: Tensor
    power: Tensor

    def responses(self, last: int) -> Tensor:
        """x over the last steps, [last, d, C, K]."""
        return self.x[-last:]


def predicted_mean(batch: Batch) -> Tensor:
    """mu_hat(r_t, t) for t = 0 … T - 1: the behavioural part of each step before its noise, [T, d, C, K]."""
    return batch.responses(batch.draws.schedule.T) - batch.draws.behavioural_noise


def _denoising_error(goal: Tensor, mean: Tensor) -> Tensor:
    """Sum over the T steps of |goal - mean|², mean over trials: [C]."""
    return (goal - mean).square().sum((0, 1)).mean(-1)


def denoising_loss(batch: Batch) -> Tensor:
    """The paper's loss of the network on sampled responses, [C], whatever its objective regresses on."""
    return _denoising_error(batch.draws.sampled_mean, predicted_mean(batch))


def exact_loss(batch: Batch) -> Tensor:
    """The same loss of the exact Bayes denoiser on the same trials, [C]: the floor of any network's."""
    return _denoising_error(batch.draws.sampled_mean, batch.draws.exact_mean)


def _regularised(main: Terms, batch: Batch, rate_penalty: float) -> Terms:
    """With the sum over all steps of the squared norm of the rates, mean over trials."""
    return main | {"rate": rate_penalty * batch.power.mean(-1)} if rate_penalty else main


class _DiffusionLoss(torch.autograd.Function):
    """The two terms of the loss in x, [C] each: its distance from `aim` [T, d, C, K] over the last T steps, weighted
    [T]; and that of x_0 from N(0, I), |mean|² + |Cov - I|²_F for each condition.

    That distance is estimated without bias for a normal x_0, so that single estimates may be negative. Plugging the
    mean and covariance of K trials into it would add their own variance, which falls with that of x_0: with eight
    trials the least penalised x_0 has a variance of 0.66.

    The gradient is written out: on arrays as small as these, autograd's single operations cost more than their
    arithmetic.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, aim: Tensor, weights: Tensor | None, base: bool) -> tuple[Tensor, Tensor | None]:
        steps, trials = len(aim), x.shape[-1]
        error = x[-steps:] - aim
        square = error.square()
        if weights is not None:
            weights = weights.view(-1, 1, 1, 1)
            square *= weights
        denoising = square.sum((0, 1)).mean(-1)
        distance = mean = centred = surplus = None
        if base:
            x_0 = x[-steps - 1]  # [d, C, K]
            mean = x_0.mean(-1, keepdim=True)
            centred = (x_0 - mean).transpose(0, 1)  # [C, d, K]
            n, identity = trials - 1, torch.eye(len(x_0), dtype=x.dtype, device=x.device)
            covariance = centred @ centred.mT / n
            trace = covariance.diagonal(dim1=1, dim2=2).sum(1)
            # tr Sigma² of a normal variable from the moments of its Wishart-distributed covariance.
            unbiased = n**2 / ((n - 1) * (n + 2))
            squares = unbiased * (covariance.square().sum((1, 2)) - trace.square() / n)
            distance = mean.square().sum((0, 2)) - trace / trials + squares - 2 * trace + len(x_0)
            # Half the derivative of the distance with respect to the covariance.
            surplus = unbiased * (covariance - trace.view(-1, 1, 1) / n * identity) - (1 + 0.5 / trials) * identity
        ctx.save_for_backward(error, weights, mean, centred, surplus)
        ctx.shape = x.shape
        ctx.set_materialize_grads(False)
        return denoising, distance

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, in_denoising: Tensor | None, in_distance: Tensor | None) -> tuple[Tensor | None, ...]:
        error, weights, mean, centred, surplus = ctx.saved_tensors
        steps, trials = len(error), ctx.shape[-1]
        in_x = error.new_zeros(ctx.shape)
        if in_denoising is not None:
            scale = (2 / trials * in_denoising).view(-1, 1)
            torch.mul(error, scale if weights is None else weights * scale, out=in_x[-steps:])
        if in_distance is not None:
            # Centring needs no term of its own: the columns of surplus times centred already sum to zero over trials.
            through = (2 / trials) * mean + (4 / (trials - 1)) * (surplus @ centred).transpose(0, 1)
            torch.mul(through, in_distance.view(-1, 1), out=in_x[-steps - 1])
        return in_x, None, None, None


@dataclass(frozen=True)
class Diffusion:
    """Sum over the T denoising steps of |mu_q - mu_hat|², with the paper's two regularisers.

    regress "sample" takes mu_q of the sampled response as in the paper; "expectation" takes its exact mean given x_t,
    where the behaviour has it in closed form: the same expected gradient with less noise.

    step_weight_exponent e weighs step t by w^-e, w being the weight of x_T in mu_q(x_t, x_T), which is small early on,
    where a trial takes the side of one mode; w is taken to be at least step_weight_floor, for before that no side is
    taken. No weight changes what is optimal at any step; 0 is the paper's loss.

    >>> lapsus.Diffusion(regress="expectation").rate_penalty
    1e-08
    """

    rate_penalty: float = 1e-8
    base_penalty: float = 0.01
    regress: Literal["sample", "expectation"] = "sample"
    step_weight_exponent: float = 0.0
    step_weight_floor: float = 0.0
    forced = True

    def __post_init__(self) -> None:
        if not 0 <= self.step_weight_floor <= 1:
            raise LapsusError(
                f"objective.step_weight_floor is a weight between 0 and 1 (it is {self.step_weight_floor})."
            )

    def goal(self, draws: Draws) -> Tensor:
        """What x should be: no network is needed for it, so the loop asks for it while the kernel runs."""
        if self.regress == "expectation" and draws.target is None:
            raise LapsusError('objective.regress = "expectation" needs a behaviour with a closed form (mixture).')
        return draws.sampled_aim if self.regress == "sample" else draws.exact_aim

    def __call__(self, batch: Batch) -> Terms:
        if self.base_penalty and batch.x.shape[-1] < 3:
            raise LapsusError(
                "objective.base_penalty needs at least three trials a condition (`trials` of the stage); 0 switches it"
                " off."
            )
        weights = None
        if self.step_weight_exponent:
            weight_of_x_T = batch.draws.schedule.from_x_T.to(batch.x.dtype).clamp(min=self.step_weight_floor)
            weights = weight_of_x_T**-self.step_weight_exponent
        loss, distance = _DiffusionLoss.apply(batch.x, self.goal(batch.draws), weights, bool(self.base_penalty))
        terms = _regularised({"ddpm": loss}, batch, self.rate_penalty)
        if self.base_penalty:
            terms["base"] = self.base_penalty * distance
        return terms


@dataclass(frozen=True)
class _WindowMSE:
    """Mean over the last T* steps of |goal - x|²; a window of 0, or beyond the delay, means all of it."""

    window: int = 0
    rate_penalty: float = 1e-8
    forced = False

    def __post_init__(self) -> None:
        if self.window < 0:
            raise LapsusError(f"objective.window is a number of steps and cannot be negative (it is {self.window}).")

    def _terms(self, goal: Tensor, batch: Batch) -> Terms:
        last = min(self.window, batch.draws.schedule.T) if self.window else batch.draws.schedule.T
        mse = (goal - batch.responses(last)).square().sum(1).mean((0, 2))
        return _regularised({"mse": mse}, batch, self.rate_penalty)


@dataclass(frozen=True)
class TaskOptimal(_WindowMSE):
    """Mean over the last T* steps of |A [cos, sin] - x|²; a window of 0, or beyond the delay, means all of it.

    >>> lapsus.TaskOptimal(rate_penalty=1e-7).rate_penalty
    1e-07
    """

    def __call__(self, batch: Batch) -> Terms:
        if batch.draws.optimal is None:
            raise LapsusError("The task-optimal objective needs a behaviour that defines `optimal(conditions)`.")
        return self._terms(batch.draws.optimal.T[None, :, :, None], batch)


@dataclass(frozen=True)
class SampleMSE(_WindowMSE):
    """The same loss against samples of the target: the control that must average the modes.

    >>> lapsus.SampleMSE().rate_penalty
    1e-08
    """

    def __call__(self, batch: Batch) -> Terms:
        return self._terms(batch.draws.path[-1], batch)


@dataclass(frozen=True)
class Energy:
    """Energy score of the final response, relative to the target's own (`lapsus.energy`): the network runs freely, and
    gradients go through the whole trial.

    Any network whose responses have the target's distribution is optimal, wherever in the trial its noise decides:
    unlike diffusion, the objective does not say when an error happens.

    rare_weight_power below 1 lets responses near an item that is reported with probability p count p**(power - 1)
    times, where the target has a closed form: the same optimum, in which rare swaps are learned sooner.

    >>> lapsus.Energy().rate_penalty
    1e-08
    """

    rate_penalty: float = 1e-8
    rare_weight_power: float = 1.0
    forced = False

    def __post_init__(self) -> None:
        if not 0 <= self.rare_weight_power <= 1:
            raise LapsusError(f"objective.rare_weight_power is from 0 to 1 (it is {self.rare_weight_power}).")

    def __call__(self, batch: Batch) -> Terms:
        x_T = batch.x[-1]
        if x_T.shape[-1] < 2:
            raise LapsusError("The energy objective needs at least two trials per condition (`trials` of the stage).")
        target = batch.draws.target
        if target is not None and has_closed_form(target):
            if self.rare_weight_power < 1:
                excess = weighted_energy_excess(x_T, target, self.rare_weight_power)
            else:
                excess = energy_excess(x_T, target)
        else:
            excess = sampled_energy_excess(x_T, batch.draws.path[-1])
        return _regularised({"energy": excess}, batch, self.rate_penalty)
