"""One command walked through its steps on disk, struck at each, and what it comes to when it goes on."""

import contextlib
import gc
import importlib
import json
import os
import re
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from lapsus.files import writing
from torture import jobs
from torture.child import Ended, run, start
from torture.faults import CUTS, ERRORS, KINDS, SIGNALS, WITHIN, Count, Fault, Walk

if TYPE_CHECKING:
    from torture.campaign import Tally

MOST_TRIES = 12


@dataclass(frozen=True)
class Reference:
    """What a job comes to when nothing happens to it: its bits, each step that it takes on disk with the place in the
    code from which it is taken, and how long it takes."""

    bits: dict
    steps: list[tuple[str, str]]
    seconds: float = 0.0

    def place(self, fault: Fault) -> tuple[str, str, str]:
        """Faults of one kind at steps that the same lines of code take are alike."""
        return (fault.kind, *self.steps[fault.at - 1])

    def pairs(self) -> list[Fault]:
        """Every kind of fault at every step at which it can be; only a write can be short."""
        steps = enumerate(self.steps, start=1)
        return [
            Fault(kind, at) for at, (step, _) in steps for kind in KINDS if kind != "short write" or step == "write"
        ]


def undisturbed(job: jobs.Job, folder: Path) -> Reference:
    """Run it; whatever it leaves in its folder must have been written through the one place that faults strike."""
    job.begin(folder)
    before, noted = set(folder.rglob("*")), folder.with_name(f"{folder.name}-steps")

    def work() -> None:
        count = Count()
        writing.watcher = count
        try:
            command()
        finally:
            noted.write_text(json.dumps([count.steps, sorted(map(str, count.named)), [*sys.modules]]))

    command = job.command(folder)
    assert command is not None
    began = time.monotonic()
    ended = run(work, seconds=600)
    seconds = time.monotonic() - began
    assert ended.code == 0 and job.command(folder) is None, f"{job.name} fails by itself: {ended.text}"
    steps, named, modules = json.loads(noted.read_text())
    _import(modules)
    unseen = [
        path for path in set(folder.rglob("*")) - before if str(path) not in named and path.name not in jobs.ELSEWHERE
    ]
    assert not unseen, f"{job.name} writes past lapsus.files: {unseen}"
    return Reference(job.bits(folder), [(step, place) for step, place in steps], seconds)


def _import(modules: list[str]) -> None:
    """What a command imports, once for all forks that run it again; and nothing of it is looked at by the garbage
    collector, since a page of memory that is touched is copied for each fork."""
    for name in modules:
        if name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()


