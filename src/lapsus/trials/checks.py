"""Everything that can be wrong with a trial table, found in one pass."""

import math

import numpy as np

from lapsus.errors import LapsusError
from lapsus.trials.columns import UNITS

__all__ = ["find_problems", "raise_problems"]

SHOWN = 20


def raise_problems(problems, source):
    """One error with every problem as (row or None, column, what is wrong), sorted by row."""
    if not problems:
        return
    problems = sorted(problems, key=lambda p: (-1 if p[0] is None else p[0], p[1]))
    lines = [
        f"  {'all rows' if row is None else f'row {row + 1}'}, column {column}: {text}."
        for row, column, text in problems[:SHOWN]
    ]
    if len(problems) > SHOWN:
        lines.append(f"  … and {len(problems) - SHOWN} more.")
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    raise LapsusError(f"{source}: {count} (rows are counted from 1, below the header):\n" + "\n".join(lines))


def find_problems(table, numbers, reports, probes, unit, probe_unit):
    """List of (row or None, column, what is wrong) for converted columns."""
    if not len(table):
        return [(None, "response", "there are no trials")]
    problems = []
    for names, in_unit in ((["response", *reports], unit), (probes, probe_unit)):
        for name in (n for n in names if n in numbers):
            mixed = _mixed_units(table, numbers, name, in_unit)
            problems += mixed
            if not mixed:
                problems += _outside(numbers, name, in_unit)
    for name in ("response", "target"):
        if name in numbers:
            problems += [(row, name, f"the {name} is missing") for row in np.flatnonzero(_absent(numbers, name))]
    for name in ("response_x", "response_y"):
        if name in numbers:
            problems += [(row, name, "the response is missing") for row in np.flatnonzero(_absent(numbers, name))]
    problems += _set_sizes(numbers, reports, probes)
    problems += _duplicates(numbers, reports, probes, unit, probe_unit)
    if "subject" in table:
        problems += [(row, "subject", "the subject is missing") for row in np.flatnonzero(table["subject"].isna())]
    return problems


def _absent(numbers, name):
    # Infinities are a problem of their own, reported where the column was read.
    return numbers[name].isna().to_numpy()


def _outside(numbers, name, unit):
    """Values that no angle in this unit takes."""
    low, high = UNITS[unit].low, UNITS[unit].high
    values = numbers[name].to_numpy()
    slack = 1e-6 * (high - low)
    wrong = np.isfinite(values) & ((values < low - slack) | (values > high + slack))
    return [(row, name, f"{values[row]:g} is outside {low:g} … {high:g} {unit}") for row in np.flatnonzero(wrong)]


def _mixed_units(table, numbers, name, unit):
    """Columns, or subjects within a column, that are in radians in a table of degrees or the other way round."""
    subjects = table["subject"].astype(str).to_numpy() if "subject" in table else np.full(len(table), "")
    values = numbers[name].to_numpy()
    problems, wrong = [], []
    for subject in np.unique(subjects):
        mine = (subjects == subject) & np.isfinite(values)
        if mine.sum() < 5:
            continue
        extent, whole = np.abs(values[mine]).max(), np.all(values[mine] % 1 == 0)
        if unit != "radians" and extent <= 2 * math.pi + 1e-9 and not whole:
            wrong.append((subject, np.flatnonzero(mine)[0], "radians"))
        elif unit == "radians" and np.mean(np.abs(values[mine]) > 2 * math.pi + 1e-9) > 0.5:
            wrong.append((subject, np.flatnonzero(mine)[0], "degrees"))
    for subject, row, looks in wrong:
        who = f" of subject {subject}" if subject else ""
        problems.append((row, name, f"mixed units: the values{who} look like {looks}, the table is in {unit}"))
    return problems


def _set_sizes(numbers, reports, probes):
    """Items beyond the set size, items that are missing, gaps, and probes that do not go with their item."""
    problems = []
    given = numbers[reports].notna().to_numpy()
    count = given.sum(1)
    if "set_size" in numbers:
        sizes = numbers["set_size"].to_numpy()
        for row in np.flatnonzero(np.isnan(sizes)):
            problems.append((row, "set_size", "the set size is missing"))
        bad = np.isfinite(sizes) & ((sizes < 1) | (sizes % 1 != 0))
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
            if column < count[row] or "set_size" not in numbers:
                problems.append((row, probes[column], f"given, though the trial has no item {reports[column]}"))
            else:
                problems.append((row, probes[column], f"a probe beyond the set size of {count[row]}"))
    return problems


def _duplicates(numbers, reports, probes, unit, probe_unit):
    """Items that cannot be told apart: the same probe, or without probes the same reported feature."""
    names, in_unit = (probes, probe_unit) if probes else (reports, unit)
    angles = numbers[names].to_numpy() * UNITS[in_unit].factor
    points = np.exp(1j * angles)
    problems = []
    for j in range(1, len(names)):
        for i in range(j):
            for row in np.flatnonzero(np.abs(points[:, i] - points[:, j]) < 1e-9):
                problems.append((row, names[j], f"the same value as {names[i]}: two items that cannot be told apart"))
    return problems
