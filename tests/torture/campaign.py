"""`python -m torture.campaign --minutes 30`: tried, survived, lost. The same seed tries the same things in the same
order; the minutes say how far it gets."""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from lapsus.files import writing
from torture import hostile, jobs, tables
from torture.child import Ended, deadline, run, start
from torture.faults import CUTS, ERRORS, KINDS, SIGNALS, WITHIN, Count, Fault, Walk

MOST_TRIES = 12
MARK = "<!-- campaign -->"


class Tally:
    """Counts by row of the table, and what was lost."""

    def __init__(self) -> None:
        self.tried: dict[tuple[str, str], int] = defaultdict(int)
        self.lost: dict[tuple[str, str], list[str]] = defaultdict(list)
        # Pairs of a step on disk and a kind of fault, of all commands together: those tried, and those there are.
        self.pairs: set[tuple[str, str, int]] = set()
        self.all_pairs = 0
        # States of their folders from which commands went on.
        self.states = 0

    def add(self, part: str, row: str, why: str = "") -> None:
        self.tried[part, row] += 1
        if why:
            self.lost[part, row].append(why)
            print(f"LOST  {part}, {row}: {why}", file=sys.stderr, flush=True)

    @property
    def losses(self) -> int:
        return sum(map(len, self.lost.values()))

    def table(self) -> str:
        """What was lost; then the counts by command and by reader; then those of the faults by their kind."""
        lost = [f"LOST  {part}, {row}: {why}" for (part, row), all_of in self.lost.items() for why in all_of]
        commands = {job.name for job in jobs.JOBS}
        whats, kinds = Counts(), Counts()
        for (part, row), tried in self.tried.items():
            lost_here = len(self.lost[part, row])
            whats.add(f"faults: {part}" if part in commands else f"{part}: {row}", tried, lost_here)
            if part in commands:
                kinds.add(row, tried, lost_here)
        return "\n".join([*lost, *[""] * bool(lost), whats.table("what", total=True), "", kinds.table("fault")])


class Counts(dict[str, tuple[int, int]]):
    """Tried and lost, by name."""

    def add(self, name: str, tried: int, lost: int) -> None:
        before = self.get(name, (0, 0))
        self[name] = before[0] + tried, before[1] + lost

    def table(self, title: str, total: bool = False) -> str:
        rows = list(self.items())
        if total:
            rows.append(("**all**", (sum(tried for tried, _ in self.values()), sum(lost for _, lost in self.values()))))
        lines = [f"| {name} | {tried:,} | {tried - lost:,} | {lost:,} |" for name, (tried, lost) in rows]
        return "\n".join([f"| {title} | tried | survived | lost |", "|---|---:|---:|---:|", *lines])


@dataclass(frozen=True)
class Reference:
    """What a job comes to when nothing happens to it: its bits, and each step that it takes on disk with the place in
    the code from which it is taken."""

    bits: dict
    steps: list[tuple[str, str]]

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
            noted.write_text(json.dumps([count.steps, sorted(map(str, count.named))]))

    command = job.command(folder)
    assert command is not None
    ended = run(work, seconds=600)
    assert ended.code == 0 and job.command(folder) is None, f"{job.name} fails by itself: {ended.text}"
    steps, named = json.loads(noted.read_text())
    unseen = [
        path for path in set(folder.rglob("*")) - before if str(path) not in named and path.name not in jobs.ELSEWHERE
    ]
    assert not unseen, f"{job.name} writes past lapsus.files: {unseen}"
    return Reference(job.bits(folder), [(step, place) for step, place in steps])


class Walked:
    """One job walked through step by step, struck at each by the faults that are asked for."""

    def __init__(self, job: jobs.Job, folder: Path, reference: Reference, tally: Tally) -> None:
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
            if why := _wrong(ended, fault.kind):
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
            self.tally.states += 1
        return self.known[left] and f"{self.known[left]} after {after}"

    def _add(self, fault: Fault, why: str) -> None:
        self.tally.pairs.add((self.job.name, fault.kind, fault.at))
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
            if why := _wrong(ended, None):
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


def _wrong(ended: Ended, kind: str | None) -> str:
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
    return ", ".join(key for key in expected if found.get(key) != expected[key])[:200]


@dataclass(frozen=True)
class Least:
    """How much is tried at least, however long it takes; with no minutes, exactly this, on a machine of any speed."""

    faults: int = 0
    kills: int = 0
    tables: int = 0
    inputs: int = 0


def campaign(minutes: float, seed: int = 0, names: tuple[str, ...] = (), least: Least = Least()) -> Tally:  # noqa: B008
    """Faults, hostile files and tables, in shares of the time; `names` restricts the jobs."""
    tally = Tally()
    if names:
        jobs.JOBS = tuple(job for job in jobs.JOBS if job.name in names)
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        folder = Path(place)
        jobs.prepare()
        (folder / "made").mkdir()
        jobs.make(folder / "made")
        references, found = {}, None
        for job in jobs.JOBS:
            own = folder / f"undisturbed-{len(references)}"
            own.mkdir()
            references[job.name] = undisturbed(job, own)
            found = own / "found" if job.name == "discover" else found
        _faults(tally, folder, references, seed, 60 * minutes * 0.65, least.faults)
        _kills(tally, folder, references, seed, 60 * minutes * 0.05, least.kills)
        _tables(tally, folder, seed, 60 * minutes * 0.05, least.tables)
        _hostile(tally, folder, found, seed, 60 * minutes * 0.25, least.inputs)
    return tally


