"""The folder of a sweep: its state is what lies in it, never a scheduler's database.

manifest.json        the plan
members/NAME/        run folders; a member is done when its measures are there, written last
working/NAME.json    who works on a member now; touched while the work goes on
failures/NAME.jsonl  one line for every failure
logs/NAME.txt        what a member printed
stop                 whoever works on this sweep should save and stop
"""

import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lapsus.errors import LapsusError
from lapsus.files import (
    Damaged,
    append_line,
    check_format,
    check_place,
    clean_up,
    holds,
    inside,
    make_folder,
    read_bytes,
    read_end,
    read_json,
    reason_of,
    subfolder,
    write_json,
)
from lapsus.sweep.holders import live
from lapsus.sweep.plan import Plan
from lapsus.training.kinds import check_trust
from lapsus.zoo.runs import Run

FORMAT = 1
_CHECKPOINT = re.compile(r"checkpoint-(\d{8})\.json")


@dataclass(frozen=True)
class States:
    """Members by what their folders say, each in the order of the plan; blocked ones wait for a start that failed."""

    done: list[str]
    failed: list[str]
    running: list[str]
    ready: list[str]
    waiting: list[str]
    blocked: list[str]

    def counts(self) -> dict[str, int]:
        """How many members are in each state."""
        return {name: len(names) for name, names in vars(self).items()}


