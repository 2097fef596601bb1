"""What a network answers, whatever its activity: swaps against its target's, modes, averages (Fig 2)."""

import numpy as np
import pandas as pd

from lapsus.circular import embed, wrap
from lapsus.evaluation.simulation import Simulated
from lapsus.mechanism.activity import behaviour, items
from lapsus.mechanism.designs import MARGIN
from lapsus.mechanism.modes import averaging, two_modes
from lapsus.statistics.intervals import Interval, rate_interval
from lapsus.statistics.swaps import rate_by_distance, swap_curve

__all__ = [
    "averaging_by_condition",
    "distance_bins",
    "modes_by_condition",
    "paths",
    "swap_function",
    "swap_residuals",
    "swap_share",
]


def distance_bins() -> np.ndarray:
    """Edges [10] of bins of probe distance from the task's margin to opposite, radians."""
    return np.linspace(MARGIN - 1e-6, np.pi + 1e-6, 10)


def swap_function(responded: Simulated, conditions: int, trials: int) -> pd.DataFrame:
    """Swap rate by probe distance, intervals over conditions, with `target`, the mean of the target's probability over
    the same trials."""
    dataset = responded(conditions, trials, seed=2)
    found, gap, edges = items(dataset), items(dataset).probe_distance, distance_bins()
    curve = swap_curve(found.swap, gap, edges, dataset["condition"].to_numpy())
    chance = rate_by_distance(dataset["probability"].to_numpy(), gap, edges)[curve.bin]
    return pd.DataFrame(curve.rows()).rename(columns={"pairs": "trials"}).assign(target=chance)


def swap_residuals(responded: Simulated, conditions: int, trials: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the same trials: rate minus the target's probability [condition], and the probe distance [condition]."""
    dataset = responded(conditions, trials, seed=2)
    found, condition = items(dataset), dataset["condition"].to_numpy()
    first = np.unique(condition, return_index=True)[1]
    rate = np.bincount(condition, found.swap) / np.bincount(condition)
    return rate - dataset["probability"].to_numpy()[first], found.probe_distance[first]


def swap_share(responded: Simulated, conditions: int, trials: int, noise_scale: float = 1.0) -> Interval:
    """Share of swaps with its 95 % interval over conditions; noise_scale multiplies the noise's s.d.

    Never narrower than Wilson's over trials: with a swap or two the normal interval over conditions is too short."""
    dataset = responded(conditions, trials, seed=51, noise_scale=noise_scale)
    swap = items(dataset).swap
    rate, low, high = rate_interval(swap, dataset["condition"].to_numpy())
    _, least, most = rate_interval(swap)
    return rate, min(low, least), max(high, most)


def modes_by_condition(
    responded: Simulated, count: int, trials: int, probe_distance: float | None, noise_scale: float = 1.0
) -> tuple[np.ndarray, float]:
    """Which conditions have two modes, one at each item [condition], and the share of swaps.

    probe_distance None: conditions as the task draws them.
    """
    conditions: int | dict[str, np.ndarray] = count
    if probe_distance is not None:
        rng = np.random.default_rng(11)
        first, place = rng.uniform(-np.pi, np.pi, (2, count))
        second = first + rng.uniform(np.pi / 2, 3 * np.pi / 2, count)
        sign = np.where(np.arange(count) % 2, 1.0, -1.0)
        conditions = {
            "report": wrap(np.stack([first, second], 1)),
            "probe": wrap(np.stack([place, place + sign * probe_distance], 1)),
            "cued": np.zeros(count, dtype=int),
        }
    found = items(responded(conditions, trials, seed=3, noise_scale=noise_scale))
    by_condition = [values.reshape(-1, trials) for values in (found.response, found.target, found.distractor)]
    two = [two_modes(r, t[0], d[0]) for r, t, d in zip(*by_condition)]
    return np.array(two), float(found.swap.mean())


def paths(simulated: Simulated, conditions: dict, trials: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The forming response x [trial, time, 2] of designed conditions, time [time] and the response [trial]."""
    dataset = simulated(conditions, trials, seed=3)
    return behaviour(dataset), dataset["time"].to_numpy(), items(dataset).response


def averaging_by_condition(responded: Simulated, radius: float, conditions: int, trials: int) -> pd.DataFrame:
    """One row a condition: target swap probability, mean and s.d. over trials of the place between the two modes, which
    lie at `radius` in the direction of the items."""
    dataset = responded(conditions, trials, seed=31)
    found = items(dataset)
    place = averaging(dataset["x_T"].to_numpy(), embed(found.target, radius), embed(found.distractor, radius))
    frame = pd.DataFrame({"condition": dataset["condition"], "probability": dataset["probability"], "place": place})
    return (
        frame.groupby("condition")
        .agg(probability=("probability", "first"), mean=("place", "mean"), sd=("place", "std"))
        .reset_index()
    )
