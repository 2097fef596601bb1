"""When is a swap decided? How much of the outcome's variance the noise up to a time has fixed.

Trials of one condition that share all noise up to time t and none after it agree in their outcome as far as it was
decided at t. The share of the outcome's variance within a condition that lies between such groups is 0 where nothing is
decided and 1 where everything is. For recordings, where nothing can be replayed: how well the coming swap can be
decoded at each time from held-out trials.
"""

from dataclasses import dataclass

import numpy as np

from lapsus.analysis.activity import NO_SWAPS
from lapsus.errors import LapsusError
from lapsus.statistics.intervals import Interval, limits

__all__ = ["Commitment", "between_share", "commitment_curve", "crossing"]


@dataclass(frozen=True)
class Commitment:
    """The commitment curve of a network.

    times [time] in steps from cue offset; share, low, high [time] with its 95 % interval over conditions; half_time and
    its interval: when half of the outcome's variance is fixed; by_epoch: what each epoch adds, in order, the initial
    state first; swap_rate over all replays; conditions, groups, replays: how many; cue_onset: when delay 1 ends.
    """

    times: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    half_time: float
    half_low: float
    half_high: float
    by_epoch: dict[str, float]
    swap_rate: float
    conditions: int
    groups: int
    replays: int
    cue_onset: float = float("nan")

    @property
    def before_cue(self) -> Interval:
        """The share that is fixed at cue onset, with its interval."""
        value, low, high = (float(np.interp(self.cue_onset, self.times, v)) for v in (self.share, self.low, self.high))
        return value, low, high

    def at(self, time: float) -> float:
        """The share that is fixed at a time, between steps by interpolation."""
        return float(np.interp(time, self.times, self.share))


def between_share(outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Between-group and total variance of outcome [..., group, replay], each without bias: [...] both.

    The variance of group means holds the variance within groups over the number of replays, which is taken off.
    """
    groups, replays = outcome.shape[-2:]
    if groups < 2 or replays < 2:
        raise LapsusError("commitment needs at least two groups and two replays of each.")
    within = outcome.var(-1, ddof=1).mean(-1)
    between = outcome.mean(-1).var(-1, ddof=1) - within / replays
    return between, between + within


def crossing(times: np.ndarray, share: np.ndarray) -> float:
    """First time at which a curve [time], made non-decreasing, reaches a half; NaN where it never does."""
    rising = np.maximum.accumulate(share)
    if rising[-1] < 0.5:
        return float("nan")
    k = int(np.argmax(rising >= 0.5))
    if k == 0:
        return float(times[0])
    gain = rising[k] - rising[k - 1]
    return float(times[k - 1] + (times[k] - times[k - 1]) * (0.5 - rising[k - 1]) / gain)


def commitment_curve(
    outcome: np.ndarray, times: np.ndarray, ends: dict[str, float], *, repeats: int = 500, seed: int = 0
) -> Commitment:
    """The curve from outcomes [condition, time, group, replay] in [0, 1] of trials that share noise up to each time.

    ends: the time at which each epoch ends, in order; each must be one of `times`.
    """
    outcome, times = np.asarray(outcome, dtype=float), np.asarray(times, dtype=float)
    between, total = between_share(outcome)  # [condition, time]
    if total.sum() <= 1e-9:
        raise LapsusError(f"{NO_SWAPS}: every outcome is the same, so there is nothing to decide")
    share = between.sum(0) / np.maximum(total.sum(0), 1e-12)
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(between), size=(repeats, len(between)))
    kept = total[rows].sum(1).min(1) > 1e-9
    drawn = between[rows].sum(1)[kept] / total[rows].sum(1)[kept]
    low, high = limits(drawn)
    halves = np.array([crossing(times, one) for one in drawn])
    half_low, half_high = (np.nan, np.nan) if np.isnan(halves).all() else np.nanquantile(halves, [0.025, 0.975])
    reached = {name: float(share[np.flatnonzero(np.isclose(times, end))[0]]) for name, end in ends.items()}
    steps = np.diff([0.0, *reached.values()])
    return Commitment(
        times=times,
        share=share,
        low=np.minimum(low, share),
        high=np.maximum(high, share),
        half_time=crossing(times, share),
        half_low=float(half_low),
        half_high=float(half_high),
        by_epoch={name: float(step) for name, step in zip(reached, steps)},
        swap_rate=float(outcome.mean()),
        conditions=outcome.shape[0],
        groups=outcome.shape[2],
        replays=outcome.shape[3],
        cue_onset=float(ends.get("delay", np.nan)),
    )
