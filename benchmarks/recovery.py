"""Is the kind of error that the analyses name the one that was built in? A confusion matrix over made populations.

    python benchmarks/recovery.py [--seeds 3] [--trials 2000] [-o recovery.csv]

Populations whose swaps come about in a known way (lapsus.analysis.synthetic), at several swap rates and levels of
noise, through the analysis that `lapsus analyse` and `lapsus discover` ask which kind swaps are. What is right was
written down before any was looked at:

    misbinding           colours exchanged from the stimuli on            "misbinding"
    misselection         colours exchanged from the cue on                "misselection"
    cue-time noise       the other item taken for the cued one            "misinterpretation"
    response-time noise  decided at the response, memory as it should be  "no mark"

"cannot tell" is no error, but no answer either, and is counted by itself.
"""

import argparse
import itertools

import numpy as np
import pandas as pd
import xarray as xr

from lapsus.analysis.activity import two_items
from lapsus.analysis.kind import kind_of_swaps
from lapsus.analysis.synthetic import synthetic_population
from lapsus.circular import wrap
from lapsus.errors import LapsusError

RIGHT = {
    "misbinding": "misbinding",
    "misselection": "misselection",
    "cue-time noise": "misinterpretation",
    "response-time noise": "no mark",
}
ANSWERS = ("misbinding", "misselection", "misinterpretation", "no mark", "cannot tell", "no answer")
RATES, NOISES = (0.01, 0.03, 0.1, 0.3), (0.5, 2.0, 4.0, 8.0)


def made(mechanism: str, rate: float, noise: float, trials: int, seed: int) -> xr.Dataset:
    """A population with swaps of this kind in a share `rate` of trials."""
    options = {"trials": trials, "noise": noise, "seed": seed}
    if mechanism != "response-time noise":
        return synthetic_population(RIGHT[mechanism], swap_probability=rate, **options)
    dataset = synthetic_population(swap_probability=0.0, **options)
    found, rng = two_items(dataset), np.random.default_rng([seed, 1])
    report = np.where(rng.random(trials) < rate, found.distractor, found.target)
    return dataset.assign(response=("trial", wrap(report + 0.1 * rng.standard_normal(trials))))


def answer(dataset: xr.Dataset, seed: int) -> str:
    """What the analysis says; "no answer" where it refuses."""
    try:
        return kind_of_swaps(dataset, every=60, repeats=100, seed=seed).decision
    except LapsusError:
        return "no answer"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("-o", "--output")
    given = parser.parse_args()
    rows = []
    for mechanism, rate, noise, seed in itertools.product(RIGHT, RATES, NOISES, range(given.seeds)):
        said = answer(made(mechanism, rate, noise, given.trials, seed), seed)
        rows.append({"mechanism": mechanism, "swap rate": rate, "noise": noise, "seed": seed, "said": said})
    table = pd.DataFrame(rows)
    if given.output:
        table.to_csv(given.output, index=False)
    table["right"] = table["said"] == table["mechanism"].map(RIGHT)
    table["wrong"] = ~table["right"] & ~table["said"].isin(["cannot tell", "no answer"])
    said = pd.crosstab(table["mechanism"], table["said"]).reindex(index=list(RIGHT), columns=ANSWERS, fill_value=0)
    print(said.to_string())
    print()
    shares = table.groupby(["swap rate", "noise"])[["right", "wrong"]].mean().round(2)
    print(shares.unstack("noise").to_string())
    print(f"\n{table['right'].mean():.0%} right, {table['wrong'].mean():.0%} wrong of {len(table)} populations.")


if __name__ == "__main__":
    main()
