"""BIDS data sets: behavioural tables of several subjects, with what their names and JSON files say."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lapsus.errors import LapsusError
from lapsus.files import read_json
from lapsus.trials.columns import name_columns, numeric, subject_column
from lapsus.trials.options import TableOptions
from lapsus.trials.units import UNITS, infer_unit

__all__ = ["bids_files", "bids_table"]

# Folders of a data set that hold copies: what was computed from the raw data, and what these were made of.
_COPIES = {"derivatives", "sourcedata"}


def bids_files(folder: Path) -> list[Path]:
    """The behavioural tables of a BIDS data set."""
    return sorted(file for file in folder.rglob("*_beh.tsv") if not _COPIES & set(file.relative_to(folder).parts))


def bids_table(
    tables: dict[Path, pd.DataFrame], path: Path, options: TableOptions
) -> tuple[pd.DataFrame, TableOptions]:
    """All files as one table, each in its own unit before and in one after, and the options with what the JSON files
    say. Tasks are not pooled: where there are several, `where` must choose one."""
    parts, units = [], []
    described: dict[str, str] = {}
    for file, table in tables.items():
        facts = _facts(file)
        for name in ("session", "task"):
            if name in facts and not {str(c).lower() for c in table} & {name, f"{name}_id"}:
                table[name] = facts[name]
        if "subject" in facts and subject_column(table.columns, options.columns) is None:
            table["subject"] = facts["subject"]
        parts.append(table)
        units.append(options.unit or facts.get("unit") or _own_unit(table, options, file))
        described = facts | described
    tasks = sorted({str(task) for part in parts if "task" in part for task in part["task"].unique()})
    if len(tasks) > 1 and not any(rule.column == "task" for rule in options.where):
        raise LapsusError(
            f"{path}: has the tasks {', '.join(tasks)}, which are not pooled; choose one with"
            f' `where="task={tasks[0]}"`.'
        )
    unit = options.unit or described.get("unit")  # None: inferred again from all files, and asked where ambiguous
    if len(set(units)) > 1:
        if "degrees_180" in units:
            raise LapsusError(f"{path}: some files are in degrees_180 and others are not; read them apart.")
        parts = [_in_degrees(part, own, options, path) for part, own in zip(parts, units, strict=True)]
        unit = "degrees"
    feature = options.feature_name or described.get("feature_name")
    options = replace(options, unit=unit, feature_name=feature)
    return pd.concat(parts, ignore_index=True), options


def _angles(table: pd.DataFrame, options: TableOptions, file: Path) -> tuple[pd.DataFrame, list[str]]:
    """The table under our names, and the columns of its reported feature."""
    named = name_columns(table, options, str(file))[0]
    return named, [n for n in named if re.fullmatch(r"response|error|target|non_target_\d+", str(n))]


def _own_unit(table: pd.DataFrame, options: TableOptions, file: Path) -> str:
    named, names = _angles(table, options, file)
    return infer_unit(named[names].apply(numeric))[0]


def _in_degrees(table: pd.DataFrame, unit: str, options: TableOptions, path: Path) -> pd.DataFrame:
    if unit == "degrees":
        return table
    named, names = _angles(table, options, path)
    factor = np.degrees(UNITS[unit].factor)
    probes = [] if options.probe_unit else [n for n in named if "target_probe" in str(n)]
    theirs = [table.columns[named.columns.get_loc(name)] for name in (*names, *probes)]
    return table.assign(**{name: numeric(table[name]) * factor for name in theirs})


def _facts(path: Path) -> dict[str, str]:
    """What a BIDS file's name and its JSON say: subject, session, task, unit and feature_name, where they do.

    The JSON beside the file counts, or one higher up whose name is contained in the file's (BIDS' inheritance)."""
    facts = {key: found[1] for key, found in _entities(path).items() if found}
    words = set(path.stem.split("_"))
    for place in (path.parent, *path.parent.parents[:3]):
        for side in sorted(place.glob("*_beh.json"), key=lambda p: -len(p.stem)):
            if set(side.stem.split("_")) <= words:
                return facts | _described(side)
    return facts


def _entities(path: Path) -> dict[str, re.Match[str] | None]:
    return {
        "subject": re.search(r"(?:^|_)sub-([A-Za-z0-9]+)", path.stem),
        "session": re.search(r"(?:^|_)ses-([A-Za-z0-9]+)", path.stem),
        "task": re.search(r"(?:^|_)task-([A-Za-z0-9]+)", path.stem),
    }


def _described(side: Path) -> dict[str, str]:
    try:
        columns = read_json(side, Any, most=1 << 22)
    except LapsusError as error:
        raise LapsusError(f"{side}: is not a JSON file that can be read.") from error
    found: dict[str, str] = {}
    for name in ("target", "response"):
        about = columns.get(name) if isinstance(columns, dict) else None
        if not isinstance(about, dict):
            continue
        unit = str(about.get("Units", "")).lower()
        if "unit" not in found and unit.startswith(("deg", "°")):
            found["unit"] = "degrees_180" if "180" in unit or "orient" in unit else "degrees"
        if "unit" not in found and unit.startswith("rad"):
            found["unit"] = "radians"
        if "feature_name" not in found and about.get("LongName"):
            found["feature_name"] = str(about["LongName"])
    return found
