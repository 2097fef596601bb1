"""Coverage of the 95 % bands of subjects' swap rates: `python studies/fit-calibration/coverage_figure.py`.

Reads rate-coverage.csv, which holds what `rates.py coverage` printed, and draws coverage.png.
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import pandas as pd
from matplotlib import pyplot as plt

from lapsus.plots.style import BLUE, COLUMN_WIDTH, ORANGE, style

FOLDER = Path(__file__).resolve().parent


def main() -> None:
    table = pd.read_csv(FOLDER / "rate-coverage.csv").set_index("set size")
    with style():
        figure, ax = plt.subplots(figsize=(COLUMN_WIDTH, 2.2), layout="constrained")
        for name, colour, shift in (("seed 0", BLUE, -0.1), ("seed 1", ORANGE, 0.1)):
            parts = table[name].str.extract(r"([\d.]+) ± ([\d.]+)").astype(float)
            ax.errorbar(
                [k + shift for k in range(len(table))], parts[0], parts[1], fmt="o", ms=3, color=colour, label=name
            )
        ax.axhspan(93, 97, color="0.9", lw=0, zorder=0, label="aim")
        ax.axhline(95, color="0.5", lw=0.6)
        ax.set_xticks(range(len(table)), [str(size) for size in table.index])
        ax.set(xlabel="set size", ylabel="bands that contain the truth (%)", ylim=(88, 100))
        ax.legend(ncols=3, loc="lower center")
        figure.savefig(FOLDER / "coverage.png", dpi=200)


if __name__ == "__main__":
    main()
