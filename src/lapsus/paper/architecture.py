"""Drawings of the appendices: architecture and training, and the graphical model of BNS. What can be computed (inputs,
the code of time, samples on their way from noise to responses) is computed by the code that networks use."""

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from lapsus.behaviour import BNS, ConstantSwap
from lapsus.circular import angle
from lapsus.diffusion import linear_schedule
from lapsus.networks import DendriticTree
from lapsus.networks.time import time_code
from lapsus.paper.schematics import arrow, blank, box
from lapsus.plots.style import COLUMN_WIDTH, CORRECT, GREEN, GREY, ORANGE, SWAP, TEXT_WIDTH, letter, style, wheel
from lapsus.tasks import FeatureCued

__all__ = [
    "architecture_figure",
    "denoising_schematic",
    "forcing_schematic",
    "graphical_model",
    "graphical_model_figure",
    "tree_schematic",
    "trial_schematic",
]

SHOWN = {"report": [[0.4, -2.2]], "probe": [[1.6, -0.7]], "cued": [0]}
NAMES = {
    "prestimulus": "pre",
    "stimulus": "stimulus",
    "delay": "delay 1",
    "cue": "cue",
    "denoise": "delay 2: denoising",
}
SNAPSHOTS = (0, 10, 20, 30, 40)


def _conditions() -> dict[str, torch.Tensor]:
    return {name: torch.tensor(values) for name, values in SHOWN.items()}


