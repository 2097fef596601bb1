"""From a fit to what a network is trained on: its target, a task with the data's own distances, and where to start."""

import math
import time
from dataclasses import dataclass

import numpy as np

from lapsus import rng
from lapsus.behaviour import BNS
from lapsus.behaviour.measures import prior_swap_probability
from lapsus.errors import LapsusError
from lapsus.evaluation.against_target import scatter
from lapsus.evaluation.sample_sizes import FULL, SampleSizes
from lapsus.fitting.network_target import LEAST_GUESS, RADIUS
from lapsus.tasks.durations import varying
from lapsus.training import Experiment, Model
from lapsus.training.build import build, describe
from lapsus.training.loop import Training
from lapsus.trials import Trials
from lapsus.zoo import load, open_network
from lapsus.zoo.shipped import shipped

__all__ = [
    "OBJECTIVES",
    "Start",
    "asked_start",
    "experiment",
    "memory_variance",
    "objective_of",
    "starts",
    "task_like",
    "updates_within",
]

# What networks of a discovery are trained by. Under diffusion the response is decided after cue offset whatever the
# behaviour; the energy score leaves open when (docs/mechanism.md).
OBJECTIVES = ("diffusion", "energy")

LEAST_SPREAD = 0.2
# After each round the network is looked at: it is done when it matches with a margin and gets no better. The first is
# this share of all: places far apart, where swaps are rare, need time at a high learning rate (docs/memory.md).
ROUND_NAME, _FIRST = "fitted target", 0.4
_DISTANCES = 48


def _listed(distances: np.ndarray) -> list[float]:
    """The distinct distances as often as they occur, or quantiles of them where they are many."""
    values = np.abs(distances[np.isfinite(distances)])
    levels = (np.arange(_DISTANCES) + 0.5) / _DISTANCES
    return [round(float(v), 5) for v in np.quantile(values, levels, method="nearest")]


def task_like(trials: Trials, cueing: str) -> dict:
    """The task's table for an experiment: two items with the distances that the trials have between target and
    non-targets."""
    report = trials.distance("report")[:, 1:]
    if cueing == "index":
        least = float(np.nanmin(np.abs(report)))
        return {"kind": "index-cued", "report_margin": round(min(math.pi / 4, least), 5)}
    return {
        "kind": "feature-cued-like",
        "probe_distances": _listed(trials.distance("probe")[:, 1:]),
        "report_distances": _listed(report),
    }


# --- Where to start ---


@dataclass(frozen=True)
class Start:
    """A trained network to start from: what to load, what to call it, its experiment, and how far its swap curve is
    from the target's."""

    source: str
    name: str
    config: dict
    distance: float

    @property
    def spread(self) -> float:
        """S.d. of its target's responses in the plane."""
        return float(self.config["behaviour"].get("spread", LEAST_SPREAD))


def asked_start(start_from: str, cueing: str, trust: bool = False) -> dict:
    """The experiment of the network that was asked for, as a table; an error where it cannot be the start."""
    config = open_network(start_from, trust).experiment.model_dump(exclude_none=True)
    if not _right_task(config, cueing) or objective_of(config) not in (*OBJECTIVES, "task-optimal"):
        raise LapsusError(
            f"{start_from} cannot be the start: it is a {config['task'].get('kind')} network trained by"
            f" {objective_of(config)}; this needs a {cueing}-cued one trained by diffusion, energy or task-optimal."
        )
    return config


def objective_of(config: dict) -> str:
    """What a network was last trained by."""
    return (config["stage"][-1].get("objective") or {"kind": "diffusion"})["kind"]


def starts(
    fitted: BNS, task: dict, cueing: str, objective: str, start_from: str | None = None, trust: bool = False
) -> list[Start]:
    """Where networks may start: what was asked for, or neutral networks for this cueing, which never swap, so that how
    they come to swap is their own; one per seed. They were trained by the same objective, since a network keeps the
    mechanism of the objective that it was trained by first. Those that hold their memory at any delay come before the
    others; an empty list where none ships. trust: import classes outside of lapsus that `start_from` names."""
    if start_from is not None:
        candidates = {str(start_from): asked_start(start_from, cueing, trust)}
    else:
        configs = {name: facts["config"] for name, facts in shipped().items()}
        neutral = {name: config for name, config in configs.items() if _neutral(config, cueing, objective)}
        candidates = {name: config for name, config in neutral.items() if _delays_vary(config)} or neutral
    conditions = build("task", task).sample(2000, rng.generator("nearest start"))
    wanted = prior_swap_probability(fitted, conditions)
    found = []
    for name, config in candidates.items():
        gap = float((prior_swap_probability(build("behaviour", config["behaviour"]), conditions) - wanted).abs().mean())
        found.append(Start(name, name.rstrip("/").rsplit("/", 1)[-1], config, gap))
    return sorted(found, key=lambda start: start.name)


