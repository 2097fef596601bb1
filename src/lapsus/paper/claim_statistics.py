"""The statistic behind each claim of the paper, with its 95 % interval, computed from networks by their roles.

claims.toml names these functions. Each takes the networks and, where every network has a value of its own, the role.
"""

from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy import stats

from lapsus.circular import distance
from lapsus.errors import LapsusError
from lapsus.mechanism import responses
from lapsus.mechanism.activity import NO_SWAPS, cue_onset
from lapsus.mechanism.commitment import commitment
from lapsus.mechanism.discriminants import random_cosine
from lapsus.mechanism.plane_alignment import pre_and_post_cue
from lapsus.mechanism.pushes import pushes
from lapsus.paper import fig2, fig3, fig4, prediction, table1, unimodal, windows
from lapsus.paper.cue_combination import ks_interval, modes_interval  # noqa: F401 (named by claims.toml)
from lapsus.paper.roles import Networks
from lapsus.statistics.intervals import Interval, limits, rate_interval, resampled_interval

# A value and its bootstrap samples.
Sampled = tuple[float, np.ndarray]
INDEX_SWAPPING, INDEX_OTHERS = ("index-constant-05", "index-constant-10"), ("index-optimal", "index-none")


def _centred(value: float | np.ndarray, drawn: np.ndarray) -> Interval:
    """The value with the 95 % interval of its bootstrap samples, shifted to be centred on it: resampling adds noise a
    second time, and statistics of noisy planes are biased by noise."""
    low, middle, high = np.nanquantile(drawn, [0.025, 0.5, 0.975])
    return float(value), float(value + low - middle), float(value + high - middle)


def _resampled_rows(count: int, networks: Networks) -> np.ndarray:
    """Numbers of units drawn with replacement, [repeat, unit]."""
    return np.random.default_rng(0).integers(count, size=(networks.sizes.claim_repeats, count))


def _of_units(networks: Networks, count: int, statistic: Callable[[np.ndarray], np.ndarray]) -> Interval:
    """A statistic of the numbers of units [..., unit], by resampling them."""
    return _centred(statistic(np.arange(count)), statistic(_resampled_rows(count, networks)))


def _mean(networks: Networks, values: np.ndarray) -> Interval:
    """Mean of the finite values [unit], by resampling units."""
    values = values[np.isfinite(values)]
    if len(values) == 0:
        raise LapsusError(NO_SWAPS)
    return _of_units(networks, len(values), lambda rows: values[rows].mean(-1))


# --- Figure 2 ---


def swap_deviation(networks: Networks, role: str) -> Interval:
    """Mean |rate - target| over bins of probe distance; interval by resampling conditions (basic bootstrap, for the
    absolute value)."""
    sizes, edges, rng = networks.sizes, responses.distance_bins(), np.random.default_rng(0)
    residual, gap = responses.swap_residuals(networks.answers(role), sizes.swap_conditions, sizes.swap_trials)
    bins = np.searchsorted(edges, gap) - 1
    members = [residual[bins == k] for k in range(len(edges) - 1) if (bins == k).any()]
    value = float(np.mean([abs(own.mean()) for own in members]))
    resampled = [own[rng.integers(len(own), size=(sizes.claim_repeats, len(own)))] for own in members]
    q_low, q_high = limits(np.mean([np.abs(own.mean(1)) for own in resampled], axis=0))
    return value, float(np.clip(2 * value - q_high, 0, value)), float(max(value, 2 * value - q_low))


def _swap_share(networks: Networks, role: str, noise_scale: float = 1.0) -> Interval:
    sizes = networks.sizes
    return responses.swap_share(networks.answers(role), sizes.share_conditions, sizes.share_trials, noise_scale)


def optimal_swaps(networks: Networks) -> Interval:
    """Share of swaps of the task-optimal network that swaps more."""
    return max(_swap_share(networks, role) for role in ("feature-optimal", "index-optimal"))


def swaps_without_noise(networks: Networks) -> Interval:
    """Share of swaps where the process noise is switched off."""
    return _swap_share(networks, "feature-smooth-0", 0.0)


def ablation(networks: Networks, kind: str) -> Interval:
    """Share of conditions with a second mode at the distractor, the largest over the levels of an ablation."""
    table = fig2.ablations(networks)
    row = table[table["ablation"] == kind].sort_values("share").iloc[-1]
    return float(row["share"]), float(row["low"]), float(row["high"])


