"""The swap function of a fit on its axis of distances (degrees, or degrees of orientation), and models compared: what
plots of one fit and of several subjects share."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes

from lapsus.fitting.result import Fit
from lapsus.fitting.words import averaged_over, sizes_apart
from lapsus.plots.style import BLUE, GREY, ORANGE, legend_above, lettered
from lapsus.statistics.swaps import distinct


def degree_axis(ax: Axes, signed: bool, label: str, per_radian: float) -> None:
    """Degrees on the x axis from 0 (signed: from -180) to 180, or half of that for orientations."""
    half = round(np.pi * per_radian)  # 180, or 90 for orientations
    ticks = [-half, -half / 2, 0, half / 2, half] if signed else np.linspace(0, half, 5)
    labels = [f"{tick:g}".replace("-", "−") for tick in ticks]
    ax.set(xticks=ticks, xticklabels=labels, xlim=(ticks[0] - half / 45, half + half / 45), xlabel=label)


def feature_of(fit: Fit) -> str:
    """The feature on whose distance f depends, or that is shown where it depends on none."""
    if len(fit.swap_model.features) == 1:
        return fit.swap_model.features[0]
    return "probe" if fit.trials.probe is not None else "report"


def scale_of(fit: Fit, feature: str | None = None) -> float:
    """Degrees of a feature in a radian."""
    return fit.trials.degrees if (feature or feature_of(fit)) == "report" else fit.trials.probe_degrees


def name_of(fit: Fit, feature: str | None = None) -> str:
    """What the table calls a feature."""
    trials = fit.trials
    return lettered(trials.feature_name if (feature or feature_of(fit)) == "report" else trials.probe_name)


def distance_label(fit: Fit) -> str:
    """Words for the x axis of a swap function."""
    return f"{name_of(fit)} distance from the cued item (°)"


def _distances(fit: Fit) -> np.ndarray:
    """The distinct distances of distractors in the data, in radians; none where f depends on no distance."""
    if len(fit.swap_model.features) != 1:
        return np.zeros(0)
    values = fit.trials.distance(fit.swap_model.features[0])[:, 1:]
    values = values[np.isfinite(values)]
    return distinct(np.abs(values) if fit.model.even else values)


def averaged(fit: Fit, sizes: bool = True) -> str:
    """Words for a label where one f stands for those of several set sizes or conditions."""
    return f"\n{lettered(over, 80)}" if (over := averaged_over(fit, sizes)) else ""


def where_known(fit: Fit, set_size: int | None = None) -> pd.DataFrame:
    """The swap function where there are data: below the smallest distance that was shown it would be the prior's."""
    table, distances = fit.swap_function(set_size=set_size), _distances(fit)
    x = table["distance"]
    return table if not len(distances) else table[(x > distances[0] - 0.02) & (x < distances[-1] + 0.02)]


def _marks(ax: Axes, fit: Fit, value: str, low: str, high: str, set_size: int | None, colour: Any) -> None:
    """Where the data have distractors at a few distances only: between them the curve is the prior's."""
    distances = _distances(fit)
    if 0 < len(distances) <= 48:
        table = fit.swap_function(distances, set_size)
        spread = [table[value] - table[low], table[high] - table[value]]
        ax.errorbar(
            scale_of(fit) * distances,
            table[value],
            np.maximum(spread, 0) if set_size is None else None,  # bars of several set sizes would hide each other
            fmt="o",
            ms=3,
            color=colour,
            lw=0.9,
            clip_on=False,
            label="distances in the data" if set_size in (None, fit.model.sizes[-1]) else None,
        )


def curve(ax: Axes, fit: Fit, value: str, low: str, high: str, label: str, average: bool = True) -> Axes:
    """A column of the fit's swap function over distance with its 95 % band; over both distances, as a map.

    average: one line for all set sizes; else one for each that has an f of its own.
    """
    if len(fit.swap_model.features) == 2:
        return _map(ax, fit, value, label + averaged(fit))
    sizes: list = [] if average else sizes_apart(fit)
    for number, size in enumerate(sizes or [None]):
        colour = BLUE if size is None else colormaps["viridis"](0.85 * number / (len(sizes) - 1))
        names = ("95 % band", "posterior mean") if size is None else (None, f"set size {size}: mean, 95 % band")
        table = where_known(fit, size)
        x = scale_of(fit) * table["distance"]
        ax.fill_between(x, table[low], table[high], color=colour, alpha=0.25, lw=0, label=names[0])
        ax.plot(x, table[value], color=colour, label=names[1])
        _marks(ax, fit, value, low, high, size, colour)
    degree_axis(ax, not fit.model.even, distance_label(fit), scale_of(fit))
    ax.set_ylabel(label + averaged(fit, sizes=False))
    return ax


def image_of(ax: Axes, fit: Fit, table: pd.DataFrame, value: str, **limits: float) -> Any:
    """A column of the swap function over both distances, as colours."""
    side = int(np.sqrt(len(table)))
    axis = table["report_distance"].to_numpy()[:side]
    values = table[value].to_numpy().reshape(side, side).T
    scales = [scale_of(fit, feature) for feature in ("probe", "report")]
    places = np.array([0, 0.5, 1] if fit.model.even else [-1, 0, 1]) * np.pi
    ax.set(xticks=np.round(places * scales[0]), yticks=np.round(places * scales[1]), box_aspect=1)
    x, y = (axis * scale for scale in scales)
    return ax.pcolormesh(x, y, values, shading="gouraud", cmap="viridis", rasterized=True, **limits)


def _map(ax: Axes, fit: Fit, value: str, label: str) -> Axes:
    image = image_of(ax, fit, fit.swap_function(), value)
    ax.set(xlabel=f"{name_of(fit, 'probe')} distance (°)", ylabel=f"{name_of(fit, 'report')} distance (°)")
    ax.figure.colorbar(image, ax=ax, label=label, shrink=0.85)
    return ax


def swap_function(ax: Axes, fit: Fit) -> Axes:
    """Posterior of f with its 95 % band; a line a set size, where they differ."""
    return curve(ax, fit, "f", "low", "high", "swap function f (log odds)", average=False)


def swap_probability(ax: Axes, fit: Fit) -> Axes:
    """Posterior of p(swap) with one distractor, with its 95 % band; a line a set size, where they differ."""
    curve(ax, fit, "p_swap", "p_low", "p_high", "p(swap), one non-target", average=False)
    if fit.swap_model.swaps and len(fit.swap_model.features) < 2:
        ax.set_ylim(0, min(ax.get_ylim()[1], 1.0))
        legend_above(ax)
    return ax


def model_comparison(ax: Axes, table: pd.DataFrame, chosen: str | None = None) -> Axes:
    """Leave-one-out predictive density of each model below the best, with standard errors."""
    height = np.arange(len(table))[::-1]
    for at, (_, row) in zip(height, table.iterrows()):
        colour = ORANGE if row["model"] == chosen else GREY
        ax.errorbar(row["elpd_difference"], at, xerr=row["difference_se"], fmt="o", ms=5, color=colour, capsize=2)
    ax.axvline(0, color="0.3", lw=0.6, ls=":")
    names = [m + (" (kept)" if m == chosen else "") for m in table["model"]]
    ax.set(yticks=height, yticklabels=names, xlabel="predictive density (nats)\nbelow the best, ± s.e.")
    ax.set_ylim(-0.6, len(table) - 0.4)
    return ax
