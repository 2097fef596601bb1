"""Faults at chosen writes of a command; after each, the same command goes on and must end with the same bits.

A fault is installed in the one place through which everything is written, `lapsus.files.writing.watcher`: it counts the
steps (create, write, sync, rename, …) and acts at the n-th.
"""

import errno
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lapsus.files import writing

ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EROFS": errno.EROFS, "EACCES": errno.EACCES}
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
KINDS = (*SIGNALS, *ERRORS, "full disk", "short write", "power cut")


@dataclass
class Fault:
    """What happens at step `at` (from 1): a signal, an error (once; "full disk": from then on), short writes from then
    on, or a power cut, after which only what was flushed is sure to be there."""

    kind: str
    at: int
    seed: int = 0
    steps: int = 0
    # How to take a step back, and what must be flushed to make it last.
    _undo: list[tuple[Callable[[], None], Path]] = field(default_factory=list)

    def install(self) -> None:
        """From now on, in this process."""
        writing.watcher = self

    def __call__(self, step: str, path: Path, detail: bytes | Path | None) -> int | None:
        self.steps += 1
        if self.kind == "power cut":
            self._remember(step, Path(path), detail)
        if self.steps < self.at:
            return None
        if self.kind == "short write":
            return 7 if step == "write" else None
        if self.kind == "full disk" and step != "remove":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.steps > self.at:
            return None
        if self.kind in ERRORS:
            raise OSError(ERRORS[self.kind], os.strerror(ERRORS[self.kind]))
        if self.kind == "power cut":
            self._cut()
        if self.kind in SIGNALS:
            os.kill(os.getpid(), SIGNALS[self.kind])
        return None

    def _remember(self, step: str, path: Path, detail: bytes | Path | None) -> None:
        """How to take back each step that is not flushed yet; called before the step is taken."""
        folder = path.parent
        if step in ("sync", "sync folder"):  # of the file itself, or of the names in a folder
            kept = [(undo, where) for undo, where in self._undo if where != path]
            self._undo = kept
            return
        if step == "write":
            size = path.stat().st_size
            length = size + random.Random(self.seed + self.steps).randint(0, len(detail or b""))
            self._undo.append((lambda: _truncate(path, length), path))
        elif step == "rename" and isinstance(detail, Path) and not path.is_dir():
            old = detail.read_bytes() if detail.is_file() else None
            self._undo.append((lambda: _put_back(detail, old), folder))
        elif step == "remove" and path.is_file():
            content = path.read_bytes()
            self._undo.append((lambda: _put_back(path, content), folder))

    def _cut(self) -> None:
        writing.watcher = None
        chance = random.Random(self.seed)
        for undo, _ in reversed(self._undo):
            if chance.random() < 0.5:
                undo()
        os.kill(os.getpid(), signal.SIGKILL)


def _truncate(path: Path, length: int) -> None:
    if path.is_file():
        os.truncate(path, min(length, path.stat().st_size))


def _put_back(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
    elif path.parent.is_dir():
        path.write_bytes(content)


@dataclass
class Count:
    """A watcher that only counts."""

    steps: int = 0

    def __call__(self, step: str, path: Path, detail: bytes | Path | None) -> int | None:
        self.steps += 1
        return None
