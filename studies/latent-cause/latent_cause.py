"""When swaps are decided in two networks: `python studies/latent-cause/latent_cause.py` writes latent-cause.png."""

from pathlib import Path

import matplotlib

matplotlib.use("agg")

from matplotlib import pyplot as plt

from lapsus.mechanism import analyse
from lapsus.mechanism.commitment import commitment_panel
from lapsus.plots.style import TEXT_WIDTH, style
from lapsus.zoo import load

PANELS = {
    "index-swap-10": "no cause before the cue (index-swap-10)",
    "index-attended": "a latent cause before the cue (index-attended)",
}


def main(path: Path) -> None:
    """When the outcome is fixed in a network whose target has no cause of swaps before the cue, and in one that has."""
    with style():
        figure, axes = plt.subplots(1, 2, figsize=(TEXT_WIDTH, 2.4), layout="constrained", sharey=True)
        for ax, (name, title) in zip(axes, PANELS.items(), strict=True):
            found = analyse(load(name), only=("commitment",)).commitment
            assert found is not None
            commitment_panel(ax, found)
            ax.set_title(title, fontsize=7, pad=9)
            value, low, high = found.before_cue
            print(f"{name}: {100 * value:.1f} % [{100 * low:.1f}, {100 * high:.1f}] fixed at cue onset")
            print(f"  half at {found.half_time:.1f} [{found.half_low:.1f}, {found.half_high:.1f}]")
        axes[1].set_ylabel("")
        figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main(Path(__file__).resolve().parent / "latent-cause.png")
