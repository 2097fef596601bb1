"""Along which direction do swaps differ from correct trials? A cross-validated discriminant, and whether it is shared.

A swap reports another colour than a correct trial of the same condition does, so any direction that holds the reported
colour tells the two apart: that axis merely finds the colour. Here the reported colour is held fixed. Trials that
report one colour are correct where it was the target's and swaps where it was the distractor's; since the colour is
shown at either place, neither the place nor the cue alone tells which.
"""

from dataclasses import dataclass

import numpy as np
import torch
from markupsafe import Markup
from matplotlib.axes import Axes

from lapsus.circular import distance, wrap
from lapsus.errors import LapsusError
from lapsus.files import to_plain
from lapsus.mechanism.activity import NO_SWAPS
from lapsus.mechanism.clock import Clock
from lapsus.mechanism.decoding import TELLS
from lapsus.mechanism.designs import MARGIN, grid
from lapsus.mechanism.discriminants import (
    discriminant,
    discriminant_scores,
    effective_dimension,
    mean_difference,
    pairwise_cosine,
    random_cosine,
    roc_area,
)
from lapsus.mechanism.drawing import SMALL, interval, legend, time_axis
from lapsus.mechanism.registry import AskedNetwork, Column, Mechanism, Panel, Question, Term
from lapsus.mechanism.replay import Replay, memory_axes, probe_conditions, step_times
from lapsus.mechanism.rings import RingPair, fit_ring_pair
from lapsus.plots.style import BLUE, GREY, VERMILION, wheel
from lapsus.statistics.intervals import limits
from lapsus.tasks import FeatureCued
from lapsus.training.model import Model

__all__ = [
    "QUESTION",
    "Cells",
    "Geometry",
    "Reports",
    "SwapAxis",
    "geometry",
    "location_pairs",
    "report_cells",
    "swap_axis",
]

# Swaps wanted of each location pair and colour, and the least with which a ring or an axis is fitted.
WANTED, LEAST = 80, 20


@dataclass(frozen=True)
class SwapAxis:
    """How well a linear axis tells swaps from correct trials that report the same colour, and whether it is one axis.

    auc: held-out area under the ROC curve at the response, mean over location pairs and colours; low, high: 95 %
    interval over them; null: the same with labels shuffled. times, auc_over_time [time]. colour_confound: the area at
    which an axis fitted without holding the reported colour fixed tells *correct* trials apart by the colour they
    report; where it is as high as auc, that axis finds the colour. shared: mean cos of the axis (which points from
    correct trials to swaps) between location pairs of one colour; across_colours: of opposite colours; shared_null:
    mean |cos| of random vectors of the effective dimension.
    vectors [location, colour, unit]. swaps, correct: trials.
    """

    auc: float
    low: float
    high: float
    null: float
    times: np.ndarray
    auc_over_time: np.ndarray
    colour_confound: float
    shared: float
    across_colours: float
    shared_null: float
    dimension: float
    vectors: np.ndarray
    swaps: int
    correct: int


@dataclass(frozen=True)
class Reports:
    """Trials of one location pair with one fixed colour: activity at the response and who is who.

    m [trial, unit]; reported [trial] bool, whether the response was the fixed colour; target [trial] bool, whether that
    colour was the target's; free [trial] the other item's colour in radians.
    """

    m: np.ndarray
    reported: np.ndarray
    target: np.ndarray
    free: np.ndarray