def _right_task(config: dict, cueing: str) -> bool:
    return config["task"].get("kind") == f"{cueing}-cued" and config["behaviour"].get("kind", "bns") == "bns"


def _neutral(config: dict, cueing: str, objective: str) -> bool:
    """Trees that never swap; controls of the architecture are a start only where one is asked for."""
    tree = config.get("network", {}).get("kind", "dendritic") == "dendritic"
    never = config["behaviour"].get("swap", {"kind": "none"})["kind"] == "none"
    return tree and never and _right_task(config, cueing) and objective_of(config) == objective


def _delays_vary(config: dict) -> bool:
    return isinstance(config["stage"][-1].get("task", {}).get("delay"), dict)


def memory_variance(start: Start, sizes: SampleSizes, trust: bool = False) -> float:
    """Variance of the start's responses around the reported item beyond its own target's: what its memory adds
    (rad²)."""
    found = scatter(load(start.source, trust), sizes.look_conditions, sizes.look_trials)
    return max(0.0, found**2 - (start.spread / RADIUS) ** 2)


def experiment(
    fitted: BNS,
    task: dict,
    start: Start | None,
    seed: int,
    name: str,
    updates: int,
    memory: float = 0.0,
    sizes: SampleSizes = FULL,
    objective: str = "diffusion",
) -> Experiment:
    """The experiment of one network: from a trained one, straight to the target; from scratch, by way of easier
    stages. memory: the variance (rad²) that the start's memory adds to its responses (`memory_variance`)."""
    spread = fitted.spread
    if objective == "diffusion":
        # The network's own memory scatters responses too, so the target of the denoiser scatters less: together they
        # should scatter as the subject does. The energy score is of the final responses, scatter of memory included.
        spread = RADIUS * math.sqrt(max((LEAST_SPREAD / RADIUS) ** 2, (fitted.spread / RADIUS) ** 2 - memory))
    target = BNS(
        swap=fitted.swap,
        pi_correct=fitted.pi_correct,
        feature=fitted.feature,
        uniform=fitted.uniform if fitted.uniform >= LEAST_GUESS else 0.0,
        radius=RADIUS,
        spread=round(spread, 4),
    )
    first = max(1, int(_FIRST * updates))
    rounds = max(1, round((updates - first) / sizes.round_updates))
    each = -(-(updates - first) // rounds)
    last = {"name": ROUND_NAME, "clip": 5.0, "beta_2": 0.999, "principal_axes": 0.99}
    last |= _diffusion_stage(target) if objective == "diffusion" else _energy_stage()
    if start is not None:
        last |= _as_it_was_trained(start)
        stages = [
            last | _pace(first, 3e-3, 1e-3, warmup=min(100, first // 10)),
            last | _pace(each, 2e-3, 5e-5),
            # Later rounds start lower: they refine what these found.
            *[last | _pace(each, 1e-3, 5e-5)] * (rounds - 1),
        ]
    else:
        to_target = _pace(int(0.35 * updates), 3e-3, 1e-4, warmup=min(100, each // 10))
        stages = [*_from_scratch(updates, objective), last | to_target]
    table = {
        "name": name,
        "description": "Made by lapsus discover.",
        "seed": seed,
        "task": task,
        "behaviour": describe("behaviour", target),
        "stage": stages,
    }
    if start is not None:
        table |= {
            "start_from": start.source,
            "network": start.config["network"],
            "noise": start.config.get("noise", {}),
        }
    elif task["kind"] == "index-cued":
        table["network"] = {"kind": "dendritic", "input_scale": 30.0}  # as in index-preamble
    return Experiment.model_validate(table)


def _diffusion_stage(target: BNS) -> dict:
    """Objective and batch of a stage that denoises the fitted target."""
    # Regressing on the exact expectation has less noise, but its cost grows with the target's components.
    if target.uniform:
        objective = {"kind": "diffusion", "regress": "sample", "rate_penalty": 1e-10}
        return {"objective": objective, "conditions": 64, "trials": 8}
    # With the exact expectation, the steps that decide between items count for more, rare swaps are drawn more often,
    # and hard conditions come back, as in the persistent set (docs/memory.md). On samples the first and the last would
    # follow the luck of the draw, and the second would change what is learned.
    objective = {"kind": "diffusion", "regress": "expectation", "rate_penalty": 1e-10}
    objective |= {"step_weight_exponent": 1.0, "step_weight_floor": 0.035, "base_penalty": 0.1}
    batch = {"conditions": 64, "trials": 8, "hard_example_fraction": 0.25, "response_tempering": 0.4}
    return {"objective": objective} | batch


def _energy_stage() -> dict:
    """Objective and batch of a stage that scores free-running responses."""
    # Rare swaps count for more than their share, as in the open collection.
    objective = {"kind": "energy", "rate_penalty": 1e-10, "rare_weight_power": 0.6}
    return {"objective": objective, "conditions": 64, "trials": 16, "hard_example_fraction": 0.25}


def _pace(updates: int, rate: float, final: float, warmup: int = 0) -> dict:
    average = max(0.9, min(0.998, 1 - 8 / max(updates, 1)))
    return {
        "updates": updates,
        "learning_rate": rate,
        "final_learning_rate": final,
        "warmup": warmup,
        "average": average,
    }


def _as_it_was_trained(start: Start) -> dict:
    """What keeps a network that holds its memory from losing it: the delays and the rates of its own training."""
    last = start.config["stage"][-1]
    kept = {"task": {name: value for name, value in last.get("task", {}).items() if isinstance(value, dict)}}
    return kept | {name: last[name] for name in ("rate_budget", "rate_hold") if last.get(name)}


def _from_scratch(updates: int, objective: str) -> list[dict]:
    """Task-optimal with a growing horizon, then the objective without swaps."""
    optimal = {"kind": "task-optimal", "rate_penalty": 1e-7}
    horizon = zip((8, 12, 18, 25, 32, 40), (3, 5, 8, 11, 13, 15))
    stages = [
        {
            "name": "preamble",
            "updates": int(0.25 * updates),
            "objective": optimal,
            "task": {"denoise": 5, "delay": 1},
            "learning_rate": 2e-3,
            "clip": 5.0,
        }
    ]
    stages += [
        {
            "name": f"horizon {k + 1}/6",
            "updates": int(0.03 * updates),
            "objective": optimal | {"rate_penalty": 1e-8},
            "task": {"denoise": T, "delay": delay},
            "learning_rate": 2e-3,
            "warmup": 20,
            "clip": 5.0,
        }
        for k, (T, delay) in enumerate(horizon)
    ]
    stages.append(
        {
            "name": "no swaps",
            "updates": int(0.22 * updates),
            "objective": {"kind": objective, "rate_penalty": 1e-8},
            "behaviour": {"kind": "bns", "swap": {"kind": "none"}},
            "learning_rate": 4e-3,
            "final_learning_rate": 2e-3,
            "principal_axes": 0.99,
        }
    )
    return stages


def updates_within(described: Experiment, seconds: float, threads: int | None = None) -> int:
    """How many updates of the last stage fit into so many seconds on this machine when it is not disturbed, with that
    many threads of the kernel.

    A busy machine ends training by the clock instead, which costs less than a schedule that is too short.
    """
    probe, last = 12, described.stage[-1]
    # Every update at the mean length of a trial: the quickest of them would else be those of short delays.
    middles = {name: steps.middle for name, steps in varying(build("task", described.task | last.task)).items()}
    last = last.model_copy(update={"updates": 10 * probe, "average": 0.0, "task": last.task | middles})
    training = Training(described.model_copy(update={"stage": [last]}), Model.of(described), threads=threads)
    times = [time.monotonic()]
    for progress in training.run(10 * probe):
        times.append(time.monotonic())
        if progress.update >= probe and times[-1] - times[0] > min(4.0, 0.05 * seconds):
            break
    each = float(np.quantile(np.diff(times)[2:], 0.25))
    return int(min(20_000, max(40, seconds / each)))
