"""Plots of a fit to behaviour: the swap function, errors, errors to non-targets, posterior predictive, parameters by
set size, model comparison. Angles are in the unit of the table: degrees, or degrees of orientation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.circular import difference
from lapsus.files import write_figure
from lapsus.inference.interpolation import distinct
from lapsus.inference.result import Fit, SubjectFits
from lapsus.inference.shares import BAND
from lapsus.plots.style import BLUE, GREY, ORANGE, TEXT_WIDTH, VERMILION, letter, lettered, note, style
from lapsus.statistics.swaps import distance_edges, nearest_item, rate_by_distance
from lapsus.trials import Trials

__all__ = [
    "comparison",
    "errors",
    "non_target_errors",
    "overview",
    "parameters",
    "predictive",
    "save_all",
    "subject_swap_functions",
    "subject_weights",
    "subjects",
    "swap_function",
    "swap_probability",
]

# Odd numbers of bins: one is centred on 0, so that responses in whole steps do not fall on its edge.
ERROR_BINS, BINS = 61, 37


def _degree_axis(ax: Axes, signed: bool, label: str, per_radian: float) -> None:
    half = round(np.pi * per_radian)  # 180, or 90 for orientations
    ticks = [-half, -half / 2, 0, half / 2, half] if signed else np.linspace(0, half, 5)
    shown = [f"{tick:g}".replace("-", "−") for tick in ticks]
    ax.set(xticks=ticks, xticklabels=shown, xlim=(ticks[0] - half / 45, half + half / 45), xlabel=label)


def _feature(fit: Fit) -> str:
    """The feature on whose distance f depends, or that is shown where it depends on none."""
    if fit.name in ("probe", "report"):
        return fit.name
    return "probe" if fit.trials.probe is not None else "report"


def _scale(fit: Fit, feature: str | None = None) -> float:
    """Degrees of a feature in a radian."""
    return fit.trials.degrees if (feature or _feature(fit)) == "report" else fit.trials.probe_degrees


def _name(fit: Fit, feature: str | None = None) -> str:
    trials = fit.trials
    return lettered(trials.feature_name if (feature or _feature(fit)) == "report" else trials.probe_name)


def _distance_label(fit: Fit) -> str:
    return f"{_name(fit)} distance from the cued item (°)"


def _distances(fit: Fit) -> np.ndarray:
    """The distinct distances of distractors in the data, in radians; none where f depends on no distance."""
    if fit.name not in ("probe", "report"):
        return np.zeros(0)
    values = fit.trials.distance(fit.name)[:, 1:]
    values = values[np.isfinite(values)]
    return distinct(np.abs(values) if fit.model.even else values)


def _where_known(fit: Fit) -> pd.DataFrame:
    """The swap function where there are data: below the smallest distance that was shown it would be the prior's."""
    table, shown = fit.swap_function(), _distances(fit)
    x = table["distance"]
    return table if not len(shown) else table[(x > shown[0] - 0.02) & (x < shown[-1] + 0.02)]


def _marks(ax: Axes, fit: Fit, value: str, low: str, high: str) -> None:
    """Where the data have distractors at a few distances only: between them the curve is the prior's."""
    shown = _distances(fit)
    if 0 < len(shown) <= 48:
        table = fit.swap_function(shown)
        spread = [table[value] - table[low], table[high] - table[value]]
        ax.errorbar(
            _scale(fit) * shown,
            table[value],
            np.maximum(spread, 0),
            fmt="o",
            ms=3,
            color=BLUE,
            lw=0.9,
            clip_on=False,
            label="distances in the data",
        )


def _curve(ax: Axes, fit: Fit, value: str, low: str, high: str, label: str) -> Axes:
    if fit.name == "none":
        return note(ax, "The model has no swaps.")
    if fit.name == "both":
        return _map(ax, fit, value, label)
    table = _where_known(fit)
    x = _scale(fit) * table["distance"]
    ax.fill_between(x, table[low], table[high], color=BLUE, alpha=0.25, lw=0, label="95 % band")
    ax.plot(x, table[value], color=BLUE, label="posterior mean")
    _marks(ax, fit, value, low, high)
    _degree_axis(ax, not fit.model.even, _distance_label(fit), _scale(fit))
    ax.set_ylabel(label)
    return ax


