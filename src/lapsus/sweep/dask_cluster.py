"""Members on any cluster that Dask reaches: each is a call that continues a folder which all workers see.

A worker that is lost costs what came after the member's last checkpoint; the call is made again elsewhere.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lapsus.errors import LapsusError
from lapsus.files import write_text
from lapsus.sweep.folder import Sweep
from lapsus.sweep.member import run_member
from lapsus.sweep.pool import Pool

_CONNECT = 20.0


def call_member(folder: str, name: str, trust: bool) -> tuple[str, str]:
    """What a worker does: continue a member; its outcome and the reason."""
    outcome = run_member(Sweep(folder, trust), name)
    return outcome.kind, outcome.reason


def dask_pool(sweep: Sweep, address: str, say: Callable[[str], None] = lambda line: None) -> Pool:
    """Works on all members through the scheduler at this address."""
    try:
        from distributed import Client
    except ImportError:
        raise LapsusError("`dask` needs the package distributed: install lapsus[dask].") from None
    try:
        client = Client(address, timeout=_CONNECT)
    except (OSError, ValueError, TypeError) as error:
        raise LapsusError(f"There is no Dask scheduler at {address} ({error}).") from error
    if not client.scheduler_info()["workers"]:
        say(f"The scheduler at {address} has no workers yet; members wait for the first.")
    return Pool(sweep, crew=DaskCalls(sweep, client), shown=lambda pool, line: None if line is None else say(line))


class DaskCalls:
    """All members that can be worked on, as calls that the scheduler has."""

    room = 1  # it takes any number

    def __init__(self, sweep: Sweep, client: Any):
        from distributed import as_completed

        self.sweep, self.client = sweep, client
        self.running: dict[str, float] = {}
        self._calls: dict[str, tuple[str, Any]] = {}
        self._ended, self._number = as_completed(raise_errors=False), 0

    def give(self, name: str) -> None:
        """Have a member worked on."""
        self._number += 1
        # Not pure: a call that is made again is another call.
        key = f"{self.sweep.hash}-{name}-{self._number}"
        folder = str(Path(self.sweep.path).resolve())
        future = self.client.submit(call_member, folder, name, self.sweep.trust, key=key, pure=False)
        self.running[name] = time.monotonic()
        self._calls[future.key] = name, future
        self._ended.add(future)

    def ended(self, timeout: float) -> tuple[str, str, str] | None:
        """A member that ended, how and why; None after so many seconds without one."""
        if self.client.status not in ("running", "connecting"):
            raise LapsusError(
                "The Dask scheduler is gone; what was saved is in the folder, and the same command continues."
            )
        deadline = time.monotonic() + timeout
        while not self._ended.has_ready():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.05)
        future = next(self._ended)
        if future.key not in self._calls:
            return None
        name, _ = self._calls.pop(future.key)
        self.running.pop(name)
        return name, *self._outcome(name, future)

    def _outcome(self, name: str, future: Any) -> tuple[str, str]:
        if future.status == "finished":
            return future.result()
        if future.status in ("cancelled", "lost"):
            return "interrupted", "the scheduler lost it"
        # The member itself never raises: what comes here is a worker that died with it, again and again.
        reason = f"its workers died ({future.exception()})"
        self.sweep.note_failure(name, reason, self.sweep.last_lines(name))
        return "failed", reason

    def stop(self) -> None:
        """Have all save and leave: workers that are at it read the stop file."""
        write_text(self.sweep.stop_file, "")
        self.client.cancel([future for _, future in self._calls.values()])
        self._calls.clear()
        self.running.clear()

    def close(self) -> None:
        """Leave the scheduler."""
        self.client.close()
