"""Appendix: a network trained with squared error on samples of the two-mode target answers with one mode between."""

from functools import lru_cache

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.behaviour import BNS
from lapsus.errors import LapsusError
from lapsus.mechanism import responses
from lapsus.mechanism.designs import pair
from lapsus.paper.roles import Networks
from lapsus.plots.axes import cloud
from lapsus.plots.style import TEXT_WIDTH, panel, style

ROLE = "feature-sample-mse"
DISTANCES = (np.pi, 3 * np.pi / 4, np.pi / 2, np.pi / 4)


@lru_cache(maxsize=2)
def table(networks: Networks) -> pd.DataFrame:
    """One row per condition: target swap probability, mean and s.d. over trials of the place between the two modes."""
    target, sizes = networks.model(ROLE).behaviour, networks.sizes
    if not isinstance(target, BNS):
        raise LapsusError(f"the target of {ROLE} has no modes at items")
    return responses.averaging_by_condition(
        networks.answers(ROLE), target.radius, sizes.averaged_conditions, sizes.averaged_trials
    )


def _panel(ax: Axes, networks: Networks, gap: float) -> Axes:
    dataset = networks.responses(ROLE, pair(gap), networks.sizes.shown_samples, seed=3)
    cloud(ax, dataset["x_T"].to_numpy())
    ax.axis("off")
    wanted = float(dataset["probability"][0])
    ax.set_title(f"probe distance {np.degrees(gap):.0f}°\ntarget swap rate {wanted:.2f}", fontsize=6)
    return ax


def figure(networks: Networks) -> Figure:
    """Responses at four probe distances."""
    with style():
        fig, axes = plt.subplots(1, len(DISTANCES), figsize=(TEXT_WIDTH, 2.0), layout="constrained")
        for ax, gap in zip(axes, DISTANCES):
            panel(ax, _panel, networks, gap)
        shown = f"{networks.sizes.shown_samples} responses each; ○ cued colour, □ the other;"
        fig.supxlabel(f"{shown} both lie at the radius of the target (grey)", fontsize=6)
    return fig
