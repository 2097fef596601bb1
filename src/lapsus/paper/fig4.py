"""Figure 4: when swaps arise, and the two rings of the report subspace."""

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
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
from lapsus.paper.schematics import error_schematic
from lapsus.plots.style import CORRECT, GREY, SWAP, TEXT_WIDTH, letter, note, panel, style, wheel, wheel_key

__all__ = [
    "axis_areas",
    "figure",
    "kinds",
    "normal_histogram",
    "normals",
    "ring_scatter",
    "rings",
    "roc_panel",
    "tables",
]

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
def normals(networks: Networks, role: str = RINGS) -> Normals:
    """Rings fitted for each fixed colour and location pair (five distances in some rotations)."""
    sizes = networks.sizes
    return ring_normals(networks.of(role), sizes.ring_colours, sizes.ring_rotations, sizes.ring_trials)


@lru_cache(maxsize=4)
def axis_areas(networks: Networks) -> np.ndarray:
    """Held-out area of the swap axis with the reported colour held fixed, [rotation]; items 45 degrees apart."""
    return areas_along_axis(networks.of(RINGS), networks.sizes.ring_rotations, networks.sizes.ring_trials)


def tables(networks: Networks) -> dict[str, pd.DataFrame]:
    """All numbers of the figure, by the name of their file."""
    found = {}
    if DECODED in networks:
        try:
            kind = kinds(networks)
            found["B-weights"] = pd.DataFrame({"time": kind.times} | kind.over_time)
            found["B-decision"] = pd.DataFrame(
                [(name, *values) for name, values in kind.weights.items()], columns=["kind", "weight", "low", "high"]
            ).assign(decision=kind.decision, swaps=kind.swaps)
        except LapsusError:
            pass
    if RINGS in networks:
        parts = []
        for name, probes in CONFIGURATIONS.items():
            projected, _ = rings(networks, probes)
            columns = {
                "configuration": name,
                "free_colour": projected.free,
                "fixed_cued": projected.fixed_cued,
                "swap": projected.swap,
            }
            parts.append(pd.DataFrame(columns | {f"PC{k + 1}": projected.points[:, k] for k in range(3)}))
        found["C-rings"] = pd.concat(parts, ignore_index=True)
        fitted = normals(networks)
        same, opposite = same_and_opposite(fitted.cued)
        found["D-normal-alignment"] = pd.DataFrame(
            {
                "pairs": ["same"] * len(same) + ["opposite"] * len(opposite),
                "alignment": np.concatenate([same, opposite]),
            }
        )
        found["D-roc-area"] = pd.DataFrame({"configuration": np.arange(len(fitted.area)), "area": fitted.area})
    return found


