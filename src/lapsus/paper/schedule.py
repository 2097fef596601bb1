"""Appendix: the noise schedule."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from lapsus.diffusion import linear_schedule
from lapsus.paper.roles import Networks
from lapsus.plots.style import COLUMN_WIDTH, CORRECT, SWAP, style


def tables(_: Networks) -> dict[str, pd.DataFrame]:
    """Columns t, beta, sigma, alpha_bar, one row for each of the 40 steps."""
    schedule = linear_schedule(40)
    columns = {"beta": schedule.beta, "sigma": schedule.sigma, "alpha_bar": schedule.alpha_bar[:-1]}
    return {"schedule": pd.DataFrame({"t": np.arange(40)} | columns)}


def figure(networks: Networks) -> Figure:
    """beta_t and sigma_t over the denoising steps."""
    table = tables(networks)["schedule"]
    with style():
        fig, ax = plt.subplots(figsize=(COLUMN_WIDTH, 2.2), layout="constrained")
        ax.plot(table["t"], table["beta"], color=CORRECT, label=r"corruption variance $\beta_t$")
        ax.plot(table["t"], table["sigma"], color=SWAP, label=r"generative noise s.d. $\sigma_t$")
        ax.set(xlabel="time from cue offset t (steps)", ylabel="noise", ylim=(0, None), xlim=(0, 40))
        ax.legend()
    return fig
