"""What each node knows of time: a learned constant before cue offset, a smooth code of t/T after it."""

import math
from functools import lru_cache

import torch
from torch import Tensor, nn

__all__ = ["TimeBias", "time_code"]


@lru_cache
def time_code(steps: int, size: int) -> Tensor:
    """n_t sines and cosines of t/T for t = 0 … T - 1: [T, size]; the slowest makes half a turn in the delay."""
    phase = torch.arange(steps, dtype=torch.float64)[:, None] / steps
    angle = math.pi * phase * torch.arange(1, size // 2 + 1, dtype=torch.float64)
    return torch.cat([torch.sin(angle), torch.cos(angle)], 1).float()


class TimeBias(nn.Module):
    """Biases of every node: row 0 before cue offset (constant, learned), rows 1 … T during denoising.

    The code of size n_t is projected to a vector shared by all nodes, and from there with weights of each node's own.
    """

    def __init__(self, nodes: list[int], code_size: int, shared_size: int, generator: torch.Generator) -> None:
        super().__init__()
        self.code_size = code_size
        self.shared = nn.Parameter(torch.randn(shared_size, code_size, generator=generator) / math.sqrt(code_size))
        self.constant = nn.ParameterList(torch.zeros(count) for count in nodes)
        scale = 0.1 * math.sqrt(2 / shared_size)
        self.weight = nn.ParameterList(scale * torch.randn(shared_size, count, generator=generator) for count in nodes)

    def forward(self, steps: int) -> tuple[Tensor, ...]:
        """Biases of each layer as [1 + steps, nodes], leaves first."""
        vector = time_code(steps, self.code_size).to(self.shared.dtype) @ self.shared.T
        return tuple(
            torch.cat([constant[None], vector @ weight]) for constant, weight in zip(self.constant, self.weight)
        )
