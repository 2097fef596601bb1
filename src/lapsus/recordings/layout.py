"""Which columns of a lab's trial table hold what: the table of trials in our names, with the onset of each epoch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lapsus.circular import wrap
from lapsus.errors import LapsusError
from lapsus.files import from_plain, read_toml, to_plain
from lapsus.trials.columns import numeric
from lapsus.trials.units import UNITS

__all__ = ["EPOCHS", "PRESETS", "Layout", "layout_of", "left_out", "standard_trials"]

# Epochs in their order, each from its onset to that of the next; `end` is where the last one ends.
EPOCHS = ("prestimulus", "stimulus", "delay", "cue", "response")
EVENTS = (*EPOCHS, "end")
# A trial lasts less than this many seconds; larger numbers are milliseconds.
LONGEST_TRIAL = 100.0
# Fewer positions than these may lie on one side of their centre by chance.
FEW_PLACES = 20


@dataclass(frozen=True)
class Layout:
    """Columns of a trial table.

    events: epoch → the column with its onset in seconds, or "column + seconds" where it comes so long after another
    event. report, probe: one column per item, or one column with a list per trial; response: the report that was
    given. A pair (x, y) in place of an angle is turned into its angle about `centre`. cued: number of the cued item
    from 1 on, or a list of flags per trial. identity: a column with a list of names per trial, by which items are
    ordered. unit: of angles. where: rules for trials that count, as "correct=True".
    """

    events: dict[str, str]
    report: str | list[str]
    response: str
    cued: str
    probe: str | list[str] = ""
    identity: str = ""
    unit: str = "radians"
    centre: list[float] = field(default_factory=lambda: [0.0, 0.0])
    where: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        unknown = [name for name in self.events if name not in EVENTS]
        if unknown:
            raise LapsusError(f"There is no event {unknown[0][:40]!r} to name a column for; use {', '.join(EVENTS)}.")
        for name in ("stimulus", "cue", "response"):
            if name not in self.events:
                raise LapsusError(f"The columns name no event {name!r}; give the column with the onset of each epoch.")
        if len(self.centre) != 2:
            raise LapsusError(f"`centre` is a point, [x, y], not {self.centre}.")
        if self.unit not in UNITS:
            raise LapsusError(f"unit '{self.unit[:40]}' is not known; use one of {', '.join(UNITS)}.")


PRESETS = {
    # What `lapsus simulate --nwb` writes.
    "lapsus": Layout(
        events={
            "prestimulus": "start_time",
            "stimulus": "stimulus_time",
            "delay": "delay_time",
            "cue": "cue_time",
            "response": "cue_offset_time",
            "end": "stop_time",
        },
        report=["report_1", "report_2"],
        response="response",
        cued="cued",
        probe=["probe_1", "probe_2"],
    ),
    # Watters et al. 2026: two monkeys, objects on a ring.
    "dandi-000620": Layout(
        events={
            "prestimulus": "phase_fixation_time",
            "stimulus": "phase_stimulus_time",
            "delay": "phase_delay_time",
            "cue": "phase_cue_time",
            "response": "phase_response_time",
            "end": "response_time",
        },
        report="stimulus_object_positions",
        response="response_position",
        cued="stimulus_object_target",
        identity="stimulus_object_identities",
        centre=[0.5, 0.5],
        where=["broke_fixation=False"],
    ),
}


def layout_of(source: "Layout | str | Path | Mapping[str, Any] | None") -> Layout:
    """A layout by the name of a preset, from a TOML file or a mapping with its fields; None is our own."""
    if isinstance(source, Layout):
        return source
    if isinstance(source, Mapping):
        return _from_fields(source, "columns")
    name = "lapsus" if source is None else str(source)
    if name in PRESETS:
        return PRESETS[name]
    if not name.endswith(".toml"):
        raise LapsusError(f"`columns` is {name[:80]!r}; give a TOML file or one of {', '.join(PRESETS)}.")
    return _from_fields(read_toml(name), name)


def _from_fields(values: Mapping[str, Any], source: str) -> Layout:
    known = {one.name for one in fields(Layout)}
    if unknown := [name for name in values if name not in known]:
        raise LapsusError(f"{source} has an unknown field {unknown[0][:40]!r}; use {', '.join(sorted(known))}.")
    if missing := [name for name in ("report", "response", "cued", "events") if name not in values]:
        raise LapsusError(f"{source} does not say which columns hold {', '.join(missing)}.")
    try:
        return from_plain(Layout, to_plain(values))
    except (ValueError, TypeError, LookupError) as error:
        raise LapsusError(f"{source} does not describe the columns of a trial table: {error}.") from error


def standard_trials(table: pd.DataFrame, layout: Layout, source: str) -> tuple[pd.DataFrame, list[str]]:
    """Of a table with an `id` per trial, those with two items, a response and all events, in our names (`report_1`,
    `report_2`, `cued` from 1 on, `response` in radians, the event `at_cue` in seconds, …), and sentences about those
    left out."""
    reports = _items(table, layout.report, layout, source)
    two = np.array([len(row) == 2 for row in reports], dtype=bool)
    if not two.any():
        raise LapsusError(f"{source}: no trial has two items in {_name(layout.report)}, and the analyses need two.")
    response = np.array(
        [row[0] if len(row) == 1 else np.nan for row in _items(table, [layout.response], layout, source)]
    )
    cued = _cued(table, layout, [len(row) for row in reports], source)
    events = {name: _times(table, column, source) for name, column in layout.events.items()}
    if "end" not in events:
        events["end"] = _times(table, "stop_time", source)
    events = {name: events[name] for name in EVENTS if name in events}
    notes, kept = [], np.ones(len(table), dtype=bool)
    reasons = {
        "with another number of items than two": ~two,
        "without the angles of both items": np.array([not np.isfinite(row).all() for row in reports], dtype=bool),
        "without a response": ~np.isfinite(response),
        "without a cue time": ~np.isfinite(events["cue"]),
        "without the times of all events": ~np.isfinite(np.stack(list(events.values()))).all(0),
        "without a cued item": ~np.isin(cued, (1, 2)),
    }
    for reason, missing in reasons.items():
        missing &= kept
        if missing.sum() == kept.sum():
            raise LapsusError(f"{source}: all {kept.sum():,} trials are {reason}; see `columns`.")
        if missing.any():
            notes.append(left_out(missing.sum(), "trial", reason))
        kept &= ~missing
    _check_order({name: times[kept] for name, times in events.items()}, table["id"].to_numpy()[kept], source)
    report = _pairs(reports, kept, layout.report, source)
    order = np.tile([0, 1], (len(report), 1))
    if layout.identity:
        names = [_cell(value, source, layout.identity) for value in _column(table, layout.identity, source)]
        pairs = _pairs(names, kept, layout.identity, source)
        if (pairs[:, 0] == pairs[:, 1]).any():
            raise LapsusError(f"{source}: column {layout.identity} must have different names for the two items.")
        order = np.argsort(pairs, axis=1)
    found = {"cued": 1 + (order == cued[kept, None].astype(int) - 1).argmax(1), "response": wrap(response[kept])}
    columns = {"report": report}
    # Our own files have places only where the task has.
    if layout.probe and (layout is not PRESETS["lapsus"] or set(layout.probe) <= set(table)):
        probes = _items(table, layout.probe, layout, source)
        columns["probe"] = _pairs(probes, kept, layout.probe, source)
    for name, values in columns.items():
        ordered = wrap(np.take_along_axis(values, order, 1))
        found |= {f"{name}_1": ordered[:, 0], f"{name}_2": ordered[:, 1]}
    found |= {f"at_{name}": times[kept] for name, times in events.items()}
    return pd.DataFrame(found), notes


def left_out(count: int, what: str, which: str) -> str:
    """What of a recording is not analysed, in words."""
    return f"{count:,} {what} {which} is left out" if count == 1 else f"{count:,} {what}s {which} are left out"


def _pairs(values: list, kept: np.ndarray, columns: str | list[str], source: str) -> np.ndarray:
    """The two values of each trial that is kept, [trial, 2]."""
    pairs = [values[row] for row in np.flatnonzero(kept)]
    if any(np.shape(pair) != (2,) for pair in pairs):
        raise LapsusError(f"{source}: column {_name(columns)} must have one value for each of the two items.")
    return np.array(pairs)


def _name(columns: str | list[str]) -> str:
    return columns if isinstance(columns, str) else ", ".join(columns)


def _column(table: pd.DataFrame, name: str, source: str) -> pd.Series:
    if name not in table:
        there = ", ".join(map(str, table.columns))[:300]
        raise LapsusError(f"{source}: the trials have no column {name[:80]!r}; they have {there}. See `columns`.")
    return table[name]


def _cell(value: Any, source: str, column: str) -> Any:
    """One cell of a table; text is a JSON list."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise LapsusError(
            f"{source}: column {column} holds {value[:40]!r}, which is neither a number nor a JSON list."
        ) from None


