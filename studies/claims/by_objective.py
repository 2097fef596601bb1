"""What belongs to the objective: the mechanism and the claims of networks by collection.

    lapsus analyse --swapping -o mechanism
    lapsus reproduce --collection open --claims-only --values values.json
    python studies/ensembles/measure.py --values values.json
    python studies/claims/by_objective.py mechanism/mechanism.csv

writes tables/answers.csv (one row per network that swaps), tables/answers-by-collection.csv (means over seeds) and
by-objective.png. Networks of one seed and cueing share their start, so they are averaged before the mean over seeds is
taken.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from scipy import stats

from lapsus.files import write_figure
from lapsus.paper.values import recorded_values
from lapsus.paper.verdicts import by_seed, criteria
from lapsus.plots.style import BLUE, GREY, PURPLE, TEXT_WIDTH, VERMILION, letter, style
from lapsus.zoo.shipped import COLLECTIONS, collection_of, halfway, seed_of, shipped

FOLDER = Path(__file__).resolve().parent
COLOURS = dict(zip(COLLECTIONS, (BLUE, PURPLE, VERMILION), strict=True))
# Parts of the trial in order, and how the figure calls them.
PARTS = {
    "decided_before_the_stimuli": "before\nstimuli",
    "decided_stimulus": "stimuli",
    "decided_first_delay": "first\ndelay",
    "decided_cue": "cue",
    "decided_second_delay": "second\ndelay",
}
NUMBERS = ("half_time", "fixed_at_cue_onset", "fixed_at_cue_offset", "carried_by_x", "carried_by_m")
# Claims that the figure shows, and what their statistic is.
CLAIMS = {
    "dice-after-cue": "share of the outcome\nfixed at cue offset",
    "alignment-predicts-swaps": "odds ratio of a swap for\none s.d. of alignment",
    "alignment-push": "effect of a push\nalong alignment",
    "index-rise-10": "index-cued, 10 % swaps:\nrise of alignment in the cue",
    "feature-rise-smooth": "smooth 2: flat minus\nsigmoid error (Table 1)",
    "axis-separates": "area of the swap axis at a\nfixed reported colour",
}


def answers(table: Path) -> pd.DataFrame:
    """Rows of `lapsus analyse` on networks of the three collections whose swaps have no cause of their own before the
    cue."""
    rows = pd.read_csv(table)
    latent = {name for name, facts in shipped().items() if facts["config"]["behaviour"].get("kind") == "attended-swap"}
    known = rows["network"].map(lambda name: name not in latent and not halfway(name))
    rows = rows[known].copy()
    rows.insert(0, "collection", rows["network"].map(collection_of))
    rows.insert(2, "cueing", rows["network"].map(lambda name: "index" if "index" in name else "feature"))
    rows.insert(3, "seed", rows["network"].map(seed_of))
    kept = ["collection", "network", "cueing", "seed", *NUMBERS, *PARTS, "error_type"]
    return rows[kept].sort_values(["collection", "cueing", "network"])


def over_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds of every number with its 95 % interval (Student), by collection and cueing, and the types."""
    made = []
    for (collection, cueing), group in rows.groupby(["collection", "cueing"], sort=False):
        seeds = group.groupby("seed")[[*NUMBERS, *PARTS]].mean()
        line: dict = {"collection": collection, "cueing": cueing, "networks": len(group), "seeds": len(seeds)}
        for name in seeds:
            half = stats.t.ppf(0.975, len(seeds) - 1) * seeds[name].sem() if len(seeds) > 1 else np.nan
            line |= {name: seeds[name].mean(), f"{name}_low": seeds[name].mean() - half}
            line |= {f"{name}_high": seeds[name].mean() + half}
        types = group["error_type"].value_counts()
        made.append(line | {"error_types": ", ".join(f"{kind} {count}" for kind, count in types.items())})
    return pd.DataFrame(made)


def _epochs_panel(ax: Axes, rows: pd.DataFrame) -> None:
    """Where the outcome is decided: one thin line per network."""
    x = np.arange(len(PARTS))
    for collection, group in rows.groupby("collection", sort=False):
        colour = COLOURS[collection]
        for row in group[[*PARTS]].to_numpy(float):
            ax.plot(x, 100 * row, color=colour, lw=0.5, alpha=0.4)
        ax.plot(x, 100 * group[[*PARTS]].mean(), "o-", ms=3, color=colour, label=collection)
    ax.set_xticks(x, list(PARTS.values()))
    ax.set(ylabel="outcome decided (%)", ylim=(-3, 103))
    ax.legend(loc="upper left")


def _carrier_panel(ax: Axes, rows: pd.DataFrame) -> None:
    """What carries a swap into another trial: one marker per network, open where it is index-cued."""
    for row in rows.itertuples():
        colour = COLOURS[row.collection]
        face = "w" if row.cueing == "index" else colour
        ax.plot(100 * row.carried_by_m, 100 * row.carried_by_x, "o", ms=3.5, mfc=face, mec=colour, mew=0.8)
    ax.set(xlabel="carried by memory (%)", ylabel="carried by response (%)", xlim=(-5, 105), ylim=(-5, 105))


def _claim_panel(ax: Axes, id: str) -> None:
    """Each seed's value of a claim (mean of its networks), by collection; the claim fails on the grey side."""
    for place, collection in enumerate(COLLECTIONS):
        found = recorded_values(collection).get(id, {})
        values = [np.mean([value for value, _, _ in own]) for own in by_seed(found).values()]
        spots = place + 0.09 * (np.arange(len(values)) - (len(values) - 1) / 2)
        ax.plot(spots, values, "o", ms=3.5, color=COLOURS[collection])
    rule = criteria()[id]
    limit = rule.get("above", rule.get("below"))
    ax.axhline(limit, color=GREY, lw=0.6, ls="--")
    low, high = ax.get_ylim()
    ax.axhspan(*((low, limit) if "above" in rule else (limit, high)), color="0.92", zorder=0)
    ax.set(xlim=(-0.5, len(COLLECTIONS) - 0.5), ylim=(low, high), title=CLAIMS[id])
    ax.set_xticks(range(len(COLLECTIONS)), COLLECTIONS)


def figure(rows: pd.DataFrame) -> None:
    """When, where and which claims, by collection."""
    with style():
        fig = plt.figure(figsize=(TEXT_WIDTH, 5.4), layout="constrained")
        top, bottom = fig.subfigures(2, 1, height_ratios=(1, 1.55))
        first, second = top.subplots(1, 2)
        _epochs_panel(first, rows)
        _carrier_panel(second, rows)
        panels = bottom.subplots(2, 3).flat
        for ax, id in zip(panels, CLAIMS):
            _claim_panel(ax, id)
        for ax, text in zip(fig.axes, "ABCDEFGH"):
            letter(ax, text)
        write_figure(FOLDER / "by-objective.png", fig, dpi=200)
        plt.close(fig)


def main() -> None:
    rows = answers(Path(sys.argv[1]))
    rows.to_csv(FOLDER / "tables" / "answers.csv", index=False, float_format="%.4g")
    over_seeds(rows).to_csv(FOLDER / "tables" / "answers-by-collection.csv", index=False, float_format="%.4g")
    figure(rows)


if __name__ == "__main__":
    main()
