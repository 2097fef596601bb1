"""Work in a forked process that may be killed, starved or cut off, and what became of it."""

import contextlib
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Seconds of wall clock without any of processor time after which a child waits for something that never comes.
IDLE = 180


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code (negative: the signal), all it printed, and whether it had to be stopped."""

    code: int
    text: str
    hung: bool = False

    @property
    def traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.text


def memory_limit(extra: int) -> None:
    """Allow this process so many bytes more than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + extra
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def run(work: Callable[[], object], *, seconds: float = 120.0, kill_after: float | None = None) -> Ended:
    """Fork, do the work with output to a file, wait; SIGKILL after `kill_after` seconds if that is given.

    `seconds` are of processor time, of the child and its own children, so that a busy machine makes nobody late; who
    waits for `IDLE` seconds without using any has hung too.
    """
    return start(work)(seconds, kill_after)


def start(work: Callable[[], object]) -> Callable[..., Ended]:
    """Fork and do the work; what is returned waits for its end as `run` does."""
    output = tempfile.TemporaryFile()  # noqa: SIM115 (closed where the end is waited for)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setpgid(0, 0)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
            # A test runner may have put its own in their place.
            sys.stdout, sys.stderr = (os.fdopen(stream, "w", closefd=False) for stream in (1, 2))
            work()
            code = 0
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def ended(seconds: float = 120.0, kill_after: float | None = None) -> Ended:
        with output:
            status, hung = wait(child, seconds, kill_after)
            output.seek(0)
            return Ended(os.waitstatus_to_exitcode(status), output.read().decode(errors="replace"), hung)

    return ended


def wait(child: int, seconds: float, kill_after: float | None = None) -> tuple[int, bool]:
    """The status of a child, and whether it had to be stopped."""
    handle = os.pidfd_open(child)
    try:
        if kill_after is not None:
            if not select.select([handle], [], [], kill_after)[0]:
                os.kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1], False
        hung, used, since = False, 0.0, time.monotonic()
        while not hung and not select.select([handle], [], [], 2)[0]:
            now = _processor_seconds(child)
            if now > used:
                used, since = now, time.monotonic()
            hung = used > seconds or time.monotonic() - since > IDLE
        return os.waitpid(child, 0)[1] if not hung else _stopped(child), hung
    except BaseException:
        _stopped(child)
        raise
    finally:
        os.close(handle)


def _stopped(child: int) -> int:
    """Kill a child with all of its group; its status."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _processor_seconds(group: int) -> float:
    """Of all processes in the group that there are now, and of those that they have waited for."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def deadline(seconds: float) -> Callable[[], bool]:
    """Whether that many seconds from now are over."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end
