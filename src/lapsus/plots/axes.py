"""Panels on axes that the paper's figures and pages share."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from lapsus.circular import angle, embed
from lapsus.plots.style import wheel

# Colours of the two items, cued first, and the radius at which they are drawn.
_REPORTS, _RADIUS = (0.0, -2 * np.pi / 3), 2.5


def cloud(ax: Axes, x: np.ndarray, *, colours: np.ndarray | None = None, limit: float = 3.6) -> Axes:
    """Samples x [trial, 2] coloured by the response they mean (or by `colours`), items as rings of their colour, cued
    first."""
    ax.add_artist(Circle((0, 0), _RADIUS, fill=False, ec="0.8", lw=0.5))
    colour = angle(x) if colours is None else colours
    ax.scatter(x[:, 0], x[:, 1], s=1.6, c=wheel(colour), lw=0, rasterized=True)
    for k, report in enumerate(_REPORTS):
        ax.plot(*embed(report, _RADIUS), marker="o" if k == 0 else "s", mfc="none", mec="k", ms=6, mew=0.7)
    ax.set(aspect="equal", xlim=(-limit, limit), ylim=(-limit, limit), xticks=[], yticks=[])
    return ax
