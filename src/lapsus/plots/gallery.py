"""One row of the gallery: what a network does, how its memory lies, when it takes a side."""

import numpy as np
from matplotlib import colormaps, pyplot as plt
from matplotlib.axes import Axes

from lapsus.plots.mechanism import commitment_panel
from lapsus.plots.panels import Picture, legend_above, picture, swap_curve
from lapsus.plots.style import GREY, mark_epochs, note, style
from lapsus.study.mechanism import Mechanism, Planes

__all__ = ["gallery_row"]


def gallery_row(name: str, evaluation: dict, found: Mechanism) -> Picture:
    """Swap curve beside its target, alignment of the planes over time, commitment curve."""
    with style():
        figure, axes = plt.subplots(1, 3, figsize=(7.4, 1.9), layout="constrained")
        swap_curve(axes[0], evaluation)
        legend_above(axes[0])
        said = ["swap curve"]
        if found.alignment is not None:
            _planes(axes[1], found.alignment)
            before, after = found.alignment.mean_before, found.alignment.mean_after
            said.append(f"planes aligned {before:.2f} before the cue, {after:.2f} after")
        else:
            note(axes[1], "no planes of two items")
        if found.commitment is not None:
            commitment_panel(axes[2], found.commitment)
            said.append(f"half of the outcome fixed at step {found.commitment.half_time:.0f} from cue offset")
        else:
            note(axes[2], "never swaps:\nnothing to commit to")
            said.append("no swaps to commit to")
    return picture(figure, f"{name}: {'; '.join(said)}.")


def _planes(ax: Axes, found: Planes) -> None:
    shades = colormaps["viridis"](np.linspace(0.15, 0.9, len(found.curve)))
    for shade, degrees, mean in zip(shades, found.degrees, found.curve):
        ax.plot(found.times, mean, color=shade, label=f"{degrees}°")
    mark_epochs(ax, found.onset)
    if len(found.shuffled):
        ax.fill_between(found.times, *found.shuffled, color=GREY, alpha=0.2, lw=0)
    ax.set(ylim=(0, 1.02), yticks=[0, 0.5, 1], xlabel="time from cue offset (steps)", ylabel="plane alignment |cos|")
    if len(found.curve) > 1:
        ax.legend(loc="lower right", ncols=2)
