"""What a memory costs: `python benchmarks/price_of_memory.py [BUDGET…] [-o FOLDER] [--figure FILE]`.

persistent-feature-smooth-2 is trained from the shipped base as its file says, but within other rate budgets. Printed
are the measures of `lapsus evaluate --delay …` for each budget and delay, and the root mean square rate that the
network came to; drawn are precision and swap curve against both. A run takes about four core-minutes; the folder keeps
it.
"""

import argparse
import sys
from pathlib import Path

import lapsus
from lapsus.study.memory import evaluate_delays, norm_ratio

NAME = "persistent-feature-smooth-2"
DELAYS = (5, 10, 20, 40, 80)
BUDGETS = (4.0, 7.5, 15.0, 30.0)


def measure(budget: float, folder: Path, threads: int | None) -> list[dict]:
    """One row a delay."""
    described = lapsus.read_experiment(NAME, [f"stage.*.rate_budget={budget}"])
    run = lapsus.Run.of(folder / f"budget-{budget:g}", described)
    if run.update < run.experiment.updates and lapsus.train(run, threads=threads).reason != "done":
        sys.exit("Stopped; the same command goes on.")
    rates = [line["rate"] for line in run.metrics()[-25:]]
    shared = {"budget": budget, "rate": sum(rates) / len(rates), "norm_ratio": norm_ratio(run.model())}
    return [shared | row for row in evaluate_delays(run.model(), DELAYS, 2048, 8, threads=threads)]


def draw(rows: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import colormaps, pyplot as plt

    from lapsus.plots.style import TEXT_WIDTH, letter, style

    budgets, delays = sorted({row["budget"] for row in rows}), sorted({row["delay"] for row in rows})
    panels = (("median_error", "median error (rad)"), ("swap_curve_mad", "swap curve off target"), ("away", "away"))
    with style():
        figure, axes = plt.subplots(1, 3, figsize=(TEXT_WIDTH, 2.1), layout="constrained")
        for ax, (key, label), name in zip(axes, panels, "ABC", strict=True):
            for shade, delay in zip(colormaps["viridis"]([k / len(delays) for k in range(len(delays))]), delays):
                line = [next(r[key] for r in rows if (r["budget"], r["delay"]) == (b, delay)) for b in budgets]
                ax.plot(budgets, line, marker=".", color=shade, label=f"{delay} steps")
            ax.set(xscale="log", xlabel="rate budget (rms)", ylabel=label, ylim=(0, None), xticks=budgets)
            ax.set_xticklabels([f"{budget:g}" for budget in budgets])
            ax.minorticks_off()
            letter(ax, name)
        axes[0].legend(title="delay", fontsize=5.5, title_fontsize=5.5)
        figure.savefig(path, dpi=200)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("budgets", nargs="*", type=float, metavar="BUDGET", default=list(BUDGETS))
    parser.add_argument("--threads", type=int)
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/price-of-memory"))
    parser.add_argument("--figure", type=Path, help="where to draw it, for instance docs/price-of-memory.png")
    args = parser.parse_args()
    print("| budget | rate | delay | median error | curve, mean | curve, max | away | excess | norm ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    rows = []
    for budget in args.budgets:
        for row in measure(budget, args.output, args.threads):
            rows.append(row)
            measures = ("median_error", "swap_curve_mad", "swap_curve_max", "away", "excess")
            numbers = [f"{row[key]:.3f}" for key in measures]
            cells = [f"{budget:g}", f"{row['rate']:.1f}", str(row["delay"]), *numbers, f"{row['norm_ratio']:.2f}"]
            print(f"| {' | '.join(cells)} |", flush=True)
    if args.figure:
        draw(rows, args.figure)


if __name__ == "__main__":
    try:
        main()
    except lapsus.LapsusError as error:
        sys.exit(str(error))
