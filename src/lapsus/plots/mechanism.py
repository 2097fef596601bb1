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
    PAGE_POINTS,
    PURPLE,
    SKY,
    TEXT_WIDTH,
    VERMILION,
    mark_epochs,
    note,
    style,
    wheel,
)
from lapsus.study.geometry import Geometry
from lapsus.study.mechanism import Mechanism, parting

__all__ = [
    "FIGURES",
    "axis_panel",
    "commitment_panel",
    "dynamics_panel",
    "kind_panel",
    "push_panel",
    "transplant_panel",
]

SHADES = {"misbinding": GREEN, "misselection": VERMILION, "misinterpretation": BLUE}
SMALL = "small"


def _time(ax: Axes, ylabel: str, onset: float, *, top: float = 1.02, bottom: float = -0.05) -> Axes:
    """Time on the x axis with the cue marked, from its onset in steps (NaN: not known) to its offset."""
    if np.isfinite(onset):
        mark_epochs(ax, onset)
    ax.set(xlabel="time from cue offset (steps)", ylabel=ylabel, ylim=(bottom, top))
    return ax


def _triple(values: tuple[float, float, float], percent: bool = False) -> str:
    value, low, high = (100 * v for v in values) if percent else values
    return f"{value:.0f} % [{low:.0f}, {high:.0f}]" if percent else f"{value:+z.2f} [{low:+z.2f}, {high:+z.2f}]"


def commitment_panel(ax: Axes, found: Commitment) -> Axes:
    """Share of the outcome's variance that is fixed at each time, with its 95 % band over conditions."""
    ax.axhline(0, color=GREY, lw=0.5)
    ax.fill_between(found.times, found.low, found.high, color=VERMILION, alpha=0.25, lw=0)
    ax.plot(found.times, found.share, color=VERMILION, marker="o", ms=2.5)
    ax.plot([found.times[0], found.half_time, found.half_time], [0.5, 0.5, 0], color=GREY, lw=0.7, ls=(0, (3, 2)))
    ax.text(found.half_time + 1, 0.06, f"half at {found.half_time:.0f}", fontsize=SMALL, color="0.3")
    value, low, high = (100 * v for v in found.before_cue)
    many = f"{found.conditions} conditions × {found.groups} pasts × {found.replays} replays"
    fixed = f"fixed at cue onset: {value:z.0f} % [{low:z.0f}, {high:z.0f}]"
    ax.set_title(f"{fixed}\n{many}", fontsize=SMALL, color="0.35", pad=12, linespacing=1.2)
    return _time(ax, "share of the outcome fixed", found.cue_onset)


def transplant_panel(ax: Axes, found: Transplant, onset: float = float("nan")) -> Axes:
    """p(swap) with fresh noise from states put together from a swap and a correct trial."""
    for name, colour, label in (
        ("swap", VERMILION, "all from a swap trial"),
        ("x_from_swap", ORANGE, f"x alone: {_triple(found.carried_by_x, True)}"),
        ("m_from_swap", PURPLE, f"m alone: {_triple(found.carried_by_m, True)}"),
        ("correct", BLUE, "all from a correct trial"),
    ):
        low, high = found.intervals[name]
        ax.fill_between(found.times, low, high, color=colour, alpha=0.2, lw=0)
        ax.plot(found.times, getattr(found, name), color=colour, label=label)
    ax.plot(found.times, found.null, color=GREY, lw=0.8, ls=(0, (2, 1)), label="null: x of another correct trial")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.12, 1.06), fontsize=SMALL, handlelength=1.2, labelspacing=0.3)
    return _time(ax, "p(swap) from there on", onset)


def push_panel(ax: Axes, found: Push) -> Axes:
    """p(swap) after pushes along directions of the same length; log odds a s.d. beyond random directions."""
    colours = {"alignment": PURPLE, "misbinding": GREEN, "swap axis": VERMILION, "response": ORANGE, "random": GREY}
    for name, values in found.p.items():
        more = "" if name == "random" else f" {_triple(found.against_random[name])}"
        line = {"ls": (0, (2, 1))} if name == "random" else {}
        ax.plot(found.sizes, values, marker="o", ms=2.5, color=colours.get(name, "k"), label=name + more, **line)
    where = "at cue onset" if found.time < 0 else f"at step {found.time:.0f}"
    ax.set(xlabel="push (s.d. of memory)", ylabel="p(swap)", ylim=(-0.02, 1.02))
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(-0.12, 1.06),
        fontsize=SMALL,
        handlelength=1.2,
        labelspacing=0.3,
        title=f"push {where};\nlog odds a s.d. beyond random",
        title_fontsize=SMALL,
        alignment="left",
    )
    return ax


