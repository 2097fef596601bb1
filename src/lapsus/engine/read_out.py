"""What leaves the network: x = W_x r, and the sum of its squared rates. The fused rollout makes both on its way."""

from __future__ import annotations

import torch
from torch import Tensor

from lapsus.engine import fused


def read_out(trajectory: Tensor, readout: Tensor) -> tuple[Tensor, Tensor]:
    """x [steps, d, C, K] and the sum over steps and units of r² [C, K], for a trajectory [steps, n, C, K]; W_x is [d,
    n]."""
    return torch.einsum("dn,snck->sdck", readout, trajectory), trajectory.flatten(0, 1).square().sum(0)


def project(r: Tensor, readout: Tensor) -> Tensor:
    """W_x r [steps, d, C, K] for r [steps, n, C, K], outside any graph; how a batch is cut changes no bit."""
    if fused.projects(r):
        return fused.project(r.detach(), readout)
    return torch.einsum("dn,snck->sdck", readout, r.detach())
