"""Options of commands: most are described in the command's docstring, some are shared by several commands.

A line `name: what it is [from 0 to 1] [default: in words]` of the docstring describes a parameter; lines that follow it
indented belong to it. One without a default becomes an argument, any other one an option; `name/other:` gives a switch
with two names, `name VALUE:` says what to call its value, `name [VALUE]...:` and `name name:` make an argument of one
that has a default. Parameters that the docstring does not name have typer's own annotations.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lapsus.errors import LapsusError

Engine = Annotated[str, typer.Option("--engine", help="auto, fused (the C++ kernel) or reference (plain torch).")]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads of the kernel.", show_default="all cores")]
Minutes = Annotated[
    float | None, typer.Option("--minutes", help="Stop after this many minutes of training.", show_default="no limit")
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Import classes outside of lapsus that it names: this runs their code.")
]
Delay = Annotated[
    str | None,
    typer.Option(
        "--delay",
        metavar="STEPS[,STEPS…]",
        help="Steps between stimulus and cue, or several such numbers.",
        show_default="that of the experiment",
    ),
]

_LINE = re.compile(
    r"(?P<name>\w+)(?:/(?P<other>[\w-]+))?(?: (?P<metavar>\S+))?: (?P<help>.*?)"
    r"(?: \[from (?P<min>\d+)(?: to (?P<max>\d+))?\])?(?: \[default: (?P<default>.*)\])?$"
)


def described(command: Callable) -> Callable:
    """The command with what its docstring says of its parameters; the rest of the docstring is its help."""
    signature = inspect.signature(command)
    text, parameters = [], dict(signature.parameters)
    for line in re.sub(r"\n {4,}", " ", inspect.cleandoc(command.__doc__ or "")).splitlines():
        parameter = parameter_of(line, parameters)
        if parameter is None:
            text.append(line)
        else:
            parameters[parameter.name] = parameter
    command.__doc__ = "\n".join(text).strip()
    command.__signature__ = signature.replace(parameters=list(parameters.values()))  # type: ignore[attr-defined]
    command.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return command


def parameter_of(line: str, parameters: Mapping[str, inspect.Parameter]) -> inspect.Parameter | None:
    """The parameter that a line describes, with its help; None where it describes none of these."""
    match = _LINE.match(line)
    if not match or match["name"] not in parameters:
        return None
    parameter = parameters[match["name"]]
    name = parameter.name.rstrip("_")
    option = "--" + name.replace("_", "-")
    metavar = match["metavar"] or ""
    told: dict[str, Any] = {"help": match["help"], "show_default": match["default"] or True, "metavar": metavar or None}
    told |= {end: int(match[end]) for end in ("min", "max") if match[end]}
    info: Any
    if parameter.default is parameter.empty or metavar == name or metavar.startswith("["):
        info = typer.Argument(**told)
    elif match["other"]:
        info = typer.Option(f"{option}/--{match['other']}", **told)
    else:
        info = typer.Option(*(["-o", option] if name == "output" else [option]), **told)
    return parameter.replace(annotation=Annotated[parameter.annotation, info])


def default_verb(verb: str, alone: bool = False) -> type[TyperGroup]:
    """A group of commands in which `verb` may be left out; alone: also where nothing else is said."""

    class Group(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            named = args[0] in (*self.commands, "-h", "--help") if args else not alone
            return super().parse_args(ctx, args if named else [verb, *args])

    return Group


def delays_of(text: str | None) -> list[int]:
    """Whole numbers from "20" or "5,10,20", each once; none from None."""
    parts = [] if text is None else [number.strip() for number in text.split(",")]
    if not all(number.isdecimal() and len(number) < 10 for number in parts):
        raise LapsusError(
            f"--delay takes a number of steps or several, as in 20 or 5,10,20; it got {str(text)[:40]!r}."
        )
    return list(dict.fromkeys(map(int, parts)))
