"""Does the network answer as the fitted model does, and as the subject did? A predictive check, said plainly.

The network is shown the subject's own trials, several times each. Data sets of the subject's size, one response a
trial, give the predictive distribution of each statistic: the swap curve by distance, the scatter around the reported
item, and how often a response is far from every item.
"""

import html
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from scipy import stats

from lapsus import circular, rng
from lapsus.behaviour import BNS
from lapsus.evaluation.against_target import respond
from lapsus.evaluation.sample_sizes import FULL, SampleSizes
from lapsus.fitting import Fit
from lapsus.statistics.intervals import robust_sd
from lapsus.statistics.swaps import AWAY, distance_edges, nearest_item, rate_by_distance, surplus_rate
from lapsus.training import Model
from lapsus.trials import Trials

# What counts as matched: by how much the swap curve (its mean deviation) and the share of responses away from every
# item may differ from the fitted model's, and the ratio of scatters. Where swaps are rare, the curve may be off by half
# of their rate at most, so that a network without swaps never passes; no finer than 0.5 %, which luck alone can make.
TOLERANCE = 0.04
OF_SWAPS, LEAST_TOLERANCE = 0.5, 0.005
SCATTER_RATIO = (0.8, 1.25)
# What is said where a criterion fails.
_PROBLEMS = {
    "swaps": (
        "the swap curve is {mad:.3f} from the fitted one on average ({tolerance:.3f} is allowed), most at {worst}"
        " ({rate:.3f} where {wanted:.3f} is due)"
    ),
    "precision": "responses scatter {ratio:.2f} times as much as the fitted model's",
    "stray": "{its:.1f} % of responses are far from both items, where the fitted model has {fits:.1f} %",
}
_BINS = 6
_REPEATS = 200


@dataclass(frozen=True)
class Comparison:
    """One number of the network, of the fitted model and, where the subject's own trials were shown, of the data."""

    network: float
    fit: float
    data: float | None = None

    @property
    def ratio(self) -> float:
        """The network's relative to the fitted model's."""
        return self.network / max(self.fit, 1e-9)


def _failing(
    mad: float, tolerance: float, scatter: Comparison, stray: Comparison, share: float = 1.0
) -> tuple[str, ...]:
    """Which criteria of a match with the fit fail, of "swaps", "precision" and "stray"; share: of each tolerance."""
    low, high = (bound**share for bound in SCATTER_RATIO)
    holds = {
        "swaps": mad <= share * tolerance,
        "precision": low <= scatter.ratio <= high,
        "stray": abs(stray.network - stray.fit) <= share * TOLERANCE,
    }
    return tuple(name for name, held in holds.items() if not held)


@dataclass(frozen=True)
class Predictive:
    """Interval of the data's swap rate in each bin of distance, and whether the data lie outside: [bin] each."""

    low: np.ndarray
    high: np.ndarray
    outside: np.ndarray


@dataclass(frozen=True)
class Match:
    """A network beside the fit and the data.

    distance [bin] (radians, of `feature`); network, fit, data [bin]: share of responses nearest to the non-target;
    tolerance: by how much the curve may be off on average; scatter (radians) and stray (share away from every item) of
    each; where: what does not match, in words; degrees of `feature` in a radian, as its user counts them (half as many
    for orientations).
    """

    feature: str
    scope: str
    distance: np.ndarray
    network: np.ndarray
    fit: np.ndarray
    trials: np.ndarray
    swap_curve_mad_fit: float
    swap_curve_max_fit: float
    tolerance: float
    scatter: Comparison
    stray: Comparison
    matched_fit: bool
    matched: bool
    where: tuple[str, ...]
    data: np.ndarray | None = None
    predictive_network: Predictive | None = None
    predictive_fit: Predictive | None = None
    fit_explains_data: bool | None = None
    degrees: float = 180 / np.pi

    def __repr__(self) -> str:
        return (
            f"Match({'matched' if self.matched else 'not matched'}, swap curve within {self.swap_curve_mad_fit:.3f} of"
            f" the fit's, {self.scatter.ratio:.2f} times its scatter)"
        )

    def _repr_html_(self) -> str:
        columns = {"distance (°)": self.shown_distance, "data": self.data, "fit": self.fit, "network": self.network}
        table = pd.DataFrame({name: values for name, values in columns.items() if values is not None})
        said = f"<p><b>{html.escape(repr(self))}</b> {html.escape('; '.join(self.where))}</p>"
        return said + table.round(3).to_html(index=False, border=0)

    @property
    def shown_distance(self) -> np.ndarray:
        """Distances in the user's degrees: [bin]."""
        return self.distance * self.degrees

    @property
    def with_margin(self) -> bool:
        """Whether it is matched so clearly that other responses would hardly say otherwise: within six tenths of each
        tolerance."""
        return self.matched and not _failing(self.swap_curve_mad_fit, self.tolerance, self.scatter, self.stray, 0.6)

    @property
    def failing(self) -> tuple[str, ...]:
        """Which criteria of a match with the fit fail, of "swaps", "precision" and "stray"."""
        return _failing(self.swap_curve_mad_fit, self.tolerance, self.scatter, self.stray)


