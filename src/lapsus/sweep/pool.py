"""Members on the cores of this machine: one process a core, one thread each.

The processes outlive members, since starting one costs seconds. One that dies is replaced, and what it worked on has
failed once. Whoever watches is told through `shown`.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import lapsus
from lapsus.engine.threads import available
from lapsus.errors import LapsusError
from lapsus.sweep.folder import Sweep
from lapsus.sweep.member import NO_ROOM

__all__ = ["Pool", "environment"]

_TICK = 1.0
_LOOK_ELSEWHERE = 5.0
# Saving a checkpoint takes one update and one file; who does not answer for so long is killed.
_PATIENCE = 120.0


def environment(threads: int) -> dict[str, str]:
    """Of a process that works on members: it imports what this one can, and uses no more threads than told.

    The working folder is not among the places from which it imports: a queue.py there would stand in for Python's own.
    Classes that an experiment names are looked for there last (training/kinds.py).
    """
    here = os.getcwd()
    places = [os.path.abspath(entry) for entry in sys.path if entry and os.path.abspath(entry) != here]
    own = str(Path(lapsus.__file__).parents[1])
    limits = {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "MKL", "OPENBLAS")}
    return os.environ | limits | {"PYTHONPATH": os.pathsep.join(dict.fromkeys([*places, own]))}


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[str]
    names: IO[str]
    answers: IO[str]
    ready: bool = False
    was_ready: bool = False
    member: str | None = None
    since: float = field(default_factory=time.monotonic)


class Pool:
    """Works on the members of a sweep (or on some of them, `names`) until all that can be done is done.

    wait   whether to wait for members that other processes work on
    shown  called about once a second with the pool, and with a line of text whenever something ended
    """

    def __init__(
        self,
        sweep: Sweep,
        workers: int | None = None,
        *,
        names: Iterable[str] | None = None,
        wait: bool = True,
        shown: Callable[["Pool", str | None], None] = lambda pool, line: None,
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
        self.threads = max(1, available() // self.count) if workers is None else 1
        self.stopping = self._asked = False
        self.no_room: str | None = None  # why nothing can be written
        self._workers: dict[int, _Worker] = {}
        self._answers: queue.Queue[tuple[int, dict | None]] = queue.Queue()
        self._number = 0

    @property
    def running(self) -> dict[str, float]:
        """Members that are worked on here, and since when (time.monotonic)."""
        return {worker.member: worker.since for worker in self._workers.values() if worker.member is not None}

    def stop(self) -> None:
        """Have every process save and leave; those that do not within two minutes are killed. May be called by the
        handler of a signal: what it asks for is done between two looks at the processes."""
        self._asked = True

    def _stop(self) -> None:
        self.stopping = True
        for worker in self._workers.values():
            with suppress(OSError):
                worker.names.close()  # which it takes as the end of its work
        timer = threading.Timer(_PATIENCE, self._kill)
        timer.daemon = True
        timer.start()

    def _kill(self) -> None:
        for worker in list(self._workers.values()):
            worker.process.kill()

    def run(self) -> None:
        """Until nothing is left that could be done, or stop() was called; raises where nothing can be written."""
        looked = time.monotonic()
        try:
            while not self.stopping or self._workers:
                if not self.stopping and (self._asked or self.sweep.stop_file.exists()):
                    self._stop()
                if not self.stopping:
                    self._hand_out()
                    if not self._workers and not (self.wait and self.elsewhere):
                        break
                with suppress(queue.Empty):
                    self._take_in(*self._answers.get(timeout=_TICK))
                if time.monotonic() - looked > _LOOK_ELSEWHERE:
                    self._look_elsewhere()
                    looked = time.monotonic()
                self.shown(self, None)
        finally:
            self._kill()
        if self.no_room is not None:
            raise LapsusError(f"{self.no_room} {NO_ROOM}")

    def _hand_out(self) -> None:
        idle = [worker for worker in self._workers.values() if worker.ready and worker.member is None]
        starting = sum(not worker.ready for worker in self._workers.values())
        for worker in idle:
            if self.ready:
                worker.member, worker.since = self.ready.popleft(), time.monotonic()
                with suppress(OSError):  # it died: its line of answers ends, and what it had is a failure
                    worker.names.write(worker.member + "\n")
                    worker.names.flush()
            elif not starting and not self._more_to_come():
                worker.names.close()
                worker.ready = False
        for _ in range(min(self.count - len(self._workers), len(self.ready) - starting)):
            self._start()

    def _more_to_come(self) -> bool:
        """Members that may become ready while others are worked on."""
        return bool(self.running) or bool(self.wait and self.elsewhere)

    def _start(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "lapsus.sweep.worker", str(self.sweep.path), str(self.threads)]
            + ["trust"] * self.sweep.trust,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(self.threads),
            start_new_session=True,  # Ctrl-C reaches this process alone, which then asks them
        )
        number, self._number = self._number, self._number + 1
        names, answers = process.stdin, process.stdout
        assert names is not None and answers is not None
        self._workers[number] = _Worker(process, names, answers)

        def listen() -> None:
            for line in answers:
                self._answers.put((number, json.loads(line)))
            process.wait()
            self._answers.put((number, None))

        threading.Thread(target=listen, daemon=True).start()

    def _take_in(self, number: int, answer: dict | None) -> None:
        worker = self._workers[number]
        if answer is None:
            del self._workers[number]
            for pipe in (worker.names, worker.answers):
                with suppress(OSError):  # it died with something in its pipe
                    pipe.close()
            if worker.member is not None and not self.stopping:
                reason = _how_it_ended(worker.process.returncode)
                self.sweep.note_failure(worker.member, reason, self.sweep.last_lines(worker.member))
                self._ended(worker.member, "failed", reason)
            elif not worker.was_ready and not self.stopping:
                # Another one would not fare better.
                raise LapsusError(
                    f"A process that trains members could not start: {_how_it_ended(worker.process.returncode)}. It"
                    " may have too little memory or address space; fewer --workers need less."
                )
        elif "ready" in answer:
            worker.ready = worker.was_ready = True
        else:
            worker.member = None
            self._ended(answer["member"], answer["kind"], answer["reason"])

    def _ended(self, name: str, kind: str, reason: str) -> None:
        if kind == "done":
            self.done.add(name)
            self.ready.extend(self.held.pop(name, []))
        elif kind == "busy":
            self.elsewhere.add(name)
        elif kind == "no room":
            self.no_room = reason
            self.stop()
        elif kind == "failed":
            if len(self.sweep.failures(name)) >= self.sweep.plan.tries:
                self._give_up(name)
            else:
                self.ready.append(name)
        self.shown(self, _line(self, name, kind, reason))

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
        if not self.elsewhere:
            return
        states = self.sweep.states(self.elsewhere)
        for name in states.done:
            self.elsewhere.discard(name)
            self._ended(name, "done", "")
        for name in states.failed:
            self.elsewhere.discard(name)
            self._give_up(name)
        for name in states.ready:
            self.elsewhere.discard(name)
            self.ready.append(name)


def _how_it_ended(code: int) -> str:
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"its process was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"its process left with code {code}"


def _line(pool: Pool, name: str, kind: str, reason: str) -> str:
    if kind == "done":
        return f"{len(pool.done)} of {len(pool.names)} done: {name}"
    if kind == "failed":
        count = len(pool.sweep.failures(name))
        what = "given up" if name in pool.failed else "tried again"
        return f"{name} failed ({count} of {pool.sweep.plan.tries}, {what}): {reason}"
    return f"{name}: {kind}"


@contextmanager
def asked_by_signal(pool: Pool, *numbers: signal.Signals) -> Iterator[list[signal.Signals]]:
    """While the block runs, these signals ask the pool to save and stop; a second one kills. Yields those that came."""
    came: list[signal.Signals] = []

    def handler(number: int, frame: object) -> None:
        came.append(signal.Signals(number))
        if len(came) == 1:
            pool.stop()
        else:
            pool._kill()

    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield came
    finally:
        for number, old in before.items():
            signal.signal(number, old)
