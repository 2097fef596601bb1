"""Tables and figure of this study, from recovery.csv: `python studies/recovery/recovery_tables.py`.

`python studies/recovery/recovery.py SYSTEMS --keep` adds the rows.
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from lapsus.files import make_folder, write_figure
from lapsus.plots.style import TEXT_WIDTH, letter, style

FOLDER = Path(__file__).resolve().parent
NONE = ("cannot tell", "no answer")
# "Mixed" and "none of these" are answers too, and wrong where one mechanism was built in.
TYPES = ("misbinding", "prior inclination", "misselection", "misinterpretation", "late switch", "no mark")
ANSWERS = (*TYPES, "mixed", "none of these", *NONE)
# What was built in, in the order of the right answers.
BUILT_IN = ("misbinding", "prior inclination", "misselection", "cue-time noise", "late switch", "response-time noise")
TITLES = {
    "populations": "linear populations",
    "trained": "trained networks, made to swap",
    "written": "written networks",
    "recordings": "recordings of 100 neurons, 400 trials",
}


def confusion(own: pd.DataFrame) -> pd.DataFrame:
    """How often each mechanism that was built in was called what."""
    found = pd.crosstab(own["mechanism"], own["said"])
    return found.reindex(index=own["mechanism"].unique(), columns=ANSWERS, fill_value=0)


def confusions(own: pd.DataFrame) -> pd.DataFrame:
    """Rows: what was built in; columns: what was said, and of written networks when and what carries it."""
    asked = {"when": ("expected when", "time is right"), "carried by": ("expected carrier", "carrier is right")}
    asked = {name: said for name, said in asked.items() if own[name].notna().any()}
    rows = []
    for mechanism, row in confusion(own).iterrows():
        here = own[own["mechanism"] == mechanism]
        cells = [str(count) for count in row]
        cells += [f"{(here[name] == here[expected]).sum()} of {len(here)}" for name, (expected, _) in asked.items()]
        rows.append([mechanism, *cells])
    return pd.DataFrame(rows, columns=["built in", *ANSWERS, *(head for _, head in asked.values())])


def shares(own: pd.DataFrame) -> pd.DataFrame:
    """Right and wrong answers at each swap rate and noise."""
    found = own.groupby(["swap rate", "noise"])[["right", "wrong"]].mean()
    noises = sorted(own["noise"].unique())
    rows = [
        [f"{rate:.0%}", *(f"{found.loc[rate, n]['right']:.0%}, {found.loc[rate, n]['wrong']:.0%}" for n in noises)]
        for rate in sorted(own["swap rate"].unique())
    ]
    return pd.DataFrame(rows, columns=["swap rate", *(f"noise {n:g}" for n in noises)])


def by_network(own: pd.DataFrame) -> pd.DataFrame:
    """Of trained networks: how often they swap by themselves with this noise, and what was said, by set and cueing."""
    rows = []
    kind = own["network"].str.partition("@")[0]
    for (name, noise), group in own.groupby([kind, "noise"]):
        apart = f"{group['own swaps'].min():.1%} to {group['own swaps'].max():.1%}".replace("%", " %")
        counts = [group["right"].sum(), group["wrong"].sum(), group["said"].isin(NONE).sum()]
        rows.append([name, str(group["network"].nunique()), f"{noise:g}", apart, *map(str, counts)])
    header = ["networks", "seeds", "noise", "swaps of their own", "right", "wrong", "not named"]
    return pd.DataFrame(rows, columns=header)


def by_system(own: pd.DataFrame) -> pd.DataFrame:
    """Of recordings: what was said, by the system that was recorded and its noise."""
    counted = own.assign(**{"not named": own["said"].isin(NONE)}).groupby(["network", "noise"])
    return counted[["right", "wrong", "not named"]].sum().reset_index()


def summary(own: pd.DataFrame) -> str:
    """One sentence."""
    return f"{own['right'].sum()} right and {own['wrong'].sum()} wrong of {len(own)}; of the others no kind was named."


def figure(whole: pd.DataFrame) -> None:
    systems = [name for name in TITLES if name in set(whole["systems"])]
    with style():
        fig, axes = plt.subplots(2, 2, figsize=(TEXT_WIDTH, 5.4), layout="constrained")
        for ax, name, text in zip(axes.flat, systems, "ABCD"):
            counts = confusion(whole[whole["systems"] == name])
            networks = [row for row in counts.index if row not in BUILT_IN]
            counts = counts.reindex([*BUILT_IN, *networks], fill_value=0)
            share = counts.to_numpy() / np.maximum(counts.to_numpy().sum(1, keepdims=True), 1)
            ax.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
            for (y, x), value in np.ndenumerate(counts.to_numpy()):
                if value:
                    ax.text(x, y, value, ha="center", va="center", fontsize=6, color="w" if share[y, x] > 0.5 else "k")
            ax.set_xticks(range(len(ANSWERS)), ANSWERS, rotation=60, ha="right", rotation_mode="anchor")
            ax.set_yticks(range(len(counts)), list(counts.index))
            ax.axvline(len(ANSWERS) - len(NONE) - 0.5, color="k", lw=0.6)
            ax.set(title=TITLES[name])
            letter(ax, text)
        write_figure(FOLDER / "recovery.png", fig, dpi=200)
        plt.close(fig)


def main() -> None:
    whole, tables = pd.read_csv(FOLDER / "recovery.csv"), make_folder(FOLDER / "tables")
    right = whole["said"] == whole["expected"]
    whole = whole.assign(right=right, wrong=~right & ~whole["said"].isin(NONE))
    for name in TITLES:
        own = whole[whole["systems"] == name]
        made = {"confusion": confusions(own)}
        made |= {"by-system": by_system(own)} if name == "recordings" else {"right-and-wrong": shares(own)}
        made |= {"by-network": by_network(own)} if name == "trained" else {}
        for kind, table in made.items():
            table.to_csv(tables / f"{name}-{kind}.csv", index=False)
        print(f"{name}: {summary(own)}")
    figure(whole)


if __name__ == "__main__":
    main()
