"""The picture of README: `python docs/making/picture.py` writes docs/result.svg from a network that ships."""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot as plt

from lapsus.evaluation import evaluate
from lapsus.mechanism import analyse
from lapsus.mechanism.commitment import commitment_panel
from lapsus.mechanism.example_trials import example_trials
from lapsus.plots.axes import cloud
from lapsus.plots.style import BLUE, PAGE_POINTS, VERMILION, legend_above, style
from lapsus.zoo import load

NETWORK = "feature-smooth-2"


def main(path: Path) -> None:
    """Responses of one condition, swaps by distance, and when a swap is decided."""
    model = load(NETWORK)
    curve = evaluate(model, 1024, 8)["swap_curve"]
    found = analyse(model, only=("commitment",))
    assert found.commitment is not None
    matplotlib.rcParams["svg.hashsalt"] = "lapsus"
    with style(PAGE_POINTS):
        figure, axes = plt.subplots(1, 3, figsize=(8, 2.9), layout="constrained", width_ratios=(1, 1.3, 1.3))
        cloud(axes[0], example_trials(model, found.probe_distance)["cloud_near"], limit=3.6)
        axes[0].spines[:].set_visible(False)
        axes[0].set_title("Responses to one display:\ncued colour ○, the other □")
        x = np.degrees([point["distance"] for point in curve])
        axes[1].fill_between(
            x, [p["low"] for p in curve], [p["high"] for p in curve], color=VERMILION, alpha=0.25, lw=0
        )
        axes[1].plot(x, [p["rate"] for p in curve], color=VERMILION, marker="s", ms=4, label="network")
        axes[1].plot(x, [p["target"] for p in curve], color=BLUE, ls=":", lw=1.6, label="target")
        axes[1].set(xlabel="distance of the items (°)", ylabel="swap rate", ylim=(0, None), xlim=(0, 184))
        axes[1].set_title("Close items are\nswapped more often", pad=28)
        legend_above(axes[1])
        commitment_panel(axes[2], found.commitment)
        axes[2].set_title("When it is decided whether\na trial will be a swap", pad=14, color="black")
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path(__file__).resolve().parents[1] / "result.svg")
