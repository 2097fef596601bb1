"""The planes that hold the two items' colours, in a network on designed trials: how they turn towards each other, and
whether single trials in which they are better aligned are swapped more often (Fig 3)."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import xarray as xr

from lapsus.analysis.activity import cue_onset, two_items
from lapsus.analysis.alignment import (
    SigmoidFit,
    bin_means,
    bootstrap_alignment,
    plane_alignment,
    pre_and_post_cue,
    shuffle_null,
    sigmoid_against_flat,
)
from lapsus.analysis.trialwise import AlignmentTest, alignment_predicts_swaps, trial_alignment
from lapsus.circular import distance
from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import FULL, Sizes
from lapsus.evaluation.simulation import Simulated, simulate_design
from lapsus.statistics.intervals import limits
from lapsus.study.designs import alignment_grid
from lapsus.tasks import IndexCued
from lapsus.training.model import Model

__all__ = [
    "Planes",
    "alignment_and_swaps",
    "alignment_at_places",
    "alignment_by_distance",
    "network_planes",
    "places",
    "plane_points",
    "recording_planes",
    "with_bootstrap",
]


@dataclass(frozen=True)
class Planes:
    """|cos| of the two items' colour planes over time: times [time], curve and its s.d. over rotations [distance, time]
    at each probe distance (degrees); before and after the cue [distance]; onset of the cue in steps from its offset.
    shuffled [2, time]: where 95 % of curves of shuffled colours lie (the last distance)."""

    degrees: tuple[int, ...]
    before: np.ndarray
    after: np.ndarray
    mean_before: float
    mean_after: float
    sigmoid: SigmoidFit
    onset: float
    trials: int
    rotations: int
    times: np.ndarray = field(default_factory=lambda: np.empty(0))
    curve: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    sd: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    shuffled: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))


def network_planes(model: Model, sizes: Sizes = FULL, seed: int = 0) -> Planes:
    """Alignment of the two items' planes over time, at each probe distance (index-cued: one)."""
    index = isinstance(model.task, IndexCued)
    shown = {}
    for k, degrees in enumerate((180,) if index else sizes.degrees):
        conditions = alignment_grid() if index else alignment_grid(np.radians(degrees), sizes.rotations)
        shown[degrees] = simulate_design(model, conditions, 8 if index else 1, seed + k)
    return _planes(shown, None if index else "configuration", sizes.shuffles, seed)


def recording_planes(dataset: xr.Dataset, sizes: Sizes = FULL, seed: int = 0) -> Planes:
    """The same of a recording, at each distance between the places of its trials (180° where they are not given)."""
    groups = places(dataset)
    apart = np.degrees(np.nan_to_num(two_items(dataset).probe_distance, nan=np.pi)).round().astype(int)
    shown = {int(degrees): dataset.isel(trial=np.flatnonzero(apart == degrees)) for degrees in np.unique(apart)}
    return _planes(shown, groups, sizes.shuffles, seed)


def places(dataset: xr.Dataset) -> str | None:
    """The variable of a dataset that names the places of the items in each trial; None where all trials have the
    same."""
    if "configuration" in dataset:
        return "configuration"
    probe = two_items(dataset).probe
    if probe is not None and distance(probe, probe[:1]).max() > 1e-3:
        raise LapsusError(
            "it takes many trials with items at the same places, named by a variable `configuration`; here places"
            " differ from trial to trial"
        )
    return None


def _planes(datasets: dict[int, xr.Dataset], groups: str | None, shuffles: int, seed: int) -> Planes:
    """Of trials at each probe distance (degrees); null of the last."""
    shown = [_from_stimulus(dataset) for dataset in datasets.values()]
    curves = [plane_alignment(dataset, groups=groups) for dataset in shown]
    time = curves[0]["time"].to_numpy()
    null = shuffle_null(shown[-1], repeats=shuffles, seed=seed, groups=groups)
    mean = np.stack([curve.mean("group").to_numpy() for curve in curves])
    before, after = (
        np.array(values) for values in zip(*((a.mean(), b.mean()) for a, b in map(pre_and_post_cue, curves)))
    )
    return Planes(
        degrees=tuple(datasets),
        before=before,
        after=after,
        mean_before=float(before.mean()),
        mean_after=float(after.mean()),
        sigmoid=sigmoid_against_flat(time, mean),
        onset=float(cue_onset(shown[-1])),
        trials=shown[-1].sizes["trial"],
        rotations=curves[0].sizes["group"],
        times=time,
        curve=mean,
        sd=np.stack([curve.std("group").to_numpy() for curve in curves]),
        shuffled=limits(null.to_numpy()),
    )


def with_bootstrap(dataset: xr.Dataset, repeats: int) -> xr.Dataset:
    """`alignment [time]` of any recording or simulation, and its bootstrap samples `resampled [repeat, time]`."""
    alignment = plane_alignment(dataset).isel(group=0, drop=True)
    resampled = bootstrap_alignment(dataset, repeats=repeats)
    return xr.Dataset({"alignment": alignment, "resampled": resampled}, attrs={"trials": dataset.sizes["trial"]})


def alignment_at_places(simulated: Simulated, trials: int, repeats: int) -> xr.Dataset:
    """`with_bootstrap` of a network whose items have fixed places (index-cued), from the stimuli on."""
    return with_bootstrap(_from_stimulus(simulated(alignment_grid(), trials, seed=5)), repeats)


def alignment_by_distance(simulated: Simulated, degrees: tuple[int, ...], rotations: int) -> xr.DataArray:
    """Alignment over time of a feature-cued network: [distance (degrees), rotation, time], from the stimuli on."""
    found = []
    for k, apart in enumerate(degrees):
        conditions = alignment_grid(np.radians(apart), rotations)
        dataset = _from_stimulus(simulated(conditions, 1, seed=6 + k))
        found.append(plane_alignment(dataset, groups="configuration").rename(group="rotation"))
    return xr.concat(found, pd.Index(degrees, name="distance"), coords="minimal", compat="override").assign_attrs(
        trials=len(conditions["cued"]) // rotations
    )


def plane_points(simulated: Simulated, degrees: float | None, time: float, trials: int) -> xr.DataArray:
    """Mean activity for each cued item and reported colour in three components (Fig 3A, B): [item, bin, component].
    degrees: between the places, None for index-cued networks."""
    apart = None if degrees is None else float(np.radians(degrees))
    return bin_means(simulated(alignment_grid(apart, 1), trials, seed=12), time)


def alignment_and_swaps(
    simulated: Simulated, degrees: tuple[int, ...] | None, rotations: int, trials: int
) -> tuple[pd.DataFrame, AlignmentTest]:
    """Trial-wise alignment of simulated trials, and the regression of swaps on it. degrees None: fixed places."""
    if degrees is None:
        table = trial_alignment(simulated(alignment_grid(), trials, seed=41))
    else:
        parts = []
        for k, apart in enumerate(degrees):
            dataset = simulated(alignment_grid(np.radians(apart), rotations), trials, seed=42 + k)
            part = trial_alignment(dataset, groups="configuration")
            parts.append(part.assign(group=part["group"] + k * rotations))
        table = pd.concat(parts, ignore_index=True)
    return table, alignment_predicts_swaps(table)


def _from_stimulus(dataset: xr.Dataset) -> xr.Dataset:
    """Without the steps before anything is shown: there is no plane yet."""
    return dataset.isel(time=np.flatnonzero(~np.isin(dataset["epoch"].to_numpy(), ("initial", "prestimulus"))))
