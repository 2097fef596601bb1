"""The look shared by all figures: sizes for a column of print, a palette for all eyes, a wheel where colour is the
variable."""

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap
from numpy.typing import ArrayLike

from lapsus.errors import LapsusError

# Points: labels on a page, where lapsus.plots.panels gives an inch 1.4 times 96 pixels, are as large as its text.
PAGE_POINTS = 8.5
# Inches: the text of a conference paper, and a column of a journal.
TEXT_WIDTH, COLUMN_WIDTH = 6.9, 3.4

# Okabe and Ito's palette, which readers with any kind of colour vision can tell apart.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY = "#7F7F7F"

# One colour a network, the same in every figure.
COLOURS = {
    "index-optimal": GREY,
    "index-none": GREEN,
    "index-constant-05": SKY,
    "index-constant-10": BLUE,
    "feature-optimal": GREY,
    "feature-none": GREEN,
    "feature-constant-05": SKY,
    "feature-constant-08": "#2A93CC",
    "feature-constant-30": BLUE,
    "feature-smooth-0": VERMILION,
    "feature-smooth-1": ORANGE,
    "feature-smooth-2": PURPLE,
    "feature-sample-mse": BLACK,
}
SWAP, CORRECT = VERMILION, BLUE
# Marks panels that only say what they lack.
NOTE = "note"


def lettered(text: object, longest: int = 40) -> str:
    """Words from a table as a figure can hold them: not too many, and a dollar sign does not begin a formula."""
    return "".join(c if c.isprintable() else " " for c in str(text)[:longest]).replace("$", r"\$")


@contextmanager
def style(points: float = 7) -> Iterator[None]:
    """Settings for a figure at its printed size, without touching the user's; points: size of its labels, of which
    ticks and legends have six sevenths."""
    settings = {
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": points,
        "axes.labelsize": points,
        "axes.titlesize": points,
        "xtick.labelsize": points * 6 / 7,
        "ytick.labelsize": points * 6 / 7,
        "legend.fontsize": points * 6 / 7,
        "axes.linewidth": 0.6,
        "lines.linewidth": 1.1,
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
        "xtick.major.size": 2.5,
        "ytick.major.size": 2.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "figure.dpi": 100,
        "savefig.dpi": 300,
        "pdf.fonttype": 42,
        "axes.titlepad": 4,
        "axes.labelpad": 2,
    }
    with mpl.rc_context(settings), plt.ioff():
        yield


def _lab_wheel() -> np.ndarray:
    """A circle in CIE L*a*b* as sRGB [256, 3]: equal lightness, even steps of hue, as in colour memory experiments."""
    angle = np.linspace(-np.pi, np.pi, 256, endpoint=False)
    a, b = 8 + 52 * np.cos(angle), 18 + 52 * np.sin(angle)
    fy = np.full(256, (68 + 16) / 116)
    f = np.stack([fy + a / 500, fy, fy - b / 200], 1)
    xyz = np.where(f > 6 / 29, f**3, 3 * (6 / 29) ** 2 * (f - 4 / 29)) * [0.95047, 1.0, 1.08883]
    matrix = np.array([[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]])
    linear = np.clip(xyz @ matrix.T, 0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


WHEEL = ListedColormap(_lab_wheel(), "lapsus_wheel")


def wheel(angle: ArrayLike) -> np.ndarray:
    """The colour of an angle on the colour wheel: [..., 4] (RGBA)."""
    return WHEEL(np.mod(np.asarray(angle) + np.pi, 2 * np.pi) / (2 * np.pi))


def wheel_key(ax: Axes, place: tuple[float, float, float, float] = (0.8, 0.78, 0.2, 0.2), label: str = "") -> Axes:
    """Draw the wheel as a small ring in a corner of the axes (or over the whole of it, with place (0, 0, 1, 1))."""
    inset = ax.inset_axes(place)
    angle = np.linspace(-np.pi, np.pi, 181)
    edge = np.stack([np.cos(angle), np.sin(angle)], 1)
    pieces = np.stack([edge[:-1], edge[1:], 0.62 * edge[1:], 0.62 * edge[:-1]], 1)
    inset.add_collection(PolyCollection(pieces, facecolors=wheel(angle[:-1]), linewidths=0))
    inset.set(aspect="equal", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
    inset.axis("off")
    if label:
        inset.text(0, -1.25, label, ha="center", va="top", fontsize=5.5)
    return inset


def legend_above(ax: Axes, title: str = "", columns: int = 2) -> None:
    """Where it covers no data, and not the word that names the cue."""
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.04), ncols=columns, title=title or None, title_fontsize="medium")


def colour_of(role: str) -> str:
    """The colour that a network of this role has in every figure."""
    return COLOURS.get(role, GREY)


def letter(ax: Axes, text: str, x: float = -0.02, y: float = 1.0) -> None:
    """A panel's letter, in bold at its upper left corner."""
    ax.annotate(
        text,
        (x, y),
        xycoords="axes fraction",
        xytext=(-14, 6),
        textcoords="offset points",
        fontsize=9,
        fontweight="bold",
        ha="right",
        va="bottom",
        annotation_clip=False,
    )


def note(ax: Axes, text: str) -> Axes:
    """Say in the panel why it is empty."""
    inches = ax.get_position().width * ax.figure.get_figwidth()
    ax.text(
        0.5,
        0.5,
        _wrapped(text, max(8, int(inches * 17))),
        transform=ax.transAxes,
        ha="center",
        va="center",
        fontsize="small",
        color=GREY,
    )
    ax.set(xticks=[], yticks=[], gid=NOTE)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width))


def panel(ax: Axes, draw: Callable[..., Axes], *args: Any, **options: Any) -> Axes:
    """Draw a panel, or write into it what the analysis says is missing ("no swap trials")."""
    try:
        return draw(ax, *args, **options)
    except LapsusError as reason:
        return note(ax, str(reason))


def mark_epochs(ax: Axes, onset: float) -> None:
    """Grey stripe over the cue, from its onset to its offset at 0."""
    ax.axvspan(onset, 0, color="0.88", lw=0, zorder=0)
    where = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
    ax.annotate("cue", (onset / 2, 1), fontsize="small", color="0.4", **where)
