"""Figures of the report as SVG, for light and for dark pages."""

import base64
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.evaluation.manipulations import Separation, title_of
from lapsus.evaluation.match import Match
from lapsus.fitting.result import Fit
from lapsus.plots.axes import cloud
from lapsus.plots.fits import predictive
from lapsus.plots.numbers import numbers_of
from lapsus.plots.style import BLUE, GREY, PAGE_POINTS, VERMILION, legend_above, style, wheel_key
from lapsus.plots.swap_functions import degree_axis, model_comparison, swap_probability
from lapsus.trials import Trials


@dataclass(frozen=True)
class Picture:
    """One figure: SVG for light and dark pages and its numbers (CSV) as data addresses, its size in CSS pixels, and
    what it shows in words."""

    light: str
    dark: str
    width: int
    height: int
    caption: str
    numbers: str


# Figures are drawn at their size in print. On a page they are so much larger, so that their labels (PAGE_POINTS)
# are as large as its text.
_ON_PAGE = 1.4


def picture(figure: Figure, caption: str) -> Picture:
    """The figure as SVG; on dark pages its greys are turned over, its colours kept."""
    buffer = io.BytesIO()
    with style(PAGE_POINTS):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    width, height = (round(96 * _ON_PAGE * side) for side in figure.get_size_inches())
    numbers = "data:text/csv;base64," + base64.b64encode(numbers_of(figure).encode()).decode()
    plt.close(figure)
    svg = buffer.getvalue().decode()
    svg = svg[svg.index("<svg") :]
    return Picture(_address(svg), _address(_dark(svg)), width, height, caption, numbers)


def _address(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _dark(svg: str) -> str:
    """Greys mirrored about the middle, so that black ink becomes light, dark colours made lighter; matplotlib leaves
    black fills unsaid, hence the root's."""
    turned = re.sub(r"#([0-9a-f]{2})\1\1\b", lambda m: "#" + 3 * f"{round(236 - int(m[1], 16) * 0.85):02x}", svg)
    turned = re.sub(r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})\b", _lighter, turned)
    return turned.replace("<svg ", '<svg fill="#ececec" ', 1)


def _lighter(colour: re.Match) -> str:
    """A colour that is too dark for a dark page, mixed with white; others, and greys, as they are."""
    red, green, blue = (int(component, 16) for component in colour.groups())
    mixed = 0.45 if 0.3 * red + 0.59 * green + 0.11 * blue < 95 and not red == green == blue else 0.0
    return "#" + "".join(f"{round(component + mixed * (255 - component)):02x}" for component in (red, green, blue))


# --- The data ---


def data_overview(trials: Trials) -> Picture:
    """Errors to the target and to non-targets, as they came."""
    with style(PAGE_POINTS):
        figure, axes = plt.subplots(1, 2, figsize=(4.6, 2.3), layout="constrained")
        half = round(np.pi * trials.degrees)
        edges, ticks = np.linspace(-half, half, 61), np.linspace(-half, half, 5)
        others = trials.degrees * trials.deviation[:, 1:]
        others = others[np.isfinite(others)]
        for ax, values, colour, name in (
            (axes[0], trials.degrees * trials.error, BLUE, "target"),
            (axes[1], others, VERMILION, "non-target"),
        ):
            ax.hist(values, edges, color=colour)
            ax.set(xlabel=f"response − {name} (°)", xticks=ticks, title=f"n = {len(values):,}")
            ax.xaxis.set_major_formatter("{x:g}")
        axes[0].set_ylabel("trials")
        axes[1].set_ylabel("trials × non-targets")
    return picture(
        figure,
        "Raw responses: error to the target (left) and to the non-targets (right). A peak at zero on the right is"
        " swaps.",
    )


# --- The behaviour fit ---


