"""The command line: one module a command, each a thin call of the Python API.

The modules import torch and friends only inside their function, so that `lapsus --help` is instant.
"""

import os
import re
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from lapsus.cli.options import described
from lapsus.cli.words import as_typed
from lapsus.errors import LapsusError, LapsusWarning

__all__ = ["app", "main"]


class _Commands(TyperGroup):
    """Runs a command, and ends it with a sentence and a code whatever happens to it."""

    def invoke(self, ctx: Any) -> None:
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except LapsusError as error:
            _say(str(error))
            sys.exit(2)
        except KeyboardInterrupt:
            _stopped()
        except OSError as error:
            # What we read and write has its own sentence; this is a terminal, a pipe or a library's own file.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left to print would fail again
            if isinstance(error, BrokenPipeError):  # a reader that left has seen enough
                sys.exit(0)
            _say(f"{error.filename or 'The output'}: {error.strerror or error}.")
            sys.exit(2)
        except (MemoryError, RuntimeError, ImportError) as error:
            # torch has no exception of its own for it, and a library that cannot be loaded says it in its own words.
            if not (isinstance(error, MemoryError) or _NO_MEMORY.search(str(error))):
                raise
            _say("there is not enough memory for this; fewer trials, conditions or units need less.")
            sys.exit(2)


_NO_MEMORY = re.compile("allocate memory|not enough memory|failed to map segment|can't start new thread")
app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Find neural mechanisms of cognitive errors: fit behaviour, train networks that make the same mistakes, read"
        " off how."
    ),
)

# In the order of the pipeline, which is the order of --help.
_COMMANDS = (
    "discover",
    "doctor",
    "fit",
    "power",
    "train",
    "resume",
    "sweep",
    "evaluate",
    "simulate",
    "analyse",
    "predict",
    "reproduce",
    "report",
    "watch",
    "zoo",
    "info",
)

for _name in _COMMANDS:
    _module = import_module(f"lapsus.cli.{_name}")
    if hasattr(_module, "app"):
        app.add_typer(_module.app, name=_name)
    else:
        app.command(_name)(described(_module.command))


def _print_version(wanted: bool) -> None:
    if wanted:
        from lapsus import __version__

        typer.echo(f"lapsus {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", help="Print the version and leave.", is_eager=True, callback=_print_version
    ),
) -> None:
    pass


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    if issubclass(category, LapsusWarning):
        print(f"lapsus: {as_typed(str(message))}", file=sys.stderr)
    elif not issubclass(category, (DeprecationWarning, FutureWarning)):
        print(f"{category.__name__}: {message}", file=sys.stderr)


def main() -> None:
    """Entry point: the user's mistakes are one sentence and exit code 2, never a traceback."""
    warnings.showwarning = _show_warning
    os.environ["MPLBACKEND"] = "agg"  # figures go to files; what is set for windows may not even be installed
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr does: file names may hold any bytes
    try:
        app(standalone_mode=True)
    except LapsusError as error:  # from the callbacks of options
        _say(str(error))
        sys.exit(2)
    except KeyboardInterrupt:  # while the commands are put together
        _stopped()


def _stopped() -> NoReturn:
    _say("stopped. What was saved before is whole; the same command starts again.")
    sys.exit(130)


def _say(text: str) -> None:
    with suppress(OSError):
        print(f"lapsus: {as_typed(text)}", file=sys.stderr)
