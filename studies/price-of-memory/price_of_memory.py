"""What a memory costs: `python studies/price-of-memory/price_of_memory.py [BUDGET…] [-o FOLDER] [--figure FILE]`.

persistent-feature-smooth-2 is trained from the shipped base as its file says, but within other rate budgets and, with
`--penalty`, with a fixed penalty instead of a budget, or with one that grows from the first stage to the second
(`--penalty 1e-8,3e-7`). Printed are the measures of `lapsus evaluate --delay …` for each, the root mean square rate at
each delay, and what the price of rates came to; drawn are precision and swap curve against rates and delay. The budget
that ships is not trained again; another takes about six core-minutes, and the folder keeps it.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

import lapsus
from lapsus.evaluation.delays import evaluate_delays, free_rates, norm_ratio
from lapsus.files import make_folder, write_json
from lapsus.training import Experiment, Model

NAME = "persistent-feature-smooth-2"
DELAYS = (5, 10, 20, 40, 80)
BUDGETS = (4.0, 7.5, 15.0, 30.0)
MEASURES = ("median_error", "swap_curve_mad", "swap_curve_max", "away", "excess")


def _rms_rate(model: Model) -> float:
    """Root mean square of the rates over units, steps and trials, as the rate budget counts it."""
    return float(free_rates(model).square().mean().sqrt())


def measure(label: str, model: Model, kept: Path, threads: int | None) -> list[dict]:
    """One row a delay, measured once and kept."""
    if not kept.is_file():
        shared = {"label": label, "norm_ratio": norm_ratio(model)}
        rows = evaluate_delays(model, DELAYS, 2048, 8, threads=threads)
        make_folder(kept.parent)
        write_json(kept, [shared | row | {"rate": _rms_rate(model.at(delay=row["delay"]))} for row in rows])
    return json.loads(kept.read_text())


def price(rows: list[dict]) -> np.ndarray:
    """Floor and cost (degrees) of networks at one delay, as in error² = floor² + (cost / rate)²: what noise that does
    not grow with the rates would do to what they carry. Least squares, relative to the squares."""
    rate, error = (np.array([row[key] for row in rows]) for key in ("rate", "median_error"))
    square = np.degrees(error) ** 2
    design = np.stack([np.ones_like(rate), rate**-2], 1) / square[:, None]
    return np.sqrt(nnls(design, np.ones_like(rate))[0])


def trained(name: str, described: Experiment, folder: Path, threads: int | None) -> lapsus.Run:
    run = lapsus.Run.of(folder / name, described)
    if run.update < run.experiment.updates and lapsus.train(run, threads=threads).reason != "done":
        sys.exit("Stopped; the same command resumes.")
    return run


def with_penalties(penalties: list[float]) -> Experiment:
    """Without a budget: a penalty in each of the two stages, the same if only one is given."""
    table = lapsus.read_experiment(NAME).model_dump(exclude_none=True)
    for stage, penalty in zip(table["stage"], 2 * penalties):
        stage.pop("rate_budget")
        stage["objective"] |= {"rate_penalty": penalty}
    return Experiment.model_validate(table)


def draw(rows: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import colormaps, pyplot as plt

    from lapsus.plots.style import TEXT_WIDTH, letter, style

    labels = list(dict.fromkeys(row["label"] for row in rows))
    budgets = sorted((label for label in labels if not label.startswith("penalty")), key=float)
    penalties = [label for label in labels if label.startswith("penalty")]
    of = {label: [row for row in rows if row["label"] == label] for label in labels}
    measures = (("median_error", "median error (°)", 180 / np.pi), ("swap_curve_mad", "swap curve off target", 1))
    delays = [row["delay"] for row in of[budgets[0]]]
    by_delay = colormaps["viridis"](np.linspace(0, 0.85, len(delays)))
    by_budget = colormaps["plasma"](np.linspace(0, 0.8, len(budgets)))
    with style():
        figure, axes = plt.subplots(2, 2, figsize=(TEXT_WIDTH, 4.2), layout="constrained", sharey="row")
        for (left, right), (key, label, unit) in zip(axes, measures):
            for k, (shade, delay) in enumerate(zip(by_delay, delays)):
                here = [of[budget][k] for budget in budgets]
                rates, line = [row["rate"] for row in here], ".-" if key == "swap_curve_mad" else "."
                left.plot(rates, [unit * row[key] for row in here], line, color=shade, label=f"{delay}")
                if key == "median_error":
                    (floor, cost), grid = price(here), np.geomspace(min(rates), max(rates))
                    left.plot(grid, np.hypot(floor, cost / grid), color=shade, lw=0.8)
                for marker, penalty in zip("sD^v", penalties):
                    left.plot(of[penalty][k]["rate"], unit * of[penalty][k][key], marker, color=shade, mfc="w", ms=4)
            left.set(xscale="log", xlabel="root mean square rate", ylabel=label, ylim=(0, None))
            left.set_xticks([float(budget) for budget in budgets], budgets)
            left.minorticks_off()
            for shade, budget in zip(by_budget, budgets):
                right.plot(delays, [unit * row[key] for row in of[budget]], ".-", color=shade, label=budget)
            right.set(xlabel="delay (steps)", xticks=delays)
            right.axvspan(3, 40, color="0.93", lw=0, zorder=0)
        marks = [plt.Line2D([], [], ls="", marker=m, color="k", mfc="w", ms=4) for m, _ in zip("sD^v", penalties)]
        axes[0, 0].legend(title="delay (steps)", ncols=2)
        if penalties:
            axes[1, 0].legend(marks, penalties)
        axes[1, 1].legend(title="rate budget", loc="upper left")
        for ax, name in zip(axes.ravel(), "ABCD"):
            letter(ax, name)
        figure.savefig(path, dpi=200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("budgets", nargs="*", type=float, metavar="BUDGET", default=list(BUDGETS))
    parser.add_argument(
        "--penalty", action="append", default=[], metavar="P[,P]", help="no budget, but this; repeatable"
    )
    parser.add_argument("--threads", type=int)
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/price-of-memory"))
    parser.add_argument("--figure", type=Path, help="where to draw it")
    args = parser.parse_args()
    shipped = lapsus.read_experiment(NAME).stage[-1].rate_budget
    asked = {
        f"{budget:g}": None if budget == shipped else lapsus.read_experiment(NAME, [f"stage.*.rate_budget={budget}"])
        for budget in args.budgets
    }
    for text in args.penalty:
        penalties = [float(part) for part in text.split(",")]
        asked["penalty " + " then ".join(f"{p:g}" for p in penalties)] = with_penalties(penalties)
    print("| budget | delay | rate | median error (°) | curve, mean | curve, max | away | excess | norm ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    rows, prices = [], {}
    for label, described in asked.items():
        folder = label.replace(" ", "-") if label.startswith("penalty") else f"budget-{label}"
        if described is None:
            model = lapsus.load(NAME)
        else:
            run = trained(folder, described, args.output, args.threads)
            model = run.model()
            prices[label] = {line["stage"]: line["rate_price"] for line in run.metrics() if "rate_price" in line}
        for row in measure(label, model, args.output / f"{folder}.json", args.threads):
            rows.append(row)
            numbers = [f"{np.degrees(row['median_error']):.1f}", *(f"{row[key]:.3f}" for key in MEASURES[1:])]
            cells = [label, str(row["delay"]), f"{row['rate']:.1f}", *numbers, f"{row['norm_ratio']:.2f}"]
            print(f"| {' | '.join(cells)} |", flush=True)
    print("\nThe price of rates at the end of each stage:")
    for label, found in prices.items():
        if found:
            print(f"budget {label}: " + ", ".join(f"{price:.3g}" for price in found.values()))
    print("\nOver budgets, error² = floor² + (cost / rate)² (°):")
    for delay in DELAYS:
        here = [row for row in rows if row["delay"] == delay and not row["label"].startswith("penalty")]
        floor, cost = price(here)
        off = max(abs(np.hypot(floor, cost / row["rate"]) - np.degrees(row["median_error"])) for row in here)
        print(f"{delay} steps: floor {floor:.1f}, cost {cost:.0f}; networks are at most {off:.1f} off")
    if args.figure:
        draw(rows, args.figure)


if __name__ == "__main__":
    try:
        main()
    except lapsus.LapsusError as error:
        sys.exit(str(error))
