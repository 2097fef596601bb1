"""The statistic behind each claim of the paper, with its 95 % interval, computed from networks by their roles."""

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
from lapsus.paper import appendix, fig2, fig3, fig4, prediction
from lapsus.paper.roles import Networks
from lapsus.statistics.intervals import Interval, limits, rate_interval, resampled_interval


def _quantiles(value: float, drawn: np.ndarray) -> Interval:
    """The value with the 95 % interval of its bootstrap samples, shifted to be centred on it: resampling adds noise a
    second time, and statistics of noisy planes move with noise."""
    low, middle, high = np.nanquantile(drawn, [0.025, 0.5, 0.975])
    return float(value), float(value + low - middle), float(value + high - middle)


# --- Figure 2 ---


def swap_deviation(networks: Networks, role: str) -> Interval:
    """Mean |rate - target| over bins of probe distance; interval by resampling conditions (basic bootstrap, for the
    absolute value)."""
    sizes, edges = networks.sizes, responses.distance_bins()
    residual, gap = responses.swap_residuals(networks.answers(role), sizes.swap_conditions, sizes.swap_trials)
    place, bins = np.searchsorted(edges, gap) - 1, len(edges) - 1
    members = [residual[place == k] for k in range(bins) if (place == k).any()]
    value = np.mean([abs(own.mean()) for own in members])
    rng = np.random.default_rng(0)
    repeats = networks.sizes.claim_repeats
    drawn = np.mean([np.abs(own[rng.integers(len(own), size=(repeats, len(own)))].mean(1)) for own in members], axis=0)
    q_low, q_high = limits(drawn)
    return float(value), float(max(0, min(value, 2 * value - q_high))), float(max(value, 2 * value - q_low))


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
    table = appendix.averaging_by_condition(networks)
    p, variance = table["probability"].to_numpy(), table["sd"].to_numpy() ** 2
    statistic = lambda rows: np.sqrt(variance[rows].mean(-1) / (p * (1 - p))[rows].mean(-1))
    return _over_conditions(len(p), statistic, networks.sizes.claim_repeats)


def averaging_slope(networks: Networks) -> Interval:
    """Slope of the mean place between the modes over the target's swap probability, by resampling conditions."""
    table = appendix.averaging_by_condition(networks)
    p, mean = table["probability"].to_numpy(), table["mean"].to_numpy()
    if np.ptp(p) < 1e-6:
        raise LapsusError("the target's swap probability is the same in all conditions")

    def statistic(rows: np.ndarray) -> np.ndarray:
        x = p[rows] - p[rows].mean(-1, keepdims=True)
        return (x * mean[rows]).sum(-1) / (x**2).sum(-1)

    return _over_conditions(len(p), statistic, networks.sizes.claim_repeats)


def _over_conditions(count: int, statistic: Callable, repeats: int) -> Interval:
    rows = np.random.default_rng(0).integers(count, size=(repeats, count))
    return _quantiles(statistic(np.arange(count)), statistic(rows))


# --- Figure 3 and Table 1 ---


def _window(curves: xr.DataArray, when: str) -> np.ndarray:
    """Mean alignment [line] over five steps: the first of delay 1, the first from cue offset, or the last."""
    time, epoch = curves["time"].to_numpy(), curves["epoch"].to_numpy()
    delay = np.flatnonzero((time < cue_onset(curves.to_dataset(name="alignment"))) & (epoch != "stimulus"))
    steps = {"delay": delay[:5], "offset": np.flatnonzero(time >= 0)[:5], "end": np.arange(len(time))[-5:]}[when]
    if len(steps) < 5:
        raise LapsusError("delay 1 and delay 2 need five time bins each")
    return curves.to_numpy()[..., steps].mean(-1)


def _change(networks: Networks, role: str, first: str, last: str) -> tuple[float, np.ndarray]:
    """Change of alignment between two windows and its bootstrap samples."""
    found = fig3.index_alignment(networks, role)
    change = lambda curves: _window(curves, last) - _window(curves, first)
    return float(change(found["alignment"])), change(found["resampled"])


def _rise(networks: Networks, role: str) -> tuple[float, np.ndarray]:
    return _change(networks, role, "delay", "offset")


def index_rise(networks: Networks, role: str) -> Interval:
    """Alignment in 5 steps from cue offset minus that in the first 5 steps of delay 1."""
    return _quantiles(*_rise(networks, role))


def index_stays_high(networks: Networks) -> Interval:
    """Alignment in the last 5 steps minus that in 5 steps from cue offset, smaller of 5 and 10 % swaps."""
    found = [_change(networks, role, "offset", "end") for role in ("index-constant-05", "index-constant-10")]
    return _quantiles(min(v for v, _ in found), np.minimum(*(d for _, d in found)))