class Walked:
    """One job walked through step by step, struck at each by the faults that are asked for."""

    def __init__(self, job: jobs.Job, folder: Path, reference: Reference, tally: "Tally") -> None:
        self.job, self.folder, self.reference, self.tally = job, folder, reference, tally
        # What became of a job that went on from a state of its folder. It is the same for every fault that leaves that
        # state, so it is tried once.
        self.known: dict[str, str] = {}
        self.output = folder.with_name(f"{folder.name}-output")

    def walk(self, faults: list[Fault], over: Callable[[], bool] = lambda: False) -> list[Fault]:
        """Try these faults; those that there was no time for."""
        starts = [at for at, (step, _) in enumerate(self.reference.steps, start=1) if step not in WITHIN]
        due: dict[int, list[Fault]] = defaultdict(list)
        for fault in faults:
            due[max(start for start in starts if start <= fault.at)].append(fault)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.job.begin(self.folder)
        ours, theirs = Pipe()
        command = self.job.command(self.folder)
        assert command is not None

        def work() -> None:
            ours.close()
            writing.watcher = Walk(theirs, self.output)
            command()

        ended = start(work)
        theirs.close()
        # The folder as it should be at the next step at which no file is open, by those whose write was short.
        short: list[tuple[Fault, str]] = []
        with contextlib.suppress(EOFError):
            while due or short:
                at = ours.recv()
                now = state(self.folder, unfinished=True) if short else ""
                for fault, found in short:
                    self._add(fault, "" if found == now else f"a short write at step {fault.at} left another file")
                short = []
                for fault in due.pop(at, []):
                    if over():
                        due[len(self.reference.steps) + 1].append(fault)
                        continue
                    found = self._struck(ours, fault)
                    short += [(fault, found)] if fault.kind == "short write" and found else []
                if over():
                    break
                ours.send(None)
        ours.close()
        ended(0.0)
        return [fault for left in due.values() for fault in left]

    def _struck(self, talk: Connection, fault: Fault) -> str:
        """One fault, in a copy of the folder that takes its place; the state that a short write leaves."""
        kept = self.folder.with_name(f"{self.folder.name}-kept")
        os.rename(self.folder, kept)
        shutil.copytree(kept, self.folder, symlinks=True)
        try:
            self.output.write_bytes(b"")
            talk.send(fault)
            child, code, hung = talk.recv()
            ended = Ended(code, self.output.read_text(errors="replace"), hung)
            if why := wrong(ended, fault.kind):
                self._add(fault, f"{why} at step {fault.at}: {ended.text[-300:]}")
                return ""
            if fault.kind == "short write":
                return state(self.folder, unfinished=True)
            self._add(fault, self._goes_on(child, f"{fault.kind} at step {fault.at}"))
            return ""
        finally:
            shutil.rmtree(self.folder)
            os.rename(kept, self.folder)

    def _goes_on(self, child: int, after: str) -> str:
        """Whether the job comes to the same bits from where the fault left it."""
        for path in sorted(self.folder.rglob("*.partial"), reverse=True):
            # Its writer lives on, as the one who forked; the one who was struck is dead.
            path.rename(path.with_name(re.sub(r"-\d+-(\w+\.partial)$", rf"-{child}-\1", path.name)))
        for path in self.folder.rglob(f"{jobs.CLAIMS}/*"):
            path.write_text(re.sub(r'"pid": \d+', f'"pid": {child}', path.read_text()))
        left = state(self.folder)
        if left not in self.known:
            self.known[left] = went_on(self.job, self.folder, self.reference.bits)
            self.tally.states[self.job.name] += 1
        return self.known[left] and f"{self.known[left]} after {after}"

    def _add(self, fault: Fault, why: str) -> None:
        self.tally.struck[self.job.name].append(fault)
        self.tally.add(self.job.name, fault.kind, why)


def went_on(job: jobs.Job, folder: Path, expected: dict) -> str:
    """Run the job until it is done; "" or what was lost."""
    try:
        for _ in range(MOST_TRIES):
            command = job.command(folder)
            if command is None:
                found = job.bits(folder)
                return "" if found == expected else f"other bits ({_difference(found, expected)})"
            ended = run(command, seconds=300)
            if why := wrong(ended, None):
                return f"{why} of the one who goes on: {ended.text[-300:]}"
    except (AssertionError, OSError, ValueError) as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return f"not done after {MOST_TRIES} tries"


def state(folder: Path, unfinished: bool = False) -> str:
    """All that is in a folder, in a few letters: names and bytes, but for times of day, who holds a lock or a claim,
    and (if they are not asked for) what is in unfinished files and folders, which nobody reads."""
    found = []
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if not unfinished and any(above.name.endswith(".partial") for above in inner.parents):
            continue
        unread = path.name == ".lock" or path.parent.name == jobs.CLAIMS
        unread = unread or (path.name.endswith(".partial") and not unfinished)
        content = "" if path.is_dir() or unread else _timeless(path)
        found.append((re.sub(r"\.\w+-\d+-\w+\.partial", ".partial", str(inner)), path.is_dir(), content))
    return jobs.digest(json.dumps(sorted(found, key=str)).encode())


def _timeless(path: Path) -> object:
    """What is in a file, in a few letters, or without its times where those can be told."""
    data = path.read_bytes()
    with contextlib.suppress(ValueError):
        if path.suffix in (".json", ".jsonl"):
            parts = [data] if path.suffix == ".json" else data.splitlines()
            return [jobs.timeless(json.loads(part)) for part in parts]
    return jobs.digest(data)


def wrong(ended: Ended, kind: str | None) -> str:
    """Whether a command ended as it may after that fault (None: there was none)."""
    if ended.hung:
        return "a hang"
    if ended.traceback:
        return "a traceback"
    if kind in ERRORS or kind == "full disk":
        allowed = {0, 2}
    elif kind in CUTS:
        allowed = {-9}
    elif kind in SIGNALS:
        allowed = {0, 130, -2, -9, -15}
    else:
        allowed = {0}
    if ended.code not in allowed:
        return f"exit code {ended.code}"
    if ended.code == 2 and "lapsus: " not in ended.text:
        return "no sentence"
    return ""


def _difference(found: dict, expected: dict) -> str:
    return ", ".join(key for key in expected | found if found.get(key) != expected.get(key))[:200]
