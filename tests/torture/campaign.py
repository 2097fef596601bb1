"""`python -m torture.campaign --minutes 30`: tried, survived, lost. The same seed tries the same things in the same
order; the minutes say how far it gets."""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torture import hostile, jobs, tables
from torture.child import Ended, deadline, run
from torture.faults import ERRORS, KINDS, Count, Fault

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


def undisturbed(job: jobs.Job, folder: Path) -> tuple[dict, int]:
    """The bits that a job ends with when nothing happens to it, and how many steps its first command takes on disk."""
    job.begin(folder)
    counted = folder / "steps"

    def work() -> None:
        from lapsus.files import writing

        count = Count()
        writing.watcher = count
        try:
            command()
        finally:
            counted.write_text(str(count.steps))

    command = job.command(folder)
    assert command is not None
    ended = run(work, seconds=600)
    assert ended.code == 0 and job.command(folder) is None, f"{job.name} fails by itself: {ended.text}"
    return job.bits(folder), int(counted.read_text())


def with_fault(job: jobs.Job, folder: Path, fault: Fault, expected: dict) -> str:
    """Begin, be struck, go on until it is done; "" or what was lost."""
    job.begin(folder)
    for attempt in range(MOST_TRIES):
        command = job.command(folder)
        if command is None:
            break

        def work(command=command, struck=attempt == 0) -> None:
            if struck:
                fault.install()
            command()

        ended = run(work, seconds=300)
        if why := _wrong(ended, fault.kind if attempt == 0 else None):
            return f"{why} at step {fault.at}: {ended.text[-300:]}"
    else:
        return f"not done after {MOST_TRIES} tries"
    found = job.bits(folder)
    return (
        "" if found == expected else f"other bits after {fault.kind} at step {fault.at}: {_difference(found, expected)}"
    )


def _wrong(ended: Ended, kind: str | None) -> str:
    """Whether a command ended as it may after that fault (None: there was none)."""
    if ended.hung:
        return "a hang"
    if ended.traceback:
        return "a traceback"
    allowed = {0, 2} if kind in ERRORS or kind == "full disk" else {0, 130, -2, -9, -15} if kind else {0}
    if ended.code not in allowed:
        return f"exit code {ended.code}"
    if ended.code == 2 and "lapsus: " not in ended.text:
        return "no sentence"
    return ""


def _difference(found: dict, expected: dict) -> str:
    return ", ".join(key for key in expected if found.get(key) != expected[key])[:200]


def fault_cases(seed: int, steps: dict[str, int]) -> Iterator[tuple[jobs.Job, Fault]]:
    """Every kind of fault at every step of every job, in an order that mixes them; then again at random steps."""
    chance = random.Random(seed)
    cases = [(job, kind, at) for job in jobs.JOBS for kind in KINDS for at in range(1, steps[job.name] + 1)]
    by_job: dict[str, list] = defaultdict(list)
    for case in cases:
        by_job[case[0].name].append(case)
    for own in by_job.values():
        chance.shuffle(own)
    number = 0
    while True:
        for job in jobs.JOBS:
            for _ in range(job.often):
                own = by_job[job.name]
                job, kind, at = own.pop() if own else (job, chance.choice(KINDS), chance.randint(1, steps[job.name]))
                number += 1
                yield job, Fault(kind, at, seed=seed + number)


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
        expected, steps, found = {}, {}, None
        for job in jobs.JOBS:
            own = folder / f"undisturbed-{len(expected)}"
            own.mkdir()
            expected[job.name], steps[job.name] = undisturbed(job, own)
            found = own / "found" if job.name == "discover" else found
        _faults(tally, folder, expected, steps, seed, 60 * minutes * 0.55, least.faults)
        _kills(tally, folder, expected, seed, 60 * minutes * 0.1, least.kills)
        _tables(tally, folder, seed, 60 * minutes * 0.05, least.tables)
        _hostile(tally, folder, found, seed, 60 * minutes * 0.3, least.inputs)
    return tally


def _faults(tally: Tally, folder: Path, expected: dict, steps: dict, seed: int, seconds: float, least: int) -> None:
    over = deadline(seconds)
    tally.all_pairs = len(KINDS) * sum(steps.values())
    for number, (job, fault) in enumerate(fault_cases(seed, steps)):
        if over() and number >= least:
            return
        tally.pairs.add((job.name, fault.kind, fault.at))
        own = Path(tempfile.mkdtemp(dir=folder))
        tally.add(job.name, fault.kind, with_fault(job, own, fault, expected[job.name]))
        shutil.rmtree(own)


def _kills(tally: Tally, folder: Path, expected: dict, seed: int, seconds: float, least: int) -> None:
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
        if not why and job.bits(own) != expected[job.name]:
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
        f" {tally.all_pairs:,} pairs of a step on disk and a kind of fault."
    )
    print(found)
    if chosen.docs is not None:
        before, _, after = chosen.docs.read_text().split(MARK)
        chosen.docs.write_text(f"{before}{MARK}\n\n{found}\n\n{MARK}{after}")
    sys.exit(1 if tally.losses else 0)


if __name__ == "__main__":
    main()
