"""Which type of error are swaps? Misbinding, prior inclination, misinterpretation, misselection or late switch (Fig 4B;
after Alleman et al. 2024).

On correct trials a linear model predicts memory activity from what was shown: before the cue from the colours of the
upper and the lower item; from the cue on from target and distractor colours, each at its place. Each type of error
predicts other activity: *misbinding*, colours exchanged from the start; *misselection*, colours exchanged from the cue
on; *misinterpretation*, the other item taken for the cued one from the cue on. Held-out activity of all swap trials is
regressed on the three predicted deviations together, in units of the noise: one weight per type, no ratio for single
trials. Misbinding and misselection predict the same after the cue and are told apart before it, so the regression at
any time from the cue on also takes the end of delay 1 with it.

Memory may also hold conjunctions of the two colours, which the linear model leaves over. Where some displays are
swapped more often than others, these would pass for a mark of the coming swap; they are taken off beforehand.

Where two predictions lie almost in one direction, their weights cannot be told apart. That is a finding about the
network; it comes with the angle between the predictions and the number of swap trials that would be needed.

Misselection and misinterpretation are errors at the cue: swap trials differ from correct ones when it has been shown. A
trial whose cue was read as it was given and that goes over to the other item later in the delay is neither, whatever
its memory looks like in the end: a *late switch*. It is called so where, at cue offset, swap trials have come less than
half of the way and most of them are nearer to the memory of the cue that was given than to that of the other one.

A *prior inclination* shows in no weight: both items are held correctly, but one is favoured before the cue, and the cue
does not overrule it. That takes the causal measures beside the regression, and so does the last word on every other
type: `agreed_type` has the rule. Swaps that no part of the trial decides by itself are *mixed*.

The weights say how far swap trials lie along the predictions, not how much of their memory the predictions describe.
`explained` does: the share of what swap trials systematically have beyond correct trials with the same display.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import xarray as xr
from markupsafe import Markup
from matplotlib.axes import Axes

from lapsus.circular import embed
from lapsus.errors import LapsusError
from lapsus.evaluation.simulation import Simulated
from lapsus.mechanism.activity import Items, cue_onset, memory, require_trials, two_items
from lapsus.mechanism.clock import Clock
from lapsus.mechanism.colour_code import prediction_model, whitener, without_conjunctions
from lapsus.mechanism.commitment import Commitment
from lapsus.mechanism.decoding import Decoding
from lapsus.mechanism.drawing import SMALL, interval, legend, percent, time_axis
from lapsus.mechanism.outcomes import outcomes
from lapsus.mechanism.registry import Column, Mechanism, Panel, Question, Term, Verdict
from lapsus.plots.style import BLUE, GREEN, GREY, VERMILION
from lapsus.statistics.intervals import Interval, resampled_interval

__all__ = [
    "ERROR_TYPES",
    "QUESTION",
    "Equations",
    "ErrorType",
    "agreed_type",
    "classify_swaps",
    "classify_trials",
    "error_equations",
    "parting",
    "share_misread",
    "weights_panel",
]

ERROR_TYPES: tuple[str, ...] = ("misbinding", "misselection", "misinterpretation")
WINDOW = 5
# Total weight below which swap trials look like correct ones, and how many standard errors two types must be from the
# middle between them to be told apart.
MARK, SHARP = 0.25, 4.0
# Share of the way to an error, and of swap trials, from which on it is most of it.
MOST = 0.5
# Share of the systematic deviation of swap trials that the named type must explain.
ENOUGH = 0.75
# Area from which on a decoder before the cue reads most of the outcome.
READS_MOST = 0.8
# Share from which on a part is worth saying.
PART = 0.1
# Share of correct trials that may be nearer to the memory of the other cue for that to say anything of swap trials; at
# one half memory does not hold the cue. These errors are taken off (share_misread).
READABLE = 0.4
UNKNOWN = (float("nan"),) * 3


@dataclass(frozen=True)
class ErrorType:
    """Which type of error swap trials are.

    decision: one of ERROR_TYPES; "late switch" where the cue is read as given and trials change later; "no mark"
    where swap trials look like correct ones in memory; "cannot tell" where two types predict too nearly the same.
    weights: type → (value, low, high) at the end of delay 2, swap minus correct trials. over_time: type → [time], with
    `correct` → type → [time]; times [time]. onset: first time (from the stimuli on) from which the weight of any error
    stays above 0 (steps from cue offset; NaN if never). total: weights of misselection and misinterpretation together;
    contrast: misselection minus misinterpretation; both (value, low, high). angle: degrees between the predictions of
    misselection and misinterpretation; apart: their distance; both in units of the noise of single trials and without
    the bias of predictions that are estimated. needed: swap trials that would tell them apart, None where they predict
    the same; swaps, correct, unclear: trials used and left out. cue_onset: on the clock of `times`. at_offset: all
    weights together at cue offset. misread: share of swap trials whose memory at cue offset is that of the other cue,
    and misread_over_time [time] (NaN before the cue and where memory does not hold it); misread_error: the share of
    correct trials that are nearer to it. explained: share of the systematic deviation of swap trials at the response
    that the weighted predictions account for. known: share of the power of the predictions at the response that is not
    error of their estimation. late: whether swap trials surely have come less than half of their way
    at cue offset.
    """

    decision: str
    weights: dict[str, Interval]
    times: np.ndarray
    over_time: dict[str, np.ndarray]
    over_time_correct: dict[str, np.ndarray]
    onset: float
    total: Interval
    contrast: Interval
    angle: float
    apart: float
    needed: int | None
    swaps: int
    correct: int
    unclear: int
    cue_onset: float = float("nan")
    at_offset: Interval = UNKNOWN
    misread: Interval = UNKNOWN
    misread_over_time: np.ndarray = field(default_factory=lambda: np.empty(0))
    misread_error: float = float("nan")
    late: bool = False
    explained: Interval = UNKNOWN
    known: float = 1.0

    def row(self) -> dict:
        """Columns of a table."""
        row: dict = {"error_type": self.decision} | {name: self.weights[name][0] for name in reversed(ERROR_TYPES)}
        row |= {"way_at_cue_offset": self.at_offset[0], "cue_misread": self.misread[0]}
        row |= {"angle": self.angle, "needed": self.needed, "swaps": self.swaps, "onset": self.onset}
        return row | {"explained": self.explained[0]}

    @property
    def maybe_misbinding(self) -> bool:
        """Whether misbinding is not ruled out."""
        return self.weights["misbinding"][2] >= MOST

    @property
    def begun(self) -> bool:
        """Whether part of the way to the error, or part of swap trials, is surely there at cue offset."""
        return self.at_offset[1] > PART or self.misread[1] > PART

    @property
    def partly_misbound(self) -> bool:
        """Whether swaps are of more than one type: surely a part is misbound, and not most of them."""
        return PART < self.weights["misbinding"][1] <= MOST

    @property
    def cue_read(self) -> bool | None:
        """Whether memory at cue offset surely is that of the cue that was given on most swap trials; None where memory
        does not hold the cue, or that is open."""
        if not self.misread_error <= READABLE:
            return None
        return True if self.misread[2] < MOST else False if self.misread[1] > MOST else None


@dataclass(frozen=True)
class Equations:
    """Normal equations of each trial at one time: gram [trial, type, type] and moment [trial, type]."""

    gram: np.ndarray
    moment: np.ndarray

    def beside(self, misbinding: "Equations") -> "Equations":
        """Those of misselection and misinterpretation with those of misbinding at the end of delay 1, for all three:
        after the cue misbinding predicts what misselection does."""
        gram, moment = self.gram[:, [0, 0, 1]][:, :, [0, 0, 1]], self.moment[:, [0, 0, 1]]
        gram[:, 0, 0] += misbinding.gram[:, 0, 0]
        moment[:, 0] += misbinding.moment[:, 0]
        return Equations(gram, moment)

    def nearer_to_other_cue(self) -> np.ndarray:
        """Whether each trial is past the middle of the way to the memory of the other cue with its colours [trial]."""
        return self.moment[:, -1] > self.gram[:, -1, -1] / 2

    def solve(self, rows: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
        """Weights [..., type] of the trials in rows [trial], each counted `times` [..., trial] times."""
        times = np.ones(len(rows)) if times is None else times
        gram, moment = np.tensordot(times, self.gram[rows], 1), times @ self.moment[rows]
        ridge = 1e-9 * np.trace(gram, axis1=-2, axis2=-1)[..., None, None] * np.eye(gram.shape[-1])
        return np.linalg.solve(gram + ridge + 1e-12 * np.eye(gram.shape[-1]), moment[..., None])[..., 0]


def error_equations(
    m: np.ndarray, given: tuple[np.ndarray, ...], known: np.ndarray, fold: np.ndarray
) -> list[Equations]:
    """At each time of m [trial, time, unit], of held-out deviations from a trial without error on those that the errors
    predict: misbinding where only the colours are `given`, misselection and misinterpretation where the cue is, too.
    Models and noise come from the trials in `known` of the other folds (fold [trial])."""
    types, times = len(given), m.shape[1]
    gram, moment = np.zeros((times, len(m), types, types)), np.zeros((times, len(m), types))
    for k in range(fold.max() + 1):
        train, test = (fold != k) & known, fold == k
        source = without_conjunctions(m, given, train)
        model = prediction_model(source[train], *(part[train] for part in given))
        noise = source[train] - model.nominal(*(part[train] for part in given))
        white = np.stack([whitener(noise[:, t]) for t in range(times)])
        own = tuple(part[test] for part in given)
        nominal = model.nominal(*own)
        errors = (model.exchanged,) if types == 1 else (model.misselected, model.misinterpreted)
        # [time, trial, unit], in units of the noise
        held = np.matmul((source[test] - nominal).swapaxes(0, 1), white)
        lines = np.stack([np.matmul((error(*own) - nominal).swapaxes(0, 1), white) for error in errors], 2)
        gram[:, test] = lines @ lines.swapaxes(-1, -2)
        moment[:, test] = (lines @ held[..., None])[..., 0]
    return [Equations(*one) for one in zip(gram, moment)]


def classify_swaps(
    dataset: xr.Dataset, *, folds: int = 5, every: int = 2, repeats: int = 300, seed: int = 0
) -> ErrorType:
    """Regress held-out activity of swap and of correct trials on what each type of error predicts.

    Models and noise come from the correct trials of the other folds; item 1 is the upper, item 2 the lower one. Every
    `every`-th time from the stimuli on is looked at, and cue offset and the end of delay 2 as the means of five.
    """
    items = two_items(dataset)
    outcome = outcomes(items.response, items.report, items.cued)
    swap, correct = np.flatnonzero(outcome.swap), np.flatnonzero(outcome.correct)
    require_trials(len(swap), 20, "swap trials")
    require_trials(len(correct), 200, "correct trials")
    time, onset = dataset["time"].to_numpy(), cue_onset(dataset)
    epoch = dataset["epoch"].to_numpy()
    shown = time[epoch == "stimulus"]
    first = shown[0] if len(shown) else time[0]
    before = np.flatnonzero((time < onset) & (time >= first))
    after = np.flatnonzero(time >= onset)
    if len(before) == 0 or len(after) == 0:
        raise LapsusError("the recording needs time bins before the cue and from it on")
    m = memory(dataset)
    delayed, late = m[:, before[-WINDOW:]].mean(1), m[:, after[-WINDOW:]].mean(1)
    rng = np.random.default_rng(seed)
    fold = np.empty(len(m), dtype=int)
    for rows in (swap, correct, np.setdiff1d(np.arange(len(m)), np.concatenate([swap, correct]))):
        fold[rows] = rng.permutation(np.arange(len(rows)) % folds)
    is_correct = np.zeros(len(m), dtype=bool)
    is_correct[correct] = True
    drawn_rows = rng.integers(len(swap), size=(repeats, len(swap)))
    times = np.stack([np.bincount(rows, minlength=len(swap)) for rows in drawn_rows]).astype(float)
    looked_before, looked_after = (sorted({*steps[::every], *steps[-1:]}) for steps in (before, after))
    *ahead, end_of_delay = error_equations(
        np.concatenate([m[:, looked_before], delayed[:, None]], 1), (items.report,), is_correct, fold
    )
    offset = np.flatnonzero(epoch == "cue")[-1] + 1
    loaded = m[:, offset : offset + WINDOW].mean(1) if offset < len(time) else late
    seen = np.concatenate([m[:, looked_after], loaded[:, None], late[:, None]], 1)
    *behind, at_offset, end = (
        one.beside(end_of_delay) for one in error_equations(seen, (items.report, items.cued), is_correct, fold)
    )
    looked = [*looked_before, *looked_after]
    curves = {group: {type: np.full(len(looked), np.nan) for type in ERROR_TYPES} for group in ("swap", "correct")}
    lows = np.empty(len(looked))
    for step, own in enumerate([*ahead, *behind]):
        value, base, drawn = own.solve(swap), own.solve(correct), own.solve(swap, times)
        for k, name in enumerate(ERROR_TYPES[: len(value)]):
            curves["swap"][name][step], curves["correct"][name][step] = value[k], base[k]
        lows[step] = np.quantile(drawn.sum(-1), 0.005) - base.sum()
    base = end.solve(correct)
    value, drawn = end.solve(swap) - base, end.solve(swap, times) - base
    weights = {name: resampled_interval(value[k], drawn[:, k]) for k, name in enumerate(ERROR_TYPES)}
    total = resampled_interval(value[1] + value[2], drawn[:, 1] + drawn[:, 2])
    whole = resampled_interval(value.sum(), drawn.sum(1))
    contrast = resampled_interval(value[1] - value[2], drawn[:, 1] - drawn[:, 2])
    angle, apart, known = _separation(late, items, is_correct, fold, swap, folds)
    # A trial of either type lies half of `apart` from the middle, with a noise of 1.
    needed = int(np.ceil((2 * SHARP / apart) ** 2)) if apart > 0 else None
    lasting = np.flatnonzero(np.logical_and.accumulate(lows[::-1] > 0)[::-1])
    base = at_offset.solve(correct).sum()
    early, early_drawn = at_offset.solve(swap).sum() - base, at_offset.solve(swap, times).sum(-1) - base
    # How much of the way at cue offset is more than half of that in the end.
    ahead_of_half = resampled_interval(early - MOST * value.sum(), early_drawn - MOST * drawn.sum(1))
    other = np.stack([one.nearer_to_other_cue() for one in [*behind, at_offset]], 1)
    wrong = other[correct].mean(0)
    misread = np.where(wrong <= READABLE, share_misread(other[swap].mean(0), wrong), np.nan)
    misread_drawn = share_misread(times @ other[swap, -1] / len(swap), wrong[-1])
    found = ErrorType(
        decision="",
        weights=weights,
        times=time[looked],
        over_time=curves["swap"],
        over_time_correct=curves["correct"],
        onset=float(time[looked[lasting[0]]]) if len(lasting) else float("nan"),
        total=total,
        contrast=contrast,
        angle=angle,
        apart=apart,
        needed=needed,
        swaps=len(swap),
        correct=len(correct),
        unclear=outcome.unclear,
        cue_onset=float(onset),
        at_offset=resampled_interval(early, early_drawn),
        misread=resampled_interval(misread[-1], misread_drawn),
        misread_over_time=np.concatenate([np.full(len(looked_before), np.nan), misread[:-1]]),
        misread_error=float(wrong[-1]),
        late=ahead_of_half[2] < 0 < whole[1],
        known=known,
        explained=_explained(late, items, is_correct, swap, (value[0] + value[1], value[2]), repeats, seed),
    )
    return replace(found, decision=_decide(found, whole))


def _separation(
    late: np.ndarray, items: Items, is_correct: np.ndarray, fold: np.ndarray, swap: np.ndarray, folds: int
) -> tuple[float, float, float]:
    """Angle (degrees) and distance between what misselection and misinterpretation predict, for these swap trials, and
    the share of the predictions' power that is not error.

    Predictions come from two halves of the training trials each, whose errors are independent: products of one half
    with the other have no bias, where those of one estimate with itself hold its error.
    """
    products, power = np.zeros(3), 0.0
    for k in range(folds):
        train, test = np.flatnonzero((fold != k) & is_correct), swap[fold[swap] == k]
        if len(test) == 0:
            continue
        whole = prediction_model(late[train], items.report[train], items.cued[train])
        white = whitener(late[train] - whole.nominal(items.report[train], items.cued[train]))
        given, lines = (items.report[test], items.cued[test]), []
        for rows in (train, train[::2], train[1::2]):
            model = prediction_model(late[rows], items.report[rows], items.cued[rows])
            nominal = model.nominal(*given)
            lines.append([(f(*given) - nominal) @ white for f in (model.misselected, model.misinterpreted)])
        (s_0, i_0), (s_1, i_1), (s_2, i_2) = lines
        power += (s_0**2).sum() + (i_0**2).sum()
        products += [(s_1 * s_2).sum(), (i_1 * i_2).sum(), ((s_1 * i_2).sum() + (i_1 * s_2).sum()) / 2]
    selected, interpreted, both = products / len(swap)
    apart = np.sqrt(max(selected + interpreted - 2 * both, 0.0))
    cosine = both / np.sqrt(max(selected * interpreted, 1e-24)) if min(selected, interpreted) > 0 else np.nan
    known = (products[0] + products[1]) / max(power, 1e-24)
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1)))), float(apart), float(known)


def _explained(
    late: np.ndarray,
    items: Items,
    is_correct: np.ndarray,
    swap: np.ndarray,
    weights: tuple[float, float],
    repeats: int,
    seed: int,
) -> Interval:
    """Share of the systematic deviation of swap trials from correct ones that predictions with these weights account
    for, with its 95 % interval over swap trials; NaN where there is no such deviation.

    Systematic is what depends on the display: the deviation is regressed on both colours by cue. Its power is the
    product of the regressions of two halves of the swap trials, each with predictions from its own half of the correct
    trials, so that errors of estimation do not add to it.
    """
    source = without_conjunctions(late, (items.report, items.cued), is_correct)
    correct = np.flatnonzero(is_correct)
    usual = prediction_model(source[correct], items.report[correct], items.cued[correct])
    white = whitener(source[correct] - usual.nominal(items.report[correct], items.cued[correct]))
    colours = embed(np.stack([items.target, items.distractor], 1)).reshape(len(late), 4)
    shown = np.concatenate([np.ones((len(late), 1)), colours], 1)
    shown = np.concatenate([shown * (items.cued == cue)[:, None] for cue in (0, 1)], 1)
    halves = []
    for own, others in ((swap[::2], correct[::2]), (swap[1::2], correct[1::2])):
        model = prediction_model(source[others], items.report[others], items.cued[others])
        given = items.report[own], items.cued[own]
        nominal = model.nominal(*given)
        selected, interpreted = (error(*given) - nominal for error in (model.misselected, model.misinterpreted))
        deviation = source[own] - nominal
        rest = deviation - weights[0] * selected - weights[1] * interpreted
        halves.append((shown[own], np.stack([deviation @ white, rest @ white])))
    every = shown[swap]

    def share(counts: list[np.ndarray]) -> float:
        """1 minus the power of what is left over that of the deviation, each trial counted so many times."""
        curves = []
        for (design, values), count in zip(halves, counts):
            weighted = (design * count[:, None]).T
            gram = weighted @ design + np.eye(design.shape[1])
            curves.append(every @ np.linalg.solve(gram, weighted @ values))
        whole, left = (curves[0] * curves[1]).sum((1, 2))
        return float(1 - left / whole) if whole > 0 else float("nan")

    rng = np.random.default_rng(seed)
    sizes = [len(design) for design, _ in halves]
    drawn = np.array(
        [share([rng.multinomial(n, np.full(n, 1 / n)).astype(float) for n in sizes]) for _ in range(repeats)]
    )
    if np.isnan(drawn).mean() > 0.025:
        return UNKNOWN
    return resampled_interval(share([np.ones(n) for n in sizes]), drawn[np.isfinite(drawn)])


def share_misread(swap: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Share of swap trials whose memory is that of the other cue, from the shares of swap and of correct trials that
    are nearer to it: noise takes a trial across the middle as often in the former as in the latter."""
    return (swap - correct) / np.maximum(1 - 2 * correct, 1e-9)


