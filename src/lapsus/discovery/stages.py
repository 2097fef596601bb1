"""discover(trials): every stage in turn, each written to the folder when it is done and skipped when it is there."""

import sys
import time
from pathlib import Path

import numpy as np

from lapsus.discovery.folder import STAGES, Folder, fingerprint
from lapsus.discovery.result import Discovery, summary
from lapsus.errors import LapsusError
from lapsus.files import locked, subfolder, write_arrays, write_json, write_text

__all__ = ["Interrupted", "discover"]

# Repeats of every trial that the network is shown, and trials at most.
_REPEATS, _MOST = 8, 4096
_MOST_NETWORKS = 1000
_MINIMUM = 30


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while training: all is saved, the same call goes on."""


def discover(
    trials=None,
    *,
    subject: str | list[str] | None = None,
    set_size: int | None = None,
    cueing: str = "auto",
    minutes: float = 10.0,
    networks: int = 1,
    output: str | Path | None = None,
    start_from: str | None = None,
    unit: str | None = None,
    probe_unit: str | None = None,
    seed: int = 1,
    say=None,
) -> Discovery:
    """From trials (a path, a table, Trials; None: the synthetic observer that ships with lapsus) to a mechanism and a
    report.

    minutes is the budget of everything together, networks the number of networks that share it. The folder `output`
    keeps every stage; the same call goes on where it was stopped. `say` is called with a line of text as stages begin.
    """
    started = time.monotonic()
    say = _default_say if say is None else say
    if not 0 < minutes < float("inf"):
        raise LapsusError(f"--minutes must be positive, not {minutes}.")
    if not 1 <= networks <= _MOST_NETWORKS:
        raise LapsusError(f"--networks must be 1 to {_MOST_NETWORKS}, not {networks}.")
    if not 0 <= seed < 2**31 - networks:
        raise LapsusError(f"--seed must be a whole number from 0 to about two billion, not {seed}.")
    if cueing not in ("auto", "feature", "index"):
        raise LapsusError(f"--cueing is feature, index or auto, not {cueing}.")
    example = trials is None
    used, source, notes = _read(trials, subject, set_size, unit, probe_unit)
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
    folder = Folder.open(
        output if output is not None else _default_folder(source), fingerprint(used, settings), settings
    )
    with locked(folder.path, "is being worked on"):
        return _stages(folder, used, notes, started, say)


def _stages(folder: Folder, used, notes: list[str], started: float, say) -> Discovery:
    for stage in folder.mend():
        say(f"      A file of the stage “{STAGES[stage]}” is damaged or gone: it is done again.")
    discovery = Discovery(folder.path)
    discovery._folder = folder
    work = _Work(discovery, used, notes, started, say)
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
    return Discovery(folder.path)


def _reported(discovery: Discovery) -> bool:
    """Whether the report is there with the numbers that it was made of."""
    try:
        return discovery.report.is_file() and "sentences" in discovery.facts
    except LapsusError:
        return False


def _default_say(text: str) -> None:
    if sys.stderr.isatty():
        from tqdm import tqdm

        tqdm.write(text, file=sys.stderr)


def _default_folder(source: str) -> Path:
    stem = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in Path(source).stem)[:40].strip("-")
    return Path("runs") / f"discover-{stem or 'trials'}"


def _read(trials, subject, set_size, unit, probe_unit):
    """The trials to use, where they are from, and what was left out, in sentences."""
    import pandas as pd

    from lapsus.trials import Trials, read_trials
    from lapsus.trials.observer import NAME, observer_path

    if isinstance(trials, Trials):
        table, source = trials, Path(str(trials.source)).name or "trials"
    elif isinstance(trials, pd.DataFrame):
        table, source = Trials.from_table(trials, unit, probe_unit), "table"
    else:
        table = read_trials(observer_path() if trials is None else trials, unit, probe_unit)
        source = NAME if trials is None else Path(trials).name
    notes = []
    if subject is not None:
        wanted = [subject] if isinstance(subject, str) else list(subject)
        known = list(dict.fromkeys(table.subject))
        missing = [s for s in wanted if s not in known]
        if missing:
            listed = ", ".join(k if len(k) <= 40 else k[:40] + "…" for k in known[:20])
            raise LapsusError(f"{source}: there is no subject {missing[0][:80]!r}; the table has {listed}.")
        table = table[np.isin(table.subject.astype(str), wanted)]
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
            " used."
        )
    if kept < _MINIMUM:
        raise LapsusError(f"{source}: {kept} trials with {set_size} items are too few; at least {_MINIMUM} are needed.")
    return table[table.set_size == set_size], source, notes


def _cueing(cueing: str, trials) -> str:
    if cueing == "feature" and trials.probe is None:
        raise LapsusError(
            "--cueing feature needs a probe feature (target_probe, non_target_probe_1, …); the table has none. --cueing"
            " index does without."
        )
    return ("feature" if trials.probe is not None else "index") if cueing == "auto" else cueing


class _Work:
    """The stages, in order; each reads what the ones before it wrote."""

    def __init__(self, discovery: Discovery, trials, notes: list[str], started: float, say):
        self.discovery, self.used, self.notes, self.started, self.say = discovery, trials, notes, started, say
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
        from lapsus.inference import fit

        found = fit(self.used, seed=self.settings["seed"])
        found.save(self.folder / "fit", plots=False)
        self.discovery.fit = found
        return ["fit/fit.nc", "fit/summary.json"]

    def target(self) -> list[str]:
        from lapsus.discovery.target import (
            LEAST_GUESS,
            experiment,
            fitted_behaviour,
            nearest_start,
            task_like,
            updates_within,
        )
        from lapsus.library import Run

        settings, fit = self.settings, self.discovery.fit
        cueing = settings["cueing"]
        fitted = fitted_behaviour(fit, settings["set_size"], cueing)
        task = task_like(self.used, cueing)
        starts = nearest_start(fitted, task, cueing, settings["start_from"])
        if not starts:
            self.say(
                "      No trained network ships for this task yet, so training starts from scratch; ten minutes are"
                " short for that."
            )
        # The nearest network and, for further networks, its other seeds.
        family = [s for s in starts if s.config["name"] == starts[0].config["name"]] or [None]
        spent = sum(self.folder.done.values())
        # Comparison and analyses take about as long as the fit on any machine; never less than a third is left for
        # training.
        reserve = settings["networks"] * min(90.0, max(15.0, 0.5 * self.folder.done["fit"]))
        total = 60 * settings["minutes"]
        share = max(total / 3, total - spent - reserve) / settings["networks"]
        names = []
        for k in range(settings["networks"]):
            start = family[k % len(family)]
            name = f"network-{k + 1}"
            described = experiment(fitted, task, start, settings["seed"] + k, name, 1000)
            updates = updates_within(described, share)
            described = experiment(fitted, task, start, settings["seed"] + k, name, updates)
            path = subfolder(self.folder.path, "networks") / name
            if not (path / "config.toml").is_file():
                Run.create(path, described)
            names.append(name)
        start = family[0]
        write_json(
            self.folder / "target.json",
            {
                "cueing": cueing,
                "networks": names,
                "seconds": share,
                "start": None if start is None else start.name,
                "start_distance": None if start is None else start.distance,
                "uniform_fit": fitted.uniform,
                "uniform_target": fitted.uniform if fitted.uniform >= LEAST_GUESS else 0.0,
            },
        )
        return ["target.json"]

    def train(self) -> None:
        from lapsus.training import train

        plan = self.discovery.plan
        for number, run in enumerate(self.discovery.runs, 1):
            # Only what this network has left of its share: a resumed discovery does not start its clock again.
            used = (run.metrics() or [{"seconds": 0.0}])[-1]["seconds"]
            left = plan["seconds"] - used
            if run.update >= run.experiment.updates or (left <= 1 and run.update > 0):
                continue
            self.say(
                f"      network {number} of {len(plan['networks'])}: up to {run.experiment.updates:,} updates in"
                f" {max(left, 1) / 60:.1f} min"
            )
            outcome = train(run, minutes=max(left, 1) / 60)
            if outcome.reason == "interrupted":
                raise Interrupted

    def evaluate(self) -> list[str]:
        from lapsus.study import evaluate

        evaluations, matches = [], []
        for model in self.discovery.models:
            evaluation = evaluate(model, 1024, 8, seed=self.settings["seed"])
            evaluations.append(evaluation)
            matches.append(self._match(model))
        write_json(self.folder / "evaluation.json", {"evaluations": evaluations, "matches": matches})
        return ["evaluation.json"]

    def _match(self, model) -> dict:
        """The network on the subject's own trials, or with more items on two-item trials that have the data's
        distances."""
        import torch

        from lapsus import circular, streams
        from lapsus.study.match import bin_edges, compare, network_responses

        trials, fitted, seed = self.used, self.discovery.fitted, self.settings["seed"]
        rng = np.random.default_rng([seed, 3])
        name = self.discovery.fit.name
        feature = "report" if name == "report" or trials.probe is None else "probe"
        if self.settings["set_size"] == 2:
            rows = np.sort(rng.permutation(len(trials))[:_MOST])
            shown = trials[rows]
            report, probe, data = shown.report, shown.probe, shown.response
        else:
            drawn = model.task.sample(2048, streams.generator(seed, "two items"))
            order = torch.stack([drawn["cued"], 1 - drawn["cued"]], 1)
            report, probe = (drawn[k].gather(1, order).numpy().astype(float) for k in ("report", "probe"))
            data = None
        gap = circular.distance(*(report if feature == "report" else probe).T)
        network = network_responses(model, report, probe, _REPEATS, seed)
        if data is not None and self.settings["cueing"] == "feature":
            predicted = self.discovery.fit.predict(2 * _REPEATS, seed)
            fit_responses = np.stack([replicate.response[rows] for replicate in predicted])
        else:
            conditions = {"report": torch.tensor(report), "cued": torch.zeros(len(report), dtype=torch.long)}
            conditions["probe"] = torch.tensor(np.tile([-np.pi, 0.0], (len(report), 1)) if probe is None else probe)
            sampled = fitted.sample(conditions, 2 * _REPEATS, streams.generator(seed, "fitted"))
            fit_responses = circular.angle(sampled.permute(1, 2, 0)).numpy().T.astype(float)
        return compare(report, gap, bin_edges(gap), network, fit_responses, data, seed) | {"feature": feature}

    def analyse(self) -> list[str]:
        from lapsus.study.mechanism import analyse

        place = subfolder(self.folder.path, "analysis")
        mechanisms = []
        for number, (model, match) in enumerate(zip(self.discovery.models, self.discovery.matches), 1):
            apart = _most_swaps(self.discovery.fitted, match)
            numbers, arrays = analyse(model, apart, self.settings["seed"])
            write_arrays(place / f"network-{number}.npz", arrays)
            mechanisms.append(numbers)
        write_json(self.folder / "analysis.json", {"mechanisms": mechanisms})
        return ["analysis.json", *(f"analysis/network-{number}.npz" for number in range(1, len(mechanisms) + 1))]

    def report(self) -> None:
        from lapsus.report import discovery_page

        discovery = self.discovery
        write_json(self.folder / "discovery.json", summary(discovery))
        discovery.facts = self.folder.json("discovery.json")
        discovery_page(discovery)


def _most_swaps(fitted, match: dict) -> float:
    """The probe distance, of those in the data, at which the fitted model swaps most; the smallest of equals."""
    import torch

    if match["feature"] != "probe":
        return np.pi / 4
    gaps = torch.tensor(match["distance"])
    pair = {"report": torch.tensor([[0.0, 2.0]]).expand(len(gaps), 2), "probe": torch.stack([0 * gaps, gaps], 1)}
    swaps = fitted.weights(pair | {"cued": torch.zeros(len(gaps), dtype=torch.long)})[:, 1]
    return max(float(gaps[(swaps > swaps.max() - 1e-4).nonzero()[0, 0]]), np.pi / 12)
