"""Schematics: task, training, architecture, the three errors, graphical models.

Drawings into which no number goes are tables of shapes (schematics.toml); the others are computed by the code that
networks use.
"""

import tomllib
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np
import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Polygon, Rectangle

from lapsus.behaviour import BNS, ConstantSwap
from lapsus.circular import angle, embed
from lapsus.diffusion import linear_schedule
from lapsus.networks.time import time_code
from lapsus.plots.style import COLUMN_WIDTH, TEXT_WIDTH, letter, style, wheel
from lapsus.tasks import FeatureCued

# The two items of the display that is drawn: colours and places.
COLOURS, PLACES = (0.4, -2.2), (1.9, -0.5)
SNAPSHOTS = (0, 10, 20, 30, 40)
Place = list[float] | tuple[float, float]


# --- Shapes ---


def _text(ax: Axes, text: str, at: Place, **options: Any) -> None:
    ax.text(*at, text, **({"ha": "center", "va": "center", "fontsize": 6} | options))


def _arrow(ax: Axes, ends: list[Place], **options: Any) -> None:
    usual = {"color": "0.3", "lw": 0.8, "shrinkA": 1, "shrinkB": 1, "arrowstyle": "-|>", "mutation_scale": 7}
    ax.add_patch(FancyArrowPatch(*ends, **(usual | options)))


def _box(ax: Axes, place: list[float], text: str, colour: str = "0.95") -> None:
    x, y, width, height = place
    rounded = "round,pad=0.02,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=rounded, fc=colour, ec="0.4", lw=0.7))
    _text(ax, text, (x + width / 2, y + height / 2))


def _line(ax: Axes, points: list[Place], ls: Any = "-", **options: Any) -> None:
    dashes = (ls[0], tuple(ls[1])) if isinstance(ls, list) else ls
    ax.plot(*zip(*points), ls=dashes, **options)


def _wheel(ax: Axes, centre: Place, radius: float) -> None:
    hues = np.linspace(-np.pi, np.pi, 60, endpoint=False)
    ax.scatter(*(embed(hues, radius) + centre).T, c=wheel(hues), s=4, lw=0)


SHAPES: dict[str, Callable[..., Any]] = {
    "box": _box,
    "text": _text,
    "arrow": _arrow,
    "line": _line,
    "circle": lambda ax, centre, **options: ax.add_patch(Circle(centre, **options)),
    "rectangle": lambda ax, place, **options: ax.add_patch(Rectangle(place[:2], *place[2:], **options)),
    "polygon": lambda ax, points, **options: ax.add_patch(Polygon(points, **options)),
    "wheel": _wheel,
    "spot": lambda ax, place, size, color: ax.scatter(*place, s=size, color=color, lw=0),
}


def blank(ax: Axes, xlim: Place, ylim: Place, aspect: str = "auto") -> Axes:
    """Axes to draw on: no ticks, no frame."""
    ax.set(xlim=xlim, ylim=ylim, xticks=[], yticks=[], aspect=aspect)
    ax.spines[:].set_visible(False)
    return ax


def draw(ax: Axes, name: str) -> Axes:
    """A drawing of schematics.toml."""
    text = (files("lapsus.paper") / "schematics.toml").read_text(encoding="utf-8")
    drawing = tomllib.loads(text)[name]
    items = drawing.pop("items")
    blank(ax, **drawing)
    for item in items:
        shape = next(name for name in SHAPES if name in item)
        SHAPES[shape](ax, item.pop(shape), **item)
    return ax


# --- Task and training ---


def task_figure() -> Figure:
    """Task and training, one above the other."""
    with style():
        fig, (a, b) = plt.subplots(2, 1, figsize=(TEXT_WIDTH, 4.0), height_ratios=(1, 1.1), layout="constrained")
        draw(a, "task")
        draw(b, "training")
        for name, height in (("A", 0.96), ("B", 0.49)):
            fig.text(0.005, height, name, fontsize=9, fontweight="bold")
    return fig


# --- Architecture ---