def _decide(found: ErrorType, whole: Interval) -> str:
    """Misbinding if more than half of the way to it, no type if a smaller part; no mark if all weights together are
    small and the predictions are known well enough for a mark to show; a late switch if swap trials surely go most of
    their way after the cue and it was read as given, and no type if it cannot be said whether it was; else the one of
    the other two that the interval of their difference names, provided that there are trials enough to mean it and, for
    misinterpretation, that the cue was not surely read as given."""
    if found.weights["misbinding"][1] > MOST:
        return "misbinding"
    if whole[2] < MARK:
        return "no mark" if found.known > MOST else "cannot tell"
    if found.partly_misbound:
        return "cannot tell"
    if found.late and found.weights["misbinding"][2] < MOST and found.cue_read is not False:
        return "late switch" if found.cue_read else "cannot tell"
    sharp = found.needed is not None and found.needed <= found.swaps
    if not sharp or found.contrast[1] <= 0 <= found.contrast[2] or whole[1] <= 0:
        return "cannot tell"
    said = "misselection" if found.contrast[1] > 0 else "misinterpretation"
    return "cannot tell" if said == "misinterpretation" and found.cue_read else said


def classify_trials(simulated: Simulated, count: int) -> ErrorType:
    """Which type of error, from so many single trials, each of its own condition as the task draws it."""
    return classify_swaps(simulated(count, 1, seed=21))


