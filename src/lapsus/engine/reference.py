"""The trial in plain torch: any network, device and dtype, differentiated by autograd."""

from __future__ import annotations

import torch
from torch import Tensor

from lapsus.engine.timeline import Timeline
from lapsus.protocols import Network


def clamp(r: Tensor, readout: Tensor, x: Tensor) -> Tensor:
    """r + W_x'(x - W_x r): the response subspace is replaced, the nullspace kept. r [n, C, K], x [d, C, K]."""
    error = x - torch.tensordot(readout, r, 1)
    return r + torch.tensordot(readout.T, error, 1)


def rollout(
    network: Network,
    r0: Tensor,
    drives: Tensor,
    biases: tuple[Tensor, ...],
    timeline: Timeline,
    noise: Tensor,
    forcing: Tensor | None = None,
) -> Tensor:
    """The trajectory [S+1, n, C, K]; see lapsus.engine.rollout for the arguments."""
    forcing = r0.new_empty(0) if forcing is None else forcing
    first_forced = timeline.steps - len(forcing)
    r = r0
    trajectory = [r]
    for step in range(timeline.steps):
        if step >= first_forced:
            r = clamp(r, network.readout, forcing[step - first_forced])
        drive = timeline.drive_index[step]
        time = timeline.time_index[step]
        F = network.F(r, None if drive < 0 else drives[drive], tuple(table[time] for table in biases))
        r = (1 - network.alpha) * r + network.alpha * F + timeline.sigma[step] * noise[step]
        trajectory.append(r)
    return torch.stack(trajectory)
