"""The figures of docs/ensembles.md: alignment at each probe distance, and claims in single networks."""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import numpy as np
import pandas as pd
from lapsus.paper.recorded import recorded
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy import stats
from tables import STUDIES

from lapsus.files import write_figure
from lapsus.paper.roles import LABELS
from lapsus.paper.verdicts import criteria
from lapsus.plots.style import TEXT_WIDTH, colour_of, letter, style
from lapsus.zoo.shipped import seed_of

DOCS = Path(__file__).resolve().parents[1]
DEGREES = (45, 75, 105, 135, 165)
# Statistics between 0 and 1, which can share an axis.
SHARES = {
    "aligned_before": "alignment before the cue",
    "aligned_after": "alignment after the cue",
    "carried_by_x": "carried by x",
}
MARKERS = dict(enumerate("os^Dv", 1))


def plain(role: str) -> str:
    """What a role is called on the page."""
    return LABELS[role].replace(r"$\tilde\pi$", "π")


def alignment_figure(members: pd.DataFrame, spreads: pd.DataFrame) -> None:
    """A line a network: alignment before the cue at each probe distance; and the interval of a mean over networks."""
    recipes = [name for name in ("paper", "persistent") if name in set(members["recipe"])]
    with style():
        fig, axes = plt.subplots(1, len(recipes) + 1, figsize=(TEXT_WIDTH, 2.4), layout="constrained")
        for ax, recipe in zip(axes, recipes):
            own = members[(members["recipe"] == recipe) & members["role"].str.startswith("feature")]
            for role, group in own[own["before_45"].notna()].groupby("role", sort=False):
                if len(group) < 2:
                    continue
                for k, (_, row) in enumerate(group.iterrows()):
                    values = [row[f"before_{d}"] for d in DEGREES]
                    ax.plot(DEGREES, values, ".-", color=colour_of(role), lw=0.8, label=None if k else plain(role))
            ax.set(ylim=(0, 1.03), xticks=DEGREES, xlabel="probe distance (°)", title=f"{recipe} set")
        axes[0].set_ylabel("alignment before the cue")
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
        ax, counts = axes[-1], np.arange(2, 31)
        shown = spreads[(spreads["recipe"] == recipes[-1]) & spreads["statistic"].isin(list(SHARES))]
        for row in shown.itertuples():
            half = stats.t.ppf(0.975, counts - 1) * row.sd / np.sqrt(counts)
            ax.plot(counts, half, label=SHARES[row.statistic])
        ax.set(xlabel="networks trained", ylabel="± of their mean (95 %)", xticks=(3, 5, 10, 20, 30), ylim=(0, 0.8))
        ax.set_title("how many networks")
        ax.legend(loc="upper right")
        for one, text in zip(axes, "ABC"):
            letter(one, text)
        write_figure(DOCS / "ensembles.png", fig, dpi=200)
        plt.close(fig)


SHOWN = {
    "index-rise-05": "index-cued, 5 % swaps:\nrise of alignment in the cue",
    "index-rise-only": "index-cued: least rise with\nswaps minus largest without",
    "feature-rise-smooth": "smooth 2: flat minus\nsigmoid error (Table 1)",
    "feature-rise-only": "the same minus the largest\nof other targets",
    "close-more-aligned": "smooth 2: alignment before\nthe cue, 45° minus 165°",
    "after-cue": "index-cued: weight of the\nerror after the cue",
    "dice-after-cue": "share of the outcome\nfixed at cue offset",
    "alignment-predicts-swaps": "odds ratio of a swap\nfor one s.d. of alignment",
}


def claims_figure(recipes: list[str]) -> None:
    """Each network a marker, with the interval within it; dashed is the threshold, on whose grey side a claim fails."""
    found, known = {recipe: recorded(recipe, STUDIES / "claims.csv") for recipe in recipes}, criteria()
    with style():
        fig, axes = plt.subplots(2, 4, figsize=(TEXT_WIDTH, 3.9), layout="constrained")
        for ax, (id, title), text in zip(axes.flat, SHOWN.items(), "ABCDEFGH"):
            _claim_panel(ax, {recipe: found[recipe].get(id, {}) for recipe in recipes}, known[id])
            ax.set_title(title)
            letter(ax, text)
        seeds = [Line2D([], [], color="0.3", marker=m, ls="", ms=4, label=f"seed {s}") for s, m in MARKERS.items()]
        open_ = Line2D([], [], color="0.3", marker="o", mfc="w", ls="", ms=4, label="index-cued, in G")
        fig.legend(handles=[*seeds, open_], loc="outside lower center", ncols=6)
        write_figure(DOCS / "ensembles-claims.png", fig, dpi=200)
        plt.close(fig)


def _claim_panel(ax: Axes, found: dict[str, dict], rule: dict) -> None:
    place, ticks = 0.0, {}
    mixed = len({"index" in name for each in found.values() for name in each}) > 1
    for k, (recipe, each) in enumerate(found.items()):
        if not each:
            continue
        at = place + np.arange(len(each)) * 0.5
        for x, (names, (value, low, high)) in zip(at, each.items()):
            face = "w" if mixed and "index" in names else f"C{k}"
            shape = {
                "fmt": MARKERS.get(seed_of(names), "o"),
                "ms": 3,
                "mew": 0.7,
                "mfc": face,
                "lw": 0.8,
                "color": f"C{k}",
            }
            ax.errorbar(x, value, [[value - low], [high - value]], **shape)
        ticks[float(at.mean())] = recipe.replace("-", "-\n") + f"\n({len(each)})"
        place = at[-1] + 1.5
    limit = rule.get("above", rule.get("below"))
    ax.axhline(limit, color="k", lw=0.6, ls="--")
    low, high = ax.get_ylim()
    edge = 0.12 * (max(high, limit) - min(low, limit))
    low, high = min(low, limit - edge), max(high, limit + edge)
    ax.axhspan(*((low, limit) if "above" in rule else (limit, high)), color="0.92", zorder=0)
    ax.set(ylim=(low, high), xlim=(-0.8, place - 0.7))
    ax.set_xticks(list(ticks), list(ticks.values()), fontsize=6)
