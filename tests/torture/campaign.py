"""`python -m torture.campaign --minutes 30`: tried, survived, lost. The same seed tries the same things in the same
order; the minutes say how far it gets."""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from torture import hostile, jobs, tables
from torture.child import deadline, run
from torture.faults import Fault
from torture.walk import MOST_TRIES, Reference, Walked, undisturbed, wrong

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


def _faults(
    tally: Tally, folder: Path, references: dict[str, Reference], seed: int, seconds: float, least: int
) -> None:
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


def _kills(tally: Tally, folder: Path, references: dict[str, Reference], seed: int, seconds: float, least: int) -> None:
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
            why = why or wrong(ended, "SIGKILL" if attempt < 3 else None)
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
