"""When can the coming swap be read? A decoder of held-out trials at each time.

Colours and cue are taken off by the linear model of correct trials, and so are products of the two colours' waves, so
that what is left is what differs between trials that were shown the same: where some displays are swapped more often
than others, a code of the display would else pass for a sign of the coming swap. The decoder is a linear discriminant
of what is left, in units of the noise, and of the places of a trial along the lines to the types of error. An answer
that it contradicts is not given (`lapsus.mechanism.registry.Mechanism.contradicted`).

In a recording, a planned eye movement looks like a reported colour. As a control the report is held fixed: from the cue
on, activity is compared with that of correct trials that report the same item, as if it had been the cued one, and only
swap and correct trials that report the same item at about the same angle are compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from lapsus.errors import LapsusError
from lapsus.mechanism.activity import NO_SWAPS, Items, cue_onset, memory, two_items
from lapsus.mechanism.clock import Clock
from lapsus.mechanism.colour_code import prediction_model, whitener, without_conjunctions
from lapsus.mechanism.discriminants import discriminant, roc_area
from lapsus.mechanism.drawing import interval, legend, time_axis
from lapsus.mechanism.outcomes import Outcomes, outcomes
from lapsus.mechanism.registry import Column, Mechanism, Panel, Question
from lapsus.plots.style import BLUE, GREY
from lapsus.statistics.intervals import limits

__all__ = [
    "QUESTION",
    "Decoding",
    "decoding",
    "decoding_panel",
    "folds_by_condition",
    "held_out_scores",
    "inclined_area",
]

# Area from which on a decoder is said to tell two types of trials apart.
TELLS = 0.6
# Times before the cue that are averaged; resampled trials for an interval.
LAST, RESAMPLED = 5, 200


@dataclass(frozen=True)
class Decoding:
    """Held-out decoding of the coming swap: times and auc [time]; null [time], fitted to labels shuffled among trials;
    onset, offset: of the cue, on the clock of `times`; swaps, correct, unclear: trials used and left out. inclined: the
    area before the cue of activity that is turned over where item 2 will be cued: an inclination to one item makes a
    swap only where the other one is cued, and a decoder that does not know the cue cannot read it. same_report [time]:
    the area among trials with the same report, of a recording. before_interval, response_interval: 95 % limits of
    `before_cue` and `at_response` over trials, whose held-out scores are resampled."""

    times: np.ndarray
    auc: np.ndarray
    null: np.ndarray
    onset: float
    swaps: int
    correct: int
    unclear: int
    offset: float = float("nan")
    inclined: float = float("nan")
    same_report: np.ndarray = field(default_factory=lambda: np.empty(0))
    before_interval: tuple[float, float] = (float("nan"), float("nan"))
    response_interval: tuple[float, float] = (float("nan"), float("nan"))

    @property
    def error(self) -> float:
        """Standard error of an area where there is nothing to read."""
        return float(np.sqrt((self.swaps + self.correct + 1) / (12 * self.swaps * self.correct)))

    @property
    def before_cue(self) -> float:
        """Mean area over the last five times before the cue; NaN where there are none."""
        before = self.auc[self.times < self.onset][-LAST:]
        return float(before.mean()) if len(before) else float("nan")

    @property
    def at_response(self) -> float:
        """Area at the last time."""
        return float(self.auc[-1])

    @property
    def at_offset(self) -> float:
        """Area when the cue ends; NaN where that is not known."""
        return float(np.interp(self.offset, self.times, self.auc)) if np.isfinite(self.offset) else float("nan")

    def tells(self, area: ArrayLike) -> np.ndarray:
        """Whether areas [...] tell swaps from correct trials."""
        return np.asarray(area) >= TELLS

    def surely_tells(self, area: float) -> bool:
        """Whether an area does so by two standard errors."""
        return area > TELLS + 2 * self.error

    def row(self) -> dict:
        """Columns of a table."""
        return {"decoding_before_cue": self.before_cue, "decoding_auc": self.at_response}


def decoding(
    dataset: xr.Dataset, *, folds: int = 5, every: int = 2, seed: int = 0, hold_report: bool = False
) -> Decoding:
    """Decode the coming swap at every `every`-th time from memory activity; each fold is scored by the others.

    Folds hold whole conditions (displays with their cue). hold_report: also among trials with the same report.
    """
    items = two_items(dataset)
    outcome = outcomes(items.response, items.report, items.cued)
    sure = outcome.swap | outcome.correct
    if outcome.swap.sum() < 2 * folds:
        raise LapsusError(
            f"only {outcome.swap.sum()} swap trials" if outcome.swap.any() else f"{NO_SWAPS} among {len(sure):,}"
        )
    rng = np.random.default_rng(seed)
    fold = folds_by_condition(items, outcome.swap, folds, rng)
    shuffled = outcome.swap.copy()
    for k in range(folds):
        own = np.flatnonzero(sure & (fold == k))
        shuffled[own] = rng.permutation(shuffled[own])
    time, onset = dataset["time"].to_numpy(), cue_onset(dataset)
    steps = np.unique(np.append(np.arange(0, len(time), every), len(time) - 1))
    m = memory(dataset.isel(time=steps))
    before, after = m[:, time[steps] < onset], m[:, time[steps] >= onset]
    labellings = (outcome.swap, shuffled)
    early = held_out_scores(before, (items.report,), sure, outcome.correct, fold, labellings)
    late = held_out_scores(after, (items.report, items.cued), sure, outcome.correct, fold, labellings)
    areas, nulls = (
        np.array([roc_area(one[sure], labels[sure]) for one in part])
        for part, labels in zip(np.concatenate([early, late], 1), labellings)
    )
    last = before.shape[1]
    intervals = [_interval(own, outcome, rng) for own in (early[0, max(last - LAST, 0) :], late[0, -1:])]
    same_report = np.empty(0)
    if hold_report:
        as_reported = (items.report, items.recalled)
        late = held_out_scores(after, as_reported, sure, outcome.correct, fold, (outcome.swap,))
        scores = np.concatenate([early[0], late[0]])
        same_report = np.array([_area_within(one, outcome.swap, _reports(items), sure) for one in scores])
    counts = int(outcome.swap.sum()), int(outcome.correct.sum()), outcome.unclear
    offset = _cue_offset(dataset)
    inclined = inclined_area(memory(dataset.isel(time=np.flatnonzero(time < onset)[-5:])), items, outcome, fold)
    return Decoding(
        time[steps].astype(float), areas, nulls, float(onset), *counts, offset, inclined, same_report, *intervals
    )


def _interval(scores: np.ndarray, outcome: Outcomes, rng: np.random.Generator) -> tuple[float, float]:
    """95 % interval of the mean area over times of held-out scores [time, trial], over trials of both types."""
    swap, correct = np.flatnonzero(outcome.swap), np.flatnonzero(outcome.correct)
    if not len(scores):
        return float("nan"), float("nan")
    labels = np.arange(len(swap) + len(correct)) < len(swap)
    drawn = []
    for _ in range(RESAMPLED):
        rows = np.append(rng.choice(swap, len(swap)), rng.choice(correct, len(correct)))
        drawn.append(np.mean([roc_area(one[rows], labels) for one in scores]))
    low, high = limits(np.array(drawn))
    return float(low), float(high)


def folds_by_condition(items: Items, swap: np.ndarray, folds: int, rng: np.random.Generator) -> np.ndarray:
    """Fold of each trial; trials of one condition have the same, unless too few conditions have swaps."""
    shown = pd.DataFrame(np.column_stack([items.report.round(5), items.cued]))
    condition = shown.groupby([0, 1, 2], sort=False).ngroup().to_numpy()
    swapped = np.unique(condition[swap])
    if len(swapped) < 2 * folds:
        condition, swapped = np.arange(len(swap)), np.flatnonzero(swap)
    fold = np.empty(condition.max() + 1, dtype=int)
    for rows in (swapped, np.setdiff1d(np.arange(len(fold)), swapped)):
        fold[rows] = rng.permutation(np.arange(len(rows)) % folds)
    return fold[condition]


def held_out_scores(
    m: np.ndarray,
    given: tuple[np.ndarray, ...],
    sure: np.ndarray,
    correct: np.ndarray,
    fold: np.ndarray,
    labellings: Sequence[np.ndarray],
) -> np.ndarray:
    """Held-out scores [labelling, time, trial] of memory m [trial, time, unit], each fold scored by the others."""
    scores = np.zeros((len(labellings), m.shape[1], len(sure)))
    for j in range(fold.max() + 1 if m.shape[1] else 0):
        train, test = sure & (fold != j), fold == j
        for at, features in enumerate(_features(m, given, train & correct)):
            for row, labels in enumerate(labellings):
                one, other = features[train & labels], features[train & ~labels]
                w = discriminant(features[train], labels[train])
                spread = max(float((features[train] @ w).std()), 1e-12)
                scores[row, at, test] = (features[test] - (one.mean(0) + other.mean(0)) / 2) @ w / spread
    return scores


def _reports(items: Items) -> np.ndarray:
    """A number for each item that can be reported at each of eight angles, [trial]."""
    return 8 * items.recalled + np.floor((items.response + np.pi) / (2 * np.pi) * 8).astype(int).clip(0, 7)


def _area_within(scores: np.ndarray, swap: np.ndarray, stratum: np.ndarray, sure: np.ndarray) -> float:
    """Area among pairs of a swap and a correct trial in the same stratum; NaN where there is no such pair."""
    area, pairs = 0.0, 0
    for label in np.unique(stratum[sure & swap]):
        own = sure & (stratum == label)
        count = int((own & swap).sum()) * int((own & ~swap).sum())
        if count:
            area += count * roc_area(scores[own], swap[own])
            pairs += count
    return area / pairs if pairs else float("nan")


def _cue_offset(dataset: xr.Dataset) -> float:
    """Time of the first bin after the cue; NaN where there is none."""
    time, cue = dataset["time"].to_numpy(), np.flatnonzero(dataset["epoch"].to_numpy() == "cue")
    return float(time[cue[-1] + 1]) if cue[-1] + 1 < len(time) else float("nan")


def inclined_area(m: np.ndarray, items: Items, outcome: Outcomes, fold: np.ndarray) -> float:
    """Held-out area of the coming swap in memory before the cue, m [trial, time, unit], signed by the coming cue."""
    if m.shape[1] == 0:
        return float("nan")
    held, sure = m.mean(1), outcome.swap | outcome.correct
    sign = np.where(items.cued == 0, 1.0, -1.0)[:, None]
    scores = np.zeros(len(held))
    for k in range(fold.max() + 1):
        train, test = sure & (fold != k), fold == k
        known = train & outcome.correct
        code = prediction_model(held[known], items.report[known])
        signed = sign * (held - code.nominal(items.report))
        w = discriminant(signed[train], outcome.swap[train])
        middle = (signed[train & outcome.swap].mean(0) + signed[train & ~outcome.swap].mean(0)) / 2
        scores[test] = (signed[test] - middle) @ w / max(float((signed[train] @ w).std()), 1e-12)
    return roc_area(scores[sure], outcome.swap[sure])


def _features(m: np.ndarray, given: tuple[np.ndarray, ...], known: np.ndarray) -> Iterator[np.ndarray]:
    """For each time of m [trial, time, unit], what a trial's activity has beyond what was shown (and cued), and its
    place along the lines to the errors, [trial, feature]; the model and its noise come from the trials in `known`."""
    model = prediction_model(m[known], *(part[known] for part in given))
    nominal = model.nominal(*given)
    beyond = without_conjunctions(m, given, known) - nominal
    errors = [model.exchanged(*given)] if len(given) == 1 else [model.misselected(*given), model.misinterpreted(*given)]
    for t in range(m.shape[1]):
        white = whitener(beyond[known, t])
        rest = beyond[:, t] @ white
        places = []
        for error in errors:
            line = (error[:, t] - nominal[:, t]) @ white
            places.append((rest * line).sum(1) / np.maximum(np.linalg.norm(line, axis=1), 1e-9))
        yield np.concatenate([rest, np.stack(places, 1)], 1)


# --- Words and panels ---


def _sentence(read: Decoding, _: Mechanism) -> str:
    text = (
        "Decoder: the upcoming swap is decoded from held-out trials with an AUC of"
        f" {_with_limits(read.before_cue, read.before_interval)} before the cue and"
        f" {_with_limits(read.at_response, read.response_interval)} at the response (0.5 is chance; {read.swaps:,}"
        " swaps)."
    )
    if len(read.same_report):
        at_cue = float(np.interp(read.onset, read.times, read.same_report))
        text += (
            f" Among trials with the same report, it is {at_cue:.2f} at the cue and {read.same_report[-1]:.2f} then."
        )
    return text


def _with_limits(area: float, limits: tuple[float, float]) -> str:
    """An area with its interval, where that is known: answers that were kept before it was computed lack it."""
    return interval((area, *limits)) if np.isfinite(limits[0]) else f"{area:.2f}"


def _check(read: Decoding, found: Mechanism) -> tuple[str, bool, str]:
    against = found.contradicted
    text = (
        f"AUC of a held-out decoder of the upcoming swap {read.before_cue:.2f} before the cue and"
        f" {read.at_response:.2f} at the response (shuffled {read.null.mean():.2f}; {read.swaps:,} swaps)"
    )
    text += "".join(f"; this contradicts the answer to {name}, which is not given" for name in against) + "."
    return "A held-out decoder agrees", not against, text


def decoding_panel(ax: Axes, read: Decoding, clock: Clock = Clock()) -> Axes:  # noqa: B008
    """Held-out decoding of the coming swap: for a recording, all that can be said about when."""
    times = clock.shown(read.times)
    ax.axhline(0.5, color=GREY, lw=0.6, ls=(0, (3, 2)))
    ax.plot(times, read.null, color=GREY, lw=0.7, label="labels shuffled")
    ax.plot(times, read.auc, color=BLUE, label="upcoming swap")
    if len(read.same_report):
        ax.plot(times, read.same_report, color=BLUE, lw=0.8, ls=(0, (3, 1)), label="same report")
    legend(ax)
    return time_axis(ax, clock, "read from memory\n(AUC, held out)", read.onset, top=1.05, bottom=0.3)


QUESTION = Question(
    name="decoding",
    title="When can the upcoming swap be read?",
    definition="How well the upcoming swap is decoded from the memory of held-out trials at each time.",
    in_recording="The same decoder is fitted to a recording.",
    answer=Decoding,
    ask=lambda network: decoding(network.single_trials),
    read=lambda recording: decoding(recording.dataset, every=recording.every, seed=recording.seed, hold_report=True),
    sentence=_sentence,
    panels=lambda read, found: [Panel(lambda ax: decoding_panel(ax, read, found.clock))],
    caption="How well the upcoming swap is decoded from the memory of held-out trials (0.5 is chance).",
    unknown="When the upcoming swap can be read is not known",
    columns=(
        Column("decoder", lambda read, _: f"{read.at_response:.2f}", "the AUC of a held-out decoder at the response"),
    ),
    check=_check,
)
