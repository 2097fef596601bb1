"""Plots of a fit to behaviour: the swap function, errors, errors to non-targets, posterior predictive, model comparison."""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from lapsus.circular import difference
from lapsus.figures.style import BLUE, GREY, ORANGE, TEXT_WIDTH, VERMILION, letter, note, style

__all__ = [
    "comparison", "errors", "non_target_errors", "overview", "predictive", "save_all", "subjects", "swap_function",
    "swap_probability",
]  # fmt: skip

DEGREES = (0, 45, 90, 135, 180)
BINS = 36


def _degree_axis(ax, signed, label):
    ticks = [-180, -90, 0, 90, 180] if signed else DEGREES
    ax.set(xticks=ticks, xlim=(ticks[0], ticks[-1]), xlabel=label)


def _distance_label(fit):
    return f"{fit.name if fit.name in ('probe', 'report') else 'probe'} distance from the cued item (°)"


def _marks(ax, fit, value, low, high):
    """Where the data have distractors at a few distances only: between them the curve is the prior's."""
    if fit.name not in ("probe", "report"):
        return
    values = fit.trials.distance(fit.name)[:, 1:]
    values = np.degrees(values[np.isfinite(values)])
    values = np.abs(values) if fit.model.even else values
    unique = np.unique(np.round(values, 3))
    if len(unique) <= 48:
        table = fit.swap_function(np.radians(unique))
        spread = [table[value] - table[low], table[high] - table[value]]
        ax.errorbar(unique, table[value], np.maximum(spread, 0), fmt="o", ms=3, color=BLUE, lw=0.9, label="distances in the data")


def _curve(ax, fit, value, low, high, label):
    if fit.name == "none":
        return note(ax, "The model has no swaps.")
    if fit.name == "both":
        return _map(ax, fit, value, label)
    table = fit.swap_function()
    x = np.degrees(table["distance"])
    ax.fill_between(x, table[low], table[high], color=BLUE, alpha=0.25, lw=0, label="95 % band")
    ax.plot(x, table[value], color=BLUE, label="posterior mean")
    _marks(ax, fit, value, low, high)
    _degree_axis(ax, not fit.model.even, _distance_label(fit))
    ax.set_ylabel(label)
    return ax


def _map(ax, fit, value, label):
    table = fit.swap_function()
    side = int(np.sqrt(len(table)))
    axis = np.degrees(table["report_distance"].to_numpy()[:side])
    values = table[value].to_numpy().reshape(side, side).T
    image = ax.pcolormesh(axis, axis, values, shading="gouraud", cmap="viridis", rasterized=True)
    ticks = DEGREES if fit.model.even else (-180, -90, 0, 90, 180)
    ax.set(xticks=ticks, yticks=ticks, xlabel="probe distance (°)", ylabel="report distance (°)", aspect="equal")
    ax.figure.colorbar(image, ax=ax, label=label, shrink=0.85)
    return ax


def swap_function(ax: Axes, fit) -> Axes:
    """Posterior of f with its 95 % band."""
    return _curve(ax, fit, "f", "low", "high", "swap function f (log odds)")


def swap_probability(ax: Axes, fit) -> Axes:
    """Posterior of p(swap) with one distractor, with its 95 % band."""
    _curve(ax, fit, "p_swap", "p_low", "p_high", "p(swap), one non-target")
    if fit.name not in ("none", "both"):
        ax.set_ylim(bottom=0)
        ax.legend(loc="upper right")
    return ax


def _predicted(fit, measure):
    """Measure of posterior predictive data sets [sets, …]."""
    return np.stack([measure(trials) for trials in fit.predictive])


def _histogram(values, edges):
    values = values[np.isfinite(values)]
    return np.histogram(values, edges)[0] / max(len(values), 1) / np.diff(edges)


