"""The fixed orthonormal readout x = W_x r, and the split of activity in behavioural subspace and nullspace."""

import torch
from torch import Tensor

from lapsus.errors import LapsusError

__all__ = ["behavioural", "nullspace", "orthonormal_rows"]


def orthonormal_rows(rows: int, units: int, generator: torch.Generator) -> Tensor:
    """W_x [rows, units] with W_x W_x' = I: rows of a random rotation."""
    if rows > units:
        raise LapsusError(f"network.units = {units} is too few for a response of {rows} dimensions.")
    q, r = torch.linalg.qr(torch.randn(units, units, dtype=torch.float64, generator=generator))
    # The sign of R's diagonal fixes QR's freedom, so that the rotation is uniformly distributed.
    return (q * torch.sign(torch.diagonal(r))).T[:rows].float().contiguous()


def behavioural(activity: Tensor, readout: Tensor) -> Tensor:
    """x = W_x r for activity [..., unit]: [..., d]."""
    return activity @ readout.T


def nullspace(readout: Tensor) -> Tensor:
    """W_x_perp [n - d, n]: an orthonormal basis of what the readout does not see, so that m = W_x_perp r."""
    complete = torch.linalg.svd(readout.double(), full_matrices=True).Vh
    return complete[readout.shape[0] :].to(readout.dtype)
