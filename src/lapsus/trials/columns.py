"""What the columns of a trial table are called, and which unit their angles are in."""

import math
import re
from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pandas as pd

from lapsus.errors import LapsusError

__all__ = [
    "UNITS",
    "Unit",
    "from_errors",
    "infer_unit",
    "is_item",
    "item_columns",
    "number_to_angle",
    "numeric",
    "rename",
    "select",
    "subject_column",
]


class Unit(NamedTuple):
    """How angles are written: radians on the full circle for one unit, and the range of values that it allows."""

    factor: float  # radians on the full circle per unit
    low: float
    high: float


UNITS = {
    "radians": Unit(1.0, -math.pi, 2 * math.pi),
    "degrees": Unit(math.pi / 180, -180.0, 360.0),
    "degrees_180": Unit(math.pi / 90, -90.0, 180.0),
}

ALIASES = {
    "id": "subject",
    "subj": "subject",
    "participant": "subject",
    "subject_id": "subject",
    "participant_id": "subject",
    "setsize": "set_size",
    "n_items": "set_size",
    "resp": "response",
    "errors": "error",
    "resp_error": "error",
    "response_error": "error",
    "dev_rad": "error",
    "probe": "target_probe",
    "target_location": "target_probe",
    "target_loc": "target_probe",
    "target_pos": "target_probe",
    "target_position": "target_probe",
}
KNOWN = ("subject", "set_size", "response", "target", "target_probe", "cued", "response_x", "response_y")
NON_TARGET = re.compile(r"^(?:non_?targets?|(?:col_)?nt|distractors?|nt_?features?)_?(\d+)$")
NON_TARGET_PROBE = re.compile(
    r"^(?:(?:non_?target|nt|distractor)_(?:probe|location|loc|pos|position)_?(\d+)"
    r"|(?:non_?target|nt|distractor)_?(\d+)_(?:probe|location|loc|pos|position))$"
)
ITEM = re.compile(r"^(report|probe)_(\d+)$")