def swap_axis(
    cells: list[list[Reports]], over_time: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], *, seed: int = 0
) -> SwapAxis:
    """From trials by location pair and fixed colour, cells[location][colour], colours evenly spaced on the circle.

    over_time: times [time], activity [trial, time, unit] of the trials of one cell that report its colour, which of
    them were swaps [trial], and the other item's colour [trial].
    """
    rng = np.random.default_rng(seed)
    held_out, nulls, confounds, lines, swaps, correct = [], [], [], [], 0, 0
    for row in cells:
        line = []
        for cell in row:
            m, swap = cell.m[cell.reported], ~cell.target[cell.reported]
            free = cell.free[cell.reported]
            held_out.append(roc_area(discriminant_scores(m, swap, free, seed=seed), swap))
            shuffled = rng.permutation(swap)
            nulls.append(roc_area(discriminant_scores(m, shuffled, free, seed=seed), shuffled))
            line.append(mean_difference(m, swap))
            swaps, correct = swaps + int(swap.sum()), correct + int((~swap).sum())
            # The axis that does not hold the reported colour fixed: the fixed colour is the target throughout.
            other = cell.target & ~cell.reported
            if other.sum() >= 10:
                w = discriminant(cell.m[cell.target], other[cell.target])
                right = cell.reported == cell.target
                confounds.append(roc_area(cell.m[right] @ w, ~cell.reported[right]))
        lines.append(line)
    vectors, areas = np.array(lines), np.array(held_out)
    colours = vectors.shape[1]

    def cosines(turned: int) -> np.ndarray:
        """Of axes at different places, those of one colour with those of the colour so many further on."""
        others = np.roll(vectors, -turned, 1)
        pairs = [pairwise_cosine(vectors[:, c], others[:, c] if turned else None, signed=True) for c in range(colours)]
        return np.concatenate(pairs) if len(vectors) > 1 else np.empty(0)

    same, opposite = cosines(0), cosines(colours // 2) if colours > 1 else np.empty(0)
    drawn = areas[rng.integers(len(areas), size=(500, len(areas)))].mean(1)
    low, high = limits(drawn)
    times, path, swapped, free = over_time
    curve = np.array(
        [roc_area(discriminant_scores(path[:, k], swapped, free, seed=seed), swapped) for k in range(len(times))]
    )
    dimension = effective_dimension(np.concatenate([cell.m for row in cells for cell in row]))
    mean = lambda values: float(np.mean(values)) if len(values) else float("nan")
    return SwapAxis(
        auc=float(areas.mean()),
        low=float(low),
        high=float(high),
        null=float(np.mean(nulls)),
        times=np.asarray(times, dtype=float),
        auc_over_time=curve,
        colour_confound=mean(confounds),
        shared=mean(same),
        across_colours=mean(opposite),
        shared_null=random_cosine(dimension),
        dimension=dimension,
        vectors=vectors,
        swaps=swaps,
        correct=correct,
    )


# --- Asking a network ---


@dataclass(frozen=True)
class Geometry:
    """axis: how swaps differ from correct trials that report the same colour. rings: [location][colour], of trials with
    the fixed colour cued; None where there were too few swaps. pairs [location, 2] and colours [colour] in radians."""

    axis: SwapAxis
    rings: list[list[RingPair | None]]
    pairs: np.ndarray
    colours: np.ndarray

    @property
    def fitted(self) -> list[RingPair]:
        """Pairs of rings that could be fitted."""
        return [pair for row in self.rings for pair in row if pair is not None]

    @property
    def tells(self) -> bool:
        """Whether memory surely tells swaps from correct trials that report the same colour."""
        return self.axis.low >= TELLS

    def mean_ring(self, name: str) -> float | None:
        """Mean of one number over the fitted pairs of rings."""
        return float(np.mean([getattr(pair, name) for pair in self.fitted])) if self.fitted else None

    def row(self) -> dict:
        """Columns of a table."""
        axis = self.axis
        areas = {"axis_auc": axis.auc, "colour_confound": axis.colour_confound}
        shared = {"shared": axis.shared, "shared_null": axis.shared_null}
        return areas | shared | {"ring_distance": self.mean_ring("distance")}


@dataclass(frozen=True)
class Cells:
    """Trials by location pair and fixed colour, and one cell's course in time: cells[location][colour]; times [time],
    path [trial, time, unit], swap [trial] and the other colour free [trial] of trials that report the first cell's."""

    cells: list[list[Reports]]
    times: np.ndarray
    path: np.ndarray
    swap: np.ndarray
    free: np.ndarray


def location_pairs(model: Model, count: int, probe_distance: float) -> np.ndarray:
    """Pairs of probes [location, 2], evenly turned; where the task has fixed places, the two orders of them."""
    if isinstance(model.task, FeatureCued):
        return np.stack([grid(count), wrap(grid(count) + probe_distance)], 1)
    return np.array([[-np.pi, 0.0], [0.0, -np.pi]])


def _conditions(model: Model, pairs: np.ndarray, colours: np.ndarray, free: int) -> tuple[dict, np.ndarray]:
    """One colour fixed at either place of a pair (or, where places are fixed, at that of the pair's order), all others
    at the other one, both cues; and [condition, 4]: location, colour, place of the fixed colour, cued item."""
    fixed_places = not isinstance(model.task, FeatureCued)
    rows = []
    for k in range(len(pairs)):
        for c, colour in enumerate(colours):
            others = wrap(colour + grid(free))
            for other in others[distance(others, colour) >= MARGIN - 1e-9]:
                for place in (k,) if fixed_places else (0, 1):
                    rows += [(k, c, place, cued, other) for cued in (0, 1)]
    table = np.array(rows)
    label = table[:, :4].astype(int)
    report = np.empty((len(table), 2))
    at = np.arange(len(table))
    report[at, label[:, 2]], report[at, 1 - label[:, 2]] = colours[label[:, 1]], table[:, 4]
    probe = np.tile([-np.pi, 0.0], (len(table), 1)) if fixed_places else pairs[label[:, 0]]
    given = {
        "report": torch.as_tensor(report, dtype=torch.float32),
        "probe": torch.as_tensor(probe, dtype=torch.float32),
        "cued": torch.as_tensor(label[:, 3]),
    }
    return given, label


def report_cells(
    model: Model, pairs: np.ndarray, colours: np.ndarray, *, seed: int = 0, threads: int | None = None
) -> Cells:
    """Simulate each location pair and fixed colour with as many trials as give about 80 swaps in each."""
    trial_run = Replay.of(model, probe_conditions(model, 512, seed, abs(wrap(pairs[0, 1] - pairs[0, 0]))))
    rate = float((trial_run.swaps(trial_run.run(trial_run.initial(1, seed), seed, threads=threads)[0])).swap.mean())
    if rate == 0:
        raise LapsusError(f"{NO_SWAPS} among the 512 simulated for it")
    given, label = _conditions(model, pairs, colours, free=16)
    cell = label[:, 0] * len(colours) + label[:, 1]
    share = np.bincount(cell).min() / 2
    trials = int(np.clip(np.ceil(WANTED / (rate * share)), 8, 96))
    task = Replay.of(model, given)
    null = memory_axes(model)
    found: list[list[Reports]] = []
    for k in range(len(pairs)):
        row: list[Reports] = []
        for c in range(len(colours)):
            own = np.flatnonzero((label[:, 0] == k) & (label[:, 1] == c))
            # Where the task has a latent cause, a trial is one condition of its own.
            part = task.only(own).each(trials, seed + len(row))
            x_T, path = part.run(part.initial(1, seed + k), seed + 100 * k + c, keep=True, threads=threads)
            outcome = part.swaps(x_T)
            sure = (outcome.swap | outcome.correct)[:, 0]
            target = np.repeat(label[own, 2] == label[own, 3], trials)
            reported = np.where(outcome.swap[:, 0], ~target, target)
            other = np.repeat(given["report"][own].numpy()[np.arange(len(own)), 1 - label[own, 2]], trials)
            m = (null @ path[-1][:, :, 0]).numpy().T.astype(float)
            row.append(Reports(m[sure], reported[sure], target[sure], other[sure]))
            if k == c == 0:
                chosen = np.flatnonzero(sure & reported)
                course = torch.einsum("mu,sut->tsm", null, path[:, :, chosen, 0]).numpy().astype(float)
                swapped, others = ~target[chosen], other[chosen]
        found.append(row)
    return Cells(found, step_times(model), course, swapped, others)


def rings_of(cell: Reports) -> RingPair | None:
    """The rings of trials with the fixed colour cued; None where one of them has too few trials."""
    m, reported, free = (values[cell.target] for values in (cell.m, cell.reported, cell.free))
    if min(reported.sum(), (~reported).sum()) < LEAST:
        return None
    return fit_ring_pair(m, free, reported)


def geometry(
    model: Model,
    *,
    locations: int = 4,
    colours: int = 4,
    probe_distance: float = np.pi / 4,
    seed: int = 0,
    threads: int | None = None,
) -> Geometry:
    """The swap axis with the reported colour held fixed, and rings fitted directly, of a network."""
    pairs, fixed = location_pairs(model, locations, probe_distance), grid(colours)
    cells = report_cells(model, pairs, fixed, seed=seed, threads=threads)
    fewest = min(int((cell.reported & ~cell.target).sum()) for row in cells.cells for cell in row)
    if fewest < LEAST:
        raise LapsusError(f"only {fewest} swap trials at one pair of locations, and this analysis needs {LEAST}")
    shown = np.unique(np.append(np.arange(0, len(cells.times), 3), len(cells.times) - 1))
    axis = swap_axis(cells.cells, (cells.times[shown], cells.path[:, shown], cells.swap, cells.free), seed=seed)
    return Geometry(axis, [[rings_of(cell) for cell in row] for row in cells.cells], pairs, fixed)


def _ask(network: AskedNetwork) -> Geometry:
    return geometry(network.model, locations=network.sizes.locations, colours=network.sizes.colours, **network.settings)


def _public(found: Geometry) -> dict:
    """Without vectors, and rings as means."""
    plain = to_plain(found.axis)
    plain.pop("vectors")
    rings = {name: to_plain(found.mean_ring(name)) for name in ("explained", "distance", "parallel")}
    dimensions = [pair.recalled.dimensions for pair in found.fitted]
    rings["dimensions"] = to_plain(np.median(dimensions)) if dimensions else None
    return plain | {"rings": {"fitted": len(found.fitted)} | rings}


# --- Words and panels ---


def _sentence(found: Geometry, mechanism: Mechanism) -> str:
    axis = found.axis
    measured = f"held-out AUC {interval((axis.auc, axis.low, axis.high))}, shuffled {axis.null:.2f}"
    if not found.tells:
        read, by = mechanism.decoding, ""
        if read is not None and read.at_response >= TELLS:
            by = f"a held-out decoder reads the swap from memory at the response (AUC {read.at_response:.2f}), but by"
            by += " the reported colour: "
        return (
            f"Axis: {by}among trials that report the same colour, memory hardly tells swaps from correct ones"
            f" ({measured}). An axis that does not hold that colour fixed finds the colour itself (it separates correct"
            f" trials by their colour with an AUC of {axis.colour_confound:.2f})."
        )
    same = "one axis for all places" if axis.shared > axis.shared_null else "different axes at different places"
    return (
        f"Axis: among trials that report the same colour, memory tells swaps from correct ones ({measured}), along"
        f" {same} (cos {axis.shared:z.2f}; random directions {axis.shared_null:.2f}): memory still holds which colour"
        " was asked for."
    )


def _area_panel(ax: Axes, axis: SwapAxis, clock: Clock, onset: float) -> Axes:
    """Held-out separation of swaps from correct trials that report the same colour, over time."""
    times = clock.shown(axis.times)
    last = [times[-1]]
    ax.axhline(0.5, color=GREY, lw=0.6, ls=(0, (3, 2)))
    ax.plot(times, axis.auc_over_time, color=VERMILION, label="one place and colour")
    error = [[axis.auc - axis.low], [axis.high - axis.auc]]
    ax.errorbar(last, [axis.auc], error, fmt="o", ms=3, color="k", label=f"all of them: {axis.auc:.2f}")
    ax.plot(last, [axis.null], "_", color=GREY, ms=7, mew=1.4, label=f"labels shuffled: {axis.null:.2f}")
    wrong = f"colour not held fixed: {axis.colour_confound:.2f}"
    ax.plot(last, [axis.colour_confound], "x", color=BLUE, ms=4, label=wrong)
    legend(ax)
    return time_axis(ax, clock, "was the reported colour asked for?\n(AUC, held out)", onset, top=1.05, bottom=0.3)


def _cosine_panel(ax: Axes, axis: SwapAxis) -> Axes:
    """The axis between places and between opposite colours, against random directions (grey)."""
    ax.axhspan(-axis.shared_null, axis.shared_null, color="0.9", lw=0, zorder=0)
    ax.text(0.5, -axis.shared_null + 0.03, "random directions", ha="center", fontsize=SMALL, color="0.4")
    ax.axhline(0, color=GREY, lw=0.5)
    ax.plot([0], [axis.shared], "o", color=VERMILION, ms=5, label="other place")
    ax.plot([1], [axis.across_colours], "o", color=BLUE, ms=5, label="opposite colour")
    ax.set(ylim=(-1.05, 1.05), xlim=(-0.6, 1.6), ylabel="cos of the swap axis")
    ax.set_xticks([0, 1], ["at other\nplaces", "of opposite\ncolours"], fontsize=SMALL)
    return ax


def _rings_panel(ax: Axes, found: Geometry) -> Axes:
    """The two fitted rings of one place and colour, seen at an angle: up is the normal that both have in common."""
    pair = found.fitted[0]
    rings = (pair.recalled, pair.other)
    colour = np.linspace(-np.pi, np.pi, 33)
    middle = (pair.recalled.centre + pair.other.centre) / 2
    # Across and into the page: where the two rings together are widest.
    extent = np.concatenate([ring.radii[:, None] * ring.plane for ring in rings])
    across, depth = np.linalg.svd(extent)[2][:2]
    for ring, face in zip(rings, (wheel(colour), "w")):
        points = ring.at(colour) - middle
        x, y = points @ across + 0.4 * points @ depth, points @ pair.normal + 0.2 * points @ depth
        ax.plot(x, y, color="0.6", lw=0.7, zorder=1)
        ax.scatter(x, y, c=face, edgecolors=wheel(colour), s=11, linewidths=0.9, zorder=2)
    ax.set(xticks=[], yticks=[], ylabel="normal of the rings", xlabel="plane of the rings")
    apart, parallel, explained = (found.mean_ring(name) for name in ("distance", "parallel", "explained"))
    words = f"{apart:.1f} s.d. apart; planes' cos {parallel:.2f};\nR² of the colour {explained:.2f}"
    ax.set_title(f"{words}\nfilled: fixed colour recalled;\nopen: the other", fontsize=SMALL, linespacing=1.2)
    ax.margins(0.12)
    return ax


def _panels(answer: Geometry, found: Mechanism) -> list[Panel]:
    onset = found.commitment.cue_onset if found.commitment is not None else float("nan")
    panels = [
        Panel(lambda ax: _area_panel(ax, answer.axis, found.clock, onset), 1.3),
        Panel(lambda ax: _cosine_panel(ax, answer.axis), 0.7),
    ]
    return [*panels, Panel(lambda ax: _rings_panel(ax, answer), 1.2)] if answer.fitted else panels


QUESTION = Question(
    name="swap_axis",
    title="Along which direction?",
    definition="How well a direction of memory tells swaps from correct trials that report the same colour.",
    in_recording="Among trials that report one colour, a decoder would tell swaps from correct ones.",
    answer=Geometry,
    ask=_ask,
    read="this needs many trials that report one colour at each pair of places; see `decoding`",
    sentence=_sentence,
    panels=_panels,
    caption=(
        "Left: how well held-out swaps are told from correct trials that report the same colour. Among these, swaps are"
        " the trials in which the other item was cued, so right after the cue the axis reads the cue and only later the"
        " outcome. Then: cosine of the swap axis between places and between opposite colours (grey: random directions);"
        " the two rings fitted at one place, with their common normal pointing up."
    ),
    unknown="The swap axis is not known",
    public=_public,
    terms=(
        Term(
            "rings",
            "activity at the response, over all colours of one item, forms a ring; swaps may lie on another one.",
            "At the response, swap trials would lie on a ring of their own, shifted along a direction normal to both.",
            Markup(
                '<ellipse cx="48" cy="15" rx="36" ry="9"/>'
                '<ellipse cx="48" cy="35" rx="36" ry="9" stroke-dasharray="3 3"/>'
            ),
            r"\brings\b",
        ),
    ),
    columns=(
        Column(
            "axis",
            lambda found, _: f"{found.axis.auc:.2f}",
            "the held-out area under the ROC curve of the swap axis at the response, the reported colour held fixed",
        ),
        Column("colour", lambda found, _: f"{found.axis.colour_confound:.2f}", "the AUC of the reported colour alone"),
    ),
    statistics={"auc": "Swap axis, held-out area under the ROC curve"},
)
