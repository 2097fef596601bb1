"""Figure 4: when swaps arise, and the two rings of the report subspace."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.analysis.activity import memory, two_items
from lapsus.analysis.decoders import ALTERNATIVES, ErrorProjections, attribute, error_projections
from lapsus.analysis.rings import (
    RingProjection,
    fit_rings,
    pairwise_alignment,
    random_alignment,
    ring_geometry,
    roc_area,
    roc_curve,
)
from lapsus.errors import LapsusError
from lapsus.paper.roles import LABELS, Networks
from lapsus.paper.schematics import error_schematic
from lapsus.plots.axes import error_panel
from lapsus.plots.style import CORRECT, GREY, SWAP, TEXT_WIDTH, letter, note, panel, style, wheel, wheel_key
from lapsus.study.designs import grid, ring_design

__all__ = [
    "PC3",
    "figure",
    "pc3_histogram",
    "projections",
    "ring_scatter",
    "rings",
    "roc_panel",
    "tables",
    "third_components",
]

DECODED, RINGS = "index-constant-10", "feature-smooth-0"
FIXED = -np.pi / 2
# Conditions of one trial each for the decoders; fixed colours, rotations and trials a condition for PC3.
DECODED_TRIALS = 4096
COLOURS, ROTATIONS, TRIALS = 12, 4, 16
CONFIGURATIONS = {"close, 45°": (0.0, np.pi / 4), "far, 180°": (0.0, np.pi)}


# --- Numbers ---


@lru_cache(maxsize=4)
def projections(networks: Networks, role: str = DECODED) -> ErrorProjections:
    """Places of 4,096 single trials, each of its own condition, on the lines to the three errors."""
    return error_projections(networks.simulate(role, DECODED_TRIALS, 1, seed=21))


@lru_cache(maxsize=4)
def projection_table(networks: Networks) -> pd.DataFrame:
    """Mean, SEM and p-value of these places at each time step."""
    return projections(networks).table()


@lru_cache(maxsize=8)
def rings(networks: Networks, probes: tuple[float, float], role: str = RINGS) -> tuple[RingProjection, int]:
    """Trials of one pair of locations and one fixed colour in their components, and how many there are."""
    dataset = networks.simulate(role, ring_design(np.array([FIXED]), np.array([probes]), free=48), TRIALS, seed=22)
    return ring_geometry(dataset)[1], dataset.sizes["trial"]


@dataclass(frozen=True)
class PC3:
    """Third components for each location pair and fixed colour, and how well they separate swaps.

    vectors: [configuration, colour, unit]; colours: [colour] radians; area: [configuration] held-out ROC area, NaN
    without swaps; scores, swap: held-out PC3 coordinates of all trials with the fixed colour cued, and which were
    swaps.
    """

    vectors: np.ndarray
    colours: np.ndarray
    area: np.ndarray
    scores: np.ndarray
    swap: np.ndarray


@lru_cache(maxsize=4)
def third_components(networks: Networks, role: str = RINGS) -> PC3:
    """PC3 for 12 fixed colours and 20 location pairs (five distances in four rotations)."""
    starts = grid(ROTATIONS)
    distances = np.radians([45, 75, 105, 135, 165])
    probes = np.array([(start, start + gap) for gap in distances for start in starts])
    fixed = grid(COLOURS)
    vectors, area, scores, swaps = [], [], [], []
    for k, pair in enumerate(probes):
        dataset = networks.simulate(role, ring_design(fixed, pair[None], both=False), TRIALS, seed=100 + k)
        found = third_components_of(dataset)
        vectors.append(found[0])
        scores.append(found[1])
        swaps.append(found[2])
        area.append(roc_area(found[1], found[2]) if 0 < found[2].sum() < len(found[2]) else np.nan)
    return PC3(np.stack(vectors), fixed, np.array(area), np.concatenate(scores), np.concatenate(swaps))


def third_components_of(dataset: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """PC3 of each fixed colour [colour, unit], held-out z-scored coordinates along it [trial] and swaps [trial]; item 1
    cued throughout.

    For the coordinates, components and their sign (swaps positive) come from the other half of the trials.
    """
    swap = two_items(dataset).swap
    m = memory(dataset.isel(time=[-1]))[:, 0]
    label = dataset["fixed_colour"].to_numpy()
    vectors, scores = [], np.zeros(len(m))
    half = np.arange(len(m)) % 2
    for colour in np.unique(label):
        own = label == colour
        vectors.append(fit_rings(m[own]).components[2])
        for side in (0, 1):
            train, test = own & (half != side), own & (half == side)
            fitted = fit_rings(m[train])
            height = (m - fitted.mean) @ fitted.components[2]
            height = (height - height[train].mean()) / height[train].std()
            sign = 1.0
            if 0 < swap[train].sum() < train.sum():
                sign = 1.0 if height[train & swap].mean() > height[train & ~swap].mean() else -1.0
            scores[test] = sign * height[test]
    return np.stack(vectors), scores, swap


def tables(networks: Networks) -> dict[str, pd.DataFrame]:
    """All numbers of the figure, by the name of their file."""
    found = {}
    if DECODED in networks:
        try:
            found["B-decoders"] = projection_table(networks)
            found["B-attribution"] = attribute(projections(networks)).rename_axis("error").reset_index()
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
        pc3 = third_components(networks)
        same, opposite = same_and_opposite(pc3)
        found["D-pc3-alignment"] = pd.DataFrame(
            {
                "pairs": ["same"] * len(same) + ["opposite"] * len(opposite),
                "alignment": np.concatenate([same, opposite]),
            }
        )
        found["D-roc-area"] = pd.DataFrame({"configuration": np.arange(len(pc3.area)), "area": pc3.area})
    return found


def same_and_opposite(pc3: PC3) -> tuple[np.ndarray, np.ndarray]:
    """|cos| of PC3 between location pairs with the same fixed colour, and with the opposite one."""
    count = len(pc3.colours)
    same = np.concatenate([pairwise_alignment(pc3.vectors[:, c]) for c in range(count)])
    opposite = np.concatenate(
        [pairwise_alignment(pc3.vectors[:, c], pc3.vectors[:, (c + count // 2) % count]) for c in range(count)]
    )
    return same, opposite


# --- Panels ---


def ring_scatter(ax, projected: RingProjection, *, fixed_cued: bool):
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


def pc3_histogram(ax: Axes, same: np.ndarray, opposite: np.ndarray, units: int) -> Axes:
    """|cos| of PC3 across location pairs: same fixed colour, opposite one, random vectors."""
    edges = np.linspace(0, 1, 21)
    ax.hist(
        random_alignment(units),
        edges,
        density=True,
        histtype="step",
        color=GREY,
        ls=(0, (2, 1)),
        label="random vectors",
    )
    ax.hist(opposite, edges, density=True, color=SWAP, alpha=0.55, label=f"opposite colour (n = {len(opposite):,})")
    ax.hist(same, edges, density=True, color=CORRECT, alpha=0.55, label=f"same colour (n = {len(same):,})")
    ax.set(xlabel="|cos| of PC3 between location pairs", ylabel="density", xlim=(0, 1))
    ax.legend(loc="upper center", fontsize=5.5)
    return ax


def roc_panel(ax: Axes, scores: np.ndarray, swap: np.ndarray, areas: np.ndarray) -> Axes:
    """ROC curve of swaps against correct trials by their held-out PC3."""
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


def _errors(ax: Axes, networks: Networks, name: str) -> Axes:
    return error_panel(ax, projection_table(networks), name, projections(networks).onset)


def _histogram(ax: Axes, networks: Networks) -> Axes:
    pc3 = third_components(networks)
    return pc3_histogram(ax, *same_and_opposite(pc3), pc3.vectors.shape[-1])


def _roc(ax: Axes, networks: Networks) -> Axes:
    pc3 = third_components(networks)
    return roc_panel(ax, pc3.scores, pc3.swap, pc3.area)


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
        row = second.subgridspec(1, 3, wspace=0.3, width_ratios=(0.6, 1, 1))
        for k, name in enumerate(ALTERNATIVES):
            ax = panel(fig.add_subplot(row[k]), _errors, networks, name)
            if k == 0:
                letter(ax, "B", y=1.02)
            else:
                ax.tick_params(labelleft=False)
            if k == 2 and ax.lines:
                ax.legend(loc="lower right", ncols=2, columnspacing=0.8)
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
