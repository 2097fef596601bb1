"""Causal inference in cue combination: task, posteriors of the ideal observer and of the network, their distance over
all cues.

Paper: appendix "Extension to cue combination tasks" and its three figures.
"""

from functools import lru_cache

import numpy as np
import pandas as pd
import torch
import xarray as xr
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from lapsus.mechanism import cue_grid as study
from lapsus.paper.roles import Networks
from lapsus.paper.schematics import draw
from lapsus.plots.style import GREEN, ORANGE, PURPLE, SKY, TEXT_WIDTH, VERMILION, letter, panel, style
from lapsus.statistics.intervals import Interval, rate_interval, resampled_interval

ROLE = "cue-combination"
VISUAL, AUDITORY, SOURCE = (
    f"{name} ($\\sigma_p$)" for name in ("visual cue $s_v$", "auditory cue $s_a$", "auditory source $z_a$")
)
# Visual cues whose posteriors are shown; percentiles of the KS distance of the pairs of cues that are shown.
SLICES, EXAMPLES = (-2.5, -1.2, 0.0, 0.9, 1.6), (0.05, 0.35, 0.65, 0.95, 1.0)
COLOURS = (SKY, GREEN, PURPLE, ORANGE, VERMILION)


# --- Numbers ---


@lru_cache(maxsize=4)
def cues_on_grid(networks: Networks) -> xr.Dataset:
    """The network on a grid of cues."""
    return study.cues_on_grid(networks.model(ROLE), networks.sizes.cue_grid, networks.sizes.cue_samples)


@lru_cache(maxsize=4)
def _along_vision(networks: Networks) -> xr.Dataset:
    """The network along visual cues, the auditory one at 0."""
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
    inside = found.where(found["bimodal"])  # NaN elsewhere, which means and minima skip
    numbers = {
        "ks_median": found.attrs["ks_median"],
        "ks_p95": found.attrs["ks_p95"],
        "ks_max": found["ks"].max(),
        "ks_median_exact": found["exact_ks"].median(),
        "ks_p95_exact": found["exact_ks"].quantile(0.95),
        "ks_median_noise": found.attrs["noise_median"],
        "ks_p95_noise": found.attrs["noise_p95"],
        "both_modes": inside["both_modes"].mean(),
        "both_modes_target": inside["target_both_modes"].mean(),
        "mode_mass_least": inside["mode_mass"].min(),
    }
    counts = {"cells": two.size, "samples": found.attrs["samples"], "bimodal_cells": int(two.sum())}
    return {name: float(value) for name, value in numbers.items()} | counts


def table(networks: Networks) -> pd.DataFrame:
    """KS distance and modes of every pair of cues."""
    cells = cues_on_grid(networks)[["ks", "exact_ks", "bimodal", "both_modes", "mode_mass"]]
    return cells.to_dataframe().reset_index()


# --- Panels ---


def _posterior_map(ax: Axes, s_v: xr.DataArray, z_a: np.ndarray, density: np.ndarray, title: str) -> QuadMesh:
    """Density [s_v, z_a] as shades; dashed: where either hypothesis alone would put the sound. Returns the image."""
    image = ax.pcolormesh(s_v, z_a, density.T, cmap="magma", vmin=0, vmax=1.0, shading="nearest", rasterized=True)
    for one_source in ((0, 0), (-2.6, 2.6)):
        ax.plot((-2.6, 2.6), one_source, color="w", lw=0.6, ls=(0, (4, 3)))
    ax.vlines(SLICES, -2.6, -2.15, colors=COLOURS, lw=2)
    ax.set(xlabel=VISUAL, ylim=(-2.6, 2.6), xlim=(-3, 3), xticks=[-3, 0, 3], yticks=[-2, 0, 2], title=title)
    return image


def _slices(axes: np.ndarray, along: xr.Dataset) -> None:
    """Histogram of the network's responses and the target's density (black), one panel per visual cue."""
    for ax, place, colour in zip(axes, SLICES, COLOURS):
        here = along.sel(s_v=place, method="nearest")
        ax.hist(here["responses"], bins=np.linspace(-2.6, 2.6, 53), density=True, color=colour, alpha=0.75, lw=0)
        ax.plot(along["z_a"], here["density"], color="k", lw=0.9)
        ax.set(xlim=(-2.6, 2.6), ylim=(0, 1.4), xticks=[-2, 0, 2], yticks=[])
        ax.set_title(f"$s_v$ = {float(here['s_v']):.1f}", fontsize=6)
        ax.spines["left"].set_visible(False)
    axes[2].set_xlabel(f"{SOURCE}; bars: network, line: ideal observer")


def _examples(ks: np.ndarray) -> list[tuple[int, int]]:
    """Cells at some percentiles of the KS distance."""
    order = np.argsort(ks.ravel())
    return [np.unravel_index(order[round(share * (len(order) - 1))], ks.shape) for share in EXAMPLES]


