"""The command line: one module a command, each a thin call of the Python API.

The modules import torch and friends only inside their function, so that `lapsus --help` is instant.
"""

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec

import typer

from lapsus.errors import LapsusError, LapsusWarning

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
    help=(
        "Find neural mechanisms of cognitive errors: fit behaviour, train networks that make the same mistakes, read"
        " off how."
    ),
)

# In the order of the pipeline, which is the order of --help.
_COMMANDS = (
    "discover",
    "fit",
    "train",
    "resume",
    "sweep",
    "evaluate",
    "simulate",
    "reproduce",
    "report",
    "watch",
    "zoo",
    "bench",
    "info",
)

for _name in _COMMANDS:
    if find_spec(f"lapsus.cli.{_name}"):
        _module = import_module(f"lapsus.cli.{_name}")
        if hasattr(_module, "app"):
            app.add_typer(_module.app, name=_name)
        else:
            app.command(_name)(_module.command)


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
):
    pass


def _show_warning(message, category, filename, lineno, file=None, line=None):
    if issubclass(category, LapsusWarning):
        print(f"lapsus: {message}", file=sys.stderr)
    elif not issubclass(category, (DeprecationWarning, FutureWarning)):
        print(f"{category.__name__}: {message}", file=sys.stderr)


def main() -> None:
    """Entry point: the user's mistakes are one sentence and exit code 2, never a traceback."""
    warnings.showwarning = _show_warning
    try:
        app(standalone_mode=True)
    except LapsusError as error:
        print(f"lapsus: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("lapsus: stopped.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
