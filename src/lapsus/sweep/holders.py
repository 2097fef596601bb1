"""Who works on a member: one at a time, and a claim of someone who is no more counts for nothing.

On the same machine the process says whether it lives; on another one the claim's age does, which its holder keeps
young.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lapsus.errors import LapsusError
from lapsus.files import read_json
from lapsus.files.writing import alive

_TOUCH = 30.0
# Without a sign of life for so long (seconds), a holder on another machine is taken for dead.
STALE = 600.0


class Busy(LapsusError):
    """Someone else works on it."""


@dataclass(frozen=True)
class _Holder:
    host: str
    pid: int
    began: str | None
    token: str


def _began(pid: int) -> str | None:
    """When the process began, where the system says it: a number that is used again belongs to another process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _alive(pid: int, began: str | None) -> bool:
    return alive(pid) and (began is None or _began(pid) == began)


def live(path: Path) -> bool:
    """Whether the holder of this claim still works."""
    try:
        age = time.time() - path.lstat().st_mtime
    except OSError:
        return False
    holder = _read(path)
    if holder is None:  # gone by now, or being written
        return path.exists() and age < _TOUCH
    return _alive(holder.pid, holder.began) if holder.host == socket.gethostname() else age < STALE


@contextmanager
def claim(path: Path) -> Iterator[None]:
    """Hold the claim while the block runs; Busy where someone alive holds it."""
    token = uuid.uuid4().hex
    _take(path, token)
    done = threading.Event()

    def keep_young() -> None:
        while not done.wait(_TOUCH):
            with suppress(OSError):
                os.utime(path)

    thread = threading.Thread(target=keep_young, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        if _token(path) == token:
            path.unlink(missing_ok=True)


def _take(path: Path, token: str) -> None:
    pid = os.getpid()
    facts = _Holder(socket.gethostname(), pid, _began(pid), token)
    # Written beside and linked, so that nobody ever reads half a claim.
    claim = path.with_name(f"{path.name}.{token}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        claim.write_text(json.dumps(asdict(facts)))
        for _ in range(10):
            try:
                os.link(claim, path)
                return
            except FileExistsError:
                seen = _token(path)
                if live(path):
                    raise Busy(f"{path.stem} is being worked on by another process.") from None
                _remove(path, seen)
        raise Busy(f"{path.stem} is being taken over by several processes at once.")
    except OSError as error:
        raise LapsusError(f"Cannot write {path}: {error.strerror}.") from error
    finally:
        claim.unlink(missing_ok=True)


def _read(path: Path) -> _Holder | None:
    try:
        return read_json(path, _Holder, most=1 << 16)
    except LapsusError:
        return None


def _token(path: Path) -> str | None:
    holder = _read(path)
    return None if holder is None else holder.token


def _remove(path: Path, seen: str | None) -> None:
    """Take a dead claim away, unless someone was faster and it is a new one by now."""
    aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return
    if _token(aside) != seen:
        with suppress(FileExistsError):
            os.link(aside, path)
    aside.unlink(missing_ok=True)
