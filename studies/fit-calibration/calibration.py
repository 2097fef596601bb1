"""Simulation-based calibration, recovery, timing. Prints Markdown tables.

Coverage of subjects' rates and of contrasts, and published data, are in rates.py.

python calibration.py sbc [--fits 200] [--trials 400] [--items 2]          # ranks f at nine distances
python calibration.py sbc --subjects 6 --items 2 4 8 --model constant      # subjects' rates, offsets
python calibration.py recovery [--repeats 5]
python calibration.py speed [--counts 1000 10000 100000] [--by hierarchical] [--anywhere]
python calibration.py cells [--fits 100]      # bands of set size × condition where effects differ
"""

import argparse
import time

import numpy as np

from lapsus.circular import wrap
from lapsus.fitting import Calibration, calibrate, fit
from lapsus.trials import Trials

GRID = np.radians([45.0, 75, 105, 135, 165])


def design(count, sizes, seed):
    """Random items, probes and reports anywhere on the circle, set sizes drawn evenly, or one given for each trial."""
    rng = np.random.default_rng(seed)
    report, probe = rng.uniform(-np.pi, np.pi, (2, count, max(sizes)))
    drawn = rng.choice(sizes, count) if len(sizes) < count else np.asarray(sizes)
    beyond = np.arange(max(sizes))[None] >= drawn[:, None]
    report[beyond] = probe[beyond] = np.nan
    return Trials(rng.uniform(-np.pi, np.pi, count), report, probe)


def answered(trials, f, kappa=12.0, guess=0.05, seed=0):
    """Responses of the swap model with a known f (of probe and report distance), written independently of the
    package."""
    rng = np.random.default_rng([seed, 1])  # not the stream of the items
    logits = f(np.abs(trials.distance("probe")), np.abs(trials.distance("report")))
    logits = np.where(np.isfinite(trials.report), logits, -np.inf)
    logits[:, 0] = 0.0
    item = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    angle = trials.report[np.arange(len(trials)), item]
    angle = np.where(rng.uniform(size=len(angle)) < guess, rng.uniform(-np.pi, np.pi, len(angle)), angle)
    return trials.with_responses(wrap(angle + rng.vonmises(0, kappa, len(angle))))


TRUTHS = {
    "none": lambda p, r: np.full_like(p, -np.inf),
    "constant": lambda p, r: np.full_like(p, -2.0),
    "probe": lambda p, r: -0.5 - p**2 / 3,
    "report": lambda p, r: -0.5 - r**2 / 3,
    "both": lambda p, r: -0.5 - p**2 / 6 - r**2 / 6,
}


KINDS = {
    "rate": "swap rate of a subject at a set size",
    "set size": "offset of a set size",
    "subject": "offset of a subject",
}


def sbc(options):
    """In pieces, so that a run that is cut short still tells something."""
    done, rates = None, options.subjects > 0
    if rates:  # as many trials for every subject at every set size
        sizes = np.repeat(options.items, options.trials * options.subjects)
        items = design(len(sizes), sizes, 0)
        subject = [f"s{number % options.subjects + 1}" for number in range(len(sizes))]
        items = Trials(items.response, items.report, items.probe, subject=subject)
    else:
        items = design(options.trials, options.items, 0)
    for start in range(0, options.fits, options.piece):
        piece = calibrate(
            items,
            min(options.piece, options.fits - start),
            options.model,
            seed=options.seed + start,
            progress=False,
            hierarchical=rates,
            rates=rates,
        )
        if done is not None:
            piece = Calibration(
                piece.distances,
                np.concatenate([done.truth, piece.truth]),
                np.concatenate([done.draws, piece.draws]),
                done.seconds + piece.seconds,
                done.not_converged + piece.not_converged,
            )
        done = piece
        print(
            f"\n{len(done.truth)} fits of {len(items):,} trials, model {options.model}, set sizes {options.items},"
            f" {options.subjects or 'no'} subjects, in {done.seconds:.0f} s; {done.not_converged} did not converge",
            flush=True,
        )
        print("| ranked | posterior | 50 % | 80 % | 95 % | smallest p of uniform ranks | verdict |")
        print("|---|---|---|---|---|---|---|")
        bins = []
        for kind in KINDS if rates else ["f"]:
            part = done.only(kind) if rates else done
            if not len(part.distances):
                continue
            for name, result in (("as fitted", part), ("spread halved", part.overconfident(2.0))):
                cover = [f"{100 * r.coverage:.1f} ± {100 * r.se:.1f}" for r in result.coverage.itertuples()]
                print(
                    f"| {len(part.distances)} × {KINDS.get(kind, kind)} | {name} | {' | '.join(cover)} |"
                    f" {result.p_values.min():.2g} | {'passes' if result.passed else 'flagged'} |",
                    flush=True,
                )
            counts = np.histogram(part.position, 10, (0, 1))[0].tolist()
            bins.append(f"ranks of {KINDS.get(kind, kind)} in ten bins: {counts}")
        print("", *bins, sep="\n", flush=True)


def recovery(options):
    print(
        "| truth | trials | mean abs. error of f | in the 95 % band | kappa (12) | guesses (0.05) | s"
        " |\n|---|---|---|---|---|---|---|"
    )
    for name in options.models:
        for count in options.counts:
            rows = []
            for seed in range(options.repeats):
                trials = answered(design(count, [2], seed), TRUTHS[name], seed=seed)
                result = fit(trials, name, progress=False)
                grid = np.stack([GRID, GRID], 1) if name == "both" else GRID
                table = result.swap_function(grid)
                truth = TRUTHS[name](GRID, GRID)
                if name == "none":
                    error, inside = np.nan, np.nan
                else:
                    error = np.abs(table["f"] - truth).mean()
                    inside = ((table["low"] <= truth) & (truth <= table["high"])).mean()
                rows.append([error, inside, result.emission["kappa"][0], result.weights["guess"][0], result.seconds])
            mean = np.mean(rows, 0)
            shown = ("–", "–") if name == "none" else (f"{mean[0]:.2f}", f"{100 * mean[1]:.0f} %")
            print(
                f"| {name} | {count:,} | {shown[0]} | {shown[1]} | {mean[2]:.1f} | {mean[3]:.3f} | {mean[4]:.1f} |",
                flush=True,
            )


