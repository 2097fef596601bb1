"""Appendix: plane alignment of task-optimal networks whose loss applies to the end of delay 2 only."""

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.paper.fig3 import alignment_by_distance, feature_alignment
from lapsus.paper.roles import Networks
from lapsus.plots.style import TEXT_WIDTH, VERMILION, panel, style

# Role → the last steps of delay 2 in which the loss applies.
WINDOWS = {
    "feature-optimal": 40,
    "feature-optimal-30": 30,
    "feature-optimal-20": 20,
    "feature-optimal-5": 5,
    "feature-optimal-1": 1,
}


def _panel(ax: Axes, networks: Networks, role: str) -> Axes:
    alignment_by_distance(ax, feature_alignment(networks, role))
    ax.axvspan(40 - WINDOWS[role], 40, ymax=0.03, color=VERMILION, lw=0)
    ax.set_title(f"T* = {WINDOWS[role]}", pad=9)
    ax.set_xlabel("time from cue\noffset (steps)")
    return ax


def figure(networks: Networks) -> Figure:
    """Plane alignment for each window."""
    with style():
        fig, axes = plt.subplots(1, len(WINDOWS), figsize=(TEXT_WIDTH, 2.2), sharey=True, layout="constrained")
        for ax, role in zip(axes, WINDOWS):
            panel(ax, _panel, networks, role).label_outer()
        drawn = [ax for ax in axes if ax.lines]
        if drawn:
            handles = drawn[0].get_legend_handles_labels()
            title = "probe distance; red: where the loss applies"
            fig.legend(*handles, loc="outside lower center", title=title, ncols=5)
    return fig
