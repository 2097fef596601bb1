"""Schematics of the task, of training and of the three errors; the noise schedule. Drawn from the same constants as the
code."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

from lapsus.diffusion import linear_schedule
from lapsus.plots.style import CORRECT, SWAP, TEXT_WIDTH, style, wheel
from lapsus.tasks import FeatureCued

__all__ = [
    "arrow",
    "blank",
    "box",
    "error_schematic",
    "noise_schedule",
    "schedule_figure",
    "schedule_table",
    "task_figure",
    "task_schematic",
    "training_schematic",
]

UPPER, LOWER = 0.4, -2.2


def blank(ax: Axes, width: float, height: float) -> Axes:
    """Axes to draw on: no ticks, no frame."""
    ax.set(xlim=(0, width), ylim=(0, height), xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], **options: Any) -> None:
    """From one place to another."""
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=7,
            **({"color": "0.3", "lw": 0.8, "shrinkA": 1, "shrinkB": 1} | options),
        )
    )


def box(ax: Axes, x: float, y: float, width: float, height: float, text: str, colour: str = "0.95") -> None:
    """A box with rounded corners and words in its middle."""
    ax.add_patch(
        FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0.02,rounding_size=0.08", fc=colour, ec="0.4", lw=0.7)
    )
    ax.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=6)


def task_schematic(ax: Axes, epochs: dict[str, int]) -> Axes:
    """The trial: what is on the screen in each epoch and for how many steps (50 ms each)."""
    labels = {
        "prestimulus": "prestimulus",
        "stimulus": "stimulus",
        "delay": "delay 1",
        "cue": "cue",
        "denoise": "delay 2\n(response at its end)",
    }
    blank(ax, len(epochs) * 1.25, 2.0).set_aspect("equal")
    for k, (name, steps) in enumerate(epochs.items()):
        x = 0.1 + 1.25 * k
        ax.add_patch(FancyBboxPatch((x, 0.75), 1.0, 1.0, boxstyle="square,pad=0", fc="0.93", ec="0.4", lw=0.7))
        centre = (x + 0.5, 1.25)
        ax.plot(*centre, "+", color="0.4", ms=4, mew=0.7)
        if name in ("stimulus", "cue"):
            ax.add_patch(Circle(centre, 0.36, fill=False, ec="0.8", lw=0.5))
        for place, colour in ((1.9, UPPER), (-0.5, LOWER)):
            spot = (centre[0] + 0.36 * np.cos(place), centre[1] + 0.36 * np.sin(place))
            if name == "stimulus":
                ax.add_patch(Circle(spot, 0.1, color=wheel(colour), lw=0))
            elif name == "cue" and colour == UPPER:
                ax.add_patch(Circle(spot, 0.1, fill=False, ec="k", lw=1))
        if name == "denoise":
            for angle in np.linspace(-np.pi, np.pi, 60, endpoint=False):
                ax.plot(
                    centre[0] + 0.3 * np.cos(angle), centre[1] + 0.3 * np.sin(angle), ".", color=wheel(angle), ms=2.5
                )
        ax.text(
            x + 0.5,
            0.62,
            f"{labels.get(name, name)}\n{steps} steps, {0.05 * steps:.2f} s",
            ha="center",
            va="top",
            fontsize=6,
        )
    arrow(ax, (0.1, 0.05), (1.25 * len(epochs) - 0.1, 0.05))
    return ax


def training_schematic(ax: Axes) -> Axes:
    """Left: training for the task. Right: training on surrogate data of a behaviour model that has the subject's
    errors."""
    blank(ax, 10, 3.1)
    ax.text(1.7, 3.0, "task-optimal", ha="center", va="top", fontsize=7, fontweight="bold")
    box(ax, 0.2, 1.7, 1.2, 0.6, "stimuli")
    box(ax, 2.0, 1.7, 1.2, 0.6, "RNN")
    box(ax, 2.0, 0.4, 1.2, 0.6, "correct\nanswer")
    arrow(ax, (1.45, 2.0), (1.95, 2.0))
    arrow(ax, (2.6, 1.05), (2.6, 1.65), color=CORRECT)
    ax.text(2.7, 1.33, "squared\nerror", fontsize=5.5, va="center", color=CORRECT)
    ax.plot([4.05, 4.05], [0.2, 3.0], color="0.8", lw=0.7)
    ax.text(7.1, 3.0, "behaviourally realistic", ha="center", va="top", fontsize=7, fontweight="bold")
    box(ax, 4.4, 1.7, 1.2, 0.6, "subject's\ntrials")
    box(ax, 6.3, 1.7, 1.2, 0.6, "behaviour\nmodel (BNS)")
    box(ax, 6.3, 0.4, 1.2, 0.6, "surrogate\nresponses")
    box(ax, 8.4, 1.7, 1.2, 0.6, "RNN")
    arrow(ax, (5.65, 2.0), (6.25, 2.0))
    ax.text(5.95, 2.12, "fit", ha="center", fontsize=5.5)
    arrow(ax, (6.9, 1.65), (6.9, 1.05))
    ax.text(7.0, 1.36, "sample", fontsize=5.5, va="center")
    arrow(ax, (7.55, 0.7), (8.95, 1.65), color=SWAP)
    ax.text(8.45, 0.95, "denoising error\nat every step", fontsize=5.5, va="top", color=SWAP)
    return ax


def error_schematic(ax: Axes) -> Axes:
    """Three ways to a swap: from bindings of place and colour (delay 1) to bindings of role and colour (delay 2), upper
    item cued."""
    names = ("correct", "misbinding", "misselection", "misinterpretation")
    blank(ax, 12, 2.4)
    upper, lower = wheel(UPPER), wheel(LOWER)
    for k, name in enumerate(names):
        x = 3 * k + 0.3
        stored = (lower, upper) if name == "misbinding" else (upper, lower)
        swapped = name != "correct"
        ax.text(x + 1.2, 2.35, name, ha="center", va="top", fontsize=7, fontweight="bold")
        for y, colour, place in ((1.45, stored[0], "up"), (0.65, stored[1], "down")):
            ax.scatter(x + 0.45, y, s=90, color=colour, lw=0)
            ax.text(x + 0.22, y, place, ha="right", va="center", fontsize=5.5)
        target, other = (lower, upper) if swapped else (upper, lower)
        for y, colour, role in ((1.45, target, "target"), (0.65, other, "distr.")):
            ax.scatter(x + 1.85, y, s=90, color=colour, lw=0)
            ax.text(x + 2.08, y, role, ha="left", va="center", fontsize=5.5)
        cross = name in ("misselection", "misinterpretation")
        for start, end in ((1.45, 0.65 if cross else 1.45), (0.65, 1.45 if cross else 0.65)):
            arrow(ax, (x + 0.72, start), (x + 1.6, end), color=SWAP if cross else "0.3")
        heard = "heard: down" if name == "misinterpretation" else "cue: up"
        ax.text(
            x + 1.16,
            0.2,
            heard,
            ha="center",
            va="center",
            fontsize=5.5,
            color=SWAP if name == "misinterpretation" else "0.3",
        )
    return ax


def noise_schedule(ax: Axes) -> Axes:
    """beta_t and sigma_t over the second delay."""
    table = schedule_table()
    ax.plot(table["t"], table["beta"], color=CORRECT, label=r"corruption variance $\beta_t$")
    ax.plot(table["t"], table["sigma"], color=SWAP, label=r"generative noise s.d. $\sigma_t$")
    ax.set(xlabel="time from cue offset t (steps)", ylabel="noise", ylim=(0, None), xlim=(0, 40))
    ax.legend()
    return ax


def schedule_table() -> pd.DataFrame:
    """Columns t, beta, sigma, alpha_bar, a row for each of the 40 steps."""
    schedule = linear_schedule(40)
    return pd.DataFrame(
        {"t": np.arange(40), "beta": schedule.beta, "sigma": schedule.sigma, "alpha_bar": schedule.alpha_bar[:-1]}
    )


def schedule_figure() -> Figure:
    """The noise schedule: variances and what is left of the target, over the denoising steps."""
    from matplotlib import pyplot as plt

    with style():
        fig, ax = plt.subplots(figsize=(3.4, 2.2), layout="constrained")
        noise_schedule(ax)
    return fig


def task_figure() -> Figure:
    """Task and training, side by side in one column of panels."""
    from matplotlib import pyplot as plt

    with style():
        fig, (a, b) = plt.subplots(2, 1, figsize=(TEXT_WIDTH, 4.0), height_ratios=(1, 1.1), layout="constrained")
        task_schematic(a, FeatureCued().epochs)
        training_schematic(b)
        for name, height in (("A", 0.96), ("B", 0.49)):
            fig.text(0.005, height, name, fontsize=9, fontweight="bold")
    return fig
