"""When is a swap decided? How much of the outcome's variance the noise up to a time has fixed.

Trials of one condition that share all noise up to time t and none after it agree in their outcome as far as it was
decided at t. The share of the outcome's variance within a condition that lies between such groups is 0 where nothing is
decided and 1 where everything is. For recordings, where nothing can be replayed, see lapsus.mechanism.decoding.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from matplotlib.axes import Axes

from lapsus.errors import LapsusError
from lapsus.mechanism.activity import NO_SWAPS
from lapsus.mechanism.clock import Clock
from lapsus.mechanism.drawing import SMALL, percent, time_axis
from lapsus.mechanism.registry import AskedNetwork, Column, Mechanism, Panel, Question, Verdict
from lapsus.mechanism.replay import Replay, decision_steps, probe_conditions, step_times
from lapsus.plots.style import GREY, VERMILION
from lapsus.statistics.intervals import Interval, limits, resampled_interval
from lapsus.training.model import Model

__all__ = ["QUESTION", "Commitment", "between_share", "commitment", "commitment_curve", "commitment_panel", "crossing"]

# Share of the outcome from which on the time before the cue is said to decide part of it.
EARLY = 0.1


@dataclass(frozen=True)
class Commitment:
    """The commitment curve of a network.

    times [time] in steps from cue offset; share, low, high [time] with its 95 % interval over conditions; half_time and
    its interval: when half of the outcome's variance is fixed; by_epoch: what each epoch adds, in order, the initial
    state first; swap_rate over all replays; conditions, groups, replays: how many; cue_onset: when delay 1 ends.
    shares: part of the trial → the share of the outcome that is decided in it, with its 95 % interval over conditions;
    none is negative, and they add up to 1.
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
    shares: dict[str, Interval] = field(default_factory=dict)

    @property
    def before_cue(self) -> Interval:
        """The share that is fixed at cue onset, with its interval."""
        return self.at(self.cue_onset)

    def at(self, time: float) -> Interval:
        """The share that is fixed at a time with its interval, between steps by interpolation."""
        value, low, high = (float(np.interp(time, self.times, v)) for v in (self.share, self.low, self.high))
        return value, low, high

    def row(self) -> dict:
        """Columns of a table."""
        half = {"half_time": self.half_time, "half_low": self.half_low, "half_high": self.half_high}
        fixed = {"fixed_at_cue_onset": self.before_cue[0], "fixed_at_cue_offset": self.at(0.0)[0]}
        return half | fixed | {f"decided_{part.replace(' ', '_')}": share for part, (share, *_) in self.shares.items()}


# --- The statistic ---


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
    """The curve from outcomes [condition, time, group, replay] in [0, 1] of trials that share noise up to each time; or
    from outcomes of several dimensions, which come first, and whose variances are added.

    ends: the time at which each epoch ends, in order; each must be one of `times`.
    """
    outcome, times = np.asarray(outcome, dtype=float), np.asarray(times, dtype=float)
    between, total = between_share(outcome)
    if outcome.ndim == 5:
        between, total, outcome = between.sum(0), total.sum(0), outcome[0]
    # Both [condition, time].
    if total.sum() <= 1e-9:
        raise LapsusError(f"{NO_SWAPS}: every outcome is the same, so there is nothing to decide")
    share = between.sum(0) / np.maximum(total.sum(0), 1e-12)
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(between), size=(repeats, len(between)))
    kept = total[rows].sum(1).min(1) > 1e-9
    drawn = between[rows].sum(1)[kept] / total[rows].sum(1)[kept]
    low, high = limits(drawn)
    halves = np.array([crossing(times, curve) for curve in drawn])
    half_low, half_high = (np.nan, np.nan) if np.isnan(halves).all() else np.nanquantile(halves, [0.025, 0.975])
    reached = {name: float(share[np.flatnonzero(np.isclose(times, end))[0]]) for name, end in ends.items()}
    added = np.diff([0.0, *reached.values()])
    return Commitment(
        times=times,
        share=share,
        low=np.minimum(low, share),
        high=np.maximum(high, share),
        half_time=crossing(times, share),
        half_low=float(half_low),
        half_high=float(half_high),
        by_epoch=dict(zip(reached, added.tolist())),
        swap_rate=float(outcome.mean()),
        conditions=outcome.shape[0],
        groups=outcome.shape[2],
        replays=outcome.shape[3],
        cue_onset=float(ends.get("delay", np.nan)),
        shares=_shares(share, drawn, times, ends),
    )