def behaviour_fit(fit: Fit, truth: Callable[[np.ndarray], np.ndarray] | None = None) -> Picture:
    """Swap probability with its band (and the truth where it is known), posterior predictive, model comparison; those
    that the fit has."""
    known = truth is not None and fit.name in ("probe", "constant")

    def swaps(ax: Axes) -> None:
        swap_probability(ax, fit)
        if truth is not None and known:
            d = np.linspace(np.pi / 4, np.pi, 60)
            ax.plot(np.degrees(d), 1 / (1 + np.exp(-truth(d))), color="k", ls=(0, (3, 2)), lw=1.3, label="true")
            legend_above(ax)

    def comparison(ax: Axes) -> None:
        model_comparison(ax, fit.comparison, fit.name)
        ax.set_xlabel("log predictive density\nbelow the best (nats, ± s.e.)")

    panels: dict[str, Callable[[Axes], object]] = {}
    if fit.swap_model.swaps:
        dashed = ", and the true one of the synthetic observer (dashed)" if known else ""
        panels[f"the probability of a swap with one non-target, posterior mean and 95 % band{dashed}"] = swaps
    panels["how often responses are nearest to a non-target, data against the fit's prediction"] = partial(
        predictive, fit=fit
    )
    if fit.comparison is not None:
        panels["models by leave-one-out predictive density"] = comparison
    with style(PAGE_POINTS):
        count = len(panels)
        figure, axes = plt.subplots(1, count, figsize=(2.9 * count, 2.9), layout="constrained", squeeze=False)
        for ax, draw in zip(axes[0], panels.values(), strict=True):
            draw(ax)
    words = "; ".join(panels)
    return picture(figure, f"From left to right: {words}.")


# --- Network against data ---


def match(found: Match, label: str = "") -> Picture:
    """Swap curve of network, fit and data, with the network's predictive interval."""
    x = found.shown_distance
    with style(PAGE_POINTS):
        figure, ax = plt.subplots(figsize=(4.2, 2.7), layout="constrained")
        band = found.predictive_network
        if band is not None:
            ax.fill_between(
                x, band.low, band.high, color=VERMILION, alpha=0.2, lw=0, label="network, predictive interval"
            )
        ax.plot(x, found.fit, color=BLUE, ls=(0, (1, 1.2)), lw=1.6, label="fitted model")
        ax.plot(x, found.network, color=VERMILION, marker="s", ms=3, label="network")
        if found.data is not None:
            ax.plot(x, found.data, "o", color="k", ms=4, label="data")
        degree_axis(ax, False, f"{found.feature} distance between the items (°)", found.degrees)
        ax.set(ylabel="nearest to the non-target", ylim=(0, None))
        legend_above(ax, label)
    return picture(
        figure,
        f"Share of responses nearest to the non-target, on {found.scope}. Mean deviation of the network from the"
        f" fitted model: {found.swap_curve_mad_fit:.3f}.",
    )


# Manipulations that the figure shows, those that separate best.
_MOST_SHOWN = 12


def separations(found: list[Separation]) -> Picture:
    """How much each manipulation changes swaps in networks of each objective, the best separation first."""
    drawn = found[:_MOST_SHOWN]
    with style(PAGE_POINTS):
        figure, ax = plt.subplots(figsize=(6.4, 0.9 + 0.26 * len(drawn)), layout="constrained")
        ax.axvline(0, color=GREY, lw=0.6)
        heights = np.arange(len(drawn))
        for kind, colour, marker in zip(drawn[0].effects, (BLUE, VERMILION), "os"):
            ax.plot(
                [100 * separation.effects[kind] for separation in drawn],
                heights,
                marker,
                color=colour,
                ms=4,
                label=kind,
            )
        for height, separation in enumerate(drawn):
            needed = "not separated" if separation.trials is None else f"{separation.trials:,} trials"
            ax.text(1.02, height, needed, transform=ax.get_yaxis_transform(), va="center")
        ax.set_yticks(heights, [title_of(separation.manipulation, separation.level, ":") for separation in drawn])
        ax.set(xlabel="change of swaps (percentage points)", ylim=(len(drawn) - 0.5, -0.5))
        legend_above(ax, "networks trained by")
    return picture(
        figure,
        "What the matched networks predict for manipulations that they were not trained on. Right: trials with the"
        " manipulation, and as many without, that tell the two apart with a power of 80 %.",
    )


