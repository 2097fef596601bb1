"""Figures of the appendices: optimisation windows, sigmoid fits (Table 1), the unimodal control, cyclic normals."""

from functools import lru_cache

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.behaviour import BNS
from lapsus.errors import LapsusError
from lapsus.mechanism import responses
from lapsus.mechanism.activity import NO_SWAPS
from lapsus.mechanism.designs import pair
from lapsus.mechanism.plane_alignment import SigmoidFit, sigmoid, sigmoid_against_flat, sigmoid_bootstrap
from lapsus.mechanism.ring_normals import cyclic_alignment
from lapsus.paper.fig2 import cloud
from lapsus.paper.fig3 import FEATURE_NETWORKS, alignment_by_distance, feature_alignment
from lapsus.paper.fig4 import normals
from lapsus.paper.roles import LABELS, Networks
from lapsus.plots.style import COLUMN_WIDTH, GREY, TEXT_WIDTH, colour_of, mark_epochs, panel, style, wheel
from lapsus.statistics.intervals import limits

__all__ = [
    "averaging_by_condition",
    "cyclic_figure",
    "cyclic_panel",
    "sigmoid_figure",
    "sigmoid_fits",
    "sigmoid_panel",
    "table_1",
    "unimodal_figure",
    "windows_figure",
]

# Table 1 of the paper: flat, sigmoid, difference.
TABLE_1 = {
    "feature-optimal": (0.009734, 0.005479, 0.004255),
    "feature-none": (0.052094, 0.039117, 0.012977),
    "feature-constant-05": (0.000152, 0.000000, 0.000152),
    "feature-smooth-2": (0.065647, 0.000340, 0.065307),
}
WINDOWS: dict[str, int] = {
    "feature-optimal": 40,
    "feature-optimal-30": 30,
    "feature-optimal-20": 20,
    "feature-optimal-5": 5,
    "feature-optimal-1": 1,
}
CONTROL_DISTANCES = (np.pi, 3 * np.pi / 4, np.pi / 2, np.pi / 4)


# --- Sigmoid against flat ---


@lru_cache(maxsize=32)
def sigmoid_fits(networks: Networks, role: str) -> tuple[np.ndarray, np.ndarray, SigmoidFit, tuple[SigmoidFit, ...]]:
    """Time, mean curves [distance, time], the fit and fits to resampled rotations; from the offset of the stimuli
    on."""
    return fit_curves(feature_alignment(networks, role), networks.sizes.sigmoid_repeats)


def fit_curves(curves: xr.DataArray, repeats: int) -> tuple[np.ndarray, np.ndarray, SigmoidFit, tuple[SigmoidFit, ...]]:
    """The same for curves [distance, rotation, time] of any source."""
    curves = curves.isel(time=np.flatnonzero(curves["epoch"].to_numpy() != "stimulus"))
    time, values = curves["time"].to_numpy(), curves.transpose("distance", "rotation", "time").to_numpy()
    # As Table 1's sigmoid column implies: one fit to the curve averaged over distances.
    fit = sigmoid_against_flat(time, values.mean((0, 1)))
    return time, values.mean(1), fit, tuple(sigmoid_bootstrap(time, values, repeats=repeats))


def table_1(networks: Networks) -> pd.DataFrame:
    """Table 1 with intervals and the paper's numbers: one row a network."""
    rows = []
    for role, paper in TABLE_1.items():
        if role not in networks:
            continue
        _, _, fit, resampled = sigmoid_fits(networks, role)
        low, high = limits([one.difference for one in resampled])
        rows.append((role, fit.flat_mse, fit.sigmoid_mse, fit.difference, low, high, fit.y_scale, *paper))
    columns = [
        "network",
        "flat",
        "sigmoid",
        "difference",
        "low",
        "high",
        "rise",
        "paper_flat",
        "paper_sigmoid",
        "paper_difference",
    ]
    return pd.DataFrame(rows, columns=columns)


def sigmoid_panel(ax: Axes, networks: Networks, role: str) -> Axes:
    """Curves of all distances, the sigmoid and the flat line."""
    time, curves, fit, _ = sigmoid_fits(networks, role)
    ax.plot(time, curves.T, color="0.75", lw=0.7)
    ax.plot(
        time, sigmoid(time, fit.slope, fit.x_offset, fit.y_offset, fit.y_scale), color=colour_of(role), label="sigmoid"
    )
    ax.axhline(curves.mean(), color="k", ls=(0, (3, 2)), lw=0.8, label="flat")
    mark_epochs(ax, -4)
    ax.set_title(f"{LABELS[role]}: MSE {fit.flat_mse:.4f} flat,\n{fit.sigmoid_mse:.4f} sigmoid", pad=9, fontsize=6)
    ax.set(ylim=(0, 1.02), yticks=[0, 0.5, 1], xlabel="time from cue offset (steps)")
    return ax


def sigmoid_figure(networks: Networks) -> Figure:
    """Sigmoid and flat fits to the alignment of the feature-cued networks."""
    from matplotlib import pyplot as plt

    with style():
        fig, axes = plt.subplots(1, 4, figsize=(TEXT_WIDTH, 1.9), sharey=True, layout="constrained")
        for ax, role in zip(axes, FEATURE_NETWORKS, strict=True):
            panel(ax, sigmoid_panel, networks, role)
        axes[0].set_ylabel("plane alignment |cos|")
        if axes[0].get_legend_handles_labels()[0]:
            axes[0].legend(loc="lower right")
    return fig


