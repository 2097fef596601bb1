"""A network run on from any state: trials that share their past and not their noise to come."""

from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
import torch
from torch import Tensor

from lapsus import rng
from lapsus.circular import angle
from lapsus.engine import Timeline, normal, rollout_and_read_out
from lapsus.errors import LapsusError
from lapsus.mechanism.outcomes import Outcomes, outcomes
from lapsus.protocols import HasLatent
from lapsus.tasks import FeatureCued
from lapsus.training.model import Model

__all__ = ["Replay", "conditions_at_one_pair", "decision_steps", "memory_axes", "probe_conditions", "step_times"]

# Trials simulated at a time: 8,192 of 68 steps are about 70 MB.
_TRIALS = 8192


def step_times(model: Model) -> np.ndarray:
    """The time of each state r_0 … r_S in steps from cue offset, [S + 1]."""
    steps = list(model.task.epochs.values())
    return np.arange(sum(steps) + 1) - sum(steps[:-1])


def memory_axes(model: Model) -> Tensor:
    """An orthonormal basis of memory, the activity outside the readout, [unit - dim, unit]."""
    readout = model.network.readout
    return torch.linalg.svd(readout, full_matrices=True)[2][len(readout) :]


def probe_conditions(model: Model, count: int, seed: int, probe_distance: float | None = None) -> dict[str, Tensor]:
    """Conditions of the task, both items cued equally often; probe_distance fixes how far items' probes are apart."""
    conditions = model.task.sample(count, rng.generator(seed, "mechanism"))
    if not {"report", "probe", "cued"} <= conditions.keys() or conditions["report"].shape[1] != 2:
        raise LapsusError("the mechanism of swaps is studied in delayed estimation with two items")
    conditions["cued"] = torch.arange(count) % 2
    if probe_distance is not None and isinstance(model.task, FeatureCued):
        first = conditions["probe"][:, 0]
        sign = torch.where(torch.arange(count) // 2 % 2 == 0, 1.0, -1.0)
        second = torch.remainder(first + sign * probe_distance + np.pi, 2 * np.pi) - np.pi
        conditions["probe"] = torch.stack([first, second], 1)
    return conditions


def conditions_at_one_pair(model: Model, count: int, apart: float, seed: int) -> dict[str, Tensor]:
    """Conditions with items at one pair of locations, both cued equally often."""
    conditions = probe_conditions(model, count, seed)
    if isinstance(model.task, FeatureCued):
        conditions["probe"] = torch.tensor([[-apart / 2, apart / 2]]).expand(count, 2).clone()
    return conditions


def decision_steps(model: Model, every: int = 4) -> tuple[list[int], dict[str, int]]:
    """Steps at which commitment is measured, and the step at which each epoch ends (the initial state is step 0)."""
    ends, step = {"initial": 0}, 0
    for name, length in model.task.epochs.items():
        step += length
        ends[name] = step
    *_, begins, offset, _ = ends.values()  # of the last epoch but one, and of the last
    return sorted({*ends.values(), *range(offset, step, every), (begins + offset) // 2}), ends


@dataclass(frozen=True, eq=False)
class Replay:
    """Conditions with what they show to the network; states and responses put conditions and trials last."""

    model: Model
    conditions: dict[str, Tensor]
    drives: Tensor
    biases: tuple[Tensor, ...]

    @classmethod
    @torch.no_grad()
    def of(cls, model: Model, conditions: dict[str, Tensor]) -> "Replay":
        """Conditions with what this network is shown of them."""
        return cls(model, conditions, *model.inputs(conditions))

    def each(self, times: int, seed: int = 0) -> "Replay":
        """Every condition `times` times in a row; where the task has a latent cause, it is drawn anew each time."""
        conditions = {name: values.repeat_interleave(times, 0) for name, values in self.conditions.items()}
        if isinstance(self.model.task, HasLatent):
            conditions = self.model.task.with_latent(conditions, rng.generator(seed, "latent cause"))
            return Replay.of(self.model, conditions)
        return Replay(self.model, conditions, self.drives.repeat_interleave(times, 1), self.biases)

    def only(self, rows: np.ndarray) -> "Replay":
        """Some of the conditions, in that order."""
        conditions = {name: values[rows] for name, values in self.conditions.items()}
        return Replay(self.model, conditions, self.drives[:, rows], self.biases)

    @property
    def count(self) -> int:
        """How many conditions."""
        return len(next(iter(self.conditions.values())))

    def initial(self, trials: int, seed: int) -> Tensor:
        """First states r_0 [unit, condition, trial]."""
        return normal(1, self.model.network.units, self.count, trials, key=(seed, 3))[0]

    @overload
    def run(
        self, r: Tensor, seed: int, *, start: int = ..., keep: Literal[True], threads: int | None = ...
    ) -> tuple[Tensor, Tensor]: ...

    @overload
    def run(
        self, r: Tensor, seed: int, *, start: int = ..., keep: Literal[False] = ..., threads: int | None = ...
    ) -> tuple[Tensor, None]: ...

    @torch.no_grad()
    def run(
        self, r: Tensor, seed: int, *, start: int = 0, keep: bool = False, threads: int | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Run states r [unit, condition, trial] on from step `start` to the response with the noise of `seed`.

        Returns x_T [dim, condition, trial] and, if asked to keep it, the trajectory [step, unit, condition, trial].
        """
        line = self.model.timeline
        rest = Timeline(line.drive_index[start:], line.time_index[start:], line.sigma[start:], 0)
        trials = r.shape[2]
        size = max(1, _TRIALS // trials)
        responses, kept = [], []
        for first in range(0, self.count, size):
            part = range(first, min(first + size, self.count))
            here = slice(part.start, part.stop)
            noise = normal(rest.steps, self.model.network.units, part, trials, key=(seed, 40 + start), threads=threads)
            trajectory, x, _ = rollout_and_read_out(
                self.model.network,
                r[:, here].contiguous(),
                self.drives[:, here],
                self.biases,
                rest,
                noise,
                threads=threads,
            )
            responses.append(x[-1].clone())
            if keep:
                kept.append(trajectory)
        return torch.cat(responses, 1), torch.cat(kept, 2) if keep else None

    def swaps(self, x_T: Tensor) -> Outcomes:
        """What became of responses x_T [dim, condition, trial]: probabilities [condition, trial]."""
        response = angle(x_T.permute(1, 2, 0).numpy())
        report = np.repeat(self.conditions["report"].numpy()[:, None], response.shape[1], 1)
        cued = np.repeat(self.conditions["cued"].numpy()[:, None], response.shape[1], 1)
        found = outcomes(response.ravel(), report.reshape(-1, 2), cued.ravel())
        return Outcomes(*(p.reshape(response.shape) for p in (found.probability, found.correct_probability)))