def _items(table: pd.DataFrame, columns: str | list[str], layout: Layout, source: str) -> list[np.ndarray]:
    """The angles [item] of each trial in radians, from one column with a list or from one column per item."""
    names = [columns] if isinstance(columns, str) else columns
    parts = [_column(table, name, source) for name in names]
    found, places = [], []
    for cells in zip(*parts):
        values = [_cell(value, source, name) for value, name in zip(cells, names)]
        try:
            angles = np.asarray(values[0] if isinstance(columns, str) else values, dtype=float)
        except (TypeError, ValueError):
            raise LapsusError(
                f"{source}: column {_name(columns)} holds {cells[0]!r:.60}; it must hold angles."
            ) from None
        if angles.ndim == 2 and angles.shape[1] == 2:
            places.append(angles)
            x, y = (angles - np.asarray(layout.centre)).T
            angles = np.arctan2(y, x)
        elif angles.ndim == 1:
            angles = angles * UNITS[layout.unit].factor
        else:
            raise LapsusError(f"{source}: column {_name(columns)} must hold angles or (x, y) pairs, one per item.")
        found.append(angles)
    _check_centre(places, layout, _name(columns), source)
    finite = np.concatenate([angles[np.isfinite(angles)] for angles in found])
    if np.abs(finite).max(initial=0) > 2 * np.pi + 1e-3:
        raise LapsusError(
            f"{source}: column {_name(columns)} reaches {np.abs(finite).max():.4g} radians; are its angles degrees?"
            ' Give unit = "degrees" among the columns.'
        )
    return found


