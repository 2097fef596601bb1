"""Each claim of the paper, computed from the networks: a statistic with its 95 % interval, judged by claims.toml."""

from collections.abc import Callable

import numpy as np
from scipy import stats

from lapsus.analysis.activity import items
from lapsus.analysis.alignment import pre_and_post_cue
from lapsus.analysis.decoders import attribute
from lapsus.analysis.rings import random_alignment, separation
from lapsus.circular import distance
from lapsus.errors import LapsusError
from lapsus.paper import appendix, cue_combination, fig2, fig3, fig4, prediction
from lapsus.paper.roles import Networks
from lapsus.paper.verdicts import Claim, criteria, judge, not_computed
from lapsus.statistics.intervals import proportion_interval
from lapsus.study.designs import MARGIN

__all__ = ["CLAIMS", "evaluate_claims"]

Interval = tuple[float, float, float]
REPEATS = 500


def _quantiles(value: float, drawn: np.ndarray) -> Interval:
    """The value with the 95 % interval of its bootstrap samples, shifted to be centred on it: resampling adds noise a
    second time, and statistics of noisy planes move with noise."""
    low, middle, high = np.nanquantile(drawn, [0.025, 0.5, 0.975])
    return float(value), float(value + low - middle), float(value + high - middle)


# --- Figure 2 ---


def swap_deviation(networks: Networks, role: str, *, bins: int = 9) -> Interval:
    """Mean |rate - target| over bins of probe distance; interval by resampling conditions (basic bootstrap, for the
    absolute value)."""
    dataset = networks.responses(role, 4096, 16, seed=2)
    found, condition = items(dataset), dataset["condition"].to_numpy()
    first = np.unique(condition, return_index=True)[1]
    rate = np.bincount(condition, found.swap) / np.bincount(condition)
    residual = rate - dataset["probability"].to_numpy()[first]
    place = np.searchsorted(np.linspace(MARGIN - 1e-6, np.pi + 1e-6, bins + 1), found.probe_distance[first]) - 1
    members = [residual[place == k] for k in range(bins) if (place == k).any()]
    value = np.mean([abs(own.mean()) for own in members])
    rng = np.random.default_rng(0)
    drawn = np.mean([np.abs(own[rng.integers(len(own), size=(REPEATS, len(own)))].mean(1)) for own in members], axis=0)
    q_low, q_high = np.quantile(drawn, [0.025, 0.975])
    return float(value), float(max(0, min(value, 2 * value - q_high))), float(max(value, 2 * value - q_low))


def _swap_share(networks: Networks, role: str, noise_scale: float = 1.0) -> Interval:
    swap = items(networks.responses(role, 2048, 8, seed=51, noise_scale=noise_scale)).swap
    return float(swap.mean()), *(float(v) for v in proportion_interval(swap.sum(), len(swap)))


def optimal_swaps(networks: Networks) -> Interval:
    return max(_swap_share(networks, role) for role in ("feature-optimal", "index-optimal"))


def _ablation(networks: Networks, kind: str) -> Interval:
    table = fig2.ablations(networks)
    row = table[table["ablation"] == kind].sort_values("excess").iloc[-1]
    return float(row["excess"]), float(row["low"]), float(row["high"])


def one_mode(networks: Networks) -> Interval:
    """Spread of the place between the modes within conditions, relative to the target's, by resampling conditions."""
    table = appendix.averaging_by_condition(networks)
    p, variance = table["probability"].to_numpy(), table["sd"].to_numpy() ** 2
    statistic = lambda rows: np.sqrt(variance[rows].mean(-1) / (p * (1 - p))[rows].mean(-1))  # noqa: E731
    return _over_conditions(len(p), statistic)


def averaging_slope(networks: Networks) -> Interval:
    table = appendix.averaging_by_condition(networks)
    p, mean = table["probability"].to_numpy(), table["mean"].to_numpy()
    if np.ptp(p) < 1e-6:
        raise LapsusError("the target's swap probability is the same in all conditions")

    def statistic(rows):
        x = p[rows] - p[rows].mean(-1, keepdims=True)
        return (x * mean[rows]).sum(-1) / (x**2).sum(-1)

    return _over_conditions(len(p), statistic)


