"""What a memory costs: `python benchmarks/price_of_memory.py [BUDGET…] [-o FOLDER] [--figure FILE]`.

persistent-feature-smooth-2 is trained from the shipped base as its file says, but within other rate budgets, or, with
`--penalty` (`--annealed`), with a fixed penalty instead (one that grows through the stages) and no budget. Printed are
the measures of `lapsus evaluate --delay …` for each and the root mean square rate at each delay; drawn are precision,
swap curve and rates against budget and delay. The budget that ships is not trained again; another takes about six
core-minutes, and the folder keeps it.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import lapsus
from lapsus.study.memory import evaluate_delays, norm_ratio, rms_rate
from lapsus.training import Experiment, Model

NAME = "persistent-feature-smooth-2"
DELAYS = (5, 10, 20, 40, 80)
BUDGETS = (4.0, 7.5, 15.0, 30.0)
MEASURES = ("median_error", "swap_curve_mad", "swap_curve_max", "away", "excess")


def measure(label: str, model: Model, threads: int | None) -> list[dict]:
    """One row a delay."""
    shared = {"label": label, "norm_ratio": norm_ratio(model)}
    rows = evaluate_delays(model, DELAYS, 2048, 8, threads=threads)
    return [shared | row | {"rate": rms_rate(model.at(delay=row["delay"]))} for row in rows]


def trained(name: str, described: Experiment, folder: Path, threads: int | None) -> Model:
    run = lapsus.Run.of(folder / name, described)
    if run.update < run.experiment.updates and lapsus.train(run, threads=threads).reason != "done":
        sys.exit("Stopped; the same command goes on.")
    return run.model()


def with_penalties(penalties: list[float]) -> Experiment:
    """Without a budget: a fixed penalty in each of the two stages."""
    table = lapsus.read_experiment(NAME).model_dump(exclude_none=True)
    for stage, penalty in zip(table["stage"], penalties, strict=True):
        stage.pop("rate_budget")
        stage["objective"] |= {"rate_penalty": penalty}
    return Experiment.model_validate(table)


def draw(rows: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import colormaps, pyplot as plt

    from lapsus.plots.style import TEXT_WIDTH, letter, style

    rows = [row | {"budget": float(row["label"])} for row in rows]
    budgets, delays = sorted({row["budget"] for row in rows}), sorted({row["delay"] for row in rows})
    panels = (("median_error", "median error (°)"), ("swap_curve_mad", "swap curve off target"), ("away", "away"))
    shades = colormaps["viridis"](np.linspace(0, 0.85, len(delays)))
    with style():
        figure, axes = plt.subplots(1, 3, figsize=(TEXT_WIDTH, 2.3), layout="constrained")
        for ax, (key, label), name in zip(axes, panels, "ABC", strict=True):
            for shade, delay in zip(shades, delays):
                line = [next(r for r in rows if (r["budget"], r["delay"]) == (b, delay))[key] for b in budgets]
                line = np.degrees(line) if key == "median_error" else line
                ax.plot(budgets, line, marker=".", color=shade, label=f"{delay} steps")
            ax.set(xscale="log", xlabel="rate budget (root mean square)", ylabel=label, xticks=budgets)
            ax.set_xticklabels([f"{budget:g}" for budget in budgets])
            ax.minorticks_off()
            ax.set_ylim(0)
            letter(ax, name)
        axes[0].legend(title="delay")
        figure.savefig(path, dpi=200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("budgets", nargs="*", type=float, metavar="BUDGET", default=list(BUDGETS))
    parser.add_argument("--penalty", type=float, help="no budget, but this fixed penalty in both stages")
    parser.add_argument("--annealed", type=float, nargs=2, metavar="PENALTY", help="one in each of the two stages")
    parser.add_argument("--threads", type=int)
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/price-of-memory"))
    parser.add_argument("--figure", type=Path, help="where to draw it, for instance docs/price-of-memory.png")
    args = parser.parse_args()
    asked = {}
    if penalties := args.annealed or (args.penalty and 2 * [args.penalty]):
        asked["penalty " + " then ".join(f"{p:g}" for p in dict.fromkeys(penalties))] = with_penalties(penalties)
    else:
        shipped = lapsus.read_experiment(NAME).stage[-1].rate_budget
        for budget in args.budgets:
            same = budget == shipped
            asked[f"{budget:g}"] = None if same else lapsus.read_experiment(NAME, [f"stage.*.rate_budget={budget}"])
    print("| budget | delay | rate | median error (°) | curve, mean | curve, max | away | excess | norm ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    rows = []
    for label, described in asked.items():
        folder = f"budget-{label}" if described and not penalties else label.replace(" ", "-")
        model = lapsus.load(NAME) if described is None else trained(folder, described, args.output, args.threads)
        for row in measure(label, model, args.threads):
            rows.append(row)
            numbers = [f"{np.degrees(row['median_error']):.1f}", *(f"{row[key]:.3f}" for key in MEASURES[1:])]
            cells = [label, str(row["delay"]), f"{row['rate']:.1f}", *numbers, f"{row['norm_ratio']:.2f}"]
            print(f"| {' | '.join(cells)} |", flush=True)
    if args.figure:
        draw(rows, args.figure)


if __name__ == "__main__":
    try:
        main()
    except lapsus.LapsusError as error:
        sys.exit(str(error))