def _image(ax: Axes, fit: Fit, table: pd.DataFrame, value: str, **limits: float) -> Any:
    side = int(np.sqrt(len(table)))
    axis = table["report_distance"].to_numpy()[:side]
    values = table[value].to_numpy().reshape(side, side).T
    scales = [_scale(fit, feature) for feature in ("probe", "report")]
    places = np.array([0, 0.5, 1] if fit.model.even else [-1, 0, 1]) * np.pi
    ax.set(xticks=np.round(places * scales[0]), yticks=np.round(places * scales[1]), box_aspect=1)
    x, y = (axis * scale for scale in scales)
    return ax.pcolormesh(x, y, values, shading="gouraud", cmap="viridis", rasterized=True, **limits)


def _map(ax: Axes, fit: Fit, value: str, label: str) -> Axes:
    image = _image(ax, fit, fit.swap_function(), value)
    ax.set(xlabel=f"{_name(fit, 'probe')} distance (°)", ylabel=f"{_name(fit, 'report')} distance (°)")
    ax.figure.colorbar(image, ax=ax, label=label, shrink=0.85)
    return ax


def swap_function(ax: Axes, fit: Fit) -> Axes:
    """Posterior of f with its 95 % band."""
    return _curve(ax, fit, "f", "low", "high", "swap function f (log odds)")


def swap_probability(ax: Axes, fit: Fit) -> Axes:
    """Posterior of p(swap) with one distractor, with its 95 % band."""
    _curve(ax, fit, "p_swap", "p_low", "p_high", "p(swap), one non-target")
    if fit.name not in ("none", "both"):
        top = min(ax.get_ylim()[1], 1.0)
        ax.set_ylim(0, 1.4 * top)  # room for the legend
        ax.set_yticks([tick for tick in ax.get_yticks() if tick <= 1])
        ax.legend(loc="upper right")
    return ax


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
    low, high = np.quantile(predicted, (0.025, 0.975), axis=0)
    ax.fill_between(middle, low, high, color=VERMILION, alpha=0.3, lw=0)
    ax.plot(middle, predicted.mean(0), color=VERMILION, label="fit, 95 % predictive")


def errors(ax: Axes, fit: Fit) -> Axes:
    """Histogram of response errors, with the fit's posterior predictive."""
    edges = np.linspace(-np.pi, np.pi, ERROR_BINS + 1)
    predicted = _predicted(fit, lambda t: _histogram(t.error, edges))
    _bars_and_band(ax, edges, _histogram(fit.trials.error, edges), predicted, fit.trials.degrees)
    _degree_axis(ax, True, "response − target (°)", fit.trials.degrees)
    ax.set_ylabel("density (per degree)")
    ax.set_ylim(0, 1.25 * ax.get_ylim()[1])
    ax.legend(loc="upper right")
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
    _degree_axis(ax, True, "response − non-target (°)", fit.trials.degrees)
    ax.set_ylabel("density above chance\n(per degree)")
    ax.set_ylim(top=1.3 * ax.get_ylim()[1])
    ax.legend(loc="upper right")
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
    feature = _feature(fit)
    gap = np.abs(trials.distance(feature)[:, 1:])
    gap = gap[np.isfinite(gap)]
    edges = distance_edges(gap, 12)
    middle = rate_by_distance(gap, gap, edges)
    predicted = _predicted(fit, lambda t: _nearest_share(t, feature, edges))
    known = np.isfinite(_nearest_share(trials, feature, edges))
    low, high = np.quantile(predicted[:, known], (0.025, 0.975), axis=0)
    x = _scale(fit, feature) * middle[known]
    ax.fill_between(x, 100 * low, 100 * high, color=VERMILION, alpha=0.3, lw=0)
    ax.plot(x, 100 * predicted[:, known].mean(0), color=VERMILION, label="fit, 95 % predictive")
    ax.plot(
        x, 100 * _nearest_share(trials, feature, edges)[known], "o", color="black", ms=3.5, clip_on=False, label="data"
    )
    _degree_axis(ax, False, f"non-target's {_name(fit, feature)} distance (°)", _scale(fit, feature))
    ax.set_ylabel("responses nearest to\nthat non-target (%)")
    ax.set_ylim(0, 1.25 * ax.get_ylim()[1])
    ax.legend(loc="upper right")
    return ax


