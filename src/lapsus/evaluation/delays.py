"""How a network's memory fades: its behaviour at one delay after another, and what is left of its activity."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from lapsus import rng
from lapsus.behaviour.measures import nearest_item
from lapsus.evaluation.against_target import evaluate, respond
from lapsus.training.model import Model

# Where the memory of a network is measured that was trained on delays of 3 to 40 steps, so never on the last of these.
DELAYS = (5, 10, 15, 20, 30, 40, 80)


@torch.no_grad()
def evaluate_delays(
    model: Model,
    delays: Sequence[int] = DELAYS,
    conditions: int = 4096,
    trials: int = 16,
    seed: int = 0,
    **options: Any,
) -> list[dict]:
    """The single numbers of `evaluate` for one delay after another, the same conditions at each."""
    rows = []
    for delay in delays:
        found = evaluate(model.at(delay=delay), conditions, trials, seed, **options)
        kept = {key: value for key, value in found.items() if isinstance(value, float) and not key.endswith("_target")}
        rows.append({"delay": delay} | kept)
    return rows


def norm_course(
    model: Model, delay: int = 40, conditions: int = 256, trials: int = 8, seed: int = 0, **options: Any
) -> np.ndarray:
    """Norm of the rates from stimulus offset to the end of a delay, mean over trials: [delay + 1]."""
    model = model.at(delay=delay)
    rates = free_rates(model, conditions, trials, seed, **options)
    start = model.task.epochs["prestimulus"] + model.task.epochs["stimulus"]
    return rates[start : start + delay + 1].norm(dim=1).mean((1, 2)).numpy()


@torch.no_grad()
def free_rates(model: Model, conditions: int = 256, trials: int = 8, seed: int = 0, **options: Any) -> torch.Tensor:
    """Of free-running trials on fresh conditions: [step + 1, unit, condition, trial]."""
    drawn = model.task.sample(conditions, rng.generator(seed, "evaluation"))
    placeholder = torch.zeros(model.behaviour.response_size, conditions, trials)
    batch = model.batch(drawn, model.inputs(drawn), placeholder, range(conditions), seed, forced=False, **options)
    return batch.trajectory


def norm_ratio(model: Model, delay: int = 40, **options: Any) -> float:
    """How much of the norm of the rates at stimulus offset is left at the end of a delay."""
    course = norm_course(model, delay, **options)
    return float(course[-1] / course[0])


@torch.no_grad()
def noiseless_error(
    model: Model,
    delays: Sequence[int] = (40, 160, 640),
    conditions: int = 256,
    trials: int = 4,
    seed: int = 0,
    **options: Any,
) -> list[dict]:
    """Median error to the nearest item (radians) after long delays when the process noise is switched off: what the
    network's dynamics alone do to its memory."""
    rows = []
    for delay in delays:
        here = model.at(delay=delay)
        drawn = here.task.sample(conditions, rng.generator(seed, "evaluation"))
        x_T = respond(here, drawn, trials, seed, noise_scale=0.0, **options)
        _, error = nearest_item(drawn, x_T)
        rows.append({"delay": delay, "median_error": float(error.median())})
    return rows
