"""Tables and figures of docs/ensembles.md from the studies' tables (src/lapsus/paper/studies), whatever these hold.

python docs/making/ensembles.py

What is between <!-- name --> and <!-- end name --> is replaced; docs/ensembles.png and ensembles-claims.png are drawn
(ensemble_figures.py). benchmarks/study.py adds rows to the tables. Tables and figure of the recovery are those of
docs/making/recovered.py.

Networks of one seed share their start, so they are alike and no further units: what is compared between recipes or
targets that share a start is compared within seeds, and what is counted is counted over seeds.
"""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from ensemble_figures import DEGREES, alignment_figure, claims_figure, plain
from lapsus.paper.recorded import recorded
from scipy import stats
from tables import STUDIES, markdown, put, threshold, verdict

from lapsus.analysis.procrustes import compare_groups
from lapsus.paper.roles import LABELS
from lapsus.paper.verdicts import by_seed, criteria, judge_networks
from lapsus.zoo.shipped import seed_of

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "ensembles.md"
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
    path = STUDIES / f"{name}.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()


def number(value: float, form: str = ".3g") -> str:
    return format(value, form) if math.isfinite(value) else "–"


# --- Which claims hold in which share of networks, under which recipe ---


def claims(recipes: list[str], needed: list[str] | None = None) -> str:
    """A column a recipe; claims of which the needed recipes (all, if none are named) have a value."""
    found = {recipe: recorded(recipe, STUDIES / "claims.csv") for recipe in recipes}
    rows = []
    for id, rule in criteria().items():
        cells = []
        if not any(found[recipe].get(id) for recipe in needed or recipes):
            continue
        for recipe in recipes:
            each = found[recipe].get(id, {})
            if not each:
                cells.append("–")
                continue
            claim = judge_networks(id, each)
            held = f"{round(claim.holding * len(each))} of {len(each)}"
            held += f" ({claim.seeds} seeds)" if 1 < claim.seeds < len(each) else ""
            interval = f" [{number(claim.low)}, {number(claim.high)}]" if claim.low is not None else ""
            cells.append(f"{verdict(claim)}, {held}: {number(claim.value)}{interval}")
        rows.append([f"`{id}`", threshold(rule), *cells])
    return markdown(["claim", "holds if", *recipes], rows)


def one_network(recipes: list[str]) -> str:
    """How far one network's own verdict is from that of all of them, and how many seeds would decide."""
    rows, known = [], criteria()
    for recipe in recipes:
        for id, each in recorded(recipe, STUDIES / "claims.csv").items():
            values = np.array([np.mean([value for value, _, _ in own]) for own in by_seed(each).values()])
            if len(values) < 3:
                continue
            rule = known[id]
            limit, sign = rule.get("above", rule.get("below")), 1 if "above" in rule else -1
            within = np.mean([(high - low) / 2 for _, low, high in each.values()])
            spread = float(values.std(ddof=1))
            needed = networks_needed(spread, abs(float(values.mean()) - limit))
            beyond = int((sign * (values - limit) > 0).sum())
            ratio = number(1.96 * spread / within, ".1f") if within > 0 else "–"
            towards = "for" if sign * (values.mean() - limit) > 0 else "against"
            cells = [f"{beyond} of {len(values)}", number(spread), ratio, f"{needed}, {towards} it"]
            rows.append([recipe, f"`{id}`", *cells])
    header = ["recipe", "claim", "seeds beyond the threshold", "s.d. between seeds"]
    return markdown([*header, "over the interval within one network", "seeds that would decide"], rows)


def networks_needed(spread: float, gap: float) -> str:
    """The least number of networks whose interval of the mean (Student) does not reach a threshold so far away."""
    if spread == 0:
        return "2"
    for n in range(2, MOST + 1):
        if stats.t.ppf(0.975, n - 1) * spread / math.sqrt(n) < gap:
            return str(n)
    return f"> {MOST}"


# --- What the recipe does, and what the target does where it alone differs ---

