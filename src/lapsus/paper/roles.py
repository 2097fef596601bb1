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
from lapsus.files import holds, read_json
from lapsus.training.model import Model
from lapsus.zoo import Run
from lapsus.zoo.shipped import load_shipped, shipped, shipped_name

__all__ = ["LABELS", "Networks", "finished_runs", "role_of"]

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
    task = {"index-cued": "index", "feature-cued": "feature"}.get(config["task"].get("kind"))
    last = config["stage"][-1]
    objective = dict(last.get("objective") or {"kind": "diffusion"})
    # The experiment's own target, by which a network is measured; a stage may aim a little beside it.
    target = config.get("behaviour") or {"kind": "bns"}
    if (
        config["task"].get("kind") == "cue-combination"
        and target.get("kind") == "causal-inference"
        and objective["kind"] == "diffusion"
    ):
        return "cue-combination"
    if config["task"].get("kind") == "index-cued-attended" and target.get("kind") == "attended-swap":
        return "index-attended"
    if task is None or target.get("kind") != "bns":
        return None
    if (architecture := config.get("network", {}).get("kind", "dendritic")) != "dendritic":
        task = f"{task}-{architecture}"
    steps, delay = (
        _duration((last.get("task") or {}).get(name), config["task"].get(name, usual))
        for name, usual in (("denoise", 40), ("delay", 15))
    )
    if (steps, delay) != (40, 15):
        return None
    swap, pi_correct = target.get("swap") or {"kind": "none"}, target.get("pi_correct", 0.0)
    if objective["kind"] == "task-optimal":
        window = objective.get("window", 0) or steps
        return f"{task}-optimal" if window == steps else f"{task}-optimal-{window}"
    if objective["kind"] == "sample-mse":
        return f"{task}-sample-mse"
    if swap["kind"] == "none":
        return f"{task}-none"
    if swap["kind"] == "constant" and pi_correct == 0:
        return f"{task}-constant-{round(100 * swap['p']):02d}"
    if swap["kind"] == "smooth" and swap.get("width", 3.0) == 3.0:
        return f"{task}-smooth-{pi_correct:g}"
    return None


def _duration(trained: Any, own: Any) -> Any:
    """Of an epoch in figures: that of the last stage, where a list ends, but a range only says what was trained: what
    counts then is the experiment's own."""
    trained = trained[-1] if isinstance(trained, list | tuple) else trained
    return own if trained is None or isinstance(trained, dict) else trained


def _at_delay(load: Callable[[], Model], steps: int) -> Model:
    return load().at(delay=steps)


def _runs_in(folder: str | Path, trust: bool) -> list[Run]:
    """Runs in a folder of run folders, or in that of a sweep; or the folder itself, if it is a run."""
    folder = Path(folder)
    if not folder.is_dir():
        raise LapsusError(f"{folder} is not a folder; give the folder that holds run folders.")
    inside = folder / "members" if holds(folder, "sweep") else folder
    found = [folder] if holds(folder, "run") else sorted(path for path in inside.glob("*") if holds(path, "run"))
    runs = [Run(path, trust) for path in found if any(path.glob("checkpoint-*.json"))]
    if not runs:
        raise LapsusError(f"{folder} holds no run folder with a checkpoint; `lapsus train` makes them.")
    return runs


def _manifest(folder: str | Path) -> dict:
    """Of a sweep; empty for any other folder."""
    return read_json(Path(folder) / "manifest.json") if holds(folder, "sweep") else {}


def _stages(manifest: dict, finished: Iterable[Run]) -> set[Path]:
    """Of a sweep: members that nobody asked for, and from which one of the same role was trained on. They are stages of
    that one, and no networks of their own."""
    member = {(run.experiment.name, run.experiment.seed): run for run in finished}
    found = set()
    for (name, seed), run in member.items():
        before = manifest.get("settings", {}).get(name, {}).get("start")
        start = member.get((before, seed)) if before in manifest.get("starts", []) else None
        if start is not None and _role(start) == _role(run) is not None:
            found.add(start.path)
    return found


def _role(run: Run) -> str | None:
    return role_of(run.experiment.model_dump(exclude_none=True))


def finished_runs(folder: str | Path, trust: bool = False) -> dict[str, Run]:
    """Runs of a folder that are at their end, by name and seed as those that ship: in a sweep, a setting that changes
    nothing goes by the name of its experiment."""
    manifest = _manifest(folder)
    settings = manifest.get("settings", {})
    finished = [run for run in _runs_in(folder, trust) if run.update >= run.experiment.updates]
    stages = _stages(manifest, finished)
    found = {}
    for run in (run for run in finished if run.path not in stages):
        own = settings.get(run.experiment.name, {})
        unchanged = own and not own.get("varied") and not own.get("subject")
        found[shipped_name(own["experiment"] if unchanged else run.experiment.name, run.experiment.seed)] = run
    return found


