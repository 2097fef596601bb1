"""Figure 4: when swaps arise, and the two rings of the report subspace."""

from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.errors import LapsusError
from lapsus.mechanism.activity import NO_SWAPS
from lapsus.mechanism.discriminants import pairwise_cosine, roc_area, roc_curve
from lapsus.mechanism.error_type import ErrorType, classify_trials, weights_panel
from lapsus.mechanism.ring_normals import (
    FIXED,
    Normals,
    RingProjection,
    axis_areas as areas_along_axis,
    normals as ring_normals,
    projected_rings,
    random_alignment,
)
from lapsus.paper.roles import LABELS, Networks
from lapsus.paper.schematics import draw
from lapsus.plots.style import CORRECT, GREY, SWAP, TEXT_WIDTH, letter, note, panel, style, wheel, wheel_key

DECODED, RINGS = "index-constant-10", "feature-smooth-0"
CONFIGURATIONS = {"close, 45°": (0.0, np.pi / 4), "far, 180°": (0.0, np.pi)}


# --- Numbers ---


@lru_cache(maxsize=4)
def kinds(networks: Networks) -> ErrorType:
    """Weights of the three errors' predictions in single trials, each of its own condition."""
    return classify_trials(networks.of(DECODED), networks.sizes.decoded_trials)


@lru_cache(maxsize=8)
def rings(networks: Networks, probes: tuple[float, float]) -> tuple[RingProjection, int]:
    """Trials of one pair of locations and one fixed colour in their components, and how many there are."""
    sizes = networks.sizes
    return projected_rings(networks.of(RINGS), probes, sizes.shown_colours, sizes.ring_trials)


@lru_cache(maxsize=4)
def normals(networks: Networks) -> Normals:
    """Rings fitted for each fixed colour and location pair (five distances in some rotations)."""
    sizes = networks.sizes
    return ring_normals(networks.of(RINGS), sizes.ring_colours, sizes.ring_rotations, sizes.ring_trials)


def normals_with_swaps(networks: Networks) -> Normals:
    """The same, where any ring could be fitted."""
    found = normals(networks)
    if not np.isfinite(found.cued).any():
        raise LapsusError(NO_SWAPS)
    return found


@lru_cache(maxsize=4)
def axis_areas(networks: Networks) -> np.ndarray:
    """Held-out area of the swap axis with the reported colour held fixed, [rotation]; items 45 degrees apart."""
    return areas_along_axis(networks.of(RINGS), networks.sizes.ring_rotations, networks.sizes.ring_trials)


