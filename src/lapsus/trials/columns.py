"""What the columns of a trial table are called, and which rows of it count."""

import math
import re
from collections.abc import Hashable, Iterable
from contextlib import suppress

import numpy as np
import pandas as pd

from lapsus.errors import LapsusError
from lapsus.trials.options import TableOptions
from lapsus.trials.units import UNITS, infer_unit

__all__ = [
    "from_errors",
    "item_columns",
    "name_columns",
    "number_to_angle",
    "numeric",
    "plain_name",
    "role_of",
    "select_rows",
    "subject_column",
]

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
ROLES = ("subject", "set_size", "response", "error", "target", "target_probe", "cued", "response_x", "response_y")
_PLACE = "(?:probe|location|loc|pos|position)"
NON_TARGET = re.compile(r"^(?:non_?targets?|(?:col_)?nt|distractors?|nt_?features?)_?(\d*)$")
NON_TARGET_PROBE = re.compile(
    rf"^(?:(?:non_?target|nt|distractor)_{_PLACE}_?(\d*)|(?:non_?target|nt|distractor)_?(\d+)_{_PLACE})$"
)
NUMBERED_ITEM = re.compile(r"^(report|probe)_(\d+)$")
# Names that people give to items, recognised or not.
ITEM_LIKE = re.compile(r"non_?target|distract|lure|foil|(?:^|_)nt(?:_|\d|$)|^(?:item|stim|stimulus)_?\d+$")
MOST_ITEMS = 99
# What flags are as numbers, where a column has numbers.
FLAGS = {"True": "1", "False": "0"}


def plain_name(name: object) -> str:
    """A column's name in lower case, with underscores for whatever separates its words."""
    return re.sub(r"[ .-]", "_", str(name)[:200].strip().lower())


def role_of(name: object) -> str | None:
    """Our name for a column of this name: response, non_target_2, …; None where it means nothing here."""
    plain = plain_name(name)
    if found := NON_TARGET_PROBE.match(plain):
        return f"non_target_probe_{_item_number(found[1] or found[2], plain)}"
    if found := NON_TARGET.match(plain):
        return f"non_target_{_item_number(found[1], plain)}"
    if found := NUMBERED_ITEM.match(plain):
        _item_number(found[2], plain)
        return plain
    return ALIASES.get(plain, plain if plain in ROLES else None)


def _item_number(digits: str | None, plain: str) -> int:
    """Items are numbered from 1 on, so a date at the end of a name is a slip; one without a number is the only one."""
    if digits and (len(digits) > 4 or int(digits) > MOST_ITEMS):
        raise LapsusError(f"column {plain[:80]}: items are numbered up to {MOST_ITEMS}.")
    return int(digits or 1)


def _family(role: str) -> str:
    """Roles that are given together: naming one of the probes by hand means naming all of them."""
    if "probe" in role:
        return "probe"
    if role.startswith("non_target"):
        return "non_target"
    return "response" if role in ("error", "response_x", "response_y") else role


def subject_column(names: Iterable[Hashable], columns: dict[str, str]) -> Hashable | None:
    """Which column of a file holds the subjects: the one that `columns` says (ours: theirs), else by its name."""
    names = list(names)
    if "subject" in columns:
        return columns["subject"] if columns["subject"] in names else None
    found = [name for name in names if role_of(name) == "subject"]
    return min(found, key=lambda name: plain_name(name) != "subject", default=None)


def numeric(column: pd.Series) -> pd.Series:
    """A column as floats, NaN where a cell is not a number; true and false are not numbers."""
    values = column.astype(object) if pd.api.types.is_bool_dtype(column) else column
    if values.dtype == object:
        values = values.mask(values.map(lambda value: isinstance(value, bool | np.bool_)))
    return pd.to_numeric(values, errors="coerce").astype(float)


def _is_angle(column: pd.Series) -> bool:
    """Whether a column can hold angles: mostly numbers, and not a mere flag."""
    numbers = numeric(column)
    return bool(numbers.notna().mean() > 0.5) and numbers.nunique() > 2


