"""How close a trained network comes to its target, on fresh conditions."""

import math

import torch

from lapsus import streams
from lapsus.diffusion import reverse_sample
from lapsus.engine import normal
from lapsus.training.model import Model
from lapsus.training.objectives import denoising_loss, exact_loss

__all__ = ["DELAYS", "evaluate", "evaluate_delays", "excess", "norm_ratio", "respond"]

# Where the memory of a network is measured that was trained on delays of 3 to 40 steps, so never on the last of these.
DELAYS = (5, 10, 15, 20, 30, 40, 80)

# Conditions simulated at a time: 256 × 16 trials of 68 steps are about 40 MB.
_CHUNK = 256


@torch.no_grad()
def respond(model: Model, conditions: dict, trials: int, seed: int, **options) -> torch.Tensor:
    """Responses x_T [d, C, K] of the free-running network: no teacher forcing, fresh noise."""
    inputs = model.inputs(conditions)
    count = inputs[0].shape[1]
    placeholder = torch.zeros(model.behaviour.response_size, count, trials)
    chunks = []
    for start in range(0, count, _CHUNK):
        part = range(start, min(start + _CHUNK, count))
        batch = model.batch(conditions, inputs, placeholder, part, seed, forced=False, **options)
        chunks.append(batch.responses(1)[0].clone())
    return torch.cat(chunks, 1)


@torch.no_grad()
def excess(model: Model, conditions: dict, trials: int, seed: int, **options) -> dict:
    """Denoising loss under teacher forcing, that of the exact Bayes denoiser on the same trials, and their
    difference."""
    inputs = model.inputs(conditions)
    count = inputs[0].shape[1]
    x_T = model.behaviour.sample(conditions, trials, streams.generator(seed, "responses"))
    loss, floor = [], []
    for start in range(0, count, _CHUNK):
        part = range(start, min(start + _CHUNK, count))
        batch = model.batch(conditions, inputs, x_T, part, seed, forced=True, **options)
        loss.append(denoising_loss(batch))
        if batch.draws.target is not None:
            floor.append(exact_loss(batch))
    loss = torch.cat(loss).double()
    result = {"loss": float(loss.mean())}
    if floor:
        over = loss - torch.cat(floor).double()
        error = 1.959964 * float(over.std()) / math.sqrt(len(over)) if len(over) > 1 else math.nan
        mean = float(over.mean())
        result |= {
            "loss_exact": float(torch.cat(floor).mean()),
            "excess": mean,
            "excess_interval": [mean - error, mean + error],
        }
    return result


@torch.no_grad()
def evaluate(model: Model, conditions: int = 4096, trials: int = 16, seed: int = 0, **options) -> dict:
    """Everything `lapsus evaluate` prints; plain numbers, lists and dictionaries.

    Measures of the network's responses, the same measures of as many samples of the target (`…_target`) and, under
    `exact_sampler`, of the exact denoiser run through the same steps: what a perfect network would do.
    """
    drawn = model.task.sample(conditions, streams.generator(seed, "evaluation"))
    measures = model.behaviour.measures
    result = {"conditions": conditions, "trials": trials, "seed": seed}
    result |= excess(model, {k: v[: max(1, conditions // 4)] for k, v in drawn.items()}, trials, seed, **options)
    result |= measures(drawn, respond(model, drawn, trials, seed, **options))
    target = model.behaviour.sample(drawn, trials, streams.generator(seed, "target"))
    for name, value in measures(drawn, target).items():
        if isinstance(value, float):
            result[f"{name}_target"] = value
    if hasattr(model.behaviour, "mixture"):
        d, part = model.behaviour.response_size, range(conditions)
        x_0 = normal(1, d, part, trials, key=(seed, 11))[0]
        noise = normal(model.schedule.T, d, part, trials, key=(seed, 12))
        exact = measures(drawn, reverse_sample(x_0, model.schedule, model.behaviour.mixture(drawn), noise))
        result["exact_sampler"] = exact
    return result


@torch.no_grad()
def evaluate_delays(
    model: Model, delays: tuple[int, ...] = DELAYS, conditions: int = 4096, trials: int = 16, seed: int = 0, **options
) -> list[dict]:
    """The single numbers of `evaluate` for one delay after another, the same conditions at each."""
    rows = []
    for delay in delays:
        found = evaluate(model.at(delay=delay), conditions, trials, seed, **options)
        kept = {key: value for key, value in found.items() if isinstance(value, float) and not key.endswith("_target")}
        rows.append({"delay": delay} | kept)
    return rows


@torch.no_grad()
def norm_ratio(
    model: Model, delay: int = 40, conditions: int = 256, trials: int = 8, seed: int = 0, **options
) -> float:
    """How much of the norm of the rates at stimulus offset is left at the end of a delay, means over trials."""
    model = model.at(delay=delay)
    drawn = model.task.sample(conditions, streams.generator(seed, "evaluation"))
    placeholder = torch.zeros(model.behaviour.response_size, conditions, trials)
    batch = model.batch(drawn, model.inputs(drawn), placeholder, range(conditions), seed, forced=False, **options)
    norm = batch.trajectory.norm(dim=1).mean((1, 2))
    start = model.task.epochs["prestimulus"] + model.task.epochs["stimulus"]
    return float(norm[start + delay] / norm[start])