def _faults(tally: Tally, folder: Path, references: dict, seed: int, seconds: float, least: int) -> None:
    """Every kind of fault at every step of every job: first at one step of each place in the code that takes any, then
    at all others, as far as the time allows. With no time, so many of each job by chance."""
    chance, began = random.Random(seed), time.monotonic()
    left: dict[str, list[Fault]] = {}
    for job in jobs.JOBS:
        every = references[job.name].pairs()
        tally.all_pairs += len(every)
        left[job.name] = every if seconds else chance.sample(every, min(least, len(every)))
    walked = {job.name: Walked(job, folder / f"walked-{job.name}", references[job.name], tally) for job in jobs.JOBS}
    for only_first in (True, False):
        for place, job in enumerate(jobs.JOBS):
            steps, seen, now = references[job.name].steps, set(), []
            for fault in left[job.name]:
                what = (fault.kind, *steps[fault.at - 1])
                if not only_first or what not in seen:
                    now.append(fault)
                seen.add(what)
            share = (began + seconds - time.monotonic()) / (len(jobs.JOBS) - place)
            missed = walked[job.name].walk(now, deadline(share) if seconds else lambda: False) if now else []
            left[job.name] = [fault for fault in left[job.name] if fault not in now] + missed
            print(
                f"{job.name}: {len(now) - len(missed):,} faults, {tally.states:,} states, {tally.losses} lost so far,"
                f" {time.monotonic() - began:.0f} s",
                file=sys.stderr,
                flush=True,
            )


def _kills(tally: Tally, folder: Path, references: dict, seed: int, seconds: float, least: int) -> None:
    """SIGKILL at any time, several times, not only at writes."""
    over, chance, number = deadline(seconds), random.Random(seed), 0
    quick = [job for job in jobs.JOBS if job.often > 1]
    while quick and (not over() or number < least):
        number += 1
        job, own = chance.choice(quick), Path(tempfile.mkdtemp(dir=folder))
        job.begin(own)
        why = ""
        for attempt in range(MOST_TRIES):
            command = job.command(own)
            if command is None:
                break
            ended = run(command, kill_after=chance.uniform(0.01, 1.5) if attempt < 3 else None, seconds=300)
            why = why or _wrong(ended, "SIGKILL" if attempt < 3 else None)
        if not why and job.bits(own) != references[job.name].bits:
            why = "other bits after kills at random times"
        tally.add(job.name, "SIGKILL at any time", why)
        shutil.rmtree(own)


def _tables(tally: Tally, folder: Path, seed: int, seconds: float, least: int) -> None:
    over, number = deadline(seconds), 0
    while not over() or number < least:
        number += 1
        try:
            why = tables.attempt(folder, f"{seed}-{number}")
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        tally.add("tables", "read as they were written", why and f"{why} (seed {seed}-{number})")


def _hostile(tally: Tally, folder: Path, found: Path | None, seed: int, seconds: float, inputs: int) -> None:
    source = folder / "valid"
    source.mkdir()
    hostile.make(source, jobs.MADE["run"], found)
    over, number, tried = deadline(seconds), 0, 0
    readers = [reader for reader in hostile.READERS if (source / reader.folder).is_dir()]
    while not over() or tried < inputs:
        for reader in readers:
            seeds = [f"{seed}-{reader.name}-{number}-{k}" for k in range(reader.batch)]
            outcomes = hostile.batch(reader, source / reader.folder, folder / "work", seeds)
            tried += len(seeds)
            for one, (outcome, why) in zip(seeds, outcomes):
                tally.add("hostile", reader.name, f"{why} (seed {one})" if outcome == "lost" else "")
        number += 1
        print(f"{tried:,} hostile inputs, {tally.losses} lost so far", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=0, help="hostile inputs at least")
    parser.add_argument("--docs", type=Path, help="a page whose lines between two <!-- campaign --> the table replaces")
    chosen = parser.parse_args()
    began = time.monotonic()
    tally = campaign(chosen.minutes, chosen.seed, least=Least(inputs=chosen.inputs))
    found = (
        f"{tally.table()}\n\nSeed {chosen.seed}, {(time.monotonic() - began) / 60:.0f} minutes; {len(tally.pairs):,} of"
        f" {tally.all_pairs:,} pairs of a step on disk and a kind of fault, which left {tally.states:,} different"
        " states to go on from."
    )
    print(found)
    if chosen.docs is not None:
        before, _, after = chosen.docs.read_text().split(MARK)
        chosen.docs.write_text(f"{before}{MARK}\n\n{found}\n\n{MARK}{after}")
    sys.exit(1 if tally.losses else 0)


if __name__ == "__main__":
    main()
