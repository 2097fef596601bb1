"""How a trial table is to be read: units, names of columns, which rows count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lapsus.errors import LapsusError
from lapsus.trials.units import UNITS

__all__ = ["DROP", "NON_TARGETS", "TableOptions", "Where"]

# Why rows may be left out, on request.
DROP = {
    "missing": "a response, an item, a set size or a subject is missing",
    "outside": "a value is outside the range of its unit",
    "equal": "two items have the same value",
    "repeated": "the row repeats an earlier one",
}
NON_TARGETS = ("absolute", "relative_to_response", "relative_to_target")


class Where(NamedTuple):
    """One rule for the rows that count: their value in a column is, or is not, this one."""

    column: str
    value: str
    equal: bool = True


def _rules(where: Mapping[str, object] | Sequence[str | Where] | None) -> tuple[Where, ...]:
    """Rules from {"condition": "dual"} or from ["condition=dual", "block!=1"]."""
    if isinstance(where, Mapping):
        return tuple(Where(name, str(value)) for name, value in where.items())
    rules: list[Where] = []
    for text in where or ():
        if isinstance(text, Where):
            rules.append(text)
            continue
        name, sign, value = text.partition("=")
        equal = not name.endswith("!")
        rule = Where(name.removesuffix("!").strip(), value.strip(), equal)
        if not sign or not rule.column or not rule.value:
            raise LapsusError(f"'{text}' is not of the form column=value or column!=value, as in condition=dual.")
        if rule.equal and any(rule.column == other.column and other.equal for other in rules):
            raise LapsusError(f"'{rule.column}' is given twice in `where`; give it once.")
        rules.append(rule)
    return tuple(rules)


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    value = value.replace("-", "_")
    if value not in known:
        raise LapsusError(f"{name} '{value}' is not known; use one of {', '.join(known)}.")
    return value


@dataclass(frozen=True)
class TableOptions:
    """Options of `read_trials` and `Trials.from_table`, checked.

    unit, probe_unit        degrees, degrees_180 (orientations) or radians; None: the values decide
    columns                 ours: theirs, {"response": "response_ori"}; a number is a column's position in a file
                            without a header
    where                   rows that count: {"condition": "dual"}, or ["condition=dual", "block!=1"]
    drop                    rows to leave out: any of missing, outside, equal, repeated
    probe_positions         number of places on a ring, where probes are their numbers
    non_targets             absolute, relative_to_response or relative_to_target; None: absolute, unless the values say
                            otherwise
    items_beyond_set_size   "drop": values of items beyond the set size are left out; None: they are an error
    feature_name, probe_name  what texts and plots call the features
    """

    unit: str | None = None
    probe_unit: str | None = None
    columns: Any = None
    where: Any = None
    drop: Any = None
    probe_positions: int | None = None
    non_targets: str | None = None
    items_beyond_set_size: str | None = None
    feature_name: str | None = None
    probe_name: str | None = None

    def __post_init__(self) -> None:
        for unit in (self.unit, self.probe_unit):
            if unit is not None and unit not in UNITS:
                raise LapsusError(f"unit '{unit}' is not known; use one of {', '.join(UNITS)}.")
        where = [self.where] if isinstance(self.where, str) else self.where
        dropped = self.drop.split(",") if isinstance(self.drop, str) else self.drop or ()
        checked = {
            "columns": dict(self.columns or {}),
            "where": _rules(where),
            "drop": tuple(_one_of("drop", reason, tuple(DROP)) for reason in dropped),
        }
        if self.non_targets is not None:
            checked["non_targets"] = _one_of("non_targets", self.non_targets, NON_TARGETS)
        if self.items_beyond_set_size is not None:
            _one_of("items_beyond_set_size", self.items_beyond_set_size, ("drop",))
        for name, value in checked.items():
            object.__setattr__(self, name, value)