def _over_conditions(count: int, statistic: Callable) -> Interval:
    rows = np.random.default_rng(0).integers(count, size=(REPEATS, count))
    return _quantiles(statistic(np.arange(count)), statistic(rows))


# --- Figure 3 and Table 1 ---


def _rise(networks: Networks, role: str) -> tuple[float, np.ndarray]:
    """Rise of alignment through the cue and its bootstrap samples."""
    found = fig3.index_alignment(networks, role)
    before, after = pre_and_post_cue(found["alignment"].expand_dims("group"))
    low, high = pre_and_post_cue(found["resampled"])
    return float(after[0] - before[0]), high - low


def index_rise_only(networks: Networks) -> Interval:
    rises = {role: _rise(networks, role) for role in fig3.INDEX_NETWORKS}
    swaps = [rises[role] for role in ("index-constant-05", "index-constant-10")]
    others = [rises[role] for role in ("index-optimal", "index-none")]
    value = min(v for v, _ in swaps) - max(v for v, _ in others)
    drawn = np.minimum(*(d for _, d in swaps)) - np.maximum(*(d for _, d in others))
    return _quantiles(value, drawn)


def _sigmoid_gain(networks: Networks, role: str) -> tuple[float, np.ndarray]:
    """Flat minus sigmoid error, negative for a falling sigmoid, and its bootstrap samples over rotations."""
    _, _, fit, resampled = appendix.sigmoid_fits(networks, role)
    signed = lambda one: one.difference * np.sign(one.y_scale)  # noqa: E731
    return float(signed(fit)), np.array([signed(one) for one in resampled])


def feature_rise_only(networks: Networks) -> Interval:
    gains = {role: _sigmoid_gain(networks, role) for role in fig3.FEATURE_NETWORKS}
    value, drawn = gains.pop("feature-smooth-2")
    return _quantiles(value - max(v for v, _ in gains.values()), drawn - np.max([d for _, d in gains.values()], axis=0))


def close_more_aligned(networks: Networks) -> Interval:
    curves = fig3.feature_alignment(networks, "feature-smooth-2")
    near, far = (pre_and_post_cue(curves.sel(distance=degrees, drop=True))[0] for degrees in (45, 165))
    rng = np.random.default_rng(0)
    pick = lambda values: values[rng.integers(len(values), size=(REPEATS, len(values)))].mean(1)  # noqa: E731
    return _quantiles(near.mean() - far.mean(), pick(near) - pick(far))


# --- Figure 4 ---


def _attribution(networks: Networks, names: tuple[str, ...]) -> Interval:
    table = attribute(fig4.projections(networks)).loc[list(names)]
    row = table.sort_values("difference").iloc[-1]
    return float(row["difference"]), float(row["low"]), float(row["high"])


def two_rings(networks: Networks) -> Interval:
    projected, _ = fig4.rings(networks, fig4.CONFIGURATIONS["close, 45°"])
    found = separation(projected)
    rng = np.random.default_rng(0)
    count, drawn = len(projected.free), []
    for _ in range(200):
        rows = rng.integers(count, size=count)
        part = type(projected)(
            *(getattr(projected, name)[rows] for name in ("points", "free", "fixed_cued", "swap", "recalled_fixed"))
        )
        resampled = separation(part)
        drawn.append(min(resampled["turn_correct"], resampled["turn_swap"]))
    return _quantiles(min(found["turn_correct"], found["turn_swap"]), np.array(drawn))


def _resampled_configurations(networks: Networks, statistic: Callable[[np.ndarray, np.ndarray], float]) -> Interval:
    """A statistic of PC3 vectors [configuration, colour, unit], by resampling location pairs.

    A location pair drawn twice would be compared with itself, so the second argument says which pairs of configurations
    count.
    """
    vectors = fig4.third_components(networks).vectors
    count = len(vectors)
    rng = np.random.default_rng(0)
    cosine = np.abs(np.einsum("acu,bdu->abcd", vectors, vectors))
    drawn = []
    for _ in range(REPEATS):
        rows = rng.integers(count, size=count)
        if len(np.unique(rows)) > 1:
            drawn.append(statistic(cosine[np.ix_(rows, rows)], rows[:, None] != rows))
    return _quantiles(statistic(cosine, ~np.eye(count, dtype=bool)), np.array(drawn))


