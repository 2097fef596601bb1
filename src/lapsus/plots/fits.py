"""Plots of a fit to behaviour: the swap function, errors, errors to non-targets, posterior predictive, parameters by
set size, model comparison. Angles are in the unit of the table: degrees, or degrees of orientation."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import colormaps, pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.circular import difference
from lapsus.files import write_figure
from lapsus.fitting.result import Fit
from lapsus.fitting.subjects import SubjectFits
from lapsus.plots.style import BLUE, GREY, ORANGE, TEXT_WIDTH, VERMILION, legend_above, lettered, note, style
from lapsus.plots.subject_fits import subject_swap_functions, subjects
from lapsus.plots.swap_functions import (
    degree_axis,
    feature_of,
    model_comparison,
    name_of,
    scale_of,
    swap_function,
    swap_probability,
)
from lapsus.statistics.intervals import limits
from lapsus.statistics.swaps import distance_edges, nearest_item, rate_by_distance
from lapsus.trials import Trials

__all__ = ["errors", "figures", "non_target_errors", "parameters", "predictive", "save_all"]

# Odd numbers of bins: one is centred on 0, so that responses in whole steps do not fall on its edge.
ERROR_BINS, BINS = 61, 37


def _predicted(fit: Fit, measure: Callable[[Trials], np.ndarray]) -> np.ndarray:
    """Measure of posterior predictive data sets [sets, …]."""
    return np.stack([measure(trials) for trials in fit.predictive])


def _histogram(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    values = values[np.isfinite(values)]
    return np.histogram(values, edges)[0] / max(len(values), 1) / np.diff(edges)


def _bars_and_band(ax: Axes, edges: np.ndarray, observed: np.ndarray, predicted: np.ndarray, scale: float) -> None:
    """Densities by angle: edges in radians, densities per radian, drawn in degrees and per degree."""
    middle = scale * (edges[1:] + edges[:-1]) / 2
    observed, predicted = observed / scale, predicted / scale
    ax.bar(middle, observed, width=scale * np.diff(edges), color="0.78", lw=0, label="data")
    low, high = limits(predicted)
    ax.fill_between(middle, low, high, color=VERMILION, alpha=0.3, lw=0)
    ax.plot(middle, predicted.mean(0), color=VERMILION, label="fit, 95 % predictive")


def errors(ax: Axes, fit: Fit) -> Axes:
    """Histogram of response errors, with the fit's posterior predictive."""
    edges = np.linspace(-np.pi, np.pi, ERROR_BINS + 1)
    predicted = _predicted(fit, lambda t: _histogram(t.error, edges))
    _bars_and_band(ax, edges, _histogram(fit.trials.error, edges), predicted, fit.trials.degrees)
    degree_axis(ax, True, "response − target (°)", fit.trials.degrees)
    ax.set_ylabel("density (per degree)")
    ax.set_ylim(bottom=0)
    legend_above(ax)
    return ax


def _corrected(trials: Trials, edges: np.ndarray, rng: np.random.Generator, shuffles: int = 10) -> np.ndarray:
    """Histogram of response − non-target, minus what it would be if errors knew nothing of the non-targets.

    The chance level shuffles the errors between trials of the same set size: each keeps its items, none its error.
    """
    several = trials.set_size > 1
    report, error, sizes = trials.report[several], trials.error[several], trials.set_size[several]
    gap = difference(report[:, 1:], report[:, :1])
    observed = _histogram(difference(error[:, None], gap).reshape(-1), edges)
    chance = []
    for _ in range(shuffles):
        mixed = error.copy()
        for size in np.unique(sizes):
            rows = np.flatnonzero(sizes == size)
            mixed[rows] = error[rng.permutation(rows)]
        chance.append(_histogram(difference(mixed[:, None], gap).reshape(-1), edges))
    return observed - np.mean(chance, 0)


