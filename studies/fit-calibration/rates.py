"""Do the 95 % bands of every subject's swap rate at every set size hold the truth as often as they say?

python rates.py coverage [--experiments 40] [--subjects 6] [--trials 60] [--sizes 2 4 8] [--model constant]
python rates.py contrasts [--experiments 60] [--subjects 10] [--trials 60] [--effects 0 0 0] [--groups]
python rates.py together [--subjects 12] [--trials 150]
python rates.py published TABLE [--subjects]

coverage: simulated experiments whose subjects differ, with more swaps at larger set sizes; each is fitted
hierarchically. contrasts: two conditions within subjects with differences `effects` in the log odds of a swap, the log
odds of a guess and the log s.d. of the scatter; coverage, and how often the interval leaves out 0; --groups: every
second subject in one condition, the others in the other. together: all set sizes in one fit against one fit each, with
f shared between them for comparison; published: the same for a trial table, or with --subjects its subjects one at a
time and hierarchically. Observers are written independently of the package. One thread; prints Markdown.
"""

import argparse
import time

import numpy as np
import pandas as pd
from scipy.special import expit, ive

from lapsus.circular import wrap
from lapsus.fitting import fit
from lapsus.trials import Trials, read_trials

PLACES = 8
POPULATION = {"level": 0.6, "deviation": 0.2, "kappa": 0.3, "guess": 0.5}  # s.d. of subjects, logits and logarithms


def typical(size, effects=(0.0, 0.0, 0.0)):
    """Log odds of a swap, concentration and log odds of a guess of a subject without offsets."""
    swap, guess, scatter = effects
    kappa = 25 * np.exp(-0.5 * np.log(size) - 2 * scatter)  # s.d. ~ kappa^-1/2
    return -3.2 + 0.9 * np.log(size) + swap, kappa, -4 + 0.6 * np.log(size) + guess


def observer(rng, subject, size, count, level, kappa, guess, depends):
    """Trials of one subject at one set size (response, report, probe, subject, which were swaps) and its true swap
    rate over them."""
    report = rng.uniform(-np.pi, np.pi, (count, PLACES))
    probe = 2 * np.pi / PLACES * np.stack([rng.permutation(PLACES) for _ in range(count)])
    report[:, size:] = probe[:, size:] = np.nan
    f = np.full((count, PLACES), -np.inf)
    f[:, :size] = level + depends(np.abs(wrap(probe[:, :size] - probe[:, :1])))
    f[:, 0] = 0.0
    weights = np.exp(f)
    weights /= weights.sum(1, keepdims=True)
    item = (rng.uniform(size=(count, 1)) > np.cumsum(weights, 1)).sum(1)
    response = report[np.arange(count), item] + rng.vonmises(0, kappa, count)
    guessed = rng.uniform(size=count) < guess
    response = np.where(guessed, rng.uniform(-np.pi, np.pi, count), response)
    swapped = (item > 0) & ~guessed
    return (wrap(response), report, probe, [subject] * count, swapped), (1 - guess) * (1 - weights[:, 0]).mean()


def experiment(rng, subjects, sizes, count, depends=lambda d: 0 * d, effects=None, groups=False):
    """Trials of subjects that differ, and the true rates {(set size, subject, condition): rate}; how many trials were
    swaps is truth["swaps"]. With effects each subject is in both conditions or, in groups, in one."""
    parts, conditions, truth = [], [], {}
    sd = POPULATION
    for number in range(1, subjects + 1):
        own = {name: sd[name] * rng.standard_normal() for name in ("level", "kappa", "guess")}
        both = ("ab"[number % 2],) if groups else ("a", "b")
        for condition in both if effects is not None else ("a",):
            more = 0.0 if effects is None else sd["deviation"] * rng.standard_normal()
            for size in sizes:
                level, kappa, guess = typical(size, effects if condition == "b" else (0.0, 0.0, 0.0))
                level = level + own["level"] + more + sd["deviation"] * rng.standard_normal()
                kappa = kappa * np.exp(own["kappa"] + 0.1 * rng.standard_normal())
                guess = expit(guess + own["guess"])
                part, rate = observer(rng, f"s{number}", size, count, level, kappa, guess, depends)
                parts.append(part)
                conditions += [condition] * count
                truth[size, f"s{number}", condition] = rate
    response, report, probe = (np.concatenate([part[i] for part in parts]) for i in range(3))
    subject = [name for part in parts for name in part[3]]
    truth["swaps"] = sum(part[4].sum() for part in parts)
    return Trials(response, report, probe, subject=subject, conditions={"condition": conditions}), truth


