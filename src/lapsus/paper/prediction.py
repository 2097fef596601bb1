"""The paper's prediction, tested: swaps and single-trial alignment before the cue."""

from functools import lru_cache

import numpy as np
import pandas as pd
from matplotlib import colormaps, pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.mechanism import single_trials
from lapsus.mechanism.single_trials import AlignmentTest, swap_rate_by_alignment
from lapsus.paper.roles import LABELS, Networks
from lapsus.plots.style import TEXT_WIDTH, panel, style

TESTED = ("feature-smooth-2", "feature-smooth-0", "index-constant-10")


@lru_cache(maxsize=8)
def alignment_and_swaps(networks: Networks, role: str) -> tuple[pd.DataFrame, AlignmentTest]:
    """Trial-wise alignment of simulated trials, and the regression of swaps on it."""
    sizes = networks.sizes
    if role.startswith("index"):
        return single_trials.alignment_and_swaps(networks.of(role), None, 1, 8 * sizes.prediction_trials)
    return single_trials.alignment_and_swaps(
        networks.of(role), sizes.degrees, sizes.prediction_rotations, sizes.prediction_trials
    )


def _panel(ax: Axes, networks: Networks, role: str) -> Axes:
    """Swap rate in fifths of alignment, one line per probe distance, with 95 % intervals."""
    table, test = alignment_and_swaps(networks, role)
    groups = list(swap_rate_by_alignment(table).groupby("probe_distance", dropna=False))
    shades = colormaps["viridis"](np.linspace(0, 0.92, max(len(groups), 2)))
    for shade, (gap, rows) in zip(shades, groups):
        rows = rows.sort_values("alignment")
        error = [rows["rate"] - rows["low"], rows["high"] - rows["rate"]]
        name = f"{np.degrees(gap):.0f}°"
        ax.errorbar(rows["alignment"], rows["rate"], error, label=name, color=shade, marker="o", ms=2.5, lw=1)
    p = f"p = {test.p:.3f}" if test.p > 0.001 else "p ≤ 0.001"
    ratio = f"odds ratio {test.odds_ratio:.2f} [{test.low:.2f}, {test.high:.2f}] per s.d., {p}"
    counts = f"{test.swaps:,} swaps in {test.trials:,} trials"
    ax.text(0.03, 0.97, f"{ratio}\n{counts}", transform=ax.transAxes, va="top", fontsize=5.5)
    ax.set(xlabel="alignment before the cue, single trials", ylabel="swap rate")
    ax.margins(y=0.3)
    ax.set_ylim(0, ax.get_ylim()[1] * 1.3)
    return ax


def figure(networks: Networks) -> Figure:
    """Does alignment before the cue predict swaps, at fixed probe distance?"""
    with style():
        fig, axes = plt.subplots(1, len(TESTED), figsize=(TEXT_WIDTH, 2.3), layout="constrained")
        for ax, role in zip(axes, TESTED):
            panel(ax, _panel, networks, role)
            ax.set_title(f"{role.split('-')[0]}-cued, {LABELS[role]}")
        if axes[0].containers:
            place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.88), "ncols": 6, "columnspacing": 0.5}
            axes[0].legend(title="probe distance", title_fontsize=5.5, fontsize=5.5, handlelength=0.6, **place)
    return fig
