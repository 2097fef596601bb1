"""discover(trials): every stage in turn, each written to the folder when it is done and skipped when it is there."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from lapsus import rng
from lapsus.analysis.activity import NO_SWAPS_IN_DATA
from lapsus.behaviour import BNS
from lapsus.behaviour.measures import swap_probability
from lapsus.errors import LapsusError
from lapsus.evaluation.against_target import evaluate, excess
from lapsus.evaluation.match import Match, match
from lapsus.evaluation.sample_sizes import FULL, Sizes
from lapsus.files import holds, locked, short, subfolder, write_arrays, write_json, write_text
from lapsus.fitting import Fit, fit as fit_trials
from lapsus.fitting.examine import LEAST_TRIALS, examine
from lapsus.fitting.network_target import fitted_behaviour
from lapsus.pipeline.folder import STAGES, Folder, fingerprint
from lapsus.pipeline.result import Discovery
from lapsus.pipeline.target import (
    LEAST_GUESS,
    ROUND_NAME,
    Start,
    asked_start,
    experiment,
    memory_variance,
    starts,
    task_like,
    updates_within,
)
from lapsus.study.findings import LEAST_APART
from lapsus.study.mechanism import ALL, analyse
from lapsus.study.shown import shown_trials
from lapsus.training import Model, train
from lapsus.trials import Trials, read_trials
from lapsus.trials.observer import NAME, observer_path
from lapsus.zoo import Run

__all__ = ["Interrupted", "discover"]

_MOST_NETWORKS = 1000


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while training: all is saved, the same call goes on."""


# What can be asked of a network whose target has no swaps.
_WITHOUT_SWAPS = ("dynamics", "alignment")


def discover(
    trials: Trials | pd.DataFrame | str | Path | None = None,
    *,
    subject: str | list[str] | None = None,
    set_size: int | None = None,
    cueing: str = "auto",
    minutes: float = 10.0,
    networks: int = 1,
    output: str | Path | None = None,
    start_from: str | None = None,
    seed: int = 1,
    trust: bool = False,
    say: Callable[[str], None] | None = None,
    sizes: Sizes = FULL,
    **table: Any,
) -> Discovery:
    """From trials (a path, a table, Trials; None: the synthetic observer that ships with lapsus) to a mechanism and a
    report.

    minutes is the budget of everything together, networks the number of networks that share it. The folder `output`
    keeps every stage; the same call goes on where it was stopped. trust: import classes outside of lapsus that
    `start_from` names. `say` is called with a line of text as stages begin. table: how a file or table is read, as in
    `read_trials` (unit, columns, where, drop, …).

    >>> try:
    ...     lapsus.discover("absent.csv", minutes=10, output="found")
    ... except lapsus.LapsusError as error:
    ...     print(error)
    absent.csv: there is no such file or folder.
    """
    say = _default_say if say is None else say
    if not 0 < minutes < float("inf"):
        raise LapsusError(f"`minutes` must be positive, not {minutes}.")
    if not 1 <= networks <= _MOST_NETWORKS:
        raise LapsusError(f"`networks` must be 1 to {_MOST_NETWORKS}, not {networks}.")
    if not 0 <= seed < 2**31 - networks:
        raise LapsusError(f"`seed` must be a whole number from 0 to about two billion, not {seed}.")
    if cueing not in ("auto", "feature", "index"):
        raise LapsusError(f"`cueing` is feature, index or auto, not {cueing}.")
    example = trials is None
    read, source = _read(trials, subject, table)
    used, notes = _of_size(read, source, set_size)
    notes = [*read.notes, *notes]
    cueing = _cueing(cueing, used)
    settings = {
        "source": source,
        "example": example,
        "set_size": int(used.set_size[0]),
        "cueing": cueing,
        "minutes": float(minutes),
        "networks": int(networks),
        "start_from": None if start_from is None else str(start_from),
        "seed": int(seed),
    }
    place = Path(output) if output is not None else _default_folder(source)
    if start_from is not None and not holds(place, "discovery"):  # else it has what it needs of it, or looks for it
        asked_start(start_from, cueing, trust)
    folder = Folder.open(place, fingerprint(used, settings), settings)
    if not folder.done:
        for note in notes:
            say(f"      {note}")
        if set_size is None and (better := _better_size(read, int(used.set_size[0]))):
            say(f"      {better}")
    with locked(folder.path, "is being worked on"):
        return _stages(folder, used, notes, say, sizes, trust)


