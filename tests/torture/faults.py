"""Faults at chosen steps of a command, installed in the one place through which everything is written,
`lapsus.files.writing.watcher`.

A command is run once. Before each step that changes the disk, while no file is open, it is asked what is to be tried
there; for each fault it forks, and the fork goes on to the step and is struck, in a copy of the folder that has taken
the folder's place. So a fault at the last step costs no more than one at the first.
"""

import errno
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from torture.child import OURS, wait

ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EROFS": errno.EROFS, "EACCES": errno.EACCES}
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
# A power cut loses all that was not flushed; a torn one keeps, tears or loses each part of it by chance, in any order.
CUTS = {"power cut": 0, "power cut, torn": 1, "power cut, reordered": 2}
KINDS = (*SIGNALS, *ERRORS, "full disk", "short write", *CUTS)
# Steps at which a file is open: a fork would share it, so it is made before the file is.
WITHIN = ("write", "sync")


@dataclass
class Disk:
    """What is not flushed yet: how to take each step back, what must be flushed to make it last, and by which name it
    goes (a file that is renamed takes its unflushed bytes along)."""

    undo: list[tuple["Undo", Path, Path]] = field(default_factory=list)

    def remember(self, step: str, path: Path, detail: bytes | Path | None) -> None:
        """Called before the step is taken."""
        if step in ("sync", "sync folder"):  # of the file itself, or of the names in a folder
            self.undo = [(undo, flush, name) for undo, flush, name in self.undo if flush != path]
        elif step == "write" and isinstance(detail, bytes):
            self._add(_torn(path.stat().st_size if path.is_file() else 0, len(detail)), path, path)
        elif step in ("create", "append", "make folder") and not path.exists():
            self._add(_gone, path.parent, path)
        elif step == "remove" and path.is_file():
            self._add(_back(path), path.parent, path)
        elif step in ("rename", "link") and isinstance(detail, Path):
            new = any(undo is _gone and name == path for undo, _, name in self.undo)
            old = None if new or step == "link" else _back(path)  # what was on disk by that name comes back to it
            self.undo = [
                (undo, _moved(flush, path, detail), _moved(name, path, detail))
                for undo, flush, name in self.undo
                if not (undo is _gone and name == path)  # its new name is a step of its own
            ]
            self._add(_renamed(_back(detail), path, old), detail.parent, detail)

    def _add(self, undo: "Undo", flush: Path, name: Path) -> None:
        self.undo.append((undo, flush, name))

    def cut(self, seed: int) -> None:
        """Seed 0: nothing survives that was not flushed; else each part by chance, and of the bytes some."""
        chance = random.Random(seed)
        for undo, _, name in reversed(self.undo):
            if seed == 0 or chance.random() < 0.5:
                undo(name, chance.random() if seed else 0.0)


# Takes a step back: the name by which the thing goes now, and which share of its bytes has reached the disk.
Undo = Callable[[Path, float], None]


def _moved(path: Path, old: Path, new: Path) -> Path:
    return new / path.relative_to(old) if path.is_relative_to(old) else path


def _torn(size: int, more: int) -> Undo:
    def tear(path: Path, share: float) -> None:
        if path.is_file():
            os.truncate(path, min(size + int(share * more), path.stat().st_size))

    return tear


def _gone(path: Path, share: float = 0.0) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _back(path: Path) -> Undo:
    """What is at this place now, put back there later."""
    if path.is_dir():
        inner = {own.relative_to(path): own.read_bytes() for own in path.rglob("*") if own.is_file()}
    else:
        inner = {Path(): path.read_bytes()} if path.is_file() else {}
    folder = path.is_dir()

    def back(name: Path, share: float) -> None:
        _gone(name)
        if folder:
            name.mkdir(parents=True, exist_ok=True)
        for own, content in inner.items():
            (name / own).parent.mkdir(parents=True, exist_ok=True)
            (name / own).write_bytes(content)

    return back


def _renamed(there: Undo, path: Path, old: Undo | None) -> Undo:
    def back(name: Path, share: float) -> None:
        there(name, share)
        if old is not None:
            old(path, share)

    return back


@dataclass(frozen=True)
class Fault:
    """What happens at step `at` (from 1): a signal, an error (once; "full disk": from then on), one short write, or a
    power cut, after which only what was flushed is sure to be there."""

    kind: str
    at: int

    def strike(self, number: int, step: str, disk: Disk) -> int | None:
        if number < self.at:
            return None
        if self.kind == "full disk" and step != "remove":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if number > self.at:
            return None
        if self.kind == "short write":
            return 7
        if self.kind in ERRORS:
            raise OSError(ERRORS[self.kind], os.strerror(ERRORS[self.kind]))
        if self.kind in CUTS:
            disk.cut(CUTS[self.kind] and CUTS[self.kind] + 10 * self.at)
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind in SIGNALS:
            os.kill(os.getpid(), SIGNALS[self.kind])
        return None


@dataclass
class Walk:
    """The watcher of a command that is run once: tells `talk` each step at which no file is open, and forks for every
    fault that it is given there. The fork's end is told too; a fork with a short write ends at the next such step."""

    talk: Connection
    output: Path
    steps: int = 0
    fault: Fault | None = None
    disk: Disk = field(default_factory=Disk)

    def __call__(self, step: str, path: Path, detail: bytes | Path | None) -> int | None:
        self.steps += 1
        if step not in WITHIN:
            if self.fault is None:
                self._ask()
            elif self.fault.kind == "short write" and self.steps > self.fault.at:
                os._exit(0)
        most = self.fault.strike(self.steps, step, self.disk) if self.fault is not None else None
        self.disk.remember(step, Path(path).absolute(), detail.absolute() if isinstance(detail, Path) else detail)
        return most

    def _ask(self) -> None:
        self.talk.send(self.steps)
        while (fault := self.talk.recv()) is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            child = os.fork()
            if child == 0:
                os.setpgid(0, 0)
                output = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(output, 1)
                os.dup2(output, 2)
                self.fault = fault
                return
            status, hung = wait(child, 300)
            self.talk.send((child, os.waitstatus_to_exitcode(status), hung))


@dataclass
class Count:
    """A watcher that only notes the steps, the place in the code from which each is taken (all lines of lapsus on the
    way there), and what they name."""

    steps: list[tuple[str, str]] = field(default_factory=list)
    named: set[Path] = field(default_factory=set)

    def __call__(self, step: str, path: Path, detail: bytes | Path | None) -> int | None:
        frame, lines = sys._getframe(2), []
        while frame is not None:
            if frame.f_code.co_filename.startswith(OURS):
                lines.append(f"{frame.f_code.co_filename.removeprefix(OURS)}:{frame.f_lineno}")
            frame = frame.f_back
        self.steps.append((step, " < ".join(lines)))
        path = Path(path).absolute()
        if step == "rename" and isinstance(detail, Path) and path.is_dir():
            inner = {detail.absolute() / own.relative_to(path) for own in self.named if own.is_relative_to(path)}
            self.named |= inner
        self.named.add(detail.absolute() if step in ("rename", "link") and isinstance(detail, Path) else path)
        return None
