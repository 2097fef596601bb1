"""Five pictures of how a network makes swaps: when, what carries it, along which axis, which kind, what dynamics."""

from collections.abc import Callable

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lapsus.analysis.commitment import Commitment
from lapsus.analysis.decoding import Decoding
from lapsus.analysis.dynamics import Dynamics
from lapsus.analysis.kind import KINDS, Kind
from lapsus.analysis.transplants import Push, Transplant
from lapsus.plots.style import (
    BLUE,
    COLUMN_WIDTH,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    TEXT_WIDTH,
    VERMILION,
    mark_epochs,
    note,
    style,
)
from lapsus.study.geometry import Geometry
from lapsus.study.mechanism import Mechanism

__all__ = [
    "FIGURES",
    "axis_panel",
    "commitment_panel",
    "dynamics_panel",
    "kind_panel",
    "push_panel",
    "transplant_panel",
]

CUE = -5.0
SHADES = {"misbinding": GREEN, "misselection": VERMILION, "misinterpretation": BLUE}


def _time(ax: Axes, ylabel: str, *, top: float = 1.02, bottom: float = -0.05) -> Axes:
    mark_epochs(ax, CUE)
    ax.set(xlabel="time from cue offset (steps)", ylabel=ylabel, ylim=(bottom, top))
    return ax


def _legend(ax: Axes, columns: int) -> None:
    """Below the panel, where it covers no data."""
    ax.legend(fontsize=6.5, loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=columns)


def commitment_panel(ax: Axes, found: Commitment) -> Axes:
    """Share of the outcome's variance that is fixed at each time, with its 95 % band over conditions."""
    ax.fill_between(found.times, found.low, found.high, color=VERMILION, alpha=0.25, lw=0)
    ax.plot(found.times, found.share, color=VERMILION, marker="o", ms=2.5)
    ax.plot([found.times[0], found.half_time, found.half_time], [0.5, 0.5, 0], color=GREY, lw=0.7, ls=(0, (3, 2)))
    ax.text(found.half_time + 1, 0.04, f"half at {found.half_time:.0f}", fontsize=6, color="0.3")
    many = f"{found.conditions} conditions × {found.groups} pasts × {found.replays} replays"
    ax.set_title(many, fontsize=5.5, color="0.4", pad=9)
    return _time(ax, "share of the outcome fixed")


def transplant_panel(ax: Axes, found: Transplant) -> Axes:
    """p(swap) with fresh noise from states put together from a swap and a correct trial."""
    for name, colour, label in (
        ("swap", VERMILION, "all from a swap trial"),
        ("x_from_swap", ORANGE, "x from a swap trial"),
        ("m_from_swap", PURPLE, "m from a swap trial"),
        ("correct", BLUE, "all from a correct trial"),
    ):
        low, high = found.intervals[name]
        ax.fill_between(found.times, low, high, color=colour, alpha=0.2, lw=0)
        ax.plot(found.times, getattr(found, name), color=colour, label=label)
    ax.plot(found.times, found.null, color=GREY, lw=0.8, ls=(0, (2, 1)), label="x from another correct one")
    _legend(ax, 1)
    return _time(ax, "p(swap) from there on")


def push_panel(ax: Axes, found: Push) -> Axes:
    """p(swap) after pushes along directions of the same length."""
    colours = {"alignment": PURPLE, "misbinding": GREEN, "swap axis": VERMILION, "response": ORANGE, "random": GREY}
    for name, values in found.p.items():
        ax.plot(found.sizes, values, marker="o", ms=2.5, color=colours.get(name, "k"), label=name)
    ax.set(xlabel="push (s.d. of memory)", ylabel="p(swap)", ylim=(0, 1), title=f"push at step {found.time:.0f}")
    _legend(ax, 1)
    return ax


def axis_panel(ax: Axes, found: Geometry) -> Axes:
    """Held-out separation of swaps from correct trials that report the same colour, over time."""
    part = found.axis
    ax.axhline(0.5, color=GREY, lw=0.6, ls=(0, (3, 2)))
    ax.plot(part.times, part.auc_over_time, color=VERMILION, label="reported colour held fixed (one cell)")
    ax.errorbar(
        [part.times[-1]],
        [part.auc],
        [[part.auc - part.low], [part.high - part.auc]],
        fmt="o",
        ms=3,
        color="k",
        label="all places and colours",
    )
    ax.plot([part.times[-1]], [part.colour_confound], "x", color=BLUE, label="what the colour alone gives")
    _legend(ax, 1)
    return _time(ax, "area under the ROC curve", top=1.05, bottom=0.3)


def axis_cosines(ax: Axes, found: Geometry) -> Axes:
    """The axis between places and colours, against random directions; distance of the rings."""
    part = found.axis
    values = [part.shared, part.across_colours, part.shared_null]
    ax.bar(range(3), np.nan_to_num(values), color=[VERMILION, BLUE, GREY], width=0.6)
    ax.axhline(0, color="k", lw=0.6)
    ax.set(ylim=(-1.05, 1.05), ylabel="cos of swap axes")
    ax.set_xticks(range(3), ["other place", "opposite\ncolour", "random"], fontsize=5.5)
    if found.fitted:
        ax.set_title(f"rings {np.mean([pair.distance for pair in found.fitted]):.1f} s.d. apart", fontsize=6)
    return ax