def select_rows(table: pd.DataFrame, options: TableOptions, source: str) -> pd.DataFrame:
    """The rows that `where` keeps."""
    for name, value, equal in options.where:
        if name not in table:
            there = ", ".join(map(str, table.columns))
            raise LapsusError(f"{source}: there is no column {name} to select by; the table has {there}.")
        same = table[name].astype(str).str.strip() == value.strip()
        with suppress(ValueError):  # as numbers only where no text is the same: 01 and 1 may be two subjects
            same = same if same.any() else numeric(table[name]) == float(FLAGS.get(value, value))
        if not same.any():
            values = ", ".join(map(str, list(dict.fromkeys(table[name].astype(str)))[:10]))
            raise LapsusError(f"{source}: no row has {name} {value}; the column has {values}.")
        kept = same if equal else ~same
        if not kept.any():
            raise LapsusError(f"{source}: every row has {name} {value}, so `where` leaves no trials.")
        table = table[kept]
    return table


def name_columns(
    table: pd.DataFrame, options: TableOptions, source: str
) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """The table under the names of docs/trials.md, what it called the columns that were renamed (ours: theirs), and
    its columns that look like items and were not taken for any.

    Columns that mean nothing here keep their names. Where `columns` names a role, no other column is guessed for it.
    """
    given = options.columns
    for ours, theirs in given.items():
        if theirs not in table:
            there = ", ".join(map(str, table.columns))
            raise LapsusError(f"{source}: there is no column {theirs} to be {ours}; the table has {there}.")
    settled = {_family(ours) for ours in given}
    guessed = _guess(table, settled, set(given.values()), source)
    names = guessed | {theirs: ours for ours, theirs in given.items()}
    for name in table.columns:
        if name not in names and name in given:
            names[name] = f"{name}_in_table"  # has one of our names, and is not the column that was meant
    unused = [
        str(name)
        for name in table.columns
        if name not in names and ITEM_LIKE.search(plain_name(name)) and role_of(name) != name and _is_angle(table[name])
    ]
    named = table.rename(columns=names)
    if "cued" in named and "report_1" in named:
        # Numbered items (report_1, … and which is cued) become several columns of ours.
        return _cued_first(named, source), given, unused
    called = {ours: str(theirs) for theirs, ours in guessed.items() if ours != theirs}
    return named, called | given, unused


def _guess(table: pd.DataFrame, settled: set[str], taken: set[str], source: str) -> dict[Hashable, str]:
    """theirs → ours by their names, for roles that are not settled."""
    by_role: dict[str, list[Hashable]] = {}
    for name in table.columns:
        # pandas reads a second column of the same name as name.1
        first = re.sub(r"\.\d+$", "", str(name))
        role = role_of(first if first in table.columns else name)
        if role is not None and name not in taken and _family(role) not in settled:
            by_role.setdefault(role, []).append(name)
    numbered = sum(role.startswith("non_target_") and "probe" not in role for role in by_role) > 1
    guessed: dict[Hashable, str] = {}
    for role, names in by_role.items():
        names = [name for name in names if _means(table, name, role, numbered, by_role)]
        exact = [name for name in names if plain_name(name) == role]
        twice = any(re.sub(r"\.\d+$", "", str(name)) in exact for name in names if name not in exact)
        if len(exact) == 1 and not twice and _family(role) not in ("probe", "non_target"):
            names = exact  # a table with subject may have its own use for id
        if len(names) > 1:
            every = ", and so on for every item" if _family(role) in ("probe", "non_target") else ""
            raise LapsusError(
                f"{source}: two columns mean '{role}' ({names[0]} and {names[1]}); choose one with `columns`"
                f" ({role}={names[0]}{every})."
            )
        guessed |= dict.fromkeys(names, role)
    return guessed


def _means(table: pd.DataFrame, name: Hashable, role: str, numbered: bool, by_role: dict[str, list[Hashable]]) -> bool:
    """Whether a column whose name suggests a role has it: some names are used for conditions too."""
    plain = plain_name(name)
    if plain == "probe":
        # The cued item's angle: numbers, with the other items' beside them.
        several = any(other.startswith("non_target_") for other in by_role)
        probes = any(other.startswith("non_target_probe_") for other in by_role)
        return bool(numeric(table[name]).notna().mean() > 0.5) and (not several or probes)
    if role == "non_target_1" and not plain[-1].isdigit():
        return not numbered and _is_angle(table[name])
    return True


