"""Tables and figure of this study from members.csv and distances.csv, to which measure.py adds rows.

python studies/ensembles/ensemble_tables.py

Networks of one seed share their start, so they are alike and no further units: what is compared between recipes or
targets that share a start is compared within seeds, and what is counted is counted over seeds.
"""

import math

import numpy as np
import pandas as pd
from ensemble_figures import DEGREES, FOLDER, alignment_figure, plain
from scipy import stats

from lapsus.files import make_folder
from lapsus.mechanism.procrustes import compare_groups
from lapsus.paper.roles import LABELS
from lapsus.zoo.shipped import seed_of

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
    path = FOLDER / f"{name}.csv"
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()


def _table(header: list[str], rows: list[list[str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=header)


def number(value: float, form: str = ".3g") -> str:
    return format(value, form) if math.isfinite(value) else ""


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
    "target: smooth 2 or no swaps, both after a horizon without swaps": (
        ("one-factor: same-horizon", SMOOTH),
        ("paper", NONE),
        False,
    ),
    "target: smooth 2 or no swaps, normal first weights": (
        ("one-factor: normal", SMOOTH),
        ("one-factor: normal", NONE),
        True,
    ),
    "target: smooth 2 or no swaps, published recipe": (("as-published", SMOOTH), ("as-published", NONE), True),
    "target: smooth 2 or no swaps, lasting memory": (("persistent", SMOOTH), ("persistent", NONE), True),
    "target: constant 5 % or no swaps, lasting memory": (
        ("persistent", "feature-constant-05"),
        ("persistent", NONE),
        True,
    ),
    "target: index-cued, 10 % or no swaps, lasting memory": (
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
            return ""
        mean, ends = within.mean(), stats.ttest_1samp(within, 0).confidence_interval()
    else:
        if min(len(first), len(second)) < 2 or first.std() + second.std() == 0:
            return ""
        mean = first.mean() - second.mean()
        ends = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    return f"{mean:+.3g} [{ends.low:.2g}, {ends.high:.2g}]"


def factors(members: pd.DataFrame) -> pd.DataFrame:
    """One row per difference between two groups of networks, one column per statistic."""
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
    return _table(["what differs", "networks", *DIFFERENCES.values()], rows)


def trained(members: pd.DataFrame) -> pd.DataFrame:
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
    return _table(header, rows)


# --- Alignment before the cue and p(swap) ---


def alignment(members: pd.DataFrame) -> pd.DataFrame:
    """Of each feature-cued target: alignment before the cue at each probe distance over its networks."""
    rows = []
    own = members[members["role"].str.startswith("feature") & members["before_45"].notna()]
    for (recipe, role), group in own.groupby(["recipe", "role"], sort=False):
        cells = [f"{group[f'before_{d}'].mean():.2f}" for d in DEGREES]
        rate = ""
        follows = ""
        if "smooth" in role:
            rate = f"{group['rate_45'].mean():.3f} to {group['rate_165'].mean():.3f}"
            ranks = [follows_swaps(row) for _, row in group.iterrows()]
            follows = f"{sum(one > 0.5 for one in ranks)} of {len(ranks)} ({min(ranks):.2f} to {max(ranks):.2f})"
        elif "constant" in role:
            rate = f"{group['rate_45'].mean():.3f} to {group['rate_165'].mean():.3f}"
        falls = sum(row["before_45"] > row["before_165"] for _, row in group.iterrows())
        rows.append([recipe, plain(role), rate, *cells, f"{falls} of {len(group)}", follows])
    header = ["recipe", "target", "swap rate, 45° to 165°", *(f"{d}°" for d in DEGREES)]
    return _table([*header, "more at 45° than at 165°", "rank correlation with p(swap) above 0.5"], rows)


def follows_swaps(row: pd.Series) -> float:
    columns = ([f"{name}_{d}" for d in DEGREES] for name in ("before", "rate"))
    return float(stats.spearmanr(*(row[one].to_numpy(float) for one in columns)).statistic)


# --- The same behaviour, the same geometry? ---


def distances(pairs: pd.DataFrame, members: pd.DataFrame) -> pd.DataFrame:
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
    return _table([*header, "p (least possible)"], rows)


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


def how_many(found: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for row in found.itertuples():
        half = [stats.t.ppf(0.975, n - 1) * row.sd / math.sqrt(n) for n in COUNTS]
        cells = [number(row.mean), number(row.sd), *(number(one, ".2g") for one in half)]
        rows.append([row.recipe, NAMES[row.statistic], str(row.networks), *cells])
    header = ["recipe", "statistic", "networks", "mean", "s.d. between networks", *(f"± with {n}" for n in COUNTS)]
    return _table(header, rows)


def main() -> None:
    members, pairs, tables = table("members"), table("distances"), make_folder(FOLDER / "tables")
    found = spreads(members[~members["recipe"].str.contains(":")])
    made = {"how-many": how_many(found), "factors": factors(members), "trained": trained(members)}
    made |= {"alignment": alignment(members), "distances": distances(pairs, members)}
    for name, own in made.items():
        own.to_csv(tables / f"{name}.csv", index=False)
    alignment_figure(members, found)


if __name__ == "__main__":
    main()