def _bars_and_band(ax, edges, observed, predicted):
    middle = np.degrees((edges[1:] + edges[:-1]) / 2)
    ax.bar(middle, observed, width=np.degrees(np.diff(edges)), color="0.78", lw=0, label="data")
    low, high = np.quantile(predicted, (0.025, 0.975), axis=0)
    ax.fill_between(middle, low, high, color=VERMILION, alpha=0.3, lw=0)
    ax.plot(middle, predicted.mean(0), color=VERMILION, label="fit, 95 % predictive")


def errors(ax: Axes, fit) -> Axes:
    """Histogram of response errors, with the fit's posterior predictive."""
    edges = np.linspace(-np.pi, np.pi, 61)
    _bars_and_band(ax, edges, _histogram(fit.trials.error, edges), _predicted(fit, lambda t: _histogram(t.error, edges)))
    _degree_axis(ax, True, "response − target (°)")
    ax.set_ylabel("density (per rad)")
    ax.set_ylim(0, 1.25 * ax.get_ylim()[1])
    ax.legend(loc="upper right")
    ax.set_title(f"n = {len(fit.trials):,} trials", loc="left")
    return ax


def _corrected(trials, edges, rng, shuffles=10):
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


def non_target_errors(ax: Axes, fit) -> Axes:
    """Histogram of response − non-target above chance, with the posterior predictive: a central peak is swaps."""
    if fit.trials.set_size.max() < 2:
        return note(ax, "Every trial has one item.")
    edges = np.linspace(-np.pi, np.pi, BINS + 1)
    rng = np.random.default_rng(fit.seed)
    observed = _corrected(fit.trials, edges, rng, 50)
    _bars_and_band(ax, edges, observed, _predicted(fit, lambda t: _corrected(t, edges, rng, 4)))
    ax.axhline(0, color="0.3", lw=0.6)
    _degree_axis(ax, True, "response − non-target (°)")
    ax.set_ylabel("density above chance (per rad)")
    ax.set_ylim(top=1.3 * ax.get_ylim()[1])
    ax.legend(loc="upper right")
    return ax


def _nearest_share(trials, feature, edges):
    """Of the distractors in each bin of distance, the share that the response is nearest to."""
    deviation = np.abs(trials.deviation)
    distance = np.abs(trials.distance(feature))
    nearest = np.nanargmin(deviation, 1)
    item = np.arange(deviation.shape[1])[None]
    shown = np.isfinite(distance) & (item > 0)
    hit = (item == nearest[:, None]) & shown
    every = np.histogram(distance[shown], edges)[0]
    with np.errstate(invalid="ignore"):
        return np.histogram(distance[hit], edges)[0] / np.where(every > 0, every, np.nan)


def predictive(ax: Axes, fit) -> Axes:
    """Posterior predictive check of the swaps: how often the nearest item to the response is a distractor, by its distance."""
    trials = fit.trials
    if trials.set_size.max() < 2:
        return note(ax, "Every trial has one item.")
    feature = fit.name if fit.name in ("probe", "report") else "probe" if trials.probe is not None else "report"
    distance = np.abs(trials.distance(feature)[:, 1:])
    unique = np.unique(np.round(distance[np.isfinite(distance)], 6))
    if len(unique) <= 12:
        middle = unique
        edges = np.concatenate([[0], (unique[1:] + unique[:-1]) / 2, [np.pi + 1e-6]])
    else:
        edges = np.linspace(0, np.pi + 1e-6, 13)
        middle = (edges[1:] + edges[:-1]) / 2
    predicted = _predicted(fit, lambda t: _nearest_share(t, feature, edges))
    known = np.isfinite(_nearest_share(trials, feature, edges))
    low, high = np.quantile(predicted[:, known], (0.025, 0.975), axis=0)
    x = np.degrees(middle[known])
    ax.fill_between(x, 100 * low, 100 * high, color=VERMILION, alpha=0.3, lw=0)
    ax.plot(x, 100 * predicted[:, known].mean(0), color=VERMILION, label="fit, 95 % predictive")
    ax.plot(x, 100 * _nearest_share(trials, feature, edges)[known], "o", color="black", ms=3.5, label="data")
    ax.set(xticks=DEGREES, xlim=(-3, 183), ylabel="response nearest to it (%)", xlabel=f"non-target's {feature} distance (°)")
    ax.set_ylim(0, 1.25 * ax.get_ylim()[1])
    ax.legend(loc="upper right")
    return ax


