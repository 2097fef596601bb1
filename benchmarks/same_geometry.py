"""Have networks with the same behaviour the same geometry? `python benchmarks/same_geometry.py`

Of the networks of a set that ship in several seeds, condition means of the memory (the rates without the behavioural
subspace) over correct trials of the same conditions are compared in pairs, up to rotation, shift and scale
(lapsus.analysis.procrustes): 0 is the same geometry, 1 nothing in common. Printed for each cueing and time are the mean
distance between the two halves of one network's trials (what noise alone gives), between seeds of one target, between
targets, between networks whose conditions were shuffled, and the share of relabellings of networks that part the
targets as well. --set persistent takes those that hold their memory; --dynamics adds the distance of their dynamics
(lapsus[dsa]), which takes minutes.
"""

import argparse

import numpy as np
import xarray as xr

from lapsus import LapsusError, simulate, streams
from lapsus.analysis.dynamical_distance import dynamical_distances
from lapsus.analysis.procrustes import compare_groups, distance_matrix, procrustes_distance, shuffled_distance
from lapsus.circular import distance
from lapsus.library.shipped import load_shipped, shipped

CONDITIONS, TRIALS = 256, 32
# Steps from cue offset: the last one before the cue of five steps, cue offset, half of the second delay, the response.
TIMES = {"before the cue": -5, "cue offset": 0, "half of delay 2": 20, "response": 40}
# Trials of the dynamical distance.
FEW = 128


def seeds_of(which: str, cueing: str) -> dict[str, list[str]]:
    """Names of the networks of one cueing, by what they were trained for, where that is more than one seed."""
    found: dict[str, list[str]] = {}
    for name, facts in shipped(which).items():
        config = facts["config"]
        if config["task"]["kind"] == f"{cueing}-cued" and not config["name"].endswith(("-preamble", "-base")):
            found.setdefault(config["name"], []).append(name)
    return {name: members for name, members in found.items() if len(members) > 1}


def trials_of(name: str) -> xr.Dataset:
    """The same conditions for every network, with `memory` and whether the cued item was reported."""
    model = load_shipped(name)
    drawn = model.task.sample(CONDITIONS, streams.generator("same geometry"))
    data = simulate(model, drawn, TRIALS)
    along = data["readout"].to_numpy()
    activity = data["activity"].to_numpy()
    report = np.repeat(drawn["report"].numpy(), TRIALS, 0)
    nearest = distance(data["response"].to_numpy()[:, None], report).argmin(1)
    correct = nearest == np.repeat(drawn["cued"].numpy(), TRIALS)
    return data.assign(
        memory=(("trial", "time", "unit"), activity - activity @ along.T @ along), correct=("trial", correct)
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


def finite(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Only the conditions that each of them has."""
    kept = np.isfinite(np.stack([one[:, 0] for one in arrays])).all(0)
    return [one[kept] for one in arrays]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", dest="which", default="paper", choices=["paper", "persistent"])
    parser.add_argument("--dynamics", action="store_true")
    args = parser.parse_args()
    titles = ("cueing", "networks", "when", "halves of one", "seeds", "targets", "shuffled", "p")
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}")
    for cueing in ("index", "feature"):
        groups = seeds_of(args.which, cueing)
        names = [name for members in groups.values() for name in members]
        if len(groups) < 2:
            print(f"| {cueing} | {len(names)} | fewer than two targets ship in several seeds | | | | | |")
            continue
        label = np.array([target for target, members in groups.items() for _ in members])
        data = [trials_of(name) for name in names]
        for title, time in TIMES.items():
            whole = finite([means(one, time) for one in data])
            halves = [procrustes_distance(*finite([means(one, time, half) for half in (0, 1)])) for one in data]
            found = compare_groups(distance_matrix(whole), label)
            numbers = (np.mean(halves), found.within, found.between, shuffled_distance(whole), found.p)
            print(
                f"| {cueing} | {len(names)} | {title} | {' | '.join(f'{value:.3f}' for value in numbers)} |", flush=True
            )
        if args.dynamics:
            late = [
                one["memory"].isel(trial=slice(None, None, len(one["trial"]) // FEW)).sel(time=slice(-20, 40))
                for one in data
            ]
            found = compare_groups(dynamical_distances([one.to_numpy() for one in late]), label)
            numbers = f"- | {found.within:.3f} | {found.between:.3f} | - | {found.p:.3f}"
            print(f"| {cueing} | {len(names)} | dynamics | {numbers} |")


if __name__ == "__main__":
    try:
        main()
    except LapsusError as error:
        raise SystemExit(str(error)) from None
