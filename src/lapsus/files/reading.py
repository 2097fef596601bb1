"""Reading with a limit, of ordinary files alone; what is damaged is told from what cannot be read."""

import io
import json
import os
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from lapsus.errors import LapsusError
from lapsus.files.plain import from_plain

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "Damaged",
    "begins",
    "check_format",
    "ordinary_size",
    "read_arrays",
    "read_bytes",
    "read_end",
    "read_json",
    "read_text",
    "read_toml",
    "short",
    "shown",
    "understood",
]

_MOST = 1 << 30
# Flags of every file that is opened: no pipe is waited for, no child inherits it. Windows has one of them.
CAREFUL: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Damaged(LapsusError):
    """A file that could be read and is not what it should be."""


def short(path: str | Path) -> str:
    """A path at a length that a sentence can hold."""
    text = str(path)
    return text if len(text) <= 200 else text[:100] + "…" + text[-99:]


def shown(value: object) -> str:
    """A value as Python writes it, at a length that a sentence can hold."""
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


def check_format(found: object, known: int, path: str | Path) -> None:
    """Refuse a file whose format, a whole number that each kind of file counts for itself, is not one of ours."""
    if isinstance(found, int) and found > known:
        raise LapsusError(
            f"{short(path)} has format {found}, and this version reads {known}: update lapsus to open it."
        )
    if found != known:
        raise Damaged(f"{short(path)} is damaged: its format is {str(found)[:40]} instead of {known}.")


@contextmanager
def understood(path: str | Path) -> Iterator[None]:
    """Around code that takes what it read apart: where that does not have its form, the file is damaged."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise Damaged(f"{short(path)} is damaged, or was written by another version of lapsus ({reason}).") from error


def read_arrays(path: str | Path) -> "dict[str, np.ndarray]":
    """Arrays by name from a .npz; nothing in it is executed."""

    import numpy as np

    data = read_bytes(path)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return dict(stored)
    except Exception as error:  # zip, zlib and numpy each have their own
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise Damaged(f"{short(path)} is damaged: {reason[:300]}.") from error


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[BinaryIO, int]]:
    """An ordinary file and its size; a pipe is refused, not waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | CAREFUL)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise Damaged(f"{short(path)} is not an ordinary file.")
            with open(handle, "rb", closefd=False) as file:
                yield file, status.st_size
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        raise LapsusError(f"Cannot read {short(path)}: {getattr(error, 'strerror', None) or error}.") from error


def ordinary_size(path: str | Path) -> int:
    """Bytes of an ordinary file."""
    with _opened(path) as (_, size):
        return size


def read_bytes(path: str | Path, most: int = _MOST) -> bytes:
    """Contents of an ordinary file of at most so many bytes."""
    with _opened(path) as (file, size):
        if size > most:
            raise Damaged(f"{short(path)} has {size:,} bytes; at most {most:,} are read.")
        # Of a file that grows meanwhile, what was there; a buffer of `most` bytes would be asked for at once.
        return file.read(size)


def begins(path: str | Path, mark: bytes) -> bool:
    """Whether an ordinary file begins so, or was cut short within the mark: how those of ours are told from others."""
    with _opened(path) as (file, _):
        return mark.startswith(file.read(len(mark)))


def read_end(path: str | Path, most: int) -> bytes:
    """The last bytes of an ordinary file, as of a log that others write."""
    with _opened(path) as (file, size):
        file.seek(max(0, size - most))
        return file.read(most)


def read_text(path: str | Path, most: int = _MOST) -> str:
    """Contents of an ordinary file in UTF-8."""
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
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise Damaged(f"{short(path)} is damaged: {reason[:300]}.") from error


def read_toml(path: str | Path) -> dict:
    """The table of a TOML file."""
    text = read_text(path, 1 << 22)
    try:
        table = tomllib.loads(text)
        json.dumps(table, default=str)  # whatever walks it later can do so
        return table
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise Damaged(f"{short(path)} is not a TOML file: {reason[:200]}.") from error
