"""Neurons with dendritic trees: h_i = [sum_j w_(i,j) h_(i,j) + b_i(t)]_+ from the leaves to the soma.

Paper: appendix "Architecture and task details" (after Lyo & Savin 2024). The rates of all neurons reach every leaf of
every tree; sensory input reaches the leaves; every node has a bias that depends on time.
"""

import itertools
import math
import operator
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from lapsus import rng
from lapsus.errors import LapsusError
from lapsus.networks.readout import orthonormal_rows
from lapsus.networks.time import TimeBias

__all__ = ["NONLINEARITIES", "DendriticTree", "PointNeurons", "TimedNetwork", "he_normal"]

MOST_UNITS, MOST_WEIGHTS = 4_096, 2**25
NONLINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {"relu": functional.relu, "softplus": functional.softplus}


def he_normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Gaussian weights that keep the scale of ReLU layers; the last axis is summed over."""
    return math.sqrt(2 / max(shape[-1], 1)) * torch.randn(shape, generator=generator)


@dataclass(eq=False, repr=False)
class TimedNetwork(nn.Module):
    """What networks of this package share: input weights, biases that depend on time, a fixed readout.

    alpha is dt/lambda; input_scale multiplies the initial input weights: stimuli of order one drown in the process
    noise otherwise.
    """

    stimulus_size: int
    response_size: int = 2
    units: int = 16
    _: KW_ONLY
    nonlinearity: Literal["relu", "softplus"] = "relu"
    alpha: float = 0.1
    input_scale: float = 1.0
    time_code: int = 16
    time_shared: int = 8
    seed: int = 0
    drive_size: int = field(init=False)
    input_weight: nn.Parameter = field(init=False)
    time: TimeBias = field(init=False)
    readout: Tensor = field(init=False)

    def __post_init__(self) -> None:
        super().__init__()

    def _begin(self, nodes: int) -> torch.Generator:
        """Refuse a network whose weights would fill the memory, or whose sizes make no network; what its first weights
        are drawn from. nodes: how many the stimulus reaches."""
        if not 0 < self.alpha <= 1:
            raise LapsusError(f"network.alpha = dt/lambda must lie in (0, 1], not {self.alpha}.")
        if self.units > MOST_UNITS:
            raise LapsusError(f"network.units must be at most {MOST_UNITS:,} (it is {self.units}).")
        weights = nodes * (self.units + self.stimulus_size)
        if weights > MOST_WEIGHTS:
            raise LapsusError(f"The network would have {weights:,} weights; at most {MOST_WEIGHTS:,} are possible.")
        if not (2 <= self.time_code <= 1024 and 1 <= self.time_shared <= 1024):
            raise LapsusError("network.time_code must be 2 to 1024 and network.time_shared 1 to 1024.")
        if not math.isfinite(self.input_scale):
            raise LapsusError(f"network.input_scale must be a finite number (it is {self.input_scale}).")
        self.drive_size = nodes
        return rng.generator(self.seed, "network")

    def _end(self, layers: list[int], generator: torch.Generator) -> None:
        """What follows the weights on the rates: input weights, biases of layers of so many nodes, readout."""
        self.input_weight = nn.Parameter(self.input_scale * he_normal((layers[0], self.stimulus_size), generator))
        self.time = TimeBias(layers, self.time_code, self.time_shared, generator)
        self.register_buffer("readout", orthonormal_rows(self.response_size, self.units, generator))

    def drive(self, s: Tensor) -> Tensor:
        """W_s s: what the stimulus adds to each node that it reaches, [..., drive_size]."""
        return s @ self.input_weight.T

    def biases(self, steps: int) -> tuple[Tensor, ...]:
        """[1 + T, nodes] for each layer, the first to be computed first, soma last; row 0 holds before cue offset."""
        return self.time(steps)


@dataclass(eq=False, repr=False)
class DendriticTree(TimedNetwork):
    """F(r, s, t) of n neurons; branching (B_1, …, B_L) from the soma outward, () for point neurons.

    Layouts and parameter names are those of docs/design.md: rates [n, C, K], leaves first.

    >>> tree = lapsus.DendriticTree(stimulus_size=8, units=16, branching=(10, 10))
    >>> sum(p.numel() for p in tree.parameters())
    56272
    """

    branching: tuple[int, ...] = (10, 10)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.units < 1 or any(count < 1 for count in self.branching):
            raise LapsusError("network.units and every number in network.branching must be at least 1.")
        self.branching = branching = tuple(self.branching)
        nodes = list(itertools.accumulate((self.units, *branching), operator.mul))
        generator = self._begin(nodes[-1])
        self.leaf_weight = nn.Parameter(he_normal((nodes[-1], self.units), generator))
        self.branch_weights = nn.ParameterList(
            he_normal((nodes[layer], branching[layer]), generator) for layer in reversed(range(len(branching)))
        )
        if branching:
            # Halved, so that the rates of an untrained network neither explode nor vanish over a trial.
            self.branch_weights[-1].data.mul_(0.5)
        self._end(nodes[::-1], generator)

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


@dataclass(eq=False, repr=False)
class PointNeurons(DendriticTree):
    """The standard rate network F = [W_r r + W_s s + b(t)]_+: a tree without branches.

    >>> lapsus.PointNeurons(stimulus_size=8, units=32).units
    32
    """

    branching: tuple[int, ...] = field(default=(), init=False)
