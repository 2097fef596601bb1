"""What the Python API says, as one types it in a shell: its messages name parameters, the command line has options."""

import re
import sys

# Parameters that messages of the API name, each an option of the command that passes it on.
OPTIONS = (
    "against",
    "align",
    "bin",
    "by",
    "columns",
    "cueing",
    "dask",
    "drop",
    "draws",
    "items_beyond_set_size",
    "minutes",
    "model",
    "networks",
    "objectives",
    "non_targets",
    "port",
    "probe_positions",
    "probe_unit",
    "reference",
    "runs",
    "seed",
    "seeds",
    "set_size",
    "trust",
    "unit",
    "where",
    "workers",
)
_PARAMETER = re.compile(rf"`({'|'.join(OPTIONS)})(?:=([^`]+))?`")
# How messages end that refuse a place; every command that makes something has -o for it.
_ANOTHER_PLACE = re.compile(r"; name (a[^.]*)\.")


def as_typed(text: str) -> str:
    """`set_size=3` as --set-size 3, `trust=True` as --trust, `minutes` as --minutes, a folder to name with -o; all
    else as it is.

    >>> from lapsus.cli.words import as_typed
    >>> as_typed("mine is there already; name another folder.")
    'mine is there already; name another folder with -o.'
    >>> as_typed('Give `unit="degrees_180"`, or `lapsus train` with `trust=True`.')
    'Give --unit degrees_180, or `lapsus train` with --trust.'
    """

    def option(match: re.Match) -> str:
        name, value = "--" + match[1].replace("_", "-"), (match[2] or "").strip("\"'")
        return name if value in ("", "True") else f"{name} {value}"

    return _ANOTHER_PLACE.sub(r"; name \1 with -o.", _PARAMETER.sub(option, text))


def on_terminal(name: str, part: str) -> None:
    """What is being done, where somebody is looking."""
    if sys.stderr.isatty():
        print(f"lapsus: {name}, {part} …", file=sys.stderr)
