"""What the paper's networks, and those that were trained on delays that vary, remember at other delays.

python studies/memory/memory_figure.py     # seven minutes; writes memory.png and tables/
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import numpy as np
import pandas as pd
from error_growth import growth
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.errors import LapsusError
from lapsus.evaluation.delays import DELAYS, evaluate_delays, norm_course
from lapsus.files import make_folder, write_figure
from lapsus.mechanism.plane_alignment import pre_and_post_cue
from lapsus.paper.fig3 import FEATURE_NETWORKS, INDEX_NETWORKS, feature_alignment, index_alignment
from lapsus.paper.roles import LABELS, Networks
from lapsus.plots.style import TEXT_WIDTH, colour_of, letter, note, panel, style
from lapsus.zoo.shipped import core_minutes, shipped

# Collections that were trained by diffusion, of which this study is.
DIFFUSION_COLLECTIONS = ("paper", "persistent")

__all__ = ["error_by_delay", "figure", "growth_of_errors", "norms", "planes", "tables"]

ROLES = (*INDEX_NETWORKS, *FEATURE_NETWORKS)
LINES = {"paper": "--", "persistent": "-"}
NEAR, FAR = 45, 135
MEASURES = ("median_error", "swap_curve_mad", "swap_curve_max", "swap_likelihood_mad", "away", "excess")
FOLDER = Path(__file__).resolve().parent


@lru_cache(maxsize=4)
def _networks(collection: str) -> Networks:
    return Networks.shipped(1, collection)


# --- Numbers ---


@lru_cache(maxsize=64)
def error_by_delay(collection: str, role: str) -> pd.DataFrame:
    """delay, median_error (rad), away, swap_curve_mad, … of one network, one row per delay."""
    networks = _networks(collection)
    sizes = networks.sizes
    return pd.DataFrame(evaluate_delays(networks.model(role), DELAYS, sizes.delay_conditions, sizes.delay_trials))


@lru_cache(maxsize=64)
def norms(collection: str, role: str) -> np.ndarray:
    """Norm of the rates from stimulus offset through a delay of 40 steps, [41]."""
    return norm_course(_networks(collection).model(role))


@lru_cache(maxsize=64)
def planes(collection: str, role: str) -> pd.DataFrame:
    """Alignment of the two items' planes in the five steps before the cue and in the five after it: one row per probe
    distance (degrees); opposite places for index-cued networks."""
    if role.startswith("index"):
        before, after = pre_and_post_cue(index_alignment(_networks(collection), role)["alignment"].expand_dims("group"))
        return pd.DataFrame({"distance": [180], "before": before, "after": after})
    curves = feature_alignment(_networks(collection), role)
    rows = [(d, *pre_and_post_cue(curves.sel(distance=d, drop=True))) for d in (NEAR, FAR)]
    return pd.DataFrame([(d, b.mean(), a.mean()) for d, b, a in rows], columns=["distance", "before", "after"])


def _all(make: Callable[[str, str], pd.DataFrame]) -> pd.DataFrame:
    """One table of all networks that there are in both collections."""
    parts = []
    for collection in DIFFUSION_COLLECTIONS:
        for role in ROLES:
            if role in _networks(collection):
                parts.append(make(collection, role).assign(network=role, collection=collection))
    if not parts:
        raise LapsusError("no network ships")
    return pd.concat(parts, ignore_index=True)


def growth_of_errors() -> pd.DataFrame:
    """How the median error of each persistent network grows with the delay: written, held (rad), exponent;
    and what is left of the norm of its rates after 40 steps."""
    rows = []
    for role in ROLES:
        if role in _networks("persistent"):
            table, course = error_by_delay("persistent", role), norms("persistent", role)
            found = growth(table["delay"], table["median_error"])
            left = course[-1] / course[0]
            rows.append((role, found.written, found.held, found.exponent, left))
    return pd.DataFrame(rows, columns=["network", "written", "held", "exponent", "norm_ratio"])


def persistent_networks() -> pd.DataFrame:
    """Every seed of the persistent collection at every delay, from the records that ship, and its cost."""
    rows = []
    for name, facts in shipped("persistent").items():
        grown = growth([row["delay"] for row in facts["delays"]], [row["median_error"] for row in facts["delays"]])
        of_network = {"network": name, "core_minutes": core_minutes(facts), "norm_ratio": facts["norm_ratio"]}
        of_network |= {"written": grown.written, "held": grown.held, "exponent": grown.exponent}
        diffusion = facts["config"]["stage"][-1]["objective"]["kind"] == "diffusion"
        for row in facts["delays"]:
            measured = {key: row[key] for key in MEASURES if diffusion or key != "excess"}
            rows.append(of_network | {"delay": row["delay"]} | measured)
    return pd.DataFrame(rows)


def tables() -> dict[str, pd.DataFrame]:
    """All numbers of the figure, by the name of their file; of both collections."""
    first_seeds = {"delays": _all(error_by_delay), "growth": growth_of_errors(), "planes": _all(planes)}
    return first_seeds | {"persistent": persistent_networks()}


# --- Panels ---


def _by_delay(ax: Axes, roles: tuple[str, ...], column: str, label: str, limit: float) -> Axes:
    named: set[str] = set()
    for collection, line in LINES.items():
        for role in roles:
            if role in _networks(collection):
                table, label_once = error_by_delay(collection, role), None if role in named else LABELS[role]
                ax.plot(table["delay"], table[column], line, marker=".", ms=3, color=colour_of(role), label=label_once)
                named.add(role)
    if not named:
        return note(ax, "no network ships")
    ax.axvspan(3, 40, color="0.93", lw=0, zorder=0)
    ax.set(xlabel="delay (steps)", ylabel=label, ylim=(0, limit), xticks=[5, 20, 40, 80])
    return ax


def _norm_panel(ax: Axes, roles: tuple[str, ...]) -> Axes:
    for collection, line in LINES.items():
        for role in roles:
            if role in _networks(collection):
                ax.plot(norms(collection, role), line, color=colour_of(role), lw=0.9)
    ax.set(xlabel="steps from stimulus offset", ylabel="norm of the rates", yscale="log")
    ax.set_yticks([30, 100, 300, 1000], ["30", "100", "300", "1000"])
    ax.minorticks_off()
    ax.set_ylim(20, 1000)
    return ax


def _plane_panel(ax: Axes, roles: tuple[str, ...]) -> Axes:
    """Alignment before and after the cue, one pair of points a network and probe distance."""
    shift = {"paper": -0.12, "persistent": 0.12}
    for collection, line in LINES.items():
        for k, role in enumerate(roles):
            if role not in _networks(collection):
                continue
            for row in planes(collection, role).itertuples():
                x, marker = k + shift[collection], "o" if row.distance != FAR else "s"
                ax.plot([x - 0.05, x + 0.05], [row.before, row.after], line, color=colour_of(role), lw=0.8)
                ax.plot(x - 0.05, row.before, marker, color="w", mec=colour_of(role), ms=3.5)
                ax.plot(x + 0.05, row.after, marker, color=colour_of(role), ms=3.5)
    ax.set(ylim=(0, 1.03), xticks=range(len(roles)), ylabel="plane alignment |cos|")
    ax.set_xticklabels([LABELS[role] for role in roles], rotation=25, ha="right", fontsize=5.5)
    return ax


def figure() -> Figure:
    """Error and swap curve against the delay, rates over it, and planes, of the networks of both collections."""
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


if __name__ == "__main__":
    for name, table in tables().items():
        table.to_csv(make_folder(FOLDER / "tables") / f"{name}.csv", index=False, float_format="%.4g")
    write_figure(FOLDER / "memory.png", figure(), dpi=300)
