"""Causal inference in cue combination: task, posteriors of the ideal observer and of the network, their distance over
all cues.

Paper: appendix "Extension to cue combination tasks" and its three figures.
"""

from functools import lru_cache

import numpy as np
import pandas as pd
import torch
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from lapsus.behaviour import CausalInference
from lapsus.mechanism import cue_grid as study
from lapsus.paper.roles import Networks
from lapsus.paper.schematics import arrow, blank
from lapsus.plots.style import GREEN, ORANGE, PURPLE, SKY, TEXT_WIDTH, VERMILION, letter, panel, style
from lapsus.statistics.intervals import Interval, rate_interval, resampled_interval
from lapsus.tasks import CueCombination

__all__ = [
    "ROLE",
    "cues_on_grid",
    "example_cdfs",
    "figure",
    "graphical_model",
    "ks_interval",
    "ks_map",
    "posterior_map",
    "slices",
    "summary",
    "tables",
    "task",
]

ROLE = "cue-combination"
SLICES = (-2.5, -1.2, 0.0, 0.9, 1.6)
SLICE_COLOURS = (SKY, GREEN, PURPLE, ORANGE, VERMILION)


# --- Numbers ---


@lru_cache(maxsize=4)
def cues_on_grid(networks: Networks) -> xr.Dataset:
    """The network on a grid of cues (study.cues)."""
    return study.cues_on_grid(networks.model(ROLE), networks.sizes.cue_grid, networks.sizes.cue_samples)


@lru_cache(maxsize=4)
def along_vision(networks: Networks) -> xr.Dataset:
    """The network along visual cues, the auditory one at 0 (study.cues)."""
    return study.along_vision(networks.model(ROLE), networks.sizes.cue_points, networks.sizes.cue_samples)


def ks_interval(networks: Networks, quantile: float) -> Interval:
    """A quantile of the KS distance over the cells of the grid, with its interval by resampling cells."""
    ks = cues_on_grid(networks)["ks"].to_numpy().ravel()
    drawn = ks[np.random.default_rng(0).integers(len(ks), size=(2000, len(ks)))]
    return resampled_interval(float(np.quantile(ks, quantile)), np.quantile(drawn, quantile, axis=1))


def modes_interval(networks: Networks) -> Interval:
    """Share of pairs of cues with two modes for which the network has both, with its interval."""
    sizes = networks.sizes
    return rate_interval(study.modes_on_grid(networks.model(ROLE), sizes.cue_modes_grid, sizes.cue_samples))


def summary(networks: Networks) -> dict:
    """What `lapsus reproduce cue-combination --json` prints: plain numbers."""
    found = cues_on_grid(networks)
    two = found["bimodal"].to_numpy()
    return {
        "ks_median": found.attrs["ks_median"],
        "ks_p95": found.attrs["ks_p95"],
        "ks_max": float(found["ks"].max()),
        "ks_median_exact": float(found["exact_ks"].median()),
        "ks_p95_exact": float(found["exact_ks"].quantile(0.95)),
        "ks_median_noise": found.attrs["noise_median"],
        "ks_p95_noise": found.attrs["noise_p95"],
        "cells": int(two.size),
        "samples": found.attrs["samples"],
        "bimodal_cells": int(two.sum()),
        "both_modes": float(found["both_modes"].to_numpy()[two].mean()),
        "both_modes_target": float(found["target_both_modes"].to_numpy()[two].mean()),
        "mode_mass_least": float(found["mode_mass"].to_numpy()[two].min()),
    }


def tables(networks: Networks) -> dict[str, pd.DataFrame]:
    """Numbers of the figure by the name of their file; none without the network."""
    if ROLE not in networks:
        return {}
    cells = (
        cues_on_grid(networks)[["ks", "exact_ks", "bimodal", "both_modes", "mode_mass"]].to_dataframe().reset_index()
    )
    return {"ks": cells, "summary": pd.DataFrame([summary(networks)])}


