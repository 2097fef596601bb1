"""The picture of README: `python docs/making/picture.py` writes docs/result.svg from a network that ships."""

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from lapsus.library import open_network
from lapsus.plots.axes import cloud, error_panel
from lapsus.plots.style import BLUE, VERMILION, style
from lapsus.study.findings import study_network
from lapsus.study.mechanism import Decoders

NETWORK = "feature-smooth-2"
COLUMNS = ("alternative", "time", "swap", "swap_sem", "correct", "correct_sem", "difference", "p")


def main(path: Path) -> None:
    """Responses of one condition, swaps by distance, and where swap trials part from correct ones."""
    found = study_network(open_network(NETWORK))
    curve, decoders = found.evaluation["swap_curve"], found.mechanism.decoders
    assert isinstance(decoders, Decoders)
    matplotlib.rcParams["svg.hashsalt"] = "lapsus"
    with style():
        figure, axes = plt.subplots(1, 3, figsize=(9, 2.9), layout="constrained", width_ratios=(1, 1.3, 1.3))
        cloud(axes[0], found.arrays["cloud_near"], limit=3.6)
        axes[0].spines[:].set_visible(False)
        axes[0].set_title("Responses to one display:\ncued colour ○, the other □")
        x = np.degrees([point["distance"] for point in curve])
        axes[1].fill_between(
            x, [p["low"] for p in curve], [p["high"] for p in curve], color=VERMILION, alpha=0.25, lw=0
        )
        axes[1].plot(x, [p["rate"] for p in curve], color=VERMILION, marker="s", ms=4, label="network")
        axes[1].plot(x, [p["target"] for p in curve], color=BLUE, ls=":", lw=1.6, label="wanted")
        axes[1].set(xlabel="distance of the items (°)", ylabel="swap rate", ylim=(0, None), xlim=(0, 184))
        axes[1].set_title("It swaps as often as it should")
        axes[1].legend()
        table = pd.DataFrame({name: found.arrays[f"decoders_{name}"] for name in COLUMNS})
        error_panel(axes[2], table, "misselection", decoders.onset)
        axes[2].set_title("Swap trials take the other item's\nside only after the cue")
        axes[2].legend(loc="upper left")
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)


if __name__ == "__main__":
    main(Path(__file__).resolve().parents[1] / "result.svg")
