"""Writing one file: all of it or nothing, flushed to disk, through no link, over nothing but ordinary files."""

import errno
import hashlib
import io
import json
import os
import secrets
import shutil
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from lapsus import __version__
from lapsus.errors import LapsusError
from lapsus.files.plain import to_plain
from lapsus.files.reading import read_bytes, read_end, short

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from matplotlib.figure import Figure

# Called before every step that changes the disk, with the step's name, its path and what it is about to do. The fault
# campaign counts the steps here, dies at the n-th, raises what a disk would, or returns how many bytes a write takes.
watcher: Callable[[str, Path, bytes | Path | None], int | None] | None = None

ENDING = ".partial"
# Flags of every file that is opened to be written: no link is followed, no child inherits it.
NO_LINKS: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def step(name: str, path: Path, detail: bytes | Path | None = None) -> int | None:
    """Tell the watcher, if there is one."""
    return watcher(name, path, detail) if watcher is not None else None


def failure(path: Path, error: OSError) -> LapsusError:
    """What the system said of a write, as a sentence."""
    return LapsusError(f"Cannot write {short(path)}: {error.strerror or error}. What was there before is kept.")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last; some file systems cannot, and then need not."""
    step("sync folder", folder)
    if os.name == "nt":  # has no handle of a folder to flush
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _put(handle: int, path: Path, data: bytes) -> None:
    """All of the data, however little the system takes at a time."""
    view = memoryview(data)
    while len(view):
        most = step("write", path, bytes(view) if watcher is not None else None)
        written = os.write(handle, view if most is None else view[: max(1, most)])
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[written:]


def beside(path: Path) -> Path:
    """A name of our own in the same folder; it says which process of which machine is at it."""
    return path.with_name(f"{_start(path.name)}{host()}-{os.getpid()}-{secrets.token_hex(4)}{ENDING}")


def _start(name: str) -> str:
    """How the names begin that `beside` gives; of any name that a file can have, also one that is not UTF-8."""
    return f".{os.fsencode(name)[:60].decode(errors='ignore')}."


def host() -> str:
    """This machine, in a few letters."""
    return hashlib.blake2b(socket.gethostname().encode(), digest_size=3).hexdigest()


def clean_up(folder: str | Path, name: str = "") -> None:
    """Remove what writers that are no more left behind in a folder (of one file or folder, if it is named)."""
    start = _start(name) if name else "."
    with suppress(OSError):
        for path in list(Path(folder).iterdir()):
            if not (path.name.startswith(start) and path.name.endswith(ENDING) and _left_behind(path.name)):
                continue
            with suppress(OSError):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()


def _left_behind(name: str) -> bool:
    """Whether this is a name that `beside` gave in a process of this machine that is no more."""
    where, _, rest = name.removesuffix(ENDING).rpartition(".")[2].partition("-")
    number = rest.partition("-")[0]
    return where == host() and number.isdecimal() and not alive(int(number))


def alive(process: int) -> bool:
    """Whether there is such a process on this machine."""
    if os.name == "nt":  # where asking is killing
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        pass
    return True


def check_ordinary(path: Path) -> None:
    """An error where there is a link, a folder or anything else that is not replaced."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        what = "a link" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else "not an ordinary file"
        raise LapsusError(f"{short(path)} is {what}; only ordinary files are replaced. Move it away.")