def index_rise_only(networks: Networks) -> Interval:
    """Smallest rise of networks that swap minus the largest of those that do not."""
    rises = {role: _rise(networks, role) for role in fig3.INDEX_NETWORKS}
    swaps = [rises[role] for role in ("index-constant-05", "index-constant-10")]
    others = [rises[role] for role in ("index-optimal", "index-none")]
    value = min(v for v, _ in swaps) - max(v for v, _ in others)
    drawn = np.minimum(*(d for _, d in swaps)) - np.maximum(*(d for _, d in others))
    return _quantiles(value, drawn)


def _sigmoid_gain(networks: Networks, role: str) -> tuple[float, np.ndarray]:
    """Flat minus sigmoid error, negative for a falling sigmoid, and its bootstrap samples over rotations."""
    _, _, fit, resampled = appendix.sigmoid_fits(networks, role)
    signed = lambda one: one.difference * np.sign(one.y_scale)
    return float(signed(fit)), np.array([signed(one) for one in resampled])


def feature_rise(networks: Networks, role: str) -> Interval:
    """Flat minus sigmoid mean squared error of alignment over time, negative for a falling sigmoid."""
    return _quantiles(*_sigmoid_gain(networks, role))


def feature_rise_only(networks: Networks) -> Interval:
    """The same of the network with probe-dependent swaps minus the largest of the others."""
    gains = {role: _sigmoid_gain(networks, role) for role in fig3.FEATURE_NETWORKS}
    value, drawn = gains.pop("feature-smooth-2")
    return _quantiles(value - max(v for v, _ in gains.values()), drawn - np.max([d for _, d in gains.values()], axis=0))


def close_more_aligned(networks: Networks) -> Interval:
    """Pre-cue alignment at probe distances of 45° minus that at 165°, by resampling rotations."""
    curves = fig3.feature_alignment(networks, "feature-smooth-2")
    near, far = (pre_and_post_cue(curves.sel(distance=degrees, drop=True))[0] for degrees in (45, 165))
    rng, repeats = np.random.default_rng(0), networks.sizes.claim_repeats
    pick = lambda values: values[rng.integers(len(values), size=(repeats, len(values)))].mean(1)
    return _quantiles(near.mean() - far.mean(), pick(near) - pick(far))


def inside_window(networks: Networks, role: str) -> Interval:
    """Alignment inside the optimisation window minus that in delay 2 before it, by resampling rotations."""
    curves = fig3.feature_alignment(networks, role).mean("distance")
    time, start = curves["time"].to_numpy(), 40 - appendix.WINDOWS[role]
    change = curves.to_numpy()[:, time >= start].mean(1) - curves.to_numpy()[:, (time >= 0) & (time < start)].mean(1)
    return _resampled_mean(change, networks)


def windows_rise(networks: Networks) -> Interval:
    """The largest `feature_rise` of task-optimal networks, whatever their window."""
    found = [_sigmoid_gain(networks, role) for role in appendix.WINDOWS if role in networks]
    if not found:
        raise LapsusError("no task-optimal feature-cued network")
    return _quantiles(max(v for v, _ in found), np.max([d for _, d in found], axis=0))


# --- Figure 4 ---


def misbinding(networks: Networks) -> Interval:
    """Weight of misbinding at the end of delay 1, swap minus correct trials."""
    return fig4.kinds(networks).weights["misbinding"]


def after_cue(networks: Networks) -> Interval:
    """Weights of misselection and misinterpretation together at the end of delay 2, swap minus correct trials."""
    return fig4.kinds(networks).total


def _resampled_mean(values: np.ndarray, networks: Networks) -> Interval:
    """Mean of values [unit], by resampling them."""
    rows = np.random.default_rng(0).integers(len(values), size=(networks.sizes.claim_repeats, len(values)))
    return _quantiles(values.mean(), values[rows].mean(1))


def _cells(values: np.ndarray, networks: Networks) -> Interval:
    """Mean over location pairs and colours [configuration, colour], by resampling location pairs."""
    mean = np.array([row[np.isfinite(row)].mean() for row in values if np.isfinite(row).any()])
    if len(mean) == 0:
        raise LapsusError(NO_SWAPS)
    return _resampled_mean(mean, networks)


def _resampled_configurations(
    vectors: np.ndarray, statistic: Callable[[np.ndarray, np.ndarray], float], networks: Networks
) -> Interval:
    """A statistic of unit vectors [configuration, colour, unit], by resampling location pairs.

    A location pair drawn twice would be compared with itself, so the second argument says which pairs of configurations
    count.
    """
    vectors = vectors[np.isfinite(vectors).all((1, 2))]
    if len(vectors) < 2:
        raise LapsusError(NO_SWAPS)
    return _resampled_pairs(np.abs(np.einsum("acu,bdu->abcd", vectors, vectors)), statistic, networks)


def _resampled_pairs(
    cosine: np.ndarray, statistic: Callable[[np.ndarray, np.ndarray], float], networks: Networks
) -> Interval:
    """The same for cosines [configuration, configuration, colour, colour] that are known."""
    count, rng, drawn = len(cosine), np.random.default_rng(0), []
    for _ in range(networks.sizes.claim_repeats):
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


