"""Faults tried and survived, by kind: `python studies/reliability/faults_figure.py` reads faults-by-kind.csv."""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import pandas as pd
from matplotlib import pyplot as plt

from lapsus.plots.style import BLUE, COLUMN_WIDTH, VERMILION, style

FOLDER = Path(__file__).resolve().parent


def main() -> None:
    table = pd.read_csv(FOLDER / "faults-by-kind.csv")
    with style():
        figure, ax = plt.subplots(figsize=(COLUMN_WIDTH, 2.6), layout="constrained")
        ax.barh(table["fault"], table["survived"], color=BLUE, label="survived")
        ax.barh(table["fault"], table["lost"], left=table["survived"], color=VERMILION, label="lost")
        ax.invert_yaxis()
        ax.set(xlabel=f"faults tried ({table['tried'].sum():,}; lost: {table['lost'].sum()})")
        ax.legend(loc="lower right")
        figure.savefig(FOLDER / "faults.png", dpi=200)


if __name__ == "__main__":
    main()
