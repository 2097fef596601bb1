"""Differences between conditions, for a typical subject: in swaps, guesses and scatter.

The first condition (in the order of its name) is the reference. The differences in log odds (swap against target, guess
against none) and in the log s.d. are the model's own effects, of which subjects and set sizes are deviations; the
differences in rates and in circular s.d. are what they come to for a typical subject, averaged over set sizes.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lapsus.fitting.shares import band, group_shares

if TYPE_CHECKING:
    from lapsus.fitting.result import Fit

__all__ = ["contrasts"]


def contrasts(fit: "Fit") -> pd.DataFrame:
    """Columns condition, reference, measure, difference, low, high (95 %), probability (that it is above 0), unit."""
    model = fit.model
    p = fit.parameters if fit.population is None else fit.population
    size = np.array([label[0] for label in model.labels])
    which = np.array([label[2] for label in model.labels])
    step = max(1, fit.draws // 400)
    thin = p.map(lambda part: part[..., ::step])
    shares = group_shares(model, thin, fit.apart)
    scatter = model.emission.natural(p.emission.numpy())["circular_sd"] * model.trials.degrees
    values = {
        "swap rate": (shares["non_target"], "share of responses", size > 1),
        "guess rate": (shares["guess"], "share of responses", size > 0),
        "circular s.d.": (scatter, model.trials.unit_name, size > 0),
        "log odds of a swap": (None if p.level is None else p.level.numpy(), "logits", size > 1),
        "log odds of a guess": (None if p.guess is None else p.guess.numpy(), "logits", size > 0),
        "log circular s.d.": (np.log(scatter), "log", size > 0),
    }
    rows = []
    reference = model.conditions[0]
    for condition in model.conditions[1:]:
        for measure, (draws, unit, counted) in values.items():
            if draws is None or not counted.any():
                continue
            here, there = (_mean(draws, size, (which == c) & counted) for c in (condition, reference))
            common = sorted(set(here) & set(there))
            if not common:
                continue
            difference = np.mean([here[n] - there[n] for n in common], 0)
            rows.append(
                {"condition": condition, "reference": reference, "measure": measure, "difference": difference.mean()}
                | {name: float(value) for name, value in band(difference, "").items()}
                | {"probability": float((difference > 0).mean()), "unit": unit}
            )
    return pd.DataFrame(rows)


def _mean(draws: np.ndarray, size: np.ndarray, mask: np.ndarray) -> dict[int, np.ndarray]:
    """Mean over groups, by set size."""
    return {int(n): draws[mask & (size == n)].mean(0) for n in np.unique(size[mask])}
