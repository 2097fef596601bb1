"""A page about many networks: every statistic over its members, as dots, with the mean over networks and its interval.

Drawn as SVG in the page itself, so that a dot can say which network it is and lead to its report.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from lapsus import __version__
from lapsus.files import short
from lapsus.mechanism.registry import QUESTIONS
from lapsus.report.page import MARK, render

# Shown first and open, under these names, with those that questions name; all others are folded by measure.
_HEADLINES = {
    "evaluation.excess": "Excess over the Bayes denoiser",
    "evaluation.swap_curve_mad": "Swap curve, mean deviation from its target",
    "evaluation.swap_curve_max": "Swap curve, largest deviation from its target",
    "evaluation.median_error": "Median error (°)",
    "evaluation.away": "Share of responses far from every item",
}
# Angles are kept in radians and shown in degrees.
_DEGREES = {"evaluation.median_error": 180 / np.pi}
# Of a setting with more members, so many dots and every outlier: more would only cover each other.
_DOTS = 200
# Settings in the table of differences; the file has all.
_COMPARED = 12
_LEFT, _RIGHT, _ROW, _TOP = 250, 690, 26, 8


def _headlines() -> dict[str, str]:
    """Column of a sweep's table → its name on the page."""
    asked = {
        f"{'questions' if question.default else 'mechanism'}.{name}.{key}": text
        for name, question in QUESTIONS.items()
        for key, text in question.statistics.items()
    }
    return _HEADLINES | asked


def ensemble_page(
    title: str,
    description: str,
    members: pd.DataFrame,
    statistics: pd.DataFrame,
    links: dict[str, str],
    given_up: dict[str, str] | None = None,
    differences: pd.DataFrame | None = None,
) -> str:
    """The page. members has a row a member (member, setting, start, done, statistics …), statistics a row a setting and
    statistic (setting, statistic, mean, low, high, between, units, outliers), links where each member's report is,
    given_up why those failed that are not tried again, differences a row a setting and statistic (setting, from,
    statistic, mean, low, high, seeds). Members that are there for others to start from do another task,
    and are counted only."""
    asked, starts = members[~members["start"]], members[members["start"]]
    done = asked[asked["done"]]
    statistics = statistics[~statistics["setting"].isin(starts["setting"])]
    pictures = [_picture(done, rows, str(name), links) for name, rows in statistics.groupby("statistic", sort=False)]
    headlines = [picture for picture in pictures if picture["key"] in _headlines()]
    folded: dict[str, list] = {}
    for picture in pictures:
        if picture not in headlines:
            folded.setdefault(picture["key"].split(".")[0], []).append(picture)
    apart: dict[str, list[str]] = {}
    for row in statistics.to_dict("records"):
        for name in str(row["outliers"]).split():
            apart.setdefault(name, []).append(row["statistic"])
    context = {
        "title": title,
        "description": description,
        "mark": f"{MARK} {__version__}",
        "counts": f"{len(done)} of {len(asked)} networks are done, in {asked['setting'].nunique()} settings."
        + (f" {starts['done'].sum()} of {len(starts)} that they start from are done." if len(starts) else ""),
        "given_up": given_up or {},
        "headlines": headlines,
        "folded": folded,
        "outliers": [
            {
                "name": name,
                "link": links[name],
                "statistics": ", ".join(_headlines().get(statistic, statistic) for statistic in statistics_of[:8]),
                "more": max(0, len(statistics_of) - 8),
            }
            for name, statistics_of in sorted(apart.items(), key=lambda item: -len(item[1]))
        ],
        "differences": _differences(differences),
    }
    return render(context, "ensemble.html")


def _differences(differences: pd.DataFrame | None) -> dict[str, Any] | None:
    """Headlines, a row a setting each; None where there is but one setting."""
    if differences is None or differences.empty:
        return None
    settings = list(dict.fromkeys(differences["setting"]))
    compared = {}
    for name, group in differences[differences["setting"].isin(settings[:_COMPARED])].groupby("statistic", sort=False):
        if name in _headlines():
            scale = _DEGREES.get(name, 1.0)
            compared[_headlines()[name]] = [
                {key: row[key] for key in ("setting", "from", "seeds")} | {"apart": _apart(row, scale)}
                for row in group.to_dict("records")
            ]
    return {"compared": compared, "more": max(0, len(settings) - _COMPARED)}


def _apart(row: dict, scale: float) -> str:
    mean, low, high = (scale * row[name] for name in ("mean", "low", "high"))
    return f"{mean:+.3g}" + (f" [{low:.3g}, {high:.3g}]" if np.isfinite(low) else "")


def _text(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{value:.4g}"


def _picture(done: pd.DataFrame, rows: pd.DataFrame, name: str, links: dict[str, str]) -> dict[str, Any]:
    """One statistic: a row per setting, a dot per member, a bar for the mean's interval."""
    scale = _DEGREES.get(name, 1.0)
    low, high = _span(scale * done[name].to_numpy(), scale * rows[["low", "high"]].to_numpy())

    def place(value: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * float(np.clip((value - low) / (high - low), -0.02, 1.02)), 1)

    drawn = []
    by_setting: dict[Any, pd.DataFrame] = dict(iter(done.groupby("setting", sort=False)))
    for number, row in enumerate(rows.to_dict("records")):
        mean, lowest, highest, between = (scale * row[key] for key in ("mean", "low", "high", "between"))
        group, apart = by_setting[row["setting"]], set(str(row["outliers"]).split())
        dots = [
            {"name": member, "link": links[member], "x": place(value), "value": _text(value), "out": member in apart}
            for member, value in _thinned(group["member"], scale * group[name], apart)
        ]
        interval = f"{_text(mean)} [{_text(lowest)}, {_text(highest)}]"
        drawn.append(
            {
                "setting": row["setting"],
                "short": short(row["setting"], 36),
                "y": _TOP + _ROW * (number + 0.5),
                "dots": dots,
                "mean": place(mean),
                "bar": (place(lowest), place(highest)) if np.isfinite(lowest) else None,
                "text": f"{interval}, s.d. between networks {_text(between)}, {row['units']} networks",
            }
        )
    round_values = [value for value in MaxNLocator(4).tick_values(low, high) if low <= value <= high]
    return {
        "key": name,
        "name": _headlines().get(name, name),
        "rows": drawn,
        "height": _TOP + _ROW * len(drawn) + 24,
        "ticks": [{"x": place(value), "text": _text(value)} for value in round_values],
    }


def _span(values: np.ndarray, intervals: np.ndarray) -> tuple[float, float]:
    """Ends of the axis: intervals and dots. Of two members an interval may be a hundred times as wide as all dots, so
    dots decide, within reason."""
    values, intervals = values[np.isfinite(values)], intervals[np.isfinite(intervals)]
    ends = np.concatenate([values, intervals])
    low, high, spread = ends.min(), ends.max(), np.ptp(values)
    if spread:
        low, high = max(low, values.min() - 2 * spread), min(high, values.max() + 2 * spread)
    if low == high:
        low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
    return low, high


def _thinned(names: pd.Series, values: pd.Series, apart: set[str]) -> Iterator[tuple[str, float]]:
    """Members and their values, by rank at most so many of them and every outlier."""
    known = values.notna()
    pairs = sorted(zip(values[known], names[known]))
    step = max(1, -(-len(pairs) // _DOTS))
    for rank, (value, name) in enumerate(pairs):
        if rank % step == 0 or name in apart:
            yield name, value
