"""Whole files or none: what a reader finds under a name was written to its end."""

import json
import os
from pathlib import Path

from lapsus.errors import LapsusError

__all__ = ["append_line", "write_json", "write_text"]


def write_text(path: Path, text: str) -> None:
    """All of it or nothing, on disk when this returns; folders above it are made."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise LapsusError(f"Cannot write {path}: {error.strerror}.") from error


def write_json(path: Path, value: object) -> None:
    """The value as JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=1) + "\n")


def append_line(path: Path, value: object) -> None:
    """One more line of JSON; a line that a crash cut short is skipped by readers."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")
    except OSError as error:
        raise LapsusError(f"Cannot write {path}: {error.strerror}.") from error