def _stages(
    folder: Folder, used: Trials, notes: list[str], say: Callable[[str], None], sizes: Sizes, trust: bool
) -> Discovery:
    """Every stage that is not done, in turn."""
    for stage in folder.mend():
        say(f"      A file of the stage “{STAGES[stage]}” is damaged or gone: it is done again.")
    discovery = Discovery(folder.path, trust)
    discovery._folder = folder
    for place in discovery.mend():
        say(f"      {short(place)} is damaged or gone: it is trained again.")
    work = _Work(discovery, used, notes, say, sizes)
    for number, stage in enumerate(STAGES, 1):
        if stage in folder.done and (stage != "report" or _reported(discovery)):
            continue
        work.announce(number, stage)
        began = time.monotonic()
        names = getattr(work, stage)() or ()
        folder.finish(stage, time.monotonic() - began, names)
        if stage == "report":
            write_json(
                folder / "discovery.json",
                folder.json("discovery.json") | {"seconds": round(sum(discovery.done.values()), 1)},
            )
    return Discovery(folder.path, trust)


def _reported(discovery: Discovery) -> bool:
    """Whether the report is there with the numbers that it was made of."""
    try:
        return discovery.report.is_file() and "sentences" in discovery.facts
    except LapsusError:
        return False


def _default_say(text: str) -> None:
    if sys.stderr.isatty():
        tqdm.write(text, file=sys.stderr)


def _default_folder(source: str) -> Path:
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in Path(source).stem)[:40].strip("-")
    return Path("runs") / f"discover-{stem or 'trials'}"


def _read(trials: Any, subject: str | list[str] | None, options: dict[str, Any]) -> tuple[Trials, str]:
    """The trials of the subjects, and where they are from."""
    if isinstance(trials, Trials):
        table, source = trials, Path(str(trials.source)).name or "trials"
    elif isinstance(trials, pd.DataFrame):
        table, source = Trials.from_table(trials, **options), "table"
    else:
        table = read_trials(observer_path() if trials is None else trials, **options)
        source = NAME if trials is None else Path(trials).name
    if subject is not None:
        wanted = [subject] if isinstance(subject, str) else list(subject)
        known = list(dict.fromkeys(table.subject))
        missing = [s for s in wanted if s not in known]
        if missing:
            listed = ", ".join(k if len(k) <= 40 else k[:40] + "…" for k in known[:20])
            raise LapsusError(f"{source}: there is no subject {missing[0][:80]!r}; the table has {listed}.")
        table = table[np.isin(table.subject.astype(str), wanted)]
    return table, source


def _of_size(table: Trials, source: str, set_size: int | None) -> tuple[Trials, list[str]]:
    """The trials of one set size, the smallest with something to swap, and what was left out, in sentences."""
    notes: list[str] = []
    sizes, counts = np.unique(table.set_size, return_counts=True)
    if set_size is None:
        several = sizes[sizes >= 2]
        if not len(several):
            raise LapsusError(
                f"{source}: every trial has one item, so there are no swaps to explain; `lapsus fit` describes such"
                " data."
            )
        set_size = int(several[0])
    if set_size not in sizes:
        raise LapsusError(f"{source}: no trial has set size {set_size}; the table has {', '.join(map(str, sizes))}.")
    if set_size < 2:
        raise LapsusError(f"{source}: with set size {set_size} there is nothing to swap; choose one of 2 or more.")
    kept = int(counts[sizes == set_size][0])
    if len(sizes) > 1:
        notes.append(
            f"The table has set sizes {', '.join(map(str, sizes))}; the {kept:,} trials with {set_size} items were"
            f" used, {len(table) - kept:,} left out."
        )
    if kept < LEAST_TRIALS:
        raise LapsusError(
            f"{source}: {kept} trials with {set_size} items are too few; at least {LEAST_TRIALS} are needed."
        )
    return table[table.set_size == set_size], notes