def two_rings(networks: Networks) -> Interval:
    """Held-out share of variance of the colour within a ring, mean over location pairs and colours."""
    return _cells(fig4.normals(networks).explained, networks)


def rings_apart(networks: Networks) -> Interval:
    """Distance of the rings along their normal, in s.d. of trials about their ring."""
    return _cells(fig4.normals(networks).distance, networks)


def normal_shared(networks: Networks) -> Interval:
    """|cos| between normals of location pairs, of the same colour minus the opposite one."""
    return _resampled_configurations(fig4.normals(networks).cued, _same_minus_opposite, networks)


def above_random(networks: Networks) -> Interval:
    """|cos| between normals of location pairs, same colour, minus that of random directions."""
    found = fig4.normals(networks)
    chance = random_cosine(found.dimension)
    value, low, high = _resampled_configurations(found.cued, _same, networks)
    return value - chance, low - chance, high - chance


def either_role(networks: Networks) -> Interval:
    """|cos| between normals of the cued and the uncued role, minus that of random directions."""
    found = fig4.normals(networks)
    cosine = np.abs((found.cued * found.uncued).sum(-1))
    value, low, high = _cells(cosine, networks)
    chance = random_cosine(found.dimension)
    return value - chance, low - chance, high - chance


def components_shared(networks: Networks) -> Interval:
    """Planes of PC1 and PC2, compared between location pairs by the mean cos of their principal angles."""
    planes = fig4.normals(networks).planes  # [configuration, colour, 2, unit]
    between = np.einsum("acxu,bdyu->abcdxy", planes, planes)
    cosine = np.linalg.svd(between, compute_uv=False).clip(0, 1).mean(-1)
    return _resampled_pairs(cosine, _same_minus_opposite, networks)


def _mean_area(area: np.ndarray, networks: Networks) -> Interval:
    area = area[np.isfinite(area)]
    if len(area) == 0:
        raise LapsusError(NO_SWAPS)
    return _resampled_mean(area, networks)


def normal_separates(networks: Networks) -> Interval:
    """Area under the ROC curve along the normal fitted to the other half of trials."""
    return _mean_area(fig4.normals(networks).area, networks)


def axis_separates(networks: Networks) -> Interval:
    """Held-out area of a linear discriminant at the response, the reported colour held fixed."""
    return _mean_area(fig4.axis_areas(networks), networks)


def cyclic(networks: Networks) -> Interval:
    """Rank correlation of |cos| between normals with the distance of their colours."""
    found = fig4.normals(networks)
    gap = distance(found.colours[:, None], found.colours[None])
    upper = np.triu_indices(len(found.colours))

    def statistic(cosine: np.ndarray, different: np.ndarray) -> float:
        return float(stats.spearmanr(cosine[different].mean(0)[upper], gap[upper]).statistic)

    return _resampled_configurations(found.cued, statistic, networks)


# --- The prediction, and when swaps are decided ---


def alignment_follows_swaps(networks: Networks, role: str) -> Interval:
    """Rank correlation over probe distances of pre-cue alignment with the swap rate, by resampling rotations."""
    curves = fig3.feature_alignment(networks, role)
    before = np.stack([pre_and_post_cue(curves.sel(distance=d, drop=True))[0] for d in curves["distance"].to_numpy()])
    rates = fig2.swap_function(networks, role)
    rate = np.interp(np.radians(curves["distance"].to_numpy()), rates["distance"], rates["rate"])
    rows = np.random.default_rng(0).integers(before.shape[1], size=(networks.sizes.claim_repeats, before.shape[1]))
    rank = lambda values: stats.spearmanr(values, rate).statistic
    drawn = np.array([rank(before[:, one].mean(1)) for one in rows])
    return resampled_interval(rank(before.mean(1)), drawn)


def alignment_push(networks: Networks, role: str) -> Interval:
    """Log odds of a swap that a push of one s.d. along alignment adds, minus what random directions add."""
    model, sizes = networks.model(role), networks.sizes
    found = pushes(
        model, when="before", conditions=sizes.push_conditions, trials=sizes.push_trials, probe_distance=np.pi / 4
    )
    return found.against_random["alignment"]


def fixed_at(networks: Networks, role: str, epoch: str) -> Interval:
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
    names = list(found.by_epoch)
    end = -float(sum(list(model.task.epochs.values())[:-1][names.index(epoch) :]))
    at = int(np.abs(found.times - end).argmin())
    return float(found.share[at]), float(found.low[at]), float(found.high[at])


def prediction_ratio(networks: Networks, role: str) -> Interval:
    """Odds ratio of a swap for one s.d. of alignment of single trials."""
    _, test = prediction.alignment_and_swaps(networks, role)
    return test.odds_ratio, test.low, test.high