MEASURES = (
    "log odds of a swap",
    "log odds of a guess",
    "log circular s.d.",
    "swap rate",
    "guess rate",
    "circular s.d.",
)
SHAPES = {"constant": lambda d: 0 * d, "probe": lambda d: 0.8 - d**2 / 4}


def coverage(options):
    """Share of bands that hold the truth; the same bands at half their width must be flagged."""
    rows, counts, start = [], [], time.process_time()
    for number in range(options.experiments):
        rng = np.random.default_rng([options.seed, number])
        trials, truth = experiment(rng, options.subjects, options.sizes, options.trials, SHAPES[options.model])
        result = fit(
            trials, options.model, by="hierarchical", seed=number, progress=False, sets=options.sets, bias=False
        )
        found = result.expected_swaps
        counts.append(found["low"] <= truth["swaps"] <= found["high"])
        for row in result.rates.itertuples():
            true = truth[row.set_size, row.subject, "a"]
            half = 0.25 * (row.swap_high - row.swap_low)
            rows.append(
                [
                    row.set_size,
                    row.swap_low <= true <= row.swap_high,
                    abs(row.swap - true) <= half,
                    row.swap - true,
                    row.swap_high - row.swap_low,
                    number,
                    result.converged,
                ]
            )
        if (options.every and (number + 1) % options.every == 0) or number + 1 == options.experiments:
            _print_coverage(np.array(rows, float), options, time.process_time() - start)
            print(f"The number of swaps lies in its 95 % interval in {sum(counts)} of {len(counts)} experiments.")


def _print_coverage(rows, options, seconds):
    done = len(np.unique(rows[:, 5]))
    print(
        f"\n{done} experiments of {options.subjects} subjects, {options.trials} trials at each of the set sizes"
        f" {options.sizes}, model {options.model}, f {options.sets}; {seconds / done:.1f} s of processor time each;"
        f" {int((~rows[:, 6].astype(bool)).sum() / (options.subjects * len(options.sizes)))} did not converge\n"
    )
    print("| set size | bands | 95 % bands that hold the truth | at half the width | mean error | mean width |")
    print("|---|---|---|---|---|---|")
    for size in [*options.sizes, "all"]:
        part = rows if size == "all" else rows[rows[:, 0] == size]
        by = np.array([part[part[:, 5] == k, 1].mean() for k in np.unique(part[:, 5])])  # experiments are the sample
        error = by.std(ddof=1) / np.sqrt(len(by)) if len(by) > 1 else float("nan")
        print(
            f"| {size} | {len(part)} | {100 * part[:, 1].mean():.1f} ± {100 * error:.1f} % |"
            f" {100 * part[:, 2].mean():.0f} % | {100 * part[:, 3].mean():+.1f} % | {100 * part[:, 4].mean():.1f} % |",
            flush=True,
        )


def true_contrasts(sizes, effects):
    """What `Fit.contrasts` estimates, for a subject without offsets, averaged over set sizes."""
    found = []
    for size in sizes:
        both = []
        for one in ((0.0, 0.0, 0.0), effects):
            level, kappa, guess = typical(size, one)
            spread = np.sqrt(-2 * np.log(ive(1, kappa) / ive(0, kappa)))
            swap = (1 - expit(guess)) * expit(level + np.log(size - 1))
            degrees = np.degrees(spread)
            both.append([level, guess, np.log(spread), swap, expit(guess), degrees])
        found.append(np.subtract(*both[::-1]))
    return dict(zip(MEASURES, np.mean(found, 0)))


def contrasts(options):
    """Intervals of differences between conditions: coverage of the truth, and how often they leave out 0."""
    rows, failed, start = [], 0, time.process_time()
    truth = true_contrasts(options.sizes, options.effects)
    for number in range(options.experiments):
        rng = np.random.default_rng([options.seed, 1, number])
        trials, _ = experiment(
            rng, options.subjects, options.sizes, options.trials, effects=options.effects, groups=options.groups
        )
        result = fit(trials, "constant", by="condition", seed=number, progress=False, sets="offsets", bias=False)
        failed += not result.converged
        table = result.contrasts.set_index("measure").loc[list(MEASURES)]
        off, spread = table["difference"] - pd.Series(truth), (table["high"] - table["low"]) / (2 * 1.96)
        holds, zero = ((table["low"] <= v) & (v <= table["high"]) for v in (pd.Series(truth), 0.0))
        rows.append(np.stack([holds, off.abs() <= 0.98 * spread, ~zero, off, off / spread], 1).astype(float))
        if (options.every and (number + 1) % options.every == 0) or number + 1 == options.experiments:
            seconds = (time.process_time() - start) / len(rows)
            print(
                f"\n{len(rows)} experiments, {options.subjects} subjects{' in two groups' * options.groups},"
                f" {options.trials} trials a cell; {seconds:.1f} s of processor time each; {failed} did not converge\n"
            )
            _print_contrasts(np.array(rows), truth)