def write_bytes(path: str | Path, data: bytes, replace: bool = True) -> None:
    """All of the data or nothing of it, and on disk when this returns; on any error the old file is what it was. What
    dead writers of this file left is removed.

    replace=False refuses to replace a file, also one that another process made in the meantime.
    """
    path = Path(path)
    temporary = beside(path)
    try:
        check_ordinary(path)
        clean_up(path.parent, path.name)
        step("create", temporary)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINKS, 0o666)
        try:
            _put(handle, temporary, data)
            step("sync", temporary)
            os.fsync(handle)
        finally:
            os.close(handle)
        step("rename", temporary, path)
        if replace:
            os.replace(temporary, path)
        else:
            _put_in_place(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise failure(path, error) from error
    finally:
        with suppress(OSError):  # it is gone if all went well
            temporary.unlink()


def _put_in_place(temporary: Path, path: Path) -> None:
    """Give a finished file its name unless that is taken: a link fails where a rename would replace."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise LapsusError(f"{short(path)} was made by another process in the meantime; it stays as it is.") from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
            raise
        os.replace(temporary, path)  # a file system without hard links; the check before writing must do


def write_text(path: str | Path, text: str) -> None:
    """`write_bytes` in UTF-8; half a surrogate pair, as names from a table may hold, becomes a question mark."""
    write_bytes(path, text.encode("utf-8", "replace"))


def write_json(path: str | Path, value: Any) -> None:
    """Plain values, arrays and dataclasses as JSON; what is not finite becomes null."""
    write_text(path, json.dumps(to_plain(value), indent=1, allow_nan=False) + "\n")


def write_toml(path: str | Path, table: dict) -> None:
    """A table of plain values as TOML."""
    write_text(path, to_toml(table))


def to_toml(table: dict) -> str:
    """A table of plain values as TOML; a value of nothing is left out."""
    try:
        return tomli_w.dumps(_without_none(table))
    except TypeError as error:
        raise LapsusError(
            f"An experiment file cannot hold this ({error}): a function must be a dataclass with __call__, named by its"
            " kind."
        ) from error


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, (list, tuple)) else value


def write_arrays(path: str | Path, arrays: "dict[str, np.ndarray]") -> None:
    """Arrays by name, as a compressed .npz."""
    import numpy as np

    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_bytes(path, buffer.getvalue())


def write_netcdf(path: str | Path, dataset: "xr.Dataset", replace: bool = True) -> None:
    """A dataset as netCDF, with the version that wrote it; made in memory first: HDF5 does not outlive a full disk."""
    buffer = io.BytesIO()
    dataset.assign_attrs(lapsus=__version__, format=1).to_netcdf(buffer, engine="h5netcdf")
    write_bytes(path, buffer.getvalue(), replace)


def write_figure(path: str | Path, figure: "Figure", **options: Any) -> None:
    """A figure in the form that the ending of its name says, without the time of day in it."""
    path, buffer = Path(path), io.BytesIO()
    form = path.suffix[1:]
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(form)
    figure.savefig(buffer, format=form, metadata=metadata, **options)
    write_bytes(path, buffer.getvalue())


def is_figure(path: str | Path) -> bool:
    """Whether a file may be one that `write_figure` wrote: matplotlib leaves its name in all of them."""
    return b"Matplotlib" in read_bytes(path)


def append_line(path: str | Path, line: str) -> None:
    """One more line at the end of an ordinary file, on disk when this returns. A torn last line is ended first."""
    path = Path(path)
    try:
        check_ordinary(path)
        torn = path.exists() and read_end(path, 1) not in (b"", b"\n")
        step("append", path)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_LINKS, 0o666)
        try:
            _put(handle, path, ("\n" * torn + line + "\n").encode("utf-8", "replace"))
            step("sync", path)
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise failure(path, error) from error


def remove(path: str | Path) -> None:
    """Remove a file if it is there, and for good when this returns."""
    path = Path(path)
    try:
        step("remove", path)
        path.unlink()
        sync_folder(path.parent)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise LapsusError(f"Cannot remove {short(path)}: {error.strerror}.") from error


def set_aside(path: str | Path) -> Path:
    """Give a damaged file another name, so that it is neither used nor lost; returns that name."""
    path = Path(path)
    names = (f"{path.name}.damaged{number}" for number in ("", *(f"-{k}" for k in range(2, 1000))))
    aside = next(free for name in names if not os.path.lexists(free := path.with_name(name)))
    try:
        step("rename", path, aside)
        os.rename(path, aside)
        sync_folder(path.parent)
    except OSError as error:
        raise LapsusError(f"Cannot set the damaged {short(path)} aside: {error.strerror}.") from error
    return aside
