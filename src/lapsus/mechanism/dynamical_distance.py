"""How far the dynamics of one network are from those of another, whatever its geometry: Dynamical Similarity Analysis.

A linear model with delays is fitted to each network's activity, and the models are compared up to a change of basis
(Ostrow et al., NeurIPS 2023). The method is the authors' package `dsa-metric`, an optional extra: lapsus[dsa].
"""

from importlib.metadata import version
from typing import Any

import numpy as np
import xarray as xr

from lapsus.errors import LapsusError

__all__ = ["SETTINGS", "dynamical_distances"]

# Every argument that changes the result, of the comparison and of the linear models, as defaults have changed.
SETTINGS: dict[str, Any] = {
    "score_method": "wasserstein",
    "iters": 1500,
    "lr": 5e-3,
    "device": "cpu",
    "delay_interval": 1,
    "rank_thresh": None,
    "rank_explained_variance": None,
    "reduced_rank_reg": False,
    "lamb": 0.0,
    "steps_ahead": 1,
}


def dynamical_distances(activity: list[np.ndarray], delays: int = 5, rank: int = 15) -> xr.DataArray:
    """Of every pair of networks, [network, other], from their activity [trial, time, unit] each; delays and rank are
    those of the linear models. `attrs` records the version of dsa-metric and every argument that it was given."""
    try:
        from DSA import DSA
    except ImportError:
        raise LapsusError("The dynamical distance needs the package dsa-metric: install lapsus[dsa].") from None
    for network in activity:
        if network.ndim != 3 or not np.isfinite(network).all() or network.shape[1] <= delays + 1:
            raise LapsusError(
                f"Activity must be finite and of shape [trial, time, unit] with more than {delays + 1} times."
            )
    arguments = SETTINGS | {"n_delays": delays, "rank": rank}
    distances = DSA([np.asarray(network, float) for network in activity], **arguments).fit_score()
    recorded = {"dsa-metric": version("dsa-metric")} | {name: str(value) for name, value in arguments.items()}
    return xr.DataArray(np.asarray(distances, float), dims=("network", "other"), attrs=recorded)
