"""Tables and figure of the claims, in the networks that ship, in further seeds of them and under other recipes.

    lapsus reproduce --claims-only --values values.json      # also with --collection persistent or open, --runs FOLDER
    python studies/ensembles/measure.py --values values.json [--recipe NAME]
    python studies/claims/claim_tables.py

The second command adds values to claims.csv (here, or in the package where the collection ships); the third writes the
tables in tables/ and claims.png.
"""

import math
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy import stats

from lapsus.files import make_folder, write_figure
from lapsus.paper.claims import CLAIMS
from lapsus.paper.values import Recorded, recorded_values
from lapsus.paper.verdicts import Claim, by_seed, count, criteria, judge_networks, not_computed
from lapsus.plots.style import TEXT_WIDTH, letter, style
from lapsus.zoo.shipped import COLLECTIONS, seed_of

FOLDER = Path(__file__).resolve().parent
OTHER_RECIPES = FOLDER / "claims.csv"
# Most networks that one would train for a statistic.
MOST = 1000
MARKERS = dict(enumerate("os^Dv", 1))


def values_of(recipe: str) -> Recorded:
    """Values of the claims in all networks of a recipe: from the package for a collection that ships."""
    return recorded_values(recipe) if recipe in COLLECTIONS else recorded_values(recipe, OTHER_RECIPES)


def number(value: float, form: str = ".3g") -> str:
    return format(value, form) if math.isfinite(value) else ""


def threshold(rule: dict) -> str:
    """How a claim's threshold is written on a page."""
    return f"> {rule['above']:g}" if "above" in rule else f"< {rule['below']:g}"


def judged(recipe: str) -> list[Claim]:
    """Every claim on all networks of a recipe of which there is a value."""
    found = values_of(recipe)
    return [
        judge_networks(id, found[id]) if id in found else not_computed(id, f"no network {CLAIMS[id].units[0][0]}")
        for id in criteria()
    ]


def results(claims: list[Claim]) -> pd.DataFrame:
    """The verdicts with values, intervals and the numbers of networks and seeds that each rests on."""
    header = ["id", "value", "95 % interval", "holds if", "seeds", "networks", "of which hold alone", "verdict"]
    rows, known = [], criteria()
    for claim in claims:
        rule = known[claim.id]
        limit = threshold(rule)
        if claim.value is None:
            rows.append([claim.id, "", claim.statistic, limit, "0", "0", "", claim.verdict])
            continue
        interval = f"{claim.low:.3g} to {claim.high:.3g}"
        alone = f"{round((claim.holding or 0) * claim.networks)}"
        numbers = [f"{claim.value:.3g}", interval, limit, str(claim.seeds), str(claim.networks), alone]
        rows.append([claim.id, *numbers, verdict(claim)])
    return pd.DataFrame(rows, columns=header)


def verdict(claim: Claim) -> str:
    """With a word where it is that of one seed."""
    return f"{claim.verdict} in one seed" if claim.seeds == 1 and claim.verdict != "undecided" else claim.verdict


def each(recipe: str) -> pd.DataFrame:
    """Values of the claims in single networks, one row per value."""
    rows = [(id, names, *value) for id, found in values_of(recipe).items() for names, value in found.items()]
    return pd.DataFrame(rows, columns=["claim", "networks", "value", "low", "high"])