def non_target_errors(ax: Axes, fit: Fit) -> Axes:
    """Histogram of response − non-target above chance, with the posterior predictive: a central peak is swaps."""
    if fit.trials.set_size.max() < 2:
        return note(ax, "Every trial has one item.")
    edges = np.linspace(-np.pi, np.pi, BINS + 1)
    rng = np.random.default_rng(fit.seed)
    observed = _corrected(fit.trials, edges, rng, 50)
    predicted = _predicted(fit, lambda t: _corrected(t, edges, rng, 4))
    _bars_and_band(ax, edges, observed, predicted, fit.trials.degrees)
    ax.axhline(0, color="0.3", lw=0.6)
    degree_axis(ax, True, "response − non-target (°)", fit.trials.degrees)
    ax.set_ylabel("density above chance\n(per degree)")
    legend_above(ax)
    return ax


def _nearest_share(trials: Trials, feature: str, edges: np.ndarray) -> np.ndarray:
    """Of the distractors in each bin of distance, the share that the response is nearest to."""
    item, _ = nearest_item(trials.response, trials.report)
    gap = np.abs(trials.distance(feature))[:, 1:]
    shown = np.isfinite(gap)
    hit = np.arange(1, trials.report.shape[1]) == item[:, None]
    return rate_by_distance(hit[shown], gap[shown], edges)


def predictive(ax: Axes, fit: Fit) -> Axes:
    """Posterior predictive check of the swaps: how often the nearest item to the response is a distractor, by its
    distance."""
    trials = fit.trials
    if trials.set_size.max() < 2:
        return note(ax, "Every trial has one item.")
    feature = feature_of(fit)
    gap = np.abs(trials.distance(feature)[:, 1:])
    gap = gap[np.isfinite(gap)]
    edges = distance_edges(gap, 12)
    middle = rate_by_distance(gap, gap, edges)
    predicted = _predicted(fit, lambda t: _nearest_share(t, feature, edges))
    known = np.isfinite(_nearest_share(trials, feature, edges))
    low, high = limits(predicted[:, known])
    x = scale_of(fit, feature) * middle[known]
    ax.fill_between(x, 100 * low, 100 * high, color=VERMILION, alpha=0.3, lw=0)
    ax.plot(x, 100 * predicted[:, known].mean(0), color=VERMILION, label="fit, 95 % predictive")
    ax.plot(
        x, 100 * _nearest_share(trials, feature, edges)[known], "o", color="black", ms=3.5, clip_on=False, label="data"
    )
    degree_axis(ax, False, f"non-target's {name_of(fit, feature)} distance (°)", scale_of(fit, feature))
    ax.set_ylabel("responses nearest to\nthat non-target (%)")
    ax.set_ylim(bottom=0)
    legend_above(ax)
    return ax