@dataclass(frozen=True)
class _Statistics:
    """Of responses [..., trial]: swap [..., bin], scatter [...] (radians), stray [...]."""

    swap: np.ndarray
    scatter: np.ndarray
    stray: np.ndarray


def _statistics(report: np.ndarray, gap: np.ndarray, response: np.ndarray, edges: np.ndarray) -> _Statistics:
    """report [T, 2] with the cued item first, gap [T] the distance in the binned feature, response [..., T]."""
    item, near = nearest_item(response, report)
    return _Statistics(rate_by_distance(item > 0, gap, edges), robust_sd(near), (near > AWAY).mean(-1))


def network_responses(
    model: Model, report: np.ndarray, probe: np.ndarray | None, repeats: int, seed: int
) -> np.ndarray:
    """Responses [repeats, T] of the network to trials whose cued item comes first; either item may be the network's
    first."""
    cued = np.random.default_rng([seed, 7]).integers(2, size=len(report))
    order = np.stack([cued, 1 - cued], 1)
    features = {"report": report, "probe": _places(report) if probe is None else probe}
    in_order = {name: np.take_along_axis(values, order, 1) for name, values in features.items()}
    conditions = {name: torch.tensor(values, dtype=torch.float32) for name, values in in_order.items()}
    return _angles(respond(model, conditions | {"cued": torch.tensor(cued)}, repeats, seed))


def _places(report: np.ndarray) -> np.ndarray:
    """Where two items are that have no place in the table: opposite each other."""
    return np.tile([-np.pi, 0.0], (len(report), 1))


def _angles(x_T: torch.Tensor) -> np.ndarray:
    """Responses [repeats, T] in radians of x_T [2, T, repeats]."""
    return circular.angle(x_T.permute(1, 2, 0)).numpy().T.astype(float)