def parting(found: ErrorType | None, decoded: Decoding | None) -> tuple[float, bool] | None:
    """From which time on swap and correct trials differ, and whether a held-out decoder says it: where the regression
    says, unless the decoder of the same trials cannot tell them apart there; then from where on it can. None where
    neither says."""
    if found is None or not np.isfinite(found.onset):
        return None
    if decoded is None or decoded.tells(np.interp(found.onset, decoded.times, decoded.auc)):
        return found.onset, False
    lasting = np.flatnonzero(np.minimum.accumulate(decoded.tells(decoded.auc)[::-1])[::-1])
    return (float(decoded.times[lasting[0]]), True) if len(lasting) else None


# --- Words ---

_NAMED = {
    "misbinding": "misbinding; the colours are exchanged before the cue",
    "misselection": "misselection; the cue is read correctly, but it selects the wrong colour",
    "misinterpretation": "misinterpretation; the cue is mistaken for the other one",
    "late switch": "late switch; the cue is read correctly, and only later does memory change to the other item",
}
# Of late switches of which part shows when the cue ends.
_BEGUN = (
    "mostly late switch; the cue is read correctly, and memory moves most of the way to the other item later, but it"
    " has moved part of the way when the cue ends"
)
_IN_PLACE = "Before the cue, both colours are at their own places in memory"
_AGREED = {
    "misbinding": "The colours change places in memory before the cue.",
    "misselection": f"{_IN_PLACE}; the cue then selects the wrong one.",
    "misinterpretation": f"{_IN_PLACE}; the cue is mistaken for that of the other item.",
    "late switch": f"{_IN_PLACE}, and the cue is read correctly; only later does memory change to the other item.",
    "no mark": "Memory shows no trace of the error up to the response.",
    "none of these": "None of the types of error describes the memory of swap trials.",
    "prior inclination": (
        "Both items are held correctly, but one is favoured before the cue, and the cue does not overrule it."
    ),
    "mixed": "Swaps do not have a single origin: no part of the trial decides half of them.",
}
_AGREED_BEGUN = (
    f"{_IN_PLACE}; in most swap trials the cue is read correctly and memory moves most of the way to the other item"
    " later, but it has moved part of the way when the cue ends."
)


