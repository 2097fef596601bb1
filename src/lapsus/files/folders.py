"""Folders: whose they are, made anew beside their place, and held by one process at a time."""

import ctypes
import errno
import hashlib
import os
import shutil
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lapsus.errors import LapsusError
from lapsus.files.reading import short
from lapsus.files.writing import ENDING, NO_LINKS, alive, beside, check_ordinary, failure, step, sweep, sync_folder

__all__ = [
    "check_file",
    "check_place",
    "file_name",
    "holds",
    "inside",
    "locked",
    "make_folder",
    "new_folder",
    "subfolder",
]

# What the file of each kind of folder is called that makes it one of ours.
_MARKERS = {"run": "config.toml", "discovery": "stages.json", "fit": "summary.json", "sweep": "manifest.json"}
# What may be there before it.
_EARLY = {"sweep": ("members", "targets")}
_LOCK = ".lock"
# Locks that this process holds, and for how long (seconds) one whose owner is dead is waited for.
_held: set[int] = set()
_PATIENCE = 5.0
_EXCHANGE, _HERE = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of Linux


def make_folder(folder: str | Path) -> Path:
    """The folder, made with its parents if it is not there, on disk when this returns."""
    folder = Path(folder)
    try:
        missing = []
        place = folder
        while not place.exists() and not place.is_symlink():
            missing.append(place)
            place = place.parent
        for path in reversed(missing):
            step("make folder", path)
            path.mkdir(exist_ok=True)
            sync_folder(path.parent)
        if not folder.is_dir():
            raise LapsusError(f"{short(folder)} is there already and is not a folder.")
    except OSError as error:
        raise LapsusError(f"Cannot make the folder {short(folder)}: {error.strerror}.") from error
    return folder


def inside(folder: str | Path, *names: str) -> Path:
    """A path within one of our folders; a link on the way, which would lead elsewhere, is refused, and so are names
    that go up or that no file can have."""
    place = Path(folder)
    for part in (part for name in names for part in Path(name).parts):
        if part == ".." or Path(part).anchor or len(part.encode("utf-8", "surrogatepass")) > 255:
            raise LapsusError(f"{short(place)} names a file that cannot be in it: {short(part)}.")
        place = place / part
        if place.is_symlink():
            raise LapsusError(f"{short(place)} is a link; nothing is read or written through it.")
    return place


def subfolder(folder: str | Path, *names: str) -> Path:
    """A folder within one of ours, made if it is not there."""
    return make_folder(inside(folder, *names))


def holds(folder: str | Path, kind: str) -> bool:
    """Whether a folder is a `kind` (run, discovery, fit, sweep), by the file that makes it one; no, where no
    folder can have such a name."""
    return os.path.isfile(Path(folder) / _MARKERS[kind])


def check_place(folder: str | Path, kind: str, belongs: Callable[[Path], bool] | None = None) -> bool:
    """Is this folder ours? True if it holds a `kind` (run, discovery, fit, sweep), False if one can be made there.

    A folder that holds anything else is an error, and so is one that cannot be written. What writers left unfinished
    counts as nothing. `belongs` says of an entry whether a `kind` has such: where it is given, every entry must. Makes
    and removes nothing.
    """
    folder = Path(folder)
    place = folder.absolute()
    try:
        there = _first_there(place)
        held = sorted(p.name for p in place.iterdir() if not _passing(p.name)) if there == place else []
        if belongs is not None and there == place:  # the folder as a whole is replaced
            if folder.is_symlink():
                raise LapsusError(f"{short(folder)} is a link; only an ordinary folder is replaced.")
            if os.path.ismount(place) or place.samefile(Path.cwd()):
                raise LapsusError(f"{short(folder)} cannot be replaced as a whole; name a folder within it.")
            there = place.parent
    except (OSError, ValueError) as error:
        raise _cannot_be(folder, "a folder", error) from error
    _check_rights(folder, there)
    if _MARKERS[kind] not in held:
        held = [name for name in held if name not in _EARLY.get(kind, ())]
    if not held:
        return False
    foreign = [name for name in held if belongs is not None and not belongs(place / name)]
    if foreign or (belongs is None and _MARKERS[kind] not in held):
        others = [other for other, marker in _MARKERS.items() if other != kind and marker in held]
        what = f"holds a {others[0]}" if others else f"holds other files ({short(', '.join((foreign or held)[:3]))})"
        raise LapsusError(f"{short(folder)} {what} and is not a {kind}; name a new or empty folder.")
    return True


def check_file(path: str | Path, kind: str, ours: Callable[[Path], bool]) -> bool:
    """Is this file ours? True if it is a `kind` (as `ours` says) and may be replaced, False if one can be made there.

    Any other file is an error, and so is a place that cannot be written; of an empty one nothing is lost. Makes and
    removes nothing: asked before the work whose result is written there.
    """
    path = Path(path)
    try:
        _check_rights(path, _first_there(path.absolute().parent))
        check_ordinary(path)
        size = os.lstat(path).st_size
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise _cannot_be(path, "a file", error) from error
    if size and not ours(path):
        raise LapsusError(f"{short(path)} is there already and is not {kind}; name another place.")
    return True


