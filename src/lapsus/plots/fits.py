"""Plots of a fit to behaviour: the swap function, errors, errors to non-targets, posterior predictive, parameters by
set size, model comparison. Angles are in the unit of the table: degrees, or degrees of orientation."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib import colormaps, pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.circular import difference
from lapsus.files import write_figure
from lapsus.fitting.model import condition_labels
from lapsus.fitting.predictive import DistanceCurve
from lapsus.fitting.result import Fit
from lapsus.fitting.subjects import SubjectFits
from lapsus.fitting.tables import GROUP
from lapsus.plots.style import BLUE, GREY, ORANGE, TEXT_WIDTH, VERMILION, legend_above, lettered, style
from lapsus.plots.subject_fits import subject_swap_functions, subjects
from lapsus.plots.swap_functions import (
    degree_axis,
    model_comparison,
    name_of,
    scale_of,
    swap_function,
    swap_probability,
)
from lapsus.statistics.intervals import limits
from lapsus.trials import Trials

__all__ = ["errors", "figures", "non_target_errors", "parameters", "pooled_subjects", "predictive", "save_all"]

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
    ax.plot(middle, predicted.mean(0), color=VERMILION, label="fit, 95 %\npredictive")


def errors(figure: Figure, fit: Fit) -> Figure:
    """Histograms of response errors with the fit's posterior predictive: a panel for each set size and condition."""
    trials, model = fit.trials, fit.model
    edges = np.linspace(-np.pi, np.pi, ERROR_BINS + 1)
    conditions = condition_labels(trials, model.by) if model.by else np.full(len(trials), "all", object)
    axes = figure.subplots(len(model.conditions), len(model.sizes), sharex=True, sharey="row", squeeze=False)
    for row, condition in zip(axes, model.conditions, strict=True):
        for ax, size in zip(row, model.sizes, strict=True):
            mine = (trials.set_size == size) & (conditions == condition)
            if not mine.any():
                ax.set_visible(False)
                continue
            predicted = np.stack([_histogram(answered.error[mine], edges) for answered in fit.predictive])
            _bars_and_band(ax, edges, _histogram(trials.error[mine], edges), predicted, trials.degrees)
            name = f", {lettered(condition, 24)}" if model.by else ""
            ax.set_title(f"set size {size}{name}\nn = {mine.sum():,}")
            degree_axis(ax, True, "", trials.degrees)
            ax.tick_params(axis="x", labelsize=5)
        row[0].set_ylim(bottom=0)
    figure.supxlabel("response − target (°)", fontsize=7)
    figure.supylabel("density (per degree)", fontsize=7)
    axes[0, 0].legend(loc="upper right", fontsize=5, handlelength=1.2)
    return figure


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


def predictive(ax: Axes, fit: Fit) -> Axes:
    """Posterior predictive check of the swaps: how often the nearest item to the response is a distractor, by its
    distance."""
    curve = DistanceCurve(fit)
    known = np.isfinite(curve.observed)
    predicted = 100 * curve.predicted[:, known]
    scale = scale_of(fit, curve.feature)
    x = scale * curve.middle[known]
    ax.fill_between(x, *limits(predicted), color=VERMILION, alpha=0.3, lw=0)
    ax.plot(x, predicted.mean(0), color=VERMILION, label="fit, 95 % predictive")
    ax.plot(x, 100 * curve.observed[known], "o", color="black", ms=3.5, clip_on=False, label="data")
    degree_axis(ax, False, f"non-target's {name_of(fit, curve.feature)} distance (°)", scale)
    ax.set_ylabel("responses nearest to\nthat non-target (%)")
    ax.set_ylim(bottom=0)
    legend_above(ax)
    return ax


LABELS = {"swap": "non-target reports (%)", "guess": "guesses (%)", "circular_sd": "circular s.d. (°)"}


def _measures(fit: Fit) -> list[str]:
    """What of LABELS the fit estimates."""
    has = {"swap": fit.swap_model.swaps and fit.model.sizes[-1] > 1, "guess": fit.model.uniform, "circular_sd": True}
    return [name for name in LABELS if has[name]]


