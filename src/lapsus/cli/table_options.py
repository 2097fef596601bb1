"""The options that make a trial table readable: the same in every command that reads one."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from lapsus.cli.options import parameter_of
from lapsus.errors import LapsusError

_OPTIONS = """\
unit: degrees, degrees_180 or radians. [default: read off the values]
probe_unit: Unit of the probe feature. [default: the same]
columns: Which column is which: response=response_ori (again for more); by position where there is no header.\
 [default: by name]
where: Use only rows with condition=dual, or without: block!=1 (again for more). [default: all]
drop: Leave out rows, and count them: missing, outside, equal (two items), repeated. [default: none]
probe_positions: Probes are numbers of this many places on a ring. [default: probes are angles]
non_targets: absolute, relative-to-response or relative-to-target. [default: absolute]
items_beyond_set_size: drop: leave out values of absent items. [default: an error]
feature_name: What to call the reported feature: orientation, … [default: report]
probe_name: What to call the probe feature: position, … [default: probe]
"""
# Types of those that are not text.
_TYPES: dict[str, Any] = dict.fromkeys(("columns", "where", "drop"), list[str] | None) | {"probe_positions": int | None}


def reads_table(command: Callable) -> Callable:
    """A command with the options above, which it gets as the keywords of `read_trials` in its argument `table`."""
    signature = inspect.signature(command)
    parameters = [parameter for parameter in signature.parameters.values() if parameter.name != "table"]
    more = []
    for line in _OPTIONS.splitlines():
        name = line.partition(":")[0]
        option = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_TYPES.get(name, str | None)
        )
        more.append(parameter_of(line, {name: option}) or option)

    @wraps(command)
    def with_options(*args: Any, **given: Any) -> Any:
        table = {option.name: given.pop(option.name, None) for option in more}
        for name in ("where", "drop"):
            table[name] = [value for text in table[name] or () for value in text.split(",")]
        table["columns"] = _pairs(table["columns"])
        return command(*args, **given, table=table)

    with_options.__signature__ = signature.replace(parameters=[*parameters, *more])  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in (*parameters, *more)}
    return with_options


def _pairs(given: list[str] | None) -> dict[str, str]:
    """a=b, c=d (also separated by commas) as a dictionary."""
    pairs: dict[str, str] = {}
    for text in ",".join(given or []).split(",") if given else []:
        name, equals, value = (piece.strip() for piece in text.partition("="))
        if not equals or not name or not value:
            raise LapsusError(f"'{text}' is not of the form name=value; write --columns response=response_ori.")
        if name in pairs:
            raise LapsusError(f"'{name}' is given twice in '{', '.join(given or [])}'; give it once.")
        pairs[name] = value
    return pairs