# Epochs of the task → the parts of the trial in which shares of the outcome are decided.
_PARTS = {
    "initial": "before the stimuli",
    "prestimulus": "before the stimuli",
    "stimulus": "stimulus",
    "delay": "first delay",
    "cue": "cue",
    "denoise": "second delay",
}


def _shares(share: np.ndarray, drawn: np.ndarray, times: np.ndarray, ends: dict[str, float]) -> dict[str, Interval]:
    """What each part of the trial decides, from the curve [time] and its resamples [repeat, time].

    What was decided stays decided: curves are made non-decreasing, and end at 1.
    """
    if not ends:
        return {}
    last = {_PARTS.get(name, name): int(np.flatnonzero(np.isclose(times, end))[0]) for name, end in ends.items()}
    curves = np.maximum.accumulate(np.clip(np.concatenate([share[None], drawn]), 0, 1), axis=1)
    reached = curves[:, list(last.values())]
    reached[:, -1] = 1.0
    added = np.diff(reached, axis=1, prepend=0.0)
    return {part: resampled_interval(added[0, k], added[1:, k]) for k, part in enumerate(last)}


# --- Asking a network ---


def commitment(
    model: Model,
    *,
    conditions: int = 24,
    groups: int = 48,
    replays: int = 4,
    probe_distance: float | None = None,
    every: int = 4,
    seed: int = 0,
    threads: int | None = None,
) -> Commitment:
    """The commitment curve of a network: `groups` pasts in each condition, each continued `replays` times at each time;
    the trial as it went is one of them.

    probe_distance (radians): how far items are apart in feature-cued tasks, by default as the task draws them.
    """
    if conditions < 1 or groups < 2 or replays < 2:
        raise LapsusError("commitment needs at least one condition, two groups and two replays.")
    shared = Replay.of(model, probe_conditions(model, conditions, seed, probe_distance)).each(groups, seed)
    steps, ends = decision_steps(model, every)
    x_T, path = shared.run(shared.initial(1, seed), seed, keep=True, threads=threads)
    if not shared.swaps(x_T).swap.any():
        raise LapsusError(f"{NO_SWAPS} among the {conditions * groups:,} simulated for it")
    outcomes = []
    for step in steps:
        if step == steps[-1]:
            replayed = x_T.expand(-1, -1, replays)
        else:
            states = path[step].expand(-1, -1, replays - 1).contiguous()
            replayed = torch.cat([x_T, shared.run(states, seed + 1, start=step, threads=threads)[0]], 2)
        outcomes.append(shared.swaps(replayed).probability.reshape(conditions, groups, replays))
    times = step_times(model)
    by_epoch = {name: float(times[end]) for name, end in ends.items()}
    return commitment_curve(np.stack(outcomes, 1), times[steps], by_epoch, seed=seed)


def _ask(network: AskedNetwork) -> Commitment:
    sizes = network.sizes
    return commitment(
        network.model,
        conditions=sizes.replay_conditions,
        groups=sizes.groups,
        replays=sizes.replays,
        every=sizes.every,
        **network.settings,
    )


# --- Words ---


def _decided(found: Mechanism) -> str | None:
    """ "before" or "after" the cue, where at least a tenth, or surely less, of the outcome is fixed at its onset."""
    curve = found.commitment
    if curve is None or _contradiction(found) is not None:
        return None
    _, low, high = curve.before_cue
    return "after" if high < EARLY else "before" if low >= EARLY else None


def _contradiction(found: Mechanism) -> str | None:
    read = found.decoding
    if read is None or found.commitment.before_cue[0] >= EARLY or not read.surely_tells(read.before_cue):
        return None
    return f"a held-out decoder detects swaps before the cue (AUC {read.before_cue:.2f})"


def _sentence(curve: Commitment, found: Mechanism) -> str:
    half, clock = curve.half_time, found.clock
    where = f"{clock.text(half)} after cue offset" if half >= 0 else f"{clock.text(-half)} before cue offset"
    text = (
        f"When: half of the outcome is fixed {where} {clock.interval(curve.half_low, curve.half_high)};"
        f" {percent(curve.before_cue)} of it is fixed at cue onset."
    )
    if curve.shares:
        parts = ", ".join(f"{part} {percent(s)}" for part, s in curve.shares.items())
        text += f" Share decided in each part of the trial: {parts}."
    if (why := _contradiction(found)) is not None:
        return text + f" But {why}: trials with the same display already differ then."
    if found.decided == "after":
        tested = found.prediction
        if tested is not None and tested.supported:
            return text + " Activity before the cue changes the odds; noise after it decides."
        return text + " Noise after the cue decides."
    if found.decided == "before":
        return text + " Part of it is decided before the cue."
    return text + " There are too few conditions to say whether a tenth or more of it is decided before the cue."


