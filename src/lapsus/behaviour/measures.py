"""What is measured of responses in delayed estimation: which item was reported, how precisely, how often none."""

import math

import torch
from torch import Tensor

from lapsus import circular

__all__ = ["AWAY", "swap_curve", "swap_measures"]

# A response further than this from every item counts as stray (radians).
AWAY = 0.6
_BINS = 8
_Z95 = 1.959964


def swap_measures(behaviour, conditions: dict[str, Tensor], x_T: Tensor) -> dict:
    """Swap curve beside its target, errors to the nearest item, stray responses and radius, of responses x_T [2, C,
    K]."""
    response = circular.angle(x_T.permute(1, 2, 0))  # [C, K]
    gap = circular.difference(response[:, None], conditions["report"][:, :, None])  # [C, N, K]
    nearest, reported = gap.abs().min(1)
    radius = x_T.norm(dim=0)
    curve = swap_curve(behaviour, conditions, gap, reported)
    deviations = [abs(point["rate"] - point["target"]) for point in curve]
    by_likelihood = [abs(point["likelihood"] - point["target"]) for point in curve]
    away, away_low, away_high = _rate_interval((nearest > AWAY).double())
    median, median_low, median_high = _median_interval(nearest)
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


def swap_curve(behaviour, conditions: dict[str, Tensor], gap: Tensor, reported: Tensor) -> list[dict]:
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
    distractor = torch.ones_like(distance, dtype=torch.bool).scatter(1, cued, False)
    place, bins = _bins(distance, distractor)
    share = _responsibilities(gap.double(), torch.where(distractor, place, bins), bins)
    target = behaviour.weights(conditions)
    curve = []
    for index in range(bins):
        rows, items_there = (distractor & (place == index)).nonzero().unbind(1)
        if len(rows) == 0:
            continue
        rate, low, high = _rate_interval((reported[rows] == items_there[:, None]).double())
        curve.append(
            {
                "distance": float(distance[rows, items_there].mean()),
                "rate": rate,
                "low": low,
                "high": high,
                "target": float(target[rows, items_there].mean()),
                "likelihood": float(share[rows, items_there].mean()),
                "responses": len(rows) * gap.shape[2],
            }
        )
    return curve


def _bins(distance: Tensor, distractor: Tensor) -> tuple[Tensor, int]:
    """The bin of each item [C, N] and their number: one for each distance if there are few, else equal widths."""
    seen = distance[distractor]
    values = torch.unique((seen * 1e4).round() / 1e4)
    if len(values) <= _BINS:
        return torch.searchsorted(values, (distance - 1e-3).contiguous()).clamp(max=len(values) - 1), len(values)
    low, high = float(seen.min()), float(seen.max())
    return ((distance - low) / (high - low) * _BINS).long().clamp(0, _BINS - 1), _BINS


def _responsibilities(gap: Tensor, place: Tensor, bins: int, iterations: int = 80) -> Tensor:
    """Probability that each item was the one reported, [C, N, K], by EM for a von Mises mixture.

    An item competes with odds that depend on its bin (`place` [C, N]; the cued item is in bin `bins`); one
    concentration and one uniform share hold for all. The odds' update is that of Bradley–Terry models.
    """
    trials = gap.shape[2]
    odds = torch.full((bins + 1,), 0.2, dtype=torch.float64)
    odds[bins], uniform = 1.0, 0.02
    kappa = 1 / float(gap.abs().amin(1).square().mean().clamp(1e-4, 4))
    for _ in range(iterations):
        weight = odds[place]
        total = weight.sum(1, keepdim=True)
        i0e = float(torch.special.i0e(torch.tensor(kappa, dtype=torch.float64)))
        joint = (
            (1 - uniform) * (weight / total)[..., None] * torch.exp(kappa * (torch.cos(gap) - 1)) / (2 * math.pi * i0e)
        )
        share = joint / (joint.sum(1, keepdim=True) + uniform / (2 * math.pi))
        explained = share.sum((1, 2))
        won = torch.zeros(bins + 1, dtype=torch.float64).index_add_(0, place.flatten(), share.sum(2).flatten())
        played = (explained[:, None] / total).expand_as(weight)
        faced = torch.zeros(bins + 1, dtype=torch.float64).index_add_(0, place.flatten(), played.flatten())
        odds = won / faced.clamp(min=1e-12)
        odds = odds / odds[bins].clamp(min=1e-12)
        uniform = 1 - float(explained.sum()) / (len(gap) * trials)
        resultant = float((share * torch.cos(gap)).sum() / share.sum())
        kappa = min(max(resultant, 1e-3) * (2 - resultant**2) / max(1 - resultant**2, 1e-6), 1e4)
    return share


def _rate_interval(hits: Tensor) -> tuple[float, float, float]:
    """Mean of 0/1 values [condition, trial] and its 95 % interval; conditions are the independent units."""
    rate, count = float(hits.mean()), len(hits)
    spread = float(hits.mean(1).std()) / math.sqrt(count) if count > 1 else 0.0
    if rate in (0.0, 1.0) or spread == 0.0:
        # No variation was seen: Wilson's bound on what was.
        n = hits.numel()
        bound = _Z95**2 / (n + _Z95**2)
        return rate, max(0.0, rate - bound), min(1.0, rate + bound)
    return rate, max(0.0, rate - _Z95 * spread), min(1.0, rate + _Z95 * spread)


def _median_interval(values: Tensor) -> tuple[float, float, float]:
    """Median over all trials, with a 95 % interval from order statistics widened for the clustering of conditions."""
    flat = values.flatten().double()
    median = float(flat.median())
    below = (values <= median).double().mean(1)
    error = float(below.std()) / math.sqrt(len(below)) if len(below) > 1 else 0.5
    levels = torch.tensor([max(0.0, 0.5 - _Z95 * error), min(1.0, 0.5 + _Z95 * error)], dtype=torch.float64)
    low, high = _quantile(flat, levels)
    return median, low, high


def _quantile(values: Tensor, levels: Tensor) -> list[float]:
    ordered = values.sort().values
    return [float(ordered[round(float(level) * (len(ordered) - 1))]) for level in levels]
