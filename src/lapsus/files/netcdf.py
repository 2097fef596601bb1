"""netCDF files, tried before they are read: HDF5 loops or crashes on some damaged files, and neither can be caught
within a process.

A fork that gets through the file says quickly that it is safe to read. It is not asked where it may not be (macOS,
Windows), and what it says is not believed where it waits or crashes: locks that other threads held while it was made
are held for ever in it. Then a fresh interpreter, which has no such locks, decides.
"""

import importlib
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lapsus.errors import LapsusError
from lapsus.files.reading import Damaged, begins, check_version, ordinary_size, short

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["is_netcdf", "read_netcdf"]

# Of processor time for one file; of wall clock without any of it, after which a fork waits for ever; of wall clock
# where processor time cannot be limited.
_CPU_SECONDS, _IDLE_SECONDS, _WALL_SECONDS = 60, 10.0, 300.0
_TRY = "import sys; from lapsus.files.netcdf import _try; _try(sys.argv[1], int(sys.argv[2]))"


def is_netcdf(path: str | Path) -> bool:
    """Whether a file begins as those that `write_netcdf` writes; it may still be damaged."""
    return begins(path, b"\x89HDF\r\n\x1a\n")


def read_netcdf(path: str | Path) -> "xr.Dataset":
    """A netCDF file, all of it in memory. One that unpacks to very much more than it holds is refused unread."""
    path = Path(path)
    size = ordinary_size(path)
    for name in ("xarray", "h5netcdf"):
        importlib.import_module(name)  # here, so that a fork has nothing to import
    verdict = _forked(lambda: _load(path, size)) if sys.platform == "linux" else None
    if verdict is None:
        verdict = _in_a_fresh_process(path, size)
    if not verdict:
        raise Damaged(f"{short(path)} is damaged: HDF5 does not come to an end with it.")
    dataset = _load(path, size)
    check_version(dataset.attrs.get("lapsus"), path)
    return dataset


def _load(path: Path, size: int) -> "xr.Dataset":
    import xarray as xr

    try:
        with xr.open_dataset(path, engine="h5netcdf") as dataset:
            unpacked = sum(variable.nbytes for variable in dataset.variables.values())
            if unpacked > max(1 << 26, 100 * size):
                raise LapsusError(
                    f"{short(path)} would unpack its {size:,} bytes to {unpacked:,}; no file of lapsus does."
                )
            return dataset.load()
    except LapsusError:
        raise
    except Exception as error:  # the libraries below raise whatever a broken file makes them stumble over
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise Damaged(f"{short(path)} cannot be read as netCDF: {reason[:300]}.") from error


def _forked(work: Callable[[], object]) -> bool | None:
    """Whether a fork gets through the work, well or with an error (True), or uses up its processor time (False); None
    if it crashes or waits, which may be the fork's fault."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads that are not there in the fork are not needed
        child = os.fork()
    if child == 0:
        try:
            _limit()
            work()
        except BaseException:
            pass  # will be told by the process that asked
        finally:
            os._exit(0)
    try:
        status = _wait(child)
    except BaseException:  # Ctrl-C, say
        _stop(child)
        raise
    if status is None:
        _stop(child)
        return None
    ended = os.waitstatus_to_exitcode(status)
    return True if ended == 0 else False if ended == -signal.SIGXCPU else None


def _wait(child: int) -> int | None:
    """The status of a child that ends; None if it has used no processor time for a while."""
    pause, used, since = 0.0005, 0, time.monotonic()
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
        if time.monotonic() - since > _IDLE_SECONDS:
            now = sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]))
            if now == used:
                return None
            used, since = now, time.monotonic()


def _stop(child: int) -> None:
    with suppress(OSError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _limit() -> None:
    """Of a process that tries a file: no dump of memory, so much processor time, no word."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The soft limit alone: its signal tells it from a process that was killed for want of memory.
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _try(path: str, size: int) -> None:
    """What a fresh interpreter does with the file."""
    with suppress(ImportError):  # Windows has no limits of this kind
        _limit()
    with suppress(Exception):
        _load(Path(path), size)
    os._exit(0)


def _in_a_fresh_process(path: Path, size: int) -> bool:
    """Whether another interpreter gets through the file."""
    # -P: nothing is imported from the working folder that this process would not import from there.
    found = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    command = [sys.executable, "-P", "-c", _TRY, str(path), str(size)]
    # Where processor time is limited, the clock only ends what waits: a busy machine makes nobody late.
    limit = 20 * _CPU_SECONDS if sys.platform == "linux" else _WALL_SECONDS
    try:
        done = subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": found},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return False
    except OSError as error:
        raise LapsusError(f"{short(path)} cannot be tried in another process: {error.strerror}.") from error
    return done.returncode == 0
