"""Plain values, as JSON has them, from dataclasses and arrays, and back."""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["from_plain", "to_plain"]


# What a value of each plain type is called.
_SIMPLE = {int: "a whole number", str: "text", bool: "true or false", type(None): "null"}


def to_plain(value: Any) -> Any:
    """Dictionaries, lists, text, numbers, true, false and null alone; numbers that are not finite become null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def from_plain(kind: Any, value: Any, place: str = "it") -> Any:
    """The plain value as `kind`: a plain type, a dataclass, an array, or lists, dictionaries and unions of such.

    null where a number is due is NaN. Fields of a dataclass that are absent take their defaults; unknown ones, and
    whatever has another type, are a ValueError that says where.
    """
    if kind is Any:
        return value
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, place)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments, value, place)
    if origin is typing.Literal:
        if value not in arguments:
            raise ValueError(f"{place} is {str(value)[:40]!r} instead of one of {', '.join(map(str, arguments))}")
        return value
    base = origin or kind
    if base is float:
        if value is None:
            return math.nan
        _expect(not isinstance(value, bool) and isinstance(value, (int, float)), place, "a number")
        _expect(isinstance(value, float) or abs(value) < 2**1023, place, "a number that can be reckoned with")
        return float(value)
    if base in _SIMPLE:
        _expect(type(value) is base, place, _SIMPLE[base])
        return value
    if base is Path:
        return Path(from_plain(str, value, place))
    if base is dict:
        _expect(isinstance(value, dict), place, "an object")
        item = arguments[1] if arguments else Any
        return {key: from_plain(item, part, f"{place}.{key}") for key, part in value.items()}
    if base in (list, tuple):
        return _sequence(base, arguments, value, place)
    if base is np.ndarray:
        _expect(isinstance(value, list), place, "a list")
        return np.array(_numbers(value))
    raise TypeError(f"{kind} has no form in JSON")


def _numbers(value: list) -> list:
    return [_numbers(part) if isinstance(part, list) else math.nan if part is None else part for part in value]


def _expect(right: bool, place: str, what: str) -> None:
    if not right:
        raise ValueError(f"{place} is not {what}")


def _dataclass(kind: type, value: Any, place: str) -> Any:
    _expect(isinstance(value, dict), place, "an object")
    hints, fields = typing.get_type_hints(kind), {field.name: field for field in dataclasses.fields(kind)}
    unknown = [key for key in value if key not in fields]
    if unknown:
        raise ValueError(f"{place} has an unknown field {unknown[0][:40]!r}")
    absent = [
        name
        for name, field in fields.items()
        if name not in value and field.default is field.default_factory is dataclasses.MISSING
    ]
    if absent:
        raise ValueError(f"{place} lacks {absent[0]!r}")
    return kind(**{key: from_plain(hints[key], part, f"{place}.{key}") for key, part in value.items()})


def _union(kinds: tuple, value: Any, place: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    for kind in kinds:
        try:
            return from_plain(kind, value, place)
        except ValueError:
            continue
    raise ValueError(f"{place} is of none of its types")


def _sequence(base: type, arguments: tuple, value: Any, place: str) -> Any:
    _expect(isinstance(value, list), place, "a list")
    if base is tuple and arguments and arguments[-1] is not Ellipsis:
        _expect(len(value) == len(arguments), place, f"a list of {len(arguments)}")
        return tuple(from_plain(kind, part, place) for kind, part in zip(arguments, value))
    item = arguments[0] if arguments else Any
    return base(from_plain(item, part, f"{place}.{number}") for number, part in enumerate(value))