def parameters(axes: np.ndarray, fit: Fit) -> np.ndarray:
    """The classic figure: non-target reports, guesses and circular s.d. against set size, in three axes; one line a
    condition (mean of subjects, 95 % band), subjects in grey behind it."""
    rates, scatter = fit.mean_rates, fit.emission
    conditions = fit.model.conditions
    shades = [BLUE, ORANGE, VERMILION, GREY]
    if len(conditions) > len(shades):
        shades = list(colormaps["viridis"](np.linspace(0, 0.9, len(conditions))))
    colours = dict(zip(conditions, shades))
    panels = (
        ("swap", "non-target reports (%)", 100, 1),
        ("guess", "guesses (%)", 100, 0),
        ("circular_sd", "circular s.d. (°)", fit.trials.degrees, 0),
    )
    sizes = fit.model.sizes
    for ax, (name, label, factor, least) in zip(axes, panels):
        if name == "swap" and fit.name == "none":
            note(ax, "The model has no swaps.")
            continue
        every = fit.rates if name != "circular_sd" else scatter
        if fit.model.hierarchical and fit.model.by is None:
            for _, mine in every[every["set_size"] > least].groupby("subject"):
                ax.plot(mine["set_size"], factor * mine[name], color="0.8", lw=0.7, zorder=1)
        for number, condition in enumerate(conditions):
            if name == "circular_sd":
                own = scatter[scatter["condition"] == condition].groupby("set_size")
                draws = fit.model.emission.natural(fit.parameters.emission.numpy())[name]
                rows = {n: draws[part.index].mean(0) for n, part in own}
                table = pd.DataFrame(
                    {"set_size": n, name: v.mean()} | dict(zip((f"{name}_low", f"{name}_high"), limits(v)))
                    for n, v in rows.items()
                )
            else:
                table = rates if fit.model.by is None else rates[rates["condition"] == condition]
                table = table[table["set_size"] > least]
            if not len(table):
                note(ax, "Every trial has one item.")
                continue
            middle = factor * table[name].to_numpy()
            spread = [
                middle - factor * table[f"{name}_low"].to_numpy(),
                factor * table[f"{name}_high"].to_numpy() - middle,
            ]
            at = table["set_size"] + 0.12 * (number - (len(conditions) - 1) / 2)
            label_of = None if fit.model.by is None else f"{lettered(fit.model.by)} {lettered(condition)}"
            ax.errorbar(
                at, middle, np.maximum(spread, 0), fmt="o-", ms=3.5, lw=1, color=colours[condition], label=label_of
            )
        ax.set(xlabel="set size", ylabel=label, xticks=sizes, xlim=(sizes[0] - 0.5, sizes[-1] + 0.5))
        top = ax.get_ylim()[1]
        ax.set_ylim(0, min(top, 100) if factor == 100 else top)
    if fit.model.by is not None:
        first = axes[int(fit.name == "none")]
        first.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return axes


def _heading(figure: Figure, fit: Fit) -> None:
    trials = fit.trials
    subjects, sizes = len(np.unique(trials.subject)), np.unique(trials.set_size)
    run = len(sizes) > 2 and len(sizes) == sizes[-1] - sizes[0] + 1
    shown = "set sizes " if len(sizes) > 1 else "set size "
    shown += f"{sizes[0]}–{sizes[-1]}" if run else ", ".join(map(str, sizes))
    who = f" of {subjects} subjects" if subjects > 1 else ""
    figure.suptitle(f"{len(trials):,} trials{who}, {shown}; model {fit.name}", fontsize=7)


def figures(fit: Fit) -> dict[str, Figure]:
    """Every plot of a fit, by the name of its file."""
    found = {}
    with style():
        if fit.name != "none":
            found["swap_function"], axes = plt.subplots(1, 2, figsize=(TEXT_WIDTH * 0.75, 2.5), layout="constrained")
            swap_function(axes[0], fit)
            swap_probability(axes[1], fit)
        for draw in (errors, non_target_errors, predictive):
            found[draw.__name__], ax = plt.subplots(figsize=(3.4, 2.5), layout="constrained")
            draw(ax, fit)
        found["parameters"], axes = plt.subplots(1, 3, figsize=(TEXT_WIDTH, 2.3), layout="constrained")
        parameters(axes, fit)
        if fit.comparison is not None:
            found["comparison"], ax = plt.subplots(figsize=(3.4, 2.2), layout="constrained")
            model_comparison(ax, fit.comparison, fit.name)
        for figure in found.values():
            _heading(figure, fit)
    return found


def save_all(fit: Fit | SubjectFits, folder: Path) -> list[Path]:
    """Every plot of a Fit or of SubjectFits as PNG and PDF into its folder; returns the files."""
    if isinstance(fit, SubjectFits):
        found = {"subjects": subjects(fit)} | (
            {} if fit.name == "none" else {"swap_function": subject_swap_functions(fit)}
        )
    else:
        found = figures(fit)
    paths = []
    with style():
        for name, figure in found.items():
            for ending in ("png", "pdf"):
                paths.append(Path(folder) / f"{name}.{ending}")
                write_figure(paths[-1], figure)
            plt.close(figure)
    return paths
