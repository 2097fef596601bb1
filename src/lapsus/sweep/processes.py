"""Members on the cores of this machine: one process each, which outlives members, since starting one costs seconds.

One that dies is replaced, and what it worked on has failed once.
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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import lapsus
from lapsus.errors import LapsusError
from lapsus.sweep.folder import Sweep

# Saving a checkpoint takes one update and one file; who does not answer for so long is killed.
_PATIENCE = 120.0


def environment(threads: int) -> dict[str, str]:
    """Of a process that works on members: it imports what this one can, and uses no more threads than told.

    The working folder is not among the places from which it imports: a queue.py there would stand in for Python's own.
    Classes that an experiment names are looked for there last (training/kinds.py).
    """
    here = os.getcwd()
    places = [os.path.abspath(entry) for entry in sys.path if entry and os.path.abspath(entry) != here]
    source = str(Path(lapsus.__file__).parents[1])
    limits = {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "MKL", "OPENBLAS")}
    return os.environ | limits | {"PYTHONPATH": os.pathsep.join(dict.fromkeys([*places, source]))}


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[str]
    names: IO[str]
    answers: IO[str]
    ready: bool = False
    member: str | None = None
    since: float = 0.0
    listener: threading.Thread | None = None


class Processes:
    """So many processes at most, each with so many threads."""

    def __init__(self, sweep: Sweep, count: int, threads: int):
        self.sweep, self.count, self.threads = sweep, count, threads
        self._given: deque[str] = deque()
        self._workers: list[_Worker] = []
        self._answers: queue.Queue[tuple[_Worker, dict | None]] = queue.Queue()
        self._stopping = False

    @property
    def running(self) -> dict[str, float]:
        """Members that were given and have not ended, and since when."""
        at_work = {worker.member: worker.since for worker in self._workers if worker.member is not None}
        return at_work | dict.fromkeys(self._given, time.monotonic())

    @property
    def room(self) -> int:
        """How many more members can be taken now."""
        return self.count - len(self.running)

    def give(self, name: str) -> None:
        """Have a member worked on, by a process that is idle or a new one."""
        self._given.append(name)
        if sum(worker.member is None for worker in self._workers) < len(self._given):
            self._start()

    def _start(self) -> None:
        command = [sys.executable, "-P", "-m", "lapsus.sweep.worker", str(self.sweep.path), str(self.threads)]
        process = subprocess.Popen(
            command + ["trust"] * self.sweep.trust,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(self.threads),
            start_new_session=True,  # Ctrl-C reaches this process alone, which then asks them
        )
        assert process.stdin is not None and process.stdout is not None
        worker = _Worker(process, process.stdin, process.stdout)
        self._workers.append(worker)

        def listen() -> None:
            for line in worker.answers:
                self._answers.put((worker, json.loads(line)))
            process.wait()
            self._answers.put((worker, None))

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        worker.listener = listener  # only then: one that could not start cannot be waited for

    def ended(self, timeout: float) -> tuple[str, str, str] | None:
        """A member that ended, how and why; None after so many seconds without one."""
        for worker in self._workers:
            if worker.ready and worker.member is None and self._given:
                worker.member, worker.since = self._given.popleft(), time.monotonic()
                with suppress(OSError):  # it died: its line of answers ends, and what it had is a failure
                    worker.names.write(worker.member + "\n")
                    worker.names.flush()
        try:
            worker, answer = self._answers.get(timeout=timeout)
        except queue.Empty:
            return None
        if worker not in self._workers:  # it was killed
            return None
        if answer is None:
            return self._left(worker)
        if "ready" in answer:
            worker.ready = True
            return None
        worker.member = None
        return answer["member"], answer["kind"], answer["reason"]

    def _left(self, worker: _Worker) -> tuple[str, str, str] | None:
        """A process that is no more: what it worked on has failed, unless it was told to leave."""
        self._workers.remove(worker)
        _close_pipes(worker)
        reason = _how_it_ended(worker.process.returncode)
        if self._stopping:
            return None if worker.member is None else (worker.member, "interrupted", "")
        if worker.member is not None:
            self.sweep.note_failure(worker.member, reason, self.sweep.last_lines(worker.member))
            return worker.member, "failed", reason
        if not worker.ready:  # another one would not fare better
            raise LapsusError(
                f"A process that trains members could not start: {reason}. It may have too little memory or address"
                " space; fewer `workers` need less."
            )
        return None

    def stop(self) -> None:
        """Have every process save and leave; those that do not within two minutes are killed."""
        self._stopping = True
        self._given.clear()
        for worker in self._workers:
            with suppress(OSError):
                worker.names.close()  # which it takes as the end of its work
        timer = threading.Timer(_PATIENCE, self._kill)
        timer.daemon = True
        timer.start()

    def _kill(self) -> None:
        for worker in list(self._workers):
            worker.process.kill()

    def close(self) -> None:
        """Kill what is still there; nobody is at a member any more."""
        self._stopping = True
        self._kill()
        for worker in self._workers:
            worker.process.wait()
            if worker.listener is not None:
                worker.listener.join()
            _close_pipes(worker)
        self._workers.clear()
        self._given.clear()


def _close_pipes(worker: _Worker) -> None:
    for pipe in (worker.names, worker.answers):
        with suppress(OSError):  # it died with something in its pipe
            pipe.close()


def _how_it_ended(code: int) -> str:
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"its process was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"its process left with code {code}"
