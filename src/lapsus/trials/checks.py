"""Everything that makes a trial table unusable, found in one pass."""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import pandas as pd

from lapsus.errors import LapsusError
from lapsus.trials.units import TURN, UNITS, fits_half_circle

__all__ = ["Angles", "Problem", "equal_items", "find_problems", "raise_problems"]

SHOWN = 20


class Problem(NamedTuple):
    """What is wrong, where (None: in all rows, in no particular column), and as what the row may be dropped."""

    row: int | np.integer | None
    column: str | None
    text: str
    reason: str | None = None


class Angles(NamedTuple):
    """Columns of angles in one unit; option is what sets the unit."""

    columns: list[str]
    unit: str
    what: str
    option: str

    def finite(self, numbers: pd.DataFrame) -> np.ndarray:
        """All of their values that are numbers."""
        values = numbers[self.columns].to_numpy()
        return values[np.isfinite(values)]


def raise_problems(problems: list[Problem], source: str) -> None:
    """One error with every problem, sorted by row."""
    if not problems:
        return
    if len(problems) == 1 and problems[0].row is None and problems[0].column is None:
        raise LapsusError(f"{source}: {problems[0].text}.")
    alike: dict[tuple[str | None, str], list] = {}
    for problem in problems:
        alike.setdefault((problem.column, problem.text), []).append(problem.row)
    entries = []
    for (column, text), rows in alike.items():
        # The same fault in many rows is one fault.
        for part in [rows] if len(rows) > 3 else [[row] for row in rows]:
            place = _rows(part) if column is None else f"{_rows(part)}, column {column}"
            entries.append((-1 if part[0] is None else part[0], column or "", f"  {place}: {text}."))
    entries.sort(key=lambda entry: entry[:2])
    lines = [line for *_, line in entries[:SHOWN]]
    if len(entries) > SHOWN:
        lines.append(f"  … and {len(entries) - SHOWN} more.")
    count = "1 problem" if len(entries) == 1 else f"{len(entries)} problems"
    reasons = ",".join(sorted({problem.reason for problem in problems if problem.reason}))
    remedy = f'; `drop="{reasons}"` leaves such rows out' if reasons else ""
    raise LapsusError(f"{source}: {count} (rows are counted from 1, below the header{remedy}):\n" + "\n".join(lines))


def _rows(rows: list) -> str:
    if rows[0] is None:
        return "all rows"
    runs = np.split(np.array(rows) + 1, np.flatnonzero(np.diff(rows) > 1) + 1)
    shown = ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs[:5])
    rest = sum(map(len, runs[5:]))
    return f"row{'s' * (len(rows) > 1)} {shown}" + (f" and {rest} more" if rest else "")


def find_problems(table: pd.DataFrame, numbers: pd.DataFrame, reported: Angles, probed: Angles) -> list[Problem]:
    """Problems of a table whose columns were converted to numbers. reported: the columns of the response (where it is
    an angle) and of the items; probed: those of the items' probes.

    A cell that cannot be read is infinite here: it was reported where it was read, and is not missing.
    """
    if not len(table):
        return [Problem(None, None, "there are no trials")]
    problems, wrong = _wrong_units(table, numbers, reported, probed)
    for angles in (reported, probed):
        for name in angles.columns:
            if name not in wrong:
                problems += _outside(numbers[name].to_numpy(), name, angles.unit)
    for name in ("response", "target", "response_x", "response_y"):
        if name in numbers:
            problems += _missing(numbers[name], name, f"the {name.split('_')[0]} is missing")
    if "subject" in table:
        problems += _missing(table["subject"], "subject", "the subject is missing")
    items = [name for name in reported.columns if name != "response"]
    return problems + _set_sizes(numbers, items) + _probes(numbers, items, probed.columns)


def _missing(values: pd.Series, name: str, text: str) -> list[Problem]:
    return [Problem(row, name, text, "missing") for row in np.flatnonzero(values.isna())]


def _outside(values: np.ndarray, name: str, unit: str) -> list[Problem]:
    """Values that no angle in this unit takes."""
    low, high = UNITS[unit].low, UNITS[unit].high
    slack = 1e-6 * (high - low)
    wrong = np.isfinite(values) & ((values < low - slack) | (values > high + slack))
    return [
        Problem(row, name, f"{values[row]:g} is outside {low:g} … {high:g} {unit}", "outside")
        for row in np.flatnonzero(wrong)
    ]


# --- Units ---