def _print_contrasts(rows, truth):
    """rows [experiments, measures, (holds the truth, at half the width, leaves out 0, error, error / spread)]."""
    print("| difference in | truth | 95 % intervals that hold it | at half the width | that leave out 0 |", end="")
    print(" mean error | error / posterior s.d. |\n|---|---|---|---|---|---|---|")
    count = len(rows)
    means, errors = rows.mean(0), rows.std(0) / np.sqrt(count)
    for i, (measure, true) in enumerate(truth.items()):
        share = [f"{100 * means[i, k]:.1f} ± {100 * errors[i, k]:.1f} %" for k in (0, 2)]
        root = np.sqrt(np.mean(rows[:, i, 4] ** 2))  # 1 where the intervals are as wide as they should be
        print(
            f"| {measure} | {true:.3g} | {share[0]} | {100 * means[i, 1]:.0f} % | {share[1]} |"
            f" {means[i, 3]:+.2g} ± {errors[i, 3]:.1g} | {root:.2f} ± {root / np.sqrt(2 * count):.2f} |",
            flush=True,
        )


def together(options):
    """One fit of all set sizes against a fit of each: swap rates pooled over subjects."""
    sizes = (2, 4, 8)
    trials, truth = experiment(np.random.default_rng(options.seed), options.subjects, sizes, options.trials)
    size_means = {n: np.mean([truth[n, f"s{i + 1}", "a"] for i in range(options.subjects)]) for n in sizes}
    _print_together(trials, {n: f"{100 * rate:.1f} %" for n, rate in size_means.items()})


def published(options):
    """The same for a trial table, pooled over its subjects; or its subjects, each alone and around a population."""
    trials = read_trials(options.table)
    if options.subjects:
        trials = trials[trials.set_size > 1]
        plain = {"progress": False, "sets": "offsets", "bias": False}
        alone, around = (fit(trials, "constant", by=by, **plain).rates for by in ("subject", "hierarchical"))
        print("| set size | one at a time | hierarchical | correlation |\n|---|---|---|---|")
        for size in np.unique(trials.set_size):
            rates = [100 * r[r["set_size"] == size].set_index("subject")["swap"] for r in (alone, around)]
            ranges = [f"{r.min():.1f} to {r.max():.1f} %" for r in rates]
            print(f"| {size} | {' | '.join(ranges)} | {rates[0].corr(rates[1]):.2f} |", flush=True)
        return
    _print_together(trials, dict.fromkeys(map(int, np.unique(trials.set_size[trials.set_size > 1])), "–"))


def _print_together(trials, truth):
    """truth: what the table shows of each set size."""
    fits = [fit(trials, "constant", progress=False), fit(trials, "constant", sets="shared", progress=False)]
    print("| set size | truth | one at a time | all together | all together, one f for all |\n|---|---|---|---|---|")
    for size, true in truth.items():
        alone = fit(trials[trials.set_size == size], "constant", progress=False).rates.iloc[0]
        cells = [alone, *(one.rates.set_index("set_size").loc[size] for one in fits)]
        shown = [f"{100 * r['swap']:.1f} [{100 * r['swap_low']:.1f}, {100 * r['swap_high']:.1f}]" for r in cells]
        print(f"| {size} | {true} | " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for run, defaults in (
        (coverage, {"experiments": 40, "subjects": 6, "trials": 60, "every": 5}),
        (contrasts, {"experiments": 60, "subjects": 10, "trials": 60, "every": 5}),
        (together, {"subjects": 12, "trials": 150}),
    ):
        command = commands.add_parser(run.__name__)
        for name, value in defaults.items() | {("seed", 0)}:
            command.add_argument(f"--{name}", type=int, default=value)
        command.add_argument("--sizes", nargs="+", type=int, default=[2, 4, 8] if run is coverage else [3])
        command.add_argument("--model", choices=SHAPES, default="constant")
        command.add_argument("--sets", default="offsets")
        command.add_argument("--effects", type=float, nargs=3, default=[0.0] * 3, metavar=("SWAP", "GUESS", "SCATTER"))
        command.add_argument("--groups", action="store_true")
        command.set_defaults(run=run)
    command = commands.add_parser("published")
    command.add_argument("table")
    command.add_argument("--subjects", action="store_true")
    command.set_defaults(run=published)
    arguments = parser.parse_args()
    arguments.run(arguments)
