"""What carries a swap? Parts of the state exchanged between trials: an experiment that no animal allows.

A state r is the behavioural part x = W_x r and the memory m = W_x^perp r. At some time the x of one trial is put
together with the m of another trial of the same condition, the network continues with fresh noise, and what counts is
how often it ends in a swap.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from lapsus.errors import LapsusError
from lapsus.mechanism.activity import NO_SWAPS
from lapsus.mechanism.clock import Clock
from lapsus.mechanism.drawing import legend, percent, time_axis
from lapsus.mechanism.registry import AskedNetwork, Column, Mechanism, Panel, Question, Term, Verdict
from lapsus.mechanism.replay import Replay, decision_steps, probe_conditions, step_times
from lapsus.plots.style import BLUE, GREY, ORANGE, PURPLE, VERMILION
from lapsus.statistics.intervals import Interval, limits, resampled_interval
from lapsus.training.model import Model

__all__ = ["QUESTION", "Transplant", "transplant_curves", "transplant_panel", "transplants"]

# Where swap and correct donors differ by less than this in p(swap), there is nothing yet to be carried.
APART = 0.25
# Share from which on a part is said to carry a swap.
MOST = 0.5
# Whose x and whose m each combination has: 0 the swap trial, 1 and 2 two correct trials.
DONORS = {"swap": (0, 0), "correct": (1, 1), "x_from_swap": (0, 1), "m_from_swap": (1, 0), "null": (2, 1)}


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

    @property
    def carrier(self) -> str | None:
        """ "x" (the forming response), "m" (memory) or "neither" alone; None where nothing could be carried."""
        x, m = self.carried_by_x, self.carried_by_m
        if not np.isfinite(x[0]):
            return None
        if x[1] > MOST and x[1] > m[2]:
            return "x"
        return "m" if m[1] > MOST and m[1] > x[2] else "neither"

    def row(self) -> dict:
        """Columns of a table."""
        return {"carried_by_x": self.carried_by_x[0], "carried_by_m": self.carried_by_m[0]}


def transplant_curves(
    times: np.ndarray, p: dict[str, np.ndarray], pairs: np.ndarray, *, repeats: int = 500, seed: int = 0
) -> Transplant:
    """From p(swap) [condition, time] of each combination, conditions weighted by their number of donor pairs."""
    count = len(pairs)
    if count == 0:
        raise LapsusError("no condition has both a swap and a correct trial")
    rows = np.random.default_rng(seed).integers(count, size=(repeats, count))

    def mean(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (values[rows] * pairs[rows][..., None]).sum(-2) / pairs[rows].sum(-1)[..., None]

    curve = {name: mean(values, np.arange(count)) for name, values in p.items()}
    drawn = {name: mean(values, rows) for name, values in p.items()}
    apart = curve["swap"] - curve["correct"] >= APART

    def carried(part: str) -> Interval:
        if not apart.any():
            return (float("nan"),) * 3

        def share(p: dict[str, np.ndarray]) -> np.ndarray:
            with_part, whole = p[part] - p["correct"], p["swap"] - p["correct"]
            return with_part[..., apart].sum(-1) / whole[..., apart].sum(-1)

        return resampled_interval(share(curve), share(drawn))

    return Transplant(
        times=np.asarray(times, dtype=float),
        **curve,
        intervals={name: limits(values) for name, values in drawn.items()},
        carried_by_x=carried("x_from_swap"),
        carried_by_m=carried("m_from_swap"),
        pairs=int(pairs.sum()),
        conditions=count,
    )


# --- Asking a network ---


def _donors(swap: np.ndarray, correct: np.ndarray, pairs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Trials (a swap, a correct one, another correct one) [pair, 3], counted through all conditions, and how many pairs
    each condition has [condition]; swap and correct [condition, trial]."""
    conditions, trials = swap.shape
    rng = np.random.default_rng(seed)
    chosen, number = [], np.zeros(conditions, dtype=int)
    for c in range(conditions):
        swaps, right = np.flatnonzero(swap[c]), np.flatnonzero(correct[c])
        if len(swaps) and len(right) > 1:
            number[c] = min(pairs, len(swaps))
            first, second = rng.choice(right, number[c]), rng.choice(right, number[c])
            following = right[(np.searchsorted(right, second) + 1) % len(right)]
            second = np.where(first == second, following, second)
            chosen.append(c * trials + np.stack([rng.choice(swaps, number[c], replace=False), first, second], 1))
    if not chosen:
        raise LapsusError(
            f"{NO_SWAPS} among the {swap.size:,} simulated for it"
            if not swap.any()
            else "no condition has both a swap and a correct trial"
        )
    return np.concatenate(chosen), number


