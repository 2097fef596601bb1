"""Reading with a limit; what is damaged is told from what cannot be read."""

import io
import json
import os
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lapsus.errors import LapsusError
from lapsus.files.plain import from_plain

if TYPE_CHECKING:
    import numpy as np

_MOST = 1 << 30
_DEEPEST = 30


class Damaged(LapsusError):
    """A file that could be read and is not what it should be."""


def short(text: object, most: int = 200) -> str:
    """A path or a name from a file at a length that a sentence can hold."""
    text = str(text)
    return text if len(text) <= most else text[: most // 2] + "…" + text[1 - most // 2 :]


def shown(value: object) -> str:
    """A value as Python writes it, at a length that a sentence can hold."""
    return short(repr(value))


def reason_of(error: BaseException) -> str:
    """The first line of what an error says, at a length that a sentence can hold."""
    return short((str(error).splitlines() or [type(error).__name__])[0]).rstrip(".")


def check_format(found: object, known: int, path: str | Path) -> None:
    """Refuse a file whose format, a whole number that each kind of file counts for itself, is not one of ours."""
    if isinstance(found, int) and found > known:
        raise LapsusError(
            f"{short(path)} has format {found}, and this version reads {known}: update lapsus to open it."
        )
    if found != known:
        raise Damaged(f"{short(path)} is damaged: its format is {shown(found)} instead of {known}.")


@contextmanager
def understood(path: str | Path) -> Iterator[None]:
    """Around code that takes what it read apart: where that does not have its form, the file is damaged."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {reason_of(error)}"
        raise Damaged(f"{short(path)} is damaged, or was written by another version of lapsus ({reason}).") from error


def read_arrays(path: str | Path) -> "dict[str, np.ndarray]":
    """Arrays by name from a .npz; nothing in it is executed."""
    import numpy as np

    data = read_bytes(path)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return dict(stored)
    except Exception as error:  # zip, zlib and numpy each have their own
        raise Damaged(f"{short(path)} is damaged: {reason_of(error)}.") from error


@contextmanager
def readable(path: str | Path) -> Iterator[None]:
    """Around code that opens a file: an error of the system is a sentence, and a pipe or a device is not waited for."""
    try:
        if not stat.S_ISREG(mode := os.stat(path).st_mode) and not stat.S_ISDIR(mode):
            raise Damaged(f"{short(path)} is not an ordinary file.")
        yield
    except (OSError, ValueError) as error:  # no file can have a name with a null byte
        raise LapsusError(f"Cannot read {short(path)}: {getattr(error, 'strerror', None) or error}.") from error


def read_bytes(path: str | Path, most: int = _MOST) -> bytes:
    """Contents of an ordinary file of at most so many bytes; a pipe is not waited for."""
    with readable(path):
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise Damaged(f"{short(path)} is not an ordinary file.")
        if status.st_size > most:
            raise Damaged(f"{short(path)} has {status.st_size:,} bytes; at most {most:,} are read.")
        return Path(path).read_bytes()


def begins(path: str | Path, mark: bytes) -> bool:
    """Whether a file begins so, or was cut short within the mark: how those of ours are told from others."""
    with readable(path), open(path, "rb") as file:
        return mark.startswith(file.read(len(mark)))


def read_end(path: str | Path, most: int) -> bytes:
    """The last bytes of a file, as of a log that others write."""
    with readable(path), open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - most))
        return file.read(most)


def read_text(path: str | Path, most: int = _MOST) -> str:
    """Contents of a file in UTF-8."""
    data = read_bytes(path, most)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Damaged(f"{short(path)} is damaged: it is not text in UTF-8 ({error.reason}).") from error


def read_json(path: str | Path, kind: Any = dict, most: int = 1 << 28) -> Any:
    """The value in a JSON file as `kind`: dict, list, a dataclass or a type made of those (see `from_plain`)."""
    text = read_text(path, most)
    try:
        return from_plain(kind, json.loads(text))
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise Damaged(f"{short(path)} is damaged: {reason_of(error)}.") from error


def read_toml(path: str | Path) -> dict:
    """The table of a TOML file."""
    text = read_text(path, 1 << 22)
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{short(path)} is not a TOML file: {reason_of(error)}.") from error
    if _deeper_than(table, _DEEPEST):
        raise Damaged(f"{short(path)} is nested more than {_DEEPEST} levels deep.")
    return table


def _deeper_than(value: object, levels: int) -> bool:
    """Whether tables and lists are nested deeper than that, which no file of ours is."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_deeper_than(item, levels - 1) for item in inside)