def _conditions() -> dict[str, torch.Tensor]:
    return {"report": torch.tensor([COLOURS]), "probe": torch.tensor([PLACES]), "cued": torch.tensor([0])}


def _trial(ax: Axes) -> Axes:
    """A trial in time: its epochs, what the sensory population does in each, and what each node knows of time."""
    task = FeatureCued()
    draw(ax, "timeline")
    for name, middle in (("stimulus", -22.5), ("cue", -2.5)):
        image = task.stimuli(_conditions())[name][0].numpy().reshape(task.tuning_curves, -1).T
        inset = _inset(ax, (middle - 4.6, 4.4, 9.2, 3.7), image, cmap="magma", origin="lower")
        inset.set_xlabel("place", fontsize=5.5, labelpad=1)
        inset.set_ylabel("colour", fontsize=5.5, labelpad=1)
    code = np.concatenate([np.zeros((28, 16)), time_code(40, 16).numpy()])  # one row per step
    _inset(ax, (-28, 0.2, 68, 2.6), code.T, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    return ax


def _inset(ax: Axes, place: tuple[float, float, float, float], image: np.ndarray, **options: Any) -> Axes:
    inset = ax.inset_axes(place, transform=ax.transData)
    inset.imshow(image, aspect="auto", **options)
    inset.set(xticks=[], yticks=[])
    return inset


def _denoising(axes: list[Axes]) -> None:
    """The target trajectory of the behavioural subspace: from noise at cue offset to responses at either item."""
    behaviour = BNS(ConstantSwap(0.3))
    x_T = behaviour.sample(_conditions(), 300, torch.Generator().manual_seed(0))[:, 0].numpy().T
    alpha_bar = linear_schedule(SNAPSHOTS[-1]).alpha_bar
    rng = np.random.default_rng(0)
    names = {0: "cue offset: noise", SNAPSHOTS[-1]: "response"}
    for ax, t in zip(axes, SNAPSHOTS):
        kept = float(alpha_bar[t])
        x = np.sqrt(kept) * x_T + np.sqrt(1 - kept) * rng.standard_normal(x_T.shape)
        ax.add_patch(Circle((0, 0), behaviour.radius, fill=False, ec="0.8", lw=0.6))
        ax.scatter(*x.T, c=wheel(angle(x_T)), s=1.5, lw=0, rasterized=True)
        ax.set(xlim=(-4, 4), ylim=(-4, 4), aspect="equal", xticks=[], yticks=[])
        ax.set_title(f"t = {t}\n{names.get(t, '')}", fontsize=6, pad=2)
        ax.spines[:].set(visible=True, color="0.7")
    axes[0].set_xlabel(r"$x_1$", fontsize=6)
    axes[0].set_ylabel("target of $x$\n$x_2$", fontsize=6)


def architecture_figure() -> Figure:
    """Architecture and training: A the trial with its inputs and the way from noise to responses, B a neuron, C teacher
    forcing."""
    with style():
        fig = plt.figure(figsize=(TEXT_WIDTH, 6.4))
        top, middle, bottom = fig.add_gridspec(
            3, 1, height_ratios=(1.5, 0.75, 1.7), hspace=0.18, left=0.05, right=0.985, top=0.965, bottom=0.03
        )
        letter(_trial(fig.add_subplot(top)), "A", x=0.03, y=0.93)
        _denoising([fig.add_subplot(cell) for cell in middle.subgridspec(1, len(SNAPSHOTS), wspace=0.15)])
        for cell, name, text in zip(bottom.subgridspec(1, 2, width_ratios=(1.45, 1)), ("neuron", "forcing"), "BC"):
            letter(draw(fig.add_subplot(cell), name), text, x=0.03, y=0.95)
    return fig


def bns_figure() -> Figure:
    """The graphical model of BNS with what its letters stand for."""
    with style():
        fig, axes = plt.subplots(1, 2, figsize=(1.5 * COLUMN_WIDTH, 2.5), width_ratios=(1.35, 1), layout="constrained")
        for ax, name in zip(axes, ("bns", "bns-key")):
            draw(ax, name)
    return fig