def _better_size(table: Trials, now: int) -> str | None:
    """A sentence where another set size has clearly more swaps to learn from than the one that is used now."""
    if len(np.unique(table.set_size[table.set_size > 1])) < 2:
        return None
    found = {size.items: size.swaps or 0.0 for size in examine(table).set_sizes}
    best = max(found, key=lambda items: found[items])
    if found[best] < 1.5 * found[now]:
        return None
    return (
        f"Set size {best} has more swaps to learn from, about {found[best]:.0f} where {now} items have"
        f" {found[now]:.0f}: `set_size={best}`."
    )


def _cueing(cueing: str, trials: Trials) -> str:
    if cueing == "feature" and trials.probe is None:
        raise LapsusError(
            '`cueing="feature"` needs a probe feature (target_probe, non_target_probe_1, …); the table has none.'
            ' `cueing="index"` does without.'
        )
    return ("feature" if trials.probe is not None else "index") if cueing == "auto" else cueing


class _Work:
    """The stages, in order; each reads what the ones before it wrote."""

    def __init__(
        self, discovery: Discovery, trials: Trials, notes: list[str], say: Callable[[str], None], sizes: Sizes
    ):
        self.discovery, self.used, self.notes, self.say, self.sizes = discovery, trials, notes, say, sizes
        self.folder = discovery._folder
        self.settings = discovery.settings

    def announce(self, number: int, stage: str) -> None:
        left = 60 * self.settings["minutes"] - sum(self.folder.done.values())
        when = f"about {left / 60:.1f} min left in all" if left > 6 else "the budget is used up, finishing"
        self.say(f"[{number}/{len(STAGES)}] {STAGES[stage]} ({when})")

    # Each stage returns the files of its that later stages read.

    def trials(self) -> list[str]:
        write_text(self.folder / "trials.csv", self.used.table.to_csv(index=False))
        write_json(self.folder / "notes.json", self.notes)
        return ["trials.csv", "notes.json"]

    def fit(self) -> list[str]:
        found = fit_trials(self.used, seed=self.settings["seed"])
        assert isinstance(found, Fit)  # of all trials together, not one a subject
        found.save(self.folder / "fit")
        self.discovery.fit = found
        return ["fit/fit.nc", "fit/summary.json"]

    def target(self) -> list[str]:
        settings, trust = self.settings, self.discovery.trust
        cueing = settings["cueing"]
        fitted = fitted_behaviour(self.discovery.fit, settings["set_size"], cueing)
        task = task_like(self.used, cueing)
        family: list[Start | None] = [*starts(fitted, task, cueing, settings["start_from"], trust)] or [None]
        if family == [None]:
            self.say(
                "      No trained network ships for this task yet, so training starts from scratch; ten minutes are"
                " short for that."
            )
        spent = sum(self.folder.done.values())
        # Comparison and analyses take about as long as the fit on any machine, the five questions three quarters of a
        # minute on one core; never less than a third is left for training.
        reserve = settings["networks"] * min(120.0, max(40.0, 0.8 * self.folder.done["fit"]))
        total = 60 * settings["minutes"]
        share = max(total / 3, total - spent - reserve) / settings["networks"]
        # What the memory of each start adds, by where it is from.
        memories = {
            start.source: memory_variance(start, self.sizes, trust) for start in family[: settings["networks"]] if start
        }
        names = []
        for k in range(settings["networks"]):
            start = family[k % len(family)]
            name = f"network-{k + 1}"
            memory = 0.0 if start is None else memories[start.source]
            seed, sizes = settings["seed"] + k, self.sizes
            describe = partial(experiment, fitted, task, start, seed, name, memory=memory, sizes=sizes)
            described = describe(updates_within(describe(1000), share))
            path = subfolder(self.folder.path, "networks") / name
            if not holds(path, "run"):
                Run.create(path, described, trust)
            names.append(name)
        start = family[0]
        write_json(
            self.folder / "target.json",
            {
                "cueing": cueing,
                "networks": names,
                "seconds": share,
                "start": " and ".join(one.name for one in family[: settings["networks"]] if one) or None,
                "start_distance": None if start is None else start.distance,
                "uniform_fit": fitted.uniform,
                "uniform_target": fitted.uniform if fitted.uniform >= LEAST_GUESS else 0.0,
            },
        )
        return ["target.json"]

    def train(self) -> None:
        plan = self.discovery.plan
        for number, run in enumerate(self.discovery.runs, 1):
            run.tidy()
            stages = run.experiment.stage
            for stage, end in zip(stages, np.cumsum([stage.updates for stage in stages])):
                # Only what this network has left of its share: a resumed discovery does not start its clock again.
                used = (run.metrics() or [{"seconds": 0.0}])[-1]["seconds"]
                left = plan["seconds"] - used
                if self.discovery.settled(run) or (left <= 1 and run.update > 0):
                    break
                if run.update >= end:
                    continue
                if run.update == 0:
                    self.say(
                        f"      network {number} of {len(plan['networks'])}: up to {run.experiment.updates:,} updates"
                        f" in {max(left, 1) / 60:.1f} min"
                    )
                outcome = train(run, steps=int(end) - run.update, minutes=max(left, 1) / 60)
                if outcome.reason == "interrupted":
                    raise Interrupted
                if stage.name == ROUND_NAME and run.update == end < run.experiment.updates:
                    self._look(run)

    def _look(self, run: Run) -> None:
        """See whether the network matches with a margin and its excess no longer falls by more than a twentieth."""
        model, seed = run.model(), self.settings["seed"]
        conditions = model.task.sample(self.sizes.look_conditions, rng.generator(seed, "look"))
        found = excess(model, conditions, self.sizes.look_trials, seed)["excess"]
        margin, looks = bool(self._match(model).with_margin), self.discovery.looks(run)
        level = bool(looks) and found > 0.95 * min(look["excess"] for look in looks)
        looks = [*looks, {"update": run.update, "excess": found, "margin": margin, "settled": margin and level}]
        write_json(self.folder / "networks" / f"{run.path.name}.json", {"looks": looks})

    def _match(self, model: Model) -> Match:
        fit, fitted, settings = self.discovery.fit, self.discovery.fitted, self.settings
        return match(model, self.used, fit, fitted, settings["cueing"], seed=settings["seed"], sizes=self.sizes)

    def evaluate(self) -> list[str]:
        settings, sizes = self.settings, self.sizes
        evaluations, matches = [], []
        for model in self.discovery.models:
            conditions, trials = sizes.evaluation_conditions, sizes.evaluation_trials
            evaluations.append(evaluate(model, conditions, trials, seed=settings["seed"]))
            matches.append(self._match(model))
        write_json(self.folder / "evaluation.json", {"evaluations": evaluations, "matches": matches})
        return ["evaluation.json"]

    def analyse(self) -> list[str]:
        place = subfolder(self.folder.path, "analysis")
        mechanisms = []
        for number, (model, found) in enumerate(zip(self.discovery.models, self.discovery.matches), 1):
            apart = _most_swaps(self.discovery.fitted, found)
            seed, sizes = self.settings["seed"], self.sizes
            swaps = self.discovery.fit.name != "none"
            asked = ALL if swaps else _WITHOUT_SWAPS
            mechanism = analyse(model, only=asked, probe_distance=apart, seed=seed, sizes=sizes)
            if not swaps:
                left_out = {name: NO_SWAPS_IN_DATA for name in ALL if name not in _WITHOUT_SWAPS}
                mechanism = replace(mechanism, left_out=mechanism.left_out | left_out)
            write_arrays(place / f"network-{number}.npz", shown_trials(model, mechanism.probe_distance, seed, sizes))
            mechanisms.append(mechanism.without_points)
        write_json(self.folder / "analysis.json", {"mechanisms": mechanisms})
        return ["analysis.json", *(f"analysis/network-{number}.npz" for number in range(1, len(mechanisms) + 1))]

    def report(self) -> None:
        self.discovery.write_report()


def _most_swaps(fitted: BNS, found: Match) -> float:
    """The probe distance (radians), of those in the data, at which the fitted model swaps most; the smallest of
    equals."""
    if found.feature != "probe":
        return np.pi / 4
    gaps = torch.tensor(found.distance)
    pair = {"report": torch.tensor([[0.0, 2.0]]).expand(len(gaps), 2), "probe": torch.stack([0 * gaps, gaps], 1)}
    swaps = swap_probability(fitted, pair | {"cued": torch.zeros(len(gaps), dtype=torch.long)})
    return max(float(gaps[(swaps > swaps.max() - 1e-4).nonzero()[0, 0]]), LEAST_APART)
