"""From any trial table with a design to a mechanism: density, networks, comparison, questions, page.

A folder holds design.toml, density.json, a run folder for each network in networks/, results.json and report.html. What
is there is not done again, so that a call that was interrupted continues.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lapsus.behaviour.learned import LearnedDensity
from lapsus.designs import Design, DesignFile, read_design, read_table
from lapsus.engine.threads import resolve
from lapsus.errors import LapsusError
from lapsus.evaluation.design_match import match_design
from lapsus.files import holds, make_folder, read_json, short, subfolder, to_plain, write_json, write_text
from lapsus.fitting.density import DensityFit, fit_density, load_density, save_density
from lapsus.mechanism.designed import analyse_design
from lapsus.pipeline.target import updates_within
from lapsus.pipeline.training import Processes
from lapsus.report.designed import DesignNetwork, design_page, design_sentences
from lapsus.tasks.designed import designed_task, plain_variable
from lapsus.training import Experiment, Model
from lapsus.zoo import Run

__all__ = ["DesignDiscovery", "discover_design", "experiment_of"]

OBJECTIVES = ("diffusion", "energy")
# Share of the time that networks train; the rest is for the density, comparison, questions and page.
_TRAINING = 0.7
# Updates of the preamble: to the mean response with a short delay, then with a growing one.
_PREAMBLE, _HORIZON = 300, 30


@dataclass(frozen=True)
class DesignDiscovery:
    """What `discover_design` found: the density, the networks, and the page."""

    path: Path
    density: DensityFit
    networks: list[DesignNetwork]
    seconds: float

    @property
    def report(self) -> Path:
        """The page."""
        return self.path / "report.html"

    @property
    def sentences(self) -> list[str]:
        """The answer in words, the most important first."""
        return design_sentences(self.networks)

    def to_dict(self) -> dict:
        """Plain numbers, as in results.json."""
        networks = [
            {
                "name": network.run.path.name,
                "objective": network.objective,
                "matched": network.match.matched,
                "match": to_plain(network.match),
                "mechanism": None if network.mechanism is None else network.mechanism.row(),
            }
            for network in self.networks
        ]
        return {"kept": self.density.kept, "coverage": self.density.coverage(), "networks": networks}


def experiment_of(
    design: Design, behaviour: LearnedDensity, objective: str, name: str, seed: int, updates: int
) -> Experiment:
    """The experiment that trains a network on a density from scratch: to the mean response first, then to all."""
    task = designed_task(design, behaviour.response_size)
    steps: dict[str, Any] = task["steps"]
    *before, last = steps
    delay = next((epoch for epoch in reversed(before) if not _shows(design, epoch)), None)
    preamble = {"objective": {"kind": "task-optimal", "rate_penalty": 0.0}, "conditions": 64, "trials": 8}
    common = {"clip": 5.0, "beta_2": 0.999, "principal_axes": 0.99, "rate_budget": 15.0}
    stages = []
    whole = steps[last]
    horizon = sorted({max(1, round(whole * share)) for share in (0.12, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)})
    for k, length in enumerate(horizon):
        shorter = dict(steps) | {last: length}
        if delay is not None and isinstance(steps[delay], int):
            shorter[delay] = max(1, round(steps[delay] * (k + 1) / len(horizon)))
        count = _PREAMBLE if k == 0 else _HORIZON
        stage = {"name": f"to the mean, {length} steps", "updates": count, "task": {"steps": shorter}}
        stages.append(preamble | common | stage | {"learning_rate": 3e-3, "warmup": 30 if k == 0 else 0})
    target = {"name": "to the density", "updates": updates, "hard_example_fraction": 0.25, "conditions": 64}
    target |= {"learning_rate": 3e-3, "final_learning_rate": 1e-4, "average": max(0.9, min(0.998, 1 - 8 / updates))}
    if objective == "energy":
        rare = {"rare_weight_power": 0.7} if behaviour.guesses else {}
        target |= {"objective": {"kind": "energy", "rate_penalty": 0.0} | rare, "trials": 16}
    else:
        target |= {"objective": {"kind": "diffusion", "regress": "expectation", "rate_penalty": 0.0}, "trials": 8}
    stages.append(common | target)
    return Experiment.model_validate(
        {
            "name": name,
            "description": "Made by lapsus discover --design.",
            "seed": seed,
            "task": task,
            "behaviour": behaviour_table(behaviour),
            "network": {"kind": "dendritic", "units": 32, "branching": [6, 10], "input_scale": 20.0},
            "stage": stages,
        }
    )


def _shows(design: Design, epoch: str) -> bool:
    return any(epoch in variable.epochs for variable in design.stimuli)


def behaviour_table(behaviour: LearnedDensity) -> dict[str, Any]:
    """The [behaviour] of an experiment that holds a learned density."""
    plain = {name: getattr(behaviour, name) for name in ("weights", "parts", "hidden", "members", "guesses")}
    variables = {
        name: [plain_variable(variable) for variable in getattr(behaviour, name)] for name in ("responses", "inputs")
    }
    return {"kind": "learned"} | variables | plain


def discover_design(
    table: str | Path,
    design: str | Path,
    *,
    output: str | Path | None = None,
    minutes: float = 12.0,
    objectives: list[str] | None = None,
    networks: int = 1,
    seed: int = 1,
    say: Callable[[str], None] = lambda text: None,
) -> DesignDiscovery:
    """Fit a density to a table, train networks by each objective on it, compare them, analyse them, write a page.

    The folder `output` is made, or continued. minutes: for everything together.
    """
    began = time.monotonic()
    asked = objectives or list(OBJECTIVES)
    for objective in asked:
        if objective not in OBJECTIVES:
            raise LapsusError(f"objectives are {' and '.join(OBJECTIVES)}, not {objective!r}.")
    if minutes <= 0 or networks < 1:
        raise LapsusError("minutes must be positive, and networks at least 1.")
    file = read_design(design)
    used = Design.of(file, read_table(table), short(table))
    folder = _folder(Path(output) if output else Path("runs") / f"discover-{Path(table).stem}", file, table, seed)
    say(f"[1/4] learning the density of responses ({len(used):,} trials)")
    density = _density(folder, used, seed, say)
    for sentence in density.sentences():
        say(f"      {sentence}")
    say("[2/4] training networks")
    count = len(asked) * networks
    at_once = min(count, resolve(None))
    left = 60 * minutes * _TRAINING - (time.monotonic() - began)
    seconds = max(left, 20 * minutes) / -(-count // at_once)
    runs = []
    for number in range(1, networks + 1):
        for objective in asked:
            path = subfolder(folder, "networks") / f"{objective}-{number}"
            if not holds(path, "run"):
                describe = lambda updates, objective=objective, name=path.name, number=number: experiment_of(
                    used, density.behaviour, objective, name, seed + number - 1, updates
                )
                Run.create(path, describe(_updates(describe, seconds, max(1, resolve(None) // at_once))))
            runs.append((Run(path), objective))
    job = lambda run: {"run": str(run.path), "threads": max(1, resolve(None) // at_once)}
    waiting = [run for run, _ in runs if run.update < run.experiment.updates]
    Processes(job, at_once, say).train(waiting)
    say("[3/4] comparing networks with the density and the data, and looking for the mechanism")
    found = [_network(run, objective, used, seed) for run, objective in runs]
    discovery = DesignDiscovery(folder, density, found, time.monotonic() - began)
    write_json(folder / "results.json", discovery.to_dict())
    say("[4/4] writing the report")
    write_text(discovery.report, design_page(discovery.density, found, discovery.sentences, short(table)))
    return discovery


def _folder(path: Path, file: DesignFile, table: str | Path, seed: int) -> Path:
    """The folder of this design and table, made or continued; one of another is an error."""
    identity = {"format": 1, "design": file.model_dump(mode="json"), "table": str(Path(table).name), "seed": seed}
    place = path / "design.json"
    if place.is_file():
        if read_json(place) != identity:
            raise LapsusError(f"{short(path)} holds a discovery of another design, table or seed; name another folder.")
        return path
    make_folder(path)
    write_json(place, identity)
    write_text(path / "design.toml", file.text())
    return path


def _density(folder: Path, design: Design, seed: int, say: Callable[[str], None]) -> DensityFit:
    place = folder / "density.json"
    if place.is_file():
        return load_density(place, design)
    found = fit_density(design, seed=seed, progress=lambda name: say(f"      {name}"))
    save_density(found, place)
    return found


def _updates(describe: Callable[[int], Experiment], seconds: float, threads: int) -> int:
    """Updates of the last stage that fit into the time beside the preamble, which takes about a third of as many."""
    fits = updates_within(describe(1000), seconds, threads)
    return max(100, fits - (_PREAMBLE + 6 * _HORIZON) // 3)


def _network(run: Run, objective: str, design: Design, seed: int) -> DesignNetwork:
    model: Model = run.model()
    match = match_design(model, design, seed)
    try:
        return DesignNetwork(run, objective, match, analyse_design(model, seed=seed))
    except LapsusError as error:
        return DesignNetwork(run, objective, match, None, str(error))
