"""Plain values, as JSON has them, from dataclasses and arrays, and back."""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def to_plain(value: Any) -> Any:
    """Dictionaries, lists, text, numbers, true, false and null alone; numbers that are not finite become null."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def from_plain(kind: Any, value: Any) -> Any:
    """The plain value as `kind`: a plain type, a dataclass, an array, or lists, dictionaries and unions of such.

    null where a number is due is NaN. Fields of a dataclass that are absent take their defaults. Unknown ones, and
    whatever has another type, are a ValueError, TypeError or LookupError.
    """
    origin, arguments = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin is Any:
        return value
    if origin in (typing.Union, types.UnionType):
        return _union(arguments, value)
    if origin is float:
        number = math.nan if value is None else value
        return float(_expect(number, (int, float)))
    if origin is typing.Literal:
        return arguments[arguments.index(value)]
    if origin is np.ndarray:
        array = np.array(_expect(value, list))
        return array.astype(float) if array.dtype == object else array  # which makes NaN of null
    if origin is Path:
        return Path(_expect(value, str))
    if dataclasses.is_dataclass(origin):
        hints = typing.get_type_hints(origin)
        return kind(**{name: from_plain(hints[name], item_type) for name, item_type in _expect(value, dict).items()})
    if origin is dict:
        item = arguments[1] if arguments else Any
        return {key: from_plain(item, item_type) for key, item_type in _expect(value, dict).items()}
    if origin in (list, tuple):
        items = _expect(value, list)
        if origin is list or Ellipsis in arguments:
            arguments = (arguments[:1] or (Any,)) * len(items)
        return origin(from_plain(item, item_type) for item, item_type in zip(arguments, items, strict=True))
    return _expect(value, origin)


def _expect(value: Any, kind: Any) -> Any:
    """The value if it has this type; true and false are not numbers."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{str(value)[:40]!r} is of another type than {kind}")
    return value


def _union(kinds: tuple, value: Any) -> Any:
    if value is None and types.NoneType in kinds:
        return None
    for kind in kinds:
        try:
            return from_plain(kind, value)
        except (ValueError, TypeError, LookupError):
            continue
    raise ValueError(f"{str(value)[:40]!r} is of none of its types")