# --- Panels ---


def task(ax: Axes, epochs: dict[str, int]) -> Axes:
    """The trial: both cues at once, then the estimate."""
    blank(ax, 5.6, 2.15).set_aspect("equal")
    labels = {"prestimulus": "prestimulus", "stimulus": "both cues", "denoise": "delay (estimate at its end)"}
    widths = (1.3, 1.5, 2.3)
    x = 0.1
    for (name, steps), width in zip(epochs.items(), widths, strict=True):
        ax.add_patch(Rectangle((x, 0.75), width, 1.15, fc="0.94", ec="0.4", lw=0.7))
        if name != "prestimulus":
            ax.plot([x + 0.15, x + width - 0.15], [1.05, 1.05], color="0.4", lw=0.8)
        if name == "stimulus":
            ax.plot(x + 0.95, 1.05, marker="*", ms=9, color=ORANGE, mec="0.3", mew=0.4)
            ax.text(x + 0.95, 1.4, "flash $s_v$", ha="center", fontsize=6)
            ax.plot(x + 0.4, 1.05, marker="^", ms=6, color=SKY, mec="0.3", mew=0.4)
            ax.text(x + 0.4, 1.62, "sound $s_a$", ha="center", fontsize=6)
            ax.plot([x + 0.4, x + 0.4], [1.2, 1.56], color="0.6", lw=0.5)
        elif name == "denoise":
            place = np.linspace(x + 0.2, x + width - 0.2, 200)
            bump = 0.42 * np.exp(-(((place - x - 0.8) / 0.3) ** 2)) + 0.5 * np.exp(-(((place - x - 1.55) / 0.12) ** 2))
            ax.fill_between(place, 1.05, 1.05 + bump, color="0.75", lw=0)
            ax.text(x + width / 2 + 0.02, 1.66, r"$x_T \sim p(z_a\,|\,s_v, s_a)$", ha="center", fontsize=6)
        ax.text(
            x + width / 2,
            0.66,
            f"{labels[name]}\n{steps} steps, {0.05 * steps:.2f} s",
            ha="center",
            va="top",
            fontsize=6,
        )
        x += width + 0.1
    return ax


def graphical_model(ax: Axes) -> Axes:
    """C decides whether the visual source is the auditory one; the cues are noisy views of the sources."""
    blank(ax, 3.2, 2.15).set_aspect("equal")
    places = {"C": (0.45, 1.75), "z_v": (1.3, 1.2), "z_a": (2.4, 1.2), "s_v": (1.3, 0.4), "s_a": (2.4, 0.4)}
    radius = 0.24
    for name, (x, y) in places.items():
        ax.add_patch(Circle((x, y), radius, fc="0.85" if name[0] == "s" else "white", ec="0.3", lw=0.8))
        ax.text(x, y, f"${name}$", ha="center", va="center", fontsize=7)
    for start, end in (("C", "z_v"), ("z_a", "z_v"), ("z_v", "s_v"), ("z_a", "s_a")):
        a, b = np.array(places[start]), np.array(places[end])
        step = radius * (b - a) / np.linalg.norm(b - a)
        arrow(ax, a + step, b - step, shrinkA=0, shrinkB=0)
    ax.text(0.75, 1.95, "$C$ = 1: one source, $z_v = z_a$", fontsize=6, va="center")
    return ax


def posterior_map(ax: Axes, s_v: np.ndarray, z_a: np.ndarray, density: np.ndarray, title: str) -> QuadMesh:
    """Density [s_v, z_a] as shades; dashed: where either hypothesis alone would put the sound. Returns the image."""
    image = ax.pcolormesh(s_v, z_a, density.T, cmap="magma", vmin=0, vmax=1.0, shading="nearest", rasterized=True)
    ax.axhline(0, color="w", lw=0.6, ls=(0, (4, 3)))
    ax.plot([-2.6, 2.6], [-2.6, 2.6], color="w", lw=0.6, ls=(0, (4, 3)))
    for place, colour in zip(SLICES, SLICE_COLOURS, strict=True):
        ax.plot([place, place], [-2.6, -2.15], color=colour, lw=2)
    ax.set(
        xlabel="visual cue $s_v$ ($\\sigma_p$)", ylim=(-2.6, 2.6), xlim=(-3, 3), xticks=[-3, 0, 3], yticks=[-2, 0, 2]
    )
    ax.set_title(title)
    return image


