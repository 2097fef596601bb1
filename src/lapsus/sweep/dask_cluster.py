"""Members on any cluster that Dask reaches: each is a call that goes on with a folder which all workers see.

A worker that is lost costs what came after the member's last checkpoint; the call is made again elsewhere.
"""

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lapsus.errors import LapsusError
from lapsus.files import write_text
from lapsus.sweep.folder import Sweep
from lapsus.sweep.member import NO_ROOM, run_member

__all__ = ["run_on_dask"]

_CONNECT, _TICK, _PAUSE = 20.0, 1.0, 5.0


def call_member(folder: str, name: str, trust: bool) -> tuple[str, str]:
    """What a worker does: go on with a member; its outcome and the reason."""
    outcome = run_member(Sweep(folder, trust), name)
    return outcome.kind, outcome.reason


def run_on_dask(sweep: Sweep, address: str, say: Callable[[str], None] = lambda line: None) -> None:
    """Work on all members through the scheduler at this address, until all that can be done is done.

    Whatever interrupts it leaves the sweep as it is; the workers save and stop.
    """
    try:
        from distributed import Client
    except ImportError:
        raise LapsusError("`dask` needs the package distributed: install lapsus[dask].") from None
    try:
        client = Client(address, timeout=_CONNECT)
    except (OSError, ValueError, TypeError) as error:
        raise LapsusError(f"There is no Dask scheduler at {address} ({error}).") from error
    with client:
        if not client.scheduler_info()["workers"]:
            say(f"The scheduler at {address} has no workers yet; members wait for the first.")
        _work(sweep, client, say)


def _work(sweep: Sweep, client: Any, say: Callable[[str], None]) -> None:
    from distributed import as_completed

    folder = str(Path(sweep.path).resolve())
    states = sweep.states()
    done, ready, again = set(states.done), deque(states.ready), dict.fromkeys(states.running, time.monotonic())
    held: dict[str | None, list[str]] = {}
    for name in states.waiting:
        held.setdefault(sweep.plan.start(name), []).append(name)
    ended, number = as_completed(raise_errors=False), 0
    calls: dict[str, tuple[str, Any]] = {}
    try:
        while ready or calls or again:
            if sweep.stop_file.exists():
                raise KeyboardInterrupt
            for name in [name for name, when in again.items() if time.monotonic() > when]:
                del again[name]
                ready.append(name)
            if client.status not in ("running", "connecting"):
                raise LapsusError(
                    "The Dask scheduler is gone; what was saved is in the folder, and the same command goes on."
                )
            while ready:
                name, number = ready.popleft(), number + 1
                # Not pure: a call that is made again is another call.
                key = f"{sweep.hash}-{name}-{number}"
                future = client.submit(call_member, folder, name, sweep.trust, key=key, pure=False)
                calls[future.key] = name, future
                ended.add(future)
            future = _next(ended)
            if future is None:
                continue
            name, _ = calls.pop(future.key)
            kind, reason = _outcome(sweep, name, future)
            if kind == "done":
                done.add(name)
                ready.extend(held.pop(name, []))
                say(f"{len(done)} of {len(sweep.plan.members)} done: {name}")
            elif kind == "failed":
                given_up = len(sweep.failures(name)) >= sweep.plan.tries
                say(f"{name} failed ({'given up' if given_up else 'tried again'}): {reason}")
                if not given_up:
                    ready.append(name)
                elif sweep.trained(name):  # and could not be measured: others can start from it
                    ready.extend(held.pop(name, []))
            elif kind == "no room":
                client.cancel([future for _, future in calls.values()])
                raise LapsusError(f"{reason} {NO_ROOM}")
            else:  # someone else is at it, or its worker was told to leave
                again[name] = time.monotonic() + _PAUSE
    except KeyboardInterrupt:
        write_text(sweep.stop_file, "")  # workers that are at it read this and save
        client.cancel([future for _, future in calls.values()])
        raise


def _next(ended: Any) -> Any:
    """The next call that ended, or None after a while."""
    deadline = time.monotonic() + _TICK
    while time.monotonic() < deadline:
        if ended.has_ready():
            return next(ended)
        time.sleep(0.05)
    return None


def _outcome(sweep: Sweep, name: str, future: Any) -> tuple[str, str]:
    if future.status == "finished":
        return future.result()
    if future.status in ("cancelled", "lost"):
        return "interrupted", "the scheduler lost it"
    # The member itself never raises: what comes here is a worker that died with it, again and again.
    reason = f"its workers died ({future.exception()})"
    sweep.note_failure(name, reason, sweep.last_lines(name))
    return "failed", reason