def _looks_like(values: np.ndarray, unit: str) -> str | None:
    """The unit that values are in, where it is surely another one than said."""
    if len(values) < 5:
        return None
    if unit == "radians":
        return "degrees" if np.mean(np.abs(values) > TURN) > 0.5 else None
    if np.abs(values).max() <= TURN and not np.all(values % 1 == 0):
        return "radians"
    # Half of the values in degrees have no place on a circle of 180; a few would be slips.
    if unit == "degrees_180" and np.mean((values < -90) | (values > 180)) > 0.1:
        return "degrees"
    return None


def _wrong_units(
    table: pd.DataFrame, numbers: pd.DataFrame, reported: Angles, probed: Angles
) -> tuple[list[Problem], set[str]]:
    """Problems of units, and the columns concerned: one sentence where a whole table, its features or its probes are in
    another unit than said, else one for the columns, subjects and rows that differ from the rest."""
    problems: list[Problem] = []
    wrong: set[str] = set()
    places = probed.finite(numbers) if probed.columns else np.zeros(0)
    if len(places) >= 20 and np.all(places % 1 == 0) and places.min() >= 0 and 2 <= places.max() <= 24:
        text = (
            f"the probes are whole numbers up to {places.max():g}, which looks like numbered positions: give them as"
            " angles, or the number of places on the ring with `probe_positions`"
        )
        problems.append(Problem(None, None, text))
        wrong |= set(probed.columns)
    subjects = table.groupby("subject").indices if "subject" in table else {None: np.arange(len(table))}
    unit_of = dict.fromkeys(reported.columns, reported.unit) | dict.fromkeys(probed.columns, probed.unit)
    looks: dict[tuple[str, Hashable], str | None] = {}
    for name, unit in unit_of.items():
        if name in wrong:
            continue
        values = numbers[name].to_numpy()
        for subject, rows in subjects.items():
            mine = values[rows][np.isfinite(values[rows])]
            if len(mine) >= 5:
                looks[name, subject] = _looks_like(mine, unit)
    candidates = [reported, probed]
    # Orientations on a ring of probes are two units: each is judged by its own range.
    halves = [bool(fits_half_circle(values)) for values in (reported.finite(numbers), places)]
    if reported.unit == probed.unit and halves[0] == halves[1]:
        everything = reported._replace(columns=[*reported.columns, *probed.columns])
        candidates.insert(0, everything)
    for angles in candidates:
        found = {look for (name, _), look in looks.items() if name in angles.columns}
        look = found.pop() if len(found) == 1 else None
        if look is not None and not wrong & set(angles.columns):
            problems.append(Problem(None, None, _sentence(angles, angles.finite(numbers), look)))
            wrong |= set(angles.columns)
    problems += _mixed_units(looks, unit_of, subjects, wrong)
    if not problems:
        problems += _mixed_rows(numbers, reported)
    return problems, wrong


def _mixed_units(looks: dict, unit_of: dict[str, str], subjects: dict, wrong: set[str]) -> list[Problem]:
    """Columns, and subjects within them, in another unit than the rest; adds these columns to `wrong`."""
    differ: dict[tuple[str, str, tuple | None], list[str]] = {}
    for name, unit in unit_of.items():
        own = {subject: look for (n, subject), look in looks.items() if n == name and name not in wrong}
        for look in sorted(set(filter(None, own.values()))):
            having = tuple(subject for subject in subjects if own.get(subject) == look)
            differ.setdefault((look, unit, None if len(having) == len(own) else having), []).append(name)
    problems = []
    for (look, unit, who), names in differ.items():
        wrong |= set(names)
        row = None if who is None else int(min(subjects[subject][0] for subject in who))
        some = "" if who is None else f" of subject{'s' * (len(who) > 1)} {', '.join(map(str, who))}"
        text = f"mixed units: the values{some} look like {look}, the table is in {unit}; convert them"
        problems.append(Problem(row, ", ".join(names), text))
    return problems


def _mixed_rows(numbers: pd.DataFrame, reported: Angles) -> list[Problem]:
    """Rows of a table in degrees that are in radians: all of a row's angles within 2π, in more rows than chance."""
    if reported.unit == "radians" or len(reported.columns) < 2:
        return []
    values = numbers[reported.columns].to_numpy()
    given = np.isfinite(values)
    small = np.where(given, np.abs(values) <= TURN, True).all(1) & (given.sum(1) > 1)
    small &= (np.where(given, values, 0) % 1 != 0).any(1)
    chance = (np.abs(values[given]) <= TURN).mean() ** 2 if given.any() else 1.0
    if small.sum() < 5 or small.mean() < 0.05 + chance:
        return []
    text = f"mixed units: all angles of the row look like radians, the table is in {reported.unit}; convert them"
    return [Problem(row, None, text) for row in np.flatnonzero(small)]


