"""How close a trained network comes to its target, on fresh conditions."""

import math
from pathlib import Path
from typing import Any

import torch

from lapsus import rng
from lapsus.behaviour.measures import nearest_item
from lapsus.diffusion import reverse_sample
from lapsus.energy import energy_excess, energy_score, has_closed_form, sampled_energy_excess, self_distance
from lapsus.engine import normal
from lapsus.errors import LapsusError
from lapsus.protocols import Behaviour, HasMixture
from lapsus.statistics.intervals import Z95, robust_sd
from lapsus.training.model import Inputs, Model
from lapsus.training.objectives import denoising_loss, exact_loss
from lapsus.zoo import Run, Shipped, load

# Conditions simulated at a time: 256 × 16 trials of 68 steps are about 40 MB.
_CHUNK = 256
# Trials of all conditions together: beyond it numbers alone take gigabytes, and no measure gets better.
_MOST_TRIALS = 10**8


def check_draws(what: str, conditions: int, trials: int, seed: int, least: int = 1) -> None:
    """Refuse numbers of conditions and trials, and seeds, from which nothing can be drawn."""
    if conditions < least or trials < 1 or conditions * trials > _MOST_TRIALS:
        several = f", of {least} conditions or more" if least > 1 else ""
        raise LapsusError(
            f"{what} needs {least} to {_MOST_TRIALS:,} trials{several}, not {conditions:,} conditions × {trials:,}."
        )
    if seed < 0:
        raise LapsusError(f"The seed must not be negative (it is {seed}).")


@torch.no_grad()
def respond(
    model: Model, conditions: dict, trials: int, seed: int, inputs: Inputs | None = None, **options: Any
) -> torch.Tensor:
    """Responses x_T [d, C, K] of the free-running network: no teacher forcing, fresh noise. inputs: those of the
    conditions unless given."""
    inputs = model.inputs(conditions) if inputs is None else inputs
    count = inputs[0].shape[1]
    placeholder = torch.zeros(model.behaviour.response_size, count, trials)
    chunks = []
    for start in range(0, count, _CHUNK):
        part = range(start, min(start + _CHUNK, count))
        batch = model.batch(conditions, inputs, placeholder, part, seed, forced=False, **options)
        chunks.append(batch.responses(1)[0].clone())
    x_T = torch.cat(chunks, 1)
    if not bool(torch.isfinite(x_T).all()):
        raise LapsusError(
            "The network's responses are not finite numbers: its weights are damaged or its rates explode."
        )
    return x_T


def scatter(model: Model, conditions: int, trials: int) -> float:
    """Robust s.d. of the responses around the nearest item, in radians."""
    drawn = model.task.sample(conditions, rng.generator("memory variance"))
    _, gap = nearest_item(drawn, respond(model, drawn, trials, 0))
    return float(robust_sd(gap.numpy().ravel()))


@torch.no_grad()
def excess(model: Model, conditions: dict, trials: int, seed: int, **options: Any) -> dict:
    """Denoising loss under teacher forcing, that of the exact Bayes denoiser on the same trials, and their
    difference."""
    inputs = model.inputs(conditions)
    count = inputs[0].shape[1]
    x_T = model.behaviour.sample(conditions, trials, rng.generator(seed, "responses"))
    losses, floor = [], []
    for start in range(0, count, _CHUNK):
        part = range(start, min(start + _CHUNK, count))
        batch = model.batch(conditions, inputs, x_T, part, seed, forced=True, **options)
        losses.append(denoising_loss(batch))
        if batch.draws.target is not None:
            floor.append(exact_loss(batch))
    loss = torch.cat(losses).double()
    result: dict[str, Any] = {"loss": float(loss.mean())}
    if floor:
        over = loss - torch.cat(floor).double()
        error = Z95 * float(over.std()) / math.sqrt(len(over)) if len(over) > 1 else math.nan
        mean = float(over.mean())
        result |= {
            "loss_exact": float(torch.cat(floor).mean()),
            "excess": mean,
            "excess_interval": [mean - error, mean + error],
        }
    return result


def energy(behaviour: Behaviour, conditions: dict, responses: torch.Tensor, target: torch.Tensor) -> dict:
    """Energy excess of responses [d, C, K] over the behaviour, with its 95 % interval over conditions: in closed form
    where the behaviour has one, else from as many samples of the target. Nothing of single trials per condition."""
    if responses.shape[-1] < 2:
        return {}
    responses = responses.double()
    mixture = behaviour.mixture(conditions) if isinstance(behaviour, HasMixture) else None
    if mixture is not None and has_closed_form(mixture):
        over, own = energy_excess(responses, mixture.double()), 0.5 * self_distance(mixture.double())
    else:
        over, own = sampled_energy_excess(responses, target.double()), energy_score(target.double())
    mean, error = float(over.mean()), Z95 * float(over.std()) / math.sqrt(len(over))
    return {
        "energy_excess": mean,
        "energy_excess_interval": [mean - error, mean + error],
        "energy_excess_relative": mean / float(own.mean()),
    }


@torch.no_grad()
def evaluate(
    model: Model | Run | Shipped | str | Path, conditions: int = 4096, trials: int = 16, seed: int = 0, **options: Any
) -> dict:
    """Everything `lapsus evaluate` prints; plain numbers, lists and dictionaries. model: also a run or its folder, or
    the name of a network that ships.

    The energy excess is the common yardstick of all objectives: 0 is perfect. The denoising loss and its excess are
    there only for networks that were trained to denoise. Then measures of the network's responses, the same measures of
    as many samples of the target (`…_target`) and, under `exact_sampler`, of the exact denoiser run through the same
    steps: what a perfect network would do.

    >>> found = lapsus.evaluate("index-swap-10", conditions=256)
    >>> round(found["swap_curve"][0]["target"], 2)
    0.1
    """
    check_draws("evaluate", conditions, trials, seed, least=2)
    model = load(model)
    drawn = model.task.sample(conditions, rng.generator(seed, "evaluation"))
    measures = model.behaviour.measures
    result: dict[str, Any] = {"conditions": conditions, "trials": trials, "seed": seed}
    if model.objective in (None, "diffusion"):
        some = {name: values[: max(1, conditions // 4)] for name, values in drawn.items()}
        result |= excess(model, some, trials, seed, **options)
    responses = respond(model, drawn, trials, seed, **options)
    target = model.behaviour.sample(drawn, trials, rng.generator(seed, "target"))
    result |= energy(model.behaviour, drawn, responses, target)
    result |= measures(drawn, responses)
    for name, value in measures(drawn, target).items():
        if isinstance(value, float):
            result[f"{name}_target"] = value
    if isinstance(model.behaviour, HasMixture):
        d, part = model.behaviour.response_size, range(conditions)
        x_0 = normal(1, d, part, trials, key=(seed, 11))[0]
        noise = normal(model.schedule.T, d, part, trials, key=(seed, 12))
        exact = measures(drawn, reverse_sample(x_0, model.schedule, model.behaviour.mixture(drawn), noise))
        result["exact_sampler"] = exact
    return result
