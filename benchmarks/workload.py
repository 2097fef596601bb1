"""What the engine is timed on: the paper's trial, a batch of it, and the ways to take a training step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lapsus.engine import fused
from lapsus.engine.noise import normal
from lapsus.engine.timeline import Timeline
from lapsus.networks import DendriticTree

__all__ = ["EPOCHS", "Trial", "Workload", "kernel", "tuned"]

# Prestimulus, stimulus, delay, cue, denoising delay.
EPOCHS = (3, 5, 15, 5, 40)


@dataclass(frozen=True)
class Trial:
    """What one trial of the benchmark is made of; the defaults are the paper's."""

    units: int = 16
    branching: tuple[int, ...] = (10, 10)
    epochs: tuple[int, ...] = EPOCHS

    def timeline(self) -> Timeline:
        """Which drive, bias and noise each step has; items and cue are shown."""
        before, denoise = sum(self.epochs[:-1]), self.epochs[-1]
        shown = (-1, 0, -1, 1, -1)
        drive = [index for index, steps in zip(shown, self.epochs) for _ in range(steps)]
        return Timeline(drive, [0] * before + list(range(1, denoise + 1)), [0.5] * (before + denoise), denoise)

    @property
    def steps(self) -> int:
        """Steps of a whole trial."""
        return sum(self.epochs)

    def operations(self) -> float:
        """Useful floating-point operations of training on one trial."""
        leaves = self.units
        for count in self.branching:
            leaves *= count
        return 3 * 2 * leaves * self.units * self.steps


class Workload:
    """A network and a batch of conditions x trials, and the ways to take one training step on it."""

    def __init__(self, conditions: int, trials: int, trial: Trial | None = None) -> None:
        trial = trial or Trial()
        self.conditions, self.trials, self.trial = conditions, trials, trial
        self.network = DendriticTree(36, 2, trial.units, trial.branching)
        self.timeline = trial.timeline()
        denoise = trial.epochs[-1]
        self.biases = tuple(table.detach().requires_grad_() for table in self.network.biases(denoise))
        self.drives = normal(2, self.network.drive_size, conditions, 1, key=(0, 0))[..., 0].transpose(1, 2).contiguous()
        self.drives.requires_grad_()
        self.r0 = normal(1, trial.units, conditions, trials, key=(0, 1))[0]
        self.forcing = normal(denoise, 2, conditions, trials, key=(0, 2))
        self.noise = normal(trial.steps, trial.units, conditions, trials, key=(0, 3))

    def leaves(self) -> list[Tensor]:
        """Tensors that get gradients."""
        return [self.drives, *self.biases, self.network.leaf_weight, *self.network.branch_weights]

    def part(self, start: int, size: int) -> tuple:
        """The arguments of rollout for some of the conditions."""
        here = slice(start, start + size)
        return (
            self.network,
            self.r0[:, here],
            self.drives[:, here],
            self.biases,
            self.timeline,
            self.noise[:, :, here],
            self.forcing[:, :, here],
        )

    def train(self, rollout: Callable, size: int | None = None) -> None:
        """The gradient of a sum of squares, `size` conditions at a time."""
        for tensor in self.leaves():
            tensor.grad = None
        size = size or self.conditions
        for start in range(0, self.conditions, size):
            trajectory = rollout(*self.part(start, size))
            trajectory.backward(trajectory.detach())

    def simulate(self, rollout: Callable, size: int | None = None) -> None:
        """Roll all conditions out without gradients, `size` at a time."""
        size = size or self.conditions
        with torch.no_grad():
            for start in range(0, self.conditions, size):
                rollout(*self.part(start, size))


def kernel(*arguments: Any) -> Tensor:
    """The trajectory of the fused rollout."""
    return fused.rollout(*arguments)[0]


def tuned(
    network: DendriticTree,
    r0: Tensor,
    drives: Tensor,
    biases: tuple[Tensor, ...],
    timeline: Timeline,
    noise: Tensor,
    forcing: Tensor,
) -> Tensor:
    """The fastest trial in plain torch that we could write: fused additions, batched products, work in place."""
    shape, alpha, readout = r0.shape, network.alpha, network.readout
    r, trajectory = r0.flatten(1), [r0.flatten(1)]
    projection = readout.T @ readout
    first = timeline.steps - len(forcing)
    held = torch.einsum("dn,fdct->fnct", readout, forcing).flatten(2)
    noise = noise.flatten(2)
    for step in range(timeline.steps):
        if step >= first:
            r = torch.addmm(r, projection, r, alpha=-1).add_(held[step - first])
        row = timeline.time_index[step]
        h = torch.addmm(biases[0][row][:, None], network.leaf_weight, r)
        if timeline.drive_index[step] >= 0:
            h.view(-1, *shape[1:]).add_(drives[timeline.drive_index[step]].T[:, :, None])
        h = h.relu_()
        for weight, table in zip(network.branch_weights, biases[1:]):
            h = torch.baddbmm(table[row][:, None, None], weight[:, None], h.view(*weight.shape, -1)).relu_()
        r = torch.lerp(r, h.view_as(r), alpha).add_(noise[step], alpha=timeline.sigma[step])
        trajectory.append(r)
    return torch.stack(trajectory).view(-1, *shape)
