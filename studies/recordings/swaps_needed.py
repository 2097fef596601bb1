"""How many swaps does it take to tell kinds of mechanisms apart in a recording?

    python swaps_needed.py [--recordings 32] [--tests 12] [--keep]
    python swaps_needed.py --figure

Kinds: late in the response (networks of the collection `persistent`), at the cue in memory (`open`), and populations
built to err by prior inclination and by misbinding. Every recording that is tested comes from a network that the kinds
were not learnt from: a network of another seed where the collection has several seeds, else another network of the
collection, and written networks (studies/recovery) for the two types that were built in. Every recording has Poisson
spikes, 10 spikes/s on average, and colours that explain a share of the variance of the counts (--reliability). The
answer is that of `lapsus analyse --against`. With --keep the rows are put into swaps_needed.csv.
"""

import argparse
import itertools
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "recovery"))

from written_networks import written_network

from lapsus import load
from lapsus.files import write_figure
from lapsus.mechanism.resemblance import (
    Discriminant,
    Noise,
    Pool,
    between_networks,
    comparable,
    decision,
    features,
    folds,
    kinds_of,
    like,
    matched_noise,
    recovered,
    single_trials,
)
from lapsus.plots.style import style
from lapsus.zoo.shipped import shipped_names

TABLE = HERE / "swaps_needed.csv"
KINDS = ("persistent", "open", "prior inclination", "misbinding")
UNITS, SWAPS, CORRECT = (10, 25, 50, 100), (5, 10, 20, 40), (400,)
SECONDS = np.array([0.15, 0.5, 0.15, 0.65, 0.65])
RATE, RELIABILITY, CORRELATION = 10.0, (0.02, 0.05, 0.1), 0.03
COLUMNS = ["reliability", "units", "correct", "swaps", "kind"]
TRIALS = 2048
# Share of variance and neurons for which the figure shows other numbers of correct trials.
TRIALS_VARY = 0.05, 50


@dataclass(frozen=True)
class System:
    """A network or a population; those of a family are not tested on recordings learnt from one another. learnt:
    whether kinds are learnt from it; tested: whether it is tested."""

    kind: str
    pool: Pool
    family: str
    learnt: bool = True
    tested: bool = True


def systems(seed: int) -> list[System]:
    """Every system with trials of this seed."""
    pool = lambda source: Pool.of(source, TRIALS, seed)
    found = []
    for kind, pattern in (("persistent", "persistent-index-swap-10"), ("open", "open-index-swap")):
        names = [name for name in shipped_names() if name.startswith(pattern)]
        seeds = [name.partition("@")[2] for name in names]
        families = seeds if len(set(seeds)) > 1 else names
        found += [System(kind, pool(partial(single_trials, load(n))), f) for n, f in zip(names, families)]
    for kind, sources in kinds_of(["prior inclination", "misbinding"]).items():
        found += [System(kind, pool(source), "built", tested=False) for source in sources]
        written = partial(single_trials, written_network(kind, 0.1, 10.0))
        found.append(System(kind, pool(written), "written", learnt=False))
    return found


