"""`python -m torture.campaign --minutes 30`: tried, survived, lost. The same seed tries the same things in the same
order; the minutes say how far it gets."""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from torture import hostile, jobs, made, tables
from torture.child import deadline, run
from torture.faults import SIGNALS, Fault
from torture.sites import missed
from torture.walk import MOST_TRIES, Reference, Walked, undisturbed, wrong

MARK = "<!-- campaign -->"


class Tally:
    """Counts by row of the table, and what was lost."""

    def __init__(self) -> None:
        self.tried: dict[tuple[str, str], int] = defaultdict(int)
        self.lost: dict[tuple[str, str], list[str]] = defaultdict(list)
        # By command: what it does undisturbed, the faults that struck it, and the states from which it went on.
        self.references: dict[str, Reference] = {}
        self.struck: dict[str, list[Fault]] = defaultdict(list)
        self.states: dict[str, int] = defaultdict(int)

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
        tables = [whats.table("what", total=True), "", kinds.table("fault"), "", self.coverage()]
        return "\n".join([*lost, *[""] * bool(lost), *tables])

    def coverage(self) -> str:
        """How many of the pairs that there are were met: of a place in the code and a kind of fault, and of a step."""
        lines = [
            "| command | steps on disk | places in the code | place × fault | step × fault | states to go on from |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        for name, reference in self.references.items():
            struck, every = self.struck[name], reference.pairs()
            places = _share(map(reference.place, struck), map(reference.place, every))
            lines.append(
                f"| {name} | {len(reference.steps):,} | {len(set(reference.steps)):,} | {places}"
                f" | {_share(struck, every)} | {self.states[name]:,} |"
            )
        every, without = missed({step for reference in self.references.values() for step in reference.steps})
        said = f"{every - len(without)} of {every} calls in the code that write are taken by these commands"
        return "\n".join([*lines, "", f"{said}; not {', '.join(without)}." if without else f"{said}."])


def _share(met: Iterable, every: Iterable) -> str:
    return f"{len({*met}):,} of {len({*every}):,}"


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
class Least:
    """How much is tried at least, however long it takes; with no minutes, exactly this, on a machine of any speed."""

    faults: int = 0
    signals: int = 0
    tables: int = 0
    inputs: int = 0


def campaign(minutes: float, seed: int = 0, names: tuple[str, ...] = (), least: Least = Least()) -> Tally:  # noqa: B008
    """Faults, hostile files and tables, in shares of the time, what is left of it for the last; `names` restricts the
    jobs."""
    tally, seconds = Tally(), 60 * minutes
    end = time.monotonic() + seconds
    if names:
        jobs.JOBS = tuple(job for job in jobs.JOBS if job.name in names)
    with tempfile.TemporaryDirectory(prefix="torture-", dir=in_memory()) as place:
        folder = Path(place)
        jobs.prepare()
        (folder / "made").mkdir()
        made.make(folder / "made")
        found = None
        for number, job in enumerate(jobs.JOBS):
            own = folder / f"undisturbed-{number}"
            own.mkdir()
            tally.references[job.name] = undisturbed(job, own)
            found = own / "found" if job.name == "discover" else found
        _faults(tally, folder, seed, seconds * 0.6, least.faults)
        _signals(tally, folder, seed, seconds * 0.1, least.signals)
        _tables(tally, folder, seed, seconds * 0.03, least.tables)
        _hostile(tally, folder, found, seed, max(seconds * 0.25, end - time.monotonic()), least.inputs)
    return tally


def in_memory() -> Path | None:
    """Where a flush costs nothing, if there is room: what reaches a disk is reckoned, not tried."""
    place = Path("/dev/shm")
    return place if place.is_dir() and shutil.disk_usage(place).free > 1 << 30 else None


def _faults(tally: Tally, folder: Path, seed: int, seconds: float, least: int) -> None:
    """Every kind of fault at every step of every job: first at the first step of each place in the code that takes any,
    then at the last of each, then at all others, as far as the time allows. With no time, so many of each job by
    chance."""
    chance, began = random.Random(seed), time.monotonic()
    left, walked = {}, {}
    for job in jobs.JOBS:
        reference = tally.references[job.name]
        every = reference.pairs()
        left[job.name] = every if seconds else chance.sample(every, min(least, len(every)))
        walked[job.name] = Walked(job, folder / f"walked-{job.name}", reference, tally)
    for turn in ("first", "last", "others"):
        for number, job in enumerate(jobs.JOBS):
            place, due = tally.references[job.name].place, left[job.name]
            # Of several with one key a dict keeps the last.
            one_each = {place(fault): fault for fault in (reversed(due) if turn == "first" else due)}
            now = due if turn == "others" else list(one_each.values())
            share = (began + seconds - time.monotonic()) / (len(jobs.JOBS) - number)
            if seconds and share <= 0:
                continue
            missed = walked[job.name].walk(now, deadline(share) if seconds else lambda: False) if now else []
            left[job.name] = sorted({*due} - {*now} | {*missed}, key=lambda fault: fault.at)
            print(
                f"{job.name}: {len(now) - len(missed):,} of {len(now):,} faults at the {turn},"
                f" {tally.states[job.name]:,} states, {tally.losses} lost so far, {time.monotonic() - began:.0f} s",
                file=sys.stderr,
                flush=True,
            )


def _signals(tally: Tally, folder: Path, seed: int, seconds: float, least: int) -> None:
    """SIGKILL, SIGTERM or SIGINT at any moment, three times in a row, not only at writes."""
    over, chance, number = deadline(seconds), random.Random(seed), 0
    turns = [(job, kind) for kind in SIGNALS for job in jobs.JOBS]
    chance.shuffle(turns)
    while not over() or number < least:
        job, kind = turns[number % len(turns)]
        number += 1
        own, reference, why = Path(tempfile.mkdtemp(dir=folder)), tally.references[job.name], ""
        job.begin(own)
        for attempt in range(MOST_TRIES):
            command = job.command(own)
            if command is None or why:
                break
            struck = attempt < 3
            after = chance.uniform(0.0, reference.seconds) if struck else None
            ended = run(command, struck_after=after, by=SIGNALS[kind], seconds=300)
            if why := wrong(ended, kind if struck else None):
                why = f"{why} after {kind}: {ended.text[-300:]}"
        if not why and job.bits(own) != reference.bits:
            why = f"other bits after {kind} at random times"
        tally.add(job.name, f"{kind} at any time", why)
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
    hostile.make(source, made.MADE["run"], found)
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
    spent = sum(os.times()[:4])
    found = (
        f"{tally.table()}\n\nSeed {chosen.seed}, {(time.monotonic() - began) / 60:.0f} minutes,"
        f" {spent / 60:.0f} of processor time."
    )
    print(found)
    if chosen.docs is not None:
        before, _, after = chosen.docs.read_text().split(MARK)
        chosen.docs.write_text(f"{before}{MARK}\n\n{found}\n\n{MARK}{after}")
    sys.exit(1 if tally.losses else 0)


if __name__ == "__main__":
    main()
