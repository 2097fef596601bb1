"""Trials: one row per trial, the cued item first, angles in radians in [-pi, pi)."""

import copy
import html
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lapsus.circular import difference, wrap
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.files import write_text
from lapsus.trials.checks import Angles, Problem, equal_items, find_problems, raise_problems
from lapsus.trials.columns import from_errors, item_columns, name_columns, number_to_angle, numeric, select_rows
from lapsus.trials.options import DROP, TableOptions
from lapsus.trials.suspicions import half_circle, relative_non_targets, repeated_rows, suspicions
from lapsus.trials.units import UNITS, infer_unit

__all__ = ["Trials"]


class Trials:
    """Validated trials of a delayed-estimation experiment.

    response  [T]     reported feature, radians in [-pi, pi)
    report    [T, N]  reported feature of every item, the cued item in column 0, NaN beyond the set size
    probe     [T, N]  probe feature of every item, in the same order; None where the table has none
    set_size  [T]     items on the screen
    subject   [T]     who answered (strings)
    point     [T, 2]  response as a point in the plane (network outputs); None for angles
    conditions        pandas table of every other column, as it came
    columns           names of the columns that the table had
    called            what it called those that were renamed: {"response": "resp_ori"}
    unit, probe_unit  what the table's angles were in
    dropped           rows that were left out, by reason: {"missing": 3, "where": 20}
    notes             sentences about what was left out, or is probably not what it seems
    feature_name, probe_name  what to call the features in texts and plots

    >>> trials = lapsus.Trials(response=[0.1, 2.0], report=[[0.0, 2.0], [0.0, 2.0]])
    >>> trials
    Trials(2 trials, 1 subject, set sizes 2, without probe)
    """

    feature_name, probe_name = "report", "probe"

    def __init__(
        self,
        response: ArrayLike,
        report: ArrayLike,
        probe: ArrayLike | None = None,
        *,
        subject: ArrayLike | None = None,
        point: ArrayLike | None = None,
        conditions: pd.DataFrame | dict | None = None,
        source: str = "trials",
    ) -> None:
        """From arrays in radians; the cued item is column 0 of report and probe."""
        columns = {"response": np.asarray(response, float).reshape(-1)}
        report = np.asarray(report, float)
        if report.ndim != 2 or len(report) != len(columns["response"]):
            raise LapsusError(
                f"{source}: report has shape {report.shape}; it must be [trials, items] with "
                f"{len(columns['response'])} trials, as response has."
            )
        columns |= _item_table(report, "target", "non_target_{}")
        if probe is not None:
            probe = np.asarray(probe, float)
            if probe.shape != report.shape:
                raise LapsusError(
                    f"{source}: probe has shape {probe.shape} and report {report.shape}; they must agree."
                )
            columns |= _item_table(probe, "target_probe", "non_target_probe_{}")
        if point is not None:
            point = np.asarray(point, float)
            if point.shape != (len(report), 2):
                raise LapsusError(f"{source}: point has shape {point.shape}; it must be [trials, 2].")
            columns["response_x"], columns["response_y"] = point.T
        if subject is not None:
            columns["subject"] = np.asarray(subject)
        table = pd.DataFrame(columns)
        if conditions is not None:
            table = pd.concat([table, pd.DataFrame(conditions).reset_index(drop=True)], axis=1)
        self._clean(table, {}, TableOptions("radians", "radians"), source)

    @classmethod
    def from_table(
        cls,
        table: pd.DataFrame,
        unit: str | None = None,
        probe_unit: str | None = None,
        source: str = "table",
        **options: Any,
    ) -> "Trials":
        """From a pandas table with the columns of docs/trials.md (mixtur's, MemToolbox's and bmm's names are
        understood too); options as in `read_trials`."""
        return cls._from_options(table, TableOptions(unit, probe_unit, **options), source)

    @classmethod
    def _from_options(cls, table: pd.DataFrame, options: TableOptions, source: str) -> "Trials":
        trials = cls.__new__(cls)
        rows = len(table)
        table = select_rows(table, options, source).reset_index(drop=True)
        excluded = rows - len(table)
        named, called, unused = name_columns(table, options, source)
        read = from_errors(named, options.unit)
        if options.probe_positions is not None:
            read = number_to_angle(read, options.probe_positions, source)
        notes = _unused_items(unused, read, source)
        numbers, reported = trials._clean(read, called, options, source, excluded)
        kept = named.loc[numbers.index]
        trials.notes += notes + trials._equal_items_note() + suspicions(kept, numbers, reported, called)
        if hint := half_circle(numbers, reported):
            warnings.warn(hint, LapsusWarning, stacklevel=4)
        errors_alone = "error" in named and "target" not in named  # whose non-targets are relative to it by definition
        if not errors_alone:
            trials._place_non_targets(options)
        return trials.name_features(options.feature_name, options.probe_name)

    def _clean(
        self, table: pd.DataFrame, called: dict[str, str], options: TableOptions, source: str, excluded: int = 0
    ) -> tuple[pd.DataFrame, Angles]:
        """Check the table and keep its rows that are not to be dropped, in radians; return their numbers. excluded: how
        many rows `where` has left out already."""
        reports, probes = item_columns(table, source, called)
        columns = ["response", *reports, *probes, "set_size", "response_x", "response_y"]
        numbers, problems = _numbers(table, [name for name in columns if name in table])
        if options.items_beyond_set_size == "drop" and "set_size" in numbers:
            for names in filter(None, (reports, probes)):
                beyond = np.arange(len(names)) >= numbers[["set_size"]].to_numpy()
                numbers[names] = numbers[names].mask(beyond)
        features = [name for name in ("response", *reports) if name in numbers]
        unit = options.unit
        if unit is None:
            unit, ambiguous = infer_unit(numbers[features])
            problems += [Problem(None, None, ambiguous)] if ambiguous else []
        probe_unit = "degrees" if options.probe_positions is not None else options.probe_unit or unit
        reported = Angles(features, unit, "the values", "unit")
        probed = Angles(probes, probe_unit, "the probes", "probe_unit")
        problems += find_problems(table, numbers, reported, probed)
        report = numbers[reports].to_numpy() * UNITS[unit].factor
        probe = numbers[probes].to_numpy() * UNITS[probe_unit].factor
        reasons = _droppable(problems, table, report, probe, options)
        dropped = np.zeros(len(table), bool)
        self.dropped: dict[str, int] = {"where": excluded} if excluded else {}
        for reason, rows in reasons.items():
            self.dropped[reason] = int((rows & ~dropped).sum())
            dropped |= rows
        raise_problems([p for p in problems if p.row is None or not dropped[p.row]], source)
        if len(table) and dropped.all():
            raise LapsusError(f"{source}: `drop` leaves no trials; {_dropped_note(self.dropped)}")
        self.called, self.unit, self.probe_unit, self.source = called, unit, probe_unit, source
        numbers = numbers[~dropped]
        self._keep(table[~dropped], numbers, report[~dropped], probe[~dropped] if probes else None)
        self.notes = [_dropped_note(self.dropped)] if any(self.dropped.values()) else []
        return numbers, reported

    def _keep(self, table: pd.DataFrame, numbers: pd.DataFrame, report: np.ndarray, probe: np.ndarray | None) -> None:
        self.report = wrap(report)
        self.probe = None if probe is None else wrap(probe)
        self.set_size = np.isfinite(report).sum(1)
        self.point = numbers[["response_x", "response_y"]].to_numpy() if "response_x" in numbers else None
        if "response" in numbers:
            self.response = wrap(numbers["response"].to_numpy() * UNITS[self.unit].factor)
        else:
            self.response = wrap(np.arctan2(numbers["response_y"].to_numpy(), numbers["response_x"].to_numpy()))
        everyone = np.full(len(table), "all", object)
        self.subject = table["subject"].astype(str).to_numpy(object) if "subject" in table else everyone
        self.columns = [str(name) for name in table]
        used = {"subject", *numbers}
        self.conditions = table[[name for name in table if name not in used]].reset_index(drop=True)

    def _equal_items_note(self) -> list[str]:
        notes = []
        for values, feature in ((self.report, "reported feature"), (self.probe, "probe feature")):
            count = 0 if values is None else int(equal_items(values).sum())
            if count:
                have = "has" if count == 1 else "have"
                notes.append(
                    f"{count:,} of {len(self):,} trials {have} two items with the same {feature}. They are kept: such"
                    ' items share the responsibility for a response (`drop="equal"` leaves these trials out).'
                )
        return notes

    def _place_non_targets(self, options: TableOptions) -> None:
        """Non-targets that are differences from the response or the target as features; refuse them unasked."""
        if options.non_targets is None and (look := relative_non_targets(self.response, self.report)):
            other = {"relative_to_target", "relative_to_response"}.difference({look}).pop()
            raise LapsusError(
                f"{self.source}: the values of the non-targets are centred on 0 or leave it out, and are independent of"
                f' the target: they look like differences. Give `non_targets="{look}"` (or'
                f' "{other}") to convert them, or `non_targets="absolute"` if they are features like the target\'s.'
            )
        if options.non_targets in ("relative_to_response", "relative_to_target"):
            anchor = self.response if options.non_targets == "relative_to_response" else self.report[:, 0]
            self.report[:, 1:] = wrap(self.report[:, 1:] + anchor[:, None])
            self.notes.append(f"Non-targets were given {options.non_targets.replace('_', ' ')} and were converted.")

    def __len__(self) -> int:
        return len(self.response)

    def __repr__(self) -> str:
        sizes = ", ".join(str(n) for n in np.unique(self.set_size))
        probe = "with" if self.probe is not None else "without"
        subjects = len(np.unique(self.subject))
        return (
            f"Trials({len(self)} trials, {subjects} subject{'s' * (subjects != 1)}, set sizes {sizes}, {probe} probe)"
        )

    def _repr_html_(self) -> str:
        table = self[:5]._table(self.degrees, self.probe_degrees)
        first = table.to_html(index=False, border=0, float_format=lambda value: f"{value:.1f}")
        unit = self.unit_name
        if self.probe is not None and self.probe_unit_name != unit:
            unit += f" (probes in {self.probe_unit_name})"
        return f"<p><b>{html.escape(repr(self))}</b>; the first of them, in {unit}:</p>{first}"

    def __getitem__(self, rows: np.ndarray | slice | Sequence[int]) -> "Trials":
        """The trials at a mask, slice or list of rows."""
        rows = np.arange(len(self))[rows]
        chosen = copy.copy(self)
        chosen.set_size, chosen.subject = self.set_size[rows], self.subject[rows]
        width = max(int(chosen.set_size.max()), 1) if len(rows) else 1
        chosen.report = self.report[rows, :width]
        chosen.probe = None if self.probe is None else self.probe[rows, :width]
        chosen.response = self.response[rows]
        chosen.point = None if self.point is None else self.point[rows]
        chosen.conditions = self.conditions.iloc[rows].reset_index(drop=True)
        return chosen

    def with_responses(self, response: np.ndarray, point: np.ndarray | None = None) -> "Trials":
        """The same trials with other responses [T] (radians), and points [T, 2]."""
        other = copy.copy(self)  # whatever else they have is shared: predictive data sets come in dozens
        other.response, other.point = wrap(np.asarray(response, float)), point
        return other

    def name_features(self, feature: str | None = None, probe: str | None = None) -> "Trials":
        """Say what the reported and the probe feature are called (orientation, position, …)."""
        self.feature_name = _words(feature) or self.feature_name
        self.probe_name = _words(probe) or self.probe_name
        return self

    @property
    def degrees(self) -> float:
        """Degrees of the reported feature in a radian: 180/π, or 90/π for orientations, whose circle is 180°."""
        return UNITS[self.unit].degrees

    @property
    def probe_degrees(self) -> float:
        """Degrees of the probe feature in a radian."""
        return UNITS[self.probe_unit].degrees

    @property
    def unit_name(self) -> str:
        """The unit in which angles of the reported feature are printed."""
        return UNITS[self.unit].name

    @property
    def probe_unit_name(self) -> str:
        """The unit in which angles of the probe feature are printed."""
        return UNITS[self.probe_unit].name

    @property
    def error(self) -> np.ndarray:
        """Response minus target, the short way round [T]."""
        return difference(self.response, self.report[:, 0])

    @property
    def deviation(self) -> np.ndarray:
        """Response minus every item's report feature [T, N]."""
        return difference(self.response[:, None], self.report)

    def distance(self, feature: str) -> np.ndarray:
        """Signed difference of every item from the cued one in "probe" or "report" [T, N]."""
        values = self.report if feature == "report" else self.probe
        if values is None:
            raise LapsusError(
                f"{self.source}: the table has no probe feature, which model '{feature}' needs; add the columns "
                "target_probe, non_target_probe_1, … or use model 'none', 'constant' or 'report'."
            )
        return difference(values, values[:, :1])

    @property
    def table(self) -> pd.DataFrame:
        """The trials as a pandas table in the documented columns, in radians."""
        return self._table()

    def _table(self, unit: float = 1.0, probe_unit: float = 1.0) -> pd.DataFrame:
        """The same in units of which a radian has `unit` (of the probe feature: `probe_unit`)."""
        columns = {"subject": self.subject, "set_size": self.set_size, "response": self.response * unit}
        columns |= _item_table(self.report * unit, "target", "non_target_{}")
        if self.probe is not None:
            columns |= _item_table(self.probe * probe_unit, "target_probe", "non_target_probe_{}")
        if self.point is not None:
            columns["response_x"], columns["response_y"] = self.point.T
        return pd.concat([pd.DataFrame(columns), self.conditions], axis=1)

    def to_csv(self, path: str | Path) -> None:
        """Write the table, in radians."""
        write_text(path, self.table.to_csv(index=False))


