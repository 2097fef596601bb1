"""A recording given as plain NumPy arrays and a table, through every analysis.

Your own data take the place of `load_recording`: spike rates or calcium signals as activity[trial, time, unit], one row
a trial in the table (which item was cued, both items' colours in radians, the response) and, for each time bin, its
time from cue offset and its epoch. Here the recording is made up: a population whose swap errors are misselections, so
the answers are known.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from lapsus.mechanism import analyse, plane_alignment, single_trials
from lapsus.mechanism.activity import activity_dataset, memory, two_items
from lapsus.mechanism.rings import fit_ring
from lapsus.mechanism.synthetic import synthetic_population
from lapsus.statistics.intervals import rate_interval


def load_recording() -> tuple[np.ndarray, pd.DataFrame, np.ndarray, np.ndarray]:
    """activity [trial, time, unit], the trial table, time and epoch of each bin."""
    made = synthetic_population("misselection", trials=1500, swap_probability=0.15, before=1.3, after=0.2, seed=1)
    table = made[["cued", "report_1", "report_2", "response"]].to_dataframe().reset_index(drop=True)
    return made["activity"].to_numpy(), table, made["time"].to_numpy(), made["epoch"].to_numpy()


def main(output: Path) -> None:
    activity, table, time, epoch = load_recording()
    data = activity_dataset(activity, table, time=time, epoch=epoch)
    rate, low, high = rate_interval(two_items(data).swap)
    print(f"{data.sizes['trial']} trials, {data.sizes['unit']} units; swap rate {rate:.3f} [{low:.3f}, {high:.3f}]")

    shown = data.isel(time=np.flatnonzero(data["epoch"].to_numpy() != "prestimulus"))
    for name, options in (("as published", {}), ("distractor's colour removed", {"adjust": True})):
        before, after = plane_alignment.pre_and_post_cue(plane_alignment.plane_alignment(shown, **options))
        print(f"Plane alignment, {name}: {before[0]:.2f} before the cue, {after[0]:.2f} after")
    before, after = plane_alignment.pre_and_post_cue(plane_alignment.panichello_alignment(shown))
    print(f"Plane alignment, four colour bins: {before[0]:.2f} before the cue, {after[0]:.2f} after")
    late = shown.isel(time=[-1])
    null = plane_alignment.shuffle_null(late, repeats=99).to_numpy()
    observed = plane_alignment.plane_alignment(late).to_numpy()
    print(
        f"At the response: {observed.item():.2f}; shuffled colours {null.mean():.2f}, p ="
        f" {(1 + (null >= observed).sum()) / 100:.2f}"
    )
    resampled = plane_alignment.bootstrap_alignment(late, repeats=99).to_numpy()
    print(f"  95 % interval {np.quantile(resampled, 0.025):.2f} to {np.quantile(resampled, 0.975):.2f}")
    fit = plane_alignment.sigmoid_against_flat(
        shown["time"].to_numpy(), plane_alignment.plane_alignment(shown).to_numpy()
    )
    print(
        f"Sigmoid against flat: rise {fit.y_scale:.2f} at t = {fit.x_offset:.1f}, MSE {fit.flat_mse:.4f} flat,"
        f" {fit.sigmoid_mse:.4f} sigmoid"
    )

    found = analyse(data)
    print("\nWhat a recording can answer:", *found.sentences(), sep="\n  ")

    # A ring: in place of a fixed colour, trials whose first item is close to one; correct ones alone.
    items = two_items(data)
    near = (np.abs(items.report[:, 0]) < np.pi / 4) & (items.cued == 0) & ~items.swap
    ring = fit_ring(memory(data.isel(trial=near, time=[-1]))[:, 0], items.report[near, 1])
    print(f"\nRing: {near.sum()} trials, held-out share of the other colour's variance {ring.explained:.2f}")

    test = single_trials.alignment_predicts_swaps(single_trials.trial_alignment(data))
    print(
        f"Alignment before the cue and swaps: odds ratio {test.odds_ratio:.2f} [{test.low:.2f}, {test.high:.2f}], p ="
        f" {test.p:.3f}"
    )

    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    from lapsus.mechanism import planes
    from lapsus.mechanism.decoding import decoding_panel
    from lapsus.mechanism.error_type import weights_panel
    from lapsus.plots.style import style
    from lapsus.statistics.intervals import limits

    with style():
        fig, axes = plt.subplots(1, 3, figsize=(6.9, 2.1), layout="constrained")
        curve = planes.with_bootstrap(shown, repeats=200)
        low, high = limits(curve["resampled"])
        axes[0].fill_between(curve["time"], low, high, alpha=0.3, lw=0)
        axes[0].plot(curve["time"], curve["alignment"])
        axes[0].set(ylim=(0, 1.02), xlabel="time from cue offset (steps)", ylabel="plane alignment |cos|")
        decoding_panel(axes[1], found.decoding)
        weights_panel(axes[2], found.error_type)
        fig.savefig(output, dpi=200)
    print(f"\nFigure in {output}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "recording.png"))