def both_modes(networks: Networks, role: str) -> Interval:
    """Share of conditions with a mode at either item."""
    two, _ = fig2.modes_by_condition(networks, role, None)
    return rate_interval(two)


def one_mode(networks: Networks) -> Interval:
    """Spread of the place between the modes within conditions, relative to the target's, by resampling conditions."""
    table = unimodal.table(networks)
    p, variance = table["probability"].to_numpy(), table["sd"].to_numpy() ** 2
    spread = lambda rows: np.sqrt(variance[rows].mean(-1) / (p * (1 - p))[rows].mean(-1))
    return _of_units(networks, len(p), spread)


def averaging_slope(networks: Networks) -> Interval:
    """Slope of the mean place between the modes over the target's swap probability, by resampling conditions."""
    table = unimodal.table(networks)
    p, mean = table["probability"].to_numpy(), table["mean"].to_numpy()
    if np.ptp(p) < 1e-6:
        raise LapsusError("the target's swap probability is the same in all conditions")

    def slope(rows: np.ndarray) -> np.ndarray:
        x = p[rows] - p[rows].mean(-1, keepdims=True)
        return (x * mean[rows]).sum(-1) / (x**2).sum(-1)

    return _of_units(networks, len(p), slope)


# --- Figure 3 and Table 1 ---


def _window(curves: xr.DataArray, when: str) -> np.ndarray:
    """Mean alignment [line] over five steps: the first of delay 1, the first from cue offset, or the last."""
    time, epoch = curves["time"].to_numpy(), curves["epoch"].to_numpy()
    if when == "delay":
        steps = np.flatnonzero((time < cue_onset(curves.to_dataset(name="alignment"))) & (epoch != "stimulus"))[:5]
    else:
        steps = np.flatnonzero(time >= 0)[:5] if when == "offset" else np.arange(len(time))[-5:]
    if len(steps) < 5:
        raise LapsusError("delay 1 and delay 2 need five time bins each")
    return curves.to_numpy()[..., steps].mean(-1)


def _change(networks: Networks, role: str, first: str = "delay", last: str = "offset") -> Sampled:
    """Change of alignment between two windows and its bootstrap samples."""
    found = fig3.index_alignment(networks, role)
    value, drawn = (_window(found[name], last) - _window(found[name], first) for name in ("alignment", "resampled"))
    return float(value), drawn


def _least(found: list[Sampled]) -> Sampled:
    return min(value for value, _ in found), np.min([drawn for _, drawn in found], axis=0)


def _largest(found: list[Sampled]) -> Sampled:
    return max(value for value, _ in found), np.max([drawn for _, drawn in found], axis=0)


def _minus(first: Sampled, second: Sampled) -> Interval:
    return _centred(first[0] - second[0], first[1] - second[1])


def index_rise(networks: Networks, role: str) -> Interval:
    """Alignment in 5 steps from cue offset minus that in the first 5 steps of delay 1."""
    return _centred(*_change(networks, role))


def index_stays_high(networks: Networks) -> Interval:
    """Alignment in the last 5 steps minus that in 5 steps from cue offset, smaller of 5 and 10 % swaps."""
    return _centred(*_least([_change(networks, role, "offset", "end") for role in INDEX_SWAPPING]))


def index_rise_only(networks: Networks) -> Interval:
    """Smallest rise of networks that swap minus the largest of those that do not."""
    swapping, others = ([_change(networks, role) for role in roles] for roles in (INDEX_SWAPPING, INDEX_OTHERS))
    return _minus(_least(swapping), _largest(others))


def _sigmoid_gain(networks: Networks, role: str) -> Sampled:
    """Flat minus sigmoid error, negative for a falling sigmoid, and its bootstrap samples over rotations."""
    _, _, fit, resampled = table1.sigmoid_fits(networks, role)
    value, *drawn = (float(one.difference * np.sign(one.y_scale)) for one in (fit, *resampled))
    return value, np.array(drawn)


def feature_rise(networks: Networks, role: str) -> Interval:
    """Flat minus sigmoid mean squared error of alignment over time, negative for a falling sigmoid."""
    return _centred(*_sigmoid_gain(networks, role))