def agreed_type(found: Mechanism) -> tuple[str | None, str | None]:
    """The type of error that all answers support, and what speaks against the one that memory alone suggests.

    Commitment comes first: the part of the trial that decides at least half of the outcome limits what is possible.

    - before the cue: misbinding where memory holds the colours exchanged; prior inclination where that is ruled out.
    - during the cue: misselection or misinterpretation, as memory says.
    - after the cue: late switch, or no mark, as memory says. Either carrier (transplants) is possible.
    - none of the three decides half of it: mixed.

    Where memory says a type that belongs to another part, no type is given and the conflict is named. In a recording,
    where commitment cannot be measured, `_type_in_recording` has the rule.
    """
    answer, curve = found.error_type, found.commitment
    if answer is None:
        return None, None
    if curve is None or not curve.shares:
        return _type_in_recording(found)
    shares = _decided(curve)
    part = max(shares, key=lambda name: shares[name])
    if shares[part] < MOST:
        return "mixed", None
    if part == _BEFORE and answer.decision != "misbinding":
        if answer.maybe_misbinding:
            return None, "it cannot be told whether the colours were exchanged before the cue"
        return "prior inclination", None
    if answer.decision != "cannot tell" and answer.decision not in _POSSIBLE[part]:
        return None, f"{percent(_decided_interval(curve, part))} of the outcome is decided {part}"
    return _supported_by_memory(found)


