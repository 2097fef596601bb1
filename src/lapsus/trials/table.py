"""Trials: one row a trial, the cued item first, angles in radians in [-pi, pi)."""

import copy
import html
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lapsus.circular import difference, wrap
from lapsus.errors import LapsusError
from lapsus.files import write_text
from lapsus.trials.checks import Problem, find_problems, raise_problems, warn_of_half_circle
from lapsus.trials.columns import UNITS, from_errors, infer_unit, item_columns, number_to_angle, numeric, rename, select

__all__ = ["Trials"]

DEGREES = {"degrees": 180 / np.pi, "radians": 180 / np.pi, "degrees_180": 90 / np.pi}  # that are shown, in a radian


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
        self.called: dict[str, str] = {}
        self._set(table, "radians", "radians", source)

    @classmethod
    def from_table(
        cls,
        table: pd.DataFrame,
        unit: str | None = None,
        probe_unit: str | None = None,
        source: str = "table",
        *,
        columns: dict[str, str] | None = None,
        where: dict[str, str] | None = None,
        probe_positions: int | None = None,
    ) -> "Trials":
        """From a pandas table with the columns of docs/trials.md (mixtur's, MemToolbox's and bmm's names are
        understood too); columns, where and probe_positions as in read_trials."""
        trials = cls.__new__(cls)
        table = select(table.reset_index(drop=True), columns, where, source)
        theirs = dict(columns or {})
        named = rename(table, source)
        # Numbered items (report_1, … and which is cued) become several columns of ours.
        pairs = () if "report_1" in map(str.lower, map(str, table)) else zip(named, table)
        trials.called = theirs | {ours: str(name) for ours, name in pairs if ours != name}
        table = from_errors(named, unit)
        if probe_positions is not None:
            table, probe_unit = number_to_angle(table, probe_positions, source), "degrees"
        trials._set(table, unit, probe_unit, source, hint=True)
        return trials

    def _set(
        self, table: pd.DataFrame, unit: str | None, probe_unit: str | None, source: str, hint: bool = False
    ) -> None:
        for name in (unit, probe_unit):
            if name is not None and name not in UNITS:
                raise LapsusError(f"{source}: unit '{name}' is not known; use one of {', '.join(UNITS)}.")
        reports, probes = item_columns(table, source, self.called)
        names = [n for n in ["response", *reports, *probes, "set_size", "response_x", "response_y"] if n in table]
        numbers, problems = _numbers(table, names)
        features = [name for name in ["response", *reports] if name in numbers]
        if unit is None:
            unit, ambiguous = infer_unit(numbers[features])
            problems += [ambiguous] if ambiguous else []
        if probe_unit is None:
            probe_unit = unit
        problems += find_problems(table, numbers, reports, probes, unit, probe_unit)
        raise_problems(problems, source)
        if hint:
            warn_of_half_circle(numbers, features, unit)

        report = wrap(numbers[reports].to_numpy() * UNITS[unit].factor)
        self.unit, self.probe_unit, self.source = unit, probe_unit, source
        self.report = report
        self.probe = wrap(numbers[probes].to_numpy() * UNITS[probe_unit].factor) if probes else None
        self.set_size = np.isfinite(report).sum(1)
        self.point = numbers[["response_x", "response_y"]].to_numpy() if "response_x" in numbers else None
        if "response" in numbers:
            self.response = wrap(numbers["response"].to_numpy() * UNITS[unit].factor)
        else:
            self.response = wrap(np.arctan2(numbers["response_y"].to_numpy(), numbers["response_x"].to_numpy()))
        self.subject = (
            table["subject"].astype(str).to_numpy(object) if "subject" in table else np.full(len(table), "all", object)
        )
        self.columns = [str(name) for name in table]
        used = {"subject", "set_size", *names}
        self.conditions = table[[name for name in table if name not in used]].reset_index(drop=True)

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
        chosen = Trials.__new__(Trials)
        chosen.unit, chosen.probe_unit = self.unit, self.probe_unit
        chosen.source, chosen.columns, chosen.called = self.source, self.columns, self.called
        chosen.feature_name, chosen.probe_name = self.feature_name, self.probe_name
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
        return DEGREES[self.unit]

    @property
    def probe_degrees(self) -> float:
        """Degrees of the probe feature in a radian."""
        return DEGREES[self.probe_unit]

    @property
    def unit_name(self) -> str:
        """The unit in which angles of the reported feature are printed."""
        return "degrees of orientation" if self.unit == "degrees_180" else "degrees"

    @property
    def probe_unit_name(self) -> str:
        """The unit in which angles of the probe feature are printed."""
        return "degrees of orientation" if self.probe_unit == "degrees_180" else "degrees"

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
        """The same with so many units in a radian."""
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


def _item_table(values: np.ndarray, first: str, others: str) -> dict[str, np.ndarray]:
    return {first if i == 0 else others.format(i): values[:, i] for i in range(values.shape[1])}


def _numbers(table: pd.DataFrame, names: list[str]) -> tuple[pd.DataFrame, list[Problem]]:
    """The named columns as floats, infinite where a cell is not a number, and a problem for each such cell."""
    numbers = {}
    problems: list[Problem] = []
    for name in names:
        column = numeric(table[name])
        given = table[name].notna() & (table[name].astype(str).str.strip() != "")
        problems += [(row, name, "the value is infinite") for row in np.flatnonzero(np.isinf(column))]
        for row in np.flatnonzero(given & column.isna()):
            text = str(table[name].iloc[row])
            if text.strip().lower() not in ("na", "nan", "null", "none"):
                problems.append((row, name, f"'{text}' is not a number"))
                column.iloc[row] = np.inf
        numbers[name] = column
    return pd.DataFrame(numbers, index=table.index), problems


def _words(name: str | None) -> str:
    """A name as every text can hold it: at most 60 characters, all of which can be printed."""
    return "".join(c if c.isprintable() else " " for c in (name or "")[:60]).strip()
