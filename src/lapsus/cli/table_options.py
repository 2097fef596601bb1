"""The options that make a trial table readable: the same in every command that reads one."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

_OPTIONS: dict[str, Any] = {
    "unit": Annotated[
        str | None, typer.Option(help="degrees, degrees_180 or radians.", show_default="read off the values")
    ],
    "probe_unit": Annotated[str | None, typer.Option(help="Unit of the probe feature.", show_default="the same")],
    "columns": Annotated[
        list[str] | None,
        typer.Option(
            help="Which column is which: response=response_ori (again for more); by position where there is no header.",
            show_default="by name",
        ),
    ],
    "where": Annotated[
        list[str] | None,
        typer.Option(
            help="Use only rows with condition=dual, or without: block!=1 (again for more).", show_default="all"
        ),
    ],
    "drop": Annotated[
        list[str] | None,
        typer.Option(
            help="Leave out rows, and count them: missing, outside, equal (two items), repeated.", show_default="none"
        ),
    ],
    "probe_positions": Annotated[
        int | None,
        typer.Option(help="Probes are numbers of this many places on a ring.", show_default="probes are angles"),
    ],
    "non_targets": Annotated[
        str | None, typer.Option(help="absolute, relative-to-response or relative-to-target.", show_default="absolute")
    ],
    "items_beyond_set_size": Annotated[
        str | None, typer.Option(help="drop: leave out values of absent items.", show_default="an error")
    ],
    "feature_name": Annotated[
        str | None, typer.Option(help="What to call the reported feature: orientation, …", show_default="report")
    ],
    "probe_name": Annotated[
        str | None, typer.Option(help="What to call the probe feature: position, …", show_default="probe")
    ],
}


def reads_table(command: Callable) -> Callable:
    """A command with the options above, which it gets as the keywords of `read_trials` in its argument `table`."""
    signature = inspect.signature(command)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "table"]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    ]

    @wraps(command)
    def with_options(*args: Any, **given: Any) -> Any:
        table = {name: given.pop(name, None) for name in _OPTIONS}
        for name in ("where", "drop"):
            table[name] = [part for text in table[name] or () for part in text.split(",")]
        table["columns"] = _pairs(table["columns"])
        return command(*args, **given, table=table)

    with_options.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    with_options.__annotations__ = {p.name: p.annotation for p in (*own, *more)}
    return with_options


def _pairs(given: list[str] | None) -> dict[str, str]:
    """a=b, c=d (also separated by commas) as a dictionary."""
    from lapsus.errors import LapsusError

    pairs: dict[str, str] = {}
    for text in ",".join(given or []).split(",") if given else []:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise LapsusError(f"'{text}' is not of the form name=value; write --columns response=response_ori.")
        if name in pairs:
            raise LapsusError(f"'{name}' is given twice in '{', '.join(given or [])}'; give it once.")
        pairs[name] = value
    return pairs
