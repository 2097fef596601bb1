"""What each part of the recipe is worth: `python studies/training/ablations.py [NAME…] [--seeds K] [-o FOLDER]`.

feature-smooth-2 is trained from the shipped preamble without its last stage and with a third of the updates (150 for
each horizon, 1,600 at full length), once as its file says and once for each part of the recipe with that part changed.
Printed are the measures of `lapsus evaluate`, a mean over seeds. A run takes two to three core-minutes; the folder
keeps it.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import lapsus
from lapsus.training.experiment import override

HORIZON, FULL = range(6), 6
MEASURES = {"excess": 3, "swap_curve_mad": 3, "swap_curve_max": 3, "median_error": 3, "away": 4}
TARGET = 'behaviour={kind="bns", swap={kind="smooth"}, pi_correct=2.0}'
AT_ONCE = [f"stage.{k}.task={{denoise=40, delay=15}}" for k in HORIZON]

CHANGES = {
    "recipe": ("the recipe", []),
    "adam": ("plain Adam, not in principal axes", ["stage.*.principal_axes=0"]),
    "rare": ("swaps as rare as in the target from the start", [f"stage.{k}.{TARGET}" for k in HORIZON]),
    "at-once": ("full length at once, no growing horizon", AT_ONCE),
    "optimal": (
        "the same, from feature-optimal-40 (1.9 million trials more)",
        [*AT_ONCE, "start_from=feature-optimal-40"],
    ),
    "easy": ("no hard conditions", [f"stage.{FULL}.hard_example_fraction=0"]),
    "sample": (
        "the same, and regression on the sampled mean",
        [f"stage.{FULL}.hard_example_fraction=0", "stage.*.objective.regress=sample"],
    ),
    "rates-8": ("rate penalty 1e-8 at full length instead of 1e-10", [f"stage.{FULL}.objective.rate_penalty=1e-8"]),
    "rates-4": ("rate penalty 1e-4 throughout, as in the paper", ["stage.*.objective.rate_penalty=1e-4"]),
}


def experiment(changes: list[str], seed: int) -> lapsus.Experiment:
    table = lapsus.read_experiment("feature-smooth-2", [f"seed={seed}"]).model_dump(exclude_none=True)
    table["stage"] = table["stage"][: FULL + 1]
    short = [*(f"stage.{k}.updates=150" for k in HORIZON), f"stage.{FULL}.updates=1600"]
    for change in [*short, *changes]:
        table = override(table, change)
    return lapsus.read_experiment(table)


def measure(name: str, seed: int, folder: Path, threads: int | None) -> list[float]:
    run = lapsus.Run.of(folder / f"{name}-{seed}", experiment(CHANGES[name][1], seed))
    if run.update < run.experiment.updates and lapsus.train(run, threads=threads).reason != "done":
        sys.exit("Stopped; the same command resumes.")
    found = lapsus.evaluate(run.model(), threads=threads)
    return [found[key] for key in MEASURES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(CHANGES), help=f"of {', '.join(CHANGES)}")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/ablations"))
    args = parser.parse_args()
    for name in args.names:
        if name not in CHANGES:
            parser.error(f"{name} is not one of {', '.join(CHANGES)}.")
    if args.seeds not in (1, 2, 3):
        parser.error("--seeds is 1, 2 or 3: so many preambles ship.")
    print("| what | excess | curve, mean | curve, max | median error | away |\n|---|---|---|---|---|---|")
    for name in args.names:
        found = np.mean([measure(name, seed, args.output, args.threads) for seed in range(1, args.seeds + 1)], axis=0)
        numbers = [f"{value:.{digits}f}" for value, digits in zip(found, MEASURES.values(), strict=True)]
        print(f"| {CHANGES[name][0]} | {' | '.join(numbers)} |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except lapsus.LapsusError as error:
        sys.exit(str(error))