def _sentence(angles: Angles, values: np.ndarray, look: str) -> str:
    advice = f'give `{angles.option}="{look}"`'
    if look == "degrees" and fits_half_circle(values):
        advice += f', or `{angles.option}="degrees_180"` for orientations'
    extent = f"{values.min():.4g} and {values.max():.4g}"
    return f"{angles.what} lie between {extent}, which looks like {look}, not {angles.unit}: {advice}"


# --- Items ---


def _set_sizes(numbers: pd.DataFrame, items: list[str]) -> list[Problem]:
    """Items beyond the set size, items that are missing, and gaps between items."""
    given = numbers[items].notna().to_numpy()
    column = np.arange(len(items))
    if "set_size" not in numbers:
        gaps = given & (np.cumsum(~given, axis=1) > 0) & (column > 0)
        text = "an item after an empty one; fill the columns from the left"
        return [Problem(row, items[i], text) for row, i in zip(*np.nonzero(gaps), strict=True)]
    sizes = numbers["set_size"].to_numpy()
    problems = _missing(numbers["set_size"], "set_size", "the set size is missing")
    bad = np.isfinite(sizes) & ((sizes < 1) | (sizes != np.floor(sizes)))
    for row in np.flatnonzero(bad):
        problems.append(Problem(row, "set_size", f"{sizes[row]:g} is not a set size; it must be a whole number from 1"))
    known = (np.isfinite(sizes) & ~bad)[:, None]
    size = np.where(known[:, 0], sizes, 0)[:, None]
    beyond = known & given & (column >= size) & (column > 0)
    problems += _beyond(beyond, sizes, items)
    for row, i in zip(*np.nonzero(known & ~given & (column < size) & (column > 0)), strict=True):
        text = f"missing, though the set size is {sizes[row]:g}"
        problems.append(Problem(row, items[i], text, "missing"))
    for row in np.flatnonzero(size[:, 0] > len(items)):
        text = f"{sizes[row]:g} items, but the table has columns for {len(items)}"
        problems.append(Problem(row, "set_size", text))
    return problems


def _beyond(beyond: np.ndarray, sizes: np.ndarray, items: list[str]) -> list[Problem]:
    rows = np.flatnonzero(beyond.any(1))
    remedy = '`items_beyond_set_size="drop"` leaves these values out'
    if len(rows) > 3:
        names = [name for i, name in enumerate(items) if beyond[:, i].any()]
        text = (
            f"{len(rows):,} trials (row {rows[0] + 1} is the first) have values for items beyond their set size, in"
            f" {', '.join(names)}: {remedy}"
        )
        return [Problem(None, None, text)]
    return [
        Problem(row, items[i], f"a non-target beyond the set size of {sizes[row]:g}; {remedy}")
        for row, i in zip(*np.nonzero(beyond), strict=True)
    ]


def _probes(numbers: pd.DataFrame, items: list[str], probes: list[str]) -> list[Problem]:
    """Probes that do not go with their item."""
    if not probes:
        return []
    given, present = (numbers[names].notna().to_numpy() for names in (items, probes))
    problems = []
    for row, i in zip(*np.nonzero(given & ~present), strict=True):
        text = f"missing, though the trial has the item {items[i]}"
        problems.append(Problem(row, probes[i], text, "missing"))
    sizes = numbers["set_size"].to_numpy() if "set_size" in numbers else np.ones(len(numbers))
    for row, i in zip(*np.nonzero(present & ~given), strict=True):
        # A target or another item that is merely missing was named above.
        if i >= max(sizes[row], 1):
            absent = f"beyond the set size of {sizes[row]:g}" if "set_size" in numbers else f"without {items[i]}"
            problems.append(Problem(row, probes[i], f"the probe of an item {absent}"))
    return problems


def equal_items(angles: np.ndarray) -> np.ndarray:
    """Which trials have two items at the same angle [T]; angles [T, N] in radians."""
    points = np.exp(1j * np.where(np.isfinite(angles), angles, np.nan))
    equal = np.zeros(len(angles), bool)
    for j in range(1, angles.shape[1]):
        equal |= (np.abs(points[:, :j] - points[:, [j]]) < 1e-9).any(1)
    return equal
