"""Tables and figure of docs/ensembles.md from the studies' tables (src/lapsus/paper/studies), whatever these hold.

python docs/making/ensembles.py

What is between <!-- name --> and <!-- end name --> is replaced; docs/ensembles.png is drawn. benchmarks/study.py adds
rows to the tables.
"""

import math
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from scipy import stats
from tables import markdown, put

from lapsus.analysis.procrustes import compare_groups
from lapsus.files import write_figure
from lapsus.paper.recorded import recorded, studies_folder
from lapsus.paper.roles import LABELS
from lapsus.paper.verdicts import criteria, judge_networks
from lapsus.plots.style import TEXT_WIDTH, colour_of, letter, style

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "ensembles.md"
DEGREES = (45, 75, 105, 135, 165)
# Most networks that one would train for a statistic.
MOST = 1000
COUNTS = (3, 5, 10, 20)
# How each column of members.csv is called on the page.
NAMES = {
    "excess": "excess over the Bayes denoiser",
    "swap_curve_mad": "swap curve, mean deviation",
    "median_error": "median error (rad)",
    "aligned_before": "alignment before the cue",
    "aligned_after": "alignment after the cue",
    "sigmoid_gain": "flat minus sigmoid error (Table 1)",
    "prediction": "odds ratio of the prediction on single trials",
    "half_time": "half-time (steps)",
    "fixed_at_cue_offset": "fixed at cue offset",
    "carried_by_x": "carried by x",
    "axis_auc": "area along the swap axis",
    "misinterpretation": "weight of misinterpretation",
}


def table(name: str) -> pd.DataFrame:
    path = studies_folder() / f"{name}.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()


def number(value: float, form: str = ".3g") -> str:
    return format(value, form) if math.isfinite(value) else "–"


# --- Which claims hold in which share of networks, under which recipe ---


def claims(recipes: list[str]) -> str:
    found = {recipe: recorded(recipe) for recipe in recipes}
    rows = []
    for id, rule in criteria().items():
        cells = []
        for recipe in recipes:
            each = found[recipe].get(id, {})
            if not each:
                cells.append("–")
                continue
            claim = judge_networks(id, each)
            held = round(claim.holding * len(each))
            interval = f" [{number(claim.low)}, {number(claim.high)}]" if claim.low is not None else ""
            cells.append(f"{claim.verdict}, {held} of {len(each)}: {number(claim.value)}{interval}")
        if any(cell != "–" for cell in cells):
            limit = f"> {rule['above']:g}" if "above" in rule else f"< {rule['below']:g}"
            rows.append([f"`{id}`", limit, *cells])
    return markdown(["claim", "holds if", *recipes], rows)


def one_network(recipes: list[str]) -> str:
    """How far one network's own verdict is from that of all of them, and how many would decide."""
    rows, known = [], criteria()
    for recipe in recipes:
        for id, each in recorded(recipe).items():
            if len(each) < 3:
                continue
            values, rule = np.array([value for value, _, _ in each.values()]), known[id]
            limit, sign = rule.get("above", rule.get("below")), 1 if "above" in rule else -1
            within = np.mean([(high - low) / 2 for _, low, high in each.values()])
            spread = float(values.std(ddof=1))
            needed = networks_needed(spread, abs(float(values.mean()) - limit))
            beyond = int((sign * (values - limit) > 0).sum())
            ratio = number(1.96 * spread / within, ".1f") if within > 0 else "–"
            cells = [f"{beyond} of {len(values)}", number(spread), ratio, needed]
            rows.append([recipe, f"`{id}`", *cells])
    header = ["recipe", "claim", "networks beyond the threshold", "s.d. between networks"]
    return markdown([*header, "over the interval within one", "networks that would decide"], rows)


def networks_needed(spread: float, gap: float) -> str:
    """The least number of networks whose interval of the mean (Student) does not reach a threshold so far away."""
    if spread == 0:
        return "2"
    for n in range(2, MOST + 1):
        if stats.t.ppf(0.975, n - 1) * spread / math.sqrt(n) < gap:
            return str(n)
    return f"> {MOST}"


# --- Alignment before the cue and p(swap) ---


def alignment(members: pd.DataFrame) -> str:
    """Of each feature-cued target: alignment before the cue at each probe distance over its networks."""
    rows = []
    own = members[members["role"].str.startswith("feature") & members["before_45"].notna()]
    for (recipe, role), group in own.groupby(["recipe", "role"], sort=False):
        cells = [f"{group[f'before_{d}'].mean():.2f}" for d in DEGREES]
        rate = "–"
        follows = "–"
        if "smooth" in role:
            rate = f"{group['rate_45'].mean():.3f} to {group['rate_165'].mean():.3f}"
            ranks = [follows_swaps(row) for _, row in group.iterrows()]
            follows = f"{sum(one > 0.5 for one in ranks)} of {len(ranks)} ({min(ranks):.2f} to {max(ranks):.2f})"
        elif "constant" in role:
            rate = f"{group['rate_45'].mean():.3f} to {group['rate_165'].mean():.3f}"
        falls = sum(row["before_45"] > row["before_165"] for _, row in group.iterrows())
        rows.append([recipe, plain(role), rate, *cells, f"{falls} of {len(group)}", follows])
    header = ["recipe", "target", "swap rate, 45° to 165°", *(f"{d}°" for d in DEGREES)]
    return markdown([*header, "more at 45° than at 165°", "rank correlation with p(swap) above 0.5"], rows)


