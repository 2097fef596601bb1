"""How many swaps does it take to tell kinds of mechanisms apart in a recording?

    python swaps_needed.py [--recordings 24] [--tests 16] [--keep]
    python swaps_needed.py --figure

Kinds: late in the response (networks of the collection `persistent`), at the cue in memory (`open`), and populations
built to err by prior inclination and by misbinding. Kinds are learnt from some systems and tested on others: persistent
networks of another seed, written networks (studies/recovery) for the two types that were built in, and other trials of
the open network where the collection has one alone. Every recording has Poisson spikes, 10 spikes/s on average, and
colours that explain a share of the variance of the counts (--reliability). With --keep the rows are put into
swaps_needed.csv.
"""

import argparse
import itertools
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "recovery"))

from written_networks import written_network

from lapsus import load
from lapsus.files import write_figure
from lapsus.mechanism.resemblance import (
    Noise,
    Pool,
    features,
    kinds_of,
    like,
    matched_noise,
    probabilities,
    single_trials,
)
from lapsus.plots.style import style
from lapsus.zoo.shipped import shipped_names

TABLE = HERE / "swaps_needed.csv"
KINDS = ("persistent", "open", "prior inclination", "misbinding")
UNITS, SWAPS, CORRECT = (30, 100, 300), (10, 20, 40, 80), (400,)
SECONDS = np.array([0.15, 0.5, 0.15, 0.65, 0.65])
RATE, RELIABILITY, CORRELATION = 10.0, 0.1, 0.03
COLUMNS = ["reliability", "units", "correct", "swaps", "kind"]
TRIALS = 2048


def systems() -> dict[str, tuple[list, list]]:
    """Sources to learn each kind from, and sources to test it on."""
    trained = partial(partial, single_trials)
    late = [trained(load(f"persistent-index-swap-10{seed}")) for seed in ("", "@2", "@3")]
    names = [name for name in shipped_names() if name.startswith("open-index-swap")]
    early = [trained(load(name)) for name in names]
    built = kinds_of(["prior inclination", "misbinding"])
    written = {kind: [trained(written_network(kind, 0.1, 10.0))] for kind in built}
    return {
        "persistent": (late[:2], late[2:]),
        "open": (early[:1], early[1:] or early),
        **{kind: (built[kind][:2], written[kind]) for kind in built},
    }


def recordings(
    sources: list, count: int, units: int, swaps: int, correct: int, reliability: float, seed: int
) -> np.ndarray:
    """Features [recording, feature] of simulated recordings, the sources in turn."""
    rates = np.random.default_rng(seed).lognormal(np.log(RATE), 0.5, units)
    made = partial(like, swaps=swaps, correct=correct, seconds=SECONDS, rates=rates)
    noise = Noise(reliability, CORRELATION, rates)
    levels = [matched_noise(pool, made, noise) for pool in sources]
    rows = []
    for k in range(count):
        depth, shared = levels[k % len(sources)]
        rows.append(features(made(sources[k % len(sources)], depth=depth, shared=shared, seed=seed + k), seed + k))
    return np.stack(rows)


def keep(rows: pd.DataFrame) -> None:
    """Put rows into the table, in place of those of the same recordings."""
    kept = pd.concat([pd.read_csv(TABLE), rows]) if TABLE.exists() else rows
    kept = kept.drop_duplicates(COLUMNS, keep="last").sort_values(COLUMNS)
    kept.to_csv(TABLE, index=False, float_format="%.4g")


def figure() -> None:
    """Share of recordings that are assigned to their own kind, against the number of swaps."""
    table = pd.read_csv(TABLE)
    with style():
        fig, ax = plt.subplots(figsize=(3.4, 2.4), layout="constrained")
        for (reliability, units, correct), own in table.groupby(COLUMNS[:3]):
            mean = own.groupby("swaps")["right"].mean()
            label = f"{units} neurons, {correct} correct trials, {100 * reliability:.0f} %"
            ax.plot(mean.index, 100 * mean, "o-", ms=3, label=label)
        ax.axhline(90, color="0.5", lw=0.6, ls=(0, (3, 2)))
        ax.set(xlabel="swaps", ylabel="assigned to their own kind (%)", ylim=(0, 103), xscale="log")
        swaps = sorted(table["swaps"].unique())
        ax.set_xticks(swaps, [str(count) for count in swaps], minor=False)
        ax.minorticks_off()
        ax.legend(fontsize=6)
        write_figure(HERE / "swaps_needed.png", fig, dpi=200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=int, default=24, help="to learn each kind from")
    parser.add_argument("--tests", type=int, default=16, help="to test each kind on")
    parser.add_argument("--units", type=int, nargs="+", default=UNITS)
    parser.add_argument("--swaps", type=int, nargs="+", default=SWAPS)
    parser.add_argument("--correct", type=int, nargs="+", default=CORRECT)
    parser.add_argument("--reliability", type=float, default=RELIABILITY)
    parser.add_argument("--keep", action="store_true", help="put the rows into swaps_needed.csv")
    parser.add_argument("--figure", action="store_true", help="draw swaps_needed.csv and nothing else")
    given = parser.parse_args()
    if given.figure:
        figure()
        return
    warnings.simplefilter("ignore")  # written networks run on the torch reference
    pools = {
        kind: [[Pool.of(source, TRIALS, seed) for source in part] for seed, part in ((1, learnt), (2, tested))]
        for kind, (learnt, tested) in systems().items()
    }
    rows = []
    for units, correct, swaps in itertools.product(given.units, given.correct, given.swaps):
        size = (units, swaps, correct, given.reliability)
        learnt = {kind: recordings(own, given.recordings, *size, 1000) for kind, (own, _) in pools.items()}
        for k, (kind, (_, own)) in enumerate(pools.items()):
            found = recordings(own, given.tests, *size, 5000)
            scores = np.stack([probabilities(learnt, value) for value in found])
            named = pd.Series([KINDS[best] for best in scores.argmax(1)]).value_counts().to_dict()
            facts = dict(zip(COLUMNS, (given.reliability, units, correct, swaps, kind))) | {"tested": len(found)}
            rows.append(facts | {"right": float((scores.argmax(1) == k).mean()), "score": float(scores[:, k].mean())})
            print(rows[-1] | {"named": named}, flush=True)
        if given.keep:
            keep(pd.DataFrame(rows))
    table = pd.DataFrame(rows)
    print(table.pivot_table(index=COLUMNS[:3], columns="swaps", values="right").round(2))


if __name__ == "__main__":
    main()