def kind_panel(ax: Axes, found: Kind) -> Axes:
    """Weights of the three predictions in held-out swap trials (thick) and correct trials (thin) over time."""
    for name in KINDS:
        ax.plot(found.times, found.over_time_correct[name], color=SHADES[name], lw=0.5)
        ax.plot(found.times, found.over_time[name], color=SHADES[name], label=name)
    for level in (0, 1):
        ax.axhline(level, color=GREY, lw=0.5, ls=(0, (3, 2)), zorder=0)
    ax.set_title(f"{found.decision} (predictions {found.angle:.0f}° apart, {found.swaps:,} swaps)", fontsize=6, pad=9)
    _legend(ax, 1)
    return _time(ax, "weight of the prediction", top=1.5, bottom=-0.6)


def dynamics_panel(ax: Axes, found: Dynamics) -> Axes:
    """Stretch of one step in delay 2, and what linear response expects of commitment."""
    part = found.divergence
    ax.axhline(0, color=GREY, lw=0.5)
    ax.plot(part.times, part.growth, color=BLUE, label="log stretch of a step (above 0: neighbours part)")
    ax.plot(part.times, part.predicted, color=VERMILION, ls=(0, (3, 1)), label="commitment expected by linear response")
    _legend(ax, 1)
    ax.set(xlabel="time from cue offset (steps)", ylim=(-0.15, 1.05))
    return ax


def constants_panel(ax: Axes, found: Dynamics) -> Axes:
    """Time constants before the cue and under it."""
    for values, colour, label in ((found.time_constants, "k", "delay 1"), (found.cue_time_constants, ORANGE, "cue on")):
        # Modes that do not decay have no time constant (null in a file).
        known = np.isfinite(values).any() or np.isinf(values).any()
        shown = np.minimum(np.nan_to_num(values, nan=1e4, posinf=1e4), 1e4) if known else values
        ax.plot(np.arange(1, len(values) + 1), shown, "o-", ms=2.5, lw=0.7, color=colour, label=label)
    ax.axhline(15, color=GREY, lw=0.6, ls=(0, (3, 2)))
    ax.set(yscale="log", xlabel="mode", ylabel="time constant (steps)", ylim=(1, 1.5e4))
    many = f"{found.fixed_points} fixed point{'s' * (found.fixed_points != 1)}"
    ax.set_title(f"{many}, {found.manifold_dimension:.1f} dimensions", fontsize=6)
    _legend(ax, 2)
    return ax


def decoding_panel(ax: Axes, found: Decoding) -> Axes:
    """Recordings: held-out decoding of the coming swap."""
    ax.axhline(0.5, color=GREY, lw=0.6, ls=(0, (3, 2)))
    ax.plot(found.times, found.null, color=GREY, lw=0.7, label="labels shuffled")
    ax.plot(found.times, found.auc, color=VERMILION, label="coming swap")
    _legend(ax, 2)
    return _time(ax, "held-out area under the ROC curve", top=1.05, bottom=0.3)


_Panels = list[tuple[Callable, object]]


def _figure(found: Mechanism, question: str, panels: _Panels, width: float) -> Figure:
    with style():
        fig, axes = plt.subplots(1, max(len(panels), 1), figsize=(width, 2.7), layout="constrained", squeeze=False)
        if not panels:
            note(axes[0, 0], found.left_out.get(question, "not asked"))
        for ax, (draw, part) in zip(axes[0], panels):
            draw(ax, part)
    return fig


def _when(found: Mechanism) -> Figure:
    panels: _Panels = [(commitment_panel, found.commitment)] if found.commitment is not None else []
    panels += [(decoding_panel, found.decoding)] if found.decoding is not None else []
    return _figure(found, "commitment", panels, (0.5 + 0.5 * max(len(panels), 1)) * COLUMN_WIDTH)


def _what(found: Mechanism) -> Figure:
    panels: _Panels = []
    if found.transplant is not None:
        panels.append((transplant_panel, found.transplant))
    panels += [(push_panel, one) for one in (found.pushes or {}).values()]
    return _figure(found, "transplant", panels, TEXT_WIDTH)


def _along(found: Mechanism) -> Figure:
    geometry = found.swap_axis
    panels: _Panels = [] if geometry is None else [(axis_panel, geometry), (axis_cosines, geometry)]
    return _figure(found, "swap_axis", panels, 1.5 * COLUMN_WIDTH)


def _which(found: Mechanism) -> Figure:
    return _figure(found, "kind", [(kind_panel, found.kind)] if found.kind is not None else [], COLUMN_WIDTH)


def _how(found: Mechanism) -> Figure:
    part = found.dynamics
    panels: _Panels = [] if part is None else [(constants_panel, part), (dynamics_panel, part)]
    return _figure(found, "dynamics", panels, 1.5 * COLUMN_WIDTH)


FIGURES: dict[str, Callable[[Mechanism], Figure]] = {
    "when": _when,
    "what": _what,
    "axis": _along,
    "kind": _which,
    "dynamics": _how,
}
