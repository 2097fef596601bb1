"""The networks that the paper's figures need, found among shipped networks or run folders by how they were trained."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import xarray as xr

from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import FULL_FIGURES, FigureSizes
from lapsus.evaluation.simulation import Simulated, simulate_design, simulate_responses
from lapsus.files import holds
from lapsus.sweep import Plan, Sweep
from lapsus.training.model import Model
from lapsus.zoo import Run
from lapsus.zoo.shipped import load_shipped, shipped, shipped_name

# Role → how figures call it. The order is that of the paper's figures.
LABELS = {
    "index-optimal": "task-optimal",
    "index-none": "no swaps",
    "index-constant-05": "5 % swaps",
    "index-constant-10": "10 % swaps",
    "feature-optimal": "task-optimal",
    "feature-none": "no swaps",
    "feature-constant-30": "constant 30 %",
    "feature-constant-08": "constant 8 %",
    "feature-constant-05": "constant 5 %",
    "feature-smooth-0": r"smooth, $\tilde\pi$ = 0",
    "feature-smooth-1": r"smooth, $\tilde\pi$ = 1",
    "feature-smooth-2": r"smooth, $\tilde\pi$ = 2",
    "feature-sample-mse": "squared error on samples",
    "feature-optimal-30": "T* = 30",
    "feature-optimal-20": "T* = 20",
    "feature-optimal-5": "T* = 5",
    "feature-optimal-1": "T* = 1",
}


def role_of(config: dict) -> str | None:
    """The part that a network plays in the paper's figures, from its experiment; None if it plays none."""
    last, kind = config["stage"][-1], config["task"].get("kind")
    objective = last.get("objective") or {"kind": "diffusion"}
    # The experiment's own target, by which a network is measured; a stage may aim a little beside it.
    target = config.get("behaviour") or {"kind": "bns"}
    match kind, target.get("kind"):
        case "cue-combination", "causal-inference":
            return "cue-combination" if objective["kind"] == "diffusion" else None
        case "index-cued-attended", "attended-swap":
            return "index-attended"
        case ("index-cued" | "feature-cued") as cueing, "bns":
            task = cueing.removesuffix("-cued")
        case _:
            return None
    architecture = config.get("network", {}).get("kind", "dendritic")
    if architecture != "dendritic":
        task = f"{task}-{architecture}"
    steps, delay = _duration(config, "denoise", 40), _duration(config, "delay", 15)
    if (steps, delay) != (40, 15):
        return None
    swap, pi_correct = target.get("swap") or {"kind": "none"}, target.get("pi_correct", 0.0)
    match objective["kind"], swap["kind"]:
        case "task-optimal", _:
            window = objective.get("window", 0) or steps
            part = "optimal" if window == steps else f"optimal-{window}"
        case "sample-mse", _:
            part = "sample-mse"
        case _, "none":
            part = "none"
        case _, "constant" if pi_correct == 0:
            part = f"constant-{round(100 * swap['p']):02d}"
        case _, "smooth" if swap.get("width", 3.0) == 3.0:
            part = f"smooth-{pi_correct:g}"
        case _:
            return None
    return f"{task}-{part}"


def _duration(config: dict, epoch: str, usual: int) -> Any:
    """Of an epoch in figures: that of the last stage, where a list ends. A range only says what was trained; then the
    experiment's own counts."""
    own = config["task"].get(epoch, usual)
    trained = (config["stage"][-1].get("task") or {}).get(epoch)
    trained = trained[-1] if isinstance(trained, list | tuple) else trained
    return own if trained is None or isinstance(trained, dict) else trained


def _plan(folder: Path) -> Plan | None:
    """That of a sweep; None for any other folder."""
    return Sweep(folder).plan if holds(folder, "sweep") else None


def _runs_in(folder: str | Path, trust: bool) -> list[Run]:
    """Runs in a folder of run folders, or in that of a sweep; or the folder itself, if it is a run."""
    folder = Path(folder)
    if not folder.is_dir():
        raise LapsusError(f"{folder} is not a folder; give the folder that holds run folders.")
    plan = _plan(folder)
    paths = [folder] if holds(folder, "run") else sorted((folder / "members" if plan else folder).glob("*"))
    runs = [Run(path, trust) for path in paths if holds(path, "run") and any(path.glob("checkpoint-*.json"))]
    if not runs:
        raise LapsusError(f"{folder} holds no run folder with a checkpoint; `lapsus train` makes them.")
    return runs if plan is None else _without_stages(runs, plan)


def _without_stages(runs: list[Run], plan: Plan) -> list[Run]:
    """Without members of a sweep that nobody asked for and from which another one of the same role was trained on:
    they are stages of that one."""
    roles = {run.name: role_of(_config(run)) for run in runs if _is_finished(run)}
    stages = set()
    for name, role in roles.items():
        start = plan.start(name)
        if start is not None and plan.is_start(start) and role is not None and roles.get(start) == role:
            stages.add(start)
    return [run for run in runs if run.name not in stages]


def _is_finished(run: Run) -> bool:
    return run.update >= run.experiment.updates


def _config(run: Run) -> dict:
    return run.experiment.model_dump(exclude_none=True)