def from_errors(table: pd.DataFrame, unit: str | None = None) -> pd.DataFrame:
    """A table with errors instead of responses: relative to the target, and so are its non-targets, unless it has the
    target too."""
    if "response" in table or "error" not in table or {"response_x", "response_y"} <= set(table):
        return table
    if "target" not in table:
        return table.drop(columns="error").assign(response=table["error"], target=0.0)
    names = [n for n in table if n in ("error", "target") or re.fullmatch(r"non_target_\d+", str(n))]
    numbers = table[names].apply(numeric)
    scale = UNITS[unit or infer_unit(numbers)[0]]
    circle, response = 2 * math.pi / scale.factor, numbers["error"] + numbers["target"]
    # An error across the end of the scale comes back at its other end; one of more than a turn is a slip.
    over = (response > scale.high) & (numbers["error"] <= circle)
    under = (response < scale.low) & (numbers["error"] >= -circle)
    return table.assign(response=response - circle * over + circle * under)


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
    last = positions - 1 + first
    if len(values) and ((values % 1 != 0).any() or values.min() < 0 or values.max() > last):
        raise LapsusError(
            f"{source}: with `probe_positions={positions}` probes are whole numbers from {first} to {last}; the table"
            f" has {values.min():g} to {values.max():g}."
        )
    return table.assign(**{name: (numbers[name] - first) * 360 / positions for name in names})


def _number(name: str) -> int:
    return int(name.rsplit("_", 1)[1])


def _cued_first(table: pd.DataFrame, source: str) -> pd.DataFrame:
    """Item columns report_1 …, probe_1 … with the number of the cued item (from 1) → the cued item first."""
    items = {
        feature: sorted((n for n in table if re.fullmatch(rf"{feature}_\d+", n)), key=_number)
        for feature in ("report", "probe")
    }
    count = len(items["report"])
    cued = numeric(table["cued"])
    if cued.isna().any() or not cued.between(1, count).all() or (cued % 1 != 0).any():
        raise LapsusError(f"{source}: column cued must hold the number of the cued item, 1 to {count}.")
    order = np.argsort(np.arange(1, count + 1) != cued.to_numpy()[:, None], axis=1, kind="stable")
    sorted_items: dict[str, np.ndarray] = {}
    for feature, suffix in (("report", ""), ("probe", "_probe")):
        if items[feature]:
            values = np.take_along_axis(table[items[feature]].to_numpy(), order, axis=1)
            names = [f"target{suffix}", *(f"non_target{suffix}_{i}" for i in range(1, len(items[feature])))]
            sorted_items |= dict(zip(names, values.T, strict=True))
    rest = [n for n in table if n not in items["report"] + items["probe"] and n not in sorted_items]
    return pd.concat([table[rest], pd.DataFrame(sorted_items, index=table.index)], axis=1)


def item_columns(table: pd.DataFrame, source: str, called: dict[str, str]) -> tuple[list[str], list[str]]:
    """Names of the report columns and of the probe columns (possibly none), the cued item first; called: what the file
    calls those that were renamed."""
    missing = [name for name in ("response", "target") if name not in table]
    if "response" in missing and {"response_x", "response_y"} <= set(table):
        missing.remove("response")
    others = sorted((n for n in table if re.fullmatch(r"non_target_\d+", n)), key=_number)
    probes = sorted((n for n in table if re.fullmatch(r"non_target_probe_\d+", n)), key=_number)
    # Item columns are numbered without gaps, and either all items have a probe or none has.
    if others:
        wanted = range(min(_number(others[0]), 1), _number(others[-1]))
        missing += [f"non_target_{i}" for i in wanted if f"non_target_{i}" not in others]
    if probes and "target_probe" not in table:
        missing.append("target_probe")
    partners = [n.replace("non_target_", "non_target_probe_") for n in others]
    if probes or "target_probe" in table:
        missing += [n for n in partners if n not in probes]
        items = [n.replace("_probe", "") for n in probes if n not in partners]
        missing += [n for n in items if n not in missing]
    if missing:
        there = (f"{called[name]} (read as {name})" if name in called else str(name) for name in table.columns)
        raise LapsusError(
            f"{source}: column{'s' * (len(missing) > 1)} {', '.join(missing)} missing; a trial table needs response,"
            " target and, beyond one item, non_target_1, …; and where the items' probe feature is given, target_probe,"
            f" non_target_probe_1, … for all of them. This one has {', '.join(there)}; if one of these is"
            f" {missing[0]}, say so with `columns` ({missing[0]}=ITS_NAME)."
        )
    return ["target", *others], ["target_probe", *partners] if "target_probe" in table else []
