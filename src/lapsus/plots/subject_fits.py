"""Plots of fits to several subjects, each by itself: swap functions, shares of responses, model comparison."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.fitting.subjects import SubjectFits
from lapsus.plots.style import BLUE, GREY, ORANGE, TEXT_WIDTH, letter, lettered, style
from lapsus.plots.swap_functions import (
    averaged,
    curve,
    degree_axis,
    distance_label,
    image_of,
    model_comparison,
    name_of,
    scale_of,
    where_known,
)


def subjects(fits: SubjectFits) -> Figure:
    """Subjects on one page: p(swap) with its mean, the shares of responses, model comparison."""
    panels = [subject_weights]
    if _swaps(fits) and _features(fits) < 2:  # the torus does not fit in one panel: subject_swap_functions shows it
        panels.insert(0, _subject_curves)
    if fits.comparison is not None:
        panels.append(lambda ax, fits: model_comparison(ax, fits.comparison, fits.name))
    size = (TEXT_WIDTH * len(panels) / 3, max(2.4, 0.9 + 0.14 * len(fits)))
    with style():
        figure, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained", squeeze=False)
        for ax, draw, name in zip(axes[0], panels, "ABC"):
            draw(ax, fits)
            if len(panels) > 1:
                letter(ax, name)
    return figure


def _features(fits: SubjectFits) -> int:
    """Number of distances on which f depends."""
    return len(next(iter(fits.values())).swap_model.features)


def _swaps(fits: SubjectFits) -> bool:
    return next(iter(fits.values())).swap_model.swaps


def _titles(fits: SubjectFits) -> dict[str, str]:
    return {subject: f"{lettered(subject, 16)}, n = {len(fit.trials):,}" for subject, fit in fits.items()}


def _subject_curves(ax: Axes, fits: SubjectFits) -> Axes:
    """p(swap) of every subject and their mean; by subject where it is one number."""
    first = next(iter(fits.values()))
    if not _features(fits):
        rows = pd.concat([fit.swap_function([0.0]).iloc[:1] for fit in fits.values()])
        _forest(ax, fits, [(rows[["p_swap", "p_low", "p_high"]], BLUE, None)], 1.0)
        ax.set_xlabel(f"p(swap), one non-target,\nmean and 95 % band{averaged(first)}")
        return ax
    # Each subject's curve where it has data; the mean where all have.
    curves = [where_known(fit).set_index("distance")["p_swap"] for fit in fits.values()]
    values = pd.concat(curves, axis=1, join="inner").to_numpy().T
    x = scale_of(first) * np.asarray(pd.concat(curves, axis=1, join="inner").index)
    ax.plot(x, values.T, color=GREY, lw=0.7, alpha=0.7)
    ax.plot([], [], color=GREY, lw=0.7, label="subjects, posterior mean")
    if len(fits) > 1:
        se = values.std(0, ddof=1) / np.sqrt(len(fits))
        ax.fill_between(x, values.mean(0) - se, values.mean(0) + se, color=BLUE, alpha=0.25, lw=0)
        ax.plot(x, values.mean(0), color=BLUE, lw=1.8, label=f"mean of {len(fits)} ± s.e.m.")
    degree_axis(ax, not first.model.even, f"{name_of(first)} distance (°)", scale_of(first))
    ax.set(ylabel=f"p(swap), one non-target{averaged(first)}", ylim=(0, 1.3 * values.max()))
    ax.set_yticks([tick for tick in ax.get_yticks() if tick <= 1])
    ax.legend(loc="upper right")
    return ax


def _forest(ax: Axes, fits: SubjectFits, series: Sequence[tuple[pd.DataFrame, str, str | None]], scale: float) -> None:
    """One line per subject, with the points and bands of each (table of value, low and high; colour; label)."""
    height = np.arange(len(fits))[::-1]
    for number, (table, colour, label) in enumerate(series):
        value, low, high = scale * table.to_numpy(float).T
        at = height + 0.14 * (len(series) - 1 - 2 * number)
        bars = np.maximum([value - low, high - value], 0)
        ax.errorbar(value, at, xerr=bars, fmt="o", ms=3, lw=0.9, color=colour, label=label)
    ax.set(yticks=height, yticklabels=list(_titles(fits).values()))
    ax.set_xlim(0, min(ax.get_xlim()[1], scale))  # shares end at one
    ax.set_ylim(-0.7, len(fits) - 0.3)


def subject_weights(ax: Axes, fits: SubjectFits) -> Axes:
    """How often each subject reports a non-target or guesses, with 95 % bands: the largest set size."""
    largest = pd.concat([fit.weights.iloc[-1:] for fit in fits.values()])
    shares = {"non_target": BLUE} if _swaps(fits) else {}
    shares["guess"] = ORANGE
    series = [
        (largest[[share, f"{share}_low", f"{share}_high"]], colour, share.replace("_", "-"))
        for share, colour in shares.items()
    ]
    _forest(ax, fits, series, 100)
    sizes = np.unique(largest["set_size"].astype(int))
    ax.set_xlabel(f"responses at set size {', '.join(map(str, sizes))} (%),\nmean and 95 % band")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, columnspacing=1, borderaxespad=0.2)
    return ax


def subject_swap_functions(fits: SubjectFits) -> Figure:
    """p(swap) of every subject in a panel of its own, with its 95 % band."""
    if not _features(fits):
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
        tables = {subject: where_known(fit) for subject, fit in fits.items()}
        top = max(table["p_swap"].max() for table in tables.values())
        for ax, (subject, fit) in zip(axes.flat, fits.items()):
            if _features(fits) == 2:
                image = image_of(ax, fit, tables[subject], "p_swap", vmin=0, vmax=top)
            else:
                curve(ax, fit, "p_swap", "p_low", "p_high", "")
                ax.set_xlabel("")
            ax.set_title(_titles(fits)[subject])
        for ax in axes.flat[len(fits) :]:
            ax.axis("off")
        for number, ax in enumerate(axes.flat):
            ax.tick_params(labelbottom=number + columns >= len(fits))  # the lowest of its column has the numbers
        if _features(fits) == 2:
            figure.colorbar(image, ax=axes, label=f"p(swap), one non-target{averaged(fit)}", shrink=0.8)
            figure.supxlabel(f"{name_of(fit, 'probe')} distance (°)", fontsize=7)
            figure.supylabel(f"{name_of(fit, 'report')} distance (°)", fontsize=7)
        else:
            axes[0, 0].set_ylim(0, min(1.0, 1.05 * max(table["p_high"].max() for table in tables.values())))
            figure.supxlabel(distance_label(fit), fontsize=7)
            figure.supylabel(f"p(swap), one non-target{averaged(fit)}", fontsize=7)
            figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=3)
    return figure
