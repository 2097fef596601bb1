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
        _check_shape("noise", noise, self.steps, units, conditions, trials)
        _check_shape("drives", drives, None, conditions if len(drives) else None, None)
        if forcing is not None:
            _check_shape("forcing", forcing, None, network.readout.shape[0], conditions, trials)
            if len(forcing) > self.forced:
                raise LapsusError(f"forcing has {len(forcing)} steps; at most {self.forced} can be clamped")
        rows = {len(table) for table in biases}
        if len(rows) > 1:
            raise LapsusError(f"the bias tables have {sorted(rows)} rows; every layer needs the same number")
        self._check_index("drive_index", -1, len(drives), "drives (-1 means none)")
        if rows:
            self._check_index("time_index", 0, min(rows), "rows of the bias tables")

    def _check_index(self, name: str, least: int, count: int, what: str) -> None:
        """That all entries of an index name one of so many things."""
        values = getattr(self, name)
        if min(values, default=least) < least or max(values, default=-1) >= count:
            raise LapsusError(f"{name} runs from {min(values)} to {max(values)}, but there are {count} {what}")


def _check_shape(name: str, tensor: Tensor, *shape: int | None) -> None:
    """None stands for any size."""
    sizes = [given if wanted is None else wanted for given, wanted in zip(tensor.shape, shape)]
    if tensor.ndim != len(shape) or list(tensor.shape) != sizes:
        any_size = ", ".join("any" if size is None else str(size) for size in shape)
        raise LapsusError(f"{name} has shape {list(tensor.shape)}; it must be [{any_size}]")
