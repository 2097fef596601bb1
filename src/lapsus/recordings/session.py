"""One session: when each unit fired, and what happened in each trial."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from lapsus.errors import LapsusError
from lapsus.files import reason_of
from lapsus.recordings.layout import PRESETS, Layout, layout_of, left_out, standard_trials
from lapsus.trials.columns import select_rows
from lapsus.trials.options import TableOptions

__all__ = ["Session", "SpikeTrains"]

# Stretches of a session in each of which a unit that is present fires.
STRETCHES = 10
# Times as long as the trials that spikes last at most; where they last longer, they are milliseconds.
MOST_LASTING = 100
# Coarser grids than this on which all spikes may lie, in seconds.
GRIDS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


@dataclass(frozen=True)
class SpikeTrains(Sequence[np.ndarray]):
    """Spike times in seconds of some units, in order, read when they are asked for."""

    read: Callable[[int], Any]
    rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, unit: Any) -> Any:
        return np.sort(np.asarray(self.read(self.rows[unit]), dtype=float).ravel())


@dataclass(frozen=True)
class Session:
    """spikes: spike times in seconds of each unit; units: one row per unit (`rate` in spikes/s and `presence`, the
    share of the session in which it fires, beside the lab's columns); trials: as `standard_trials` gives them;
    notes: sentences about what was left out."""

    name: str
    spikes: SpikeTrains
    units: pd.DataFrame
    trials: pd.DataFrame
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def of(
        cls,
        spikes: Any,
        trials: pd.DataFrame,
        columns: "Layout | str | Mapping[str, Any] | None" = None,
        *,
        units: pd.DataFrame | None = None,
        where: str | Sequence[str] | Mapping[str, object] | None = None,
        name: str = "The session",
    ) -> "Session":
        """From spike times and a trial table.

        spikes: a sequence or mapping of arrays in seconds, or pynapple's TsGroup; trials: pandas, or pynapple's
        IntervalSet with metadata. columns: which of its columns hold what (`layout_of`). where: trials that count.
        """
        layout = layout_of(columns)
        trains, known = _spike_trains(spikes)
        units = known if units is None else units.reset_index(drop=True)
        if len(units) != len(trains):
            raise LapsusError(f"{name}: there are {len(trains)} units and {len(units)} rows about them.")
        table = trials.as_dataframe() if hasattr(trials, "as_dataframe") else trials
        table = table.rename(columns={"start": "start_time", "end": "stop_time"}) if table is not trials else table
        table = table.reset_index(drop=True)
        table = table if "id" in table else table.assign(id=table.index)
        # A preset's rules are about columns that some files lack; a lab's own are not.
        own = layout not in PRESETS.values()
        rules = [rule for rule in layout.where if own or rule.partition("=")[0].strip("! ") in table]
        for given in (rules, where):
            table = select_rows(table, TableOptions(where=given), name).reset_index(drop=True)
        if len(table) == 0:
            raise LapsusError(f"{name}: there are no trials.")
        standard, notes = standard_trials(table, layout, name)
        trains, units, more = _with_spikes(trains, units, standard, name)
        return cls(name, trains, units, standard, (*notes, *more))

    def select(
        self, where: str | Sequence[str] | None = None, min_rate: float = 0.0, min_presence: float = 0.0
    ) -> "Session":
        """The units with these values in their table's columns ("area=FEF"), at least this rate in spikes/s and share
        of the session in which they fire."""
        units = select_rows(self.units, TableOptions(where=where), f"Units of {self.name}")
        units = units[(units["rate"] >= min_rate) & (units["presence"] >= min_presence)]
        if len(units) == 0:
            raise LapsusError(f"{self.name}: no unit has the rate and presence that are asked for; lower them.")
        trains = replace(self.spikes, rows=[self.spikes.rows[row] for row in units.index])
        return replace(self, spikes=trains, units=units.reset_index(drop=True))

    @property
    def resolution(self) -> float:
        """Seconds between the finest times at which spikes can lie; 0 where that is finer than 1 ms."""
        some = np.concatenate([self.spikes[unit][:1000] for unit in range(min(len(self.spikes), 20))])
        for grid in GRIDS:
            if np.abs(some / grid - np.round(some / grid)).max() < 1e-4:
                return grid
        return 0.0


def _spike_trains(spikes: Any) -> tuple[SpikeTrains, pd.DataFrame]:
    """Spike times by unit, and what is known about the units (pynapple's metadata)."""
    units = pd.DataFrame(index=range(len(spikes)))
    if hasattr(spikes, "metadata"):
        units = pd.DataFrame(spikes.metadata).reset_index(drop=True).drop(columns="rate", errors="ignore")
    if isinstance(spikes, SpikeTrains):
        return spikes, units
    trains = list(spikes.values()) if hasattr(spikes, "values") else list(spikes)
    return SpikeTrains(lambda row: getattr(trains[row], "t", trains[row]), range(len(trains))), units


def _with_spikes(
    spikes: SpikeTrains, units: pd.DataFrame, trials: pd.DataFrame, name: str
) -> tuple[SpikeTrains, pd.DataFrame, list[str]]:
    """Units that fire during the session, with `rate` and `presence`."""
    if not len(spikes):
        raise LapsusError(f"{name}: there are no units.")
    events = [column for column in trials if str(column).startswith("at_")]
    begin, end = float(trials[events[0]].min()), float(trials[events[-1]].max())
    edges = np.linspace(begin, end, STRETCHES + 1)
    fired, last = np.zeros((len(spikes), STRETCHES), dtype=int), -np.inf
    for row in range(len(spikes)):
        try:
            times = spikes[row]
        except (ValueError, TypeError, OSError) as error:
            raise LapsusError(f"{name}: the spike times of unit {row} cannot be read: {reason_of(error)}.") from error
        if not np.isfinite(times).all():
            raise LapsusError(f"{name}: unit {row} has spike times that are not finite numbers; correct them.")
        fired[row] = np.histogram(times, edges)[0]
        last = max(last, times[-1] if len(times) else -np.inf)
    if not np.isfinite(last):
        raise LapsusError(f"{name}: all {len(spikes)} units are without spikes.")
    if not fired.any():
        raise LapsusError(
            f"{name}: no spike lies within the trials, which last from {begin:,.1f} to {end:,.1f} s; the last spike is"
            f" at {last:,.1f}. Both must be seconds on one clock."
        )
    if last - begin > MOST_LASTING * (end - begin):
        raise LapsusError(
            f"{name}: the last trial ends at {end:,.0f} s and the last spike is at {last:,.0f}, so its spike times must"
            " be milliseconds; NWB has seconds."
        )
    units = units.assign(rate=fired.sum(1) / (end - begin), presence=(fired > 0).mean(1))
    kept = np.flatnonzero(fired.sum(1)).tolist()
    notes = []
    if len(kept) < len(spikes):
        notes.append(left_out(len(spikes) - len(kept), "unit", "without spikes in the trials"))
    trains = replace(spikes, rows=[spikes.rows[row] for row in kept])
    return trains, units.iloc[kept].reset_index(drop=True), notes