def _table(header: list[str], rows: list[list[str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=header)


def claims(recipes: list[str], needed: list[str] | None = None) -> pd.DataFrame:
    """One column per recipe; claims of which the needed recipes (all, if none are named) have a value."""
    found = {recipe: values_of(recipe) for recipe in recipes}
    rows = []
    for id, rule in criteria().items():
        cells = []
        if not any(found[recipe].get(id) for recipe in needed or recipes):
            continue
        for recipe in recipes:
            each = found[recipe].get(id, {})
            if not each:
                cells.append("")
                continue
            claim = judge_networks(id, each)
            held = f"{round(claim.holding * len(each))} of {len(each)}"
            held += f" ({claim.seeds} seeds)" if 1 < claim.seeds < len(each) else ""
            interval = f" [{number(claim.low)}, {number(claim.high)}]" if claim.low is not None else ""
            cells.append(f"{verdict(claim)}, {held}: {number(claim.value)}{interval}")
        rows.append([id, threshold(rule), *cells])
    return _table(["claim", "holds if", *recipes], rows)


def one_network(recipes: list[str]) -> pd.DataFrame:
    """How far one network's own verdict is from that of all of them, and how many seeds would decide."""
    rows, known = [], criteria()
    for recipe in recipes:
        for id, each in values_of(recipe).items():
            values = np.array([np.mean([value for value, _, _ in own]) for own in by_seed(each).values()])
            if len(values) < 3:
                continue
            rule = known[id]
            limit, sign = rule.get("above", rule.get("below")), 1 if "above" in rule else -1
            within = np.mean([(high - low) / 2 for _, low, high in each.values()])
            spread = float(values.std(ddof=1))
            needed = networks_needed(spread, abs(float(values.mean()) - limit))
            beyond = int((sign * (values - limit) > 0).sum())
            ratio = number(1.96 * spread / within, ".1f") if within > 0 else ""
            towards = "for" if sign * (values.mean() - limit) > 0 else "against"
            cells = [f"{beyond} of {len(values)}", number(spread), ratio, f"{needed}, {towards} it"]
            rows.append([recipe, id, *cells])
    header = ["recipe", "claim", "seeds beyond the threshold", "s.d. between seeds"]
    return _table([*header, "over the interval within one network", "seeds that would decide"], rows)


def networks_needed(spread: float, gap: float) -> str:
    """The least number of networks whose interval of the mean (Student) does not reach a threshold so far away."""
    if spread == 0:
        return "2"
    for n in range(2, MOST + 1):
        if stats.t.ppf(0.975, n - 1) * spread / math.sqrt(n) < gap:
            return str(n)
    return f"> {MOST}"


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
    """One marker per network, with the interval within it; dashed: the threshold, on whose grey side a claim fails."""
    found, known = {recipe: values_of(recipe) for recipe in recipes}, criteria()
    with style():
        fig, axes = plt.subplots(2, 4, figsize=(TEXT_WIDTH, 3.9), layout="constrained")
        for ax, (id, title), text in zip(axes.flat, SHOWN.items(), "ABCDEFGH"):
            _claim_panel(ax, {recipe: found[recipe].get(id, {}) for recipe in recipes}, known[id])
            ax.set_title(title)
            letter(ax, text)
        seeds = [Line2D([], [], color="0.3", marker=m, ls="", ms=4, label=f"seed {s}") for s, m in MARKERS.items()]
        open_ = Line2D([], [], color="0.3", marker="o", mfc="w", ls="", ms=4, label="index-cued, in G")
        fig.legend(handles=[*seeds, open_], loc="outside lower center", ncols=6)
        write_figure(FOLDER / "claims.png", fig, dpi=200)
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


def main() -> None:
    tables = make_folder(FOLDER / "tables")
    others = list(dict.fromkeys(pd.read_csv(OTHER_RECIPES)["recipe"]))
    whole, changed = ([*COLLECTIONS, *(name for name in others if ":" not in name)], [n for n in others if ":" in n])
    made = {f"results-{name}": results(judged(name)) for name in COLLECTIONS}
    made |= {f"by-network-{name}": each(name) for name in COLLECTIONS}
    made |= {
        "by-collection": claims(list(COLLECTIONS)),
        "by-recipe": claims(whole),
        "by-factor": claims(["paper", *changed], changed),
    }
    made |= {"one-network": one_network(whole)}
    for name, table in made.items():
        table.to_csv(tables / f"{name}.csv", index=False, float_format="%.6g")
    claims_figure(whole)
    for name in COLLECTIONS:
        print(f"{name}: {count(judged(name))}")


if __name__ == "__main__":
    main()