class Sweep:
    """A sweep's folder: `Sweep.make` makes it or continues it, `Sweep(path)` opens it; trust: its members may import
    classes outside of lapsus."""

    def __init__(self, path: str | Path, trust: bool = False):
        self.path, self.trust = Path(path), trust
        file = self.path / "manifest.json"
        if not holds(self.path, "sweep"):
            what = "is not the folder of a sweep" if os.path.lexists(self.path) else "does not exist"
            raise LapsusError(f"{self.path} {what}. `lapsus sweep` makes one.")
        try:
            table = read_json(file)
            check_format(table.get("format"), FORMAT, file)
            self.plan = Plan.of_dict(table)
            self.hash = self.plan.hash
            if self.hash != table["hash"]:
                raise ValueError("its members are not those of its hash")
        except (Damaged, ValueError, TypeError, LookupError) as error:
            reason = reason_of(error).removeprefix(f"{file} is damaged: ")
            raise LapsusError(f"{file} is damaged ({reason}); the command that made it makes it again.") from error

    @classmethod
    def make(cls, path: str | Path, plan: Plan) -> "Sweep":
        """The folder of this plan, which is yours: new, or the one that is there if the plan only adds to it."""
        path = Path(path)
        table = {"format": FORMAT, "hash": plan.hash} | plan.as_dict() | {"starts": sorted(plan.starts)}
        if check_place(path, "sweep"):
            try:
                before = cls(path)
            except LapsusError:  # damaged: the run folders say whether they are of this plan
                for name in plan.members:
                    if holds(folder := inside(path, "members", name), "run"):
                        Run.of(folder, plan.experiment(name))
            else:
                _check_adds(before, plan)
                if before.hash == plan.hash and before.plan.starts == plan.starts:
                    return cls(path, trust=True)
                if before.plan.measure != plan.measure:
                    before.forget_failures()  # of measures that are not asked for any more
        write_json(make_folder(path) / "manifest.json", table)
        return cls(path, trust=True)

    # --- Where things are; no link leads out of the folder ---

    def run_folder(self, member: str) -> Path:
        """Where the run of a member is."""
        return inside(self.path, "members", member)

    def measures_file(self, member: str) -> Path:
        """Its name holds the hash of how is measured: other measures are made anew, without training again."""
        return inside(self.run_folder(member), f"measures-{self._measured_how[self.plan.is_start(member)]}.json")

    @cached_property
    def _measured_how(self) -> list[str]:
        """Hashes of what is measured: of members that were asked for, and of starts."""
        texts = [json.dumps(how.model_dump(), sort_keys=True) for how in (self.plan.measure, self.plan.start_measure)]
        return [hashlib.sha256(text.encode()).hexdigest()[:8] for text in texts]

    def claim_file(self, member: str) -> Path:
        """Where a process says that it works on a member."""
        return inside(self.path, "working", f"{member}.json")

    def failures_file(self, member: str) -> Path:
        """Where failures of a member are written down."""
        return inside(self.path, "failures", f"{member}.jsonl")

    def log_file(self, member: str) -> Path:
        """What a member printed."""
        return inside(self.path, "logs", f"{member}.txt")

    @property
    def stop_file(self) -> Path:
        """A file that asks all workers to stop."""
        return inside(self.path, "stop")

    # --- What they say ---

    def run(self, member: str) -> Run:
        """The member's run folder, made where it is not there yet."""
        folder = self.run_folder(member)
        if folder.is_dir() and not holds(folder, "run"):
            clean_up(folder)  # whoever made it died before it held anything
        experiment = self.plan.experiment(member)
        check_trust(experiment.model_dump(), self.path / "manifest.json", self.trust)
        return Run.of(folder, experiment)

    def done(self, member: str) -> bool:
        """Whether a member is trained and measured."""
        return self.measures_file(member).is_file()

    def trained(self, member: str) -> bool:
        """Whether all its updates are made: then others can start from it, measured or not."""
        return inside(self.run_folder(member), f"checkpoint-{self.plan.updates(member):08d}.json").is_file()

    def update(self, member: str) -> int:
        """Of its newest checkpoint; 0 where there is none."""
        try:
            names = os.listdir(self.run_folder(member))
        except OSError:
            return 0
        return max((int(match[1]) for match in map(_CHECKPOINT.fullmatch, names) if match), default=0)

    def failures(self, member: str) -> list[dict]:
        """What went wrong with a member, oldest first."""
        path, entries = self.failures_file(member), []
        for line in read_bytes(path).splitlines() if path.exists() else []:
            with suppress(ValueError, TypeError, RecursionError):  # cut short by a crash
                entry = json.loads(line)
                if {"reason", "lines", "update", "when"} <= set(entry):
                    entries.append(entry)
        return entries

    def given_up(self, member: str) -> bool:
        """Whether it has failed as often as it may."""
        return len(self.failures(member)) >= self.plan.tries

    def note_failure(self, member: str, reason: str, lines: Iterable[str] = ()) -> bool:
        """Enter a failure; whether the member is given up now."""
        entry = {
            "when": time.strftime("%Y-%m-%d %H:%M:%S"),
            "host": socket.gethostname(),
            "update": self.update(member),
            "reason": reason,
            "lines": list(lines)[-12:],
        }
        subfolder(self.path, "failures")
        append_line(self.failures_file(member), json.dumps(entry))
        return self.given_up(member)

    def forget_failures(self) -> int:
        """Members that were given up may be tried again; how many there were."""
        given_up = list(filter(self.given_up, self.plan.members))
        for name in given_up:
            path = self.failures_file(name)
            path.replace(path.with_suffix(".before.jsonl"))
        return len(given_up)

    def last_lines(self, member: str) -> list[str]:
        """The last twelve lines that a member printed."""
        try:
            return read_end(self.log_file(member), 8192).decode("utf-8", "replace").splitlines()[-12:]
        except LapsusError:
            return []

    def states(self, members: Iterable[str] | None = None) -> States:
        """Where every member (or each of these) stands: one look at its folder, one list of claims and of failures."""
        claimed, failing = (_stems(self.path / name) for name in ("working", "failures"))
        kinds: dict[str, str] = {}

        def kind(name: str) -> str:
            if name not in kinds:
                kinds[name] = self._kind(name, claimed, failing)
                start = self.plan.start(name)
                if kinds[name] == "ready" and start is not None and kind(start) != "done" and not self.trained(start):
                    kinds[name] = "blocked" if kind(start) in ("failed", "blocked") else "waiting"
            return kinds[name]

        by_state: dict[str, list[str]] = {name: [] for name in States.__dataclass_fields__}
        for name in self.plan.members if members is None else members:
            by_state[kind(name)].append(name)
        return States(**by_state)

    def _kind(self, name: str, claimed: set[str], failing: set[str]) -> str:
        if self.done(name):
            return "done"
        if name in claimed and live(self.claim_file(name)):
            return "running"
        return "failed" if name in failing and self.given_up(name) else "ready"


def _stems(folder: Path) -> set[str]:
    try:
        return {name.rpartition(".")[0] for name in os.listdir(folder)}
    except OSError:
        return set()


def _check_adds(before: Sweep, plan: Plan) -> None:
    """Members may be added to a sweep; none may change or go."""
    for name, setting in before.plan.settings.items():
        new = plan.settings.get(name, setting)
        if new != setting:
            keys = [key for key in setting.table if setting.table[key] != new.table.get(key)]
            raise LapsusError(
                f"{before.path} holds this sweep with another description of {name} (it differs in"
                f" {', '.join(keys) or 'what varied'}); name another folder."
            )
    gone = [name for name in before.plan.members if name not in plan.members]
    if gone:
        raise LapsusError(
            f"{before.path} holds a sweep with {len(gone)} members that this file does not have, such as {gone[0]};"
            " name another folder."
        )