def _check_centre(places: list[np.ndarray], layout: Layout, name: str, source: str) -> None:
    """Positions [item, (x, y)] of each trial lie on all sides of the centre."""
    points = np.concatenate([np.empty((0, 2)), *places])
    points = points[np.isfinite(points).all(1)]
    if len(points) < FEW_PLACES:
        return
    low, high = points.min(0), points.max(0)
    if (low > layout.centre).any() or (high < layout.centre).any():
        raise LapsusError(
            f"{source}: the positions in column {name} reach from ({low[0]:.4g}, {low[1]:.4g}) to ({high[0]:.4g},"
            f" {high[1]:.4g}), and so do not lie around ({layout.centre[0]:g}, {layout.centre[1]:g}); give their"
            " `centre` among the columns."
        )


def _cued(table: pd.DataFrame, layout: Layout, items: list[int], source: str) -> np.ndarray:
    """Number of the cued item of each trial as it is listed, from 1 on; NaN where none or several are flagged, or flags
    are not as many as items."""
    numbers = []
    for value, count in zip(_column(table, layout.cued, source), items):
        cell = _cell(value, source, layout.cued)
        if not isinstance(cell, list | tuple | np.ndarray):
            numbers.append(cell)
            continue
        if not all(isinstance(flag, bool | np.bool_ | int | float) for flag in cell):
            raise LapsusError(
                f"{source}: column {layout.cued} holds {value!r:.60}; it must hold the number of the cued item, or a"
                " list of flags."
            )
        flags = np.array([bool(flag) for flag in cell])
        numbers.append(1 + int(flags.argmax()) if len(flags) == count and flags.sum() == 1 else np.nan)
    cued = numeric(pd.Series(numbers)).to_numpy()
    if np.nanmin(cued, initial=1) == 0 and not np.any(cued > 1):
        raise LapsusError(f"{source}: column {layout.cued} counts items from 0 on; count from 1, or give flags.")
    return cued


def _times(table: pd.DataFrame, column: str, source: str) -> np.ndarray:
    """Times of an event in seconds, of a column or so many seconds after one."""
    name, plus, later = (part.strip() for part in column.partition("+"))
    try:
        shift = float(later) if plus else 0.0
    except ValueError:
        raise LapsusError(
            f"An event is a column, or a column plus seconds as 'cue_on + 0.3', not {column[:60]!r}."
        ) from None
    values = _column(table, name, source)
    times = numeric(values).to_numpy()
    if values.notna().any() and not np.isfinite(times).any():
        raise LapsusError(f"{source}: column {name} holds {str(values.iloc[0])[:60]!r}; it must hold times in seconds.")
    return times + shift


def _check_order(events: dict[str, np.ndarray], trial: np.ndarray, source: str) -> None:
    names = list(events)
    for first, second in pairwise(names):
        wrong = events[second] < events[first]
        if wrong.any():
            raise LapsusError(
                f"{source}: in {wrong.sum():,} trials (first: id {trial[wrong][0]}) {second} comes before {first};"
                f" correct the columns of these events, or leave those trials out with `where` (id!={trial[wrong][0]})."
            )
    lasting = float(np.median(events[names[-1]] - events[names[0]]))
    if lasting > LONGEST_TRIAL:
        raise LapsusError(
            f"{source}: a trial lasts {lasting:,.0f} s, so its times must be milliseconds; NWB has seconds."
        )