FIXED = "one-factor: unweighted"
SMOOTH, NONE = "feature-smooth-2", "feature-none"
# What differs → recipe and role of the networks that have it, and of those that have not; and whether both start from
# the same networks, so that they are compared seed by seed. Networks that ship and those of a sweep do not: they were
# trained on different machines, and there a seed is no more alike than two.
COMPARED = {
    "last stage, smooth 2": (("paper", SMOOTH), (FIXED, SMOOTH), False),
    "swaps while the horizon grows, smooth 2": ((FIXED, SMOOTH), ("one-factor: same-horizon", SMOOTH), True),
    "normal first weights, smooth 2": (("one-factor: normal", SMOOTH), (FIXED, SMOOTH), False),
    "normal first weights, no swaps": (("one-factor: normal", NONE), ("paper", NONE), False),
    "published recipe, smooth 2": (("as-published", SMOOTH), ("paper", SMOOTH), False),
    "published recipe, no swaps": (("as-published", NONE), ("paper", NONE), False),
    "**target**: smooth 2 or no swaps, both after a horizon without swaps": (
        ("one-factor: same-horizon", SMOOTH),
        ("paper", NONE),
        False,
    ),
    "**target**: smooth 2 or no swaps, normal first weights": (
        ("one-factor: normal", SMOOTH),
        ("one-factor: normal", NONE),
        True,
    ),
    "**target**: smooth 2 or no swaps, published recipe": (("as-published", SMOOTH), ("as-published", NONE), True),
    "**target**: smooth 2 or no swaps, lasting memory": (("persistent", SMOOTH), ("persistent", NONE), True),
    "**target**: constant 5 % or no swaps, lasting memory": (
        ("persistent", "feature-constant-05"),
        ("persistent", NONE),
        True,
    ),
    "**target**: index-cued, 10 % or no swaps, lasting memory": (
        ("persistent", "index-constant-10"),
        ("persistent", "index-none"),
        True,
    ),
}
DIFFERENCES = {
    "excess": "excess",
    "median_error": "median error (rad)",
    "aligned_before": "alignment before the cue",
    "aligned_after": "after it",
    "sigmoid_gain": "flat minus sigmoid error",
    "half_time": "half-time (steps)",
    "fixed_at_cue_offset": "fixed at cue offset",
    "carried_by_x": "carried by x",
}


def difference(first: pd.Series, second: pd.Series, paired: bool) -> str:
    """Of means over networks, by seed, with Student's interval of the differences within seeds, or Welch's."""
    first, second = first.dropna(), second.dropna()
    if paired:
        within = (first - second).dropna()
        if len(within) < 2:
            return "–"
        mean, ends = within.mean(), stats.ttest_1samp(within, 0).confidence_interval()
    else:
        if min(len(first), len(second)) < 2 or first.std() + second.std() == 0:
            return "–"
        mean = first.mean() - second.mean()
        ends = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    return f"{mean:+.3g} [{ends.low:.2g}, {ends.high:.2g}]"


def factors(members: pd.DataFrame) -> str:
    """A line a difference between two groups of networks, a column a statistic."""
    rows = []
    for name, (*ends, paired) in COMPARED.items():
        groups = [
            members[(members["recipe"] == recipe) & (members["role"] == role)].set_index("seed")
            for recipe, role in ends
        ]
        both = len(groups[0].index.intersection(groups[1].index))
        if (both if paired else min(map(len, groups))) > 1:
            cells = [difference(*(group[key] for group in groups), paired) for key in DIFFERENCES]
            count = f"{both} seeds" if paired else " and ".join(str(len(group)) for group in groups)
            rows.append([name, count, *cells])
    return markdown(["what differs", "networks", *DIFFERENCES.values()], rows)


def trained(members: pd.DataFrame) -> str:
    """How close each network of the studies' recipes comes to its target, how often it swaps, and what it took."""
    rows = []
    own = members[members["recipe"].str.startswith(("as-published", "one-factor"))]
    for _, row in own.sort_values(["recipe", "role", "seed"]).iterrows():
        swaps = [[100 * row[f"{name}_{d}"] for d in (45, 165)] for name in ("target", "rate", "likelihood")]
        cells = ["{:.1f} to {:.1f}".format(*one) for one in swaps]
        keys = ("excess", "median_error", "away", "core_minutes", "core_minutes_in_all")
        rows.append([row["recipe"], plain(row["role"]), str(row["seed"]), *cells, *(number(row[key]) for key in keys)])
    header = ["recipe", "target", "seed", "swaps wanted (%), 45° to 165°", "nearest item", "by likelihood", "excess"]
    header += ["median error (rad)", "away from every item", "core-minutes", "with what it starts from"]
    return markdown(header, rows)


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


# --- The same behaviour, the same geometry? ---


