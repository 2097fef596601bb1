"""Do the tails of the scatter differ between the cells of subject and set size, beyond subjects and set sizes?

Compares a hierarchical fit with such deviations with the package's own, which has none, by leave-one-out predictive
density (Laplace's approximation, from the same start), and their rates. Prints a row of a Markdown table per emission.

python tails.py TABLE [--model probe]
"""

import argparse

import numpy as np

from lapsus.fitting.candidates import Choice, evaluate, loo_difference
from lapsus.fitting.emissions import EMISSIONS
from lapsus.fitting.shares import mean_rates
from lapsus.trials import read_trials

OPTIONS = {"uniform": True, "even": True, "hierarchical": True, "by": (), "reference": {}}


def main(options: argparse.Namespace) -> None:
    """One row for each emission with tails."""
    trials = read_trials(options.table)
    print("| scatter | gain of deviations (nats) | change of swap rates (points) | in half widths of bands |")
    print("|---|---|---|---|")
    for name in ("variable_precision", "wrapped_stable"):
        kind = EMISSIONS[name]
        choice = Choice(options.model, name)
        without = evaluate([trials], choice, OPTIONS, 0, None)
        tails, kind.tails = kind.tails, None
        deviating = evaluate([trials], choice, OPTIONS, 0, None, without)
        kind.tails = tails
        gain, error = loo_difference(deviating.loo, without.loo)
        before, after = (mean_rates(*found.shares[0]) for found in (without, deviating))
        several = before["set_size"] > 1
        change = (after["swap"] - before["swap"])[several].abs()
        half = (before["swap_high"] - before["swap_low"])[several] / 2
        print(
            f"| {name} | {gain:+.1f} ± {error:.1f} | {100 * change.max():.2f} | {np.max(change / half):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--model", default="probe")
    main(parser.parse_args())
