"""Which kind of error are swaps? Misbinding, misselection or misinterpretation (Fig 4B; after Alleman et al. 2024).

On correct trials a linear model predicts memory activity from what was shown: before the cue from the colours of the
upper and the lower item; from the cue on from target and distractor colours, each at its place. Each kind of error
predicts other activity: *misbinding*, colours exchanged from the start; *misselection*, colours exchanged from the cue
on; *misinterpretation*, the other item taken for the cued one from the cue on. Held-out activity of all swap trials is
regressed on the three predicted deviations together, in units of the noise: one weight a kind, no ratio for single
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
"""

from dataclasses import dataclass, field, replace

import numpy as np
import xarray as xr

from lapsus.analysis.activity import Items, cue_onset, memory, require_trials, two_items
from lapsus.analysis.outcomes import outcomes
from lapsus.errors import LapsusError
from lapsus.statistics.intervals import Interval, resampled_interval

__all__ = [
    "KINDS",
    "Equations",
    "Kind",
    "PredictionModel",
    "error_equations",
    "kind_of_swaps",
    "periodic_spline",
    "prediction_model",
    "share_misread",
    "whitener",
    "without_conjunctions",
]

KINDS = ("misbinding", "misselection", "misinterpretation")
WINDOW = 5
# Total weight below which swap trials look like correct ones, and how many standard errors two kinds must be from the
# middle between them to be told apart.
MARK, SHARP = 0.25, 4.0
# Share of the way to an error, and of swap trials, from which on it is most of it.
MOST = 0.5
# Share from which on a part is worth saying.
PART = 0.1
# Share of correct trials that may be nearer to the memory of the other cue for that to say anything of swap trials; at
# one half memory does not hold the cue. These errors are taken off (share_misread).
READABLE = 0.4
UNKNOWN = (float("nan"),) * 3


def periodic_spline(angle: np.ndarray, knots: int = 5) -> np.ndarray:
    """Linear spline basis on the circle with evenly spaced knots: [..., knot], at most two non-zero, summing to 1."""
    place = (np.asarray(angle) + np.pi) / (2 * np.pi) * knots
    gap = np.abs(place[..., None] - np.arange(knots))
    gap = np.minimum(gap, knots - gap)
    return np.maximum(1 - gap, 0)


def _design(report: np.ndarray, cued: np.ndarray | None) -> np.ndarray:
    """Columns of the linear model: the two colours by place, or (with a cue) by role and place."""
    first, second = periodic_spline(report[:, 0]), periodic_spline(report[:, 1])
    if cued is None:
        return np.concatenate([first, second], 1)
    up, down = (cued == 0)[:, None], (cued == 1)[:, None]
    return np.concatenate([first * up, second * down, first * down, second * up], 1)


@dataclass(frozen=True)
class PredictionModel:
    """Memory activity as a linear function of colours by place (before the cue) or by role and place (from it on)."""

    weights: np.ndarray
    shift: np.ndarray
    centre: np.ndarray

    def _of(self, design: np.ndarray) -> np.ndarray:
        return np.tensordot(design - self.shift, self.weights, 1) + self.centre

    def nominal(self, report: np.ndarray, cued: np.ndarray | None = None) -> np.ndarray:
        """Predicted activity [trial, ...] of correct trials with colours report [trial, 2] and cue [trial]."""
        return self._of(_design(report, cued))

    def exchanged(self, report: np.ndarray) -> np.ndarray:
        """Before the cue: colours exchanged."""
        return self.nominal(report[:, ::-1])

    def misselected(self, report: np.ndarray, cued: np.ndarray) -> np.ndarray:
        """From the cue on: cue kept, colours exchanged."""
        return self.nominal(report[:, ::-1], cued)

    def misinterpreted(self, report: np.ndarray, cued: np.ndarray) -> np.ndarray:
        """From the cue on: colours kept, the other item taken for the cued one."""
        return self.nominal(report, 1 - cued)


def prediction_model(
    m: np.ndarray, report: np.ndarray, cued: np.ndarray | None = None, *, alpha: float = 1.0
) -> PredictionModel:
    """Ridge regression of activity m [trial, ..., unit], times apart, on colours report [trial, 2] and, where given,
    the cue [trial]."""
    design = _design(report, cued)
    shift, centre = design.mean(0), m.mean(0)
    d = design - shift
    weights = np.linalg.solve(d.T @ d + alpha * np.eye(d.shape[1]), d.T @ (m - centre).reshape(len(m), -1))
    return PredictionModel(weights.reshape(-1, *m.shape[1:]), shift, centre)


