"""The figure of this study: alignment at each probe distance, and how many networks a mean needs."""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from scipy import stats

from lapsus.files import write_figure
from lapsus.paper.roles import LABELS
from lapsus.plots.style import TEXT_WIDTH, colour_of, letter, style

FOLDER = Path(__file__).resolve().parent
DEGREES = (45, 75, 105, 135, 165)
# Statistics between 0 and 1, which can share an axis.
SHARES = {
    "aligned_before": "alignment before the cue",
    "aligned_after": "alignment after the cue",
    "carried_by_x": "carried by x",
}


def plain(role: str) -> str:
    """What a role is called on the page."""
    return LABELS[role].replace(r"$\tilde\pi$", "π")


def alignment_figure(members: pd.DataFrame, spreads: pd.DataFrame) -> None:
    """A line a network: alignment before the cue at each probe distance; and the interval of a mean over networks."""
    recipes = [name for name in ("paper", "persistent") if name in set(members["recipe"])]
    with style():
        fig, axes = plt.subplots(1, len(recipes) + 1, figsize=(TEXT_WIDTH, 2.4), layout="constrained")
        for ax, recipe in zip(axes, recipes):
            own = members[(members["recipe"] == recipe) & members["role"].str.startswith("feature")]
            for role, group in own[own["before_45"].notna()].groupby("role", sort=False):
                if len(group) < 2:
                    continue
                for k, (_, row) in enumerate(group.iterrows()):
                    values = [row[f"before_{d}"] for d in DEGREES]
                    ax.plot(DEGREES, values, ".-", color=colour_of(role), lw=0.8, label=None if k else plain(role))
            ax.set(ylim=(0, 1.03), xticks=DEGREES, xlabel="probe distance (°)", title=f"{recipe} set")
        axes[0].set_ylabel("alignment before the cue")
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
        ax, counts = axes[-1], np.arange(2, 31)
        shown = spreads[(spreads["recipe"] == recipes[-1]) & spreads["statistic"].isin(list(SHARES))]
        for row in shown.itertuples():
            half = stats.t.ppf(0.975, counts - 1) * row.sd / np.sqrt(counts)
            ax.plot(counts, half, label=SHARES[row.statistic])
        ax.set(xlabel="networks trained", ylabel="± of their mean (95 %)", xticks=(3, 5, 10, 20, 30), ylim=(0, 0.8))
        ax.set_title("how many networks")
        ax.legend(loc="upper right")
        for one, text in zip(axes, "ABC"):
            letter(one, text)
        write_figure(FOLDER / "ensembles.png", fig, dpi=200)
        plt.close(fig)
