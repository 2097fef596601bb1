"""The command line: one module a command, each a thin call of the Python API.

The modules import torch and friends only inside their function, so that `lapsus --help` is instant.
"""

import os
import re
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from io import BufferedWriter, FileIO, TextIOWrapper
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
            lost = getattr(sys.stdout, "lost", None)
            if lost is not None and not isinstance(lost, BrokenPipeError):  # a reader that left has seen enough
                raise lost
        except LapsusError as error:
            _say(str(error))
            sys.exit(2)
        except KeyboardInterrupt:
            _stopped()
        except OSError as error:
            # What we read and write has its own sentence; this is a terminal, a pipe or a library's own file.
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
    "design",
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


class _Lasting(TextIOWrapper):
    """Standard output or error that leads nowhere once it is closed or full (`lost` says why): a command whose result
    is a file works on."""

    lost: OSError | None = None

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._lead_nowhere(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._lead_nowhere(error)

    def _lead_nowhere(self, error: OSError) -> None:
        self.lost = self.lost or error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


def _make_streams_last() -> None:
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # closed: the next file that is opened would get its number, and what is printed
            os.open(os.devnull, os.O_RDWR)
    for number, name in ((1, "stdout"), (2, "stderr")):
        if not isinstance(getattr(sys, name), TextIOWrapper | None):
            continue  # somebody else's
        # As stderr does: file names may hold any bytes.
        raw = BufferedWriter(FileIO(number, "w", closefd=False))
        lines = number == 2 or os.isatty(number)
        setattr(sys, name, _Lasting(raw, errors="backslashreplace", line_buffering=lines))


def main() -> None:
    """Entry point: the user's mistakes are one sentence and exit code 2, never a traceback."""
    warnings.showwarning = _show_warning
    os.environ["MPLBACKEND"] = "agg"  # figures go to files; what is set for windows may not even be installed
    _make_streams_last()
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