def follows_swaps(row: pd.Series) -> float:
    columns = ([f"{name}_{d}" for d in DEGREES] for name in ("before", "rate"))
    return float(stats.spearmanr(*(row[one].to_numpy(float) for one in columns)).statistic)


def plain(role: str) -> str:
    return LABELS[role].replace(r"$\tilde\pi$", "π")


# --- The same behaviour, the same geometry? ---


def distances(pairs: pd.DataFrame, members: pd.DataFrame) -> str:
    roles = {(row["recipe"], row["network"]): row["role"] for _, row in members.iterrows()}
    rows = []
    order = {name: k for k, name in enumerate(pairs["when"].unique())}
    for (recipe, cueing, when), group in sorted(
        pairs.groupby(["recipe", "cueing", "when"]), key=lambda item: (item[0][0], item[0][1], order[item[0][2]])
    ):
        names = sorted(set(group["first"]) | set(group["second"]))
        label = np.array([roles.get((recipe, name), name) for name in names])
        if len(set(label)) < 2 or max(np.unique(label, return_counts=True)[1]) < 2:
            continue
        at = {name: k for k, name in enumerate(names)}
        matrix = np.full((len(names), len(names)), np.nan)
        for row in group.itertuples():
            matrix[at[row.first], at[row.second]] = matrix[at[row.second], at[row.first]] = row.distance
        halves = np.nanmean(np.diag(matrix)) if np.isfinite(np.diag(matrix)).any() else math.nan
        np.fill_diagonal(matrix, 0)
        if np.isnan(matrix).any():
            continue  # networks that were never side by side
        found = compare_groups(matrix, label)
        numbers = (halves, found.within, found.between, group[group["first"] != group["second"]]["shuffled"].mean())
        rows.append([recipe, cueing, str(len(names)), when, *(number(v, ".3f") for v in numbers), f"{found.p:.3f}"])
    return markdown(
        ["recipe", "cueing", "networks", "when", "halves of one", "seeds", "targets", "shuffled", "p"], rows
    )


# --- How many networks? ---


def spreads(members: pd.DataFrame) -> pd.DataFrame:
    """S.d. between networks of one recipe and target, pooled over targets with at least two, of every statistic."""
    rows = []
    for recipe, own in members.groupby("recipe", sort=False):
        for key in NAMES:
            if key not in own:
                continue
            groups = [g[key].dropna() for _, g in own.groupby("role") if g[key].notna().sum() > 1]
            degrees = sum(len(g) - 1 for g in groups)
            if degrees:
                pooled = math.sqrt(sum((len(g) - 1) * g.var(ddof=1) for g in groups) / degrees)
                mean = float(np.mean([g.mean() for g in groups]))
                rows.append((recipe, key, mean, pooled, degrees, sum(map(len, groups))))
    return pd.DataFrame(rows, columns=["recipe", "statistic", "mean", "sd", "degrees", "networks"])


def how_many(found: pd.DataFrame) -> str:
    rows = []
    for row in found.itertuples():
        half = [stats.t.ppf(0.975, n - 1) * row.sd / math.sqrt(n) for n in COUNTS]
        cells = [number(row.mean), number(row.sd), *(number(one, ".2g") for one in half)]
        rows.append([row.recipe, NAMES[row.statistic], str(row.networks), *cells])
    header = ["recipe", "statistic", "networks", "mean", "s.d. between networks", *(f"± with {n}" for n in COUNTS)]
    return markdown(header, rows)


# --- The figure ---


def figure(members: pd.DataFrame, found: pd.DataFrame) -> None:
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
            ax.set_ylabel("alignment before the cue")
        axes[0].legend(fontsize=5)
        ax, counts = axes[-1], np.arange(2, 31)
        shown = found[found["recipe"] == recipes[-1]]
        for row in shown.itertuples():
            if row.statistic in ("aligned_before", "aligned_after", "sigmoid_gain", "carried_by_x", "median_error"):
                half = stats.t.ppf(0.975, counts - 1) * row.sd / np.sqrt(counts)
                ax.plot(counts, half, label=NAMES[row.statistic])
        ax.set(yscale="log", xlabel="networks trained", ylabel="half width of the 95 % interval")
        ax.set_title(f"{recipes[-1]} set")
        ax.legend(fontsize=5)
        for one, text in zip(axes, "ABC"):
            letter(one, text)
        write_figure(DOCS / "ensembles.png", fig, dpi=200)
        plt.close(fig)


def main() -> None:
    members, kept, pairs = table("members"), table("claims"), table("distances")
    if len(kept):
        recipes = list(dict.fromkeys(kept["recipe"]))
        put(PAGE, "claims by recipe", claims(recipes))
        put(PAGE, "one network", one_network(recipes))
    if len(members):
        found = spreads(members)
        put(PAGE, "how many", how_many(found))
        if "before_45" in members:
            put(PAGE, "alignment", alignment(members))
            figure(members, found)
    if len(pairs):
        put(PAGE, "distances", distances(pairs, members))


if __name__ == "__main__":
    main()
