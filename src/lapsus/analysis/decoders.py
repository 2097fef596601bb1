"""When do swaps arise? Projections of single trials onto the line from the nominal to an erroneous representation (Fig
4B).

After Alleman et al. 2024. On correct trials a linear model predicts memory activity from what was shown: before the
cue, the colours of the upper and the lower item; from the cue on, target and distractor colours, each at the upper or
the lower place (four blocks). A trial's place on the line nominal (0) → error (1) is (r - nominal)·(error -
nominal)/‖error - nominal‖². The errors: *misbinding*, colours exchanged before the cue; *misselection*, cue kept and
colours exchanged after it; *misinterpretation*, cue taken for the other one and colours kept. The last two lines can
run nearly parallel, so a fourth one, from the misselected (0) to the misinterpreted (1) representation, tells them
apart.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from lapsus.analysis.activity import cue_onset, memory, require_trials, two_items
from lapsus.errors import LapsusError

__all__ = ["ErrorProjections", "attribute", "error_projections", "mechanism", "periodic_spline"]

ALTERNATIVES = ("misbinding", "misselection", "misinterpretation")
CONTRAST = "misselection to misinterpretation"


def periodic_spline(angle: np.ndarray, knots: int = 5) -> np.ndarray:
    """Linear spline basis on the circle with evenly spaced knots: [..., knot], at most two non-zero, summing to 1."""
    place = (np.asarray(angle) + np.pi) / (2 * np.pi) * knots
    gap = np.abs(place[..., None] - np.arange(knots))
    gap = np.minimum(gap, knots - gap)
    return np.maximum(1 - gap, 0)


@dataclass(frozen=True)
class ErrorProjections:
    """Held-out place of each trial on the line to each error.

    values: alternative → [trial, time], NaN where the alternative is not defined (misbinding from the cue on and before
    the stimuli, the others before the cue); swap: [trial] bool; time, epoch: [time]; onset: time of the cue.
    """

    values: dict[str, np.ndarray]
    swap: np.ndarray
    time: np.ndarray
    epoch: np.ndarray
    onset: float

    def table(self, *, repeats: int = 1000, seed: int = 0) -> pd.DataFrame:
        """Mean and SEM over trials at each time, swap and correct apart, with the permutation p-value of their
        difference.

        Columns: alternative, time, swap, swap_sem, correct, correct_sem, difference, p.
        """
        rng = np.random.default_rng(seed)
        rows = []
        for name, values in self.values.items():
            defined = np.flatnonzero(np.isfinite(values).all(0))
            p = _permutation_p(values[:, defined], self.swap, repeats, rng)
            a, b = values[self.swap][:, defined], values[~self.swap][:, defined]
            for k, step in enumerate(defined):
                rows.append((name, self.time[step], a[:, k].mean(), _sem(a[:, k]), b[:, k].mean(), _sem(b[:, k]), p[k]))
        table = pd.DataFrame(rows, columns=["alternative", "time", "swap", "swap_sem", "correct", "correct_sem", "p"])
        table.insert(6, "difference", table["swap"] - table["correct"])
        return table


def _sem(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _permutation_p(values: np.ndarray, swap: np.ndarray, repeats: int, rng: np.random.Generator) -> np.ndarray:
    """Two-sided p of mean(swap) - mean(correct) for values [trial, k] when trials keep their values and lose their
    labels."""
    count, total = swap.sum(), values.sum(0)
    contrast = lambda sums: sums / count - (total - sums) / (len(swap) - count)  # noqa: E731
    observed = np.abs(contrast(values[swap].sum(0)))
    reached = np.zeros(values.shape[1])
    for _ in range(repeats):
        chosen = rng.permutation(len(swap))[:count]
        reached += np.abs(contrast(values[chosen].sum(0))) >= observed - 1e-12
    return (1 + reached) / (1 + repeats)


def _before_cue(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    return np.concatenate([upper, lower], 1)


def _after_cue(upper: np.ndarray, lower: np.ndarray, cued: np.ndarray) -> np.ndarray:
    """Blocks target-upper, target-lower, distractor-upper, distractor-lower."""
    up, down = (cued == 0)[:, None], (cued == 1)[:, None]
    return np.concatenate([upper * up, lower * down, upper * down, lower * up], 1)


def error_projections(
    dataset: xr.Dataset, *, folds: int = 5, knots: int = 5, alpha: float = 1.0, variance: float = 0.95, seed: int = 0
) -> ErrorProjections:
    """Cross-validated projections of every trial, swap or correct, at every time step.

    Each fold: z-score, principal components to `variance`, ridge with penalty `alpha`, fitted at each step to the
    correct trials of the other folds (80 %). Item 1 is the upper, item 2 the lower one.
    """
    items = two_items(dataset)
    require_trials(int(items.swap.sum()), 2, "swap trials")
    require_trials(int((~items.swap).sum()), 100, "correct trials")
    onset = cue_onset(dataset)
    time = dataset["time"].to_numpy()
    first, second = (periodic_spline(items.report[:, k], knots) for k in (0, 1))
    before = {"nominal": _before_cue(first, second), "misbinding": _before_cue(second, first)}
    after = {
        "nominal": _after_cue(first, second, items.cued),
        "misselection": _after_cue(second, first, items.cued),
        "misinterpretation": _after_cue(first, second, 1 - items.cued),
    }
    m = memory(dataset).transpose(1, 0, 2)
    rng = np.random.default_rng(seed)
    # Swaps are dealt to the folds too, so that a swap and a correct trial of one fold are judged by the same model.
    fold = np.empty(m.shape[1], dtype=int)
    for kind in (items.swap, ~items.swap):
        fold[kind] = rng.permutation(np.arange(kind.sum()) % folds)
    values = {name: np.full((m.shape[1], len(time)), np.nan) for name in (*ALTERNATIVES, CONTRAST)}
    epoch = dataset["epoch"].to_numpy()
    shown = time[epoch == "stimulus"]
    delay = np.flatnonzero((time < onset) & (time >= (shown[0] if len(shown) else time[0])))
    for steps, designs in ((delay, before), (np.flatnonzero(time >= onset), after)):
        for k in range(folds):
            train, test = (fold != k) & ~items.swap, fold == k
            fitted, held_out = _reduce(m[np.ix_(steps, train)], m[np.ix_(steps, test)], variance)
            predict = _ridge(designs["nominal"][train], fitted, alpha)
            place = {name: predict(design[test]) for name, design in designs.items()}
            for name in designs.keys() - {"nominal"}:
                values[name][np.ix_(test, steps)] = _place(held_out, place["nominal"], place[name]).T
            if designs is after:
                values[CONTRAST][np.ix_(test, steps)] = _place(
                    held_out, place["misselection"], place["misinterpretation"]
                ).T
    return ErrorProjections(values, items.swap, time, epoch, onset)


def _place(x: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Place of x on the line from start (0) to end (1), over the last axis."""
    line = end - start
    return ((x - start) * line).sum(-1) / np.maximum((line**2).sum(-1), 1e-12)


