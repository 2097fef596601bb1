"""The clock of an answer: networks count steps of 50 ms, recordings have seconds or milliseconds."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from lapsus.errors import LapsusError

__all__ = ["STEP", "Clock", "clock_of"]

# Seconds of one step of a network.
STEP = 0.05
_SECONDS = {"steps": STEP, "s": 1.0, "ms": 0.001}
_NAMES = {"step": "steps", "second": "s", "seconds": "s", "sec": "s", "msec": "ms", "millisecond": "ms"}
# A trial lasts less than this many seconds, and fewer steps; larger numbers are milliseconds.
_LONGEST_TRIAL, _MOST_STEPS = 60.0, 400


@dataclass(frozen=True)
class Clock:
    """unit: that of the times of an answer, "steps", "s" or "ms"."""

    unit: str = "steps"

    def shown(self, times: ArrayLike) -> np.ndarray:
        """Times as a figure or a sentence gives them: seconds for a network, those of the recording otherwise."""
        return np.asarray(times, dtype=float) * (STEP if self.unit == "steps" else 1.0)

    @property
    def label(self) -> str:
        """Of a time axis."""
        return f"time from cue offset ({'s' if self.unit == 'steps' else self.unit})"

    def text(self, time: float) -> str:
        """A duration or a time: "1.00 s (20 steps)", "0.35 s", "350 ms"."""
        if self.unit == "steps":
            return f"{STEP * time:z.2f} s ({time:z.0f} step{'s' * (abs(round(time)) != 1)})"
        return f"{time:z.0f} ms" if self.unit == "ms" else f"{time:z.3g} s"

    def interval(self, low: float, high: float) -> str:
        """The limits of a time, in the unit that `text` gives first."""
        low, high = self.shown([low, high])
        return f"[{low:z.0f}, {high:z.0f}]" if self.unit == "ms" else f"[{low:z.2f}, {high:z.2f}]"


def clock_of(dataset: xr.Dataset) -> Clock:
    """The clock of a dataset: the attribute `units` of its time, or what its numbers can only be.

    A network's dataset, which has a readout, counts steps, and so do whole numbers one apart, as long as there are no
    more than a trial of a network has. Other times are milliseconds where they span 60 or more, else seconds.
    """
    given = str(dataset["time"].attrs.get("units", "")).lower().rstrip(".")
    if given:
        unit = _NAMES.get(given, _NAMES.get(given.rstrip("s"), given))
        if unit not in _SECONDS:
            raise LapsusError(f"The unit of the dataset's time is {given[:40]!r}; it must be s, ms or steps.")
        return Clock(unit)
    time = dataset["time"].to_numpy().astype(float)
    counts = len(time) > 1 and np.all(np.diff(time) == 1) and float(time[0]).is_integer()
    if "readout" in dataset or (counts and len(time) <= _MOST_STEPS):
        return Clock("steps")
    return Clock("s" if np.ptp(time) < _LONGEST_TRIAL else "ms")
