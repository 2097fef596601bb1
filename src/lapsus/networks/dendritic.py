"""Neurons with dendritic trees: h_i = [sum_j w_(i,j) h_(i,j) + b_i(t)]_+ from the leaves to the soma.

Paper: appendix "Architecture and task details" (after Lyo & Savin 2024). The rates of all neurons reach every leaf of
every tree; sensory input reaches the leaves; every node has a bias that depends on time.
"""

import math
from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from lapsus import streams
from lapsus.errors import LapsusError
from lapsus.networks.readout import orthonormal_rows
from lapsus.networks.time import TimeBias

__all__ = ["NONLINEARITIES", "DendriticTree", "PointNeurons", "TimedNetwork", "check_size", "he_normal"]

MOST_UNITS, MOST_WEIGHTS = 4_096, 2**25
NONLINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {"relu": functional.relu, "softplus": functional.softplus}


def he_normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Gaussian weights that keep the scale of ReLU layers; the last axis is summed over."""
    return math.sqrt(2 / max(shape[-1], 1)) * torch.randn(shape, generator=generator)


def check_size(
    units: int, nodes: int, stimulus_size: int, time_code: int, time_shared: int, input_scale: float, alpha: float
) -> None:
    """Refuse a network whose weights would fill the memory, or whose sizes make no network."""
    if not 0 < alpha <= 1:
        raise LapsusError(f"network.alpha = dt/lambda must lie in (0, 1], not {alpha}.")
    if units > MOST_UNITS:
        raise LapsusError(f"network.units must be at most {MOST_UNITS:,} (it is {units}).")
    weights = nodes * (units + stimulus_size)
    if weights > MOST_WEIGHTS:
        raise LapsusError(f"The network would have {weights:,} weights; at most {MOST_WEIGHTS:,} are possible.")
    if not (2 <= time_code <= 1024 and 1 <= time_shared <= 1024):
        raise LapsusError("network.time_code must be 2 to 1024 and network.time_shared 1 to 1024.")
    if not math.isfinite(input_scale):
        raise LapsusError(f"network.input_scale must be a finite number (it is {input_scale}).")


class TimedNetwork(nn.Module):
    """What networks of this package share: input weights, biases that depend on time, a fixed readout."""

    readout: Tensor
    input_weight: nn.Parameter
    time: TimeBias

    def drive(self, s: Tensor) -> Tensor:
        """W_s s: what the stimulus adds to each node that it reaches, [..., drive_size]."""
        return s @ self.input_weight.T

    def biases(self, steps: int) -> tuple[Tensor, ...]:
        """[1 + T, nodes] for each layer, the first to be computed first, soma last; row 0 holds before cue offset."""
        return self.time(steps)


class DendriticTree(TimedNetwork):
    """F(r, s, t) of n neurons; branching (B_1, …, B_L) from the soma outward, () for point neurons.

    alpha is dt/lambda; input_scale multiplies the initial input weights: stimuli of order one drown in the process
    noise otherwise. Layouts and parameter names are those of docs/design.md: rates [n, C, K], leaves first.

    >>> tree = lapsus.DendriticTree(stimulus_size=8, units=16, branching=(10, 10))
    >>> sum(p.numel() for p in tree.parameters())
    56272
    """

    def __init__(
        self,
        stimulus_size: int,
        response_size: int = 2,
        units: int = 16,
        branching: tuple[int, ...] = (10, 10),
        nonlinearity: Literal["relu", "softplus"] = "relu",
        alpha: float = 0.1,
        input_scale: float = 1.0,
        time_code: int = 16,
        time_shared: int = 8,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if units < 1 or any(count < 1 for count in branching):
            raise LapsusError("network.units and every number in network.branching must be at least 1.")
        check_size(units, units * math.prod(branching), stimulus_size, time_code, time_shared, input_scale, alpha)
        generator = streams.generator(seed, "network")
        self.units, self.branching, self.alpha, self.nonlinearity = units, tuple(branching), alpha, nonlinearity
        nodes = [units]
        for count in branching:
            nodes.append(nodes[-1] * count)
        self.drive_size = nodes[-1]
        self.leaf_weight = nn.Parameter(he_normal((nodes[-1], units), generator))
        self.branch_weights = nn.ParameterList(
            he_normal((nodes[layer], branching[layer]), generator) for layer in reversed(range(len(branching)))
        )
        if branching:
            # Halved, so that the rates of an untrained network neither explode nor vanish over a trial.
            self.branch_weights[-1].data.mul_(0.5)
        self.input_weight = nn.Parameter(input_scale * he_normal((nodes[-1], stimulus_size), generator))
        self.time = TimeBias(nodes[::-1], time_code, time_shared, generator)
        self.register_buffer("readout", orthonormal_rows(response_size, units, generator))

    @property
    def rate_weight(self) -> nn.Parameter:
        """The weights on the rates, [leaves, n], for an optimiser that knows what to do with them."""
        return self.leaf_weight

    def F(self, r: Tensor, drive: Tensor | None, biases: tuple[Tensor, ...]) -> Tensor:
        """Somatic activity [n, C, K] for rates r [n, C, K], drive [C, leaves] and one row of biases for each layer."""
        act = NONLINEARITIES[self.nonlinearity]
        h = (self.leaf_weight @ r.flatten(1)).view(-1, *r.shape[1:]) + biases[0][:, None, None]
        if drive is not None:
            h = h + drive.T[:, :, None]
        h = act(h)
        for weight, bias in zip(self.branch_weights, biases[1:]):
            h = h.view(*weight.shape, *r.shape[1:])
            h = act((weight[:, :, None, None] * h).sum(1) + bias[:, None, None])
        return h


class PointNeurons(DendriticTree):
    """The standard rate network F = [W_r r + W_s s + b(t)]_+: a tree without branches.

    >>> lapsus.PointNeurons(stimulus_size=8, units=32).units
    32
    """

    def __init__(
        self,
        stimulus_size: int,
        response_size: int = 2,
        units: int = 16,
        nonlinearity: Literal["relu", "softplus"] = "relu",
        alpha: float = 0.1,
        input_scale: float = 1.0,
        time_code: int = 16,
        time_shared: int = 8,
        seed: int = 0,
    ) -> None:
        super().__init__(
            stimulus_size, response_size, units, (), nonlinearity, alpha, input_scale, time_code, time_shared, seed
        )