def comparison(ax: Axes, table: pd.DataFrame, chosen: str | None = None) -> Axes:
    """Leave-one-out predictive density of each model below the best, with standard errors."""
    if table is None:
        return note(ax, "One swap model was fitted, so there is nothing to compare.")
    place = np.arange(len(table))[::-1]
    for at, (_, row) in zip(place, table.iterrows()):
        colour = ORANGE if row["model"] == chosen else GREY
        ax.errorbar(row["elpd_difference"], at, xerr=row["difference_se"], fmt="o", ms=5, color=colour, capsize=2)
    ax.axvline(0, color="0.3", lw=0.6, ls=":")
    names = [m + (" (kept)" if m == chosen else "") for m in table["model"]]
    ax.set(yticks=place, yticklabels=names, xlabel="predictive density (nats)\nbelow the best, ± s.e.")
    ax.set_ylim(-0.6, len(table) - 0.4)
    return ax


def parameters(axes: np.ndarray, fit: Fit) -> np.ndarray:
    """The classic figure: non-target reports, guesses and circular s.d. against set size, in three axes; one line a
    condition (mean of subjects, 95 % band), subjects in grey behind it."""
    rates, scatter = fit.mean_rates, fit.emission
    conditions = fit.model.conditions
    colours = dict(zip(conditions, [BLUE, ORANGE, VERMILION, GREY, *["black"] * len(conditions)]))
    panels = (
        ("swap", "non-target reports (%)", 100, 1),
        ("guess", "guesses (%)", 100, 0),
        ("circular_sd", "circular s.d. (°)", fit.trials.degrees, 0),
    )
    sizes = fit.model.sizes
    for ax, (name, label, factor, least) in zip(axes, panels):
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
                    {"set_size": n, name: v.mean()} | dict(zip((f"{name}_low", f"{name}_high"), np.quantile(v, BAND)))
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
        axes[0].legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return axes


def _heading(figure: Figure, fit: Fit) -> None:
    trials = fit.trials
    subjects, sizes = len(np.unique(trials.subject)), np.unique(trials.set_size)
    run = len(sizes) > 2 and len(sizes) == sizes[-1] - sizes[0] + 1
    shown = "set sizes " if len(sizes) > 1 else "set size "
    shown += f"{sizes[0]}–{sizes[-1]}" if run else ", ".join(map(str, sizes))
    who = f" of {subjects} subjects" if subjects > 1 else ""
    figure.suptitle(f"{len(trials):,} trials{who}, {shown}; model {fit.name}", fontsize=7)


def overview(fit: Fit) -> Figure:
    """All panels on one page."""
    with style():
        figure, axes = plt.subplots(2, 3, figsize=(TEXT_WIDTH, 4.4), layout="constrained")
        _heading(figure, fit)
        panels = [
            lambda ax: swap_function(ax, fit),
            lambda ax: swap_probability(ax, fit),
            lambda ax: comparison(ax, fit.comparison, fit.name),
            lambda ax: errors(ax, fit),
            lambda ax: non_target_errors(ax, fit),
            lambda ax: predictive(ax, fit),
        ]
        for ax, draw, name in zip(axes.flat, panels, "ABCDEF"):
            draw(ax)
            letter(ax, name)
    return figure


