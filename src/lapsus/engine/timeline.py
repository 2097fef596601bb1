"""What happens in each step of a trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from lapsus.errors import LapsusError
from lapsus.protocols import Network


@dataclass(frozen=True)
class Timeline:
    """For each of the S steps of a trial: which drive is on, which row of the biases holds, how strong the noise is.

    drive_index [S]: row of `drives`, or -1 where there is none. time_index [S]: row of the bias tables. sigma [S]:
    standard deviation of the noise. forced: how many of the last steps may be clamped. Sequences become tuples of
    plain numbers.
    """

    drive_index: Sequence[int]
    time_index: Sequence[int]
    sigma: Sequence[float]
    forced: int = 0

    def __post_init__(self) -> None:
        for name, kind in (("drive_index", int), ("time_index", int), ("sigma", float)):
            values = getattr(self, name)
            values = values.tolist() if hasattr(values, "tolist") else values
            object.__setattr__(self, name, tuple(kind(value) for value in values))
        object.__setattr__(self, "forced", int(self.forced))
        lengths = {len(self.drive_index), len(self.time_index), len(self.sigma)}
        if len(lengths) != 1:
            raise LapsusError(
                f"a timeline needs one entry a step: drive_index has {len(self.drive_index)}, "
                f"time_index {len(self.time_index)}, sigma {len(self.sigma)}"
            )
        if not 0 <= self.forced <= self.steps:
            raise LapsusError(f"forced is {self.forced}; it must lie between 0 and the {self.steps} steps of the trial")

    @property
    def steps(self) -> int:
        """S, the number of steps of a trial."""
        return len(self.sigma)

    def check(
        self,
        network: Network,
        r0: Tensor,
        drives: Tensor,
        biases: tuple[Tensor, ...],
        noise: Tensor,
        forcing: Tensor | None,
    ) -> None:
        """Raise LapsusError, naming the argument of rollout that does not fit the others and what would."""
        if r0.ndim != 3 or r0.shape[0] != network.units:
            raise LapsusError(f"r0 has shape {list(r0.shape)}; it must be [{network.units} units, conditions, trials]")
        units, conditions, trials = r0.shape
        expected = {"noise": (noise, (self.steps, units, conditions, trials))}
        if forcing is not None:
            if forcing.ndim != 4 or forcing.shape[0] > self.forced:
                raise LapsusError(
                    f"forcing has shape {list(forcing.shape)}; it must be [steps <= {self.forced}, dimension, "
                    "condition, trial]"
                )
            shape = (forcing.shape[0], network.readout.shape[0], conditions, trials)
            expected["forcing"] = (forcing, shape)
        for name, (tensor, shape) in expected.items():
            if tuple(tensor.shape) != shape:
                raise LapsusError(f"{name} has shape {list(tensor.shape)}; it must be {list(shape)}")
        if drives.ndim != 3 or (drives.shape[0] and drives.shape[1] != conditions):
            raise LapsusError(f"drives has shape {list(drives.shape)}; it must be [P, {conditions} conditions, drive]")
        if max(self.drive_index, default=-1) >= drives.shape[0] or min(self.drive_index, default=-1) < -1:
            raise LapsusError(
                f"drive_index runs from {min(self.drive_index)} to {max(self.drive_index)}, but there are "
                f"{drives.shape[0]} drives (-1 means none)"
            )
        rows = {len(table) for table in biases}
        if len(rows) > 1:
            raise LapsusError(f"the bias tables have {sorted(rows)} rows; every layer needs the same number")
        if rows and (max(self.time_index, default=-1) >= min(rows) or min(self.time_index, default=0) < 0):
            raise LapsusError(
                f"time_index runs from {min(self.time_index)} to {max(self.time_index)}, but the bias tables have "
                f"{min(rows)} rows"
            )