def same_and_opposite(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|cos| of normals [configuration, colour, unit] between location pairs, same and opposite fixed colour."""
    colours = range(vectors.shape[1])
    across = np.roll(vectors, -(len(colours) // 2), axis=1)
    same = np.concatenate([pairwise_cosine(vectors[:, c]) for c in colours])
    opposite = np.concatenate([pairwise_cosine(vectors[:, c], across[:, c]) for c in colours])
    return same[np.isfinite(same)], opposite[np.isfinite(opposite)]


# --- Panels ---


def _ring_scatter(ax: Any, projected: RingProjection, fixed_cued: bool) -> None:
    """Single trials in three components, coloured by the free item's colour; crosses are swaps. Takes 3-D axes."""
    for swap, marker, size, width in ((False, "o", 3.0, 0), (True, "x", 6.0, 0.6)):
        chosen = (projected.fixed_cued == fixed_cued) & (projected.swap == swap)
        looks = {"marker": marker, "s": size, "linewidths": width, "depthshade": False, "rasterized": True}
        ax.scatter(*projected.points[chosen].T, c=wheel(projected.free[chosen]), **looks)
    ax.tick_params(length=0, pad=-6)
    for k, axis in enumerate((ax.xaxis, ax.yaxis, ax.zaxis), 1):
        axis.set_label_text(f"PC{k}", fontsize=6)
        axis.labelpad = -14
        axis.set_ticklabels([])
    ax.view_init(elev=16, azim=-60)
    ax.set_box_aspect((1.2, 1.2, 0.9), zoom=1.35)


def _histogram(ax: Axes, networks: Networks) -> Axes:
    """|cos| of the rings' normals across location pairs: same fixed colour, opposite one, random vectors."""
    found, edges = normals_with_swaps(networks), np.linspace(0, 1, 21)
    same, opposite = same_and_opposite(found.cued)
    chance = random_alignment(max(2, round(found.dimension)))
    ax.hist(chance, edges, density=True, histtype="step", color=GREY, ls=(0, (2, 1)), label="random vectors")
    for values, colour, name in ((opposite, SWAP, "opposite"), (same, CORRECT, "same")):
        ax.hist(values, edges, density=True, color=colour, alpha=0.55, label=f"{name} colour (n = {len(values):,})")
    ax.set(xlabel="|cos| of the rings' normals between location pairs", ylabel="density", xlim=(0, 1))
    ax.legend(loc="upper center", fontsize=5.5)
    return ax


def _roc(ax: Axes, networks: Networks) -> Axes:
    """ROC curve of swaps against correct trials along the rings' normal, held out."""
    found = normals(networks)
    area, mean, sd = roc_area(found.scores, found.swap), np.nanmean(found.area), np.nanstd(found.area)
    false, true = roc_curve(found.scores, found.swap)
    step = max(1, len(false) // 2000)
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.6, ls=(0, (3, 2)))
    ax.plot(false[::step], true[::step], color="k")
    ax.set(aspect="equal", xticks=[0, 1], yticks=[0, 1])
    ax.set(xlabel="correct trials above criterion", ylabel="swaps above criterion")
    by_place = f"{mean:.2f} ± {sd:.2f} over\nlocations; {found.swap.sum():,} swaps"
    ax.set_title(f"area {area:.2f} ({by_place})", fontsize=5.5)
    return ax


def _kinds(ax: Axes, networks: Networks) -> Axes:
    found = kinds(networks)
    ax.set_title(f"{found.decision} (predictions {found.angle:.0f}° apart, {found.swaps:,} swaps)", fontsize=6, pad=9)
    return weights_panel(ax, found)


def figure(networks: Networks) -> Figure:
    """Figure 4 of the paper."""
    with style():
        fig = plt.figure(figsize=(TEXT_WIDTH, 7.8))
        top, second, third, bottom = fig.add_gridspec(
            4, 1, height_ratios=(0.75, 1, 2.9, 1.2), hspace=0.42, left=0.1, right=0.98, top=0.96, bottom=0.06
        )
        letter(draw(fig.add_subplot(top), "errors"), "A", y=0.85)
        letter(panel(fig.add_subplot(second), _kinds, networks), "B", y=1.02)
        cells = third.subgridspec(2, 3, width_ratios=(1, 1, 0.38), wspace=0.0, hspace=0.32)
        count = ""
        for i, (name, probes) in enumerate(CONFIGURATIONS.items()):
            for j, cued in enumerate(("fixed", "free")):
                if RINGS in networks:
                    projected, trials = rings(networks, probes)
                    ax = fig.add_subplot(cells[i, j], projection="3d")
                    _ring_scatter(ax, projected, cued == "fixed")
                    count = f"n = {trials:,} per row\n"
                else:
                    ax = note(fig.add_subplot(cells[i, j]), f"no network {RINGS}")
                ax.set_title(f"{name}: {cued} colour cued", fontsize=6.5, pad=2)
                if i == j == 0:
                    ax.annotate("C", (-0.32, 0.98), xycoords="axes fraction", fontsize=9, fontweight="bold")
        key = fig.add_subplot(cells[:, 2])
        key.set(xlim=(0, 1), ylim=(0, 1))
        key.axis("off")
        wheel_key(key, (0.1, 0.5, 0.8, 0.3), "free item's colour")
        key.scatter([0.3], [0.3], color=wheel(FIXED), s=40)
        key.text(0.42, 0.3, "fixed", va="center", fontsize=6)
        key.text(0.5, 0.2, f"• correct   × swap\n{count}{LABELS[RINGS]}", ha="center", va="top", fontsize=6)
        left, right = bottom.subgridspec(1, 2, wspace=0.28, width_ratios=(1.5, 1)).subplots()
        letter(panel(left, _histogram, networks), "D")
        panel(right, _roc, networks)
    return fig
