"""Differences between conditions, for a typical subject: in swaps, guesses and scatter.

All pairs of levels of a factor are compared, the reference with the others first, at each set size and averaged over
set sizes (and over the levels of other factors). With two factors their interactions are differences of differences.
Differences in log odds (swap against target, guess against none) and in the log s.d. are on the scale of the model's
own effects; differences in rates and in circular s.d. are what they come to for a typical subject.
"""

from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from lapsus.fitting.shares import band, group_shares

if TYPE_CHECKING:
    from lapsus.fitting.model import MixtureModel
    from lapsus.fitting.result import Fit

__all__ = ["contrasts"]

DRAWS = 400
# Of a contrast: the weights of conditions, of sum 0.
Weights = dict[str, float]


class Measure(NamedTuple):
    """Draws of a measure by group [G, S], its unit, and the smallest set size that has it."""

    name: str
    draws: np.ndarray
    unit: str
    least: int


class Contrast(NamedTuple):
    """What is compared: a level with another one of a factor, or two such differences of two factors."""

    factor: str
    condition: str
    reference: str
    weights: Weights


def contrasts(fit: "Fit") -> pd.DataFrame:
    """Columns factor, condition, reference, set_size ("all": averaged), measure, difference, low, high (95 %),
    probability (that it is above 0), unit."""
    model = fit.model
    measures = _measures(fit)
    rows: list[dict[str, object]] = []
    for contrast in _contrasts(model):
        for measure in measures:
            by_size: dict[str, np.ndarray] = {}
            for size in (n for n in model.sizes if n >= measure.least):
                cells = _cells(model, measure.draws, size)
                if set(contrast.weights) <= set(cells):
                    parts = [weight * cells[name] for name, weight in contrast.weights.items()]
                    by_size[str(size)] = np.sum(parts, 0)
            if not by_size:
                continue
            averaged = {"all": np.mean(list(by_size.values()), 0)}
            for label, difference in (averaged | (by_size if len(by_size) > 1 else {})).items():
                low, high = band(difference, "").values()
                rows.append(
                    {
                        "factor": contrast.factor,
                        "condition": contrast.condition,
                        "reference": contrast.reference,
                        "set_size": label,
                        "measure": measure.name,
                        "difference": difference.mean(),
                        "low": float(low),
                        "high": float(high),
                        "probability": float((difference > 0).mean()),
                        "unit": measure.unit,
                    }
                )
    return pd.DataFrame(rows)


def _measures(fit: "Fit") -> list[Measure]:
    model = fit.model
    every = fit.parameters if fit.population is None else fit.population
    p = every.map(lambda part: part[..., :: max(1, fit.draws // DRAWS)])
    shares = group_shares(model, p, fit.apart)
    scatter = model.emission.natural(p.emission.numpy())["circular_sd"] * model.trials.degrees
    found = [
        Measure("swap rate", shares["non_target"], "share of responses", 2),
        Measure("guess rate", shares["guess"], "share of responses", 1),
        Measure("circular s.d.", scatter, model.trials.unit_name, 1),
    ]
    if p.level is not None:
        found.append(Measure("log odds of a swap", p.level.numpy(), "logits", 2))
    if p.guess is not None:
        found.append(Measure("log odds of a guess", p.guess.numpy(), "logits", 1))
    return [*found, Measure("log circular s.d.", np.log(scatter), "log", 1)]


def _cells(model: "MixtureModel", draws: np.ndarray, size: int) -> dict[str, np.ndarray]:
    """The mean over groups of a set size, by condition."""
    groups: dict[str, list[int]] = {}
    for group, (items, _, condition) in enumerate(model.labels):
        if items == size:
            groups.setdefault(condition, []).append(group)
    return {condition: draws[own].mean(0) for condition, own in groups.items()}


def _contrasts(model: "MixtureModel") -> list[Contrast]:
    found = []
    for factor in model.by:
        for reference, level in combinations(model.levels[factor], 2):
            weights = _difference(model, factor, level, reference)
            found += [Contrast(factor, level, reference, weights)] if weights else []
    for first, second in combinations(model.by, 2):
        pairs = (combinations(model.levels[factor], 2) for factor in (first, second))
        for one, other in product(*pairs):
            weights = _interaction(model, (first, *one), (second, *other))
            if weights:
                condition, reference = f"{one[1]} − {one[0]} at {other[1]}", f"{one[1]} − {one[0]} at {other[0]}"
                found.append(Contrast(f"{first} × {second}", condition, reference, weights))
    return found


def _difference(model: "MixtureModel", factor: str, level: str, reference: str) -> Weights:
    """A level less the reference, averaged over the combinations of other factors that have both."""

    def others(condition: str) -> tuple:
        return tuple(v for f, v in model.levels_of[condition].items() if f != factor)

    by_level = {
        wanted: {others(c): c for c, levels in model.levels_of.items() if levels[factor] == wanted}
        for wanted in (level, reference)
    }
    common = sorted(set(by_level[level]) & set(by_level[reference]))
    weights = {by_level[level][rest]: 1 / len(common) for rest in common}
    return weights | {by_level[reference][rest]: -1 / len(common) for rest in common}


def _interaction(model: "MixtureModel", one: tuple[str, str, str], other: tuple[str, str, str]) -> Weights:
    """(level − reference of one factor at a level of the other) − (the same at the other's reference)."""
    signs = {(one[2], other[2]): 1.0, (one[1], other[2]): -1.0, (one[2], other[1]): -1.0, (one[1], other[1]): 1.0}
    weights: Weights = {}
    for pair, sign in signs.items():
        names = [c for c, levels in model.levels_of.items() if (levels[one[0]], levels[other[0]]) == pair]
        if not names:
            return {}
        weights |= {name: sign / len(names) for name in names}
    return weights
