"""The numbers that a figure shows, as a tidy table: what is drawn is what can be downloaded."""

import csv
import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, PathCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure

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
    crossed = [one for one in ax.containers if isinstance(one, ErrorbarContainer) and one.lines[0] is not None]
    # Dots with their error bars are one series; caps and dots are no lines of their own.
    parts = {line for one in crossed for line in (one.lines[0], *one.lines[1])}
    for number, one in enumerate(crossed, 1):
        rows += [(_name(one.get_label(), f"dots {number}"), *row) for row in _crossed(one)]
    for number, line in enumerate((line for line in ax.lines if line not in parts), 1):
        x, y = (np.asarray(values, float).ravel() for values in line.get_data())
        if line.get_transform() == ax.transData and len(x) == len(y):
            name = _name(line.get_label(), f"line {number}")
            rows += [(name, _text(a), _text(b), "", "") for a, b in zip(x[:_MOST], y[:_MOST])]
    for number, drawn in enumerate(ax.collections, 1):
        name = _name(drawn.get_label(), f"band {number}")
        if isinstance(drawn, FillBetweenPolyCollection):
            for path in drawn.get_paths():
                # Once round: the lower edge from left to right, then the upper one back.
                corners = path.vertices[~np.isnan(path.vertices).any(1)]
                for x in np.unique(corners[:, 0]):
                    at = corners[corners[:, 0] == x, 1]
                    rows.append((name, _text(x), "", _text(at.min()), _text(at.max())))
        elif isinstance(drawn, PathCollection):
            points = np.asarray(drawn.get_offsets(), float)[:_MOST]
            rows += [(_name(drawn.get_label(), f"points {number}"), _text(a), _text(b), "", "") for a, b in points]
    for number, bars in enumerate(ax.containers, 1):
        if isinstance(bars, BarContainer):
            name = _name(bars.get_label(), f"bars {number}")
            rows += [(name, _text(p.get_x() + p.get_width() / 2), _text(p.get_height()), "", "") for p in bars.patches]
    return rows


def _crossed(drawn: ErrorbarContainer) -> list[tuple]:
    """x, value, low and high of dots with error bars along y; along x, the ends are those of x."""
    dots, _, bars = drawn.lines
    x, y = (np.asarray(values, float).ravel() for values in dots.get_data())
    ends = [np.array(part.get_segments()) for part in bars]  # [dots, 2 ends, x and y] each
    across = 1 if drawn.has_yerr else 0
    low, high = (ends[0][:, k, across] if ends and len(ends[0]) == len(x) else np.full(len(x), np.nan) for k in (0, 1))
    return [tuple(map(_text, row)) for row in zip(x, y, low, high)]


def _name(label: object, otherwise: str) -> str:
    text = _plain(str(label))
    return otherwise if not text or text.startswith("_") else text


def _plain(text: str) -> str:
    return " ".join(text.replace("$", "").split())


def _text(value: float) -> str:
    return f"{value:.6g}" if np.isfinite(value) else ""