def recordings(
    sources: list[System], levels: list[tuple[float, float]], count: int, size: dict, rates: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Comparable features [recording, feature] of simulated recordings, the sources in turn, and the number of each's
    source."""
    source = np.arange(count) % len(sources)
    for one in sources:
        found = {"swaps": int(one.pool.swap.sum()), "correct": int(one.pool.correct.sum())}
        if any(found[name] < size[name] for name in size):
            raise ValueError(f"A system of {one.kind} has too few trials for recordings of {size}: {found}.")
    rows = []
    for k, which in enumerate(source):
        depth, shared = levels[which]
        made = like(
            sources[which].pool, seconds=SECONDS, rates=rates, depth=depth, shared=shared, seed=seed + k, **size
        )
        rows.append(comparable(features(made, folds(made, seed + k))))
    return np.stack(rows), source


def cell(learn: list[System], test: list[System], units: int, reliability: float, sizes: list[dict], given) -> Iterator:
    """For each size of recordings with so many units, its rows of the table."""
    rates = np.random.default_rng(1000).lognormal(np.log(RATE), 0.5, units)
    noise = Noise(reliability, CORRELATION, rates)
    level = partial(like, seconds=SECONDS, rates=rates, swaps=40, correct=400)
    levels = {id(one): matched_noise(one.pool, level, noise) for one in learn + test}
    for size in sizes:
        rows, made = [], {}
        for role, group, count, seed in (
            ("learnt", learn, given.recordings, 1000),
            ("tested", test, given.tests, 5000),
        ):
            for kind in KINDS:
                own = [one for one in group if one.kind == kind]
                found = recordings(own, [levels[id(one)] for one in own], count, size, rates, seed)
                made[role, kind] = (*found, own)
        for k, kind in enumerate(KINDS):
            values, source, own = made["tested", kind]
            answers, scores, shares = [], [], []
            for which, system in enumerate(own):
                known, networks = {}, {}
                for name in KINDS:
                    rows_learnt, from_, sources = made["learnt", name]
                    kept = [j for j, one in enumerate(sources) if name != kind or one.family != system.family]
                    known[name], networks[name] = rows_learnt[np.isin(from_, kept)], len(kept)
                between = between_networks(known, networks)
                share = recovered(known, networks, between)
                shares.append(np.mean(list(share.values())))
                kinds = Discriminant.of(known, networks, between)
                for value in values[source == which]:
                    answers.append(decision(kinds, share, value)[0])
                    scores.append(kinds.probabilities(value))
            facts = {"reliability": reliability, "units": units, **size, "kind": kind, "tested": len(answers)}
            facts |= {"recognised": float((np.stack(scores).argmax(1) == k).mean()), "calibration": np.mean(shares)}
            facts |= {"right": np.mean([one == kind for one in answers])}
            facts |= {"wrong": np.mean([one in KINDS and one != kind for one in answers])}
            facts |= {"cannot tell": np.mean([one == "cannot tell" for one in answers])}
            facts |= {"none of these": np.mean([one == "none of these" for one in answers])}
            print(facts, flush=True)
            rows.append(facts)
        yield pd.DataFrame(rows)


def keep(rows: pd.DataFrame) -> None:
    """Put rows into the table, in place of those of the same recordings."""
    kept = pd.concat([pd.read_csv(TABLE), rows]) if TABLE.exists() else rows
    kept = kept.drop_duplicates(COLUMNS, keep="last").sort_values(COLUMNS)
    kept.to_csv(TABLE, index=False, float_format="%.4g")


def figure() -> None:
    """Share of right and of wrong answers, against the number of swaps and of correct trials; the others are "cannot
    tell" or none."""
    table = pd.read_csv(TABLE)
    usual = table[table["correct"] == CORRECT[0]]
    reliabilities, sizes = sorted(usual["reliability"].unique()), sorted(usual["units"].unique())
    shades = dict(zip(sizes, plt.get_cmap("viridis")(np.linspace(0.85, 0.1, len(sizes)))))
    columns = len(reliabilities) + 1
    with style():
        fig, axes = plt.subplots(1, columns, figsize=(2.2 * columns, 2.4), layout="constrained", sharey=True)
        lines = {}
        for ax, reliability in zip(axes, reliabilities):
            for units, part in usual[usual["reliability"] == reliability].groupby("units"):
                lines[f"{units} neurons"] = _lines(ax, part, "swaps", shades[units])
            ax.set(title=f"colours explain {100 * reliability:.0f} %", xlabel="swaps")
        reliability, units = TRIALS_VARY
        part = table[(table["reliability"] == reliability) & (table["units"] == units)]
        for swaps, style_of_swaps in ((20, "o:"), (40, "o-")):
            own = part[part["swaps"] == swaps]
            lines[f"{units} neurons, {swaps} swaps"] = _lines(axes[-1], own, "correct", shades[units], style_of_swaps)
        axes[-1].set(title=f"colours explain {100 * reliability:.0f} %", xlabel="correct trials")
        axes[0].set_ylabel("recordings (%)")
        fig.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=len(lines), fontsize=7)
        write_figure(HERE / "swaps_needed.png", fig, dpi=200)


def _lines(ax: Axes, part: pd.DataFrame, x: str, colour, fmt: str = "o-"):
    """Right and wrong answers against one column, mean over kinds; the line of the right ones."""
    mean = part.groupby(x)[["right", "wrong"]].mean()
    (line,) = ax.plot(mean.index, 100 * mean["right"], fmt, ms=3, color=colour)
    ax.plot(mean.index, 100 * mean["wrong"], "--", lw=0.8, color=colour)
    ax.axhline(90, color="0.5", lw=0.6, ls=(0, (3, 2)))
    ax.set(ylim=(0, 103), xscale="log")
    ax.set_xticks(mean.index, [str(count) for count in mean.index], minor=False)
    ax.minorticks_off()
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=32, help="to learn each kind from")
    parser.add_argument("--tests", type=int, default=12, help="to test each kind on")
    parser.add_argument("--units", type=int, nargs="+", default=UNITS)
    parser.add_argument("--swaps", type=int, nargs="+", default=SWAPS)
    parser.add_argument("--correct", type=int, nargs="+", default=CORRECT)
    parser.add_argument("--reliability", type=float, nargs="+", default=RELIABILITY)
    parser.add_argument("--keep", action="store_true", help="put the rows into swaps_needed.csv")
    parser.add_argument("--figure", action="store_true", help="draw swaps_needed.csv and nothing else")
    given = parser.parse_args()
    if given.figure:
        figure()
        return
    warnings.simplefilter("ignore")  # written networks run on the torch reference
    learn = [one for one in systems(1) if one.learnt]
    test = [one for one in systems(2) if one.tested]
    sizes = [{"swaps": swaps, "correct": correct} for correct, swaps in itertools.product(given.correct, given.swaps)]
    rows = []
    for reliability, units in itertools.product(given.reliability, given.units):
        for found in cell(learn, test, units, reliability, sizes, given):
            rows.append(found)
            if given.keep:
                keep(found)
    table = pd.concat(rows).groupby(COLUMNS[:4])[["recognised", "right", "wrong", "cannot tell"]].mean()
    print(table.round(2))


if __name__ == "__main__":
    main()
