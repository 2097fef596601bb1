"""Folders: whose they are, which files in them are ours, and held by one process at a time."""

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from lapsus.errors import LapsusError
from lapsus.files.reading import check_format, read_json, short, understood
from lapsus.files.writing import (
    ENDING,
    beside,
    check_ordinary,
    clean_up,
    failure,
    remove,
    step,
    sync_folder,
    write_json,
)

# The file that makes a folder one of ours, by kind.
_MARKERS = {"run": "config.toml", "discovery": "stages.json", "fit": "files.json", "sweep": "manifest.json"}
# What may be there before it.
_EARLY = {"sweep": ("members", "targets")}
_LOCK = ".lock"


def make_folder(folder: str | Path) -> Path:
    """The folder, made with its parents if it is not there, on disk when this returns."""
    folder = Path(folder)
    try:
        missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
        for path in reversed(missing):
            step("make folder", path)
            path.mkdir(exist_ok=True)
            sync_folder(path.parent)
    except OSError as error:
        raise LapsusError(f"Cannot make the folder {short(folder)}: {error.strerror}.") from error
    if not folder.is_dir():
        raise LapsusError(f"{short(folder)} is there already and is not a folder.")
    return folder


def inside(folder: str | Path, *names: str) -> Path:
    """A path within one of our folders; a link on the way, which would lead elsewhere, is refused, and so are names
    that go up or that no file can have."""
    root = Path(folder)
    for component in Path(*names).parts:
        if component == ".." or Path(component).anchor:
            raise LapsusError(f"{short(root)} names a file that cannot be in it: {short(component)}.")
        root = root / component
        try:
            linked = stat.S_ISLNK(os.lstat(root).st_mode)
        except FileNotFoundError:
            linked = False
        except (OSError, ValueError) as error:  # a name that no file can have
            raise LapsusError(f"{short(root.parent)} names a file that cannot be: {short(component)}.") from error
        if linked:
            raise LapsusError(f"{short(root)} is a link; nothing is read or written through it.")
    return root


def subfolder(folder: str | Path, *names: str) -> Path:
    """A folder within one of ours, made if it is not there."""
    return make_folder(inside(folder, *names))


def holds(folder: str | Path, kind: str) -> bool:
    """Whether a folder is a `kind` (run, discovery, fit, sweep), by the file that makes it one."""
    return os.path.isfile(Path(folder) / _MARKERS[kind])


def check_place(folder: str | Path, kind: str) -> bool:
    """Is this folder ours? True if it holds a `kind` (run, discovery, fit, sweep), False if one can be made there.

    A folder that holds anything else is an error, and so is one that cannot be written. What writers left unfinished
    counts as nothing. Makes and removes nothing.
    """
    folder = Path(folder)
    absolute = folder.absolute()
    try:
        there = _first_there(absolute)
        held = sorted(os.listdir(absolute)) if there == absolute else []
    except (OSError, ValueError) as error:
        raise _cannot_be(folder, "a folder", error) from error
    _check_rights(folder, there)
    if _MARKERS[kind] in held:
        return True
    early = _EARLY.get(kind, ())
    held = [name for name in held if not name.endswith(ENDING) and name != _LOCK and name not in early]
    if not held:
        return False
    others = [other for other, marker in _MARKERS.items() if marker in held]
    what = f"holds a {others[0]}" if others else f"holds other files ({short(', '.join(held[:3]))})"
    raise LapsusError(f"{short(folder)} {what} and is not a {kind}; name a new or empty folder.")


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


def check_own_files(folder: str | Path, kind: str) -> bool:
    """Whether a folder holds files of an earlier `own_files`, which may be replaced; an error if it holds only others.
    Makes nothing."""
    return check_place(folder, kind) and "before" not in read_json(Path(folder) / _MARKERS["fit"])


def _listed(folder: Path) -> list[str]:
    """Files that `own_files` wrote here, or was about to write when it was cut off."""
    path = folder / _MARKERS["fit"]
    if not path.is_file():
        return []
    table = read_json(path)
    check_format(table.get("format"), 1, path)
    with understood(path):
        return [str(name) for name in (*table["files"], *table.get("before", ()))]


@contextmanager
def own_files(folder: str | Path) -> Iterator[Path]:
    """A place for files that go to `folder` when the block ends without an error.

    They replace those that an earlier call wrote there, as its files.json lists them, and nothing else: other files
    stay, and one in the place of a new file is an error. An error leaves the folder as it was.
    """
    folder = Path(folder)
    new = not folder.exists()
    make_folder(folder)
    clean_up(folder)
    staged = beside(folder.absolute() / "files")
    try:
        step("make folder", staged)
        staged.mkdir()
        yield staged
        _take_place(staged, folder)
    except OSError as error:
        raise failure(folder, error) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        if new:
            with suppress(OSError):
                folder.rmdir()  # only if nothing came of it


def _take_place(staged: Path, folder: Path) -> None:
    wanted = sorted(path.relative_to(staged).as_posix() for path in staged.rglob("*") if path.is_file())
    before = _listed(folder)
    for name in wanted:
        if name not in before and os.path.lexists(path := inside(folder, name)):
            raise LapsusError(f"{short(path)} was not written by lapsus. Move it away; or name another folder.")
    list_file = folder / _MARKERS["fit"]
    write_json(list_file, {"format": 1, "files": wanted, "before": before})
    for name in wanted:
        target = inside(folder, name)
        check_ordinary(target)
        make_folder(target.parent)
        step("rename", staged / name, target)
        os.replace(staged / name, target)
        sync_folder(target.parent)
    for name in set(before) - set(wanted):
        path = inside(folder, name)
        remove(path)
        with suppress(OSError):
            path.parent.rmdir()  # a subject's folder that is empty now
    write_json(list_file, {"format": 1, "files": wanted})


def file_name(text: object) -> str:
    """A name from a table or a file as part of a file's name: letters, digits and - _ . + @ alone, and not too long for
    any disk; what is nothing but dots, which would lead up, becomes a dash."""
    name = re.sub(r"[^\w.+@-]+|^\.+$", "-", str(text))
    if len(name.encode()) <= 80:
        return name
    digest = hashlib.blake2b(str(text).encode("utf-8", "replace"), digest_size=4).hexdigest()
    return name.encode()[:71].decode(errors="ignore") + "-" + digest


@contextmanager
def locked(folder: str | Path, what: str = "is written") -> Iterator[None]:
    """Hold the folder for this process alone; another one gets an error. The lock of a process that died is free."""
    path = Path(folder) / _LOCK
    check_ordinary(path)
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise LapsusError(f"{short(folder)} {what} by another process just now.") from error
    except OSError as error:
        raise failure(path, error) from error
    try:
        yield
    finally:
        lock.release()
