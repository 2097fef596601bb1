"""A process that works on one member after another: names come in as lines, outcomes go out as lines of JSON.

When the line of names ends, because the process that started it has nothing more or is no more, it saves and leaves.
"""

import json
import os
import queue
import signal
import stat
import sys
import threading

from lapsus.errors import LapsusError
from lapsus.files import short, subfolder
from lapsus.files.writing import NO_LINKS, failure
from lapsus.sweep.folder import Sweep
from lapsus.sweep.member import MemberOutcome, no_room, run_member


def work(folder: str, threads: int, trust: bool) -> None:
    """Until no more names come."""
    names: queue.Queue[str | None] = queue.Queue()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a member prints is no answer
    turn, ended, busy = threading.Lock(), False, False

    def listen() -> None:
        nonlocal ended
        for line in sys.stdin:
            names.put(line.strip())
        with turn:
            ended = True
            names.put(None)
            if busy:
                # Once: training saves at the first signal, and stops at once at a second.
                os.kill(os.getpid(), signal.SIGTERM)

    def stopped(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stopped)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this
    sweep = Sweep(folder, trust)
    threading.Thread(target=listen, daemon=True).start()
    print(json.dumps({"ready": True}), file=answers)
    try:
        while (name := names.get()) is not None:
            with turn:
                if ended:
                    break
                busy = True
            try:
                _log_to(sweep, name)
            except LapsusError as error:
                outcome = MemberOutcome("no room" if no_room(error) else "failed", str(error))
                if outcome.kind == "failed":
                    sweep.note_failure(name, str(error))
            else:
                outcome = run_member(sweep, name, threads)
            with turn:
                busy = False
            print(json.dumps({"member": name, "kind": outcome.kind, "reason": outcome.reason}), file=answers)
    except (KeyboardInterrupt, BrokenPipeError):
        pass


def _log_to(sweep: Sweep, name: str) -> None:
    subfolder(sweep.path, "logs")
    path = sweep.log_file(name)
    try:
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_LINKS, 0o666)
    except OSError as error:  # a pipe, say
        raise failure(path, error) from error
    if not stat.S_ISREG(os.fstat(log).st_mode):
        raise LapsusError(f"{short(path)} is not an ordinary file; move it away.")
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["trust"])
