"""Does the fitted model answer like the data, at every set size, in every condition, for every subject and at every
distance of non-targets?

Three measures of responses: how far they are from the target (mean cosine of the error), how often another item is the
nearest one (where there are several), and how far they are from the nearest item (mean cosine). Each is compared with
its distribution in posterior predictive data sets; one that is too far out at the 5 % level, corrected for the number
of checks, fails.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import ndtri

from lapsus.fitting.model import condition_labels, natural_order
from lapsus.statistics.intervals import limits
from lapsus.statistics.swaps import distance_edges, nearest_item, rate_by_distance
from lapsus.trials import Trials

if TYPE_CHECKING:
    from lapsus.fitting.result import Fit

__all__ = ["DistanceCurve", "largest_z", "predictive_checks"]

LEAST = 30  # trials below which a check says nothing
MEASURES = ("error", "nearest", "any")
BINS = 12


def _measures(trials: Trials) -> dict[str, np.ndarray]:
    nearest, gap = nearest_item(trials.response, trials.report)
    return {
        "error": np.cos(trials.deviation[:, 0]),
        "nearest": np.where(trials.set_size > 1, nearest > 0, np.nan).astype(float),
        "any": np.cos(gap),
    }


def _groups(fit: "Fit") -> Iterator[tuple[str, str, np.ndarray]]:
    """What is checked: its kind, which one, and its trials."""
    trials, model = fit.trials, fit.model
    sizes = np.unique(trials.set_size)
    for size in sizes:
        yield "set size", str(size), trials.set_size == size
    if model.by:
        names = condition_labels(trials, model.by)
        for size in sizes:
            for condition in model.conditions:
                where = f"set size {size}, {model.in_words(condition)}"
                yield "condition", where, (trials.set_size == size) & (names == condition)
    subjects = natural_order(set(trials.subject))
    if len(subjects) > 1 and model.hierarchical:  # pooled fits do not claim to describe any one subject
        for subject in subjects:
            yield "subject", subject, trials.subject.astype(str) == subject


def predictive_checks(fit: "Fit") -> pd.DataFrame:
    """Columns kind ("set size", "condition", "subject" or "distance"), which, measure, observed, predicted, sd, z,
    outside (of its own 95 % band), passed (corrected for the number of checks)."""
    observed, predicted = _measures(fit.trials), [_measures(t) for t in fit.predictive]
    rows = []
    for kind, which, mask in _groups(fit):
        for name in MEASURES:
            mine = mask & np.isfinite(observed[name])
            if mine.sum() >= LEAST:
                values = np.array([p[name][mine].mean() for p in predicted])
                rows.append([kind, which, name, *_compared(observed[name][mine].mean(), values, mine.sum())])
    if fit.trials.set_size.max() > 1:
        curve = DistanceCurve(fit)
        scale = fit.trials.degrees if curve.feature == "report" else fit.trials.probe_degrees
        for i in np.flatnonzero(curve.count >= LEAST):
            which = f"about {scale * curve.middle[i]:.0f}°"
            compared = _compared(curve.observed[i], curve.predicted[:, i], curve.count[i])
            rows.append(["distance", which, "nearest", *compared])
    columns = ["kind", "which", "measure", "observed", "predicted", "sd", "z", "outside"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(passed=table["z"].abs() <= largest_z(len(table)))


def _compared(observed: float, predicted: np.ndarray, count: int) -> tuple[float, float, float, float, bool]:
    """Observed, mean and s.d. of the predictions, z, and whether the observed value is outside their 95 % band."""
    # A measure that hardly varies cannot be told from its mean by less than one response.
    sd = max(float(predicted.std(ddof=1)), 1 / count)
    low, high = limits(predicted)
    middle = float(predicted.mean())
    return float(observed), middle, sd, (float(observed) - middle) / sd, bool(observed < low or observed > high)


def largest_z(checks: int) -> float:
    """How many s.d. off the furthest of this many checks may be, at the 5 % level for all together."""
    return float(ndtri(1 - 0.025 / max(checks, 1)))


class DistanceCurve:
    """Of the non-targets in each bin of distance from the target, the share that the response is nearest to.

    feature           whose distance it is
    edges [bins + 1]  of the bins, radians; middle and count [bins] of the non-targets in them
    observed [bins], predicted [data sets, bins]
    """

    def __init__(self, fit: "Fit"):
        trials, features = fit.trials, fit.swap_model.features
        by_report = features == ("report",) or trials.probe is None
        self.feature = "report" if by_report else "probe"
        gap = np.abs(trials.distance(self.feature)[:, 1:])
        shown = np.isfinite(gap)
        self.edges = distance_edges(gap[shown], BINS)
        self.count = np.histogram(gap[shown], self.edges)[0]
        self.middle = rate_by_distance(gap[shown], gap[shown], self.edges)

        def share(answered: Trials) -> np.ndarray:
            item, _ = nearest_item(answered.response, answered.report)
            hit = np.arange(1, answered.report.shape[1]) == item[:, None]
            return rate_by_distance(hit[shown], gap[shown], self.edges)

        self.observed = share(trials)
        self.predicted = np.stack([share(answered) for answered in fit.predictive])