def finished_runs(folder: str | Path, trust: bool = False) -> dict[str, Run]:
    """Runs of a folder that are at their end, by name and seed as those that ship: in a sweep, a setting that changes
    nothing goes by the name of its experiment."""
    plan, runs = _plan(Path(folder)), {}
    for run in filter(_is_finished, _runs_in(folder, trust)):
        name = run.experiment.name
        if plan is not None and not (setting := plan.setting(run.name)).varied and setting.subject is None:
            name = setting.experiment
        runs[shipped_name(name, run.experiment.seed)] = run
    return runs


# Name of a network → its experiment, and how it is opened.
Candidates = dict[str, tuple[dict, Callable[[], Model]]]


@dataclass(frozen=True, eq=False)
class Networks:
    """Trained models by role, and how much is simulated of each. A figure asks for a role; one without a network leaves
    a note in the panel instead."""

    loaders: dict[str, Callable[[], Model]]
    sources: dict[str, str] = field(default_factory=dict)
    sizes: FigureSizes = FULL_FIGURES
    delay: int | None = None  # steps, where it is not each network's own

    @classmethod
    def shipped(cls, seed: int = 1, collection: str = "paper") -> "Networks":
        """The networks of one collection that come with lapsus; of a role with several seeds the one asked for, where
        it is there."""
        candidates = _shipped_candidates(collection)
        seeds = _seeds(candidates)
        if candidates and seed not in seeds:
            known = ", ".join(map(str, seeds))
            raise LapsusError(
                f"No network of seed {seed} ships in the collection {collection}; there are seeds {known}."
            )
        return cls._of(candidates, seed)

    @classmethod
    def in_folder(cls, folder: str | Path, trust: bool = False) -> "Networks":
        """The run folders in a folder or in that of a sweep (or the folder itself, if it is a run)."""
        return cls._of({str(run.path): (_config(run), run.model) for run in _runs_in(folder, trust)})

    @classmethod
    def every_seed(
        cls, collection: str | None, folders: Iterable[str | Path] = (), trust: bool = False
    ) -> list["Networks"]:
        """One object for every seed: of the networks of a collection that ship (None: of none) and of finished runs in
        folders of run folders or of sweeps. Where a seed lacks a role, that of another seed stands in."""
        candidates = {} if collection is None else _shipped_candidates(collection)
        for folder in folders:
            runs = finished_runs(folder, trust)
            candidates |= {name: (_config(run), run.model) for name, run in runs.items()}
        return [cls._of(candidates, seed) for seed in _seeds(candidates)]

    @classmethod
    def _of(cls, candidates: Candidates, seed: int = 1) -> "Networks":
        """Of several networks of one role, the seed asked for; then the one trained longest."""

        def order(name: str) -> tuple:
            config, _ = candidates[name]
            return config["seed"] != seed, -sum(stage["updates"] for stage in config["stage"]), name

        found = cls({})
        for name in sorted(candidates, key=order):
            config, load = candidates[name]
            role = role_of(config)
            if role is not None and role not in found:
                found.loaders[role], found.sources[role] = cache(load), name
        return found

    def at_delay(self, steps: int) -> "Networks":
        """The same networks on trials with another delay."""
        at = lambda load: cache(lambda: load().at(delay=steps))
        return replace(self, loaders={role: at(load) for role, load in self.loaders.items()}, delay=steps)

    def __contains__(self, role: str) -> bool:
        return role in self.loaders

    def those_of(self, roles: Iterable[str]) -> list[str]:
        """Of these roles, those that have a network."""
        return [role for role in roles if role in self]

    def names(self, roles: Iterable[str]) -> list[str]:
        """Of the networks that play these roles, as far as there are any, in alphabetical order."""
        return sorted({self.sources.get(role, role) for role in self.those_of(roles)})

    def model(self, role: str) -> Model:
        """The network of a role, opened once."""
        if role not in self:
            raise LapsusError(f"no network {role}")
        return self.loaders[role]()

    def of(self, role: str) -> Simulated:
        """What analyses take of a network: simulated trials on conditions that they give it."""
        return partial(self.simulate, role)

    def answers(self, role: str) -> Simulated:
        """The same without activity."""
        return partial(self.responses, role)

    def simulate(self, role: str, *design: Any, **options: Any) -> xr.Dataset:
        """Simulated trials of a network (what follows the model in simulate_design)."""
        return simulate_design(self.model(role), *design, **options)

    def responses(self, role: str, *design: Any, **options: Any) -> xr.Dataset:
        """The same without trajectories (simulate_responses)."""
        return simulate_responses(self.model(role), *design, **options)


def _shipped_candidates(collection: str) -> Candidates:
    """The networks of a collection. Open networks are compared with the task-optimal ones that they started from, which
    ship in the persistent collection."""
    networks = shipped(collection)
    if collection == "open":
        networks |= {
            name: facts
            for name, facts in shipped("persistent").items()
            if facts["config"]["stage"][-1]["objective"]["kind"] == "task-optimal"
        }
    return {name: (facts["config"], partial(load_shipped, name)) for name, facts in networks.items()}


def _seeds(candidates: Candidates) -> list[int]:
    return sorted({config["seed"] for config, _ in candidates.values()})