def axis_panel(ax: Axes, found: Geometry, onset: float = float("nan")) -> Axes:
    """Held-out separation of swaps from correct trials that report the same colour, over time."""
    part = found.axis
    ax.axhline(0.5, color=GREY, lw=0.6, ls=(0, (3, 2)))
    ax.plot(part.times, part.auc_over_time, color=VERMILION, label="one place and colour")
    error = [[part.auc - part.low], [part.high - part.auc]]
    ax.errorbar([part.times[-1]], [part.auc], error, fmt="o", ms=3, color="k", label=f"all of them: {part.auc:.2f}")
    ax.plot([part.times[-1]], [part.null], "_", color=GREY, ms=7, mew=1.4, label=f"labels shuffled: {part.null:.2f}")
    wrong = f"colour not held fixed: {part.colour_confound:.2f}"
    ax.plot([part.times[-1]], [part.colour_confound], "x", color=BLUE, ms=4, label=wrong)
    ax.legend(loc="lower left", bbox_to_anchor=(-0.12, 1.06), fontsize=SMALL, handlelength=1.2, labelspacing=0.3)
    return _time(ax, "was the reported colour asked for?\n(area, held out)", onset, top=1.05, bottom=0.3)


def axis_cosines(ax: Axes, found: Geometry) -> Axes:
    """The axis between places and between opposite colours, against random directions (grey)."""
    part = found.axis
    ax.axhspan(-part.shared_null, part.shared_null, color="0.9", lw=0, zorder=0)
    ax.text(0.5, -part.shared_null + 0.03, "random directions", ha="center", fontsize=SMALL, color="0.4")
    ax.axhline(0, color=GREY, lw=0.5)
    ax.plot([0], [part.shared], "o", color=VERMILION, ms=5, label="other place")
    ax.plot([1], [part.across_colours], "o", color=BLUE, ms=5, label="opposite colour")
    ax.set(ylim=(-1.05, 1.05), xlim=(-0.6, 1.6), ylabel="cos of the swap axis")
    ax.set_xticks([0, 1], ["at other\nplaces", "of opposite\ncolours"], fontsize=SMALL)
    return ax


def rings_panel(ax: Axes, found: Geometry) -> Axes:
    """The two fitted rings of one place and colour, seen at an angle: up is the normal that both have in common."""
    pair = found.fitted[0]
    colour = np.linspace(-np.pi, np.pi, 33)
    middle = (pair.recalled.centre + pair.other.centre) / 2
    # Across and into the page: where the two rings together are widest.
    across, depth = np.linalg.svd(np.concatenate([r.radii[:, None] * r.plane for r in (pair.recalled, pair.other)]))[2][
        :2
    ]
    for ring, filled in ((pair.recalled, True), (pair.other, False)):
        points = ring.at(colour) - middle
        x, y = points @ across + 0.4 * points @ depth, points @ pair.normal + 0.2 * points @ depth
        ax.plot(x, y, color="0.6", lw=0.7, zorder=1)
        face = wheel(colour) if filled else "w"
        ax.scatter(x, y, c=face, edgecolors=wheel(colour), s=11, linewidths=0.9, zorder=2)
    ax.set(xticks=[], yticks=[], ylabel="normal of the rings", xlabel="plane of the rings")
    apart, parallel, explained = (
        np.mean([getattr(one, name) for one in found.fitted]) for name in ("distance", "parallel", "explained")
    )
    words = f"{apart:.1f} s.d. apart; planes' cos {parallel:.2f};\nR² of the colour {explained:.2f}"
    ax.set_title(f"{words}\nfilled: fixed colour recalled;\nopen: the other", fontsize=SMALL, linespacing=1.2)
    ax.margins(0.12)
    return ax


