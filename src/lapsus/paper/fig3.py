"""Figure 3: alignment of the planes that hold the two colours, before and after the cue."""

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.errors import LapsusError
from lapsus.mechanism import planes
from lapsus.mechanism.activity import cue_onset
from lapsus.paper.roles import LABELS, Networks
from lapsus.plots.style import COLOURS, TEXT_WIDTH, colour_of, letter, mark_epochs, note, panel, style, wheel, wheel_key
from lapsus.statistics.intervals import limits

__all__ = [
    "alignment_by_distance",
    "alignment_over_time",
    "feature_alignment",
    "figure",
    "index_alignment",
    "plane_points",
    "tables",
]

INDEX_NETWORKS = ("index-optimal", "index-none", "index-constant-05", "index-constant-10")
FEATURE_NETWORKS = ("feature-optimal", "feature-none", "feature-constant-05", "feature-smooth-2")


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


@lru_cache(maxsize=8)
def plane_points(networks: Networks, role: str, degrees: float | None, time: float) -> xr.DataArray:
    """Mean activity for each cued item and reported colour in three components (Fig 3A): [item, bin, component]."""
    return planes.plane_points(networks.of(role), degrees, time, networks.sizes.plane_trials)


def tables(networks: Networks) -> dict[str, pd.DataFrame]:
    """All numbers of the figure, by the name of their file."""
    index, feature = [], []
    for role in INDEX_NETWORKS:
        if role in networks:
            found = index_alignment(networks, role)
            low, high = limits(found["resampled"])
            columns = {
                "network": role,
                "time": found["time"],
                "alignment": found["alignment"],
                "low": low,
                "high": high,
            }
            index.append(pd.DataFrame(columns))
    for role in FEATURE_NETWORKS:
        if role in networks:
            curves = feature_alignment(networks, role)
            table = curves.mean("rotation").to_dataframe("alignment").reset_index()[["distance", "time", "alignment"]]
            table["sd"] = curves.std("rotation").to_numpy().ravel()
            feature.append(table.assign(network=role))
    found = {"C-index-alignment": index, "D-feature-alignment": feature}
    return {name: pd.concat(parts, ignore_index=True) for name, parts in found.items() if parts}


# --- Panels ---


def alignment_over_time(ax: Axes, curve: xr.Dataset, *, colour: str = "k", label: str = "") -> Axes:
    """One alignment curve with its 95 % bootstrap interval."""
    time = curve["time"].to_numpy()
    low, high = limits(curve["resampled"])
    ax.fill_between(time, low, high, color=colour, alpha=0.3, lw=0)
    ax.plot(time, curve["alignment"], color=colour, label=label)
    return _alignment_axes(ax, cue_onset(curve))


def alignment_by_distance(ax: Axes, curves: xr.DataArray) -> Axes:
    """Mean ± s.d. over rotations, one line a probe distance (violet nearest, yellow furthest)."""
    from matplotlib import colormaps

    time = curves["time"].to_numpy()
    shades = colormaps["viridis"](np.linspace(0, 0.92, curves.sizes["distance"]))
    for shade, degrees in zip(shades, curves["distance"].to_numpy(), strict=True):
        lines = curves.sel(distance=degrees).to_numpy()
        mean, sd = lines.mean(0), lines.std(0)
        ax.fill_between(time, mean - sd, mean + sd, color=shade, alpha=0.18, lw=0)
        ax.plot(time, mean, color=shade, label=f"{degrees}°")
    return _alignment_axes(ax, cue_onset(curves.to_dataset(name="alignment")))


def _alignment_axes(ax: Axes, onset: float) -> Axes:
    mark_epochs(ax, onset)
    ax.set(ylim=(0, 1.02), xlabel="time from cue offset (steps)", ylabel="plane alignment |cos|", yticks=[0, 0.5, 1])
    return ax


def planes_3d(ax: Any, points: xr.DataArray) -> None:
    """Bin means of both items in three components, coloured by the reported colour: ○ item 1 cued, □ item 2."""
    colours = wheel(points["colour"].to_numpy())
    for item, marker, shade in ((0, "o", "0.35"), (1, "s", "0.65")):
        xyz = points.to_numpy()[item]
        ring = np.concatenate([xyz, xyz[:1]])
        ax.plot(*ring.T, color=shade, lw=0.7)
        ax.scatter(*xyz.T, c=colours, marker=marker, s=14, depthshade=False, edgecolors=shade, linewidths=0.5)
    span = np.nanmax(np.abs(points.to_numpy())) * 0.95
    ax.set(xlim=(-span, span), ylim=(-span, span), zlim=(-span, span), xticklabels=[], yticklabels=[], zticklabels=[])
    for axis, name in (("x", "PC1"), ("y", "PC2")):
        getattr(ax, f"set_{axis}label")(name, labelpad=-17, fontsize=5)
    ax.tick_params(length=0, pad=-6)
    ax.view_init(elev=22, azim=-55)
    ax.set_box_aspect(None, zoom=0.98)