def without_conjunctions(m: np.ndarray, given: tuple[np.ndarray, ...], known: np.ndarray) -> np.ndarray:
    """Activity m [trial, ..., unit] without what it holds of the display beyond the linear model: products of the first
    two waves of one colour with those of the other, by cue where there is one. given: report [trial, 2] and, from the
    cue on, cued [trial]; known [trial]: the trials whose activity says how these are held."""
    report = given[0]
    waves = np.concatenate([f(k * report)[..., None] for k in (1, 2) for f in (np.cos, np.sin)], -1)
    both = (waves[:, 0, :, None] * waves[:, 1, None]).reshape(len(report), -1)
    shown = np.concatenate([waves[:, 0], waves[:, 1], both], 1)
    if len(given) == 2:
        shown = np.concatenate([shown * (given[1] == cue)[:, None] for cue in (0, 1)], 1)
    shown = shown - shown.mean(0)
    rest = m[known] - prediction_model(m[known], *(part[known] for part in given)).nominal(*(p[known] for p in given))
    # As many trials as weights would fit noise: the ridge is one trial's worth of each product.
    gram = shown[known].T @ shown[known] + np.eye(shown.shape[1])
    return m - (shown @ np.linalg.solve(gram, shown[known].T @ rest.reshape(len(rest), -1))).reshape(m.shape)


@dataclass(frozen=True)
class Kind:
    """Which kind of error swap trials are.

    decision: one of KINDS; "late switch" where the cue is read as it was given and trials go over later; "no mark"
    where swap trials look like correct ones in memory; "cannot tell" where two kinds predict too nearly the same.
    weights: kind → (value, low, high) at the end of delay 2, swap minus correct trials. over_time: kind → [time], with
    `correct` → kind → [time]; times [time]. onset: first time (from the stimuli on) from which the weight of any error
    stays above 0 (steps from cue offset; NaN if never). total: weights of misselection and misinterpretation together;
    contrast: misselection minus misinterpretation; both (value, low, high). angle: degrees between the predictions of
    misselection and misinterpretation; apart: their distance; both in units of the noise of single trials and without
    the bias of predictions that are estimated. needed: swap trials that would tell them apart, None where they predict
    the same; swaps, correct, unclear: trials used and left out. cue_onset: on the clock of `times`. at_offset: all
    weights together at cue offset. misread: share of swap trials whose memory at cue offset is that of the other cue,
    and misread_over_time [time] (NaN before the cue and where memory does not hold it); misread_error: the share of
    correct trials that are nearer to it. late: whether swap trials surely have come less than half of their way at cue
    offset.
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

    @property
    def begun(self) -> bool:
        """Whether part of the way to the error, or part of swap trials, is surely there at cue offset."""
        return self.at_offset[1] > PART or self.misread[1] > PART

    @property
    def partly_misbound(self) -> bool:
        """Whether swaps are of more than one kind: surely a part is misbound, and not most of them."""
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
    """Normal equations of each trial at one time: gram [trial, kind, kind] and moment [trial, kind]."""

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
        """Weights [..., kind] of the trials in rows [trial], each counted `times` [..., trial] times."""
        times = np.ones(len(rows)) if times is None else times
        gram, moment = np.tensordot(times, self.gram[rows], 1), times @ self.moment[rows]
        ridge = 1e-9 * np.trace(gram, axis1=-2, axis2=-1)[..., None, None] * np.eye(gram.shape[-1])
        return np.linalg.solve(gram + ridge + 1e-12 * np.eye(gram.shape[-1]), moment[..., None])[..., 0]


def whitener(residual: np.ndarray) -> np.ndarray:
    """W with W' residual of unit covariance, directions with next to no noise kept at a floor."""
    spectrum, vectors = np.linalg.eigh(np.cov(residual.T).reshape(residual.shape[1], -1))
    floor = max(spectrum.max() * 1e-3, 1e-12)
    return vectors / np.sqrt(np.maximum(spectrum, floor))


def error_equations(
    m: np.ndarray, given: tuple[np.ndarray, ...], known: np.ndarray, fold: np.ndarray
) -> list[Equations]:
    """At each time of m [trial, time, unit], of held-out deviations from a trial without error on those that the errors
    predict: misbinding where only the colours are `given`, misselection and misinterpretation where the cue is, too.
    Models and noise come from the trials in `known` of the other folds (fold [trial])."""
    kinds, times = len(given), m.shape[1]
    gram, moment = np.zeros((times, len(m), kinds, kinds)), np.zeros((times, len(m), kinds))
    for k in range(fold.max() + 1):
        train, test = (fold != k) & known, fold == k
        source = without_conjunctions(m, given, train)
        model = prediction_model(source[train], *(part[train] for part in given))
        noise = source[train] - model.nominal(*(part[train] for part in given))
        white = np.stack([whitener(noise[:, t]) for t in range(times)])
        own = tuple(part[test] for part in given)
        nominal = model.nominal(*own)
        errors = (model.exchanged,) if kinds == 1 else (model.misselected, model.misinterpreted)
        # [time, trial, unit], in units of the noise
        held = np.matmul((source[test] - nominal).swapaxes(0, 1), white)
        lines = np.stack([np.matmul((error(*own) - nominal).swapaxes(0, 1), white) for error in errors], 2)
        gram[:, test] = lines @ lines.swapaxes(-1, -2)
        moment[:, test] = (lines @ held[..., None])[..., 0]
    return [Equations(*one) for one in zip(gram, moment)]


