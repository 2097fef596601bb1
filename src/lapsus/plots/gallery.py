"""One row of the gallery: what a network does, how its memory lies, when it takes a side."""

from matplotlib import pyplot as plt

from lapsus.plots.mechanism import commitment_panel
from lapsus.plots.panels import Picture, alignment_over_time, picture, swap_curve
from lapsus.plots.style import PAGE_POINTS, legend_above, note, style
from lapsus.study.mechanism import Mechanism

__all__ = ["gallery_row"]


def gallery_row(name: str, evaluation: dict, found: Mechanism) -> Picture:
    """Swap curve beside its target, alignment of the planes over time, commitment curve."""
    with style(PAGE_POINTS):
        figure, axes = plt.subplots(1, 3, figsize=(8.0, 2.4), layout="constrained")
        swap_curve(axes[0], evaluation)
        legend_above(axes[0])
        said = ["swap curve"]
        if found.alignment is not None:
            alignment_over_time(axes[1], found.alignment)
            legend_above(axes[1], columns=3)
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
