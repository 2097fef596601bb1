"""How long the epochs of a trial are: a number of steps, or a range from which a number is drawn for each update.

A task with a range is a family of tasks. `fixed` makes one of them, `drawn` draws one; wherever a task is used as it
is, an epoch that varies has the middle of its range.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

import torch
from pydantic import SkipValidation

from lapsus.errors import LapsusError
from lapsus.files import shown
from lapsus.protocols import Task

_MOST_STEPS = 10_000


@dataclass(frozen=True)
class Range:
    """All whole numbers from `low` to `high`, both included, of steps or of items; `{ from = 3, to = 40 }` in an
    experiment file."""

    low: int
    high: int

    @property
    def middle(self) -> int:
        """The number where nothing says otherwise."""
        return (self.low + self.high) // 2


# What an epoch's field may hold; check_durations looks at it, for it knows the epoch's name.
Duration = Annotated[int | Range, SkipValidation]


def steps_of(duration: int | Range) -> int:
    """The steps of an epoch; the middle of the range if it varies."""
    return duration.middle if isinstance(duration, Range) else duration


def check_durations(task: Any, epochs: tuple[str, ...]) -> None:
    """Make the durations of a (frozen) task numbers of steps or ranges, or say which one is neither; the last epoch is
    the denoising delay."""
    for name in epochs:
        duration = number_or_range(f"task.{name}", getattr(task, name), "steps")
        low, high = (duration.low, duration.high) if isinstance(duration, Range) else (duration, duration)
        least = int(name == epochs[-1])
        if low < least or high > _MOST_STEPS:
            raise LapsusError(f"task.{name} has {least} to {_MOST_STEPS:,} steps, not {low if low < least else high}.")
        object.__setattr__(task, name, duration)


def number_or_range(field: str, value: Any, unit: str) -> int | Range:
    """What a field holds, a number or a range of `unit`, or a sentence that says what it should hold."""
    if isinstance(value, Range):
        value = {"from": value.low, "to": value.high}
    if not isinstance(value, dict):
        return _whole(field, value, unit)
    if set(value) != {"from", "to"}:
        raise LapsusError(
            f"{field} is a range of {unit} and needs `from` and `to`, as in {{ from = 1, to = 8 }};"
            f" it has {', '.join(map(str, value)) or 'neither'}."
        )
    low, high = (_whole(f"{field}.{end}", value[end], unit) for end in ("from", "to"))
    if low > high:
        raise LapsusError(f"{field} goes from {low} to {high}; `from` must not be larger than `to`.")
    return Range(low, high)


def _whole(field: str, value: Any, unit: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value % 1 != 0:
        raise LapsusError(
            f"{field} = {shown(value)} is not right: it must be a whole number of {unit} or, where it varies,"
            " a range such as {{ from = 1, to = 8 }}."
        )
    return int(value)


_T = TypeVar("_T", bound=Task)


def varying(task: Task) -> dict[str, Range]:
    """The epochs of a task whose duration is a range."""
    durations = {name: getattr(task, name, None) for name in task.epochs}
    return {name: duration for name, duration in durations.items() if isinstance(duration, Range)}


def fixed(task: _T, **durations: int) -> _T:
    """The task with these durations of its epochs, and the middle of any other range."""
    unknown = [name for name in durations if name not in task.epochs]
    if unknown:
        raise LapsusError(f"This task has no epoch {unknown[0]}; it has: {', '.join(task.epochs)}.")
    wanted = {name: duration.middle for name, duration in varying(task).items()} | durations
    if not wanted:
        return task
    if hasattr(task, "with_steps"):  # a task whose epochs are not fields
        return task.with_steps(wanted)
    return replace(task, **wanted)  # type: ignore[type-var]  # a task with durations is one


def drawn(task: _T, generator: torch.Generator) -> _T:
    """One of the tasks in the family: a number of steps drawn uniformly from each range, in the order of the epochs."""
    steps = {
        name: int(torch.randint(duration.low, duration.high + 1, (), generator=generator))
        for name, duration in varying(task).items()
    }
    return fixed(task, **steps)
