"""What carries a swap? Results of transplants (parts of the state exchanged between trials) and of pushes.

Both are experiments on a network (lapsus.study.transplants); here are their numbers with intervals over conditions.
"""

from dataclasses import dataclass

import numpy as np

from lapsus.errors import LapsusError
from lapsus.statistics.intervals import Interval, limits, resampled_interval

__all__ = ["Push", "Transplant", "push_effects", "transplant_curves"]

# Where swap and correct donors differ by less than this in p(swap), there is nothing yet to be carried.
APART = 0.25


@dataclass(frozen=True)
class Transplant:
    """p(swap) after fresh noise from states put together from a swap and a correct trial of the same condition.

    times [time] in steps from cue offset. swap and correct: both parts from one trial; x_from_swap: the behavioural
    part x from the swap trial and memory m from the correct one; m_from_swap: the reverse; null: x and m from two
    different correct trials; each [time]. intervals: name → [2, time], 95 % over conditions.
    carried_by_x, carried_by_m: share of the difference between swap and correct donors that comes with each part, over
    the times at which that difference is at least 0.25, with 95 % intervals. pairs: donors; conditions: how many.
    """

    times: np.ndarray
    swap: np.ndarray
    correct: np.ndarray
    x_from_swap: np.ndarray
    m_from_swap: np.ndarray
    null: np.ndarray
    intervals: dict[str, np.ndarray]
    carried_by_x: Interval
    carried_by_m: Interval
    pairs: int
    conditions: int


def _resampled(count: int, repeats: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(count, size=(repeats, count))


def transplant_curves(
    times: np.ndarray, p: dict[str, np.ndarray], pairs: np.ndarray, *, repeats: int = 500, seed: int = 0
) -> Transplant:
    """From p(swap) [condition, time] of each combination, conditions weighted by their number of donor pairs."""
    count = len(pairs)
    if count == 0:
        raise LapsusError("no condition has both a swap and a correct trial")
    rows = _resampled(count, repeats, seed)
    mean = lambda values, rows: (values[rows] * pairs[rows][..., None]).sum(-2) / pairs[rows].sum(-1)[..., None]
    whole = np.arange(count)
    curve = {name: mean(values, whole) for name, values in p.items()}
    drawn = {name: mean(values, rows) for name, values in p.items()}
    apart = curve["swap"] - curve["correct"] >= APART
    carried = {}
    for part in ("x_from_swap", "m_from_swap"):
        ratio = lambda c: (c[part] - c["correct"])[..., apart].sum(-1) / (c["swap"] - c["correct"])[..., apart].sum(-1)  # noqa: B023
        if apart.any():
            carried[part] = resampled_interval(ratio(curve), ratio(drawn))
        else:
            carried[part] = (float("nan"),) * 3
    intervals = {name: limits(values) for name, values in drawn.items()}
    return Transplant(
        times=np.asarray(times, dtype=float),
        **curve,
        intervals=intervals,
        carried_by_x=carried["x_from_swap"],
        carried_by_m=carried["m_from_swap"],
        pairs=int(pairs.sum()),
        conditions=count,
    )


@dataclass(frozen=True)
class Push:
    """p(swap) after a push of the state along a direction.

    time: of the push, in steps from cue offset. sizes [size] in s.d. of memory activity (root mean square over
    directions, within conditions); p: name of the direction → [size]. slope: name → log odds of a swap a s.d., with its
    95 % interval over conditions; against_random: the same minus that of random directions of the same size.
    """

    time: float
    sizes: np.ndarray
    p: dict[str, np.ndarray]
    slope: dict[str, Interval]
    against_random: dict[str, Interval]
    conditions: int


def _log_odds(p: np.ndarray, trials: float) -> np.ndarray:
    p = (p * trials + 0.5) / (trials + 1)
    return np.log(p / (1 - p))


def push_effects(
    time: float, sizes: np.ndarray, p: dict[str, np.ndarray], trials: int, *, repeats: int = 500, seed: int = 0
) -> Push:
    """From p(swap) [condition, size] of each direction ("random" among them), `trials` in each.

    The slope is that of the log odds of all conditions together, by least squares over sizes.
    """
    sizes = np.asarray(sizes, dtype=float)
    count = len(next(iter(p.values())))
    rows = _resampled(count, repeats, seed)
    centred = sizes - sizes.mean()

    def slope(values: np.ndarray) -> np.ndarray:
        return (_log_odds(values, trials * count) * centred).sum(-1) / (centred**2).sum()

    point = {name: slope(values.mean(0)) for name, values in p.items()}
    drawn = {name: slope(values[rows].mean(1)) for name, values in p.items()}
    return Push(
        time=float(time),
        sizes=sizes,
        p={name: values.mean(0) for name, values in p.items()},
        slope={name: resampled_interval(point[name], drawn[name]) for name in p},
        against_random={
            name: resampled_interval(point[name] - point["random"], drawn[name] - drawn["random"])
            for name in p
            if name != "random"
        },
        conditions=count,
    )
