"""The numbers that a figure shows, as a tidy table: what is drawn is what can be downloaded."""

import csv
import io
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, PathCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

HEAD = ("panel", "x", "y", "series", "x_value", "value", "low", "high")
# Of a cloud of points, so many; the page is no store of raw data.
_MOST = 2000


def numbers_of(figure: Figure) -> str:
    """CSV of every line, band, bar and point of the figure: panel (a, b, …), names of its axes, name of the series, x
    and value, or x with low and high."""
    rows: list[tuple] = []
    flat = [ax for ax in figure.axes if ax.name != "3d"]  # on paper, points in space have no coordinates
    for letter, ax in zip("abcdefghijklmnopqrstuvwxyz", flat):
        names = (letter, _plain(ax.get_xlabel()), _plain(ax.get_ylabel()))
        rows += [(*names, *row) for row in _of(ax)]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows(rows)
    return buffer.getvalue()


def _of(ax: Axes) -> list[tuple]:
    rows: list[tuple] = []
    crossed = [
        container
        for container in ax.containers
        if isinstance(container, ErrorbarContainer) and container.lines[0] is not None
    ]
    for number, drawn in enumerate(crossed, 1):
        rows += _series(drawn, f"dots {number}", *_crossed(drawn))
    # Dots with their error bars are one series; caps and dots are no lines of their own.
    parts = {line for container in crossed for line in (container.lines[0], *container.lines[1])}
    for number, line in enumerate((line for line in ax.lines if line not in parts), 1):
        x, y = (np.asarray(values, float).ravel() for values in line.get_data())
        if line.get_transform() == ax.transData and len(x) == len(y):
            rows += _series(line, f"line {number}", x, y)
    for number, drawn in enumerate(ax.collections, 1):
        if isinstance(drawn, FillBetweenPolyCollection):
            for path in drawn.get_paths():
                # Once round: the lower edge from left to right, then the upper one back.
                corners = path.vertices[~np.isnan(path.vertices).any(1)]
                x = np.unique(corners[:, 0])
                at = [corners[corners[:, 0] == position, 1] for position in x]
                rows += _series(drawn, f"band {number}", x, np.nan, list(map(np.min, at)), list(map(np.max, at)))
        elif isinstance(drawn, PathCollection):
            rows += _series(drawn, f"points {number}", *np.asarray(drawn.get_offsets(), float).T)
    for number, bars in enumerate(ax.containers, 1):
        if isinstance(bars, BarContainer):
            middles = [patch.get_x() + patch.get_width() / 2 for patch in bars.patches]
            rows += _series(bars, f"bars {number}", middles, [patch.get_height() for patch in bars.patches])
    return rows


def _series(
    drawn: Any, otherwise: str, x: ArrayLike, value: ArrayLike, low: ArrayLike = np.nan, high: ArrayLike = np.nan
) -> list[tuple]:
    """One row per point, under the label of what was drawn, or the other name where it has none."""
    label = _plain(str(drawn.get_label()))
    name = otherwise if not label or label.startswith("_") else label
    numbers = np.stack(np.broadcast_arrays(x, value, low, high), -1)[:_MOST]
    return [(name, *(f"{number:.6g}" if np.isfinite(number) else "" for number in row)) for row in numbers]


def _crossed(drawn: ErrorbarContainer) -> list[np.ndarray]:
    """x, value, low and high of dots with error bars along y; along x, the ends are those of x."""
    dots, _, bars = drawn.lines
    x, y = (np.asarray(values, float).ravel() for values in dots.get_data())
    ends = np.array(bars[0].get_segments()) if bars else np.empty(0)  # [dots, 2 ends, x and y]
    if len(ends) != len(x):
        return [x, y]
    return [x, y, *ends[:, :, 1 if drawn.has_yerr else 0].T]


def _plain(text: str) -> str:
    return " ".join(text.replace("$", "").split())