def kind_of_swaps(dataset: xr.Dataset, *, folds: int = 5, every: int = 2, repeats: int = 300, seed: int = 0) -> Kind:
    """Regress held-out activity of swap and of correct trials on what each kind of error predicts.

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
    curves = {group: {kind: np.full(len(looked), np.nan) for kind in KINDS} for group in ("swap", "correct")}
    lows = np.empty(len(looked))
    for step, own in enumerate([*ahead, *behind]):
        value, base, drawn = own.solve(swap), own.solve(correct), own.solve(swap, times)
        for k, name in enumerate(KINDS[: len(value)]):
            curves["swap"][name][step], curves["correct"][name][step] = value[k], base[k]
        lows[step] = np.quantile(drawn.sum(-1), 0.005) - base.sum()
    base = end.solve(correct)
    value, drawn = end.solve(swap) - base, end.solve(swap, times) - base
    weights = {name: resampled_interval(value[k], drawn[:, k]) for k, name in enumerate(KINDS)}
    total = resampled_interval(value[1] + value[2], drawn[:, 1] + drawn[:, 2])
    whole = resampled_interval(value.sum(), drawn.sum(1))
    contrast = resampled_interval(value[1] - value[2], drawn[:, 1] - drawn[:, 2])
    angle, apart = _separation(late, items, is_correct, fold, swap, folds)
    # A trial of either kind lies half of `apart` from the middle, with a noise of 1.
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
    found = Kind(
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
    )
    return replace(found, decision=_decide(found, whole))


def _separation(
    late: np.ndarray, items: Items, is_correct: np.ndarray, fold: np.ndarray, swap: np.ndarray, folds: int
) -> tuple[float, float]:
    """Angle (degrees) and distance between what misselection and misinterpretation predict, for these swap trials.

    Predictions come from two halves of the training trials each, whose errors are independent: products of one half
    with the other have no bias, where those of one estimate with itself hold its error.
    """
    products = np.zeros(3)
    for k in range(folds):
        train, test = np.flatnonzero((fold != k) & is_correct), swap[fold[swap] == k]
        if len(test) == 0:
            continue
        whole = prediction_model(late[train], items.report[train], items.cued[train])
        white = whitener(late[train] - whole.nominal(items.report[train], items.cued[train]))
        lines = []
        for rows in (train[::2], train[1::2]):
            model = prediction_model(late[rows], items.report[rows], items.cued[rows])
            given = items.report[test], items.cued[test]
            nominal = model.nominal(*given)
            lines.append([(f(*given) - nominal) @ white for f in (model.misselected, model.misinterpreted)])
        (s_1, i_1), (s_2, i_2) = lines
        products += [(s_1 * s_2).sum(), (i_1 * i_2).sum(), ((s_1 * i_2).sum() + (i_1 * s_2).sum()) / 2]
    selected, interpreted, both = products / len(swap)
    apart = np.sqrt(max(selected + interpreted - 2 * both, 0.0))
    cosine = both / np.sqrt(max(selected * interpreted, 1e-24)) if min(selected, interpreted) > 0 else np.nan
    return float(np.degrees(np.arccos(np.clip(cosine, -1, 1)))), float(apart)


def share_misread(swap: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Share of swap trials whose memory is that of the other cue, from the shares of swap and of correct trials that
    are nearer to it: noise takes a trial across the middle as often in the former as in the latter."""
    return (swap - correct) / np.maximum(1 - 2 * correct, 1e-9)


def _decide(found: Kind, whole: Interval) -> str:
    """Misbinding if more than half of the way to it, no kind if a smaller part; no mark if all weights together are
    small; a late switch if swap trials surely go most of their way after the cue and it was read as given, and no kind
    if it cannot be said whether it was; else the one of the other two that the interval of their difference names,
    provided that there are trials enough to mean it and, for misinterpretation, that the cue was not surely read as
    given."""
    if found.weights["misbinding"][1] > MOST:
        return "misbinding"
    if whole[2] < MARK:
        return "no mark"
    if found.partly_misbound:
        return "cannot tell"
    if found.late and found.weights["misbinding"][2] < MOST and found.cue_read is not False:
        return "late switch" if found.cue_read else "cannot tell"
    sharp = found.needed is not None and found.needed <= found.swaps
    if not sharp or found.contrast[1] <= 0 <= found.contrast[2] or whole[1] <= 0:
        return "cannot tell"
    said = "misselection" if found.contrast[1] > 0 else "misinterpretation"
    return "cannot tell" if said == "misinterpretation" and found.cue_read else said
