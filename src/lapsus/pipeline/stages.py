"""discover(trials): every stage in turn, each written to the folder when it is done and skipped when it is there."""

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from lapsus.behaviour import BNS
from lapsus.behaviour.measures import prior_swap_probability
from lapsus.errors import LapsusError
from lapsus.evaluation.against_target import evaluate
from lapsus.evaluation.manipulations import predict
from lapsus.evaluation.match import Match
from lapsus.evaluation.predictive_density import DensityDifference, compare_densities, durations, score_durations
from lapsus.evaluation.sample_sizes import FULL, SampleSizes
from lapsus.files import holds, locked, short, subfolder, write_arrays, write_json, write_text
from lapsus.fitting import Fit, fit as fit_trials
from lapsus.fitting.examine import LEAST_TRIALS, examine
from lapsus.fitting.network_target import fitted_behaviour, left_out
from lapsus.mechanism.activity import NO_SWAPS_IN_DATA
from lapsus.mechanism.asking import analyse
from lapsus.mechanism.example_trials import example_trials
from lapsus.mechanism.recording_needs import recording_needs
from lapsus.mechanism.registry import QUESTIONS
from lapsus.pipeline.recording import GivenRecording, compare_recording
from lapsus.pipeline.result import STAGES, Discovery, fingerprint
from lapsus.pipeline.target import (
    OBJECTIVES,
    Start,
    asked_start,
    experiment,
    memory_variance,
    objective_of,
    starts,
    task_like,
    updates_within,
)
from lapsus.pipeline.training import Interrupted, match_network, side_by_side, threads_each, train_networks
from lapsus.report.findings import LEAST_APART
from lapsus.training import Model
from lapsus.trials import Trials, read_trials
from lapsus.trials.observer import NAME, observer_path
from lapsus.zoo import Run

__all__ = ["Interrupted", "discover"]

_MOST_NETWORKS = 1000