def _same(cosine: np.ndarray, different: np.ndarray) -> float:
    return float(np.einsum("abcc->abc", cosine)[different].mean())


def _same_minus_opposite(cosine: np.ndarray, different: np.ndarray) -> float:
    colours = np.arange(cosine.shape[-1])
    opposite = cosine[..., colours, (colours + len(colours) // 2) % len(colours)]
    return _same(cosine, different) - float(opposite[different].mean())


def _above_random(networks: Networks) -> Interval:
    units = fig4.third_components(networks).vectors.shape[-1]
    chance = random_alignment(units).mean()
    value, low, high = _resampled_configurations(networks, _same)
    return value - chance, low - chance, high - chance


def pc3_area(networks: Networks) -> Interval:
    area = fig4.third_components(networks).area
    area = area[np.isfinite(area)]
    if len(area) == 0:
        raise LapsusError("no swap trials")
    drawn = area[np.random.default_rng(0).integers(len(area), size=(REPEATS, len(area)))].mean(1)
    return _quantiles(area.mean(), drawn)


def cyclic(networks: Networks) -> Interval:
    colours = fig4.third_components(networks).colours
    gap = distance(colours[:, None], colours[None])
    upper = np.triu_indices(len(colours))

    def statistic(cosine, different):
        return float(stats.spearmanr(cosine[different].mean(0)[upper], gap[upper]).statistic)

    return _resampled_configurations(networks, statistic)


def prediction_ratio(networks: Networks) -> Interval:
    _, test = prediction.alignment_and_swaps(networks, "feature-smooth-2")
    return test.odds_ratio, test.low, test.high


# id → (figure that shows it, how it is computed)
CLAIMS: dict[str, tuple[str, Callable[[Networks], Interval]]] = {
    "swap-function-none": ("fig2", lambda n: swap_deviation(n, "feature-none")),
    "swap-function-constant-05": ("fig2", lambda n: swap_deviation(n, "feature-constant-05")),
    "swap-function-constant-30": ("fig2", lambda n: swap_deviation(n, "feature-constant-30")),
    "swap-function-smooth-0": ("fig2", lambda n: swap_deviation(n, "feature-smooth-0")),
    "swap-function-smooth-1": ("fig2", lambda n: swap_deviation(n, "feature-smooth-1")),
    "swap-function-smooth-2": ("fig2", lambda n: swap_deviation(n, "feature-smooth-2")),
    "optimal-unimodal": ("fig2", optimal_swaps),
    "noise-removal": ("fig2", lambda n: _swap_share(n, "feature-smooth-0", 0.0)),
    "mse-one-mode": ("unimodal", one_mode),
    "mse-averages": ("unimodal", averaging_slope),
    "feature-rise-smooth": ("table1", lambda n: _quantiles(*_sigmoid_gain(n, "feature-smooth-2"))),
    "feature-rise-only": ("table1", feature_rise_only),
    "close-more-aligned": ("fig3", close_more_aligned),
    "alignment-predicts-swaps": ("prediction", prediction_ratio),
    "cue-combination-median": ("cue-combination", lambda n: cue_combination.ks_interval(n, 0.5)),
    "cue-combination-p95": ("cue-combination", lambda n: cue_combination.ks_interval(n, 0.95)),
    "cue-combination-modes": ("cue-combination", cue_combination.modes_interval),
}


def evaluate_claims(networks: Networks, figures: set[str] | None = None) -> list[Claim]:
    """Every claim (of the named figures) in the order of claims.toml; one that lacks a network or trials is undecided
    and says why."""
    found = []
    for id in criteria():
        if id not in CLAIMS:
            continue  # the threshold is written down, the statistic comes next
        shown_in, compute = CLAIMS[id]
        if figures is not None and shown_in not in figures:
            continue
        try:
            found.append(judge(id, *compute(networks)))
        except LapsusError as reason:
            found.append(not_computed(id, str(reason)))
    return found
