"""Alignment of the planes in which the colours of the two items are held, over time (Fig 3; Panichello & Buschman
2021).

At each time step: memory activity of correct trials, reduced to three principal components; for each cued item the mean
of each bin of reported colour; the plane of best fit through an item's bin means; |cos| of the angle between the two
normals. 1 is parallel, 0 perpendicular, and two planes that have nothing to do with each other have 0.5 on average.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from scipy.optimize import least_squares

from lapsus.circular import distance
from lapsus.errors import LapsusError
from lapsus.mechanism.activity import cue_onset, memory, two_items
from lapsus.statistics.intervals import Z95, Interval, resampled_interval

__all__ = [
    "AdjustedAlignment",
    "SigmoidFit",
    "adjusted_alignment",
    "bin_means",
    "bootstrap_alignment",
    "condition_alignment",
    "panichello_alignment",
    "places",
    "plane_alignment",
    "pre_and_post_cue",
    "shuffle_null",
    "sigmoid",
    "sigmoid_against_flat",
    "sigmoid_bootstrap",
]


@dataclass(frozen=True)
class _Group:
    """Correct trials of one spatial configuration: memory [trial, time, unit], cell (cued item, reported colour) and
    the same of the distractor."""

    name: object
    memory: np.ndarray
    cell: np.ndarray
    other: np.ndarray


def _groups(dataset: xr.Dataset, bins: int, groups: str | None) -> Iterator[_Group]:
    items = two_items(dataset)
    to_bin = lambda angle: np.floor((angle + np.pi) / (2 * np.pi) * bins).astype(int).clip(0, bins - 1)
    colour, other = to_bin(items.response), to_bin(items.distractor)
    m = memory(dataset)
    if groups is None:
        labels = np.zeros(len(colour), dtype=int)
    elif groups in dataset:
        labels = dataset[groups].to_numpy()
    else:
        raise LapsusError(f"The dataset has no variable {groups!r} to group trials by.")
    for name in np.unique(labels):
        chosen = (labels == name) & ~items.swap
        cell = items.cued[chosen] * bins + colour[chosen]
        for item in (0, 1):
            occupied = len(np.unique(cell[cell // bins == item]))
            if occupied < 3:
                raise LapsusError(
                    f"Plane alignment needs correct trials in at least 3 of {bins} bins of reported colour for each"
                    f" cued item; item {item + 1} has them in {occupied}"
                    + ("." if groups is None else f" ({groups} {name}).")
                )
        yield _Group(name, m[chosen], cell, items.cued[chosen] * bins + other[chosen])


def _components(covariance: np.ndarray) -> np.ndarray:
    """First three principal components [..., unit, 3] of covariances [..., unit, unit]."""
    return np.linalg.eigh(covariance)[1][..., :, ::-1][..., :3]


def _cell_means(group: _Group, cells: int, weights: np.ndarray, adjust: bool) -> np.ndarray:
    """Mean memory activity in each cell under weights [repeat, trial]: [repeat, cell, time, unit], NaN where a cell is
    empty.

    adjust: the additive effect of the distractor's cell is removed by least squares.
    """
    flat = group.memory.reshape(len(group.cell), -1)
    means = np.full((len(weights), cells, flat.shape[1]), np.nan)
    for cell in np.unique(group.cell):
        own = np.flatnonzero(group.cell == cell)
        share = weights[:, own]
        count = share.sum(1, keepdims=True)
        means[:, cell] = np.where(count > 0, share @ flat[own] / np.maximum(count, 1e-12), np.nan)
    if adjust:
        design = np.concatenate(
            [group.cell[:, None] == np.unique(group.cell), group.other[:, None] == np.unique(group.other)], 1
        )
        for repeat, weight in enumerate(weights):
            present = np.isfinite(means[repeat, :, 0])
            weighted = (design * weight[:, None]).T
            # A constant can move between an item's own and the other's bins; the pseudo-inverse settles it, and no
            # plane depends on it.
            effects = np.linalg.pinv(weighted @ design, hermitian=True) @ (weighted @ flat)
            means[repeat, present] = effects[: len(np.unique(group.cell))][present[np.unique(group.cell)]]
    return means.reshape(len(weights), cells, *group.memory.shape[1:])


def _normals(points: np.ndarray) -> np.ndarray:
    """Normal [repeat, time, 3] of the plane of best fit through points [repeat, bin, time, 3], rows of NaN left out."""
    centred = np.nan_to_num(points - np.nanmean(points, axis=1, keepdims=True))
    return np.linalg.eigh(np.einsum("rbtx,rbty->rtxy", centred, centred))[1][..., :, 0]


def _alignment(group: _Group, bins: int, pool: str, adjust: bool, weights: np.ndarray) -> np.ndarray:
    """|cos| of the two planes' normals at each time under weights [repeat, trial]: [repeat, time]."""
    means = _cell_means(group, 2 * bins, weights, adjust)
    components = _pooled_components(group.memory, weights) if pool == "trials" else _components(_bin_covariance(means))
    points = np.einsum("rbtu,rtux->rbtx", means, components)
    return _cosine(points, bins)


