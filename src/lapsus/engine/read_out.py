"""What leaves the network: x = W_x r of a whole trajectory, and the sum of its squared rates, with one pass each way."""

from __future__ import annotations

import torch
from torch import Tensor

from lapsus.engine import fused

__all__ = ["project", "read_out"]


def read_out(trajectory: Tensor, readout: Tensor) -> tuple[Tensor, Tensor]:
    """x [steps, d, C, K] and the sum over steps and units of r² [C, K], for a trajectory [steps, n, C, K]; W_x is [d, n].

    Differentiable in the trajectory; the readout is not learned.
    """
    return _ReadOut.apply(trajectory, readout)


def project(r: Tensor, readout: Tensor) -> Tensor:
    """W_x r [steps, d, C, K] for r [steps, n, C, K], outside any graph."""
    return _forward(r.detach(), readout, power=False)[0]


class _ReadOut(torch.autograd.Function):
    """One node of the graph, whose gradient passes over the trajectory once."""

    @staticmethod
    def forward(ctx, trajectory: Tensor, readout: Tensor):
        ctx.save_for_backward(trajectory, readout)
        ctx.set_materialize_grads(False)
        return _forward(trajectory, readout, power=True)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, in_x: Tensor | None, in_power: Tensor | None):
        trajectory, readout = ctx.saved_tensors
        if in_x is None and in_power is None:
            return None, None
        if fused.reads_out(trajectory):
            return fused.read_out_backward(trajectory, readout, in_x, in_power), None
        total = torch.zeros_like(trajectory) if in_power is None else trajectory * (2 * in_power)
        if in_x is not None:
            total = total + torch.einsum("dn,sdck->snck", readout, in_x)
        return total, None


def _forward(r: Tensor, readout: Tensor, power: bool) -> tuple[Tensor, Tensor | None]:
    if fused.reads_out(r):
        return fused.read_out(r, readout, power)
    return torch.einsum("dn,snck->sdck", readout, r), r.flatten(0, 1).square().sum(0) if power else None
