"""Which member is worked on when: one loop for this machine's cores, a SLURM task and a Dask cluster.

Whoever works on members is a crew (`Crew`): processes here (sweep/processes.py) or calls through Dask
(sweep/dask_cluster.py). Whoever watches is told through `shown`.
"""

import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from lapsus.engine.threads import available
from lapsus.errors import LapsusError
from lapsus.sweep.folder import Sweep
from lapsus.sweep.member import NO_ROOM
from lapsus.sweep.processes import Processes

_TICK = 1.0
_LOOK_ELSEWHERE = 5.0


class Crew(Protocol):
    """Workers that members are given to."""

    @property
    def running(self) -> dict[str, float]:
        """Members that were given to it and have not ended, and since when (time.monotonic)."""

    @property
    def room(self) -> int:
        """How many more it takes now."""

    def give(self, name: str) -> None:
        """Have a member worked on."""

    def ended(self, timeout: float) -> tuple[str, str, str] | None:
        """A member that ended, how (as MemberOutcome has it) and why; None after so many seconds without one."""

    def stop(self) -> None:
        """Have all save and leave."""

    def close(self) -> None:
        """End what is still there."""


class Pool:
    """Works on the members of a sweep (or on some of them, `names`) until all that can be done is done.

    wait   whether to wait for members that other processes work on
    shown  called about once a second with the pool, and with a line of text whenever something ended
    crew   who works on them, by default processes on this machine
    """

    def __init__(
        self,
        sweep: Sweep,
        workers: int | None = None,
        *,
        names: Iterable[str] | None = None,
        wait: bool = True,
        shown: Callable[["Pool", str | None], None] = lambda pool, line: None,
        crew: Crew | None = None,
    ):
        self.sweep, self.wait, self.shown = sweep, wait, shown
        self.names = list(sweep.plan.members if names is None else names)
        states = sweep.states(self.names)
        self.done, self.failed, self.elsewhere = set(states.done), set(states.failed), set(states.running)
        self.ready = deque(states.ready)
        self.held: dict[str | None, list[str]] = {}  # by the start that they wait for
        for name in states.waiting:
            self.held.setdefault(sweep.plan.start(name), []).append(name)
        self.blocked = set(states.blocked)
        todo = len(self.names) - len(self.done) - len(self.failed) - len(self.blocked)
        self.count = max(1, min(workers or available(), todo))
        # Fewer members than cores: each has what is left over.
        threads = max(1, available() // self.count) if workers is None else 1
        self.crew = Processes(sweep, self.count, threads) if crew is None else crew
        self.stopping = self._asked = False
        self.no_room: str | None = None  # why nothing can be written

    @property
    def running(self) -> dict[str, float]:
        """Members that are worked on here, and since when (time.monotonic)."""
        return self.crew.running

    def stop(self) -> None:
        """Have every worker save and leave. May be called by the handler of a signal: what it asks for is done between
        two looks at the workers."""
        self._asked = True

    def run(self) -> None:
        """Until nothing is left that could be done, or stop() was called; raises where nothing can be written."""
        looked = time.monotonic()
        try:
            while True:
                if not self.stopping and (self._asked or self.sweep.stop_file.exists()):
                    self.stopping = True
                    self.crew.stop()
                while self.ready and self.crew.room > 0 and not self.stopping:
                    self.crew.give(self.ready.popleft())
                waiting = self.wait and self.elsewhere and not self.stopping
                if not self.crew.running and not waiting:
                    break
                if (ended := self.crew.ended(_TICK)) is not None:
                    self._ended(*ended)
                if time.monotonic() - looked > _LOOK_ELSEWHERE:
                    self._look_elsewhere()
                    looked = time.monotonic()
                self.shown(self, None)
        finally:
            self.crew.close()
        if self.no_room is not None:
            raise LapsusError(f"{self.no_room} {NO_ROOM}")

    def _ended(self, name: str, kind: str, reason: str) -> None:
        if kind == "done":
            self.done.add(name)
            self.ready.extend(self.held.pop(name, []))
        elif kind == "no room":
            self.no_room = reason
            self.stop()
        elif kind == "failed":
            if self.sweep.given_up(name):
                self._give_up(name)
            else:
                self.ready.append(name)
        elif not self.stopping:  # someone else is at it, or its worker was told to leave
            self.elsewhere.add(name)
        self.shown(self, self._line(name, kind, reason))

    def _line(self, name: str, kind: str, reason: str) -> str:
        if kind == "done":
            return f"{len(self.done)} of {len(self.names)} done: {name}"
        if kind == "failed":
            count = len(self.sweep.failures(name))
            what = "given up" if name in self.failed else "tried again"
            return f"{name} failed ({count} of {self.sweep.plan.tries}, {what}): {reason}"
        return f"{name}: {kind}"

    def _give_up(self, name: str) -> None:
        self.failed.add(name)
        lost = self.held.pop(name, [])
        if self.sweep.trained(name):  # and could not be measured: others can start from it
            self.ready.extend(lost)
            return
        while lost:
            follower = lost.pop()
            self.blocked.add(follower)
            lost += self.held.pop(follower, [])

    def _look_elsewhere(self) -> None:
        """What others worked on may be done by now, or theirs no more."""
        states = self.sweep.states(self.elsewhere)
        self.elsewhere -= {*states.done, *states.failed, *states.ready}
        for name in states.done:
            self._ended(name, "done", "")
        for name in states.failed:
            self._give_up(name)
        self.ready.extend(states.ready)


@contextmanager
def asked_by_signal(pool: Pool, *numbers: signal.Signals) -> Iterator[list[signal.Signals]]:
    """While the block runs, these signals ask the pool to save and stop; a second one kills. Yields those that came."""
    came: list[signal.Signals] = []

    def handler(number: int, frame: object) -> None:
        came.append(signal.Signals(number))
        if len(came) == 1:
            pool.stop()
        else:
            pool.crew.close()

    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield came
    finally:
        for number, old in before.items():
            signal.signal(number, old)
