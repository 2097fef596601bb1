"""What is measured of responses in delayed estimation: which item was reported, how precisely, how often none."""

import math
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lapsus import circular
from lapsus.protocols import Conditions, HasWeights
from lapsus.statistics.intervals import median_interval, rate_interval
from lapsus.statistics.swaps import AWAY, distance_edges, nearest_item as nearest_of, swap_curve as curve_of


class _Reports(Protocol):
    """A behaviour that reports one of several items, and the feature that its swaps depend on."""

    @property
    def feature(self) -> str: ...

    def weights(self, conditions: Conditions) -> Tensor: ...


def nearest_item(conditions: Conditions, x_T: Tensor) -> tuple[Tensor, Tensor]:
    """The item that is nearest to each response x_T [2, C, K], and how near (radians): both [C, K]. Guesses count as
    the item that they happen to be near."""
    item, gap = nearest_of(circular.angle(x_T.permute(2, 1, 0)).numpy(), conditions["report"].numpy())
    return torch.from_numpy(item.T), torch.from_numpy(gap.T)


def prior_swap_probability(behaviour: HasWeights, conditions: Conditions) -> Tensor:
    """Probability that a behaviour reports an item that was not cued, [C]; a guess is no swap."""
    return behaviour.weights(conditions).scatter(1, conditions["cued"].long()[:, None], 0.0).sum(1)


def swap_measures(behaviour: _Reports, conditions: Conditions, x_T: Tensor) -> dict:
    """Swap curve beside its target, errors to the nearest item, stray responses and radius, of responses x_T [2, C,
    K]; where the number of items varies, `set_sizes` has the same of each."""
    found = _measures(behaviour, conditions, x_T)
    set_size = (~torch.isnan(conditions["report"])).sum(1)
    if len(sizes := set_size.unique()) > 1:
        found["set_sizes"] = [
            {"set_size": int(size)}
            | _measures(behaviour, _only(conditions, set_size == size), x_T[:, set_size == size])
            for size in sizes
        ]
    return found


def _only(conditions: Conditions, rows: Tensor) -> Conditions:
    """Some of the conditions, without columns of items that none of them has."""
    kept = {name: values[rows] for name, values in conditions.items()}
    there = ~torch.isnan(kept["report"]).all(0)
    return kept | {name: kept[name][:, there] for name in ("report", "probe")}


def _measures(behaviour: _Reports, conditions: Conditions, x_T: Tensor) -> dict:
    response = circular.angle(x_T.permute(1, 2, 0))  # [C, K]
    gap = circular.difference(response[:, None], conditions["report"][:, :, None])  # [C, N, K]
    reported, nearest = nearest_item(conditions, x_T)
    radius = x_T.norm(dim=0)
    curve = swap_curve(behaviour, conditions, gap, reported)
    deviations = [abs(point["rate"] - point["target"]) for point in curve]
    by_likelihood = [abs(point["likelihood"] - point["target"]) for point in curve]
    condition = np.repeat(np.arange(len(nearest)), nearest.shape[1])
    away, away_low, away_high = rate_interval((nearest > AWAY).flatten().numpy(), condition)
    median, median_low, median_high = median_interval(nearest.numpy())
    return {
        "swap_curve": curve,
        "swap_curve_mad": sum(deviations) / len(deviations) if curve else 0.0,
        "swap_curve_max": max(deviations, default=0.0),
        "swap_likelihood_mad": sum(by_likelihood) / len(by_likelihood) if curve else 0.0,
        "median_error": median,
        "median_error_interval": [median_low, median_high],
        "away": away,
        "away_interval": [away_low, away_high],
        "radius_mean": float(radius.mean()),
        "radius_sd": float(radius.std()),
    }


def swap_curve(behaviour: _Reports, conditions: Conditions, gap: Tensor, reported: Tensor) -> list[dict]:
    """How often a distractor is reported, by its distance from the cued item in the feature that the target depends on.

    gap [C, N, K]: response minus each item; reported [C, K]: the nearest item. `rate` counts the nearest item,
    `likelihood` weighs items by a von Mises mixture fitted to the same responses, `target` is what was asked for.
    Intervals are over conditions, since trials of one condition share their stimuli.
    """
    items = gap.shape[1]
    if items < 2:
        return []
    cued = conditions["cued"].long()[:, None]
    feature = conditions["report" if behaviour.feature == "report" else "probe"]
    distance = circular.distance(feature, feature.gather(1, cued))
    there = ~torch.isnan(conditions["report"])
    distractor = there.scatter(1, cued, False)
    if not distractor.any():
        return []
    edges = distance_edges(distance[distractor].numpy())
    bins = len(edges) - 1
    place = torch.from_numpy(np.searchsorted(edges, distance.numpy()) - 1).clamp(0, bins - 1)
    share = _responsibilities(gap.double(), torch.where(distractor, place, bins), there.double(), bins)
    target = behaviour.weights(conditions)
    rows, which = distractor.nonzero().unbind(1)
    trials = gap.shape[2]
    hit = (reported[rows] == which[:, None]).flatten().numpy()
    pair = np.repeat(np.arange(len(rows)), trials)
    found = curve_of(hit, distance[rows, which].numpy()[pair], edges, pair)
    curve = []
    for index, row in zip(found.bin, found.rows()):
        own = place[rows, which] == int(index)
        curve.append(
            {name: row[name] for name in ("distance", "rate", "low", "high")}
            | {
                "target": float(target[rows[own], which[own]].mean()),
                "likelihood": float(share[rows[own], which[own]].mean()),
                "responses": row["pairs"],
            }
        )
    return curve


def _responsibilities(gap: Tensor, place: Tensor, there: Tensor, bins: int) -> Tensor:
    """Probability that each item was the one reported, [C, N, K], by EM for a von Mises mixture.

    An item that is there (1 in `there` [C, N], else 0) competes with odds that depend on its bin (`place` [C, N]; the
    cued item is in bin `bins`); one concentration and one uniform share hold for all. The odds' update is that of
    Bradley–Terry models.
    """
    trials = gap.shape[2]
    odds = torch.full((bins + 1,), 0.2, dtype=torch.float64)
    odds[bins], uniform = 1.0, 0.02
    gap = torch.where(there[..., None] > 0, gap, math.pi)
    kappa = 1 / float(gap.abs().amin(1).square().mean().clamp(1e-4, 4))
    for _ in range(80):
        weight = odds[place] * there
        total = weight.sum(1, keepdim=True)
        i0e = float(torch.special.i0e(torch.tensor(kappa, dtype=torch.float64)))
        joint = (
            (1 - uniform) * (weight / total)[..., None] * torch.exp(kappa * (torch.cos(gap) - 1)) / (2 * math.pi * i0e)
        )
        share = joint / (joint.sum(1, keepdim=True) + uniform / (2 * math.pi))
        explained = share.sum((1, 2))
        won = torch.zeros(bins + 1, dtype=torch.float64).index_add_(0, place.flatten(), share.sum(2).flatten())
        played = explained[:, None] / total * there
        faced = torch.zeros(bins + 1, dtype=torch.float64).index_add_(0, place.flatten(), played.flatten())
        odds = won / faced.clamp(min=1e-12)
        odds = odds / odds[bins].clamp(min=1e-12)
        uniform = 1 - float(explained.sum()) / (len(gap) * trials)
        resultant = float((share * torch.cos(gap)).sum() / share.sum())
        kappa = min(max(resultant, 1e-3) * (2 - resultant**2) / max(1 - resultant**2, 1e-6), 1e4)
    return share