def _replicates(responses: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Data sets [repeat, T] with one of the network's responses [K, T] a trial."""
    chosen = rng.integers(len(responses), size=(_REPEATS, responses.shape[1]))
    return np.take_along_axis(responses, chosen, 0)


def _interval(predicted: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """95 % interval, widened so that all `count` of them hold at once; from the spread, since 200 draws have no such
    tails."""
    z = stats.norm.ppf(1 - 0.025 / count)
    mean, sd = predicted.mean(0), predicted.std(0)
    return mean - z * sd, mean + z * sd


def compare(
    report: np.ndarray,
    gap: np.ndarray,
    network: np.ndarray,
    fitted: np.ndarray,
    data: np.ndarray | None = None,
    seed: int = 0,
    feature: str = "probe",
    degrees: float = 180 / np.pi,
) -> Match:
    """Network against fit, and both against data.

    report [T, 2], gap [T] the distance in `feature`; network [K, T], fitted [K', T] responses; data [T] responses or
    None where the trials cannot be shown. All in radians; `degrees` of the feature in one are for the words.
    """
    rng = np.random.default_rng(seed)
    edges = distance_edges(gap, _BINS, equally_many=True)
    statistics = lambda responses: _statistics(report, gap, responses, edges)
    of_network, of_fit, of_data = statistics(network), statistics(fitted), None if data is None else statistics(data)
    distance = rate_by_distance(gap, gap, edges)
    rate, wanted = np.nanmean(of_network.swap, 0), np.nanmean(of_fit.swap, 0)
    off = np.abs(rate - wanted)

    def beside(name: str) -> Comparison:
        its, fits = (float(getattr(one, name).mean()) for one in (of_network, of_fit))
        return Comparison(its, fits, None if of_data is None else float(getattr(of_data, name)))

    def predictive(responses: np.ndarray) -> Predictive | None:
        if of_data is None:
            return None
        observed = of_data.swap
        low, high = _interval(statistics(_replicates(responses, rng)).swap, int(np.isfinite(observed).sum()))
        outside = (observed < low - 1e-12) | (observed > high + 1e-12)
        return Predictive(np.clip(low, 0, 1), np.clip(high, 0, 1), outside)

    scatter, stray = beside("scatter"), beside("stray")
    by_network, by_fit = predictive(network), predictive(fitted)
    mad, worst = float(np.nanmean(off)), int(np.nanargmax(off))
    tolerance = float(np.clip(OF_SWAPS * surplus_rate(fitted, report), LEAST_TOLERANCE, TOLERANCE))
    failing = _failing(mad, tolerance, scatter, stray)
    degrees_at = [f"{degrees * middle:.0f}°" for middle in distance]
    values: dict[str, object] = {"mad": mad, "tolerance": tolerance, "ratio": scatter.ratio}
    values |= {"worst": degrees_at[worst], "rate": rate[worst], "wanted": wanted[worst]}
    values |= {"its": 100 * stray.network, "fits": 100 * stray.fit}
    problems = [_PROBLEMS[name].format(**values) for name in failing]
    if by_network is not None and by_network.outside.any():
        where = ", ".join(np.array(degrees_at)[by_network.outside])
        problems.append(f"the subject's swap rate lies outside the network's predictive interval at {where}")
    return Match(
        feature=feature,
        scope="two-item trials with the data's distances" if of_data is None else "the subject's own trials",
        distance=distance,
        network=rate,
        fit=wanted,
        trials=np.histogram(gap, edges)[0],
        swap_curve_mad_fit=mad,
        swap_curve_max_fit=float(off[worst]),
        tolerance=tolerance,
        scatter=scatter,
        stray=stray,
        matched_fit=not failing,
        matched=not problems,
        where=tuple(problems),
        data=None if of_data is None else of_data.swap,
        predictive_network=by_network,
        predictive_fit=by_fit,
        fit_explains_data=None if by_fit is None else not by_fit.outside.any(),
        degrees=degrees,
    )


def match(
    model: Model, trials: Trials, fit: Fit, fitted: BNS, cueing: str, *, seed: int = 0, sizes: SampleSizes = FULL
) -> Match:
    """The network on the subject's own trials, or with more items on two-item trials that have the data's distances.

    fitted: the behaviour that `fit` describes for two items (fitting.network_target); cueing: "feature" or "index".
    """
    feature = "report" if fit.name == "report" or trials.probe is None else "probe"
    shown = None
    if trials.report.shape[1] == 2:
        order_of_trials = np.random.default_rng([seed, 3]).permutation(len(trials))
        rows = np.sort(order_of_trials[: sizes.match_trials])
        shown = trials[rows]
        report, probe = shown.report, shown.probe
    else:
        drawn = model.task.sample(sizes.match_conditions, rng.generator(seed, "two items"))
        order = torch.stack([drawn["cued"], 1 - drawn["cued"]], 1)
        report, probe = (drawn[k].gather(1, order).numpy().astype(float) for k in ("report", "probe"))
    gap = circular.distance(*(report if feature == "report" or probe is None else probe).T)
    network = network_responses(model, report, probe, sizes.match_repeats, seed)
    samples = 2 * sizes.match_repeats
    if shown is not None and cueing == "feature":
        of_fit = np.stack([replicate.response[rows] for replicate in fit.predict(samples, seed)])
    else:
        places = _places(report) if probe is None else probe
        conditions = {"report": torch.tensor(report), "probe": torch.tensor(places)}
        conditions["cued"] = torch.zeros(len(report), dtype=torch.long)
        sampled = fitted.sample(conditions, samples, rng.generator(seed, "fitted"))
        of_fit = _angles(sampled)
    degrees = trials.degrees if feature == "report" else trials.probe_degrees
    return compare(report, gap, network, of_fit, None if shown is None else shown.response, seed, feature, degrees)
