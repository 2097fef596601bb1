"""Figure 3: alignment of the planes that hold the two colours, before and after the cue."""

from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import colormaps, pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec

from lapsus.errors import LapsusError
from lapsus.mechanism import planes
from lapsus.mechanism.activity import cue_onset
from lapsus.paper.roles import LABELS, Networks
from lapsus.plots.style import TEXT_WIDTH, colour_of, mark_epochs, note, panel, style, wheel, wheel_key
from lapsus.statistics.intervals import limits

INDEX_NETWORKS = ("index-optimal", "index-none", "index-constant-05", "index-constant-10")
FEATURE_NETWORKS = ("feature-optimal", "feature-none", "feature-constant-05", "feature-smooth-2")
# Steps from cue offset at which planes are shown.
SHOWN = {"before": -6, "after": 40}


# --- Numbers ---


@lru_cache(maxsize=16)
def index_alignment(networks: Networks, role: str) -> xr.Dataset:
    """Alignment over time of an index-cued network: `alignment [time]` and its bootstrap samples `resampled [repeat,
    time]`."""
    return planes.alignment_at_places(networks.of(role), networks.sizes.index_trials, networks.sizes.alignment_repeats)


@lru_cache(maxsize=32)
def feature_alignment(networks: Networks, role: str) -> xr.DataArray:
    """Alignment over time of a feature-cued network: [distance (degrees), rotation, time]."""
    return planes.alignment_by_distance(networks.of(role), networks.sizes.degrees, networks.sizes.rotations)


# --- Panels ---


def _alignment_over_time(ax: Axes, curve: xr.Dataset, colour: str, label: str = "") -> None:
    """One alignment curve with its 95 % bootstrap interval."""
    time = curve["time"].to_numpy()
    ax.fill_between(time, *limits(curve["resampled"]), color=colour, alpha=0.3, lw=0)
    ax.plot(time, curve["alignment"], color=colour, label=label)
    _alignment_axes(ax, cue_onset(curve))


def alignment_by_distance(ax: Axes, curves: xr.DataArray) -> None:
    """Mean ± s.d. over rotations, one line per probe distance (violet nearest, yellow furthest)."""
    time, mean, sd = curves["time"].to_numpy(), curves.mean("rotation"), curves.std("rotation")
    shades = colormaps["viridis"](np.linspace(0, 0.92, curves.sizes["distance"]))
    for shade, degrees in zip(shades, curves["distance"].to_numpy()):
        middle, spread = mean.sel(distance=degrees), sd.sel(distance=degrees)
        ax.fill_between(time, middle - spread, middle + spread, color=shade, alpha=0.18, lw=0)
        ax.plot(time, middle, color=shade, label=f"{degrees}°")
    _alignment_axes(ax, cue_onset(curves.to_dataset(name="alignment")))


def _alignment_axes(ax: Axes, onset: float) -> None:
    mark_epochs(ax, onset)
    ax.set(ylim=(0, 1.02), xlabel="time from cue offset (steps)", ylabel="plane alignment |cos|", yticks=[0, 0.5, 1])


def _planes_3d(ax: Any, points: xr.DataArray) -> None:
    """Bin means of both items in three components, coloured by the reported colour: ○ item 1 cued, □ item 2."""
    colours = wheel(points["colour"].to_numpy())
    for xyz, marker, shade in zip(points.to_numpy(), "os", ("0.35", "0.65")):
        ax.plot(*np.concatenate([xyz, xyz[:1]]).T, color=shade, lw=0.7)
        ax.scatter(*xyz.T, c=colours, marker=marker, s=14, depthshade=False, edgecolors=shade, linewidths=0.5)
    span = np.nanmax(np.abs(points.to_numpy())) * 0.95
    ends = (-span, span)
    ax.set(xlim=ends, ylim=ends, zlim=ends, xticklabels=[], yticklabels=[], zticklabels=[])
    ax.set_xlabel("PC1", labelpad=-17, fontsize=5)
    ax.set_ylabel("PC2", labelpad=-17, fontsize=5)
    ax.tick_params(length=0, pad=-6)
    ax.view_init(elev=22, azim=-55)
    ax.set_box_aspect(None, zoom=0.98)