def comparison(ax: Axes, table, chosen: str | None = None) -> Axes:
    """Leave-one-out predictive density of each model below the best, with standard errors."""
    if table is None:
        return note(ax, "One model was fitted, so there is nothing to compare.")
    place = np.arange(len(table))[::-1]
    for at, (_, row) in zip(place, table.iterrows()):
        colour = ORANGE if row["model"] == chosen else GREY
        ax.errorbar(row["elpd_difference"], at, xerr=row["difference_se"], fmt="o", ms=5, color=colour, capsize=2)
    ax.axvline(0, color="0.3", lw=0.6, ls=":")
    names = [m + (" (chosen)" if m == chosen else "") for m in table["model"]]
    ax.set(yticks=place, yticklabels=names, xlabel="predictive density (nats)\nbelow the best, ± s.e.")
    ax.set_ylim(-0.6, len(table) - 0.4)
    return ax


def overview(fit):
    """All panels on one page."""
    with style():
        figure, axes = plt.subplots(2, 3, figsize=(TEXT_WIDTH, 4.3), layout="constrained")
        panels = [
            lambda ax: swap_function(ax, fit), lambda ax: swap_probability(ax, fit),
            lambda ax: comparison(ax, fit.comparison, fit.name),
            lambda ax: errors(ax, fit), lambda ax: non_target_errors(ax, fit), lambda ax: predictive(ax, fit),
        ]  # fmt: skip
        for ax, draw, name in zip(axes.flat, panels, "ABCDEF"):
            draw(ax)
            letter(ax, name)
    return figure


def subjects(fits):
    """Every subject's p(swap), with the mean of subjects."""
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(TEXT_WIDTH, 2.6), layout="constrained")
        ax = axes[0]
        if fits.name == "none":
            note(ax, "The model has no swaps.")
        elif fits.name == "both":
            note(ax, "p(swap) of both features is in each subject's own folder.")
        else:
            curves = [fit.swap_function() for fit in fits.values()]
            x = np.degrees(curves[0]["distance"])
            for table in curves:
                ax.plot(x, table["p_swap"], color=GREY, lw=0.7, alpha=0.7)
            ax.plot([], [], color=GREY, lw=0.7, label="subjects, posterior mean")
            ax.plot(x, np.mean([table["p_swap"] for table in curves], 0), color=BLUE, lw=1.8, label=f"mean of {len(fits)}")
            first = next(iter(fits.values()))
            _degree_axis(ax, not first.model.even, _distance_label(first))
            ax.set_ylabel("p(swap), one non-target")
            ax.set_ylim(bottom=0)
            ax.legend()
        comparison(axes[1], fits.comparison, fits.name)
    return figure


def save_all(fit, folder: Path) -> list[Path]:
    """Every plot as PNG and PDF; returns the files."""
    figures = {}
    if isinstance(fit, dict):
        figures["swap_function"] = subjects(fit)
    else:
        with style():
            figures["swap_function"], axes = plt.subplots(1, 2, figsize=(TEXT_WIDTH * 0.75, 2.4), layout="constrained")
            swap_function(axes[0], fit)
            swap_probability(axes[1], fit)
            for name, draw in (("errors", errors), ("non_target_errors", non_target_errors), ("predictive", predictive)):
                figures[name], ax = plt.subplots(figsize=(3.4, 2.5), layout="constrained")
                draw(ax, fit)
            if fit.comparison is not None:
                figures["comparison"], ax = plt.subplots(figsize=(3.4, 2.2), layout="constrained")
                comparison(ax, fit.comparison, fit.name)
    paths = []
    with style():
        for name, figure in figures.items():
            for ending in ("png", "pdf"):
                paths.append(Path(folder) / f"{name}.{ending}")
                figure.savefig(paths[-1])
            plt.close(figure)
    return paths