def distances(pairs: pd.DataFrame, members: pd.DataFrame) -> str:
    """A line a set of networks and time. Task-optimal networks, which have another objective and another start, take no
    part where targets are compared."""
    roles = {(row["recipe"], row["network"]): row["role"] for _, row in members.iterrows()}
    rows = []
    order = {name: k for k, name in enumerate(pairs["when"].unique())}
    for (recipe, cueing, when), group in sorted(
        pairs.groupby(["recipe", "cueing", "when"]), key=lambda item: (item[0][0], item[0][1], order[item[0][2]])
    ):
        names = sorted(set(group["first"]) | set(group["second"]))
        if recipe == "across recipes":  # of one target: what sets networks apart is their recipe
            label = np.array([name.partition(", ")[0] for name in names])
        else:
            names = [name for name in names if "optimal" not in roles.get((recipe, name), name)]
            label = np.array([roles.get((recipe, name), name) for name in names])
        matrix = pd.DataFrame(np.nan, names, names)
        for row in group.itertuples():
            if row.first in matrix and row.second in matrix:
                matrix.loc[row.first, row.second] = matrix.loc[row.second, row.first] = row.distance
        while matrix.isna().any(axis=None):  # networks that were never side by side: the one that lacks most goes
            lacks = matrix.isna().sum().idxmax()
            matrix = matrix.drop(index=lacks, columns=lacks)
        names, label = list(matrix), label[[name in matrix for name in names]]
        halves, matrix = np.diag(matrix), matrix.to_numpy().copy()
        np.fill_diagonal(matrix, 0)
        seeds = np.array([seed_of(name) for name in names])
        if len(set(seeds)) < 2 or len(set(label)) < 2:
            continue
        found = compare_groups(matrix, label, seeds)
        if recipe == "across recipes" and found.least_p > 0.25:
            continue  # so few that nothing could be told
        chance = group if when == "dynamics" else group[group["first"] != group["second"]]
        numbers = (np.nanmean(halves), found.same_block, found.within, found.between, chance["shuffled"].mean())
        rows.append(
            [
                recipe,
                f"{cueing.partition('-')[0]}, {plain(cueing)}" if cueing in LABELS else cueing,
                f"{len(names)} of {len(set(seeds))}",
                when,
                *(number(v, ".2g" if v < 0.01 else ".3f") for v in numbers),
                f"{found.p:.3f} ({max(found.least_p, 0.001):.2g})",
            ]
        )
    header = ["recipe", "cueing, or target", "networks of seeds", "when", "halves of one network"]
    header += ["other group, same seed", "same group, other seed", "other group, other seed", "shuffled"]
    return markdown([*header, "p (least possible)"], rows)


# --- The same seed, trained again ---


def trained_again(members: pd.DataFrame, earlier: pd.DataFrame) -> str:
    """How far two trainings of one experiment and seed are apart, and how far seeds of one target are."""
    both = members.merge(earlier, on=["recipe", "network"], suffixes=("", "_earlier"))
    rows = []
    kinds = [both["recipe"].str.partition(":")[0], both["role"].str.partition("-")[0]]
    for (recipe, cueing), own in both.groupby(kinds):
        all_of = members[members["recipe"].isin(own["recipe"]) & members["role"].isin(own["role"])]
        for key in DIFFERENCES:
            apart = (own[key] - own[f"{key}_earlier"]).dropna()
            within = all_of[key] - all_of.groupby(["recipe", "role"])[key].transform("mean")
            degrees = all_of[key].notna().sum() - all_of[all_of[key].notna()].groupby(["recipe", "role"]).ngroups
            if len(apart) and degrees:
                twice, seeds = math.sqrt((apart**2).mean() / 2), math.sqrt((within**2).sum() / degrees)
                count = f"{len(apart)} of {own.loc[apart.index, 'seed'].nunique()}"
                cells = [number(twice, ".2g"), number(seeds, ".2g"), number(twice / seeds, ".2f")]
                rows.append([recipe, cueing, NAMES[key], count, *cells])
    header = ["recipe", "cueing", "statistic", "networks of seeds", "s.d. between trainings of a seed"]
    return markdown([*header, "s.d. between seeds", "ratio"], rows)


def claims_again(earlier: pd.DataFrame, kept: pd.DataFrame) -> str:
    """Values of claims in both trainings, with the interval within each network."""
    both = kept.merge(earlier, on=["recipe", "claim", "networks"], suffixes=("", "_earlier"))
    rows = []
    for row in both.to_dict("records"):
        ends = [
            f"{number(row[f'value{when}'])} [{number(row[f'low{when}'])}, {number(row[f'high{when}'])}]"
            for when in ("_earlier", "")
        ]
        rows.append([f"`{row['claim']}`", threshold(criteria()[row["claim"]]), row["networks"], *ends])
    return markdown(["claim", "holds if", "networks", "trained before", "trained again"], rows)


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


def main() -> None:
    members, kept, pairs = table("members"), table("claims"), table("distances")
    if len(kept):
        recipes = list(dict.fromkeys(kept["recipe"]))
        whole, changed = ([one for one in recipes if (":" in one) == part] for part in (False, True))
        put(PAGE, "claims by recipe", claims(whole))
        put(PAGE, "one network", one_network(whole))
        claims_figure(sorted(whole, key=lambda name: name == "as-published"))
        if changed:
            put(PAGE, "claims by factor", claims(["paper", *changed], changed))
    if len(members):
        found = spreads(members[~members["recipe"].str.contains(":")])
        put(PAGE, "how many", how_many(found))
        put(PAGE, "factors", factors(members))
        put(PAGE, "trained", trained(members))
        if "before_45" in members:
            put(PAGE, "alignment", alignment(members))
            alignment_figure(members, found)
    if len(pairs):
        put(PAGE, "distances", distances(pairs, members))
    if len(earlier := table("earlier")):
        put(PAGE, "trained again", trained_again(members, earlier))
    if len(earlier := table("earlier_claims")):
        put(PAGE, "claims again", claims_again(earlier, kept))


if __name__ == "__main__":
    main()