_BEFORE = "before the cue"
_POSSIBLE = {
    _BEFORE: ("misbinding",),
    "during the cue": ("misselection", "misinterpretation"),
    "after the cue": ("late switch", "no mark"),
}


def _decided_interval(curve: Commitment, part: str) -> Interval:
    """Share of the outcome that is decided in one of the three parts, with its interval."""
    if part == _BEFORE:
        return curve.before_cue
    return curve.shares["cue" if part == "during the cue" else "second delay"]


def _decided(curve: Commitment) -> dict[str, float]:
    """Shares of the outcome that are decided before, during and after the cue; they add up to 1."""
    during, after = (_decided_interval(curve, part)[0] for part in ("during the cue", "after the cue"))
    return {_BEFORE: 1 - during - after, "during the cue": during, "after the cue": after}


def _supported_by_memory(found: Mechanism) -> tuple[str | None, str | None]:
    """The type that memory suggests, unless the predictions surely explain less than three quarters of how swap trials
    differ, or a held-out decoder reads swaps where memory is said to show no mark.

    A late switch that the forming response carries does not rest on what memory looks like.
    """
    answer, read = found.error_type, found.decoding
    carried_by_response = answer.decision == "late switch" and found.carrier == "x"
    # Predictions that are mostly error of estimation explain little of anything.
    little = answer.explained[2] < ENOUGH and answer.known > MOST
    if answer.decision != "no mark" and little and not carried_by_response:
        return "none of these", None
    if answer.decision == "no mark" and read is not None and read.surely_tells(read.at_response):
        return None, f"a held-out decoder of memory detects swaps at the response (AUC {read.at_response:.2f})"
    return (None if answer.decision == "cannot tell" else answer.decision), None


