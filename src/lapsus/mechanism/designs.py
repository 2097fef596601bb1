"""Which trials the figures look at: conditions as dictionaries of arrays, `report [C, 2]`, `probe [C, 2]`, `cued [C]`
from 0."""

import numpy as np

from lapsus.circular import distance, wrap

__all__ = ["alignment_grid", "colour_pairs", "grid", "pair", "ring_design"]

MARGIN = np.pi / 4


def grid(count: int = 24) -> np.ndarray:
    """Evenly spaced angles from -pi, [count]."""
    return -np.pi + 2 * np.pi * np.arange(count) / count


def colour_pairs() -> np.ndarray:
    """All ordered pairs of grid colours at least the task's margin apart: [pair, 2]."""
    first, second = (values.ravel() for values in np.meshgrid(grid(), grid(), indexing="ij"))
    kept = distance(first, second) >= MARGIN - 1e-9
    return np.stack([first, second], 1)[kept]


def _both_cues(report: np.ndarray, probe: np.ndarray, **extra: np.ndarray) -> dict[str, np.ndarray]:
    double = lambda values: np.concatenate([values, values])
    cued = np.repeat([0, 1], len(report))
    return {"report": double(report), "probe": double(probe), "cued": cued} | {
        name: double(v) for name, v in extra.items()
    }


def alignment_grid(probe_distance: float | None = None, rotations: int = 24) -> dict[str, np.ndarray]:
    """All colour pairs of the 24-point grid and both cues, at one probe distance in each rotation (Fig 3).

    Without a distance: one configuration, opposite places (index-cued). `configuration` numbers the rotations.
    """
    pairs = colour_pairs()
    starts = grid(rotations) if probe_distance is not None else np.array([-np.pi])
    gap = np.pi if probe_distance is None else probe_distance
    report = np.tile(pairs, (len(starts), 1))
    configuration = np.repeat(np.arange(len(starts)), len(pairs))
    probe = wrap(np.stack([starts, starts + gap], 1))[configuration]
    return _both_cues(report, probe, configuration=configuration)


def pair(probe_distance: float) -> dict[str, np.ndarray]:
    """One condition: target with probe and report 0, distractor at that distance and report -2π/3 (Fig 2B to E)."""
    return {
        "report": np.array([[0.0, wrap(-2 * np.pi / 3)]]),
        "probe": np.array([[0.0, wrap(probe_distance)]]),
        "cued": np.array([0]),
    }


def ring_design(fixed_colours: np.ndarray, probes: np.ndarray, *, free: int = 24) -> dict[str, np.ndarray]:
    """Item 1 has a fixed colour, item 2 each of `free` grid colours beyond the margin, for each pair of probes
    [configuration, 2]; both cues. `configuration` and `fixed_colour` number the two."""
    reports, colours, numbers = [], [], []
    for k in range(len(probes)):
        for c, fixed in enumerate(fixed_colours):
            others = wrap(fixed + grid(free))
            others = others[distance(others, fixed) >= MARGIN - 1e-9]
            reports.append(np.stack([np.full(len(others), fixed), others], 1))
            colours.append(np.full(len(others), c))
            numbers.append(np.full(len(others), k))
    report, colour, configuration = (np.concatenate(values) for values in (reports, colours, numbers))
    probe = np.asarray(probes)[configuration]
    return _both_cues(wrap(report), wrap(probe), configuration=configuration, fixed_colour=colour)