def slices(axes: list[Axes], along: xr.Dataset) -> None:
    """Histogram of the network's responses and the target's density (black), one panel a visual cue."""
    for ax, place, colour in zip(axes, SLICES, SLICE_COLOURS, strict=True):
        here = along.sel(s_v=place, method="nearest")
        ax.hist(here["responses"], bins=np.linspace(-2.6, 2.6, 53), density=True, color=colour, alpha=0.75, lw=0)
        ax.plot(along["z_a"], here["density"], color="k", lw=0.9)
        ax.set(xlim=(-2.6, 2.6), ylim=(0, 1.4), xticks=[-2, 0, 2], yticks=[])
        ax.set_title(f"$s_v$ = {float(here['s_v']):.1f}", fontsize=6)
        ax.spines["left"].set_visible(False)


def _examples(ks: np.ndarray) -> list[tuple[int, int]]:
    """Cells at the 5th, 35th, 65th, 95th and 100th percentile of the KS distance."""
    order = np.argsort(ks.ravel())
    return [
        np.unravel_index(order[round(share * (len(order) - 1))], ks.shape) for share in (0.05, 0.35, 0.65, 0.95, 1.0)
    ]


def ks_map(ax: Axes, found: xr.Dataset) -> QuadMesh:
    """KS distance for every pair of cues; dots mark the examples. Returns the image."""
    cues, ks = found["s_v"].to_numpy(), found["ks"].to_numpy()
    image = ax.pcolormesh(
        cues, cues, ks.T, cmap="cividis", vmin=0, vmax=max(0.15, float(np.quantile(ks, 0.99))), rasterized=True
    )
    for (i, j), colour in zip(_examples(ks), SLICE_COLOURS, strict=True):
        ax.plot(cues[i], cues[j], "o", ms=4.5, mfc=colour, mec="w", mew=0.7)
    ax.set(
        xlabel="visual cue $s_v$ ($\\sigma_p$)",
        ylabel="auditory cue $s_a$ ($\\sigma_p$)",
        xticks=[-3, 0, 3],
        yticks=[-3, 0, 3],
    )
    ax.set_title(
        f"median {found.attrs['ks_median']:.3f}, 95th percentile {found.attrs['ks_p95']:.3f}\n"
        f"(sampling noise alone {found.attrs['noise_median']:.3f}, {found.attrs['noise_p95']:.3f})",
        fontsize=6,
    )
    return image


def example_cdfs(axes: list[Axes], found: xr.Dataset, behaviour: CausalInference) -> None:
    """Target (black) and empirical CDF of five cells, and where they are farthest apart (red)."""
    cues, ks = found["s_v"].to_numpy(), found["ks"].to_numpy()
    for ax, (i, j), colour in zip(axes, _examples(ks), SLICE_COLOURS, strict=True):
        x = np.sort(found["responses"].to_numpy()[i, j])
        conditions = {"s_v": torch.tensor(cues[i : i + 1]), "s_a": torch.tensor(cues[j : j + 1])}
        steps = np.arange(1, len(x) + 1) / len(x)
        target = study.of_target(behaviour.cdf, x, conditions)[0]
        far = int(np.argmax(np.abs(steps - target)))
        ax.plot(study.X, study.of_target(behaviour.cdf, study.X, conditions)[0], color="k", lw=0.9)
        ax.plot(x, steps, color=colour)
        ax.plot([x[far], x[far]], sorted((steps[far], target[far])), color="red", lw=1.5)
        ax.set(xlim=(-3.5, 3.5), ylim=(0, 1), xticks=[-3, 0, 3], yticks=[])
        ax.set_title(f"$s_v$ {cues[i]:.1f}\n$s_a$ {cues[j]:.1f}\nKS {ks[i, j]:.3f}", fontsize=6)


