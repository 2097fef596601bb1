"""Everything that can be wrong with a trial table, found in one pass."""

import math
import warnings
from collections.abc import Hashable

import numpy as np
import pandas as pd

from lapsus.errors import LapsusError, LapsusWarning
from lapsus.trials.columns import UNITS, fits_half_circle

__all__ = ["Problem", "find_problems", "raise_problems", "warn_of_half_circle"]

# Row or None, column or None, what is wrong.
Problem = tuple[int | np.integer | None, str | None, str]

SHOWN = 20
TURN = 2 * math.pi + 1e-9


def raise_problems(problems: list[Problem], source: str) -> None:
    """One error with every problem as (row or None, column or None, what is wrong), sorted by row."""
    if not problems:
        return
    if len(problems) == 1 and problems[0][:2] == (None, None):
        raise LapsusError(f"{source}: {problems[0][2]}.")
    alike: dict[tuple[str | None, str], list] = {}
    for row, column, text in problems:
        alike.setdefault((column, text), []).append(row)
    entries = []
    for (column, text), rows in alike.items():
        # The same fault in many rows is one fault.
        for part in [rows] if len(rows) > 3 else [[row] for row in rows]:
            place = [_rows(part), *([] if column is None else [f"column {column}"])]
            entries.append((-1 if part[0] is None else part[0], column or "", f"  {', '.join(place)}: {text}."))
    entries.sort(key=lambda entry: entry[:2])
    lines = [line for *_, line in entries[:SHOWN]]
    if len(entries) > SHOWN:
        lines.append(f"  … and {len(entries) - SHOWN} more.")
    count = "1 problem" if len(entries) == 1 else f"{len(entries)} problems"
    raise LapsusError(f"{source}: {count} (rows are counted from 1, below the header):\n" + "\n".join(lines))


def _rows(rows: list) -> str:
    if rows[0] is None:
        return "all rows"
    runs = np.split(np.array(rows) + 1, np.flatnonzero(np.diff(rows) > 1) + 1)
    shown = ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs[:5])
    rest = sum(map(len, runs[5:]))
    return f"row{'s' * (len(rows) > 1)} {shown}" + (f" and {rest} more" if rest else "")


def find_problems(
    table: pd.DataFrame, numbers: pd.DataFrame, reports: list[str], probes: list[str], unit: str, probe_unit: str
) -> list[Problem]:
    """List of (row or None, column or None, what is wrong) for converted columns.

    A cell that cannot be read is infinite here: it was reported where it was read, and is not missing.
    """
    if not len(table):
        return [(None, None, "there are no trials")]
    features = [name for name in ("response", *reports) if name in numbers]
    problems, wrong = _wrong_units(table, numbers, features, probes, unit, probe_unit)
    for names, in_unit in ((features, unit), (probes, probe_unit)):
        for name in names:
            if name not in wrong:
                problems += _outside(numbers, name, in_unit)
    for name, what in (
        ("response", "response"),
        ("target", "target"),
        ("response_x", "response"),
        ("response_y", "response"),
    ):
        if name in numbers:
            problems += [(row, name, f"the {what} is missing") for row in np.flatnonzero(numbers[name].isna())]
    problems += _set_sizes(numbers, reports, probes)
    if not wrong & set(probes or reports):  # in a wrong unit items fall together that do not
        problems += _duplicates(numbers, reports, probes, unit, probe_unit)
    if "subject" in table:
        problems += [(row, "subject", "the subject is missing") for row in np.flatnonzero(table["subject"].isna())]
    return problems


def warn_of_half_circle(numbers: pd.DataFrame, features: list[str], unit: str) -> None:
    """A hint where the values fill half of the circle that the unit has, and nothing else: orientations in disguise."""
    values = _finite(numbers, features)
    in_degrees = values * UNITS[unit].factor * 180 / math.pi
    half = fits_half_circle(in_degrees)
    if unit == "degrees_180" or len(values) < 50 or half is None:
        return
    # Half-filled by chance or by design is not half-filled to the brim.
    if in_degrees.min() > half[0] + 10 or in_degrees.max() < half[1] - 10:
        return
    advice = ("give " if unit == "degrees" else "give them in degrees with ") + '`unit="degrees_180"`'
    warnings.warn(
        f"All items and responses lie between {values.min():.4g} and {values.max():.4g}, which is half of the circle in"
        f" {unit}. If its two ends are the same (orientations), {advice}.",
        LapsusWarning,
        stacklevel=4,
    )


def _finite(numbers: pd.DataFrame, names: list[str]) -> np.ndarray:
    values = numbers[names].to_numpy()
    return values[np.isfinite(values)]


