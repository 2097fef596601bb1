"""A network as a recording: its activity as firing rates of neurons, and these as Poisson spikes."""

import numpy as np
import pandas as pd
import xarray as xr

from lapsus import rng
from lapsus.errors import LapsusError

__all__ = ["as_neurons", "spike_session"]

# Seconds between two trials of a simulated session.
PAUSE = 1.0


def as_neurons(activity: np.ndarray, units: int | None = None, depth: float = 1.0, seed: int = 0) -> np.ndarray:
    """Firing rates [trial, time, neuron] relative to that at mean activity, from a network's activity [trial, time,
    unit].

    units: neurons, each a random mixture of the network's units; None takes the units themselves. depth: by how much
    one s.d. of the mixture changes the logarithm of a small rate; rates are rectified softly.
    """
    z = (activity - activity.mean((0, 1))) / np.maximum(activity.std((0, 1)), 1e-9)
    if units is not None:
        weights = np.random.default_rng(rng.seed_of(seed, "neurons")).standard_normal((z.shape[2], units))
        z = z @ weights.astype(z.dtype)
        z /= z.std((0, 1))
    return np.logaddexp(0, depth * z) / np.log(2)


def spike_session(
    dataset: xr.Dataset, *, gain: float = 10.0, units: int | None = None, step: float = 0.05, seed: int = 0
) -> tuple[list[np.ndarray], pd.DataFrame]:
    """Spike times in seconds of each neuron, and the trials with their events, of a simulation.

    gain: spikes/s of a neuron at mean activity; step: seconds of one step of the network. Spikes are Poisson with a
    rate that is constant within a step.
    """
    if not gain > 0:
        raise LapsusError(f"The gain must be a positive number of spikes/s, not {gain}.")
    epoch = dataset["epoch"].to_numpy()
    if "cue" not in epoch:
        raise LapsusError("Only trials with a cue are written as a recording.")
    later = epoch != "initial"  # the state before the first step is not a bin of time
    activity, epoch = dataset["activity"].transpose("trial", "time", "unit").to_numpy()[:, later], epoch[later]
    rates = gain * as_neurons(activity, units, seed=seed)
    generator = np.random.default_rng(rng.seed_of(seed, "spikes"))
    trials, steps = rates.shape[:2]
    begin = np.arange(trials) * (steps * step + PAUSE) + PAUSE
    bins = (begin[:, None] + step * np.arange(steps)).ravel()
    spikes = []
    for neuron in range(rates.shape[2]):
        count = generator.poisson(step * rates[:, :, neuron]).ravel()
        times = np.repeat(bins, count) + step * generator.random(count.sum())
        spikes.append(np.sort(times))
    return spikes, _trials(dataset, epoch, begin, step)


def _trials(dataset: xr.Dataset, epoch: np.ndarray, begin: np.ndarray, step: float) -> pd.DataFrame:
    onset = {
        name: step * float(np.flatnonzero(epoch == name)[0]) for name in ("stimulus", "delay", "cue") if name in epoch
    }
    onset["cue_offset"] = step * float(np.flatnonzero(epoch == "cue")[-1] + 1)
    table = {"start_time": begin, "stop_time": begin + len(epoch) * step}
    table |= {f"{name}_time": begin + after for name, after in onset.items()}
    for name, values in dataset.data_vars.items():
        if values.dims == ("trial",):
            table[str(name)] = values.to_numpy()
    return pd.DataFrame(table)
