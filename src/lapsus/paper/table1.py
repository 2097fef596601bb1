"""Table 1: does a sigmoid describe the alignment over time of the feature-cued networks better than a constant?"""

from functools import lru_cache

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.mechanism.plane_alignment import SigmoidFit, sigmoid, sigmoid_against_flat, sigmoid_bootstrap
from lapsus.paper.fig3 import FEATURE_NETWORKS, feature_alignment
from lapsus.paper.roles import LABELS, Networks
from lapsus.plots.style import TEXT_WIDTH, colour_of, mark_epochs, panel, style
from lapsus.statistics.intervals import limits

# The paper's values: mean squared error of the constant and of the sigmoid, and their difference.
PUBLISHED = {
    "feature-optimal": (0.009734, 0.005479, 0.004255),
    "feature-none": (0.052094, 0.039117, 0.012977),
    "feature-constant-05": (0.000152, 0.000000, 0.000152),
    "feature-smooth-2": (0.065647, 0.000340, 0.065307),
}


@lru_cache(maxsize=32)
def sigmoid_fits(networks: Networks, role: str) -> tuple[np.ndarray, np.ndarray, SigmoidFit, tuple[SigmoidFit, ...]]:
    """Time from stimulus offset on, mean curves [distance, time], the fit, and fits to resampled rotations."""
    curves = feature_alignment(networks, role)
    curves = curves.isel(time=np.flatnonzero(curves["epoch"].to_numpy() != "stimulus"))
    time, values = curves["time"].to_numpy(), curves.transpose("distance", "rotation", "time").to_numpy()
    # As the table's sigmoid column implies: one fit to the curve averaged over distances.
    fit = sigmoid_against_flat(time, values.mean((0, 1)))
    return time, values.mean(1), fit, tuple(sigmoid_bootstrap(time, values, repeats=networks.sizes.sigmoid_repeats))


def table(networks: Networks) -> pd.DataFrame:
    """Table 1 with intervals and the paper's numbers: one row per network."""
    rows = []
    for role in networks.those_of(PUBLISHED):
        _, _, fit, resampled = sigmoid_fits(networks, role)
        low, high = limits([one.difference for one in resampled])
        rows.append((role, fit.flat_mse, fit.sigmoid_mse, fit.difference, low, high, fit.y_scale, *PUBLISHED[role]))
    columns = "network flat sigmoid difference low high rise paper_flat paper_sigmoid paper_difference"
    return pd.DataFrame(rows, columns=columns.split())


def _panel(ax: Axes, networks: Networks, role: str) -> Axes:
    """Curves of all distances, the sigmoid and the constant."""
    time, curves, fit, _ = sigmoid_fits(networks, role)
    fitted = sigmoid(time, fit.slope, fit.x_offset, fit.y_offset, fit.y_scale)
    ax.plot(time, curves.T, color="0.75", lw=0.7)
    ax.plot(time, fitted, color=colour_of(role), label="sigmoid")
    ax.axhline(curves.mean(), color="k", ls=(0, (3, 2)), lw=0.8, label="flat")
    mark_epochs(ax, -4)
    ax.set_title(f"{LABELS[role]}: MSE {fit.flat_mse:.4f} flat,\n{fit.sigmoid_mse:.4f} sigmoid", pad=9, fontsize=6)
    ax.set(ylim=(0, 1.02), yticks=[0, 0.5, 1], xlabel="time from cue offset (steps)")
    return ax


def figure(networks: Networks) -> Figure:
    """Sigmoid and constant fits to the alignment of the feature-cued networks."""
    with style():
        fig, axes = plt.subplots(1, 4, figsize=(TEXT_WIDTH, 1.9), sharey=True, layout="constrained")
        for ax, role in zip(axes, FEATURE_NETWORKS):
            panel(ax, _panel, networks, role)
        axes[0].set_ylabel("plane alignment |cos|")
        if axes[0].lines:
            axes[0].legend(loc="lower right")
    return fig