def kind_panel(ax: Axes, found: Kind, apart: float | None = None) -> Axes:
    """Weights of the three predictions in held-out swap trials (thick) and correct trials (thin) over time, and the
    share of swap trials whose memory is that of the other cue; apart: from which step on trials differ."""
    for name in KINDS:
        ax.plot(found.times, found.over_time_correct[name], color=SHADES[name], lw=0.5)
        ax.plot(found.times, found.over_time[name], color=SHADES[name], label=name)
    for level in (0, 1):
        ax.axhline(level, color=GREY, lw=0.5, ls=(0, (3, 2)), zorder=0)
    if apart is not None:
        ax.axvline(apart, color="0.4", lw=0.7, ls=(0, (1, 1)), zorder=0)
        ax.text(apart, -0.5, " trials part", fontsize=SMALL, color="0.35", va="center")
    ax.plot([], [], color="0.3", lw=0.5, label="thin: correct trials")
    if np.isfinite(found.misread_over_time).any():
        style = {"color": "0.3", "lw": 0.9, "ls": (0, (2, 1))}
        ax.plot(found.times, found.misread_over_time, **style, label="swaps with the other cue's memory")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.12, 1.06), fontsize=SMALL, handlelength=1.2, labelspacing=0.3)
    ax.set_xlim(right=found.times[-1] + 1)
    return _time(ax, "weight of the prediction", found.cue_onset, top=1.5, bottom=-0.6)


def weights_panel(ax: Axes, found: Kind, said: str) -> Axes:
    """Weights at the end of delay 2, swap minus correct trials, with their 95 % intervals; said: what they decide."""
    for level in (0, 1):
        ax.axvline(level, color=GREY, lw=0.5, ls=(0, (3, 2)), zorder=0)
    for k, name in enumerate(KINDS):
        value, low, high = found.weights[name]
        ax.plot([low, high], [-k, -k], color=SHADES[name], lw=1.4)
        ax.plot([value], [-k], "o", color=SHADES[name], ms=4, label=name)
    ax.set(yticks=[0, -1, -2], ylim=(-2.6, 0.6), xlim=(-0.35, 1.35), xlabel="weight at the response")
    ax.set_yticklabels(KINDS)
    angle = f"predictions {found.angle:.0f}° apart; " if np.isfinite(found.angle) else ""
    ax.set_title(f"{said}\n({angle}{found.swaps:,} swaps)", fontsize=SMALL, linespacing=1.2)
    return ax


def dynamics_panel(ax: Axes, found: Dynamics, measured: Commitment | None = None) -> Axes:
    """Stretch of one step in delay 2, and what linear response expects of commitment beside what was measured."""
    part = found.divergence
    ax.axhline(0, color=GREY, lw=0.5)
    if measured is not None:
        late = measured.times >= 0
        ax.plot(measured.times[late], measured.share[late], "o", color=VERMILION, ms=2.5, label="commitment, measured")
    expected = "expected by linear response"
    if np.isfinite(found.agreement):
        expected += f" (r = {found.agreement:.2f})"
    ax.plot(part.times, part.predicted, color=VERMILION, ls=(0, (3, 1)), label=expected)
    ax.plot(part.times, part.growth, color=BLUE, label="log stretch of a step")
    ax.plot(part.times, part.exponent, color=SKY, lw=0.9, label="Lyapunov exponent to the response")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.12, 1.02), fontsize=SMALL, handlelength=1.4, labelspacing=0.3)
    ax.set(xlabel="time from cue offset (steps)", ylabel="share fixed; log stretch", ylim=(-0.25, 1.05))
    return ax


def constants_panel(ax: Axes, found: Dynamics) -> Axes:
    """Time constants before the cue and under it."""
    for values, colour, label in ((found.time_constants, "k", "delay 1"), (found.cue_time_constants, ORANGE, "cue on")):
        # Modes that do not decay have no time constant (null in a file).
        known = np.isfinite(values).any() or np.isinf(values).any()
        shown = np.minimum(np.nan_to_num(values, nan=1e4, posinf=1e4), 1e4) if known else values
        ax.plot(np.arange(1, len(values) + 1), shown, "o-", ms=2.5, lw=0.7, color=colour, label=label)
    ax.set(yscale="log", xlabel="mode", ylabel="time constant (steps)", ylim=(1, 1.5e4))
    ax.set_yticks([1, 10, 100, 1000, 1e4], ["1", "10", "100", "1000", "never\ndecays"])
    ax.minorticks_off()
    many = f"{found.fixed_points:,} fixed point{'s' * (found.fixed_points != 1)}"
    lasts = f"memories last {found.lifetime:.0f} steps" if np.isfinite(found.lifetime) else "memories stay"
    filled = f", {found.manifold_dimension:.1f} dimensions" if found.manifold_dimension else ""
    ax.set_title(f"{many}{filled}\n(from {found.starts:,} states); {lasts}", fontsize=SMALL, linespacing=1.2)
    ax.legend(fontsize=SMALL)
    return ax