def _droppable(
    problems: list[Problem], table: pd.DataFrame, report: np.ndarray, probe: np.ndarray, options: TableOptions
) -> dict[str, np.ndarray]:
    """For every reason that `drop` names the rows that it leaves out [T]."""
    found = {}
    for reason in options.drop:
        rows = np.zeros(len(table), bool)
        rows[[int(p.row) for p in problems if p.reason == reason and p.row is not None]] = True
        if reason == "equal":
            rows = equal_items(report) | equal_items(probe)
        elif reason == "repeated":
            rows = repeated_rows(table)
        found[reason] = rows
    return found


def _dropped_note(dropped: dict[str, int]) -> str:
    total = sum(dropped.values())
    because = DROP | {"where": "`where` excludes them"}
    reasons = "; ".join(f"{count:,} because {because[reason]}" for reason, count in dropped.items())
    return f"{total:,} trial{'s were' if total != 1 else ' was'} left out: {reasons}."


def _unused_items(unused: list[str], table: pd.DataFrame, source: str) -> list[str]:
    """Say which columns look like items and were not used; refuse a table that would then have one item a trial."""
    if not unused:
        return []
    listed = ", ".join(unused)
    subject = f"the column {listed} looks" if len(unused) == 1 else f"the columns {listed} look"
    if any(str(name).startswith("non_target_") for name in table):
        return [f"Not used, though {subject} like items: if they are, say which is which with `columns`."]
    raise LapsusError(
        f"{source}: no column was recognised as a non-target, but {subject} like items: say which is"
        f" which with `columns` (non_target_1={unused[0]}), or give another name to what is not an item"
        f" (condition={unused[0]})."
    )


def _item_table(values: np.ndarray, first: str, others: str) -> dict[str, np.ndarray]:
    return {first if i == 0 else others.format(i): values[:, i] for i in range(values.shape[1])}


def _numbers(table: pd.DataFrame, names: list[str]) -> tuple[pd.DataFrame, list[Problem]]:
    """The named columns as floats, infinite where a cell is not a number, and a problem for each such cell."""
    numbers = {}
    problems: list[Problem] = []
    for name in names:
        column = numeric(table[name])
        given = table[name].notna() & (table[name].astype(str).str.strip() != "")
        problems += [Problem(row, name, "the value is infinite", "missing") for row in np.flatnonzero(np.isinf(column))]
        for row in np.flatnonzero(given & column.isna()):
            text = str(table[name].iloc[row])
            if text.strip().lower() not in ("na", "nan", "null", "none"):
                problems.append(Problem(row, name, f"'{text}' is not a number", "missing"))
                column.iloc[row] = np.inf
        numbers[name] = column
    return pd.DataFrame(numbers, index=table.index), problems


def _words(name: str | None) -> str:
    """A name as every text can hold it: at most 60 characters, all of which can be printed."""
    return "".join(c if c.isprintable() else " " for c in (name or "")[:60]).strip()