def transplants(
    model: Model,
    *,
    conditions: int = 48,
    trials: int = 192,
    pairs: int = 8,
    replays: int = 4,
    probe_distance: float | None = None,
    every: int = 4,
    seed: int = 0,
    threads: int | None = None,
) -> Transplant:
    """p(swap) over time for all combinations of x and m of a swap and a correct trial of the same condition.

    `trials` of each condition are simulated to find donors, of which at most `pairs` pairs per condition are used.
    """
    many = Replay.of(model, probe_conditions(model, conditions, seed, probe_distance)).each(trials, seed)
    x_T, path = many.run(many.initial(1, seed), seed, keep=True, threads=threads)
    outcome = many.swaps(x_T)
    swap, correct = (labels.reshape(conditions, trials) for labels in (outcome.swap, outcome.correct))
    donors, number = _donors(swap, correct, pairs, seed)
    pool = many.only(donors[:, 1])
    onto_x = model.network.readout.T @ model.network.readout
    steps, ends = decision_steps(model, every)
    steps = [step for step in steps[:-1] if step >= ends["delay"]]
    rows = np.repeat(np.arange(conditions), number)
    p = {name: np.zeros((conditions, len(steps))) for name in DONORS}
    for k, step in enumerate(steps):
        states = path[step][:, :, 0]
        for name, (x_of, m_of) in DONORS.items():
            x, m = states[:, donors[:, x_of]], states[:, donors[:, m_of]]
            r = (onto_x @ x + m - onto_x @ m)[:, :, None].expand(-1, -1, replays).contiguous()
            reached, _ = pool.run(r, seed + 2, start=step, threads=threads)
            swapped = pool.swaps(reached).probability.mean(1)
            p[name][:, k] = np.bincount(rows, swapped, conditions) / np.maximum(number, 1)
    used = number > 0
    p = {name: values[used] for name, values in p.items()}
    return transplant_curves(step_times(model)[steps], p, number[used], seed=seed)


def _ask(network: AskedNetwork) -> Transplant:
    sizes = network.sizes
    return transplants(
        network.model, conditions=sizes.replay_conditions, trials=sizes.donors, every=sizes.every, **network.settings
    )


# --- Words and panels ---

_NAMES = {"x": "the forming response", "m": "memory", "neither": "neither alone"}
_CARRIED = {
    "x": "The error is carried by the forming response, not by memory.",
    "m": "The error is carried by memory.",
    "neither": "Neither the forming response nor memory carries the error alone.",
}


def _sentence(found: Transplant, _: Mechanism) -> str:
    if found.carrier is None:
        return "What carries swaps is not known: swap and correct trials never differ by enough before the response."
    what = {"x": "the forming response x", "m": "memory m", "neither": "neither part alone"}[found.carrier]
    return (
        f"Carried by {what}: transplanted between trials of the same condition, x transfers"
        f" {percent(found.carried_by_x)} of the difference between swap and correct trials, and m"
        f" {percent(found.carried_by_m)} ({found.pairs:,} pairs of trials)."
    )


def transplant_panel(ax: Axes, found: Transplant, clock: Clock, onset: float = float("nan")) -> Axes:
    """p(swap) with fresh noise from states put together from a swap and a correct trial."""
    times = clock.shown(found.times)
    for name, colour, label in (
        ("swap", VERMILION, "all from a swap trial"),
        ("x_from_swap", ORANGE, f"x alone: {percent(found.carried_by_x)}"),
        ("m_from_swap", PURPLE, f"m alone: {percent(found.carried_by_m)}"),
        ("correct", BLUE, "all from a correct trial"),
    ):
        low, high = found.intervals[name]
        ax.fill_between(times, low, high, color=colour, alpha=0.2, lw=0)
        ax.plot(times, getattr(found, name), color=colour, label=label)
    ax.plot(times, found.null, color=GREY, lw=0.8, ls=(0, (2, 1)), label="null: x of another correct trial")
    legend(ax)
    return time_axis(ax, clock, "p(swap) after transplant", onset)


def _panels(answer: Transplant, found: Mechanism) -> list[Panel]:
    onset = found.commitment.cue_onset if found.commitment is not None else float("nan")
    return [Panel(lambda ax: transplant_panel(ax, answer, found.clock, onset))]


def _compare(ax: Axes, found: Transplant, height: int) -> None:
    for share, colour, label in ((found.carried_by_x, ORANGE, "x"), (found.carried_by_m, BLUE, "m")):
        value, low, high = share
        ax.plot([low, high], [height, height], color=colour, lw=1.2)
        ax.plot(value, height, "o", color=colour, ms=4, label=label if height == 0 else None)
    ax.set_xlim(-0.15, 1.15)


def _share_column(part: str) -> Callable[[Transplant, Mechanism], str]:
    return lambda found, _: percent(getattr(found, part)).split(" [")[0] if found.carrier else "–"


QUESTION = Question(
    name="transplant",
    title="What carries it?",
    definition="The share of the difference between swap and correct trials that is transferred with x, or with m.",
    in_recording="No counterpart: the activity of one trial would have to be put into another.",
    answer=Transplant,
    ask=_ask,
    read="this needs states combined from two trials, which only a network allows",
    sentence=_sentence,
    panels=_panels,
    caption=(
        "p(swap) when the network continues, with fresh noise, from states that combine a swap and a correct trial of"
        " the same condition; the legend gives the share of the difference that is transferred with x and with m."
    ),
    unknown="What carries swaps is not known",
    terms=(
        Term(
            "x and m",
            "x is the part of activity that is read out, the forming response; m is all the rest, the memory.",
            "x would be what an optimal linear readout of the response uses; m what remains when that is removed.",
            Markup(
                '<path d="M12 40V8M12 40h34M12 40l22-16"/><g font-size="11" fill="currentColor" stroke="none">'
                '<text x="2" y="12">x</text><text x="50" y="42">m</text></g>'
            ),
            r"\b[xm]\b",
        ),
    ),
    columns=(
        Column("by x", _share_column("carried_by_x"), "the share of the difference that is transferred with x"),
        Column("by m", _share_column("carried_by_m"), "the share that is transferred with m"),
    ),
    verdict=Verdict(
        name="carrier",
        about="what carries swaps",
        of=lambda found: None if found.transplant is None else found.transplant.carrier,
        short=_NAMES,
        agreed=lambda found: _CARRIED[found[0].carrier],
        unknown=lambda _: "What carries the error is not known.",
    ),
    compare=("share carried", _compare),
)
