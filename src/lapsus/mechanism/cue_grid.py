"""Cue combination: a network's responses to pairs of cues against the ideal observer's posterior."""

from collections.abc import Callable

import numpy as np
import torch
import xarray as xr

from lapsus import rng
from lapsus.behaviour import CausalInference
from lapsus.diffusion import reverse_sample
from lapsus.engine import normal
from lapsus.errors import LapsusError
from lapsus.evaluation.against_target import respond
from lapsus.mechanism.modes import two_modes
from lapsus.statistics.ks import bimodal, both_modes, ks_distance, ks_over_cues, mode_mass
from lapsus.tasks import CueCombination
from lapsus.training.model import Model

__all__ = ["X", "along_vision", "cues_on_grid", "modes_at_cues", "modes_on_grid", "of_target", "task_and_target"]

# The largest cue.
LIMIT = 3.0
# Trials a condition that are simulated at a time: with 400 conditions about 100 MB of noise.
_AT_ONCE = 100
# Where densities are compared, in units of the prior's standard deviation, and how near a mode counts as at it.
X = np.linspace(-4, 4, 801)
_MODE_WIDTH = 0.2
# How far a mode of responses may be from the target's, and what is laid on half of a circle.
_NEAR, _HALF_CIRCLE = 0.3, 5.0


def task_and_target(model: Model) -> tuple[CueCombination, CausalInference]:
    """Task and target of a network that combines cues."""
    if not isinstance(model.task, CueCombination) or not isinstance(model.behaviour, CausalInference):
        raise LapsusError("the network does not combine cues")
    return model.task, model.behaviour


def _responses(model: Model, conditions: dict, samples: int, seed: int) -> np.ndarray:
    """Free-running responses [condition, sample]."""
    parts = [
        respond(model, conditions, min(_AT_ONCE, samples - start), seed + start)[0].numpy()
        for start in range(0, samples, _AT_ONCE)
    ]
    return np.concatenate(parts, axis=1)


def of_target(function: Callable[..., torch.Tensor], values: np.ndarray, conditions: dict) -> np.ndarray:
    """behaviour.density or behaviour.cdf at values [condition, X] (or [X], the same for all), in float64."""
    conditions = {name: cue.double() for name, cue in conditions.items()}
    values = np.broadcast_to(values, (len(conditions["s_v"]), np.shape(values)[-1]))
    return function(torch.tensor(values, dtype=torch.float64), conditions).numpy()


def cues_on_grid(model: Model, size: int, samples: int) -> xr.Dataset:
    """The network's responses[s_v, s_a, sample] on the grid, their ks[s_v, s_a], whether the target is `bimodal`
    there and whether the network has `both_modes`, and the `mode_mass` at the rarer of them relative to the target's;
    `target_both_modes` is the same for as many samples of the target, and
    `exact_ks` the distance of the exact denoiser run through the network's schedule: what a perfect network would
    have."""
    task, behaviour = task_and_target(model)
    conditions, seed = task.grid(size, LIMIT), 100_000
    x = _responses(model, conditions, samples, seed)
    on_grid = lambda values: values.reshape(size, size, *values.shape[1:])
    cues = np.linspace(-LIMIT, LIMIT, size)
    found = ks_over_cues(
        on_grid(x), lambda x: on_grid(of_target(behaviour.cdf, x.reshape(size**2, -1), conditions)), cues, cues
    )
    places = bimodal(X, of_target(behaviour.density, X, conditions))
    drawn = behaviour.sample(conditions, samples, rng.generator(seed, "target"))[0].numpy()
    part, schedule = range(size**2), model.schedule
    x_0, noise = normal(1, 1, part, samples, key=(seed, 11))[0], normal(schedule.T, 1, part, samples, key=(seed, 12))
    perfect = reverse_sample(x_0, schedule, behaviour.mixture(conditions), noise)[0].numpy()
    cells = ("s_v", "s_a")
    return found.assign(
        exact_ks=(cells, on_grid(ks_distance(of_target(behaviour.cdf, perfect, conditions)))),
        responses=((*cells, "sample"), on_grid(x)),
        bimodal=(cells, on_grid(np.isfinite(places[:, 0]))),
        both_modes=(cells, on_grid(both_modes(x, places, _MODE_WIDTH))),
        mode_mass=(
            cells,
            on_grid(mode_mass(x, places, _MODE_WIDTH, lambda z: of_target(behaviour.cdf, z, conditions))),
        ),
        target_both_modes=(cells, on_grid(both_modes(drawn, places, _MODE_WIDTH))),
    )


def modes_at_cues(responses: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Whether responses [condition, sample] have a mode at each of the two of their target, places [condition, (lower,
    valley, upper)], by a test of modes: [condition]."""
    # The test is one on the circle: a stretch of the line that holds all responses is laid on it.
    turn = np.pi / _HALF_CIRCLE
    return np.array(
        [
            two_modes(turn * own, turn * lower, turn * upper, within=turn * _NEAR)
            for own, (lower, _, upper) in zip(responses, places)
        ]
    )


def modes_on_grid(model: Model, size: int, samples: int) -> np.ndarray:
    """At each pair of cues of a grid for which the target is clearly bimodal: has the network both modes?"""
    task, behaviour = task_and_target(model)
    conditions = task.grid(size, LIMIT)
    places = bimodal(X, of_target(behaviour.density, X, conditions))
    two = np.isfinite(places[:, 0])
    conditions = {name: cue[torch.as_tensor(two)] for name, cue in conditions.items()}
    return modes_at_cues(_responses(model, conditions, samples, 300_000), places[two])


def along_vision(model: Model, points: int, samples: int) -> xr.Dataset:
    """Responses[s_v, sample] for s_a = 0, and the target's density[s_v, z_a]."""
    _, behaviour = task_and_target(model)
    s_v = np.linspace(-LIMIT, LIMIT, points)
    conditions = {"s_v": torch.tensor(s_v, dtype=torch.float32), "s_a": torch.zeros(points)}
    return xr.Dataset(
        {
            "responses": (("s_v", "sample"), _responses(model, conditions, samples, 200_000)),
            "density": (("s_v", "z_a"), of_target(behaviour.density, X, conditions)),
        },
        coords={"s_v": s_v, "z_a": X},
    )