def _index_panel(ax: Axes, networks: Networks, role: str, recording: xr.Dataset | None) -> Axes:
    found = index_alignment(networks, role)
    alignment_over_time(ax, found, colour=colour_of(role))
    if recording is not None:
        alignment_over_time(ax, recording, colour="k", label="recording")
        ax.legend(loc="lower right")
    ax.set_title(f"{LABELS[role]} (n = {found.attrs['trials']:,})", pad=9)
    return ax


def _feature_panel(ax: Axes, networks: Networks, role: str) -> Axes:
    found = feature_alignment(networks, role)
    alignment_by_distance(ax, found)
    for spine in ax.spines.values():
        spine.set(visible=True, color=COLOURS[role], linewidth=1.2)
    ax.set_title(
        f"{LABELS[role]} ({found.sizes['rotation']} × {found.attrs['trials']} trials a line)", pad=9, fontsize=6
    )
    return ax


def figure(networks: Networks, recording: xr.Dataset | None = None) -> Figure:
    """Figure 3 of the paper; a recording in the activity form is drawn over the index-cued networks."""
    from matplotlib import pyplot as plt

    if recording is not None:
        recording = planes.with_bootstrap(recording, networks.sizes.alignment_repeats)
    with style():
        fig = plt.figure(figsize=(TEXT_WIDTH, 5.7))
        top, middle, bottom = fig.add_gridspec(
            3, 1, height_ratios=(0.75, 1, 1), hspace=0.6, left=0.075, right=0.985, top=0.9, bottom=0.07
        )
        row = top.subgridspec(1, 8, width_ratios=(1, 1, 1, 1, 0.12, 1, 1, 0.5), wspace=0.02)
        cases = [
            (place, "feature-smooth-2", degrees, when)
            for place, (degrees, when) in enumerate(
                (degrees, when) for degrees in (45, 165) for when in ("before", "after")
            )
        ] + [(5, "index-constant-10", None, "before"), (6, "index-constant-10", None, "after")]
        for place, role, degrees, when in cases:
            ax = fig.add_subplot(row[place], projection="3d")
            try:
                planes_3d(ax, plane_points(networks, role, degrees, -6 if when == "before" else 40))
            except LapsusError as reason:
                ax.remove()
                ax = note(fig.add_subplot(row[place]), str(reason))
            apart = f"{degrees}° apart" if degrees else LABELS[role]
            ax.set_title(f"{apart},\n{when} cue", pad=0, fontsize=6.5)
            if place in (0, 5):
                name, kind = ("A", "feature-cued") if place == 0 else ("B", "index-cued")
                for text, x, size in ((name, -0.1, 9), (kind, 0.15, 7)):
                    write = ax.text2D if ax.name == "3d" else ax.text
                    write(x, 1.36, text, transform=ax.transAxes, fontsize=size, fontweight="bold")
        key = fig.add_subplot(row[7])
        key.axis("off")
        wheel_key(key, (0.0, 0.4, 1.1, 0.6), "reported\ncolour")
        key.text(
            0.55,
            0.02,
            "○ item 1 cued\n□ item 2 cued\nup: PC3",
            transform=key.transAxes,
            ha="center",
            va="top",
            fontsize=5.5,
        )
        for spec, roles, draw, name in (
            (middle, INDEX_NETWORKS, _index_panel, "C"),
            (bottom, FEATURE_NETWORKS, _feature_panel, "D"),
        ):
            row = spec.subgridspec(1, 4, wspace=0.14)
            first = next((role for role in roles if role in networks), None)
            for k, role in enumerate(roles):
                ax = fig.add_subplot(row[k])
                panel(ax, draw, networks, role, *((recording,) if name == "C" else ()))
                if role != first:
                    ax.set_ylabel("")
                    ax.tick_params(labelleft=False)
                if k == 0:
                    letter(ax, name, y=1.06)
                    ax.text(
                        0,
                        1.2,
                        "index-cued" if name == "C" else "feature-cued",
                        transform=ax.transAxes,
                        fontsize=7,
                        fontweight="bold",
                    )
            if name == "D" and ax.lines:
                ax.legend(
                    title="probe distance",
                    title_fontsize=5.5,
                    fontsize=5.5,
                    ncols=2,
                    loc="lower right",
                    columnspacing=0.8,
                    handlelength=1,
                )
    return fig
