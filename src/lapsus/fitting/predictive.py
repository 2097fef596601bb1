"""Does the fitted model answer like the data, at every set size and for every subject?

Three measures of responses: how far they are from the target (mean cosine of the error), how often another item is the
nearest one (where there are several), and how far they are from the nearest item (mean cosine). Each is compared with
its distribution in posterior predictive data sets; one that is too far out at the 5 % level, corrected for the number
of checks, fails.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import norm

from lapsus.fitting.model import natural_order
from lapsus.statistics.swaps import nearest_item
from lapsus.trials import Trials

if TYPE_CHECKING:
    from lapsus.fitting.result import Fit

__all__ = ["largest_z", "predictive_checks"]

LEAST = 30  # trials below which a check says nothing
MEASURES = {"error": "cosine of the error", "nearest": "nearest to a non-target", "any": "cosine to the nearest item"}


def _measures(trials: Trials) -> dict[str, np.ndarray]:
    nearest, gap = nearest_item(trials.response, trials.report)
    return {
        "error": np.cos(trials.deviation[:, 0]),
        "nearest": np.where(trials.set_size > 1, nearest > 0, np.nan).astype(float),
        "any": np.cos(gap),
    }


def predictive_checks(fit: "Fit") -> pd.DataFrame:
    """Columns kind ("set size" or "subject"), which, measure, observed, predicted, sd, z, passed."""
    trials = fit.trials
    groups = {("set size", str(n)): trials.set_size == n for n in np.unique(trials.set_size)}
    subjects = natural_order(set(trials.subject))
    if len(subjects) > 1 and fit.model.hierarchical:  # pooled fits do not claim to describe any one subject
        groups |= {("subject", s): trials.subject.astype(str) == s for s in subjects}
    observed, predicted = _measures(trials), [_measures(t) for t in fit.predictive]
    rows = []
    for (kind, which), mask in groups.items():
        for name in MEASURES:
            mine = mask & np.isfinite(observed[name])
            if mine.sum() < LEAST:
                continue
            values = np.array([p[name][mine].mean() for p in predicted])
            # A measure that hardly varies cannot be told from its mean by less than one response.
            sd = max(float(values.std(ddof=1)), 1 / mine.sum())
            found = float(observed[name][mine].mean())
            rows.append([kind, which, name, found, values.mean(), sd, (found - values.mean()) / sd])
    table = pd.DataFrame(rows, columns=["kind", "which", "measure", "observed", "predicted", "sd", "z"])
    return table.assign(passed=table["z"].abs() <= largest_z(len(table)))


def largest_z(checks: int) -> float:
    """How many s.d. off the furthest of so many checks may be, at the 5 % level for all together."""
    return float(norm.ppf(1 - 0.025 / max(checks, 1)))