def decoding_panel(ax: Axes, found: Decoding) -> Axes:
    """Held-out decoding of the coming swap: for a recording, all that can be said about when."""
    ax.axhline(0.5, color=GREY, lw=0.6, ls=(0, (3, 2)))
    ax.plot(found.times, found.null, color=GREY, lw=0.7, label="labels shuffled")
    ax.plot(found.times, found.auc, color=BLUE, label="coming swap")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.12, 1.06), fontsize=SMALL, handlelength=1.2, labelspacing=0.3)
    return _time(ax, "read from memory\n(area, held out)", found.onset, top=1.05, bottom=0.3)


_Panels = list[tuple[Callable[..., Axes], tuple]]


def _figure(found: Mechanism, question: str, panels: _Panels, width: float, ratios: tuple[float, ...] = ()) -> Figure:
    with style(PAGE_POINTS):
        count = max(len(panels), 1)
        fig, axes = plt.subplots(
            1,
            count,
            figsize=(width, 2.8),
            layout="constrained",
            squeeze=False,
            width_ratios=ratios if len(ratios) == count else None,
        )
        if not panels:
            note(axes[0, 0], found.left_out.get(question, "not asked"))
        for ax, (draw, parts) in zip(axes[0], panels):
            draw(ax, *parts)
    return fig


def _onset(found: Mechanism) -> float:
    """Of the cue, in steps from its offset, from whichever part knows it."""
    known = [found.commitment.cue_onset] if found.commitment is not None else []
    known += [found.decoding.onset] if found.decoding is not None else []
    return next((value for value in known if np.isfinite(value)), float("nan"))


def _when(found: Mechanism) -> Figure:
    panels: _Panels = [(commitment_panel, (found.commitment,))] if found.commitment is not None else []
    panels += [(decoding_panel, (found.decoding,))] if found.decoding is not None else []
    return _figure(found, "commitment", panels, TEXT_WIDTH if len(panels) > 1 else COLUMN_WIDTH)


def _what(found: Mechanism) -> Figure:
    panels: _Panels = []
    if found.transplant is not None:
        panels.append((transplant_panel, (found.transplant, _onset(found))))
    panels += [(push_panel, (one,)) for one in (found.pushes or {}).values()]
    return _figure(found, "transplant", panels, TEXT_WIDTH)


def _along(found: Mechanism) -> Figure:
    geometry = found.swap_axis
    if geometry is None:
        return _figure(found, "swap_axis", [], COLUMN_WIDTH)
    panels: _Panels = [(axis_panel, (geometry, _onset(found))), (axis_cosines, (geometry,))]
    panels += [(rings_panel, (geometry,))] if geometry.fitted else []
    return _figure(found, "swap_axis", panels, TEXT_WIDTH, (1.3, 0.7, 1.2))


def _which(found: Mechanism) -> Figure:
    if found.kind is None:
        return _figure(found, "kind", [], COLUMN_WIDTH)
    apart = parting(found.kind, found.decoding)
    said = "not known" if "kind" in found.contradicted else found.kind.decision
    panels: _Panels = [(kind_panel, (found.kind, apart and apart[0])), (weights_panel, (found.kind, said))]
    return _figure(found, "kind", panels, TEXT_WIDTH, (1.4, 1))


def _how(found: Mechanism) -> Figure:
    part = found.dynamics
    panels: _Panels = [] if part is None else [(constants_panel, (part,)), (dynamics_panel, (part, found.commitment))]
    return _figure(found, "dynamics", panels, TEXT_WIDTH)


FIGURES: dict[str, Callable[[Mechanism], Figure]] = {
    "when": _when,
    "what": _what,
    "axis": _along,
    "kind": _which,
    "dynamics": _how,
}
