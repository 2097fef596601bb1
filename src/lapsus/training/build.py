"""From a table of an experiment file to the object it names: `kind` and the constructor's own arguments.

Which class that is, is for `kinds` to say; every other key must be an argument of that class.
"""

import dataclasses
import inspect
import typing
from difflib import get_close_matches
from typing import Any

import pydantic

from lapsus.errors import LapsusError
from lapsus.files import shown
from lapsus.tasks.durations import Range
from lapsus.training.kinds import KINDS, locate


def build(section: str, table: dict, **given: Any) -> Any:
    """The object that `table` of section ("task", "network", …) describes; `given` are arguments that the caller
    supplies."""
    table = dict(table)
    kind = table.pop("kind", None)
    if not isinstance(kind, str):
        raise LapsusError(f"[{section}] needs a kind, one of: {', '.join(KINDS.get(section, {}))}.")
    made = locate(section, kind)
    parameters = inspect.signature(made).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    hints = typing.get_type_hints(made.__init__ if inspect.isclass(made) else made, include_extras=True)
    arguments = {name: value for name, value in given.items() if name in parameters or open_ended}
    for key, value in table.items():
        if (key not in parameters and not open_ended) or key in given:
            allowed = [name for name in parameters if name not in given]
            close = get_close_matches(key, allowed, 1)
            hint = f" Did you mean {close[0]}?" if close else f" It has: {', '.join(allowed) or 'no fields'}."
            raise LapsusError(f'{section}.{key} is not a field of "{kind}".{hint}')
        if isinstance(value, dict) and "kind" in value:
            value = build(f"{section}.{key}", value)
        elif _is_collection(value):
            value = {name: build(section, item) for name, item in value.items()}
        elif key in hints:
            value = _validated(f"{section}.{key}", value, hints[key])
        arguments[key] = value
    missing = [
        name
        for name, p in parameters.items()
        if p.default is p.empty and name not in arguments and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if missing:
        raise LapsusError(f'{section}.{missing[0]} is missing: "{kind}" needs it.')
    try:
        return made(**arguments)
    except (MemoryError, RuntimeError, OverflowError, ValueError, TypeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise LapsusError(f"[{section}] cannot be made: {reason[:200]}.") from error


def _is_collection(value: Any) -> bool:
    """Whether a field holds several objects of its own section by name, as a behaviour for each set size."""
    return isinstance(value, dict) and bool(value) and all(isinstance(v, dict) and "kind" in v for v in value.values())


def describe(section: str, thing: object) -> dict[str, Any]:
    """The inverse of `build`: the table of an experiment file that makes a dataclass such as this one again."""
    if not dataclasses.is_dataclass(thing) or isinstance(thing, type):
        raise LapsusError(f"A {type(thing).__name__} cannot be written to an experiment file: it is not a dataclass.")
    path = f"{type(thing).__module__}:{type(thing).__qualname__}"
    kind = next((name for name, known in KINDS.get(section, {}).items() if known == path), path)
    table: dict[str, Any] = {"kind": kind}
    for field in (declared for declared in dataclasses.fields(thing) if declared.init):
        value = getattr(thing, field.name)
        nested = dataclasses.is_dataclass(value)
        if callable(value) and not nested:
            raise LapsusError(
                f"{section}.{field.name} is a plain function, which an experiment file cannot hold: make it a dataclass"
                " with __call__ in a module of your own."
            )
        if nested and not isinstance(value, Range):
            table[field.name] = describe(f"{section}.{field.name}", value)
        elif isinstance(value, dict) and all(map(dataclasses.is_dataclass, value.values())):
            table[field.name] = {str(name): describe(section, member) for name, member in value.items()}
        else:
            table[field.name] = _listed(value)
    return {key: value for key, value in table.items() if value is not None}


def _listed(value: Any) -> Any:
    if isinstance(value, Range):
        return {"from": value.low, "to": value.high}
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


def _validated(field: str, value: Any, hint: Any) -> Any:
    try:
        return pydantic.TypeAdapter(hint).validate_python(value)
    except pydantic.PydanticSchemaGenerationError:
        return value
    except pydantic.ValidationError as error:
        raise LapsusError(f"{field} = {shown(value)} is not right: {error.errors()[0]['msg']}.") from error
