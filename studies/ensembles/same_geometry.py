"""How far apart two networks are in their geometry, and in their dynamics: what measure.py puts in a table.

All networks of one cueing are shown the same conditions. Condition means of the memory (the rates without the
behavioural subspace) over correct trials are compared in pairs, up to rotation, shift and scale
(lapsus.mechanism.procrustes): 0 is the same geometry, 1 nothing in common. A network with itself is one half of
its trials against the other: what noise alone gives; `shuffled` is the same pair with the conditions of one of them
shuffled: what chance gives. For the dynamics, whose distance has no such end, it is a network against itself with the
steps of every trial in another order.
"""

from collections.abc import Callable

import numpy as np
import xarray as xr

from lapsus import Model, rng, simulate
from lapsus.mechanism.dynamical_distance import dynamical_distances
from lapsus.mechanism.procrustes import procrustes_distance
from lapsus.statistics.swaps import nearest_item

CONDITIONS, TRIALS = 256, 32
# Steps from cue offset: the last one before the cue of five steps, cue offset, half of the second delay, the response.
TIMES = {"before the cue": -5, "cue offset": 0, "half of delay 2": 20, "response": 40}
# Trials of the dynamical distance, twice.
FEW = 128


def trials_of(model: Model, trials: int = TRIALS) -> xr.Dataset:
    """The same conditions for every network, with `memory` and whether the cued item was reported."""
    drawn = model.task.sample(CONDITIONS, rng.generator("same geometry"))
    data = simulate(model, drawn, trials, threads=1)
    along = data["readout"].to_numpy()
    activity = data["activity"].to_numpy()
    report = np.repeat(drawn["report"].numpy(), trials, 0)
    nearest, _ = nearest_item(data["response"].to_numpy(), report)
    correct = nearest == np.repeat(drawn["cued"].numpy(), trials)
    memory = activity - activity @ along.T @ along
    return xr.Dataset(
        {"memory": (("trial", "time", "unit"), memory), "correct": ("trial", correct)}, {"time": data["time"]}
    )


def means(data: xr.Dataset, time: int, half: int | None = None) -> np.ndarray:
    """Memory at a time, mean over the correct trials of each condition (or one half of them): [condition, unit]."""
    memory = data["memory"].sel(time=time).to_numpy().reshape(CONDITIONS, TRIALS, -1)
    kept = data["correct"].to_numpy().reshape(CONDITIONS, TRIALS)
    if half is not None:
        kept = kept & (np.arange(TRIALS) % 2 == half)
    count = kept.sum(1)
    total = (memory * kept[..., None]).sum(1)
    return np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], np.nan)


def _compared(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Distance of two sets of condition means, on the conditions that both have; and with one of them shuffled."""
    kept = np.isfinite(a[:, 0]) & np.isfinite(b[:, 0])
    order = np.random.default_rng(0).permutation(int(kept.sum()))
    return procrustes_distance(a[kept], b[kept]), procrustes_distance(a[kept], b[kept][order])


def pair_distances(
    load: dict[str, Callable[[], Model]], known: set[tuple[str, str]], dynamics: bool = False
) -> list[tuple[str, str, str, float, float]]:
    """when, first, second, distance, shuffled of every pair of these networks that is not known, and of each with
    itself."""
    names = sorted(load)
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k:]]
    if all(pair in known for pair in pairs):
        return []
    if dynamics:
        late = [half for name in names for half in _late(load[name]())]
        found, at = dynamical_distances(late), {name: 2 * k for k, name in enumerate(names)}
        print("dsa-metric, its version and arguments:", found.attrs)
        rows = [
            ("dynamics", a, b, float(found[at[a], at[b] + (a == b)]), _disorder(late[at[a]], a == b)) for a, b in pairs
        ]
        return [row for row in rows if row[1:3] not in known]
    whole: dict[str, dict[str, np.ndarray]] = {}
    rows = []
    for name in names:
        data = trials_of(load[name]())
        whole[name] = {when: means(data, time) for when, time in TIMES.items()}
        if (name, name) not in known:
            halves = {when: [means(data, time, half) for half in (0, 1)] for when, time in TIMES.items()}
            rows += [(when, name, name, *_compared(*halves[when])) for when in TIMES]
    for a, b in pairs:
        if a != b and (a, b) not in known:
            rows += [(when, a, b, *_compared(whole[a][when], whole[b][when])) for when in TIMES]
    return rows


def _late(model: Model) -> list[np.ndarray]:
    """Memory from twenty steps before cue offset to the response, of two sets of few trials: [trial, time, unit]."""
    memory = trials_of(model, 1)["memory"].sel(time=slice(-20, 40)).to_numpy()
    return [memory[:FEW], memory[FEW : 2 * FEW]]


def _disorder(activity: np.ndarray, asked: bool) -> float:
    """The distance of dynamics to the same activity with the steps of each trial shuffled."""
    if not asked:
        return float("nan")
    shuffled = np.random.default_rng(0).permuted(np.arange(activity.shape[1])[None].repeat(len(activity), 0), axis=1)
    other = np.take_along_axis(activity, shuffled[:, :, None], 1)
    return float(dynamical_distances([activity, other])[0, 1])
