"""Tables and figure of the recovery in docs/ensembles.md, from src/lapsus/paper/studies/recovery.csv.

python docs/making/recovered.py

`python benchmarks/recovery.py SYSTEMS --keep` adds the rows; docs/recovery.png is drawn.
"""

import matplotlib

matplotlib.use("agg")
import numpy as np
import pandas as pd
from ensembles import DOCS, PAGE, table
from matplotlib import pyplot as plt
from tables import markdown, put

from lapsus.analysis.synthetic import MECHANISMS
from lapsus.files import write_figure
from lapsus.plots.style import TEXT_WIDTH, letter, style

NONE = ("cannot tell", "no answer")
ANSWERS = (*MECHANISMS, "no mark", *NONE)
TITLES = {
    "populations": "linear populations",
    "trained": "trained networks, made to swap",
    "written": "written networks",
}


def confusion(own: pd.DataFrame) -> pd.DataFrame:
    """How often each mechanism that was built in was called what."""
    found = pd.crosstab(own["mechanism"], own["said"])
    return found.reindex(index=own["mechanism"].unique(), columns=ANSWERS, fill_value=0)


def confusions(own: pd.DataFrame) -> str:
    """Rows: what was built in; columns: what was said, and of written networks when and what carries it."""
    asked = {"when": ("expected when", "time is right"), "carried by": ("expected carrier", "carrier is right")}
    asked = {name: said for name, said in asked.items() if own[name].notna().any()}
    rows = []
    for mechanism, row in confusion(own).iterrows():
        here = own[own["mechanism"] == mechanism]
        cells = [f"**{count}**" if said == here["expected"].iloc[0] else str(count) for said, count in row.items()]
        cells += [f"{(here[name] == here[expected]).sum()} of {len(here)}" for name, (expected, _) in asked.items()]
        rows.append([mechanism, *cells])
    return markdown(["built in", *(f"“{said}”" for said in ANSWERS), *(head for _, head in asked.values())], rows)


def shares(own: pd.DataFrame) -> str:
    """Right and wrong answers at each swap rate and noise."""
    found = own.groupby(["swap rate", "noise"])[["right", "wrong"]].mean()
    noises = sorted(own["noise"].unique())
    rows = [
        [f"{rate:.0%}", *(f"{found.loc[rate, n]['right']:.0%}, {found.loc[rate, n]['wrong']:.0%}" for n in noises)]
        for rate in sorted(own["swap rate"].unique())
    ]
    return markdown(["swap rate", *(f"noise {n:g}" for n in noises)], rows).replace("%", " %")


def by_network(own: pd.DataFrame) -> str:
    """Of trained networks: how often they swap by themselves with this noise, and what was said, by set and cueing."""
    rows = []
    kind = own["network"].str.partition("@")[0]
    for (name, noise), group in own.groupby([kind, "noise"]):
        apart = f"{group['own swaps'].min():.1%} to {group['own swaps'].max():.1%}".replace("%", " %")
        counts = [group["right"].sum(), group["wrong"].sum(), group["said"].isin(NONE).sum()]
        rows.append([f"`{name}`", str(group["network"].nunique()), f"{noise:g}", apart, *map(str, counts)])
    header = ["networks", "seeds", "noise", "swaps of their own", "right", "wrong", "not named"]
    return markdown(header, rows)


def summary(own: pd.DataFrame) -> str:
    """One sentence."""
    return f"{own['right'].sum()} right and {own['wrong'].sum()} wrong of {len(own)}; of the others no kind was named."


def figure(whole: pd.DataFrame) -> None:
    systems = [name for name in TITLES if name in set(whole["systems"])]
    with style():
        fig, axes = plt.subplots(1, len(systems), figsize=(TEXT_WIDTH, 3.0), layout="constrained", squeeze=False)
        for ax, name, text in zip(axes.flat, systems, "ABC"):
            counts = confusion(whole[whole["systems"] == name])
            share = counts.to_numpy() / counts.to_numpy().sum(1, keepdims=True)
            ax.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
            for (y, x), value in np.ndenumerate(counts.to_numpy()):
                if value:
                    ax.text(x, y, value, ha="center", va="center", fontsize=6, color="w" if share[y, x] > 0.5 else "k")
            ax.set_xticks(range(len(ANSWERS)), ANSWERS, rotation=60, ha="right", rotation_mode="anchor")
            ax.set_yticks(range(len(counts)), list(counts.index) if ax is axes.flat[0] else [])
            ax.axvline(len(ANSWERS) - len(NONE) - 0.5, color="k", lw=0.6)
            ax.set(title=TITLES[name], xlabel="what was said")
            letter(ax, text)
        axes.flat[0].set_ylabel("what was built in")
        write_figure(DOCS / "recovery.png", fig, dpi=200)
        plt.close(fig)


def main() -> None:
    whole = table("recovery")
    right = whole["said"] == whole["expected"]
    whole = whole.assign(right=right, wrong=~right & ~whole["said"].isin(NONE))
    for name in TITLES:
        own = whole[whole["systems"] == name]
        if len(own):
            parts = [confusions(own), shares(own), *([by_network(own)] if name == "trained" else []), summary(own)]
            put(PAGE, f"recovery {name}", "\n\n".join(parts))
    figure(whole)


if __name__ == "__main__":
    main()
