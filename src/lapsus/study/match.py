"""Does the network answer as the fitted model does, and as the subject did? A predictive check, said plainly.

The network is shown the subject's own trials, several times each. Data sets of the subject's size, one response a
trial, give the predictive distribution of each statistic: the swap curve by distance, the scatter around the reported
item, and how often a response is far from every item.
"""

from dataclasses import dataclass

import numpy as np

from lapsus.circular import distance

__all__ = ["Statistics", "bin_edges", "compare", "network_responses", "statistics"]

# A response further than this from every item counts as stray (radians), as in `lapsus evaluate`.
STRAY = 0.6
TOLERANCE = 0.04
_BINS = 6
_REPEATS = 200


@dataclass(frozen=True)
class Statistics:
    """Of responses: swap [..., bin], the share nearest to the non-target by distance; scatter [...] (rad), stray
    [...]."""

    swap: np.ndarray
    scatter: np.ndarray
    stray: np.ndarray


def bin_edges(gap: np.ndarray) -> np.ndarray:
    """Bounds of the bins of distance: each distinct one if they are few, else six with equally many trials."""
    distinct = np.unique(np.round(gap, 4))
    if len(distinct) <= _BINS:
        return np.concatenate([[-1e-6], (distinct[1:] + distinct[:-1]) / 2, [np.pi + 1e-6]])
    inner = np.unique(np.round(np.quantile(gap, np.linspace(0, 1, _BINS + 1)[1:-1]), 4)) + 1e-4
    return np.concatenate([[-1e-6], inner, [np.pi + 1e-6]])


def statistics(report: np.ndarray, gap: np.ndarray, response: np.ndarray, edges: np.ndarray) -> Statistics:
    """report [T, 2] with the cued item first, gap [T] the distance in the binned feature, response [..., T]."""
    to_target, to_other = distance(response, report[:, 0]), distance(response, report[:, 1])
    swap = to_other < to_target
    nearest = np.minimum(to_target, to_other)
    place = np.searchsorted(edges, gap) - 1
    rates = np.stack(
        [
            swap[..., place == k].mean(-1) if (place == k).any() else np.full(swap.shape[:-1], np.nan)
            for k in range(len(edges) - 1)
        ],
        -1,
    )
    return Statistics(rates, 1.4826 * np.median(nearest, -1), (nearest > STRAY).mean(-1))


def network_responses(model, report: np.ndarray, probe: np.ndarray | None, repeats: int, seed: int) -> np.ndarray:
    """Responses [repeats, T] of the network to trials whose cued item comes first; either item may be the network's
    first."""
    import torch

    from lapsus import circular
    from lapsus.study.evaluation import respond

    cued = np.random.default_rng([seed, 7]).integers(2, size=len(report))
    order = np.stack([cued, 1 - cued], 1)
    probe = np.tile([-np.pi, 0.0], (len(report), 1)) if probe is None else probe
    conditions = {
        "report": torch.tensor(np.take_along_axis(report, order, 1), dtype=torch.float32),
        "probe": torch.tensor(np.take_along_axis(probe, order, 1), dtype=torch.float32),
        "cued": torch.tensor(cued),
    }
    return circular.angle(respond(model, conditions, repeats, seed).permute(1, 2, 0)).numpy().T.astype(float)


def _replicates(responses: np.ndarray, rng) -> np.ndarray:
    """Data sets [repeat, T] with one of the network's responses [K, T] a trial."""
    chosen = rng.integers(len(responses), size=(_REPEATS, responses.shape[1]))
    return np.take_along_axis(responses, chosen, 0)


def _interval(predicted: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """95 % interval, widened so that all `count` of them hold at once; from the spread, since 200 draws have no such
    tails."""
    from scipy import stats

    z = stats.norm.ppf(1 - 0.025 / count)
    mean, sd = predicted.mean(0), predicted.std(0)
    return mean - z * sd, mean + z * sd


def compare(report, gap, edges, network, fitted, data=None, seed: int = 0) -> dict:
    """Network against fit, and both against data, as plain numbers.

    report [T, 2], gap [T]; network [K, T], fitted [K', T] responses; data [T] responses or None where the trials cannot
    be shown.
    """
    rng = np.random.default_rng(seed)
    of_network, of_fit = statistics(report, gap, network, edges), statistics(report, gap, fitted, edges)
    middle = [
        float(gap[(gap > low) & (gap <= high)].mean()) if ((gap > low) & (gap <= high)).any() else float("nan")
        for low, high in zip(edges[:-1], edges[1:])
    ]
    rate, wanted = np.nanmean(of_network.swap, 0), np.nanmean(of_fit.swap, 0)
    off = np.abs(rate - wanted)
    found = {
        "distance": middle,
        "network": rate,
        "fit": wanted,
        "trials": [int(((gap > a) & (gap <= b)).sum()) for a, b in zip(edges[:-1], edges[1:])],
        "swap_curve_mad_fit": float(np.nanmean(off)),
        "swap_curve_max_fit": float(np.nanmax(off)),
        "scatter": {"network": float(of_network.scatter.mean()), "fit": float(of_fit.scatter.mean())},
        "stray": {"network": float(of_network.stray.mean()), "fit": float(of_fit.stray.mean())},
        "scope": "the subject's own trials" if data is not None else "two-item trials with the data's distances",
    }
    ratio = found["scatter"]["network"] / max(found["scatter"]["fit"], 1e-9)
    problems = []
    if found["swap_curve_mad_fit"] > TOLERANCE:
        worst = int(np.nanargmax(off))
        problems.append(
            f"the swap curve is {found['swap_curve_mad_fit']:.3f} from the fitted one on average, most at "
            f"{np.degrees(middle[worst]):.0f}° ({rate[worst]:.3f} where {wanted[worst]:.3f} is due)"
        )
    if not 0.8 <= ratio <= 1.25:
        problems.append(f"responses scatter {ratio:.2f} times as much as the fitted model's")
    if abs(found["stray"]["network"] - found["stray"]["fit"]) > TOLERANCE:
        problems.append(
            f"{100 * found['stray']['network']:.1f} % of responses are far from both items, where the fitted model has"
            f" {100 * found['stray']['fit']:.1f} %"
        )
    found["matched_fit"] = not problems
    if data is not None:
        own = statistics(report, gap, data, edges)
        count = int(np.isfinite(own.swap).sum())
        for name, responses in (("network", network), ("fit", fitted)):
            low, high = _interval(statistics(report, gap, _replicates(responses, rng), edges).swap, count)
            outside = (own.swap < low - 1e-12) | (own.swap > high + 1e-12)
            found[f"predictive_{name}"] = {"low": np.clip(low, 0, 1), "high": np.clip(high, 0, 1), "outside": outside}
            if name == "network" and outside.any():
                where = ", ".join(f"{np.degrees(middle[k]):.0f}°" for k in np.flatnonzero(outside))
                problems.append(f"the subject's swap rate lies outside the network's predictive interval at {where}")
        found |= {"data": own.swap}
        found["scatter"]["data"], found["stray"]["data"] = float(own.scatter), float(own.stray)
        found["fit_explains_data"] = not found["predictive_fit"]["outside"].any()
    found["matched"], found["where"] = not problems, problems
    return found