def parameters(axes: np.ndarray, fit: Fit) -> np.ndarray:
    """The classic figure: what the fit estimates of non-target reports, guesses and circular s.d. against set size, one
    of the axes each; one line per condition (mean of subjects, 95 % band), subjects in grey behind it, the
    three-component mixture dotted."""
    model, estimates = fit.model, fit.table()
    subjects = model.hierarchical and len(model.subjects) > 1
    shades = _shades(len(model.conditions))
    for ax, name in zip(axes, _measures(fit), strict=True):
        factor = 1 if name == "circular_sd" else 100
        mine = estimates[estimates["parameter"] == name]
        mine = mine[mine["set_size"] != "all"]  # s.d. of offsets have no set size
        for _, subject in mine[mine["subject"] != GROUP].groupby(["subject", "condition"]) if subjects else ():
            ax.plot(subject["set_size"], factor * subject["estimate"], color="0.85", lw=0.6, zorder=1)
        whole = mine[mine["subject"] == (GROUP if subjects else "all")]
        for number, (condition, colour) in enumerate(zip(model.conditions, shades)):
            table = whole[whole["condition"] == condition]
            middle, low, high = (factor * table[column].to_numpy(float) for column in ("estimate", "low", "high"))
            offset = 0.12 * (number - (len(model.conditions) - 1) / 2)
            at = table["set_size"].to_numpy(float) + offset
            bars = np.maximum([middle - low, high - middle], 0)
            label = _condition_name(fit, condition)
            ax.errorbar(at, middle, bars, fmt="o-", ms=3.5, lw=1, color=colour, label=label)
            if name != "circular_sd" and fit.standard is not None and not fit.is_standard:
                standard = fit.standard[fit.standard["set_size"] > (name == "swap")]
                standard = standard[standard["condition"] == condition] if model.by else standard
                known = "three-component mixture" if number == 0 else None
                ax.plot(standard["set_size"] + offset, 100 * standard[name], ":", color=colour, lw=0.9, label=known)
        ax.set(xlabel="set size", ylabel=LABELS[name], xticks=model.sizes)
        ax.set_xlim(model.sizes[0] - 0.5, model.sizes[-1] + 0.5)
        top = ax.get_ylim()[1]
        ax.set_ylim(0, min(top, 100) if factor == 100 else top)
    if axes[0].get_legend_handles_labels()[0]:
        axes[0].legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return axes


def pooled_subjects(axes: np.ndarray, fit: Fit) -> np.ndarray:
    """Subjects of a hierarchical fit: each one's estimates with 95 % bands at the largest set size, and the group's as
    a line with its band, for the measures of `parameters`; one colour per condition."""
    estimates, model = fit.table(), fit.model
    mine = estimates[estimates["set_size"] == model.sizes[-1]]
    height = {subject: -i for i, subject in enumerate(model.subjects)}
    for ax, name in zip(axes, _measures(fit), strict=True):
        table = mine[mine["parameter"] == name]
        factor = 1 if name == "circular_sd" else 100
        for number, condition in enumerate(model.conditions):
            colour = _shades(len(model.conditions))[number]
            cell = table[table["condition"] == condition].set_index("subject")
            low, middle, high = (factor * cell[column] for column in ("low", "estimate", "high"))
            if GROUP in cell.index:
                ax.axvspan(low[GROUP], high[GROUP], color=colour, alpha=0.2, lw=0)
                ax.axvline(middle[GROUP], color=colour, lw=0.8, label=_condition_name(fit, condition))
            estimated = [subject for subject in model.subjects if subject in cell.index]
            at = np.array([height[subject] for subject in estimated]) - 0.18 * (
                number - (len(model.conditions) - 1) / 2
            )
            bars = np.maximum([middle[estimated] - low[estimated], high[estimated] - middle[estimated]], 0)
            ax.errorbar(middle[estimated], at, xerr=bars, fmt="o", ms=2.5, lw=0.8, color=colour)
        ax.set(xlabel=f"{LABELS[name]}, set size {model.sizes[-1]}", yticks=list(height.values()))
        ax.set_yticklabels([lettered(subject, 16) for subject in height] if ax is axes[0] else [])
        ax.set_xlim(left=0)
    if model.by:
        axes[0].legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return axes


