"""When can the coming swap be read? A decoder of held-out trials at each time.

Colours and cue are taken off by the linear model of correct trials, and so are products of the two colours' waves, so
that what is left is what differs between trials that were shown the same: where some displays are swapped more often
than others, a code of the display would else pass for a sign of the coming swap. The decoder is a linear discriminant
of what is left, in units of the noise, and of the places of a trial along the lines to the kinds of error. An answer
that it contradicts is not given (`lapsus.study.mechanism.Mechanism.contradicted`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr

from lapsus.analysis.activity import NO_SWAPS, cue_onset, memory, two_items
from lapsus.analysis.kind import prediction_model, whitener, without_conjunctions
from lapsus.analysis.outcomes import outcomes
from lapsus.analysis.swap_axis import discriminant, roc_area
from lapsus.errors import LapsusError

__all__ = ["Decoding", "decoding"]


@dataclass(frozen=True)
class Decoding:
    """Held-out decoding of the coming swap: times and auc [time]; null [time], fitted to labels shuffled among trials;
    onset: of the cue, on the clock of `times`; swaps, correct, unclear: trials used and left out."""

    times: np.ndarray
    auc: np.ndarray
    null: np.ndarray
    onset: float
    swaps: int
    correct: int
    unclear: int

    @property
    def error(self) -> float:
        """Standard error of an area where there is nothing to read."""
        return float(np.sqrt((self.swaps + self.correct + 1) / (12 * self.swaps * self.correct)))

    @property
    def before_cue(self) -> float:
        """Mean area over the last five times before the cue; NaN where there are none."""
        before = self.auc[self.times < self.onset][-5:]
        return float(before.mean()) if len(before) else float("nan")

    @property
    def at_response(self) -> float:
        """Area at the last time."""
        return float(self.auc[-1])


def decoding(dataset: xr.Dataset, *, folds: int = 5, every: int = 2, seed: int = 0) -> Decoding:
    """Decode the coming swap at every `every`-th time from memory activity; each fold is scored by the others."""
    items = two_items(dataset)
    outcome = outcomes(items.response, items.report, items.cued)
    sure = outcome.swap | outcome.correct
    if outcome.swap.sum() < 2 * folds:
        raise LapsusError(f"only {outcome.swap.sum()} swap trials" if outcome.swap.any() else NO_SWAPS)
    rng = np.random.default_rng(seed)
    fold = np.empty(len(sure), dtype=int)
    for rows in (np.flatnonzero(outcome.swap), np.flatnonzero(~outcome.swap)):
        fold[rows] = rng.permutation(np.arange(len(rows)) % folds)
    shuffled = outcome.swap.copy()
    for k in range(folds):
        own = np.flatnonzero(sure & (fold == k))
        shuffled[own] = rng.permutation(shuffled[own])
    time, onset = dataset["time"].to_numpy(), cue_onset(dataset)
    steps = np.unique(np.append(np.arange(0, len(time), every), len(time) - 1))
    m = memory(dataset.isel(time=steps))
    scores = np.zeros((2, len(steps), len(sure)))
    for now, given in ((time[steps] < onset, (items.report,)), (time[steps] >= onset, (items.report, items.cued))):
        for j in range(folds):
            train, test = sure & (fold != j), fold == j
            for at, features in zip(np.flatnonzero(now), _features(m[:, now], given, train & outcome.correct)):
                for row, labels in enumerate((outcome.swap, shuffled)):
                    one, other = features[train & labels], features[train & ~labels]
                    w = discriminant(features[train], labels[train])
                    spread = max(float((features[train] @ w).std()), 1e-12)
                    scores[row, at, test] = (features[test] - (one.mean(0) + other.mean(0)) / 2) @ w / spread
    areas, nulls = (
        np.array([roc_area(one[sure], labels[sure]) for one in part])
        for part, labels in zip(scores, (outcome.swap, shuffled))
    )
    counts = int(outcome.swap.sum()), int(outcome.correct.sum()), outcome.unclear
    return Decoding(time[steps].astype(float), areas, nulls, float(onset), *counts)


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
