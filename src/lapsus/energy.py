"""The energy score of a response distribution, a strictly proper scoring rule (Gneiting & Raftery 2007).

ES(P, y) = E|x - y| - ½ E|x - x'| for x, x' from P. Its mean over y from the target Q, minus the score of Q itself, is
the *energy excess* E|x - y| - ½ E|x - x'| - ½ E|y - y'|: half the energy distance, 0 only where P = Q.

Arrays put conditions and trials last: x [d, C, K]. All estimates are unbiased for K >= 2, so that single ones may be
negative.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lapsus.diffusion import Mixture

__all__ = [
    "energy_excess",
    "energy_score",
    "expected_distance",
    "has_closed_form",
    "sampled_energy_excess",
    "self_distance",
    "weighted_energy_excess",
]

# Width of the weight around a mode (in the units of x), and modes that are too rare to be learned: their few responses
# would only add noise.
_WEIGHT_WIDTH = 0.6
_RAREST = 0.002


def has_closed_form(target: Mixture | None) -> bool:
    """Whether the mean distance to the target has a closed form: Gaussian mixtures in one or two dimensions."""
    return target is not None and target.response_size in (1, 2)


def energy_excess(x: Tensor, target: Mixture) -> Tensor:
    """Energy excess [C] of responses x [d, C, K] over a Gaussian mixture in one or two dimensions.

    Pairs of trials are completed before they are averaged: the terms are of the order of the distance between modes,
    and a rare mode changes their difference only.
    """
    to_target = expected_distance(x, target)  # [C, K]
    own = 0.5 * self_distance(target)  # [C]
    pair = 0.5 * (to_target[:, :, None] + to_target[:, None, :] - _distances(x, x)) - own[:, None, None]
    return _mean_over_pairs(pair)


@dataclass(frozen=True)
class _Weight:
    """w(x) = 1 + a Gaussian bump at each mode of the target: centres [C, M, d] and heights [C, M]."""

    centres: Tensor
    heights: Tensor

    @classmethod
    def of(cls, target: Mixture, power: float) -> "_Weight":
        """Near a mode of probability p the weight is p**(power - 1): 1 everywhere for a power of 1, and all modes count
        alike for a power of 0."""
        weights = target.weights[:, : target.modes]
        heights = torch.where(weights >= _RAREST, weights.clamp(min=_RAREST) ** (power - 1) - 1, 0.0)
        return cls(target.means[:, : target.modes], heights)

    def __call__(self, x: Tensor) -> Tensor:
        """[C, K] of x [d, C, K]."""
        squared = (x.permute(1, 2, 0)[:, None] - self.centres[:, :, None].to(x.dtype)).square().sum(-1)  # [C, M, K]
        bumps = torch.exp(-squared / (2 * _WEIGHT_WIDTH**2))
        return 1 + (self.heights[:, :, None].to(x.dtype) * bumps).sum(1)

    def times(self, target: Mixture) -> Mixture:
        """w times the target's density: again Gaussians, whose weights do not sum to 1."""
        variance, width = target.scales[:, None] ** 2, _WEIGHT_WIDTH**2  # [C, 1, M]
        between = (target.means[:, None] - self.centres[:, :, None]).square().sum(-1)  # [C, bump, M]
        overlap = (width / (width + variance)) ** (target.response_size / 2)
        overlap = overlap * torch.exp(-between / (2 * (width + variance)))
        weights = self.heights[:, :, None] * target.weights[:, None] * overlap
        toward = (variance / (width + variance))[..., None]
        means = (1 - toward) * target.means[:, None] + toward * self.centres[:, :, None]
        scales = torch.sqrt(variance * width / (width + variance)).expand_as(weights)
        return Mixture(
            torch.cat([target.weights, weights.flatten(1)], 1),
            torch.cat([target.means, means.flatten(1, 2)], 1),
            torch.cat([target.scales, scales.flatten(1)], 1),
        )


