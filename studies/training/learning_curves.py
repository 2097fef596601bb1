"""The learning curves and the cost of every network of the paper's collection, from the records that ship with them.

python studies/training/learning_curves.py     # writes networks.csv and learning-curves.png
"""

from pathlib import Path

import numpy as np
import pandas as pd

from lapsus.plots.style import BLUE, GREEN, GREY, ORANGE, SKY, TEXT_WIDTH, style
from lapsus.zoo.shipped import core_minutes, shipped

# Batches of 16,384 trials, and hours on one NVIDIA RTX A5000 (paper, appendix "Compute resources").
PAPER = {
    ("feature", "preamble"): (500_000, 16),
    ("feature", "optimal"): (2_000, 0.23),
    ("feature", "diffusion"): (300_000, 36),
    ("index", "optimal"): (35_000, 3.2),
    ("index", "diffusion"): (300_000, 28),
}
SHOWN = {
    "feature-no-swap": GREEN,
    "feature-constant-5": SKY,
    "feature-constant-30": BLUE,
    "feature-smooth-2": ORANGE,
    "feature-smooth-0": "#CC79A7",
    "index-swap-10": "k",
    "point-constant-30": GREY,
    "two-layer-constant-30": "0.75",
}


def in_paper(config: dict) -> tuple[int, float] | None:
    task, name = config["task"]["kind"].split("-")[0], config["name"]
    if config.get("network", {}).get("kind", "dendritic") != "dendritic" or task not in ("feature", "index"):
        return None
    kind = "preamble" if "preamble" in name else config["stage"][-1]["objective"]["kind"]
    return PAPER.get((task, {"task-optimal": "optimal", "sample-mse": "diffusion"}.get(kind, kind)))


def trials_at(config: dict, update: np.ndarray) -> np.ndarray:
    """Trials seen at each update."""
    batch = np.concatenate(
        [np.full(stage["updates"], stage["conditions"] * stage["trials"]) for stage in config["stage"]]
    )
    return np.concatenate([[0], np.cumsum(batch)])[update]


def minutes_at(facts: dict, curve: list[dict]) -> np.ndarray:
    """Minutes of two idle cores: the clock, less what it waited for other jobs, scaled to the processor time of it
    all."""
    update, seconds, stage = (np.array([row[key] for row in curve], float) for key in ("update", "seconds", "stage"))
    pace = np.diff(seconds, prepend=0) / np.diff(update, prepend=0)
    for one in np.unique(stage):
        pace[stage == one] = np.minimum(pace[stage == one], 2 * np.median(pace[stage == one]))
    clock = np.cumsum(pace * np.diff(update, prepend=0))
    return clock / clock[-1] * core_minutes(facts) / 2


def table(networks: dict[str, dict]) -> pd.DataFrame:
    """Cost of training and how close each network comes to its target; the paper's cost beside it."""
    rows = []
    for name, facts in networks.items():
        config, found = facts["config"], facts["evaluation"]
        batches, hours = in_paper(config) or (float("nan"), float("nan"))
        diffusion = config["stage"][-1]["objective"]["kind"] == "diffusion"
        row = {
            "network": name,
            "million_trials": facts["trials_seen"] / 1e6,
            "paper_million_trials": batches * 0.016384,
        }
        row |= {"core_hours": core_minutes(facts) / 60, "paper_gpu_hours": hours}
        row |= {"excess": found.get("excess") if diffusion else None}
        row |= {key: found.get(key) for key in ("swap_curve_mad", "swap_curve_max", "median_error", "away")}
        rows.append(row)
    return pd.DataFrame(rows)


def draw(networks: dict[str, dict], path: Path) -> None:
    from matplotlib import pyplot as plt

    with style():
        fig, axes = plt.subplots(1, 2, figsize=(TEXT_WIDTH, 2.4), sharey=True, layout="constrained")
        for name, colour in SHOWN.items():
            if name not in networks:
                continue
            curve = [row for row in networks[name]["learning_curve"] if row.get("excess") is not None]
            excess = _smooth(np.array([row["excess"] for row in curve]))
            trials = trials_at(networks[name]["config"], np.array([row["update"] for row in curve]))
            minutes = minutes_at(networks[name], curve)
            for ax, x in zip(axes, (trials / 1e6, minutes), strict=True):
                ax.plot(x, excess, color=colour, label=name)
        for ax in axes:
            ax.axhline(0.08, color="0.6", lw=0.6, ls=(0, (3, 2)))
        axes[0].set(
            yscale="log",
            ylim=(0.03, 1),
            xlabel="trials seen (million; trees: since the preamble)",
            ylabel="excess over the Bayes denoiser",
        )
        axes[0].set_yticks([0.03, 0.1, 0.3, 1], ["0.03", "0.1", "0.3", "1"])
        axes[1].set(xlabel="minutes of two cores", xscale="log", xlim=(0.1, 15))
        axes[1].set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
        axes[1].minorticks_off()
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        fig.savefig(path, dpi=200)


def _smooth(values: np.ndarray, over: int = 5) -> np.ndarray:
    """Running median: single batches are noisy."""
    padded = np.pad(values, over // 2, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, over), axis=-1)


if __name__ == "__main__":
    networks, folder = shipped("paper"), Path(__file__).resolve().parent
    costs = table(networks)
    costs.to_csv(folder / "networks.csv", index=False, float_format="%.4g")
    draw(networks, folder / "learning-curves.png")
    print(f"{len(costs)} networks, {costs['core_hours'].sum():.1f} core-hours")