def _cosine(points: np.ndarray, bins: int) -> np.ndarray:
    first, second = _normals(points[:, :bins]), _normals(points[:, bins:])
    return np.abs(np.sum(first * second, axis=-1)).clip(0, 1)


def _pooled_components(m: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Components of all trials at each time under weights [repeat, trial]: [repeat, time, unit, 3]."""
    units = m.shape[2]
    if len(weights) == 1:
        by_time = (m - np.average(m, axis=0, weights=weights[0])).transpose(1, 2, 0)
        return _components((by_time * weights[0]) @ by_time.transpose(0, 2, 1))[None]
    weights = weights / weights.sum(1, keepdims=True)
    upper = np.triu_indices(units)
    covariance = np.empty((len(weights), m.shape[1], units, units))
    for step in range(m.shape[1]):
        x = m[:, step] - m[:, step].mean(0)
        mean = weights @ x
        second = weights @ (x[:, upper[0]] * x[:, upper[1]]) - mean[:, upper[0]] * mean[:, upper[1]]
        covariance[:, step, upper[0], upper[1]] = second
        covariance[:, step, upper[1], upper[0]] = second
    return _components(covariance)


def _bin_covariance(means: np.ndarray) -> np.ndarray:
    centred = np.nan_to_num(means - np.nanmean(means, axis=1, keepdims=True))
    return np.einsum("rbtu,rbtv->rtuv", centred, centred)


def plane_alignment(
    dataset: xr.Dataset, *, bins: int = 16, groups: str | None = None, pool: str = "trials", adjust: bool = False
) -> xr.DataArray:
    """Alignment of the two items' colour planes over time: [group, time].

    groups: the variable whose values are analysed apart (spatial configurations); None takes all trials as one group.
    pool: what the three principal components are fitted to at each step, "trials" or the "bins"' means.
    adjust: remove the distractor's colour from the bin means by least squares. The two colours of a trial keep a
    margin, so they are not independent: the mean over trials with one colour holds some of the other item's plane,
    which tilts the planes towards each other. The paper's statistic has this bias (perpendicular planes that share a
    line come out at 0.55 with a margin of pi/4).
    """
    if pool not in ("trials", "bins"):
        raise LapsusError(f"pool is 'trials' or 'bins', not {pool!r}.")
    rows = {
        group.name: _alignment(group, bins, pool, adjust, _equal(group))[0] for group in _groups(dataset, bins, groups)
    }
    return _as_array(np.stack(list(rows.values())), dataset, "group", list(rows))


def panichello_alignment(dataset: xr.Dataset) -> xr.DataArray:
    """Panichello & Buschman's variant: four colour bins an item, components fitted to the eight mean vectors; [group,
    time]."""
    return plane_alignment(dataset, bins=4, pool="bins")


def condition_alignment(rates: np.ndarray) -> float:
    """The same of mean rates [condition, unit], the colours of the one item before those of the other."""
    means = np.asarray(rates, dtype=float)[None, :, None]
    points = np.einsum("rbtu,rtux->rbtx", means, _components(_bin_covariance(means)))
    return float(_cosine(points, len(rates) // 2)[0, 0])


def _as_array(values: np.ndarray, dataset: xr.Dataset, dimension: str, labels: Sequence | np.ndarray) -> xr.DataArray:
    return xr.DataArray(
        values,
        dims=(dimension, "time"),
        coords={dimension: labels, "time": dataset["time"].to_numpy(), "epoch": ("time", dataset["epoch"].to_numpy())},
        name="alignment",
    )


def shuffle_null(
    dataset: xr.Dataset, *, repeats: int = 200, seed: int = 0, bins: int = 16, groups: str | None = None
) -> xr.DataArray:
    """Alignment after the reported colours are shuffled among the trials of each cued item: [repeat, time], mean over
    groups.

    This is what planes through noise give. The p-value of an alignment is the share of shuffles that reach it:
    (1 + #{null >= observed}) / (1 + repeats).
    """
    rng = np.random.default_rng(seed)
    total, count = np.zeros((repeats, dataset.sizes["time"])), 0
    for group in _groups(dataset, bins, groups):
        # Shuffling leaves these components as they are, so activity may as well be reduced once.
        components = _pooled_components(group.memory, _equal(group))[0]
        group = replace(group, memory=np.einsum("ntu,tux->ntx", group.memory - group.memory.mean(0), components))
        for repeat in range(repeats):
            cell = group.cell.copy()
            for item in (0, 1):
                own = np.flatnonzero(cell // bins == item)
                cell[own] = cell[rng.permutation(own)]
            means = _cell_means(replace(group, cell=cell), 2 * bins, _equal(group), adjust=False)
            total[repeat] += _cosine(means, bins)[0]
        count += 1
    return _as_array(total / count, dataset, "repeat", np.arange(repeats))


@dataclass(frozen=True)
class AdjustedAlignment:
    """Alignment before and after the cue without the bias of `plane_alignment`, each with its 95 % interval over
    resampled trials; null_before and null_after: the mean and where 95 % of shuffled colours lie."""

    before: Interval
    after: Interval
    null_before: Interval
    null_after: Interval


def adjusted_alignment(
    dataset: xr.Dataset, *, groups: str | None = None, repeats: int = 60, seed: int = 0
) -> AdjustedAlignment:
    """Alignment with the distractor's colour removed (adjust), mean over groups, before and after the cue."""
    bins, rng = 16, np.random.default_rng(seed)
    before, after = _windows(dataset)
    observed, drawn, null = [], [], []
    for group in _groups(dataset.isel(time=np.concatenate([before, after])), bins, groups):
        items = [np.flatnonzero(group.cell // bins == item) for item in (0, 1)]
        weights = np.ones((1 + repeats, len(group.cell)))
        for own in items:
            weights[1:, own] = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), size=repeats)
        curves = _alignment(group, bins, "trials", True, weights)
        observed.append(curves[0])
        drawn.append(curves[1:])
        for _ in range(repeats):
            cell = group.cell.copy()
            for own in items:
                cell[own] = cell[rng.permutation(own)]
            null.append(_alignment(replace(group, cell=cell), bins, "trials", True, _equal(group))[0])
    shuffled = np.reshape(null, (len(observed), repeats, -1)).mean(0)
    value, resampled = np.mean(observed, 0), np.mean(drawn, 0)

    def around(window: slice) -> Interval:
        # Resampling adds noise, which moves |cos| towards that of random planes; its s.d. is right, its quantiles not.
        point, reach = float(value[window].mean()), Z95 * float(resampled[:, window].mean(1).std(ddof=1))
        return point, max(point - reach, 0.0), min(point + reach, 1.0)

    early, late = slice(0, len(before)), slice(len(before), None)
    nulls = [resampled_interval(shuffled[:, own].mean(), shuffled[:, own].mean(1)) for own in (early, late)]
    return AdjustedAlignment(around(early), around(late), *nulls)


def _equal(group: _Group) -> np.ndarray:
    return np.ones((1, len(group.cell)))


def bootstrap_alignment(dataset: xr.Dataset, *, repeats: int = 200, seed: int = 0) -> xr.DataArray:
    """Alignment in resamples of the trials (with replacement, for each cued item apart): [repeat, time]."""
    rng, bins = np.random.default_rng(seed), 16
    (group,) = _groups(dataset, bins, None)
    weights = np.zeros((repeats, len(group.cell)))
    for item in (0, 1):
        own = np.flatnonzero(group.cell // bins == item)
        weights[:, own] = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), size=repeats)
    return _as_array(_alignment(group, bins, "trials", False, weights), dataset, "repeat", np.arange(repeats))


