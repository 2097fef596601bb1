"""From a sweep file to its members: one setting for every combination, one member for every seed of it.

A member is named SETTING-SEED, and a setting after its experiment and what varies in it. Trainings that others start
from (start_from) become members too, before those; what varies in the network varies in them as well.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path

from lapsus.errors import LapsusError
from lapsus.files import file_name, from_plain, holds, short
from lapsus.sweep.sweep_file import Listed, Measure, SweepFile
from lapsus.training.experiment import Experiment, experiment_table, read_experiment, set_field, shipped_experiments
from lapsus.training.kinds import check_trust, foreign, from_user
from lapsus.zoo.shipped import shipped_name, shipped_names

_LONGEST = 120


@dataclass(frozen=True)
class Setting:
    """What the seeds of one kind of member share: the experiment it comes from, what differs from it (`varied`, by
    key), the subject whose behaviour is its target, the setting it starts from, and the experiment's table."""

    experiment: str
    varied: dict
    subject: str | None
    start: str | None
    table: dict


@dataclass(frozen=True)
class Member:
    """One training: a setting and a seed."""

    setting: str
    seed: int

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.setting}-{self.seed}"


@dataclass(frozen=True)
class Plan:
    """Settings by name and members by name, each after what it starts from; `starts` are settings that nobody asked
    for but those that start from them."""

    name: str
    settings: dict[str, Setting]
    members: dict[str, Member]
    description: str = ""
    tries: int = 3
    measure: Measure = field(default_factory=Measure)
    starts: frozenset[str] = frozenset()

    def experiment(self, member: str) -> Experiment:
        """All that makes this member."""
        setting, seed = self.setting(member), self.members[member].seed
        return Experiment.model_validate(setting.table | {"seed": seed})

    def setting(self, member: str) -> Setting:
        """What this member shares with its other seeds."""
        return self.settings[self.members[member].setting]

    def start(self, member: str) -> str | None:
        """The member that this one starts from, if it is one of the sweep and not a network that ships."""
        start = f"{self.setting(member).start}-{self.members[member].seed}"
        return start if start in self.members else None

    def is_start(self, member: str) -> bool:
        """Whether nobody asked for it but those that start from it."""
        return self.members[member].setting in self.starts

    def measure_of(self, member: str) -> Measure:
        """What is measured of this member: of one that is there for others alone, how well it was trained."""
        return self.start_measure if self.is_start(member) else self.measure

    @cached_property
    def start_measure(self) -> Measure:
        """What is measured of members that are there for others alone."""
        return self.measure.model_copy(update={"mechanism": False, "questions": False})

    def updates(self, member: str) -> int:
        """Of all its stages together."""
        return sum(stage["updates"] for stage in self.setting(member).table["stage"])

    @property
    def hash(self) -> str:
        """Of all that makes the members; the same file gives the same hash on every machine."""
        text = json.dumps(self.as_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def as_dict(self) -> dict:
        """The plan as a manifest keeps it, but for `starts`, which make no member another: plain values, no path of
        this machine."""
        return {
            "name": self.name,
            "description": self.description,
            "tries": self.tries,
            "measure": self.measure.model_dump(),
            "settings": {name: vars(setting) for name, setting in self.settings.items()},
            "members": [[member.setting, member.seed] for member in self.members.values()],
        }

    @classmethod
    def of_dict(cls, table: dict) -> "Plan":
        """The plan of a manifest; a ValueError where it is none that could be carried out within its folder."""
        settings = from_plain(dict[str, Setting], table["settings"])
        for setting in settings.values():
            Experiment.model_validate(setting.table | {"seed": 0})
        members = [Member(name, seed) for name, seed in from_plain(list[tuple[str, int]], table["members"])]
        return cls(
            name=from_plain(str, table["name"]),
            settings=settings,
            members={member.name: member for member in members},
            description=from_plain(str, table["description"]),
            tries=from_plain(int, table["tries"]),
            measure=Measure.model_validate(table["measure"]),
            starts=frozenset(from_plain(list[str], table.get("starts", []))),
        )


class _Planner:
    """Collects settings and members, every start before what starts from it; anew: starts that ship are trained
    too."""

    def __init__(self, folder: Path, members: Path, carried: list[str], anew: bool = False):
        self.folder, self.run_folder, self.carried, self.anew = folder, members, carried, anew
        self.settings: dict[str, Setting] = {}
        self.members: dict[str, Member] = {}
        self.sources: dict[str, str | Path] = {}  # the experiment file of each setting

    def setting(
        self, source: str, varied: dict, name: str | None = None, subject: str | None = None, target: dict | None = None
    ) -> str:
        """The name of the setting of this experiment with these fields changed and, for a subject, this target."""
        file = self._file(source) or source
        raw = experiment_table(file)
        for key in varied.keys() & {"seed", "name"}:
            raise LapsusError(
                f"A sweep does not vary {key}: the key seeds says how many of each, names come by themselves."
            )
        label = name or file_name(raw.get("name", source)) + _varied_name(varied)
        label += "" if subject is None else f"_subject-{slug(subject)}"
        if len(label) > _LONGEST:
            label = f"{label[:80]}_{_digest(label)}"
        table = raw
        for key, value in (varied | ({} if target is None else {"behaviour": target})).items():
            table = set_field(table, key, value)
        try:
            experiment = read_experiment(table)
        except LapsusError as error:
            raise LapsusError(f"{label}: {str(error).removeprefix('experiment: ')}") from error
        if target is not None and experiment.stage[-1].behaviour is not None:
            raise LapsusError(
                f"{source}: its last stage has a target of its own, so a subject's would not be what is learned last."
            )
        start, start_from = self._start(experiment, varied)
        dumped = experiment.model_dump(exclude_none=True, exclude={"seed", "versions"}) | {"name": label}
        if start_from is not None:
            dumped["start_from"] = start_from
        setting = Setting(raw["name"], varied, subject, start, json.loads(json.dumps(dumped)))
        if self.settings.setdefault(label, setting) != setting:
            raise LapsusError(
                f"Two settings of the sweep would be called {label}; list them as [[member]] tables with names of"
                " their own."
            )
        self.sources[label] = file
        return label

    def _start(self, experiment: Experiment, varied: dict) -> tuple[str | None, str | None]:
        """The setting of the sweep that an experiment starts from, and how its config then calls its start."""
        source = experiment.start_from
        if source is None:
            return None, None
        if self._file(source) is not None:
            carried = {k: v for k, v in varied.items() if any(k == c or k.startswith(c + ".") for c in self.carried)}
            start = self.setting(source, carried)
            return start, start
        for path in (self.folder / source, Path(source)):
            if holds(path, "run"):
                return None, Path(os.path.relpath(path, self.run_folder)).as_posix()
        if source not in shipped_names():
            raise LapsusError(
                f"{experiment.name} starts from {short(source)}, which is not an experiment file, run folder or network"
                " that ships."
            )
        return None, source

    def add(self, setting: str, seed: int) -> None:
        """The member of this setting and seed, after those that it starts from."""
        member = Member(setting, seed)
        if member.name in self.members:
            return
        if (start := self.settings[setting].start) is not None and not self._ships(start, seed):
            self.add(start, seed)
        self.members[member.name] = member

    def _ships(self, start: str, seed: int) -> bool:
        """Whether a start is a network that ships with this seed, so that nothing is gained by training it again."""
        unchanged = not self.settings[start].varied and self._file(start) == start
        return not self.anew and unchanged and shipped_name(start, seed) in shipped_names()

    def starts(self, asked: set[str], trust: bool = False) -> frozenset[str]:
        """Settings that are there for others alone; what they or those asked for may not import is refused here."""
        yours = set(foreign([self.settings[name].table for name in asked]))
        for name, file in self.sources.items():
            table = self.settings[name].table
            known = from_user(file) if name in asked else set(foreign(table)) <= yours
            check_trust(table, file, trust or known)
        return frozenset(self.settings) - asked

    def _file(self, source: str) -> str | Path | None:
        """The experiment file of that name: beside the sweep file, in the working folder, or one that ships."""
        for path in (self.folder / source, Path(source)):
            if os.path.isfile(path):  # False, too, where no file can have such a name
                return path
        return source if source in shipped_experiments() else None


def plan_sweep(sweep: SweepFile, output: Path, targets: dict[str, dict] | None = None, trust: bool = False) -> Plan:
    """All members of a sweep whose folder will be `output`; `targets` has the fitted behaviour of each subject; trust:
    whatever classes they name."""
    planner = _Planner(sweep.folder, output / "members", sweep.starts)
    asked = list(_settings(sweep, planner, targets))
    for setting, seeds in asked:
        for seed in seeds:
            planner.add(setting, seed)
    _check_names(planner.members)
    starts = planner.starts({setting for setting, _ in asked}, trust)
    return Plan(sweep.name, planner.settings, planner.members, sweep.description, sweep.tries, sweep.measure, starts)


def plan_networks(names: list[str], seeds: int, folder: Path) -> Plan:
    """The named experiments and what they start from, in run folders in `folder`."""
    if seeds < 1:
        raise LapsusError(f"`seeds` must be at least 1, not {seeds}.")
    planner = _Planner(Path(), folder, [], anew=True)
    chosen = [planner.setting(name, {}) for name in names]
    planner.starts(set(chosen))
    for seed in range(1, seeds + 1):
        for setting in chosen:
            planner.add(setting, seed)
    return Plan("networks", planner.settings, planner.members)


def _settings(sweep: SweepFile, planner: _Planner, targets: dict[str, dict] | None) -> Iterator[tuple[str, list[int]]]:
    """Every setting that the file asks for, with its seeds."""
    listed = sweep.member
    if not listed:
        combinations = [dict(zip(sweep.vary, values)) for values in product(*sweep.vary.values())]
        listed = [Listed(experiment=source, set=varied) for source in sweep.experiments for varied in combinations]
    for subject, target in {None: None}.items() if targets is None else targets.items():
        for member in listed:
            source, seeds = member.experiment or sweep.experiments[0], member.seeds or sweep.seeds
            setting = planner.setting(source, member.set, member.name, subject, target)
            yield setting, list(range(1, seeds + 1)) if isinstance(seeds, int) else list(dict.fromkeys(seeds))


def _check_names(members: dict[str, Member]) -> None:
    seen: dict[str, str] = {}
    for name in members:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise LapsusError(f"Members {other} and {name} would share a folder where names ignore case.")


def _varied_name(varied: dict) -> str:
    """What differs, each by the last part of its key, or by all of it where two keys end alike."""
    ends = [key.rsplit(".", 1)[-1] for key in varied]
    names = [key if ends.count(end) > 1 else end for key, end in zip(varied, ends)]
    return "".join(f"_{slug(name)}-{slug(value)}" for name, value in zip(names, varied.values()))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def slug(value: object) -> str:
    """A value of a field in a few characters of a file's name; a number keeps its sign."""
    text = value if isinstance(value, str) else json.dumps(value)
    name = file_name(text).replace("_", "-").strip("-." if isinstance(value, str) else ".")
    return name if name and len(name) <= 32 and not isinstance(value, (dict, list)) else _digest(text)