def subjects(fits: SubjectFits) -> Figure:
    """Subjects on one page: p(swap) with its mean, the shares of responses, model comparison."""
    panels = [subject_weights]
    if fits.name not in ("none", "both"):  # the torus does not fit in one panel: subject_swap_functions shows it
        panels.insert(0, _subject_curves)
    if fits.comparison is not None:
        panels.append(lambda ax, fits: comparison(ax, fits.comparison, fits.name))
    size = (TEXT_WIDTH * len(panels) / 3, max(2.4, 0.9 + 0.14 * len(fits)))
    with style():
        figure, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained", squeeze=False)
        for ax, draw, name in zip(axes[0], panels, "ABC"):
            draw(ax, fits)
            if len(panels) > 1:
                letter(ax, name)
    return figure


def _titles(fits: SubjectFits) -> dict[str, str]:
    return {subject: f"{lettered(subject, 16)}, n = {len(fit.trials):,}" for subject, fit in fits.items()}


def _subject_curves(ax: Axes, fits: SubjectFits) -> Axes:
    """p(swap) of every subject and their mean; by subject where it is one number."""
    first = next(iter(fits.values()))
    if fits.name == "none":
        return note(ax, "The model has no swaps.")
    if fits.name == "constant":
        rows = [fit.swap_function([0.0]).iloc[0] for fit in fits.values()]
        _forest(ax, fits, [(rows, "p_swap", "p_low", "p_high", BLUE, None)], 1.0)
        ax.set_xlabel("p(swap), one non-target,\nmean and 95 % band")
        return ax
    # Each subject's curve where it has data; the mean where all have.
    curves = [_where_known(fit).set_index("distance")["p_swap"] for fit in fits.values()]
    values = pd.concat(curves, axis=1, join="inner").to_numpy().T
    x = _scale(first) * np.asarray(pd.concat(curves, axis=1, join="inner").index)
    ax.plot(x, values.T, color=GREY, lw=0.7, alpha=0.7)
    ax.plot([], [], color=GREY, lw=0.7, label="subjects, posterior mean")
    if len(fits) > 1:
        se = values.std(0, ddof=1) / np.sqrt(len(fits))
        ax.fill_between(x, values.mean(0) - se, values.mean(0) + se, color=BLUE, alpha=0.25, lw=0)
        ax.plot(x, values.mean(0), color=BLUE, lw=1.8, label=f"mean of {len(fits)} ± s.e.m.")
    _degree_axis(ax, not first.model.even, f"{_name(first)} distance (°)", _scale(first))
    ax.set(ylabel="p(swap), one non-target", ylim=(0, 1.3 * values.max()))
    ax.set_yticks([tick for tick in ax.get_yticks() if tick <= 1])
    ax.legend(loc="upper right")
    return ax


def _forest(ax: Axes, fits: SubjectFits, series: Any, scale: float) -> None:
    """One line a subject, with the points and bands of each (rows, value, low, high, colour, label)."""
    place = np.arange(len(fits))[::-1]
    for number, (rows, value, low, high, colour, label) in enumerate(series):
        at = place + 0.14 * (len(series) - 1 - 2 * number)
        middle = scale * np.array([row[value] for row in rows])
        spread = [
            middle - scale * np.array([row[low] for row in rows]),
            scale * np.array([row[high] for row in rows]) - middle,
        ]
        ax.errorbar(middle, at, xerr=np.maximum(spread, 0), fmt="o", ms=3, lw=0.9, color=colour, label=label)
    ax.set(yticks=place, yticklabels=list(_titles(fits).values()))
    ax.set_xlim(0, min(ax.get_xlim()[1], scale))  # shares end at one
    ax.set_ylim(-0.7, len(fits) - 0.3)