def _outside(numbers: pd.DataFrame, name: str, unit: str) -> list[Problem]:
    """Values that no angle in this unit takes."""
    low, high = UNITS[unit].low, UNITS[unit].high
    values = numbers[name].to_numpy()
    slack = 1e-6 * (high - low)
    wrong = np.isfinite(values) & ((values < low - slack) | (values > high + slack))
    return [(row, name, f"{values[row]:g} is outside {low:g} … {high:g} {unit}") for row in np.flatnonzero(wrong)]


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
    table: pd.DataFrame, numbers: pd.DataFrame, features: list[str], probes: list[str], unit: str, probe_unit: str
) -> tuple[list[Problem], set[str]]:
    """Problems of units, and the columns concerned: one sentence where a whole table, its features or its probes are in
    another unit than said, else one for the columns and subjects that differ from the rest."""
    problems: list[Problem] = []
    wrong: set[str] = set()
    places = _finite(numbers, probes) if probes else np.zeros(0)
    if len(places) >= 20 and np.all(places % 1 == 0) and places.min() >= 0 and 2 <= places.max() <= 24:
        text = (
            f"the probes are whole numbers up to {places.max():g}, which looks like numbered positions: give them as"
            " angles, or the number of places on the ring with `probe_positions`"
        )
        problems.append((None, None, text))
        wrong |= set(probes)
    subjects = table.groupby("subject").indices if "subject" in table else {None: np.arange(len(table))}
    looks: dict[tuple[str, Hashable], str | None] = {}
    for name in (n for n in (*features, *probes) if n not in wrong):
        values = numbers[name].to_numpy()
        for subject, rows in subjects.items():
            mine = values[rows][np.isfinite(values[rows])]
            if len(mine) >= 5:
                looks[name, subject] = _looks_like(mine, unit if name in features else probe_unit)
    kinds = [("the values", features, unit, "unit"), ("the probes", probes, probe_unit, "probe_unit")]
    # Orientations on a ring of probes are two units: each is judged by its own range.
    if unit == probe_unit and bool(fits_half_circle(_finite(numbers, features))) == bool(fits_half_circle(places)):
        kinds.insert(0, ("the values", [*features, *probes], unit, "unit"))
    for what, names, said, option in kinds:
        found = {look for (name, _), look in looks.items() if name in names}
        look = found.pop() if len(found) == 1 else None
        if look is not None and not wrong & set(names):
            problems.append((None, None, _sentence(what, _finite(numbers, names), look, said, option)))
            wrong |= set(names)
    parts: dict[tuple[str, str, tuple | None], list[str]] = {}
    for name in (*features, *probes):
        seen = {look for (n, _), look in looks.items() if n == name and look and name not in wrong}
        for look in (one for one in seen if one is not None):
            having = [subject for subject in subjects if looks.get((name, subject)) == look]
            everyone = len(having) == sum(n == name for n, _ in looks)
            said = unit if name in features else probe_unit
            parts.setdefault((look, said, None if everyone else tuple(having)), []).append(name)
    for (look, said, who), names in parts.items():
        wrong |= set(names)
        row = None if who is None else min(subjects[subject][0] for subject in who)
        some = "" if who is None else f" of subject{'s' * (len(who) > 1)} {', '.join(map(str, who))}"
        text = f"mixed units: the values{some} look like {look}, the table is in {said}; convert them"
        problems.append((row, ", ".join(names), text))
    return problems, wrong


def _sentence(what: str, values: np.ndarray, look: str, said: str, option: str) -> str:
    advice = f'give `{option}="{look}"`'
    if look == "degrees" and fits_half_circle(values):
        advice += f', or `{option}="degrees_180"` for orientations'
    return (
        f"{what} lie between {values.min():.4g} and {values.max():.4g}, which looks like {look}, not {said}: {advice}"
    )


def _set_sizes(numbers: pd.DataFrame, reports: list[str], probes: list[str]) -> list[Problem]:
    """Items beyond the set size, items that are missing, gaps, and probes that do not go with their item."""
    problems: list[Problem] = []
    given = numbers[reports].notna().to_numpy()
    if "set_size" in numbers:
        sizes = numbers["set_size"].to_numpy()
        for row in np.flatnonzero(np.isnan(sizes)):
            problems.append((row, "set_size", "the set size is missing"))
        bad = np.isfinite(sizes) & ((sizes < 1) | (sizes != np.floor(sizes)))
        for row in np.flatnonzero(bad):
            problems.append((row, "set_size", f"{sizes[row]:g} is not a set size; it must be a whole number from 1"))
        for row in np.flatnonzero(np.isfinite(sizes) & ~bad):
            size = int(sizes[row])
            for column in range(size, len(reports)):
                if given[row, column]:
                    problems.append((row, reports[column], f"a non-target beyond the set size of {size}"))
            for column in range(1, min(size, len(reports))):
                if not given[row, column]:
                    problems.append((row, reports[column], f"missing, though the set size is {size}"))
            if size > len(reports):
                problems.append((row, "set_size", f"{size} items, but the table has columns for {len(reports)}"))
    else:
        gaps = given & (np.cumsum(~given, axis=1) > 0)
        for row, column in zip(*np.nonzero(gaps & (np.arange(len(reports)) > 0))):
            problems.append((row, reports[column], "an item after an empty one; fill the columns from the left"))
    if probes:
        present = numbers[probes].notna().to_numpy()
        for row, column in zip(*np.nonzero(given & ~present)):
            problems.append((row, probes[column], f"missing, though the trial has the item {reports[column]}"))
        for row, column in zip(*np.nonzero(present & ~given)):
            # A target or another item that is merely missing was said above.
            if "set_size" not in numbers and column:
                problems.append((row, probes[column], f"given, though the trial has no item {reports[column]}"))
            elif "set_size" in numbers and column >= max(sizes[row], 1):
                problems.append((row, probes[column], f"a probe beyond the set size of {sizes[row]:g}"))
    return problems


def _duplicates(
    numbers: pd.DataFrame, reports: list[str], probes: list[str], unit: str, probe_unit: str
) -> list[Problem]:
    """Items that cannot be told apart: the same probe, or without probes the same reported feature."""
    names, in_unit = (probes, probe_unit) if probes else (reports, unit)
    angles = numbers[names].to_numpy() * UNITS[in_unit].factor
    points = np.exp(1j * np.where(np.isfinite(angles), angles, np.nan))
    problems: list[Problem] = []
    for j in range(1, len(names)):
        for i in range(j):
            for row in np.flatnonzero(np.abs(points[:, i] - points[:, j]) < 1e-9):
                problems.append((row, names[j], f"the same value as {names[i]}: two items that cannot be told apart"))
    return problems
