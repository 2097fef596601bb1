"""Panels on axes that the paper's figures and pages share."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from lapsus.circular import angle, embed
from lapsus.plots.style import CORRECT, GREY, SWAP, mark_epochs, wheel

__all__ = ["cloud", "error_panel"]


def cloud(
    ax: Axes,
    x: np.ndarray,
    *,
    colours: np.ndarray | None = None,
    reports: tuple[float, ...] = (0.0, -2 * np.pi / 3),
    radius: float = 2.5,
    limit: float = 3.6,
) -> Axes:
    """Samples x [trial, 2] coloured by the response they mean (or by `colours`), items as rings of their colour, cued
    first."""
    ax.add_artist(_circle(radius))
    shown = angle(x) if colours is None else colours
    ax.scatter(x[:, 0], x[:, 1], s=1.6, c=wheel(shown), lw=0, rasterized=True)
    for k, report in enumerate(reports):
        ax.plot(*embed(report, radius), marker="o" if k == 0 else "s", mfc="none", mec="k", ms=6, mew=0.7)
    ax.set(aspect="equal", xlim=(-limit, limit), ylim=(-limit, limit), xticks=[], yticks=[])
    return ax


def _circle(radius: float) -> Circle:
    return Circle((0, 0), radius, fill=False, ec="0.8", lw=0.5)


def error_panel(ax: Axes, table: pd.DataFrame, name: str, onset: float) -> Axes:
    """Mean ± SEM of the place on the line to one error, swap against correct trials; a bar marks p < 0.05
    (permutation)."""
    own = table[table["alternative"] == name]
    for kind, colour in (("correct", CORRECT), ("swap", SWAP)):
        ax.fill_between(
            own["time"], own[kind] - own[f"{kind}_sem"], own[kind] + own[f"{kind}_sem"], color=colour, alpha=0.3, lw=0
        )
        ax.plot(own["time"], own[kind], color=colour, label=f"{kind} trials")
    significant = own["p"].to_numpy() < 0.05
    ax.scatter(own["time"][significant], np.full(significant.sum(), 1.28), marker="s", s=2.5, color="k", lw=0)
    for level in (0, 1):
        ax.axhline(level, color=GREY, lw=0.5, ls=(0, (3, 2)), zorder=0)
    if name != "misbinding":
        mark_epochs(ax, onset)
    ax.set(
        ylim=(-0.35, 1.35),
        yticks=[0, 1],
        yticklabels=["nominal 0", "error 1"],
        xlabel="time from cue offset (steps)",
        title=name,
    )
    return ax
