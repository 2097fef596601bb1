"""What the panels of questions share: a time axis, small legends, an interval as text, and the figure they stand in."""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.mechanism.clock import Clock
from lapsus.mechanism.registry import QUESTIONS, Mechanism
from lapsus.plots.style import COLUMN_WIDTH, PAGE_POINTS, TEXT_WIDTH, mark_epochs, style
from lapsus.statistics.intervals import Interval

__all__ = ["SMALL", "figure_of", "interval", "legend", "percent", "time_axis"]

SMALL = "small"


def time_axis(
    ax: Axes, clock: Clock, ylabel: str, onset: float = float("nan"), *, top: float = 1.02, bottom: float = -0.05
) -> Axes:
    """Time on the x axis, with the cue marked from its onset (on the clock; NaN: not known) to its offset."""
    if np.isfinite(onset):
        mark_epochs(ax, float(clock.shown(onset)))
    ax.set(xlabel=clock.label, ylabel=ylabel, ylim=(bottom, top))
    return ax


def legend(ax: Axes, **options: object) -> None:
    """A legend above the panel, where it covers no data."""
    place = {"loc": "lower left", "bbox_to_anchor": (-0.12, 1.06), "handlelength": 1.2, "labelspacing": 0.3}
    ax.legend(fontsize=SMALL, **(place | options))


def interval(values: Interval, form: str = "z.2f") -> str:
    """A number with its 95 % interval."""
    value, low, high = values
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"


def percent(values: Interval) -> str:
    """A share with its 95 % interval in per cent. Estimates without bias may lie beyond 0 and 1; no share does."""
    value, low, high = (100 * min(max(v, 0.0), 1.0) for v in values)
    return f"{value:z.0f} % [{low:z.0f}, {high:z.0f}]"


def figure_of(name: str, found: Mechanism) -> Figure:
    """The figure of one question that has an answer."""
    panels = QUESTIONS[name].panels(found.answers[name], found)
    width = TEXT_WIDTH if len(panels) > 1 else COLUMN_WIDTH
    with style(PAGE_POINTS):
        fig, axes = plt.subplots(
            1,
            len(panels),
            figsize=(width, 2.8),
            layout="constrained",
            squeeze=False,
            width_ratios=[panel.width for panel in panels],
        )
        for ax, panel in zip(axes[0], panels):
            panel.draw(ax)
    return fig