def _first_there(place: Path) -> Path:
    """The folder itself, or the nearest above it that is there."""
    there = next(path for path in (place, *place.parents) if os.path.lexists(path))
    if not there.is_dir():
        raise LapsusError(f"{short(there)} is a file, not a folder; name another one.")
    return there


def _check_rights(path: Path, there: Path) -> None:
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        raise LapsusError(f"{short(path)} cannot be written: no permission in {short(there)}; name another one.")


def _cannot_be(path: Path, what: str, error: Exception) -> LapsusError:
    reason = getattr(error, "strerror", None) or error
    return LapsusError(f"{short(path)} cannot be {what} here: {reason}; name another one.")


def _passing(name: str) -> bool:
    """Whether an entry is there for the time of a write alone."""
    return name.endswith(ENDING) or name == _LOCK


@contextmanager
def new_folder(folder: str | Path) -> Iterator[Path]:
    """A folder to fill beside `folder`; it takes its place, all at once, when the block ends without an error."""
    folder = Path(folder)
    parent = make_folder(folder.absolute().parent)
    sweep(parent, folder.name)
    temporary = beside(folder.absolute())
    try:
        step("make folder", temporary)
        temporary.mkdir()
        yield temporary
        for place, _, _ in os.walk(temporary):
            sync_folder(Path(place))
        step("rename", temporary, folder)
        _swap(temporary, folder)
        sync_folder(parent)
    except OSError as error:
        raise failure(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _swap(new: Path, folder: Path) -> None:
    """`new` takes the name of `folder`; what was there gets the name of `new`."""
    if folder.is_symlink():
        raise LapsusError(f"{short(folder)} is a link; only an ordinary folder is replaced.")
    if not folder.exists() or not any(folder.iterdir()):
        os.rename(new, folder)
        return
    exchange = None if os.name == "nt" else getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if exchange is not None and exchange(_HERE, os.fsencode(new), _HERE, os.fsencode(folder), _EXCHANGE) == 0:
        return
    aside = beside(folder.absolute())  # where the system cannot exchange two names: a moment with neither
    os.rename(folder, aside)
    try:
        os.rename(new, folder)
    except OSError:
        os.rename(aside, folder)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def file_name(text: object) -> str:
    """A name from a table as part of a file's name: letters, digits, - _ . alone, and not too long for any disk; what
    is nothing but dots, which would lead up, becomes _."""
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in str(text))
    safe = safe if safe.strip(".") else "_" * len(safe)
    if len(safe.encode()) <= 80:
        return safe
    digest = hashlib.blake2b(str(text).encode("utf-8", "replace"), digest_size=4).hexdigest()
    return safe.encode()[:71].decode(errors="ignore") + "-" + digest


@contextmanager
def locked(folder: str | Path, what: str = "is written") -> Iterator[None]:
    """Hold the folder for this process alone; another one is told who has it.

    The lock is the kernel's, on a file that names its owner, so that the file of a process that died locks nothing. A
    fork of the owner does not have it.
    """
    try:
        import fcntl
    except ImportError:  # not a Unix
        yield
        return
    path, until = Path(folder) / _LOCK, time.monotonic() + _PATIENCE
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o666)
        except OSError as error:
            raise failure(path, error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise LapsusError(f"{short(path)} is no ordinary file; move it away.")
            if os.path.lexists(path) and os.stat(path).st_ino == os.fstat(handle).st_ino:
                break
            os.close(handle)  # its owner removed it between our two calls
        except OSError as error:
            owner = os.pread(handle, 200, 0).decode(errors="replace").strip()
            os.close(handle)
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise failure(path, error) from error
            if not _dead(owner) or time.monotonic() > until:
                raise LapsusError(f"{short(folder)} {what} by another process ({owner}) just now.") from error
            time.sleep(0.02)  # a fork of it has not come to let go
        except LapsusError:
            os.close(handle)
            raise
    _held.add(handle)
    try:
        with suppress(OSError):  # the name is for people; the lock holds without it
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        if handle in _held:  # else this is a fork
            _held.remove(handle)
            with suppress(OSError):
                path.unlink()
            os.close(handle)


def _dead(owner: str) -> bool:
    """Whether the owner that a lock names is a process of this machine that is no more."""
    number, _, where = owner.partition(" on ")
    return number.isdecimal() and where == socket.gethostname() and not alive(int(number))


def _let_go() -> None:
    """In a fork, which shares the locks of its parent and would keep them when that is killed."""
    while _held:
        with suppress(OSError):
            os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