def rename(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """The table under the names of docs/trials.md; columns that mean nothing here keep their names."""
    names: dict[object, str] = {}
    plains = {_plain(name) for name in table.columns}
    for name in table.columns:
        plain = _plain(name)
        if found := NON_TARGET_PROBE.match(plain):
            plain = f"non_target_probe_{found[1] or found[2]}"
        elif found := NON_TARGET.match(plain):
            plain = f"non_target_{found[1]}"
        elif plain in ("distractors", "nt_features"):
            plain = "non_target_1"
        elif plain == "probe" and not _is_probe(table, name):
            plain = str(name)
        elif plain in ALIASES and ALIASES[plain] not in plains:  # a table with subject may have its own use for id
            plain = ALIASES[plain]
        elif plain not in KNOWN:
            plain = plain if ITEM.match(plain) else str(name)
        # pandas reads a second column of the same name as name.1
        if plain in names.values() or names.get(re.sub(r"\.\d+$", "", str(name))) in KNOWN:
            raise LapsusError(
                f"{source}: two columns mean '{names.get(str(name).rsplit('.', 1)[0], plain)}'; keep one of them."
            )
        names[name] = plain
    table = table.rename(columns=names)
    return _cued_first(table, source) if "cued" in table and "report_1" in table else table


def subject_column(names: Iterable[Hashable], columns: dict[str, str] | None = None) -> Hashable | None:
    """Which column of a file holds the subjects: the one that `columns` says (ours: theirs), else as `rename` does."""
    plains: dict[str, Hashable] = {_plain(name): name for name in names}
    if columns and "subject" in columns:
        return columns["subject"] if columns["subject"] in plains.values() else None
    aliases = (alias for alias, ours in ALIASES.items() if ours == "subject")
    return next((plains[plain] for plain in ("subject", *aliases) if plain in plains), None)


def numeric(column: pd.Series) -> pd.Series:
    """A column as floats, NaN where a cell is not a number; true and false are none."""
    values = column.astype(object) if pd.api.types.is_bool_dtype(column) else column
    if values.dtype == object:
        values = values.mask(values.map(lambda value: isinstance(value, bool | np.bool_)))
    return pd.to_numeric(values, errors="coerce").astype(float)


def is_item(name: str) -> bool:
    """Whether a MATLAB variable of this name holds responses or items: left out, the rest would be wrong."""
    plain = _plain(name)
    known = ALIASES.get(plain, plain) in (*KNOWN, "error")
    return known or any(pattern.match(f"{plain}_1") for pattern in (NON_TARGET, NON_TARGET_PROBE, ITEM))


def _is_probe(table: pd.DataFrame, name: Hashable) -> bool:
    """Whether a column that is just called probe holds the cued item's angle: numbers, with the other items' beside."""
    numbers = numeric(table[name])
    plains = [_plain(other) for other in table.columns]
    several = any(NON_TARGET.match(plain) for plain in plains)
    return bool(numbers.notna().mean() > 0.5) and (
        not several or any(NON_TARGET_PROBE.match(plain) for plain in plains)
    )


def select(
    table: pd.DataFrame, columns: dict[str, str] | None, where: dict[str, str] | None, source: str
) -> pd.DataFrame:
    """The rows whose columns have the values in `where`, with columns named as `columns` says (ours: theirs)."""
    there = ", ".join(map(str, table.columns))
    for name, value in (where or {}).items():
        if name not in table:
            raise LapsusError(f"{source}: there is no column {name} to select by; the table has {there}.")
        same = table[name].astype(str).str.strip() == str(value).strip()
        with suppress(ValueError):  # as numbers only where no text is the same: 01 and 1 may be two subjects
            same = same if same.any() else numeric(table[name]) == float(value)
        if not same.any():
            values = ", ".join(map(str, list(dict.fromkeys(table[name].astype(str)))[:10]))
            raise LapsusError(f"{source}: no row has {name} {value}; the column has {values}.")
        table = table[same].reset_index(drop=True)
    for ours, theirs in (columns or {}).items():
        if theirs not in table:
            raise LapsusError(f"{source}: there is no column {theirs} to be {ours}; the table has {there}.")
    if columns:
        # A column that has one of our names and is not the one that was named is somebody else's.
        aside = {name: f"{name}_in_table" for name in columns if name in table and columns[name] != name}
        table = table.rename(columns=aside).rename(columns={theirs: ours for ours, theirs in columns.items()})
    return table


def from_errors(table: pd.DataFrame, unit: str | None = None) -> pd.DataFrame:
    """A table with errors instead of responses: relative to the target, and so are its non-targets, unless it has the
    target too."""
    if "response" in table or "error" not in table or {"response_x", "response_y"} <= set(table):
        return table
    if "target" in table:
        names = [n for n in table if n in ("error", "target") or re.fullmatch(r"non_target_\d+", str(n))]
        numbers = table[names].apply(numeric)
        unit = unit if unit in UNITS else infer_unit(numbers)[0]
        circle, response = 2 * math.pi / UNITS[unit].factor, numbers["error"] + numbers["target"]
        # An error across the end of the scale comes back at its other end; one of more than a turn is a slip.
        over = (response > UNITS[unit].high) & (numbers["error"] <= circle)
        under = (response < UNITS[unit].low) & (numbers["error"] >= -circle)
        return table.assign(response=response - circle * over + circle * under)
    return table.drop(columns="error").assign(response=table["error"], target=0.0)


def number_to_angle(table: pd.DataFrame, positions: int, source: str) -> pd.DataFrame:
    """Probe columns that hold the numbers of places on a ring (from 0 or from 1) as angles in degrees."""
    names = [name for name in table if name == "target_probe" or str(name).startswith("non_target_probe_")]
    if not names:
        raise LapsusError(f"{source}: `probe_positions` needs columns target_probe, non_target_probe_1, …")
    if positions < 2:
        raise LapsusError(f"{source}: `probe_positions` is the number of places on the ring, not {positions}.")
    numbers = table[names].apply(numeric)
    values = numbers.to_numpy(float)
    values = values[np.isfinite(values)]
    first = 0 if len(values) and values.min() < 1 else 1
    if len(values) and ((values % 1 != 0).any() or values.min() < 0 or values.max() > positions - 1 + first):
        raise LapsusError(
            f"{source}: with `probe_positions={positions}` probes are whole numbers from {first} to"
            f" {positions - 1 + first}; the table has {values.min():g} to {values.max():g}."
        )
    return table.assign(**{name: (numbers[name] - first) * 360 / positions for name in names})


def _plain(name: object) -> str:
    return str(name).strip().lower().replace(" ", "_").replace("-", "_").replace(".", "_")


def _cued_first(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """Item columns report_1 …, probe_1 … with the number of the cued item (from 1) → the cued item first."""
    cued = numeric(table["cued"])
    reports = sorted((n for n in table if ITEM.match(n) and n.startswith("report")), key=_number)
    if cued.isna().any() or not cued.between(1, len(reports)).all() or (cued % 1 != 0).any():
        raise LapsusError(f"{source}: column cued must hold the number of the cued item, 1 to {len(reports)}.")
    cued = cued.to_numpy(int) - 1
    order = np.argsort(np.arange(len(reports))[None] != cued[:, None], axis=1, kind="stable")
    parts: dict[str, np.ndarray] = {}
    for kind, first, others in (("report", "target", "non_target_"), ("probe", "target_probe", "non_target_probe_")):
        columns = sorted((n for n in table if ITEM.match(n) and n.startswith(kind)), key=_number)
        if columns:
            values = np.take_along_axis(table[columns].to_numpy(), order, axis=1)
            parts |= {first if i == 0 else f"{others}{i}": values[:, i] for i in range(len(columns))}
    rest = table[[n for n in table if not ITEM.match(n) and n not in parts]]
    return pd.concat([rest, pd.DataFrame(parts, index=table.index)], axis=1)


def _number(name: str) -> int:
    return int(name.rsplit("_", 1)[1])


def item_columns(table: pd.DataFrame, source: str, called: dict[str, str]) -> tuple[list[str], list[str]]:
    """Names of the report columns and of the probe columns (possibly none), the cued item first; called: what the file
    calls those that were renamed."""
    missing = [name for name in ("response", "target") if name not in table]
    if "response" in missing and {"response_x", "response_y"} <= set(table):
        missing.remove("response")
    others = sorted((n for n in table if re.fullmatch(r"non_target_\d+", n)), key=_number)
    probes = sorted((n for n in table if re.fullmatch(r"non_target_probe_\d+", n)), key=_number)
    # Item columns are numbered without gaps, and have a probe each or none has.
    if others:
        wanted = range(min(_number(others[0]), 1), _number(others[-1]))
        missing += [f"non_target_{i}" for i in wanted if f"non_target_{i}" not in others]
    if probes and "target_probe" not in table:
        missing.append("target_probe")
    if probes or "target_probe" in table:
        partners = [n.replace("non_target_", "non_target_probe_") for n in others]
        missing += [n for n in partners if n not in probes]
        missing += [
            n.replace("_probe", "") for n in probes if n not in partners and n.replace("_probe", "") not in missing
        ]
    if missing:
        there = (f"{called[name]} (read as {name})" if name in called else str(name) for name in table.columns)
        raise LapsusError(
            f"{source}: column{'s' * (len(missing) > 1)} {', '.join(missing)} missing; a trial table needs response,"
            " target and, beyond one item, non_target_1, …; and where the items' probe feature is given, target_probe,"
            f" non_target_probe_1, … for all of them. This one has {', '.join(there)}; if one of these is"
            f" {missing[0]}, say so with `columns` ({missing[0]}=ITS_NAME)."
        )
    if "target_probe" not in table:
        return ["target", *others], []
    return ["target", *others], ["target_probe", *partners]


def fits_half_circle(values: np.ndarray) -> tuple[float, float] | None:
    """The range of orientations in degrees, 0 … 180 or −90 … 90, that holds all values; None where neither does."""
    for low, high in ((0.0, 180.0), (-90.0, 90.0)):
        if len(values) and low - 1e-9 <= values.min() and values.max() <= high + 1e-9:
            return low, high
    return None


def infer_unit(numbers: pd.DataFrame) -> tuple[str, tuple | None]:
    """The unit that the values can only be in, and a problem where two are possible."""
    values = numbers.to_numpy(float)
    values = values[np.isfinite(values)]
    # Cells out of every range must not decide: most of the values do.
    extent = np.quantile(np.abs(values), 0.99) if len(values) > 100 else np.abs(values).max(initial=0.0)
    if extent <= 2 * math.pi + 1e-9:
        return "radians", None
    if extent > 180 + 1e-9 or (values < -90 - 1e-9).mean() > 0.01:
        return "degrees", None
    text = (
        f"the values lie between {values.min():.4g} and {values.max():.4g}, so they may be degrees or degrees_180: "
        'give `unit="degrees_180"` if 0 and 180 are the same (orientations), else `unit="degrees"`'
    )
    return "degrees", (None, None, text)