def weighted_energy_excess(x: Tensor, target: Mixture, power: float) -> Tensor:
    """The same excess [C] with responses near rare modes counting for more (`power` below 1).

    It is the squared distance of w P and w Q in the kernel k(x, y) = ½ (|x| + |y| - |x - y|) of the energy distance
    (Sejdinovic et al. 2013), relative to the mean weight. The weight is positive, so that P = Q is still the only
    optimum; a rare mode's rate and precision are learned as if it were not rare.
    """
    weight = _Weight.of(target, power)
    raised = weight.times(target)
    mass = raised.weights.sum(1).to(x.dtype)[:, None]  # [C, 1]
    origin = x.new_zeros(target.response_size, x.shape[1], 1)
    radius_of_target = expected_distance(origin, raised)  # [C, 1]
    own = (mass * radius_of_target - 0.5 * self_distance(raised).to(x.dtype)[:, None])[:, :, None]  # [C, 1, 1]
    w, radius = weight(x), x.norm(dim=0)  # [C, K]
    to_target = w * (mass * radius + radius_of_target - expected_distance(x, raised))
    similarity = 0.5 * (radius[:, :, None] + radius[:, None, :] - _distances(x, x))
    pair = w[:, :, None] * w[:, None, :] * similarity - 0.5 * (to_target[:, :, None] + to_target[:, None, :]) + own
    return _mean_over_pairs(pair) / mass[:, 0] ** 2


def sampled_energy_excess(x: Tensor, y: Tensor) -> Tensor:
    """The same [C] where the target is known from samples y [d, C, K] alone: as many for each condition as responses x,
    and independent of them."""
    across = _distances(x, y)
    pair = 0.5 * (across + across.mT - _distances(x, x) - _distances(y, y))
    return _mean_over_pairs(pair)


def energy_score(y: Tensor) -> Tensor:
    """Mean energy score [C] of the distribution of samples y [d, C, K] for responses drawn from it: ½ E|y - y'|."""
    return _mean_over_pairs(0.5 * _distances(y, y))


def expected_distance(x: Tensor, target: Mixture) -> Tensor:
    """E|x - Y| over Y from the mixture, [C, K] of x [d, C, K]; d is 1 (folded normal) or 2 (Rice distribution)."""
    weights, scales = (value.to(x.dtype) for value in (target.weights, target.scales))
    between = x.permute(1, 2, 0)[:, None] - target.means.to(x.dtype)[:, :, None]  # [C, M, K, d]
    return (weights[:, :, None] * _mean_norm(between, scales[:, :, None])).sum(1)


def self_distance(target: Mixture) -> Tensor:
    """E|Y - Y'| over independent draws of the mixture, [C]."""
    between = target.means[:, :, None] - target.means[:, None]  # [C, M, M, d]
    scales = torch.sqrt(target.scales[:, :, None] ** 2 + target.scales[:, None] ** 2)
    weights = target.weights[:, :, None] * target.weights[:, None]
    return (weights * _mean_norm(between, scales)).sum((1, 2))


def _distances(x: Tensor, y: Tensor) -> Tensor:
    """|x_k - y_l| for all trials k and l of a condition, [C, K, K]."""
    return (x[:, :, :, None] - y[:, :, None, :]).norm(dim=0)


def _mean_over_pairs(pair: Tensor) -> Tensor:
    """Mean over k ≠ l of [C, K, K]."""
    trials = pair.shape[-1]
    total = pair.sum((1, 2)) - pair.diagonal(dim1=1, dim2=2).sum(1)
    return total / (trials * (trials - 1))


def _mean_norm(mean: Tensor, scale: Tensor) -> Tensor:
    """E|Z| of Z ~ N(mean, scale² I), over the last axis of mean, which has one or two entries."""
    if mean.shape[-1] not in (1, 2):
        raise ValueError(f"the mean norm of a normal variable has a closed form in 1 or 2 dimensions, not {mean.shape}")
    return _MeanNorm.apply(mean, scale)


class _MeanNorm(torch.autograd.Function):
    """The gradient in the mean is written out: autograd's goes through differences of Bessel functions that cancel."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, scale: Tensor) -> Tensor:
        if mean.shape[-1] == 1:
            z = mean[..., 0] / scale
            slope = torch.erf(z / math.sqrt(2))
            value = scale * (math.sqrt(2 / math.pi) * torch.exp(-0.5 * z**2) + z * slope)
            gradient = slope[..., None]
        else:
            # Rice mean: scale sqrt(pi/2) L_{1/2}(-2u), whose derivative in u is I0e(u) + I1e(u).
            u = mean.square().sum(-1) / (4 * scale**2)
            i0, i1 = torch.special.i0e(u), torch.special.i1e(u)
            value = scale * math.sqrt(math.pi / 2) * ((1 + 2 * u) * i0 + 2 * u * i1)
            gradient = mean * (math.sqrt(math.pi / 8) * (i0 + i1) / scale)[..., None]
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, in_value: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return in_value[..., None] * gradient, None