def speed(options):
    """A whole fit, model auto with all swap models and scatters: set sizes 1 to 8, 19 subjects, places on a ring of
    eight unless they are anywhere."""
    print("| trials | by | models compared | wall s | processor s |\n|---|---|---|---|---|")
    for count in options.counts:
        trials = design(count, list(range(1, 9)), 0)
        probe = trials.probe
        if not options.anywhere:
            rng = np.random.default_rng(1)
            places = np.stack([rng.permutation(8) for _ in range(count)]) * np.pi / 4
            probe = np.where(np.isfinite(probe), places, np.nan)
        subject = np.array([f"s{number % 19 + 1}" for number in range(count)])
        trials = answered(Trials(trials.response, trials.report, probe, subject=subject), TRUTHS["probe"])
        wall, cpu = time.perf_counter(), time.process_time()
        result = fit(trials, options.model, by=options.by, progress=False)
        compared = 1 if result.candidates is None else len(result.candidates)
        print(
            f"| {count:,} | {options.by or 'all together'} | {compared} | {time.perf_counter() - wall:.0f} |"
            f" {time.process_time() - cpu:.0f} |",
            flush=True,
        )


def experiment(rng, subjects, count, sizes=(2, 4), guess=0.05, kappa=15.0):
    """Trials of subjects in two conditions whose effect on swaps differs between set sizes, and the true mean rate of
    non-target reports of subjects in every cell."""
    level, effect, spread = rng.normal(-2.0, 0.5), rng.normal(0.5, 0.7), 0.4
    own = spread * rng.standard_normal(subjects)
    parts, truth = [], {}
    for size in sizes:
        offset = rng.normal(0, 0.5)
        for condition in "ab":
            cell = level + offset + effect * (condition == "b") + rng.normal(0, 0.5)
            f = cell + own + spread / 2 * rng.standard_normal(subjects)
            odds = (size - 1) * np.exp(f)
            truth[size, condition] = ((1 - guess) * odds / (1 + odds)).mean()
            for subject in range(subjects):
                report = np.full((count, max(sizes)), np.nan)
                report[:, :size] = rng.uniform(-np.pi, np.pi, (count, size))
                swapped = rng.random(count) < odds[subject] / (1 + odds[subject])
                item = np.where(swapped, rng.integers(1, size, count), 0)
                response = report[np.arange(count), item] + rng.vonmises(0, kappa, count)
                response = np.where(rng.random(count) < guess, rng.uniform(-np.pi, np.pi, count), response)
                parts.append((response, report, [f"s{subject}"] * count, [condition] * count))
    response, report, subject, conditions = (np.concatenate([part[i] for part in parts]) for i in range(4))
    return Trials(wrap(response), report, subject=subject, conditions={"condition": conditions}), truth


def cells(options):
    inside = []
    for number in range(options.fits):
        rng = np.random.default_rng([options.seed, number])
        trials, truth = experiment(rng, options.subjects, options.trials)
        found = fit(trials, "constant", by="condition", sets="offsets", bias=False, seed=number, progress=False)
        table = found.mean_rates.set_index(["set_size", "condition"])
        inside.append([table.loc[c, "swap_low"] <= rate <= table.loc[c, "swap_high"] for c, rate in truth.items()])
        if (number + 1) % 10 == 0:
            by_fit = np.mean(inside, 1)
            se = by_fit.std(ddof=1) / np.sqrt(len(by_fit))
            each = ", ".join(f"{100 * rate:.0f}" for rate in np.mean(inside, 0))
            print(
                f"{number + 1} fits, {options.subjects} subjects, {options.trials} trials in each cell: 95 % bands hold"
                f" the truth in {100 * by_fit.mean():.1f} ± {100 * se:.1f} % of cells ({each} % of each)",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("sbc")
    for name, value in (("fits", 200), ("trials", 400), ("subjects", 0), ("seed", 0), ("piece", 20)):
        command.add_argument(f"--{name}", type=int, default=value)
    command.add_argument("--items", nargs="+", type=int, default=[2])
    command.add_argument("--model", default="probe")
    command.set_defaults(run=sbc)
    command = commands.add_parser("recovery")
    command.add_argument("--repeats", type=int, default=5)
    command.add_argument("--models", nargs="+", default=list(TRUTHS))
    command.add_argument("--counts", nargs="+", type=int, default=[500, 2000, 10_000])
    command.set_defaults(run=recovery)
    command = commands.add_parser("speed")
    command.add_argument("--counts", nargs="+", type=int, default=[1000, 10_000, 100_000])
    command.add_argument("--by", choices=["hierarchical", "subject"])
    command.add_argument("--model", default="auto")
    command.add_argument("--anywhere", action="store_true", help="probe features anywhere on the circle")
    command.set_defaults(run=speed)
    command = commands.add_parser("cells")
    for name, value in (("fits", 100), ("subjects", 5), ("trials", 50), ("seed", 0)):
        command.add_argument(f"--{name}", type=int, default=value)
    command.set_defaults(run=cells)
    arguments = parser.parse_args()
    arguments.run(arguments)