def _type_in_recording(found: Mechanism) -> tuple[str | None, str | None]:
    """The type of a recording: prior inclination where misbinding is ruled out and a decoder of memory before the cue
    surely has an area of more than 0.8; otherwise what memory suggests, unless that decoder surely tells swaps, or a
    late switch has begun when the cue ends: how much of the outcome is decided by then a recording cannot say."""
    read, answer = found.decoding, found.error_type
    if read is not None and not answer.maybe_misbinding:
        area = max(read.before_cue, read.inclined)
        if area > READS_MOST + 2 * read.error:
            return "prior inclination", None
        if read.surely_tells(area) and answer.decision != "cannot tell":
            return None, f"a held-out decoder tells part of the swaps before the cue (area {area:.2f})"
    if answer.decision == "late switch" and answer.begun:
        return None, "part of the way to the error is there when the cue ends"
    return _supported_by_memory(found)


def _error(found: Mechanism) -> str | None:
    return agreed_type(found)[0]


def _contradiction(found: Mechanism) -> str | None:
    return agreed_type(found)[1]


def _shown_type(answer: ErrorType, found: Mechanism) -> str:
    """The type as figures and tables write it."""
    word, conflict = agreed_type(found)
    return word or ("not known" if conflict else answer.decision)


def _reads_at_offset(found: Mechanism) -> str:
    """What a held-out decoder says against a cue that was read as it was given; empty where nothing."""
    read = found.decoding
    if read is None or not read.surely_tells(read.at_offset):
        return ""
    return f"a held-out decoder detects swaps when the cue ends (AUC {read.at_offset:.2f})"


def _origins(found: Mechanism) -> str:
    """What each part of the trial decides of swaps that have no single origin."""
    before, during, after = (f"{100 * share:z.0f} %" for share in _decided(found.commitment).values())
    text = f"{before} of the outcome is fixed before the cue, {during} is decided during it and {after} after it"
    if found.error_type.maybe_misbinding:
        return text
    return f"{text}; before the cue, both colours are at their own places, so what is fixed then is a prior inclination"


def _agreed(found: list[Mechanism]) -> str:
    word = found[0].error
    if word == "late switch":
        if told := [text for mechanism in found if (text := _reads_at_offset(mechanism))]:
            return f"{_IN_PLACE}; memory moves most of the way to the other item after the cue, but {told[0]}."
        if any(mechanism.error_type.begun for mechanism in found):
            return _AGREED_BEGUN
    return _AGREED[word]


def _unknown(found: list[Mechanism]) -> str:
    answers = [mechanism.error_type for mechanism in found]
    if any(answer is None for answer in answers):
        return "The type of error is not known."
    for mechanism, answer in zip(found, answers):
        if conflict := agreed_type(mechanism)[1]:
            return f"No type of error is named: {_suggested(answer, conflict)}."
    if any(answer.known <= MOST for answer in answers):
        return "Which type of error it is cannot be told, since what the types predict is known too poorly."
    if any(answer.partly_misbound for answer in answers):
        return "Swaps are of more than one type; in some of them the colours change places in memory before the cue."
    if any(answer.maybe_misbinding for answer in answers):
        return "There are too few swaps to tell which type of error it is."
    if any(answer.late for answer in answers):
        return (
            f"{_IN_PLACE}; memory changes to the other item after the cue, and it cannot be told whether the cue was"
            " read correctly."
        )
    return f"{_IN_PLACE}; it cannot be told whether the cue selects the wrong one or is mistaken for the other cue."


def _suggested(answer: ErrorType, conflict: str) -> str:
    """What memory suggests, and what contradicts it."""
    if answer.decision == "cannot tell":
        return f"memory does not show which, and {conflict}"
    return f"memory suggests {answer.decision}, but {conflict}"


