"""How far the dynamics of one network are from those of another, whatever its geometry: Dynamical Similarity Analysis.

A linear model with delays is fitted to each network's activity, and the models are compared up to a change of basis
(Ostrow et al., NeurIPS 2023). The method is the authors' package `dsa-metric`, an optional extra: lapsus[dsa].
"""

from importlib.metadata import version

import numpy as np

from lapsus.errors import LapsusError

__all__ = ["SETTINGS", "dsa_version", "dynamical_distances"]

# Every argument of the package that changes its result; its defaults have changed between versions.
SETTINGS = {"score_method": "wasserstein", "iters": 1500, "lr": 5e-3, "device": "cpu", "delay_interval": 1, "lamb": 0}


def dsa_version() -> str:
    """Of the package, to be recorded with what it found."""
    return version("dsa-metric")


def dynamical_distances(activity: list[np.ndarray], delays: int = 5, rank: int = 15) -> np.ndarray:
    """Of every pair of networks, [network, network], from their activity [trial, time, unit] each; delays and rank are
    those of the linear models."""
    try:
        from DSA import DSA
    except ImportError:
        raise LapsusError("The dynamical distance needs the package dsa-metric: install lapsus[dsa].") from None
    for one in activity:
        if one.ndim != 3 or not np.isfinite(one).all() or one.shape[1] <= delays + 1:
            raise LapsusError(
                f"Activity must be finite and of shape [trial, time, unit] with more than {delays + 1} times."
            )
    arrays = [np.asarray(one, float) for one in activity]
    found = DSA(arrays, n_delays=delays, rank=rank, **SETTINGS).fit_score()
    return np.asarray(found, float)