def swap_curve(ax: Axes, evaluation: dict, *, exact: bool = False) -> None:
    """Swap rate of a network by distance beside its target's (and an exact denoiser's); where all distances are one, a
    dot with its interval, and a bar where it should be."""
    curve = evaluation["swap_curve"]
    perfect = evaluation.get("exact_sampler", {}).get("swap_curve", []) if exact else []
    rate, target, low, high = (np.array([p[name] for p in curve]) for name in ("rate", "target", "low", "high"))
    if len(curve) == 1:
        x, bar = np.zeros(1), {"marker": "_", "ms": 16, "ls": ""}
        of_target, of_perfect = bar | {"mew": 2}, bar
        ax.errorbar(x, rate, [rate - low, high - rate], color=VERMILION, marker="s", ms=4, capsize=3, label="network")
        ax.set(xlim=(-1, 1), xticks=[], xlabel="all distances")
    else:
        x = np.degrees([p["distance"] for p in curve])
        of_target, of_perfect = {"ls": (0, (1, 1.2)), "lw": 1.6}, {"lw": 0.9}
        ax.fill_between(x, low, high, color=VERMILION, alpha=0.25, lw=0)
        ax.plot(x, rate, color=VERMILION, marker="s", ms=3, label="network")
        degree_axis(ax, False, "distance between the items (°)", 180 / np.pi)
    ax.plot(x, target, color=BLUE, label="target", **of_target)
    if perfect:
        ax.plot(x, [p["rate"] for p in perfect], color=GREY, label="exact denoiser", **of_perfect)
    ax.set(ylabel="swap rate", ylim=(0, max(0.02, 1.15 * float(max(high.max(), target.max())))))


def swap_target(evaluation: dict) -> Picture:
    """Swap curve of a network beside its target and what a perfect network would do."""
    with style(PAGE_POINTS):
        figure, ax = plt.subplots(figsize=(3.3, 2.4), layout="constrained")
        swap_curve(ax, evaluation, exact=True)
        legend_above(ax)
    rate, off = "Swap rate, all distances together", f"{evaluation['swap_curve_mad']:.3f}"
    if len(evaluation["swap_curve"]) > 1:
        rate, off = "Swap rate by distance", f"{off} on average and {evaluation['swap_curve_max']:.3f} at most"
    return picture(
        figure,
        f"{rate}: network with its 95 % interval beside its target and the exact denoiser; {off} from the target.",
    )


def clouds(arrays: dict[str, np.ndarray], near: float) -> Picture:
    """Responses in the plane of the readout: one condition with locations `near` (radians) each other, and one with far
    ones, where that is another."""
    count = len(arrays["cloud_near"])
    distances = {"near": near, "far": np.pi} if near < 0.99 * np.pi else {"far": np.pi}
    with style(PAGE_POINTS):
        figure, axes = plt.subplots(
            1,
            len(distances),
            figsize=(3.0 if len(distances) == 1 else 2.2 * len(distances), 2.3 if len(distances) > 1 else 2.8),
            layout="constrained",
            squeeze=False,
        )
        for ax, (name, gap) in zip(axes[0], distances.items()):
            x = arrays[f"cloud_{name}"]
            cloud(ax, x, limit=max(3.6, float(np.quantile(np.abs(x), 0.995)) * 1.05))
            ax.set_title(f"locations {np.degrees(gap):.0f}° apart")
            for spine in ax.spines.values():
                spine.set_visible(False)
            wheel_key(ax, (0.86, 0.84, 0.16, 0.16))
    return picture(
        figure,
        f"{count} responses{' each' * (len(distances) > 1)} in the plane of the readout (○ cued item, □ non-target);"
        " points at the square are swaps.",
    )


def learning(metrics: list[dict]) -> Picture | None:
    """Excess over the Bayes denoiser as training went on."""
    rows = [(line["seconds"] / 60, line["excess"]) for line in metrics if line.get("excess") is not None]
    if len(rows) < 2:
        return None
    time, excess = np.array(rows).T
    width = max(1, len(excess) // 60)
    smooth = np.convolve(excess, np.ones(width) / width, "valid")
    with style(PAGE_POINTS):
        figure, ax = plt.subplots(figsize=(3.3, 2.2), layout="constrained")
        ax.plot(time, excess, ".", color=GREY, ms=1.5, alpha=0.6)
        ax.plot(time[width - 1 :], smooth, color=BLUE)
        ax.axhline(0, color="0.3", lw=0.6, ls=":")
        ax.set(
            xlabel="minutes of training",
            ylabel="excess over Bayes denoiser",
            ylim=(min(0, float(np.quantile(excess, 0.02))), float(np.quantile(excess, 0.98)) * 1.1 + 1e-3),
        )
    return picture(
        figure, "Excess of the denoising loss over that of the exact Bayes denoiser (0 is perfect) as training went on."
    )
