"""The energy score of a response distribution, a strictly proper scoring rule (Gneiting & Raftery 2007).

ES(P, y) = E|x - y| - ½ E|x - x'| for x, x' from P. Its mean over y from the target Q, minus the score of Q itself, is
the *energy excess* E|x - y| - ½ E|x - x'| - ½ E|y - y'|: half the energy distance, 0 only where P = Q.

Arrays put conditions and trials last: x [d, C, K]. All estimates are unbiased for K >= 2, so that single ones may be
negative.
"""

import math
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
]


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
