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

import lapsus

# Where the code of lapsus is.
OURS = str(Path(lapsus.__file__).parent) + os.sep
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


def run(
    work: Callable[[], object],
    *,
    seconds: float = 120.0,
    struck_after: float | None = None,
    by: signal.Signals = signal.SIGKILL,
) -> Ended:
    """Fork, do the work with output to a file, wait; send the signal after `struck_after` seconds if that is given.

    `seconds` are of processor time, of the child and its own children, so that a busy machine makes nobody late; who
    waits for `IDLE` seconds without using any has hung too.
    """
    return start(work)(seconds, struck_after, by)


def start(work: Callable[[], object]) -> Callable[..., Ended]:
    """Fork and do the work; what is returned waits for its end as `run` does."""
    output = tempfile.TemporaryFile()  # noqa: SIM115 (closed where the end is waited for)
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = 130  # where a signal comes when the work is done; the fork must not go on as a second campaign
        try:
            code = _worked(work, output.fileno())
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)

    def ended(seconds: float = 120.0, struck_after: float | None = None, by: signal.Signals = signal.SIGKILL) -> Ended:
        with output:
            if struck_after is not None and not _over(child, struck_after):
                os.kill(child, by)
            status, hung = wait(child, seconds)
            output.seek(0)
            return Ended(os.waitstatus_to_exitcode(status), output.read().decode(errors="replace"), hung)

    return ended


def _worked(work: Callable[[], object], output: int) -> int:
    """Do the work in a fork; its exit code."""
    os.setpgid(0, 0)
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        for stream in (1, 2):
            os.dup2(output, stream)
        # A test runner may have put its own in their place.
        sys.stdout, sys.stderr = (os.fdopen(stream, "w", closefd=False) for stream in (1, 2))
        work()
        return 0
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    except KeyboardInterrupt as interrupt:
        # Before the work began, or when it was done, it is no concern of lapsus.
        files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(interrupt.__traceback__)]
        if any(file.startswith(OURS) for file in files):
            traceback.print_exc()
        return 130
    except BaseException:
        traceback.print_exc()
        return 70


def _over(child: int, seconds: float) -> bool:
    """Whether a child ends within so many seconds of the clock."""
    handle = os.pidfd_open(child)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def wait(child: int, seconds: float) -> tuple[int, bool]:
    """The status of a child, and whether it had to be stopped."""
    handle = os.pidfd_open(child)
    try:
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