def feature_rise_only(networks: Networks) -> Interval:
    """The same of the network with probe-dependent swaps minus the largest of the others."""
    gains = {role: _sigmoid_gain(networks, role) for role in fig3.FEATURE_NETWORKS}
    return _minus(gains.pop("feature-smooth-2"), _largest(list(gains.values())))


def _before_cue(curves: xr.DataArray, degrees: float) -> np.ndarray:
    return pre_and_post_cue(curves.sel(distance=degrees, drop=True))[0]


def close_more_aligned(networks: Networks) -> Interval:
    """Pre-cue alignment at probe distances of 45° minus that at 165°, by resampling rotations."""
    curves = fig3.feature_alignment(networks, "feature-smooth-2")
    near, far = (_before_cue(curves, degrees) for degrees in (45, 165))
    rng, repeats = np.random.default_rng(0), networks.sizes.claim_repeats
    pick = lambda values: values[rng.integers(len(values), size=(repeats, len(values)))].mean(1)
    return _centred(near.mean() - far.mean(), pick(near) - pick(far))


def inside_window(networks: Networks, role: str) -> Interval:
    """Alignment inside the optimisation window minus that in delay 2 before it, by resampling rotations."""
    curves = fig3.feature_alignment(networks, role).mean("distance")
    time, start, values = curves["time"].to_numpy(), 40 - windows.WINDOWS[role], curves.to_numpy()
    return _mean(networks, values[:, time >= start].mean(1) - values[:, (time >= 0) & (time < start)].mean(1))


def windows_rise(networks: Networks) -> Interval:
    """The largest `feature_rise` of task-optimal networks, whatever their window."""
    found = [_sigmoid_gain(networks, role) for role in networks.those_of(windows.WINDOWS)]
    if not found:
        raise LapsusError("no task-optimal feature-cued network")
    return _centred(*_largest(found))


def alignment_follows_swaps(networks: Networks, role: str) -> Interval:
    """Rank correlation over probe distances of pre-cue alignment with the swap rate, by resampling rotations."""
    curves, rates = fig3.feature_alignment(networks, role), fig2.swap_function(networks, role)
    degrees = curves["distance"].to_numpy()
    before = np.stack([_before_cue(curves, d) for d in degrees])  # [distance, rotation]
    rate = np.interp(np.radians(degrees), rates["distance"], rates["rate"])
    rank = lambda rotations: stats.spearmanr(before[:, rotations].mean(1), rate).statistic
    drawn = [rank(rows) for rows in _resampled_rows(before.shape[1], networks)]
    return resampled_interval(rank(np.arange(before.shape[1])), np.array(drawn))


# --- Figure 4 ---


def misbinding(networks: Networks) -> Interval:
    """Weight of misbinding at the end of delay 1, swap minus correct trials."""
    return fig4.kinds(networks).weights["misbinding"]


def after_cue(networks: Networks) -> Interval:
    """Weights of misselection and misinterpretation together at the end of delay 2, swap minus correct trials."""
    return fig4.kinds(networks).total


def _cells(networks: Networks, values: np.ndarray) -> Interval:
    """Mean over location pairs and colours [configuration, colour], by resampling location pairs."""
    means = [row[np.isfinite(row)].mean() for row in values if np.isfinite(row).any()]
    return _mean(networks, np.array(means))


def _between_pairs(networks: Networks, cosine: np.ndarray, statistic: Callable[..., float]) -> Interval:
    """A statistic of cosines [configuration, configuration, colour, colour], by resampling location pairs.

    A location pair drawn twice would be compared with itself, so the statistic's second argument says which pairs of
    configurations count.
    """
    count = len(cosine)
    if count < 2:
        raise LapsusError(NO_SWAPS)
    several = [rows for rows in _resampled_rows(count, networks) if len(np.unique(rows)) > 1]
    drawn = [statistic(cosine[np.ix_(rows, rows)], rows[:, None] != rows) for rows in several]
    return _centred(statistic(cosine, ~np.eye(count, dtype=bool)), np.array(drawn))


def _normals(networks: Networks) -> np.ndarray:
    """|cos| of the rings' normals between configurations and colours."""
    vectors = fig4.normals(networks).cued
    vectors = vectors[np.isfinite(vectors).all((1, 2))]
    return np.abs(np.einsum("acu,bdu->abcd", vectors, vectors))