def same_and_opposite(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|cos| of normals [configuration, colour, unit] between location pairs, same and opposite fixed colour."""
    count = vectors.shape[1]
    same = np.concatenate([pairwise_cosine(vectors[:, c]) for c in range(count)])
    opposite = np.concatenate(
        [pairwise_cosine(vectors[:, c], vectors[:, (c + count // 2) % count]) for c in range(count)]
    )
    return same[np.isfinite(same)], opposite[np.isfinite(opposite)]


# --- Panels ---


def ring_scatter(ax: Any, projected: RingProjection, *, fixed_cued: bool) -> Any:
    """Single trials in three components, coloured by the free item's colour; crosses are swaps. Takes 3-D axes."""
    own = projected.fixed_cued == fixed_cued
    for swap, marker, size, width in ((False, "o", 3.0, 0), (True, "x", 6.0, 0.6)):
        chosen = own & (projected.swap == swap)
        ax.scatter(
            *projected.points[chosen].T,
            c=wheel(projected.free[chosen]),
            marker=marker,
            s=size,
            linewidths=width,
            depthshade=False,
            rasterized=True,
        )
    ax.tick_params(length=0, pad=-6)
    for axis in "xyz":
        getattr(ax, f"set_{axis}label")(f"PC{'xyz'.index(axis) + 1}", labelpad=-14, fontsize=6)
        getattr(ax, f"set_{axis}ticklabels")([])
    ax.view_init(elev=16, azim=-60)
    ax.set_box_aspect((1.2, 1.2, 0.9), zoom=1.35)
    return ax


def normal_histogram(ax: Axes, same: np.ndarray, opposite: np.ndarray, dimension: float) -> Axes:
    """|cos| of the rings' normals across location pairs: same fixed colour, opposite one, random vectors."""
    edges = np.linspace(0, 1, 21)
    ax.hist(
        random_alignment(max(2, round(dimension))),
        edges,
        density=True,
        histtype="step",
        color=GREY,
        ls=(0, (2, 1)),
        label="random vectors",
    )
    ax.hist(opposite, edges, density=True, color=SWAP, alpha=0.55, label=f"opposite colour (n = {len(opposite):,})")
    ax.hist(same, edges, density=True, color=CORRECT, alpha=0.55, label=f"same colour (n = {len(same):,})")
    ax.set(xlabel="|cos| of the rings' normals between location pairs", ylabel="density", xlim=(0, 1))
    ax.legend(loc="upper center", fontsize=5.5)
    return ax


def roc_panel(ax: Axes, scores: np.ndarray, swap: np.ndarray, areas: np.ndarray) -> Axes:
    """ROC curve of swaps against correct trials along the rings' normal, held out."""
    area = roc_area(scores, swap)
    false, true = roc_curve(scores, swap)
    step = max(1, len(false) // 2000)
    ax.plot([0, 1], [0, 1], color=GREY, lw=0.6, ls=(0, (3, 2)))
    ax.plot(false[::step], true[::step], color="k")
    ax.set(
        aspect="equal",
        xlabel="correct trials above criterion",
        ylabel="swaps above criterion",
        xticks=[0, 1],
        yticks=[0, 1],
    )
    sd = np.nanstd(areas)
    ax.set_title(
        f"area {area:.2f} ({np.nanmean(areas):.2f} ± {sd:.2f} over\nlocations; {swap.sum():,} swaps)", fontsize=5.5
    )
    return ax


def _kinds(ax: Axes, networks: Networks) -> Axes:
    found = kinds(networks)
    ax.set_title(f"{found.decision} (predictions {found.angle:.0f}° apart, {found.swaps:,} swaps)", fontsize=6, pad=9)
    return weights_panel(ax, found)


def _histogram(ax: Axes, networks: Networks) -> Axes:
    found = normals(networks)
    if not np.isfinite(found.cued).any():
        raise LapsusError(NO_SWAPS)
    return normal_histogram(ax, *same_and_opposite(found.cued), found.dimension)


def _roc(ax: Axes, networks: Networks) -> Axes:
    found = normals(networks)
    return roc_panel(ax, found.scores, found.swap, found.area)


def figure(networks: Networks) -> Figure:
    """Figure 4 of the paper."""
    from matplotlib import pyplot as plt

    with style():
        fig = plt.figure(figsize=(TEXT_WIDTH, 7.8))
        top, second, third, bottom = fig.add_gridspec(
            4, 1, height_ratios=(0.75, 1, 2.9, 1.2), hspace=0.42, left=0.1, right=0.98, top=0.96, bottom=0.06
        )
        a = error_schematic(fig.add_subplot(top))
        letter(a, "A", y=0.85)
        b = panel(fig.add_subplot(second), _kinds, networks)
        letter(b, "B", y=1.02)
        cells = third.subgridspec(2, 3, width_ratios=(1, 1, 0.38), wspace=0.0, hspace=0.32)
        for i, (name, probes) in enumerate(CONFIGURATIONS.items()):
            for j, fixed_cued in enumerate((True, False)):
                role = "fixed colour cued" if fixed_cued else "free colour cued"
                if RINGS in networks:
                    ax = ring_scatter(
                        fig.add_subplot(cells[i, j], projection="3d"), rings(networks, probes)[0], fixed_cued=fixed_cued
                    )
                else:
                    ax = note(fig.add_subplot(cells[i, j]), f"no network {RINGS}")
                ax.set_title(f"{name}: {role}", fontsize=6.5, pad=2)
                if i == j == 0:
                    ax.annotate("C", (-0.32, 0.98), xycoords="axes fraction", fontsize=9, fontweight="bold")
        key = fig.add_subplot(cells[:, 2])
        key.axis("off")
        wheel_key(key, (0.1, 0.5, 0.8, 0.3), "free item's colour")
        key.scatter([0.3], [0.3], color=wheel(FIXED), s=40, transform=key.transAxes)
        key.text(0.42, 0.3, "fixed", transform=key.transAxes, va="center", fontsize=6)
        count = f"n = {rings(networks, CONFIGURATIONS['close, 45°'])[1]:,} a row\n" if RINGS in networks else ""
        key.text(
            0.5,
            0.2,
            f"• correct   × swap\n{count}{LABELS[RINGS]}",
            transform=key.transAxes,
            ha="center",
            va="top",
            fontsize=6,
        )
        row = bottom.subgridspec(1, 2, wspace=0.28, width_ratios=(1.5, 1))
        d = panel(fig.add_subplot(row[0]), _histogram, networks)
        letter(d, "D")
        panel(fig.add_subplot(row[1]), _roc, networks)
    return fig