def _told_apart(answer: ErrorType) -> str:
    if answer.late and answer.cue_read is None:
        return (
            "swap trials change to the other item after the cue, and memory at cue offset does not show whether the cue"
            " was read correctly"
        )
    if answer.cue_read and answer.contrast[2] < 0:
        return "memory at the end is as after the other cue, but at cue offset it holds the cue that was given"
    if answer.needed is None:
        return "misselection and misinterpretation predict the same memory activity here"
    if answer.needed > answer.swaps:
        return (
            f"misselection and misinterpretation predict memory activity only {answer.angle:.0f}° apart, and about"
            f" {answer.needed:,} swap trials would be needed where there are {answer.swaps:,}"
        )
    return "swap trials lie between the two predictions"


def _parting_sentence(found: Mechanism) -> str:
    apart = parting(found.error_type, found.decoding)
    if apart is None:
        return ""
    when, decoded = found.clock.text(apart[0]), apart[1]
    if decoded:
        return f" A held-out decoder tells them from correct trials from {when} on."
    return f" They diverge from correct trials at {when}."


def _sentence(answer: ErrorType, found: Mechanism) -> str:
    weights = ", ".join(f"{name} {interval(value)}" for name, value in answer.weights.items())
    trials = f"{answer.swaps:,} swap trials; {answer.unclear:,} unclear ones left out"
    explained = ""
    if np.isfinite(answer.explained[0]):
        explained = f" The predictions explain {percent(answer.explained)} of how swap trials differ from correct ones."
    word, conflict = agreed_type(found)
    if answer.decision == "no mark" and conflict:
        return f"Error type: none of the types describes these swaps ({weights}; {trials}), although {conflict}."
    if conflict:
        return f"Error type: {_suggested(answer, conflict)} ({weights}; {trials}).{explained}"
    if word == "none of these":
        return f"Error type: none of these types describes the swaps ({weights}; {trials}).{explained}"
    if word == "prior inclination":
        return (
            "Error type: prior inclination; both items are held correctly, but one is favoured before the cue, and the"
            f" cue does not overrule it ({weights}; {trials}).{explained}"
        )
    if word == "mixed":
        return f"Error type: mixed; {_origins(found)} ({weights}; {trials}).{explained}"
    if answer.decision == "no mark":
        return f"Error type: swap trials look like correct ones in memory up to the response ({weights}; {trials})."
    when = _parting_sentence(found)
    if answer.decision == "cannot tell":
        if answer.known <= MOST:
            text = "which of the types cannot be told, since what they predict is known too poorly"
        elif answer.partly_misbound:
            text = "more than one; some swaps are misbindings, and others are not"
        elif answer.maybe_misbinding:
            text = "cannot be told, because there are too few swaps"
        else:
            text = f"not misbinding, but it cannot be told which of the other two: {_told_apart(answer)}"
        return f"Error type: {text} ({weights}; {trials}).{explained}{when}"
    named = _NAMED[answer.decision]
    if answer.decision == "late switch":
        if told := _reads_at_offset(found):
            named = f"mostly late switch; memory moves most of the way after the cue, but {told}"
        elif answer.begun:
            named = _BEGUN
    text = f"Error type: {named} (weights at the end of delay 2: {weights}; {trials}).{explained}{when}"
    if answer.decision != "late switch":
        return text
    return (
        f"{text} At cue offset the weights sum to {interval(answer.at_offset)}, and memory is that of the other"
        f" cue in {percent(answer.misread)} of swap trials."
    )


# --- Panels ---

SHADES = {"misbinding": GREEN, "misselection": VERMILION, "misinterpretation": BLUE}


def weights_panel(ax: Axes, found: ErrorType, clock: Clock = Clock(), apart: float | None = None) -> Axes:  # noqa: B008
    """Weights of the three predictions in held-out swap trials (thick) and correct trials (thin) over time, and the
    share of swap trials whose memory is that of the other cue; apart: from which time on trials differ."""
    times = clock.shown(found.times)
    for name in ERROR_TYPES:
        ax.plot(times, found.over_time_correct[name], color=SHADES[name], lw=0.5)
        ax.plot(times, found.over_time[name], color=SHADES[name], label=name)
    for level in (0, 1):
        ax.axhline(level, color=GREY, lw=0.5, ls=(0, (3, 2)), zorder=0)
    if apart is not None:
        ax.axvline(float(clock.shown(apart)), color="0.4", lw=0.7, ls=(0, (1, 1)), zorder=0)
        ax.text(float(clock.shown(apart)), -0.5, " trials diverge", fontsize=SMALL, color="0.35", va="center")
    ax.plot([], [], color="0.3", lw=0.5, label="thin: correct trials")
    if np.isfinite(found.misread_over_time).any():
        label = "swaps with the other cue's memory"
        ax.plot(times, found.misread_over_time, color="0.3", lw=0.9, ls=(0, (2, 1)), label=label)
    legend(ax)
    ax.set_xlim(right=times[-1] + 0.01 * (times[-1] - times[0]))
    return time_axis(ax, clock, "weight of the prediction", found.cue_onset, top=1.5, bottom=-0.6)