def _plane_cell(fig: Figure, cell: SubplotSpec, networks: Networks, role: str, degrees: int | None, when: str) -> Axes:
    """Mean activity for each cued item and reported colour, or why there is none."""
    try:
        points = planes.plane_points(networks.of(role), degrees, SHOWN[when], networks.sizes.plane_trials)
        ax = fig.add_subplot(cell, projection="3d")
        _planes_3d(ax, points)
    except LapsusError as reason:
        ax = note(fig.add_subplot(cell), str(reason))
    apart = f"{degrees}° apart" if degrees else LABELS[role]
    ax.set_title(f"{apart},\n{when} cue", pad=0, fontsize=6.5)
    return ax


def _index_panel(ax: Axes, networks: Networks, role: str, recording: xr.Dataset | None) -> Axes:
    found = index_alignment(networks, role)
    _alignment_over_time(ax, found, colour_of(role))
    if recording is not None:
        _alignment_over_time(ax, recording, "k", "recording")
        ax.legend(loc="lower right")
    ax.set_title(f"{LABELS[role]} (n = {found.attrs['trials']:,})", pad=9)
    return ax


def _feature_panel(ax: Axes, networks: Networks, role: str, _: object) -> Axes:
    found = feature_alignment(networks, role)
    alignment_by_distance(ax, found)
    ax.spines[:].set(visible=True, color=colour_of(role), linewidth=1.2)
    trials = f"n = {found.sizes['rotation']} × {found.attrs['trials']} each"
    ax.set_title(f"{LABELS[role]} ({trials})", pad=9, fontsize=6)
    return ax


def _heading(ax: Axes, name: str, cueing: str, height: float) -> None:
    for text, x, size in ((name, -0.12, 9), (cueing, 0.12, 7)):
        ax.annotate(text, (x, height), xycoords="axes fraction", fontsize=size, fontweight="bold")


def figure(networks: Networks, recording: xr.Dataset | None = None) -> Figure:
    """Figure 3 of the paper; a recording in the activity form is drawn over the index-cued networks."""
    if recording is not None:
        recording = planes.with_bootstrap(recording, networks.sizes.alignment_repeats)
    with style():
        fig = plt.figure(figsize=(TEXT_WIDTH, 5.7))
        top, middle, bottom = fig.add_gridspec(
            3, 1, height_ratios=(0.75, 1, 1), hspace=0.6, left=0.075, right=0.985, top=0.9, bottom=0.07
        )
        cells = top.subgridspec(1, 8, width_ratios=(1, 1, 1, 1, 0.12, 1, 1, 0.5), wspace=0.02)
        shapes = (("feature-smooth-2", 45), ("feature-smooth-2", 165), ("index-constant-10", None))
        cases = [(*shape, when) for shape in shapes for when in SHOWN]
        shown = [_plane_cell(fig, cells[place], networks, *case) for place, case in zip((0, 1, 2, 3, 5, 6), cases)]
        _heading(shown[0], "A", "feature-cued", 1.36)
        _heading(shown[4], "B", "index-cued", 1.36)
        key = fig.add_subplot(cells[7])
        key.axis("off")
        wheel_key(key, (0.0, 0.4, 1.1, 0.6), "reported\ncolour")
        key.text(0.55, 0.02, "○ item 1 cued\n□ item 2 cued\nup: PC3", ha="center", va="top", fontsize=5.5)
        for row, roles, draw, name, cueing in (
            (middle, INDEX_NETWORKS, _index_panel, "C", "index-cued"),
            (bottom, FEATURE_NETWORKS, _feature_panel, "D", "feature-cued"),
        ):
            axes = row.subgridspec(1, 4, wspace=0.14).subplots()
            for ax, role in zip(axes, roles):
                panel(ax, draw, networks, role, recording).label_outer()
            _heading(axes[0], name, cueing, 1.2)
            if draw is _feature_panel and axes[-1].lines:
                axes[-1].legend(title="probe distance", title_fontsize=5.5, fontsize=5.5, ncols=2, loc="lower right")
    return fig
