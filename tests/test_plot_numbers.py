"""What can be downloaded beside a figure is what was drawn."""

import csv
import io

import numpy as np
from matplotlib import pyplot as plt

from lapsus.plots.numbers import numbers_of


def rows(figure):
    found = list(csv.DictReader(io.StringIO(numbers_of(figure))))
    plt.close(figure)
    return found


def test_lines_bands_points_and_bars_come_out_as_they_went_in():
    figure, axes = plt.subplots(1, 2)
    x = np.linspace(0, 3, 7)
    axes[0].plot(x, x**2, label="square")
    axes[0].fill_between(x, x - 1, x + 1, label="band")
    axes[0].axhline(0.5)  # a line across the panel is no data
    axes[0].set(xlabel="time (steps)", ylabel="$share$")
    axes[1].bar([1, 2], [3, 4], label="counts")
    axes[1].scatter([0.1], [0.2])
    found = rows(figure)
    square = [row for row in found if row["series"] == "square"]
    assert [float(row["x_value"]) for row in square] == x.tolist()
    assert np.allclose([float(row["value"]) for row in square], x**2)
    band = [row for row in found if row["series"] == "band"]
    assert np.allclose([[float(row["low"]), float(row["high"])] for row in band], np.stack([x - 1, x + 1], 1))
    assert {row["panel"] for row in square} == {"a"} and square[0]["x"] == "time (steps)" and square[0]["y"] == "share"
    bars = [(float(row["x_value"]), float(row["value"])) for row in found if row["series"] == "counts"]
    assert bars == [(1.0, 3.0), (2.0, 4.0)]
    assert [row["value"] for row in found if row["series"] == "points 1"] == ["0.2"]
    assert not [row for row in found if row["value"] == "0.5"]


def test_what_is_not_a_number_is_empty():
    figure, ax = plt.subplots()
    ax.plot([0.0, 1.0], [np.nan, 2.0], label="a, b")
    found = rows(figure)
    assert [row["value"] for row in found] == ["", "2"] and found[0]["series"] == "a, b"


def test_dots_with_error_bars_are_one_series_with_their_ends():
    figure, (up, across) = plt.subplots(1, 2)
    up.errorbar([1, 2], [0.5, 0.7], [[0.1, 0.2], [0.3, 0.1]], fmt="o", capsize=3, label="network")
    across.errorbar([0.5], [4], xerr=[0.2], fmt="o", label="kept")
    found = [[row[name] for name in ("series", "x_value", "value", "low", "high")] for row in rows(figure)]
    assert found == [
        ["network", "1", "0.5", "0.4", "0.8"],
        ["network", "2", "0.7", "0.5", "0.8"],
        ["kept", "0.5", "4", "0.3", "0.7"],
    ]