# --- The figure ---


def _network_panels(ax: Axes, networks: Networks) -> Axes:
    """Everything that needs the network, in the area of one axes."""
    along, found = along_vision(networks), cues_on_grid(networks)
    ax.axis("off")
    fig = ax.get_figure()
    top, bottom = ax.get_subplotspec().subgridspec(2, 1, hspace=0.62)
    left, right = top.subgridspec(1, 2, width_ratios=(1.25, 1.5), wspace=0.14)
    maps = left.subgridspec(1, 3, width_ratios=(1, 1, 0.07), wspace=0.16)
    ideal, network = fig.add_subplot(maps[0]), fig.add_subplot(maps[1])
    posterior_map(ideal, along["s_v"], along["z_a"], along["density"].to_numpy(), "ideal observer")
    edges = np.linspace(-4, 4, 101)
    counts = np.stack([np.histogram(row, edges, density=True)[0] for row in along["responses"].to_numpy()])
    image = posterior_map(
        network, along["s_v"], (edges[1:] + edges[:-1]) / 2, counts, f"network (n = {along.sizes['sample']:,} each)"
    )
    fig.colorbar(image, cax=fig.add_subplot(maps[2]), ticks=[0, 0.5, 1], extend="max")
    ideal.set_ylabel("auditory source $z_a$ ($\\sigma_p$)")
    network.set_yticklabels([])
    letter(ideal, "C")
    row = right.subgridspec(1, len(SLICES), wspace=0.12)
    axes = [fig.add_subplot(row[k]) for k in range(len(SLICES))]
    slices(axes, along)
    axes[2].set_xlabel("auditory source $z_a$ ($\\sigma_p$); bars: network, line: ideal observer")
    letter(axes[0], "D")
    left, right = bottom.subgridspec(1, 2, width_ratios=(1, 1.85), wspace=0.3)
    cells = left.subgridspec(1, 2, width_ratios=(1, 0.06), wspace=0.06)
    a = fig.add_subplot(cells[0])
    fig.colorbar(ks_map(a, found), cax=fig.add_subplot(cells[1]), label="KS distance", extend="max")
    letter(a, "E")
    row = right.subgridspec(1, 5, wspace=0.12)
    axes = [fig.add_subplot(row[k]) for k in range(5)]
    example_cdfs(axes, found, study.task_and_target(networks.model(ROLE))[1])
    axes[0].set(ylabel="cumulative probability", yticks=[0, 0.5, 1])
    axes[2].set_xlabel(
        f"auditory source $z_a$ ($\\sigma_p$); coloured: network (n = {found.attrs['samples']:,}), black: ideal"
    )
    letter(axes[0], "F")
    return ax


def figure(networks: Networks) -> Figure:
    """Cue combination, all panels: what is shown, what is inferred, and how close the network comes."""
    from matplotlib import pyplot as plt

    with style():
        fig = plt.figure(figsize=(TEXT_WIDTH, 6.0))
        head, body = fig.add_gridspec(
            2, 1, height_ratios=(1, 2.9), hspace=0.13, left=0.07, right=0.985, top=0.96, bottom=0.075
        )
        a, b = (fig.add_subplot(part) for part in head.subgridspec(1, 2, width_ratios=(5.6, 3.2), wspace=0.05))
        task(a, CueCombination().epochs)
        graphical_model(b)
        letter(a, "A", x=0.03, y=0.86)
        letter(b, "B", x=0.03, y=0.86)
        panel(fig.add_subplot(body), _network_panels, networks)
    return fig