def discover(
    trials: Trials | pd.DataFrame | str | Path | None = None,
    *,
    subject: str | list[str] | None = None,
    set_size: int | None = None,
    cueing: str = "auto",
    minutes: float = 12.0,
    objectives: Sequence[str] | None = None,
    networks: int = 1,
    output: str | Path | None = None,
    start_from: str | None = None,
    seed: int = 1,
    trust: bool = False,
    say: Callable[[str], None] | None = None,
    sizes: SampleSizes = FULL,
    recording: str | Path | None = None,
    reading: Mapping[str, Any] | None = None,
    **table: Any,
) -> Discovery:
    """From trials (a path, a table, Trials; None: the synthetic observer that ships with lapsus) to a mechanism and a
    report.

    minutes is the budget of everything together. One network is trained by each of the objectives ("diffusion" and
    "energy", or that of `start_from`), or as many as `networks` says; they are trained side by side on the cores
    that there are. recording: an NWB file of the same task, read as `reading` says
    (`lapsus.recordings.read_sessions`); the report says which of the matched networks it resembles. The folder
    `output` keeps every stage; the same call resumes where it was stopped. trust: import classes outside of lapsus
    that `start_from` names. `say` is called with a line of text as stages begin. table: how a file or table is
    read, as in `read_trials` (unit, columns, where, drop, …).

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
    if objectives is not None and (not objectives or not set(objectives) <= set(OBJECTIVES)):
        raise LapsusError(f"`objectives` are one or both of {' and '.join(OBJECTIVES)}, not {', '.join(objectives)}.")
    given = None if recording is None else GivenRecording.read(recording, reading or {})
    example = trials is None
    read, source = _read(trials, subject, table)
    used, notes = _of_size(read, source, set_size)
    notes = [*read.notes, *notes]
    cueing = _cueing(cueing, used)
    place = Path(output) if output is not None else _default_folder(source)
    resumed = holds(place, "discovery")  # then it has what it needs of its start, or looks for it
    settings = {
        "source": source,
        "example": example,
        "set_size": int(used.set_size[0]),
        "cueing": cueing,
        "minutes": float(minutes),
        "objectives": None if objectives is None else list(dict.fromkeys(objectives)),
        "networks": int(networks),
        "start_from": None if start_from is None else str(start_from),
        "seed": int(seed),
    }
    if start_from is not None and not resumed:
        asked_start(start_from, cueing, trust)
    folder = Discovery.open(place, fingerprint(used, settings), settings, trust)
    if not folder.done:
        for note in notes:
            say(f"      {note}")
        if set_size is None and (better := _better_size(read, int(used.set_size[0]))):
            say(f"      {better}")
        if (size := used.set_size[0]) > 2:
            say(f"      Networks hold two items, not {size}: they learn the swap function of {size}, not their load.")
    with locked(folder.path, "is being worked on"):
        return _stages(folder, used, notes, say, sizes, given)


def _stages(
    discovery: Discovery,
    used: Trials,
    notes: list[str],
    say: Callable[[str], None],
    sizes: SampleSizes,
    recording: GivenRecording | None = None,
) -> Discovery:
    """Every stage that is not done, in turn."""
    for stage in discovery.repair():
        say(f"      A file of the stage “{STAGES[stage]}” is damaged or gone: it is done again.")
    for place in discovery.repair_networks():
        say(f"      {short(place)} is damaged or gone: it is trained again.")
    work = _Work(discovery, used, notes, say, sizes)
    for number, stage in enumerate(STAGES, 1):
        if stage == "report" and recording is not None:
            compare_recording(discovery, work.of_both_objectives(), recording, sizes, say)
        if stage in discovery.done and (stage != "report" or _reported(discovery)):
            continue
        work.announce(number, stage)
        began = time.monotonic()
        names = getattr(work, stage)() or ()
        discovery.finish(stage, time.monotonic() - began, names)
        if stage == "report":
            write_json(
                discovery / "discovery.json",
                discovery.json("discovery.json") | {"seconds": round(sum(discovery.done.values()), 1)},
            )
    return Discovery(discovery.path, discovery.trust)


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
        if options:
            raise LapsusError(f"`{next(iter(options))}` is for reading a table, and these trials were read already.")
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
        f"Set size {best} has more swaps, about {found[best]:.0f} where {now} items have {found[now]:.0f}. The network"
        f" shows two items at any set size: `set_size={best}` gives it the swap function of {best} items, not their"
        " load."
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
        self, discovery: Discovery, trials: Trials, notes: list[str], say: Callable[[str], None], sizes: SampleSizes
    ):
        self.discovery, self.used, self.notes, self.say, self.sizes = discovery, trials, notes, say, sizes
        self.folder = discovery
        self.settings = discovery.settings

    def announce(self, number: int, stage: str) -> None:
        left = 60 * self.settings["minutes"] - sum(self.folder.done.values())
        when = f"about {left / 60:.1f} min left in all" if left > 6 else "the budget is used up, finishing"
        self.say(f"[{number}/{len(STAGES)}] {STAGES[stage]} ({when})")

    # Each stage returns the files of its that later stages read.

    def trials(self) -> list[str]:
        write_text(self.folder / "trials.csv", self.used.table.to_csv(index=False))
        write_json(self.folder / "notes.json", self.notes)
        return ["notes.json"]  # nothing reads trials.csv

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
        dropped = left_out(self.discovery.fit, fitted, cueing)
        for sentence in dropped:
            self.say(f"      {sentence}")
        objectives = self._objectives()
        families: dict[str, list[Start]] = {}
        for objective in objectives:
            families[objective] = starts(fitted, task, cueing, objective, settings["start_from"], trust)
            if not families[objective]:
                self.say(
                    f"      No network trained by {objective} ships for this task yet, so training starts from scratch;"
                    f" {settings['minutes']:.0f} minutes are short for that."
                )
        seconds = self._seconds_of_training(len(objectives) * settings["networks"])
        networks = []
        for k in range(settings["networks"]):
            for objective in objectives:
                family = families[objective]
                start = family[k % len(family)] if family else None
                name = f"{objective}-{k + 1}"
                self._create(name, objective, fitted, task, start, settings["seed"] + k, seconds)
                networks.append(
                    {
                        "name": name,
                        "objective": objective,
                        "start": None if start is None else start.name,
                        "start_distance": None if start is None else start.distance,
                        "start_objective": None if start is None else objective_of(start.config),
                    }
                )
        write_json(
            self.folder / "target.json",
            {"cueing": cueing, "networks": networks, "seconds": seconds, "left_out": dropped},
        )
        return ["target.json"]

    def _objectives(self) -> list[str]:
        """What was asked for; otherwise that of the start that was asked for; otherwise all."""
        settings = self.settings
        if settings["objectives"]:
            return settings["objectives"]
        if settings["start_from"] is not None:
            config = asked_start(settings["start_from"], settings["cueing"], self.discovery.trust)
            if (trained_by := objective_of(config)) in OBJECTIVES:
                return [trained_by]
        return list(OBJECTIVES)

    def _seconds_of_training(self, networks: int) -> float:
        """How long each of so many networks may train, as many at a time as there are cores."""
        spent, total = sum(self.folder.done.values()), 60 * self.settings["minutes"]
        # Comparison and analyses take about as long as the fit on any machine, the questions three quarters of a minute
        # on one core; never less than a third is left for training.
        reserve = networks * min(120.0, max(40.0, 0.8 * self.folder.done["fit"]))
        turns = math.ceil(networks / side_by_side(networks))
        return max(total / 3, total - spent - reserve) / turns

    def _create(
        self, name: str, objective: str, fitted: BNS, task: dict, start: Start | None, seed: int, seconds: float
    ) -> None:
        """The run of a network, with as many updates as fit into its time."""
        path = subfolder(self.folder.path, "networks") / name
        if holds(path, "run"):
            return
        trust, sizes = self.discovery.trust, self.sizes
        memory = memory_variance(start, sizes, trust) if start is not None and objective == "diffusion" else 0.0
        describe = partial(experiment, fitted, task, start, seed, name, memory=memory, sizes=sizes, objective=objective)
        threads = threads_each(len(self._objectives()) * self.settings["networks"])
        Run.create(path, describe(updates_within(describe(1000), seconds, threads)))

    def train(self) -> None:
        for run in self.discovery.runs:
            run.tidy()
        train_networks(self.discovery, self.used, self.sizes, self.say)

    def evaluate(self) -> list[str]:
        settings, sizes = self.settings, self.sizes
        evaluations, matches = [], []
        for model in self.discovery.models:
            conditions, trials = sizes.evaluation_conditions, sizes.evaluation_trials
            evaluations.append(evaluate(model, conditions, trials, seed=settings["seed"]))
            matches.append(match_network(self.discovery, self.used, model, sizes))
        write_json(self.folder / "evaluation.json", {"evaluations": evaluations, "matches": matches})
        return ["evaluation.json"]

    def analyse(self) -> list[str]:
        place = subfolder(self.folder.path, "analysis")
        mechanisms = []
        for number, (model, found) in enumerate(zip(self.discovery.models, self.discovery.matches), 1):
            apart = _where_matched(self.discovery.fitted, found)
            seed, sizes = self.settings["seed"], self.sizes
            swaps = self.discovery.fit.name != "none"
            asked = [name for name, question in QUESTIONS.items() if swaps or not question.needs_swaps]
            mechanism = analyse(model, only=asked, probe_distance=apart, seed=seed, sizes=sizes)
            mechanism.left_out.update({name: NO_SWAPS_IN_DATA for name in QUESTIONS if name not in asked})
            write_arrays(place / f"network-{number}.npz", example_trials(model, mechanism.probe_distance, seed, sizes))
            mechanisms.append(mechanism.stored())
        compared = self.of_both_objectives()
        outcome: dict[str, Any] = {"mechanisms": mechanisms, "predictions": [], "recording_needs": [], "density": None}
        if compared:
            outcome |= {
                "predictions": self._predictions(compared),
                "recording_needs": self._recording_needs(compared),
                "density": self._density(compared),
            }
        write_json(self.folder / "analysis.json", outcome)
        return ["analysis.json", *(f"analysis/network-{number}.npz" for number in range(1, len(mechanisms) + 1))]

    def of_both_objectives(self) -> dict[str, Model]:
        """The matched networks by name, where there are some of both objectives and swaps to compare them by."""
        matched = {
            run.path.name: model
            for run, model, found in zip(self.discovery.runs, self.discovery.models, self.discovery.matches)
            if found.matched
        }
        both = len({model.objective for model in matched.values()}) == 2
        return matched if both and self.discovery.fit.name != "none" else {}

    def _predictions(self, networks: dict[str, Model]) -> list[dict]:
        """What networks predict for manipulations."""
        seed, sizes = self.settings["seed"], self.sizes
        return predict(networks, None, sizes.prediction_conditions, sizes.prediction_trials, seed).to_dict("records")

    def _recording_needs(self, networks: dict[str, Model]) -> list[dict]:
        """What recordings of the networks would show."""
        trials, seed = self.sizes.single_trials // 2, self.settings["seed"]
        needs = recording_needs(networks, recordings=self.sizes.recordings, trials=trials, seed=seed)
        return needs.to_dict("records")

    def _density(self, networks: dict[str, Model]) -> DensityDifference | None:
        """Which objective predicts the trials better where the table has a column of durations."""
        found = durations(self.used) if self.used.report.shape[1] == 2 else None
        if found is None:
            return None
        scores = score_durations(networks, self.used, found, seed=self.settings["seed"])
        return compare_densities(scores, found.column)

    def report(self) -> None:
        self.discovery.write_report()


def _where_matched(fitted: BNS, found: Match) -> float:
    """The probe distance (radians) to analyse: of those in the data at which the network swaps as often as the fit
    within the tolerance of a match, the one at which the fit swaps most, the smallest of equals; where there is none,
    the one at which the two differ least."""
    if found.feature != "probe":
        return np.pi / 4
    gaps = torch.tensor(found.distance)
    pair = {"report": torch.tensor([[0.0, 2.0]]).expand(len(gaps), 2), "probe": torch.stack([0 * gaps, gaps], 1)}
    swaps = prior_swap_probability(fitted, pair | {"cued": torch.zeros(len(gaps), dtype=torch.long)}).numpy()
    off = np.abs(found.network - found.fit)
    alike = off <= max(found.tolerance, float(np.nanmin(off)))
    best = np.flatnonzero(alike & (swaps > swaps[alike].max() - 1e-4))[0]
    return max(float(found.distance[best]), LEAST_APART)
