"""The planes that hold the two items' colours, in a network on designed trials: how they turn towards each other, and
whether single trials in which they are better aligned are swapped more often (Fig 3)."""

import numpy as np
import pandas as pd
import xarray as xr

from lapsus.analysis.alignment import bin_means, bootstrap_alignment, plane_alignment
from lapsus.analysis.trialwise import AlignmentTest, alignment_predicts_swaps, trial_alignment
from lapsus.study.designs import alignment_grid
from lapsus.study.simulation import Simulated

__all__ = ["alignment_and_swaps", "alignment_at_places", "alignment_by_distance", "plane_points", "with_bootstrap"]


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
    """Mean activity for each cued item and reported colour in three components (Fig 3A): [item, bin, component].
    degrees None: fixed places."""
    conditions = alignment_grid() if degrees is None else alignment_grid(np.radians(degrees), 1)
    return bin_means(simulated(conditions, trials, seed=12), time)


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