def _response_panel(ax: Axes, answer: ErrorType, word: str) -> Axes:
    """Weights at the end of delay 2, swap minus correct trials, with their 95 % intervals; word: what they decide."""
    for level in (0, 1):
        ax.axvline(level, color=GREY, lw=0.5, ls=(0, (3, 2)), zorder=0)
    for k, name in enumerate(ERROR_TYPES):
        value, low, high = answer.weights[name]
        ax.plot([low, high], [-k, -k], color=SHADES[name], lw=1.4)
        ax.plot([value], [-k], "o", color=SHADES[name], ms=4, label=name)
    ax.set(yticks=[0, -1, -2], ylim=(-2.6, 0.6), xlim=(-0.35, 1.35), xlabel="weight at the response")
    ax.set_yticklabels(ERROR_TYPES)
    angle = f"predictions {answer.angle:.0f}° apart; " if np.isfinite(answer.angle) else ""
    ax.set_title(f"{word}\n({angle}{answer.swaps:,} swaps)", fontsize=SMALL, linespacing=1.2)
    return ax


def _panels(answer: ErrorType, found: Mechanism) -> list[Panel]:
    apart = parting(answer, found.decoding)
    word = _shown_type(answer, found)
    return [
        Panel(lambda ax: weights_panel(ax, answer, found.clock, apart and apart[0]), 1.4),
        Panel(lambda ax: _response_panel(ax, answer, word)),
    ]


def _row(answer: ErrorType, found: Mechanism) -> dict:
    apart = parting(answer, found.decoding)
    word = {"error_type": _shown_type(answer, found)}
    return answer.row() | word | {"parting": None if apart is None else apart[0]}


# --- Terms ---


def _arrow(x1: int, y1: int, x2: int, y2: int) -> str:
    """A line with a dot at its end."""
    return f'<path d="M{x1} {y1}L{x2} {y2}"/><circle cx="{x2}" cy="{y2}" r="2.5" fill="currentColor"/>'


_ITEMS = '<circle cx="12" cy="12" r="6"/><rect x="6" y="30" width="12" height="12"/>'
_PLACES = '<path d="M78 12h12M78 36h12"/>'

_TERMS = (
    Term(
        "misbinding",
        "the two colours change places in memory before the cue; the cue then finds the wrong one.",
        "Before the cue, decoders of each item's colour read the other item's colour on swap trials.",
        Markup(_ITEMS + _PLACES + _arrow(20, 12, 74, 36) + _arrow(20, 36, 74, 12)),
    ),
    Term(
        "misselection",
        "memory is right and the cue is read, but it selects the wrong colour.",
        "Before the cue swap trials look like correct ones; once it has been shown, the colours have changed roles.",
        Markup(_ITEMS + _PLACES + _arrow(20, 12, 74, 12) + '<path d="M20 36L74 36" stroke-dasharray="2 4"/>'),
    ),
    Term(
        "misinterpretation",
        "memory is right, but the cue is taken for that of the other item.",
        "On swap trials the cue itself is decoded as the other item's, as soon as it is shown.",
        Markup(_ITEMS + '<path d="M48 6v36" stroke-dasharray="2 4"/>' + _arrow(90, 36, 56, 12)),
    ),
    Term(
        "prior inclination",
        "memory is right, but one item is favoured before the cue, and the cue does not overrule it.",
        "Before the cue, activity shows which item will be reported, while each item's colour is decoded correctly.",
        Markup(_ITEMS + _PLACES + _arrow(20, 12, 74, 12) + '<path d="M20 36L74 36" stroke-width="4"/>'),
        r"prior inclination",
    ),
    Term(
        "late switch",
        "memory is right and the cue is read correctly; later, in the delay, memory changes to the other item.",
        "When the cue ends, swap trials look like correct ones with the cue that was given; they diverge later.",
        Markup(_ITEMS + _PLACES + '<path d="M20 12L46 12"/>' + _arrow(46, 12, 74, 36)),
        r"late switch",
    ),
    Term(
        "mixed",
        "no part of the trial decides half of the outcome: some is fixed before the cue, some during, some after it.",
        "A decoder reads upcoming swaps in part before the cue, better after it, and fully only at the response.",
        Markup(_ITEMS + _PLACES + '<path d="M20 12L74 12M20 36L40 36"/>' + _arrow(40, 36, 74, 12)),
        r"Error type: mixed|single origin",
    ),
)

QUESTION = Question(
    name="error_type",
    title="Which type of error is it?",
    definition="How far the memory of held-out swap trials lies along the prediction of each type of error.",
    in_recording="The same regression is run on a recording.",
    answer=ErrorType,
    ask=lambda network: classify_swaps(network.single_trials),
    read=lambda recording: classify_swaps(recording.dataset, every=recording.every, seed=recording.seed),
    sentence=_sentence,
    panels=_panels,
    caption=(
        "Weight of each type's prediction in held-out activity: swap trials (thick), correct trials (thin);"
        " right, at the response, swap minus correct trials with 95 % intervals."
    ),
    unknown="The type of error is not known",
    row=_row,
    terms=_TERMS,
    columns=(
        Column("error type", _shown_type, "the type of error"),
        Column("swaps", lambda answer, _: str(answer.swaps), "swap trials that it rests on"),
    ),
    verdict=Verdict(name="error", about="the type of error", of=_error, short={}, agreed=_agreed, unknown=_unknown),
    contradiction=_contradiction,
)