@dataclass(frozen=True, eq=False)
class Networks:
    """Trained models by role, and how much is simulated of each. A figure asks for a role; one without a network leaves
    a note in the panel instead."""

    loaders: dict[str, Callable]
    sources: dict[str, str] = field(default_factory=dict)
    sizes: FigureSizes = FULL_FIGURES
    delay: int | None = None  # steps, where it is not each network's own

    @classmethod
    def shipped(cls, seed: int = 1, which: str = "paper") -> "Networks":
        """The networks of one set that come with lapsus; of a role with several seeds the one asked for, where it is
        there."""
        facts = shipped(which)
        seeds = sorted({one["config"]["seed"] for one in facts.values()})
        if facts and seed not in seeds:
            raise LapsusError(
                f"No network of seed {seed} ships in the {which} set; there are seeds {', '.join(map(str, seeds))}."
            )
        return cls._of(
            {name: (one["config"], lambda name=name: load_shipped(name)) for name, one in facts.items()}, seed
        )

    @classmethod
    def in_folder(cls, folder: str | Path, trust: bool = False) -> "Networks":
        """The run folders in a folder or in that of a sweep (or the folder itself, if it is a run)."""
        runs = _runs_in(folder, trust)
        stages = _stages(_manifest(folder), [run for run in runs if run.update >= run.experiment.updates])
        return cls.of_runs({str(run.path): run for run in runs if run.path not in stages})

    @classmethod
    def every_seed(cls, which: str | None, folders: Iterable[str | Path] = (), trust: bool = False) -> list["Networks"]:
        """One set for every seed: of the networks of a set that ship (None: of none) and of finished runs in folders of
        run folders or of sweeps. Each goes by its name and seed, as those that ship do. Where a seed lacks a role, that
        of another seed stands in."""
        candidates: dict[str, tuple[dict, Callable]] = {}
        for name, one in (shipped(which) if which is not None else {}).items():
            candidates[name] = one["config"], partial(load_shipped, name)
        for folder in folders:
            for name, run in finished_runs(folder, trust).items():
                candidates[name] = run.experiment.model_dump(exclude_none=True), run.model
        seeds = sorted({config["seed"] for config, _ in candidates.values()})
        return [cls._of(candidates, seed) for seed in seeds]

    @classmethod
    def of_runs(cls, runs: dict[str, Run]) -> "Networks":
        """These runs, by name."""
        return cls._of({name: (run.experiment.model_dump(exclude_none=True), run.model) for name, run in runs.items()})

    @classmethod
    def _of(cls, candidates: dict, seed: int = 1) -> "Networks":
        loaders: dict[str, Callable] = {}
        sources: dict[str, str] = {}

        def first(item: tuple[str, tuple[dict, Callable]]) -> tuple:
            """Of several networks of one role, the seed asked for; then the one trained longest."""
            name, (config, _) = item
            return config["seed"] != seed, -sum(stage["updates"] for stage in config["stage"]), name

        for name, (config, loader) in sorted(candidates.items(), key=first):
            role = role_of(config)
            if role is not None and role not in loaders:
                loaders[role], sources[role] = cache(loader), name
        return cls(loaders, sources)

    def at_delay(self, steps: int) -> "Networks":
        """The same networks on trials with another delay."""
        loaders: dict[str, Callable] = {
            role: cache(partial(_at_delay, load, steps)) for role, load in self.loaders.items()
        }
        return replace(self, loaders=loaders, delay=steps)

    def __contains__(self, role: str) -> bool:
        return role in self.loaders

    def names(self, roles: Iterable[str]) -> list[str]:
        """Of the networks that play these roles, as far as there are any, in alphabetical order."""
        return sorted({self.sources.get(role, role) for role in roles if role in self.loaders})

    def model(self, role: str) -> Model:
        """The network of a role, opened once."""
        if role not in self.loaders:
            raise LapsusError(f"no network {role}")
        return self.loaders[role]()

    def of(self, role: str) -> Simulated:
        """What studies take of a network: simulated trials on conditions that they give it."""
        return partial(self.simulate, role)

    def answers(self, role: str) -> Simulated:
        """The same without activity."""
        return partial(self.responses, role)

    def simulate(self, role: str, *design: Any, **options: Any) -> xr.Dataset:
        """Simulated trials of a network (what follows the model in study.simulate_design)."""
        return simulate_design(self.model(role), *design, **options)

    def responses(self, role: str, *design: Any, **options: Any) -> xr.Dataset:
        """The same without trajectories (study.simulate_responses)."""
        return simulate_responses(self.model(role), *design, **options)