def subject_weights(ax: Axes, fits: SubjectFits) -> Axes:
    """How often each subject reports a non-target or guesses, with 95 % bands: the largest set size."""
    rows = [fit.weights.iloc[-1] for fit in fits.values()]
    series = [(rows, "guess", "guess_low", "guess_high", ORANGE, "guess")]
    if fits.name != "none":
        series.insert(0, (rows, "non_target", "non_target_low", "non_target_high", BLUE, "non-target"))
    _forest(ax, fits, series, 100)
    sizes = sorted({int(row["set_size"]) for row in rows})
    ax.set_xlabel(f"responses at set size {', '.join(map(str, sizes))} (%),\nmean and 95 % band")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, columnspacing=1, borderaxespad=0.2)
    return ax


def subject_swap_functions(fits: SubjectFits) -> Figure:
    """p(swap) of every subject in a panel of its own, with its 95 % band."""
    if fits.name in ("none", "constant"):
        with style():
            figure, ax = plt.subplots(figsize=(3.4, 0.8 + 0.14 * max(len(fits), 5)), layout="constrained")
            _subject_curves(ax, fits)
        return figure
    columns = min((5, 4, 3), key=lambda count: -len(fits) % count) if len(fits) > 5 else len(fits)
    rows = -(-len(fits) // columns)
    size = (TEXT_WIDTH * min(1, columns / 3), 0.5 + 1.45 * rows)
    with style():
        figure, axes = plt.subplots(
            rows, columns, figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False
        )
        tables = {subject: _where_known(fit) for subject, fit in fits.items()}
        top = max(table["p_swap"].max() for table in tables.values())
        for ax, (subject, fit) in zip(axes.flat, fits.items()):
            if fits.name == "both":
                image = _image(ax, fit, tables[subject], "p_swap", vmin=0, vmax=top)
            else:
                _curve(ax, fit, "p_swap", "p_low", "p_high", "")
                ax.set_xlabel("")
            ax.set_title(_titles(fits)[subject])
        for ax in axes.flat[len(fits) :]:
            ax.axis("off")
        for number, ax in enumerate(axes.flat):
            ax.tick_params(labelbottom=number + columns >= len(fits))  # the lowest of its column has the numbers
        if fits.name == "both":
            figure.colorbar(image, ax=axes, label="p(swap), one non-target", shrink=0.8)
            figure.supxlabel(f"{_name(fit, 'probe')} distance (°)", fontsize=7)
            figure.supylabel(f"{_name(fit, 'report')} distance (°)", fontsize=7)
        else:
            axes[0, 0].set_ylim(0, min(1.0, 1.05 * max(table["p_high"].max() for table in tables.values())))
            figure.supxlabel(_distance_label(fit), fontsize=7)
            figure.supylabel("p(swap), one non-target", fontsize=7)
            figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
    return figure


def save_all(fit: Fit | SubjectFits, folder: Path) -> list[Path]:
    """Every plot of a Fit or of SubjectFits as PNG and PDF into its folder; returns the files."""
    figures = {}
    if isinstance(fit, SubjectFits):
        figures["swap_function"], figures["subjects"] = subject_swap_functions(fit), subjects(fit)
    else:
        with style():
            figures["swap_function"], axes = plt.subplots(1, 2, figsize=(TEXT_WIDTH * 0.75, 2.5), layout="constrained")
            swap_function(axes[0], fit)
            swap_probability(axes[1], fit)
            for name, draw in (
                ("errors", errors),
                ("non_target_errors", non_target_errors),
                ("predictive", predictive),
            ):
                figures[name], ax = plt.subplots(figsize=(3.4, 2.5), layout="constrained")
                draw(ax, fit)
            figures["parameters"], axes = plt.subplots(1, 3, figsize=(TEXT_WIDTH, 2.3), layout="constrained")
            parameters(axes, fit)
            if fit.comparison is not None:
                figures["comparison"], ax = plt.subplots(figsize=(3.4, 2.2), layout="constrained")
                comparison(ax, fit.comparison, fit.name)
            for figure in figures.values():
                _heading(figure, fit)
    paths = []
    with style():
        for name, figure in figures.items():
            for ending in ("png", "pdf"):
                paths.append(Path(folder) / f"{name}.{ending}")
                write_figure(paths[-1], figure)
            plt.close(figure)
    return paths
