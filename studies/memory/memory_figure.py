"""Beyond the paper: what its networks, and those that were trained on delays that vary, remember at other delays."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.analysis.alignment import pre_and_post_cue
from lapsus.errors import LapsusError
from lapsus.evaluation.delays import DELAYS, evaluate_delays, growth, norm_course
from lapsus.paper.fig3 import FEATURE_NETWORKS, INDEX_NETWORKS, feature_alignment, index_alignment
from lapsus.paper.roles import LABELS, Networks
from lapsus.plots.style import TEXT_WIDTH, colour_of, letter, note, panel, style
from lapsus.training.experiment import SETS

__all__ = ["error_by_delay", "figure", "growth_of_errors", "norms", "planes", "tables"]

ROLES = (*INDEX_NETWORKS, *FEATURE_NETWORKS)
LINES = {"paper": "--", "persistent": "-"}
NEAR, FAR = 45, 135


@lru_cache(maxsize=4)
def _set(which: str, seed: int = 1) -> Networks:
    return Networks.shipped(seed, which)


# --- Numbers ---


@lru_cache(maxsize=64)
def error_by_delay(which: str, role: str) -> pd.DataFrame:
    """delay, median_error (rad), away, swap_curve_mad, … of one network, one row a delay."""
    networks = _set(which)
    sizes = networks.sizes
    return pd.DataFrame(evaluate_delays(networks.model(role), DELAYS, sizes.delay_conditions, sizes.delay_trials))


@lru_cache(maxsize=64)
def norms(which: str, role: str) -> np.ndarray:
    """Norm of the rates from stimulus offset through a delay of 40 steps, [41]."""
    return norm_course(_set(which).model(role))


@lru_cache(maxsize=64)
def planes(which: str, role: str) -> pd.DataFrame:
    """Alignment of the two items' planes in the five steps before the cue and in the five after it: one row a probe
    distance (degrees); opposite places for index-cued networks."""
    if role.startswith("index"):
        before, after = pre_and_post_cue(index_alignment(_set(which), role)["alignment"].expand_dims("group"))
        return pd.DataFrame({"distance": [180], "before": before, "after": after})
    curves = feature_alignment(_set(which), role)
    rows = [(d, *pre_and_post_cue(curves.sel(distance=d, drop=True))) for d in (NEAR, FAR)]
    return pd.DataFrame([(d, b.mean(), a.mean()) for d, b, a in rows], columns=["distance", "before", "after"])


def _all(make: Callable[[str, str], pd.DataFrame]) -> pd.DataFrame:
    """One table of all networks that there are in both sets."""
    parts = []
    for which in SETS:
        for role in ROLES:
            if role in _set(which):
                parts.append(make(which, role).assign(network=role, set=which))
    if not parts:
        raise LapsusError("no network ships")
    return pd.concat(parts, ignore_index=True)


def growth_of_errors() -> pd.DataFrame:
    """How the median error of each network of the persistent set grows with the delay: written, held (rad), exponent;
    and what is left of the norm of its rates after 40 steps."""
    rows = []
    for role in ROLES:
        if role in _set("persistent"):
            table, course = error_by_delay("persistent", role), norms("persistent", role)
            found = growth(table["delay"], table["median_error"])
            left = course[-1] / course[0]
            rows.append((role, found.written, found.held, found.exponent, left))
    return pd.DataFrame(rows, columns=["network", "written", "held", "exponent", "norm_ratio"])


def tables(networks: Networks) -> dict[str, pd.DataFrame]:
    """All numbers of the figure, by the name of their file; always of both sets that ship."""
    return {"delays": _all(error_by_delay), "growth": growth_of_errors(), "planes": _all(planes)}


# --- Panels ---


def _by_delay(ax: Axes, roles: tuple[str, ...], column: str, label: str, limit: float) -> Axes:
    named: set[str] = set()
    for which, line in LINES.items():
        for role in roles:
            if role in _set(which):
                table, label_once = error_by_delay(which, role), None if role in named else LABELS[role]
                ax.plot(table["delay"], table[column], line, marker=".", ms=3, color=colour_of(role), label=label_once)
                named.add(role)
    if not named:
        return note(ax, "no network ships")
    ax.axvspan(3, 40, color="0.93", lw=0, zorder=0)
    ax.set(xlabel="delay (steps)", ylabel=label, ylim=(0, limit), xticks=[5, 20, 40, 80])
    return ax


def _norm_panel(ax: Axes, roles: tuple[str, ...]) -> Axes:
    for which, line in LINES.items():
        for role in roles:
            if role in _set(which):
                ax.plot(norms(which, role), line, color=colour_of(role), lw=0.9)
    ax.set(xlabel="steps from stimulus offset", ylabel="norm of the rates", yscale="log")
    ax.set_yticks([30, 100, 300, 1000], ["30", "100", "300", "1000"])
    ax.minorticks_off()
    ax.set_ylim(20, 1000)
    return ax


def _plane_panel(ax: Axes, roles: tuple[str, ...]) -> Axes:
    """Alignment before and after the cue, one pair of points a network and probe distance."""
    shift = {"paper": -0.12, "persistent": 0.12}
    for which, line in LINES.items():
        for k, role in enumerate(roles):
            if role not in _set(which):
                continue
            for row in planes(which, role).itertuples():
                x, marker = k + shift[which], "o" if row.distance != FAR else "s"
                ax.plot([x - 0.05, x + 0.05], [row.before, row.after], line, color=colour_of(role), lw=0.8)
                ax.plot(x - 0.05, row.before, marker, color="w", mec=colour_of(role), ms=3.5)
                ax.plot(x + 0.05, row.after, marker, color=colour_of(role), ms=3.5)
    ax.set(ylim=(0, 1.03), xticks=range(len(roles)), ylabel="plane alignment |cos|")
    ax.set_xticklabels([LABELS[role] for role in roles], rotation=25, ha="right", fontsize=5.5)
    return ax


def figure(networks: Networks) -> Figure:
    """Error and swap curve against the delay, rates over it, and planes, of the networks of both sets."""
    from matplotlib import pyplot as plt

    with style():
        fig, axes = plt.subplots(2, 4, figsize=(TEXT_WIDTH, 3.9), layout="constrained")
        for row, roles, name in zip(axes, (INDEX_NETWORKS, FEATURE_NETWORKS), ("index-cued", "feature-cued")):
            panel(row[0], _by_delay, roles, "median_error", "median error (rad)", 0.9)
            panel(row[1], _by_delay, roles, "swap_curve_mad", "swap curve off target", 0.6)
            panel(row[2], _norm_panel, roles)
            panel(row[3], _plane_panel, roles)
            row[0].set_title(name, loc="left", fontweight="bold")
            if row[0].lines:  # in the panel of the rates there is room for it
                row[2].legend(*row[0].get_legend_handles_labels(), fontsize=5, loc="upper right")
        for ax, text in zip(axes.ravel(), "ABCDEFGH"):
            letter(ax, text)
    return fig