# --- Optimisation windows ---


def _window_panel(ax: Axes, networks: Networks, role: str, window: int) -> Axes:
    alignment_by_distance(ax, feature_alignment(networks, role))
    ax.axvspan(40 - window, 40, ymax=0.03, color="#D55E00", lw=0)
    ax.set_title(f"T* = {window}", pad=9)
    return ax


def windows_figure(networks: Networks) -> Figure:
    """Plane alignment of task-optimal networks with other optimisation windows (red: where the loss applies)."""
    from matplotlib import pyplot as plt

    with style():
        fig, axes = plt.subplots(1, len(WINDOWS), figsize=(TEXT_WIDTH, 2.2), sharey=True, layout="constrained")
        for ax, (role, window) in zip(axes, WINDOWS.items(), strict=True):
            panel(ax, _window_panel, networks, role, window)
            if ax is not axes[0]:
                ax.set_ylabel("")
            if ax.lines:
                ax.set_xlabel("time from cue\noffset (steps)")
        for ax in axes:
            if ax.lines:
                fig.legend(
                    *ax.get_legend_handles_labels(),
                    loc="outside lower center",
                    title="probe distance; red: where the loss applies",
                    ncols=5,
                )
                break
    return fig


def windows_table(networks: Networks) -> pd.DataFrame:
    """Alignment, its mean and s.d. over rotations, by window (steps), probe distance (degrees) and time (steps)."""
    parts = []
    for role, window in WINDOWS.items():
        if role in networks:
            curves = feature_alignment(networks, role)
            table = curves.mean("rotation").to_dataframe("alignment").reset_index()[["distance", "time", "alignment"]]
            parts.append(table.assign(window=window, sd=curves.std("rotation").to_numpy().ravel()))
    if not parts:
        raise LapsusError("no task-optimal feature-cued network")
    return pd.concat(parts, ignore_index=True)


# --- The unimodal control ---


@lru_cache(maxsize=2)
def averaging_by_condition(networks: Networks, role: str = "feature-sample-mse") -> pd.DataFrame:
    """One row a condition: target swap probability, mean and s.d. over trials of the place between the two modes."""
    target, sizes = networks.model(role).behaviour, networks.sizes
    if not isinstance(target, BNS):
        raise LapsusError(f"the target of {role} has no modes at items")
    return responses.averaging_by_condition(
        networks.answers(role), target.radius, sizes.averaged_conditions, sizes.averaged_trials
    )


def _control_panel(ax: Axes, networks: Networks, gap: float) -> Axes:
    dataset = networks.responses("feature-sample-mse", pair(gap), networks.sizes.shown_samples, seed=3)
    cloud(ax, dataset["x_T"].to_numpy())
    ax.axis("off")
    ax.set_title(
        f"probe distance {np.degrees(gap):.0f}°\ntarget swap rate {float(dataset['probability'][0]):.2f}", fontsize=6
    )
    return ax


def unimodal_figure(networks: Networks) -> Figure:
    """Samples of a network trained with squared error on samples of the two-mode target."""
    from matplotlib import pyplot as plt

    with style():
        fig, axes = plt.subplots(1, len(CONTROL_DISTANCES), figsize=(TEXT_WIDTH, 2.0), layout="constrained")
        for ax, gap in zip(axes, CONTROL_DISTANCES, strict=True):
            panel(ax, _control_panel, networks, gap)
        shown = f"{networks.sizes.shown_samples} responses each; ○ cued colour, □ the other;"
        fig.supxlabel(f"{shown} both lie at the radius of the target (grey)", fontsize=6)
    return fig


# --- Cyclic normals ---


def cyclic_panel(ax: Axes, matrix: np.ndarray, colours: np.ndarray) -> Axes:
    """Mean |cos| of the normals between fixed colours, which the margins show."""
    image = ax.imshow(matrix, cmap="viridis", vmin=0, vmax=1, origin="lower")
    ax.figure.colorbar(image, ax=ax, label="mean |cos| of the normals", shrink=0.8)
    place, edge = np.arange(len(colours)), np.full(len(colours), -0.05)
    for (x, y), kind in (((place, edge), "x"), ((edge, place), "y")):
        transform = ax.get_xaxis_transform() if kind == "x" else ax.get_yaxis_transform()
        ax.scatter(x, y, c=wheel(colours), marker="s", s=18, clip_on=False, lw=0, transform=transform)
    ax.set(xticks=[], yticks=[], xlim=(-0.5, len(colours) - 0.5), ylim=(-0.5, len(colours) - 0.5))
    ax.set_xlabel("fixed colour", labelpad=14)
    ax.set_ylabel("fixed colour", labelpad=14)
    return ax


def _cyclic(ax: Axes, networks: Networks) -> Axes:
    found = normals(networks)
    if not np.isfinite(found.cued).any():
        raise LapsusError(NO_SWAPS)
    ax.set_title(f"{len(found.cued)} location pairs", color=GREY, fontsize=6)
    return cyclic_panel(ax, cyclic_alignment(found.cued), found.colours)


def cyclic_figure(networks: Networks) -> Figure:
    """Alignment of normals between all fixed colours, averaged over location pairs."""
    from matplotlib import pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(COLUMN_WIDTH, 2.8), layout="constrained")
        panel(ax, _cyclic, networks)
    return fig
