"""A task from a design: the stimuli of a trial table, shown when the design says.

Conditions are drawn from the trials of the table, so that stimuli that go together do so in training as well. Angles
reach the network as tuned populations, numbers as channels, categories as learned vectors; an epoch in which nothing is
shown is a delay.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from lapsus.designs import Design, Variable, pack, unpack
from lapsus.errors import LapsusError
from lapsus.protocols import ByEpoch, Conditions
from lapsus.tasks.durations import number_or_range, steps_of

__all__ = ["DesignedTask", "designed_task"]

# Tuned units of an angle and the concentration of their tuning; size of a category's learned vector.
_TUNED, _CONCENTRATION = 12, 2.0
_CATEGORY = 4


class _Encoder(nn.Module):
    """Values of the variables shown in each epoch, NaN where one is not, as [C, stimulus_size]."""

    def __init__(self, stimuli: tuple[Variable, ...], generator: torch.Generator) -> None:
        super().__init__()
        self.stimuli = stimuli
        self.vectors = nn.ParameterDict(
            {
                str(k): nn.Parameter(torch.randn(len(variable.levels), _CATEGORY, generator=generator))
                for k, variable in enumerate(stimuli)
                if variable.kind == "categorical"
            }
        )

    def forward(self, shown: ByEpoch) -> ByEpoch:
        return {epoch: torch.cat(self._blocks(values), 1) for epoch, values in shown.items()}

    def _blocks(self, values: Tensor) -> list[Tensor]:
        blocks = []
        for k, variable in enumerate(self.stimuli):
            value = values[:, k]
            there = (~torch.isnan(value)).to(value.dtype)[:, None]
            value = value.nan_to_num(0.0)
            match variable.kind:
                case "circular":
                    preferred = 2 * math.pi / _TUNED * torch.arange(_TUNED)
                    block = torch.exp(_CONCENTRATION * (torch.cos(value[:, None] - preferred) - 1))
                case "linear":
                    block = torch.stack([torch.ones_like(value), value], 1)
                case "categorical":
                    block = self.vectors[str(k)][value.long()]
            blocks.append(there * block)
        return blocks


def _size(variable: Variable) -> int:
    return {"circular": _TUNED, "linear": 2, "categorical": _CATEGORY}[variable.kind]


@dataclass(frozen=True)
class DesignedTask:
    """What a design shows.

    steps: epoch → steps, in order, or a range such as { from = 3, to = 20 }; variables: what the table says of a trial,
    with the epochs that show it (none: the behaviour may depend on it all the same); trials: their values
    [trial, variable], packed as text; by_trial: epochs whose steps are columns of `durations` [trial, epoch];
    response_size: dimensions of a response."""

    steps: dict[str, Any]
    variables: tuple[Variable, ...]
    response_size: int
    trials: str = field(repr=False)
    by_trial: tuple[str, ...] = ()
    durations: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        steps = {name: number_or_range(f"task.steps.{name}", value, "steps") for name, value in self.steps.items()}
        if not steps or steps_of(list(steps.values())[-1]) < 1:
            raise LapsusError("task.steps needs epochs, and the last one at least one step.")
        object.__setattr__(self, "steps", steps)
        if self._values.ndim != 2 or self._values.shape[1] != len(self.variables):
            raise LapsusError("task.trials does not fit task.variables.")

    def __getattr__(self, name: str) -> Any:
        """An epoch's duration is an attribute, as it is a field of other tasks."""
        steps = self.__dict__.get("steps", {})
        if name in steps:
            return steps[name]
        raise AttributeError(name)

    @cached_property
    def _values(self) -> np.ndarray:
        return unpack(self.trials, "task.trials")

    @cached_property
    def _durations(self) -> np.ndarray:
        return unpack(self.durations, "task.durations").astype(int)

    def with_steps(self, durations: Mapping[str, int]) -> "DesignedTask":
        """The same with other durations of some epochs."""
        return replace(self, steps=self.steps | dict(durations))

    @property
    def epochs(self) -> dict[str, int]:
        """Steps of each epoch; the middle of a range."""
        return {name: steps_of(steps) for name, steps in self.steps.items()}

    @property
    def stimulus_size(self) -> int:
        """Inputs of all variables together."""
        return sum(_size(variable) for variable in self.variables)

    def sample(self, count: int, generator: torch.Generator) -> Conditions:
        """Conditions of trials of the table; where an epoch's duration is a column, of those that come nearest to the
        durations of this task."""
        rows = self._possible[torch.randint(len(self._possible), (count,), generator=generator)]
        return self.conditions(rows.numpy())

    @cached_property
    def _possible(self) -> Tensor:
        """Trials whose durations come nearest to those of this task."""
        rows = np.arange(len(self._values))
        if self.by_trial:
            now = self.epochs
            off = np.abs(self._durations - [now[name] for name in self.by_trial]).sum(1)
            rows = np.flatnonzero(off == off.min())
        return torch.from_numpy(rows)

    def conditions(self, rows: np.ndarray) -> Conditions:
        """Those of some trials of the table."""
        return {v.name: torch.from_numpy(self._values[rows, k].copy()) for k, v in enumerate(self.variables)}

    def stimuli(self, conditions: Conditions) -> ByEpoch:
        """Epoch → values of all variables [C, V], NaN for those that it does not show."""
        values = torch.stack([conditions[variable.name] for variable in self.variables], 1)
        shown = {}
        for epoch in self.steps:
            which = torch.tensor([epoch in variable.epochs for variable in self.variables])
            if which.any():
                shown[epoch] = torch.where(which, values, math.nan)
        return shown

    def table(self, conditions: Conditions) -> pd.DataFrame:
        """The trial table, in the units of the table that the design was made with."""
        return pd.DataFrame(
            {variable.name: _decoded(variable, conditions[variable.name].numpy()) for variable in self.variables}
        )

    def encoder(self, generator: torch.Generator) -> nn.Module:
        """Tuned populations, channels and learned vectors."""
        return _Encoder(self.variables, generator)


def _decoded(variable: Variable, values: np.ndarray) -> np.ndarray:
    if variable.kind != "categorical":
        return variable.decode(values)
    found = np.full(len(values), None, dtype=object)
    there = np.isfinite(values)
    found[there] = variable.decode(values[there])
    return found


def designed_task(design: Design, response_size: int) -> dict[str, Any]:
    """The [task] of an experiment on a design, with the values of all its trials."""
    values = np.stack([design.values[variable.name] for variable in design.stimuli], 1)
    steps: dict[str, Any] = dict(design.steps)
    for name, counts in design.durations.items():
        low, high = int(counts.min()), int(counts.max())
        steps[name] = low if low == high else {"from": low, "to": high}
    task = {
        "kind": "designed",
        "steps": steps,
        "variables": [plain_variable(variable) for variable in design.stimuli],
        "response_size": response_size,
        "trials": pack(values),
    }
    if design.durations:
        task |= {"by_trial": list(design.durations), "durations": pack(np.stack(list(design.durations.values()), 1))}
    return task


def plain_variable(variable: Variable) -> dict[str, Any]:
    """A variable as the table of an experiment file."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(variable).items()}