def bin_means(dataset: xr.Dataset, time: float) -> xr.DataArray:
    """Mean memory activity for each cued item and bin of reported colour, in the first three components: [item, bin,
    component].

    Correct trials at the step nearest to `time` (Fig 3A); NaN for empty bins. The coordinate `colour` is the bin's
    centre.
    """
    bins = 16
    group = next(_groups(dataset, bins, None))
    step = int(np.abs(dataset["time"].to_numpy() - time).argmin())
    m = group.memory[:, step : step + 1]
    centred = m - m.mean(0)
    means = _cell_means(replace(group, memory=centred), 2 * bins, _equal(group), False)[0]
    points = np.einsum("btu,tux->btx", means, _pooled_components(m, _equal(group))[0])[:, 0]
    centres = (np.arange(bins) + 0.5) * 2 * np.pi / bins - np.pi
    return xr.DataArray(
        points.reshape(2, bins, 3),
        dims=("item", "bin", "component"),
        coords={"item": [1, 2], "colour": ("bin", centres)},
    )


def pre_and_post_cue(curves: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Mean alignment over the last five steps before the cue and over the first five after its offset: [group] each."""
    before, after = _windows(curves.to_dataset(name="alignment"))
    values = curves.to_numpy()
    return values[:, before].mean(1), values[:, after].mean(1)


def _windows(dataset: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The last five time bins before the cue and the first five after its offset."""
    time = dataset["time"].to_numpy()
    before, after = np.flatnonzero(time < cue_onset(dataset))[-5:], np.flatnonzero(time >= 0)[:5]
    if len(before) < 5 or len(after) < 5:
        raise LapsusError("The recording needs 5 time bins before the cue and 5 from cue offset (time 0) on.")
    return before, after


def places(dataset: xr.Dataset) -> str | None:
    """The variable of a dataset that names the places of the items in each trial; None where all trials have the
    same."""
    if "configuration" in dataset:
        return "configuration"
    probe = two_items(dataset).probe
    if probe is not None and distance(probe, probe[:1]).max() > 1e-3:
        raise LapsusError(
            "it takes many trials with items at the same places, named by a variable `configuration`; here places"
            " differ from trial to trial"
        )
    return None


# --- Sigmoid against flat (appendix, Table 1) ---


@dataclass(frozen=True)
class SigmoidFit:
    """y_offset + y_scale / (1 + exp(-slope (t - x_offset))) and the flat line at the temporal mean, least squares."""

    slope: float
    x_offset: float
    y_offset: float
    y_scale: float
    flat_mse: float
    sigmoid_mse: float

    @property
    def difference(self) -> float:
        """Flat minus sigmoid mean squared error: the last column of Table 1."""
        return self.flat_mse - self.sigmoid_mse


def sigmoid(time: np.ndarray, slope: float, x_offset: float, y_offset: float, y_scale: float) -> np.ndarray:
    """The four-parameter sigmoid."""
    return y_offset + y_scale * 0.5 * (1 + np.tanh(0.5 * slope * (time - x_offset)))


def sigmoid_against_flat(time: np.ndarray, curves: np.ndarray) -> SigmoidFit:
    """Fit both to curves [line, time] together (one sigmoid for all lines, as in Table 1)."""
    time, curves = np.asarray(time, dtype=float), np.atleast_2d(np.asarray(curves, dtype=float))
    mean = curves.mean(0)
    # One curve for all lines: only the mean line matters to the fit, the spread of the lines is a constant of the
    # error.
    spread = np.mean((curves - mean) ** 2)
    span = time[-1] - time[0]
    slopes = np.geomspace(2 / span, 40 / span, 12)
    offsets = np.linspace(time[0], time[-1], 25)
    grid_slope, grid_offset = (values.ravel() for values in np.meshgrid(slopes, offsets))
    shape = 0.5 * (1 + np.tanh(0.5 * grid_slope[:, None] * (time - grid_offset[:, None])))
    centred = shape - shape.mean(1, keepdims=True)
    scale = centred @ (mean - mean.mean()) / np.maximum((centred**2).sum(1), 1e-12)
    error = ((scale[:, None] * centred - (mean - mean.mean())) ** 2).mean(1)
    best = error.argmin()
    start = [grid_slope[best], grid_offset[best], mean.mean() - scale[best] * shape[best].mean(), scale[best]]
    # The midpoint stays on the time axis and the slope finite: beyond that, shapes within the window no longer differ.
    lower, upper = [0.5 / span, time[0], -np.inf, -np.inf], [10 * len(time) / span, time[-1], np.inf, np.inf]

    def slope_of_error(p: np.ndarray) -> np.ndarray:
        shape = sigmoid(time, p[0], p[1], 0.0, 1.0)
        steepness = p[3] * shape * (1 - shape)
        return np.stack([steepness * (time - p[1]), -steepness * p[0], np.ones_like(time), shape], 1)

    fit = least_squares(
        lambda p: sigmoid(time, *p) - mean,
        start,
        jac=slope_of_error,
        bounds=(lower, upper),
        x_scale=[1 / span, span, 1, 1],
    )
    flat = np.mean((curves - curves.mean()) ** 2)
    slope, x_offset, y_offset, y_scale = map(float, fit.x)
    return SigmoidFit(slope, x_offset, y_offset, y_scale, float(flat), float(np.mean(fit.fun**2) + spread))


def sigmoid_bootstrap(time: np.ndarray, curves: np.ndarray, *, repeats: int = 200, seed: int = 0) -> list[SigmoidFit]:
    """Fits to resamples of curves [distance, rotation, time]: rotations resampled within each distance, then
    averaged."""
    rng = np.random.default_rng(seed)
    fits = []
    for _ in range(repeats):
        chosen = rng.integers(curves.shape[1], size=curves.shape[1])
        fits.append(sigmoid_against_flat(time, curves[:, chosen].mean(1)))
    return fits