def _same(cosine: np.ndarray, different: np.ndarray) -> float:
    return float(np.einsum("abcc->abc", cosine)[different].mean())


def _same_minus_opposite(cosine: np.ndarray, different: np.ndarray) -> float:
    opposite = np.roll(cosine, -(cosine.shape[-1] // 2), axis=-1)
    return _same(cosine, different) - _same(opposite, different)


def _above_chance(networks: Networks, found: Interval) -> Interval:
    """Minus the |cos| of random directions."""
    chance = random_cosine(fig4.normals(networks).dimension)
    value, low, high = found
    return value - chance, low - chance, high - chance


def mean_over_rings(networks: Networks, name: str) -> Interval:
    """A number of each ring (explained: held-out share of variance of the colour; distance: between the rings along
    their normal, in s.d. of trials about their ring), mean over location pairs and colours."""
    return _cells(networks, getattr(fig4.normals(networks), name))


def normal_shared(networks: Networks) -> Interval:
    """|cos| between normals of location pairs, of the same colour minus the opposite one."""
    return _between_pairs(networks, _normals(networks), _same_minus_opposite)


def above_random(networks: Networks) -> Interval:
    """|cos| between normals of location pairs, same colour, minus that of random directions."""
    return _above_chance(networks, _between_pairs(networks, _normals(networks), _same))


def either_role(networks: Networks) -> Interval:
    """|cos| between normals of the cued and the uncued role, minus that of random directions."""
    found = fig4.normals(networks)
    return _above_chance(networks, _cells(networks, np.abs((found.cued * found.uncued).sum(-1))))


def components_shared(networks: Networks) -> Interval:
    """Planes of PC1 and PC2, compared between location pairs by the mean cos of their principal angles."""
    planes = fig4.normals(networks).planes  # [configuration, colour, 2, unit]
    between = np.einsum("acxu,bdyu->abcdxy", planes, planes)
    cosine = np.linalg.svd(between, compute_uv=False).clip(0, 1).mean(-1)
    return _between_pairs(networks, cosine, _same_minus_opposite)


def normal_separates(networks: Networks) -> Interval:
    """Area under the ROC curve along the normal fitted to the other half of trials."""
    return _mean(networks, fig4.normals(networks).area)


def axis_separates(networks: Networks) -> Interval:
    """Held-out area of a linear discriminant at the response, the reported colour held fixed."""
    return _mean(networks, fig4.axis_areas(networks))


def cyclic(networks: Networks) -> Interval:
    """Rank correlation of |cos| between normals with the distance of their colours."""
    colours = fig4.normals(networks).colours
    gap, upper = distance(colours[:, None], colours), np.triu_indices(len(colours))
    rank = lambda cosine, different: float(stats.spearmanr(cosine[different].mean(0)[upper], gap[upper]).statistic)
    return _between_pairs(networks, _normals(networks), rank)


# --- The prediction, and when swaps are decided ---


def prediction_ratio(networks: Networks, role: str) -> Interval:
    """Odds ratio of a swap for one s.d. of alignment of single trials."""
    _, test = prediction.alignment_and_swaps(networks, role)
    return test.odds_ratio, test.low, test.high


def alignment_push(networks: Networks, role: str) -> Interval:
    """Log odds of a swap that a push of one s.d. along alignment adds, minus what random directions add."""
    model, conditions, trials = networks.model(role), networks.sizes.push_conditions, networks.sizes.push_trials
    found = pushes(model, when="before", conditions=conditions, trials=trials, probe_distance=np.pi / 4)
    return found.against_random["alignment"]


def fixed_at_end_of(networks: Networks, role: str, epoch: str) -> Interval:
    """Share of the outcome that is fixed at the end of an epoch."""
    model, sizes = networks.model(role), networks.sizes
    found = commitment(
        model,
        probe_distance=getattr(model.task, "probe_margin", None),
        conditions=sizes.commitment_conditions,
        groups=sizes.commitment_groups,
        replays=sizes.commitment_replays,
        every=sizes.commitment_every,
    )
    later = list(model.task.epochs.values())[list(found.by_epoch).index(epoch) : -1]
    at = np.abs(found.times + sum(later)).argmin()  # time 0 is cue offset
    return float(found.share[at]), float(found.low[at]), float(found.high[at])