def _ks_map(ax: Axes, found: xr.Dataset) -> QuadMesh:
    """KS distance for every pair of cues; dots mark the examples. Returns the image."""
    cues, ks = found["s_v"].to_numpy(), found["ks"].to_numpy()
    highest = max(0.15, float(np.quantile(ks, 0.99)))
    image = ax.pcolormesh(cues, cues, ks.T, cmap="cividis", vmin=0, vmax=highest, rasterized=True)
    for (i, j), colour in zip(_examples(ks), COLOURS):
        ax.plot(cues[i], cues[j], "o", ms=4.5, mfc=colour, mec="w", mew=0.7)
    ax.set(xlabel=VISUAL, ylabel=AUDITORY, xticks=[-3, 0, 3], yticks=[-3, 0, 3])
    noise = "(sampling noise alone {noise_median:.3f}, {noise_p95:.3f})"
    title = "median {ks_median:.3f}, 95th percentile {ks_p95:.3f}\n" + noise
    ax.set_title(title.format(**found.attrs), fontsize=6)
    return image


def _example_cdfs(axes: np.ndarray, found: xr.Dataset, networks: Networks) -> None:
    """Target (black) and empirical CDF of five cells, and where they are farthest apart (red)."""
    cdf = study.task_and_target(networks.model(ROLE))[1].cdf
    cues, ks = found["s_v"].to_numpy(), found["ks"].to_numpy()
    for ax, (i, j), colour in zip(axes, _examples(ks), COLOURS):
        conditions = {"s_v": torch.tensor(cues[[i]]), "s_a": torch.tensor(cues[[j]])}
        x = np.sort(found["responses"].to_numpy()[i, j])
        reached = np.arange(1, len(x) + 1) / len(x)
        wanted = study.of_target(cdf, x, conditions)[0]
        far = int(np.argmax(np.abs(reached - wanted)))
        ax.plot(study.X, study.of_target(cdf, study.X, conditions)[0], color="k", lw=0.9)
        ax.plot(x, reached, color=colour)
        ax.vlines(x[far], reached[far], wanted[far], colors="red", lw=1.5)
        ax.set(xlim=(-3.5, 3.5), ylim=(0, 1), xticks=[-3, 0, 3], yticks=[])
        ax.set_title(f"$s_v$ {cues[i]:.1f}\n$s_a$ {cues[j]:.1f}\nKS {ks[i, j]:.3f}", fontsize=6)
    axes[0].set(ylabel="cumulative probability", yticks=[0, 0.5, 1])
    axes[2].set_xlabel(f"{SOURCE}; coloured: network (n = {found.attrs['samples']:,}), black: ideal")


def _network_panels(ax: Axes, networks: Networks) -> Axes:
    """Everything that needs the network, in the area of one axes."""
    along, found = _along_vision(networks), cues_on_grid(networks)
    ax.axis("off")
    top, bottom = ax.get_subplotspec().subgridspec(2, 1, hspace=0.62)
    left, right = top.subgridspec(1, 2, width_ratios=(1.25, 1.5), wspace=0.14)
    ideal, network, bar = left.subgridspec(1, 3, width_ratios=(1, 1, 0.07), wspace=0.16).subplots()
    _posterior_map(ideal, along["s_v"], along["z_a"], along["density"].to_numpy(), "ideal observer")
    edges = np.linspace(-4, 4, 101)
    counts = np.stack([np.histogram(row, edges, density=True)[0] for row in along["responses"].to_numpy()])
    middles, title = (edges[1:] + edges[:-1]) / 2, f"network (n = {along.sizes['sample']:,} each)"
    image = _posterior_map(network, along["s_v"], middles, counts, title)
    ax.figure.colorbar(image, cax=bar, ticks=[0, 0.5, 1], extend="max")
    ideal.set_ylabel(SOURCE)
    network.set_yticklabels([])
    slices = right.subgridspec(1, len(SLICES), wspace=0.12).subplots()
    _slices(slices, along)
    left, right = bottom.subgridspec(1, 2, width_ratios=(1, 1.85), wspace=0.3)
    cells, bar = left.subgridspec(1, 2, width_ratios=(1, 0.06), wspace=0.06).subplots()
    ax.figure.colorbar(_ks_map(cells, found), cax=bar, label="KS distance", extend="max")
    cdfs = right.subgridspec(1, len(EXAMPLES), wspace=0.12).subplots()
    _example_cdfs(cdfs, found, networks)
    for one, name in zip((ideal, slices[0], cells, cdfs[0]), "CDEF"):
        letter(one, name)
    return ax


def figure(networks: Networks) -> Figure:
    """Cue combination, all panels: what is shown, what is inferred, and how close the network comes."""
    with style():
        fig = plt.figure(figsize=(TEXT_WIDTH, 6.0))
        head, body = fig.add_gridspec(
            2, 1, height_ratios=(1, 2.9), hspace=0.13, left=0.07, right=0.985, top=0.96, bottom=0.075
        )
        a, b = head.subgridspec(1, 2, width_ratios=(5.6, 3.2), wspace=0.05).subplots()
        letter(draw(a, "cues"), "A", x=0.03, y=0.86)
        letter(draw(b, "causes"), "B", x=0.03, y=0.86)
        panel(fig.add_subplot(body), _network_panels, networks)
    return fig