def _half(found: list[Mechanism]) -> str:
    """When half of the outcome is fixed, in one network or several."""
    halves = [mechanism.commitment.half_time for mechanism in found if mechanism.commitment is not None]
    low, high, clock = min(halves), max(halves), found[0].clock
    same = len(halves) == 1 or round(low) == round(high)
    if low >= 0:
        when = clock.text(low) if same else f"{clock.text(low)} to {clock.text(high)}"
        return f"half of the outcome is fixed {when} after cue offset"
    when = f"{clock.text(-high)} before cue offset" if high < 0 else f"{clock.text(high)} after cue offset"
    return f"half of the outcome is fixed by {when}"


def _agreed(found: list[Mechanism]) -> str:
    begins = {"after": "Swaps are decided after the cue", "before": "Part of the outcome is decided before the cue"}
    return f"{begins[found[0].decided]}; {_half(found)}."


def _unknown(found: list[Mechanism]) -> str:
    if all(mechanism.commitment is None for mechanism in found):
        return "It is not known when swaps are decided."
    return f"It is not known whether part of the outcome is decided before the cue; {_half(found)}."


# --- Panels ---


def commitment_panel(ax: Axes, curve: Commitment, clock: Clock = Clock()) -> Axes:  # noqa: B008
    """Share of the outcome's variance that is fixed at each time, with its 95 % band over conditions."""
    times, half = clock.shown(curve.times), float(clock.shown(curve.half_time))
    ax.axhline(0, color=GREY, lw=0.5)
    ax.fill_between(times, curve.low, curve.high, color=VERMILION, alpha=0.25, lw=0)
    ax.plot(times, curve.share, color=VERMILION, marker="o", ms=2.5)
    ax.plot([times[0], half, half], [0.5, 0.5, 0], color=GREY, lw=0.7, ls=(0, (3, 2)))
    ax.text(half, 0.06, f"  half at {half:.2g}", fontsize=SMALL, color="0.3")
    count = f"{curve.conditions} conditions × {curve.groups} pasts × {curve.replays} replays"
    title = f"fixed at cue onset: {percent(curve.before_cue)}\n{count}"
    ax.set_title(title, fontsize=SMALL, color="0.35", pad=12, linespacing=1.2)
    return time_axis(ax, clock, "share of the outcome fixed", curve.cue_onset)


def _compare(ax: Axes, curve: Commitment, height: int) -> None:
    clock = Clock()
    ax.plot(clock.shown([curve.half_low, curve.half_high]), [height, height], color=VERMILION, lw=1.2)
    ax.plot(clock.shown(curve.half_time), height, "o", color=VERMILION, ms=4)
    ax.axvline(0, color=GREY, lw=0.6, ls=(0, (3, 2)))


def _half_column(curve: Commitment, found: Mechanism) -> str:
    clock = found.clock
    return f"{clock.text(curve.half_time)} {clock.interval(curve.half_low, curve.half_high)}"


QUESTION = Question(
    name="commitment",
    title="When is a swap decided?",
    definition="The share of the outcome that is fixed by noise up to each time of the trial.",
    in_recording="A decoder of the upcoming swap would rise above chance once part of the outcome is fixed.",
    answer=Commitment,
    ask=_ask,
    read=(
        "this needs replays of the same trial with other noise, which a recording cannot have; instead, `decoding` says"
        " when the upcoming swap can be read"
    ),
    sentence=_sentence,
    panels=lambda curve, found: [Panel(lambda ax: commitment_panel(ax, curve, found.clock))],
    caption=(
        "Share of the outcome (swap or not, within a condition) that is fixed by noise up to each time, with its 95 %"
        " band over conditions."
    ),
    unknown="When swaps are decided is not known",
    columns=(
        Column(
            "half decided",
            _half_column,
            "the time from cue offset at which half of the outcome is fixed, with its 95 % interval",
        ),
        Column(
            "before cue",
            lambda curve, _: percent(curve.before_cue).split(" [")[0],
            "the share of the outcome that is fixed at cue onset",
        ),
    ),
    statistics={"half_time": "Half of the outcome is fixed (steps of 50 ms from cue offset)"},
    verdict=Verdict(
        name="decided",
        about="when, relative to the cue, swaps are decided",
        of=_decided,
        short={"before": "before the cue", "after": "after the cue"},
        agreed=_agreed,
        unknown=_unknown,
    ),
    contradiction=_contradiction,
    compare=("half decided (s from cue offset)", _compare),
    gallery=lambda curve: f"half of the outcome fixed {Clock().text(curve.half_time)} from cue offset",
)