def trial_schematic(ax: Axes) -> Axes:
    """A trial in time: its epochs, what the sensory population does in each, and what each node knows of time."""
    task = FeatureCued()
    steps = np.cumsum([0, *task.epochs.values()])
    first, last = -steps[-2], task.epochs["denoise"]
    blank(ax, 1, 1).set(xlim=(first - 10, last + 1), ylim=(-0.5, 11.2))
    starts = dict(zip(task.epochs, steps - steps[-2]))
    for name, length in task.epochs.items():
        shade = {"stimulus": "#FBE3D0", "cue": "0.85", "denoise": "#DCEBF5"}.get(name, "0.96")
        ax.add_patch(Rectangle((starts[name], 9), length, 1.1, fc=shade, ec="0.4", lw=0.6))
        text = f"{NAMES.get(name, name)}\n{length} steps" if length > 5 else f"{length}"
        ax.text(starts[name] + length / 2, 9.55, text, ha="center", va="center", fontsize=5.5, linespacing=1.0)
        if length <= 5:
            ax.text(starts[name] + length / 2, 10.25, NAMES[name], ha="center", va="bottom", fontsize=5.5)
    ax.text(first - 1, 9.55, "epoch", ha="right", va="center", fontsize=6)
    inputs = {name: values[0].numpy() for name, values in task.stimuli(_conditions()).items()}
    for name, values in inputs.items():
        middle = starts[name] + task.epochs[name] / 2
        inset = ax.inset_axes((middle - 4.6, 4.4, 9.2, 3.7), transform=ax.transData)
        inset.imshow(values.reshape(task.tuning_curves, -1).T, cmap="magma", origin="lower", aspect="auto")
        inset.set(xticks=[], yticks=[])
        inset.set_xlabel("place", fontsize=5.5, labelpad=1)
        inset.set_ylabel("colour", fontsize=5.5, labelpad=1)
        ax.plot([middle, middle], [8.1, 9], color="0.5", lw=0.6)
    ax.text(first - 1, 6.2, "sensory\npopulation", ha="right", va="center", fontsize=6)
    ax.text(15, 6.2, "no input", ha="center", va="center", fontsize=6, color="0.5")
    code = np.concatenate([np.zeros((-first, 16)), time_code(last, 16).numpy()])
    inset = ax.inset_axes((first, 0.2, last - first, 2.6), transform=ax.transData)
    inset.imshow(code.T, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    inset.set(xticks=[], yticks=[])
    ax.text(first / 2, 1.5, "learned constant", ha="center", va="center", fontsize=6, color="0.4")
    ax.text(first - 1, 1.5, "code of\ntime", ha="right", va="center", fontsize=6)
    return ax


def denoising_schematic(axes: list[Axes]) -> list[Axes]:
    """The target trajectory of the behavioural subspace: from noise at cue offset to responses at either item."""
    behaviour = BNS(ConstantSwap(0.3))
    generator = torch.Generator().manual_seed(0)
    x_T = behaviour.sample(_conditions(), 300, generator)[:, 0].numpy().T
    kept = linear_schedule(SNAPSHOTS[-1]).alpha_bar
    rng = np.random.default_rng(0)
    for ax, t in zip(axes, SNAPSHOTS):
        a = float(kept[t])
        x = np.sqrt(a) * x_T + np.sqrt(1 - a) * rng.standard_normal(x_T.shape)
        ax.add_patch(Circle((0, 0), behaviour.radius, fill=False, ec="0.8", lw=0.6))
        ax.scatter(*x.T, c=wheel(angle(x_T)), s=1.5, lw=0, rasterized=True)
        ax.set(xlim=(-4, 4), ylim=(-4, 4), aspect="equal", xticks=[], yticks=[])
        name = {0: "cue offset: noise", SNAPSHOTS[-1]: "response"}.get(t, "")
        ax.set_title(f"t = {t}" + (f"\n{name}" if name else "\n"), fontsize=6, pad=2, linespacing=1.15)
        for spine in ax.spines.values():
            spine.set(visible=True, color="0.7")
    axes[0].set_ylabel(r"$x_2$", fontsize=6)
    axes[0].set_xlabel(r"$x_1$", fontsize=6)
    return axes


def tree_schematic(ax: Axes) -> Axes:
    """One neuron: rates of all neurons and the senses reach the leaves, time reaches every node, the soma is the rate's
    drive; the population's rates are read out along two fixed directions."""
    tree = DendriticTree(1)
    inner, outer = tree.branching
    blank(ax, 11, 7.2)
    soma, branches = (6.6, 3.6), [(4.6, y) for y in (6.0, 3.6, 1.2)]
    for k, branch in enumerate(branches):
        ax.plot(*zip(branch, soma), color="0.3", lw=1.3, zorder=1)
        for y in (0.75, 0, -0.75):
            leaf = (2.9, branch[1] + y)
            ax.plot(*zip(leaf, branch), color="0.3", lw=0.8, zorder=1)
            ax.add_patch(Circle(leaf, 0.17, fc="w", ec="0.3", lw=0.7, zorder=2))
            ax.plot([1.55, 2.7], [leaf[1]] * 2, color="0.7", lw=0.5, zorder=0)
        ax.add_patch(Circle(branch, 0.25, fc="w", ec="0.3", lw=0.8, zorder=2))
        if k < 2:
            ax.text(4.6, branch[1] - 1.2, "⋮", ha="center", va="center", fontsize=8, color="0.4")
    ax.add_patch(Circle(soma, 0.42, fc="0.9", ec="k", lw=1, zorder=2))
    ax.text(*soma, r"$[\cdot]_+$", ha="center", va="center", fontsize=6, zorder=3)
    box(ax, 0.1, 3.75, 1.4, 3.1, "rates\n" + r"$W_r\,r$", "#E8F0F7")
    box(ax, 0.1, 0.35, 1.4, 3.1, "senses\n" + r"$W_s\,s_t$", "#FBE9DC")
    ax.text(2.9, 7.15, f"{inner * outer} leaves", ha="center", va="bottom", fontsize=5.5)
    ax.text(4.6, 7.15, f"{inner} branches", ha="center", va="bottom", fontsize=5.5)
    ax.text(6.6, 4.2, "soma", ha="center", va="bottom", fontsize=5.5)
    ax.text(5.4, 0.1, r"every node: + $b(t)$, then $[\cdot]_+$", ha="center", va="center", fontsize=6, color=GREEN)
    arrow(ax, (7.05, 3.6), (8.0, 3.6))
    box(ax, 8.05, 3.05, 2.8, 1.1, "leaky rates, noise\n" + r"$r_{t+1}$, " + f"n = {tree.units}", "0.95")
    arrow(ax, (9.0, 4.2), (8.7, 5.4), color=ORANGE)
    arrow(ax, (9.9, 4.2), (10.2, 5.4), color=CORRECT)
    ax.text(8.45, 5.5, r"$x = W_x r$" + "\nresponse", ha="center", va="bottom", fontsize=6, color=ORANGE)
    ax.text(10.35, 5.5, r"$m = W_x^\perp r$" + "\nmemory", ha="center", va="bottom", fontsize=6, color=CORRECT)
    ax.plot([9.45, 9.45, -0.25, -0.25], [3.0, -0.5, -0.5, 5.3], color="0.6", lw=0.7)
    arrow(ax, (-0.25, 5.3), (0.05, 5.3), color="0.6")
    ax.text(7.6, -0.45, "to all leaves of all neurons", ha="center", va="bottom", fontsize=5.5, color="0.4")
    ax.set(xlim=(-0.4, 11), ylim=(-0.7, 7.6))
    return ax


def forcing_schematic(ax: Axes) -> Axes:
    """Teacher forcing: before each step x is put onto the noised target, memory goes on as it is; the loss compares
    where the network's mean goes with where the posterior's does."""
    blank(ax, 10, 7.2)
    times = np.array([1.2, 3.7, 6.2, 8.7])
    target = np.array([4.0, 5.3, 4.7, 5.9])
    reached = np.array([np.nan, 4.5, 5.75, 5.15])
    memory = np.array([1.5, 1.15, 1.6, 1.25])
    for k in range(3):
        ax.plot(times[k : k + 2], [target[k], reached[k + 1]], color=SWAP, lw=1.1)
        arrow(ax, (times[k + 1], reached[k + 1]), (times[k + 1], target[k + 1]), color=ORANGE, lw=1.0)
        arrow(ax, (times[k] + 0.15, memory[k]), (times[k + 1] - 0.15, memory[k + 1]), color=CORRECT)
    ax.plot(times, target, color="0.75", lw=0.8, ls=(0, (3, 2)), zorder=0)
    ax.plot(times, target, "o", color=ORANGE, ms=5, zorder=3)
    ax.plot(times[1:], reached[1:], "o", mfc="w", mec=SWAP, ms=4.5, zorder=3)
    ax.plot(times, memory, "s", color=CORRECT, ms=4, zorder=3)
    for k, time in enumerate(times):
        ax.text(time, 0.15, f"t{f' + {k}' if k else ''}", ha="center", va="bottom", fontsize=6)
    ax.text(times[0] - 0.25, target[0] + 0.35, r"$x^*_t$", ha="right", fontsize=7, color=ORANGE)
    ax.text(times[1] + 0.2, reached[1] - 0.25, r"$\hat\mu$", ha="left", va="center", fontsize=7, color=SWAP)
    ax.text(times[0] - 0.25, memory[0], r"$m$", ha="right", va="center", fontsize=7, color=CORRECT)
    loss = r"loss: $\Vert\hat\mu - \mu_q\Vert^2$ at every step"
    words = f"dashed: the noised target; orange arrows: forcing\n{loss}"
    ax.text(5, 7.1, words, ha="center", va="top", fontsize=6, color="0.3")
    ax.text(5, 2.4, "memory is not forced", ha="center", va="center", fontsize=6, color=CORRECT)
    return ax


def architecture_figure() -> Figure:
    """Architecture and training: A the trial with its inputs and the way from noise to responses, B a neuron, C teacher
    forcing."""
    from matplotlib import pyplot as plt

    with style():
        fig = plt.figure(figsize=(TEXT_WIDTH, 6.4))
        top, middle, bottom = fig.add_gridspec(
            3, 1, height_ratios=(1.5, 0.75, 1.7), hspace=0.18, left=0.05, right=0.985, top=0.965, bottom=0.03
        )
        a = trial_schematic(fig.add_subplot(top))
        letter(a, "A", x=0.03, y=0.93)
        row = middle.subgridspec(1, len(SNAPSHOTS) + 1, width_ratios=(0.55, *[1] * len(SNAPSHOTS)), wspace=0.15)
        said = blank(fig.add_subplot(row[0]), 1, 1)
        said.text(0.95, 0.5, "target\nof x", ha="right", va="center", fontsize=6)
        denoising_schematic([fig.add_subplot(row[k + 1]) for k in range(len(SNAPSHOTS))])
        row = bottom.subgridspec(1, 2, width_ratios=(1.45, 1), wspace=0.08)
        for spec, draw, name in ((row[0], tree_schematic, "B"), (row[1], forcing_schematic, "C")):
            letter(draw(fig.add_subplot(spec)), name, x=0.03, y=0.95)
    return fig


def graphical_model(ax: Axes) -> Axes:
    """BNS: which item is reported (beta) depends on the items' places x relative to the cued one through the swap
    function f; the response y is that item's colour with noise. Grey: observed; dots: parameters."""
    blank(ax, 7.6, 5.6).set_aspect("equal")
    place = {"z": (1.3, 3.2), "x": (1.3, 1.4), "beta": (3.1, 1.4), "y": (4.9, 1.4), "n": (4.0, 3.2), "f": (3.1, 5.0)}
    names = {"z": r"$z^{(n)}$", "x": r"$x^{(n)}$", "beta": r"$\beta$", "y": r"$y$", "n": r"$n^*$", "f": r"$f$"}
    radius = 0.42
    for key, centre in place.items():
        seen = key in ("z", "x", "n", "y")
        ax.add_patch(Circle(centre, radius, fc="0.85" if seen else "w", ec="k", lw=0.9, zorder=3))
        ax.text(*centre, names[key], ha="center", va="center", fontsize=8, zorder=4)
    fixed = {"theta": ((6.9, 1.4), r"$\theta$"), "omega": ((4.9, 5.0), r"$\omega$")}
    for centre, name in fixed.values():
        ax.plot(*centre, "o", color="k", ms=4, zorder=3)
        ax.text(centre[0] + 0.2, centre[1], name, ha="left", va="center", fontsize=8)

    def edge(start: tuple[float, float], end: tuple[float, float], ls: str = "-", leave: float = radius) -> None:
        a, b = np.array(start), np.array(end)
        unit = (b - a) / np.linalg.norm(b - a)
        arrow(ax, tuple(a + leave * unit), tuple(b - radius * unit), color="k", ls=ls, lw=0.9)

    for first, second in (("x", "beta"), ("f", "beta"), ("n", "beta"), ("beta", "y"), ("z", "y")):
        edge(place[first], place[second])
    edge(place["z"], place["x"], "--")
    edge(place["n"], place["x"], "--")
    for key, second in (("theta", "y"), ("omega", "f")):
        edge(fixed[key][0], place[second], leave=0.05)
    for (x, y, width, height), name in (((0.5, 0.6, 1.6, 3.4), "items n"), ((0.25, 0.15, 5.35, 4.05), "trials")):
        ax.add_patch(Rectangle((x, y), width, height, fill=False, ec=GREY, lw=0.8))
        ax.text(x + width - 0.08, y + 0.06, name, ha="right", va="bottom", fontsize=6, color=GREY)
    return ax


def graphical_model_figure() -> Figure:
    """The graphical model of BNS with what its letters stand for."""
    from matplotlib import pyplot as plt

    said = (
        (r"$z^{(n)}$", "place and colour of item n"),
        (r"$n^*$", "which item is cued"),
        (r"$x^{(n)}$", "place of item n from the cued one"),
        (r"$f$", "swap function, a Gaussian process"),
        (r"$\omega$", r"its parameters, and $\tilde\pi_\mathrm{correct}$"),
        (r"$\beta$", "which item is reported"),
        (r"$y$", "response"),
        (r"$\theta$", "scatter of responses"),
    )
    with style():
        fig, (ax, key) = plt.subplots(
            1, 2, figsize=(1.5 * COLUMN_WIDTH, 2.5), width_ratios=(1.35, 1), layout="constrained"
        )
        graphical_model(ax)
        blank(key, 10, 10)
        for k, (name, meaning) in enumerate(said):
            key.text(0.6, 9.0 - 1.05 * k, name, fontsize=7, ha="center", va="center")
            key.text(1.5, 9.0 - 1.05 * k, meaning, fontsize=6.5, va="center")
        key.text(
            0.1,
            0.3,
            "grey: observed   white: inferred   dot: parameter\ndashed: computed",
            fontsize=5.5,
            color=GREY,
            va="center",
        )
    return fig