def _condition_name(fit: Fit, condition: str) -> str | None:
    return lettered(fit.model.in_words(condition)) if fit.model.by else None


def _shades(count: int) -> list:
    """A colour for each condition."""
    few = [BLUE, ORANGE, VERMILION, GREY]
    return few if count <= len(few) else list(colormaps["viridis"](np.linspace(0, 0.9, count)))


def _heading(figure: Figure, fit: Fit) -> None:
    trials = fit.trials
    subjects, sizes = len(np.unique(trials.subject)), np.unique(trials.set_size)
    run = len(sizes) > 2 and len(sizes) == sizes[-1] - sizes[0] + 1
    set_sizes = "set sizes " if len(sizes) > 1 else "set size "
    set_sizes += f"{sizes[0]}–{sizes[-1]}" if run else ", ".join(map(str, sizes))
    who = f" of {subjects} subjects" if subjects > 1 else ""
    figure.suptitle(f"{len(trials):,} trials{who}, {set_sizes}; model {fit.name}", fontsize=7)


def figures(fit: Fit) -> dict[str, Figure]:
    """Every plot of a fit, by the name of its file."""
    drawn = {}
    with style():
        if fit.swap_model.swaps:
            figure, axes = plt.subplots(1, 2, figsize=(TEXT_WIDTH * 0.75, 2.5), layout="constrained")
            swap_function(axes[0], fit)
            swap_probability(axes[1], fit)
            if (legend := axes[1].get_legend()) is not None:  # of many set sizes it is wider than its panel
                legend.remove()
                figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=2)
            drawn["swap_function"] = figure
        sizes, conditions = len(fit.model.sizes), len(fit.model.conditions)
        figure = plt.figure(figsize=(max(3.4, min(1.4 * sizes, 10)), 1.1 + 1.4 * conditions), layout="constrained")
        drawn["errors"] = errors(figure, fit)
        for draw in (non_target_errors, predictive) if fit.model.sizes[-1] > 1 else ():
            drawn[draw.__name__], ax = plt.subplots(figsize=(3.4, 2.5), layout="constrained")
            draw(ax, fit)
        count = len(_measures(fit))
        width = TEXT_WIDTH * count / 3
        drawn["parameters"], axes = plt.subplots(1, count, figsize=(width, 2.3), layout="constrained", squeeze=False)
        parameters(axes[0], fit)
        if fit.model.hierarchical and len(fit.model.subjects) > 1:
            height = max(2.4, 0.9 + 0.16 * len(fit.model.subjects))
            size = (width, height)
            drawn["subjects"], axes = plt.subplots(1, count, figsize=size, layout="constrained", squeeze=False)
            pooled_subjects(axes[0], fit)
        if fit.comparison is not None:
            drawn["comparison"], ax = plt.subplots(figsize=(3.4, 2.2), layout="constrained")
            model_comparison(ax, fit.comparison, fit.name)
        for figure in drawn.values():
            _heading(figure, fit)
    return drawn


def save_all(fit: Fit | SubjectFits, folder: Path) -> list[Path]:
    """Every plot of a Fit or of SubjectFits as PNG and PDF into its folder; returns the files."""
    if isinstance(fit, SubjectFits):
        drawn = {"subjects": subjects(fit)}
        if next(iter(fit.values())).swap_model.swaps:
            drawn["swap_function"] = subject_swap_functions(fit)
    else:
        drawn = figures(fit)
    paths = []
    with style():
        for name, figure in drawn.items():
            for ending in ("png", "pdf"):
                paths.append(Path(folder) / f"{name}.{ending}")
                write_figure(paths[-1], figure)
            plt.close(figure)
    return paths
