"""Activity of a trained network, in the form that every analysis takes."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from lapsus import circular, rng
from lapsus.behaviour.measures import prior_swap_probability
from lapsus.errors import LapsusError
from lapsus.evaluation.against_target import check_draws, respond
from lapsus.protocols import HasWeights
from lapsus.training.model import Model
from lapsus.zoo import Run, Shipped, load

# A network as the designed studies take it: (conditions, trials, *, seed) → what simulate_design gives of it.
Simulated = Callable[..., xr.Dataset]


@torch.no_grad()
def simulate(
    model: Model | Run | Shipped | str | Path,
    conditions: int | dict = 256,
    trials: int = 16,
    seed: int = 0,
    noise_scale: float = 1.0,
    engine: str = "auto",
    threads: int | None = None,
) -> xr.Dataset:
    """Simulate free-running trials: `conditions` a number to draw, or a dictionary as the task makes it. model: also a
    run or its folder, or the name of a network that ships.

    Returns activity[trial, time, unit] with the response, the trial table and the readout; time is in steps from cue
    offset (the start of denoising), so that earlier epochs are negative; time t holds the state that step t reached.

    >>> dict(lapsus.simulate("index-swap-10", conditions=4, trials=2).sizes)
    {'trial': 8, 'time': 69, 'unit': 16, 'dim': 2}
    """
    if not (math.isfinite(noise_scale) and noise_scale >= 0):
        raise LapsusError(f"The noise scale must be a finite number that is not negative, not {noise_scale}.")
    check_draws("simulate", conditions if isinstance(conditions, int) else 1, trials, seed)
    model = load(model)
    if isinstance(conditions, int):
        conditions = model.task.sample(conditions, rng.generator(seed, "simulation"))
    inputs = model.inputs(conditions)
    count = inputs[0].shape[1]
    d, units, epochs = model.behaviour.response_size, model.network.units, model.task.epochs
    steps = sum(epochs.values())
    activity = np.empty((count, trials, steps + 1, units), np.float32)
    for start in range(0, count, 128):
        part = range(start, min(start + 128, count))
        batch = model.batch(
            conditions,
            inputs,
            torch.zeros(d, count, trials),
            part,
            seed,
            forced=False,
            noise_scale=noise_scale,
            engine=engine,
            threads=threads,
        )
        activity[start : part.stop] = batch.trajectory.permute(2, 3, 0, 1).numpy()
    if not np.isfinite(activity).all():
        raise LapsusError("The network's rates are not finite numbers: its weights are damaged or its rates explode.")
    x_T = activity[:, :, -1] @ model.network.readout.numpy().T
    response = circular.angle(x_T) if d == 2 else x_T[..., 0] if d == 1 else x_T
    table = model.task.table(conditions)
    names = ["initial"] + [name for name, length in epochs.items() for _ in range(length)]
    offset = steps - list(epochs.values())[-1]
    variables = {
        "activity": (("trial", "time", "unit"), activity.reshape(count * trials, steps + 1, units)),
        "response": (
            ("trial",) + (("dim",) if response.ndim == 3 else ()),
            response.reshape(count * trials, *response.shape[2:]),
        ),
        "condition": (("trial",), np.repeat(np.arange(count), trials)),
        "readout": (("dim", "unit"), model.network.readout.numpy()),
    }
    variables |= {name: (("trial",), np.repeat(values.to_numpy(), trials)) for name, values in table.items()}
    if "delay" in epochs:
        variables["delay"] = (("trial",), np.full(count * trials, epochs["delay"]))
    return xr.Dataset(
        variables,
        coords={"time": np.arange(steps + 1) - offset, "epoch": (("time",), np.array(names)), "unit": np.arange(units)}
        | _other_clocks(epochs),
        attrs={"seed": seed, "noise_scale": noise_scale, "task": type(model.task).__name__},
    )


def _other_clocks(epochs: dict[str, int]) -> dict[str, tuple]:
    """Steps from stimulus offset and from cue onset, beside those from cue offset: trials of different delays are
    compared on the clock that the question needs."""
    names, ends = list(epochs), np.cumsum([0, *epochs.values()])
    zero = {}
    if "stimulus" in epochs:
        zero["from_stimulus_offset"] = ends[names.index("stimulus") + 1]
    if "cue" in epochs:
        zero["from_cue_onset"] = ends[names.index("cue")]
    return {name: (("time",), np.arange(ends[-1] + 1) - start) for name, start in zero.items()}


_TASK = ("report", "probe", "cued")


def _tensors(conditions: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    angles = {name: torch.as_tensor(conditions[name], dtype=torch.float32) for name in ("report", "probe")}
    return angles | {"cued": torch.as_tensor(conditions["cued"])}


def _extra(conditions: dict[str, np.ndarray], trials: int) -> dict:
    return {name: ("trial", np.repeat(v, trials)) for name, v in conditions.items() if name not in _TASK}


def simulate_design(
    model: Model, conditions: dict[str, np.ndarray] | int, trials: int, seed: int = 0, noise_scale: float = 1.0
) -> xr.Dataset:
    """`simulate` on designed conditions (study.designs: arrays report [C, 2], probe [C, 2], cued [C]); any further
    entry [C] becomes a variable on trials."""
    if isinstance(conditions, int):
        return simulate(model, conditions, trials, seed, noise_scale)
    return simulate(model, _tensors(conditions), trials, seed, noise_scale).assign(_extra(conditions, trials))


def simulate_responses(
    model: Model, conditions: dict[str, np.ndarray] | int, trials: int, seed: int = 0, noise_scale: float = 1.0
) -> xr.Dataset:
    """Like `simulate_design`, but only the final x_T [trial, dim] and the response: no trajectory is kept.

    `probability [trial]` is the swap probability that the network's target has for the trial's condition.
    """
    if isinstance(conditions, int):
        given, extra = model.task.sample(conditions, rng.generator(seed, "simulation")), {}
    else:
        given, extra = _tensors(conditions), _extra(conditions, trials)
    x_T = respond(model, given, trials, seed, noise_scale=noise_scale).permute(1, 2, 0).flatten(0, 1).numpy()
    if not isinstance(model.behaviour, HasWeights):
        raise LapsusError("the target has no swap probability: it does not report one of several items")
    probability = prior_swap_probability(model.behaviour, given).numpy()
    table = model.task.table(given)
    columns = {name: ("trial", np.repeat(table[name].to_numpy(), trials)) for name in table.columns}
    columns |= {
        "condition": ("trial", np.repeat(np.arange(len(table)), trials)),
        "probability": ("trial", np.repeat(probability, trials)),
    }
    return xr.Dataset({"x_T": (("trial", "dim"), x_T), "response": ("trial", circular.angle(x_T))} | columns | extra)
