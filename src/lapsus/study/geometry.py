"""The swap axis and the two rings of a network, from trials with one colour fixed at a few pairs of locations."""

from dataclasses import dataclass

import numpy as np
import torch

from lapsus.analysis.activity import NO_SWAPS
from lapsus.analysis.ring_fit import RingPair, fit_ring_pair
from lapsus.analysis.swap_axis import Reports, SwapAxis, swap_axis
from lapsus.circular import distance, wrap
from lapsus.errors import LapsusError
from lapsus.study.designs import MARGIN, grid
from lapsus.study.replay import Replay, probe_conditions, step_times
from lapsus.tasks import FeatureCued
from lapsus.training.model import Model

__all__ = ["Cells", "Geometry", "geometry", "location_pairs", "report_cells"]

# Swaps wanted of each location pair and colour, and the least with which a ring or an axis is fitted.
WANTED, LEAST = 80, 20


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
        raise LapsusError(NO_SWAPS)
    given, label = _conditions(model, pairs, colours, free=16)
    cell = label[:, 0] * len(colours) + label[:, 1]
    share = np.bincount(cell).min() / 2
    trials = int(np.clip(np.ceil(WANTED / (rate * share)), 8, 96))
    task = Replay.of(model, given)
    null = torch.linalg.svd(model.network.readout, full_matrices=True)[2][len(model.network.readout) :]
    found: list[list[Reports]] = []
    for k in range(len(pairs)):
        row: list[Reports] = []
        for c in range(len(colours)):
            own = np.flatnonzero((label[:, 0] == k) & (label[:, 1] == c))
            part = Replay(task.model, {n: v[own] for n, v in given.items()}, task.drives[:, own], task.biases)
            # Where the task has a latent cause, a trial is one condition of its own.
            part = part.each(trials, seed + len(row))
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