def _reduce(train: np.ndarray, test: np.ndarray, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """z-scores and principal components that explain `variance`, fitted to train [step, trial, unit] and applied to
    both.

    Components beyond that are set to 0, so that all steps keep one shape.
    """
    mean, scale = train.mean(1, keepdims=True), train.std(1, keepdims=True)
    scale = np.where(scale > 1e-12, scale, 1.0)
    train, test = (train - mean) / scale, (test - mean) / scale
    spectrum, vectors = np.linalg.eigh(train.transpose(0, 2, 1) @ train / train.shape[1])
    spectrum, vectors = spectrum[:, ::-1].clip(0), vectors[..., ::-1]
    explained_before = (np.cumsum(spectrum, 1) - spectrum) / spectrum.sum(1, keepdims=True)
    vectors = vectors * (explained_before < variance - 1e-12)[:, None]
    return train @ vectors, test @ vectors


def _ridge(design: np.ndarray, response: np.ndarray, alpha: float) -> Callable[[np.ndarray], np.ndarray]:
    """Ridge regression of response [step, trial, component] with an unpenalised intercept, as a function of a design
    [trial, column]."""
    shift, centre = design.mean(0), response.mean(1, keepdims=True)
    d = design - shift
    weights = np.linalg.solve(d.T @ d + alpha * np.eye(d.shape[1]), d.T) @ (response - centre)
    return lambda new: (new - shift) @ weights + centre


def attribute(projections: ErrorProjections, *, repeats: int = 1000, seed: int = 0) -> pd.DataFrame:
    """One row an error: mean place of swap and of correct trials, difference with 95 % bootstrap interval and
    permutation p.

    Misbinding is judged over the delay before the cue (from the offset of the stimuli), the other two from cue offset
    on.
    Columns: swap, correct, difference, low, high, p; the index names the error.
    """
    rng = np.random.default_rng(seed)
    shown = projections.time[projections.epoch == "stimulus"]
    delay = (projections.time < projections.onset) & (projections.time > (shown[-1] if len(shown) else -np.inf))
    rows = {}
    for name in ALTERNATIVES:
        window = delay if name == "misbinding" else projections.time >= 0
        if not window.any():
            raise LapsusError(
                "The dataset has no time bins"
                f" {'in the delay before the cue' if window is delay else 'from cue offset on'}."
            )
        place = projections.values[name][:, window].mean(1)
        swap, correct = place[projections.swap], place[~projections.swap]
        drawn = _resampled_mean(swap, repeats, rng) - _resampled_mean(correct, repeats, rng)
        low, high = np.quantile(drawn, [0.025, 0.975])
        p = _permutation_p(place[:, None], projections.swap, repeats, rng)[0]
        rows[name] = (swap.mean(), correct.mean(), swap.mean() - correct.mean(), low, high, p)
    return pd.DataFrame.from_dict(rows, orient="index", columns=["swap", "correct", "difference", "low", "high", "p"])


def mechanism(projections: ErrorProjections, *, threshold: float = 0.5, repeats: int = 1000, seed: int = 0) -> str:
    """The error that swap trials are: "misbinding", "misselection", "misinterpretation" or "undecided".

    Misbinding if swap trials are more than `threshold` of the way to it before the cue; else the one of the other two
    that swap trials are closer to after the cue, if they are more than `threshold` of the way and the interval of the
    contrast excludes the middle.
    """
    attribution = attribute(projections, repeats=repeats, seed=seed)
    if attribution.loc["misbinding", "low"] > threshold:
        return "misbinding"
    if attribution.loc[["misselection", "misinterpretation"], "low"].max() < threshold:
        return "undecided"
    contrast = projections.values[CONTRAST][projections.swap][:, projections.time >= 0].mean(1)
    low, high = np.quantile(_resampled_mean(contrast, repeats, np.random.default_rng(seed)), [0.025, 0.975])
    return "misselection" if high < 0.5 else "misinterpretation" if low > 0.5 else "undecided"


def _resampled_mean(values: np.ndarray, repeats: int, rng: np.random.Generator) -> np.ndarray:
    return np.array([values[rng.integers(len(values), size=len(values))].mean() for _ in range(repeats)])
