"""Appendix: alignment of the rings' normals between all fixed colours, averaged over location pairs."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.mechanism.ring_normals import cyclic_alignment
from lapsus.paper.fig4 import normals, normals_with_swaps
from lapsus.paper.roles import Networks
from lapsus.plots.style import COLUMN_WIDTH, GREY, panel, style, wheel


def table(networks: Networks) -> pd.DataFrame:
    """Mean |cos| between fixed colours."""
    found = normals(networks)
    matrix = pd.DataFrame(cyclic_alignment(found.cued), index=found.colours, columns=found.colours)
    return matrix.rename_axis("colour").reset_index()


def _panel(ax: Axes, networks: Networks) -> Axes:
    """The matrix; its margins show the fixed colours."""
    found = normals_with_swaps(networks)
    count = len(found.colours)
    image = ax.imshow(cyclic_alignment(found.cued), cmap="viridis", vmin=0, vmax=1, origin="lower")
    ax.figure.colorbar(image, ax=ax, label="mean |cos| of the normals", shrink=0.8)
    place, margin = np.arange(count), np.full(count, -0.05)
    for x, y, transform in ((place, margin, ax.get_xaxis_transform()), (margin, place, ax.get_yaxis_transform())):
        ax.scatter(x, y, c=wheel(found.colours), marker="s", s=18, clip_on=False, lw=0, transform=transform)
    ax.set(xticks=[], yticks=[], xlim=(-0.5, count - 0.5), ylim=(-0.5, count - 0.5))
    ax.set_xlabel("fixed colour", labelpad=14)
    ax.set_ylabel("fixed colour", labelpad=14)
    ax.set_title(f"{len(found.cued)} location pairs", color=GREY, fontsize=6)
    return ax


def figure(networks: Networks) -> Figure:
    """The matrix as an image."""
    with style():
        fig, ax = plt.subplots(figsize=(COLUMN_WIDTH, 2.8), layout="constrained")
        panel(ax, _panel, networks)
    return fig
