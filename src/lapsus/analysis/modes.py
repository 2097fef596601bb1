"""Swap errors in behaviour: how often by probe distance, and whether responses have a second mode at the distractor
(Fig 2)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats

from lapsus.analysis.activity import items, require_trials
from lapsus.circular import difference, distance

__all__ = [
    "ModeTest",
    "averaging",
    "circular_density",
    "distractor_mode",
    "proportion_interval",
    "swap_rate",
    "swap_rate_by_distance",
    "unimodality",
]


def proportion_interval(hits, count, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Wilson interval of a proportion."""
    hits, count = np.asarray(hits, dtype=float), np.asarray(count, dtype=float)
    z = stats.norm.ppf(0.5 + level / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (hits + z**2 / 2) / (count + z**2)
        half = z / (count + z**2) * np.sqrt(hits * (count - hits) / count + z**2 / 4)
    # At 0 or 1 the interval ends there exactly, which rounding would miss.
    return np.where(hits > 0, centre - half, 0.0)[()], np.where(hits < count, centre + half, 1.0)[()]


def swap_rate(dataset: xr.Dataset) -> tuple[float, float, float]:
    """Share of trials whose response is nearest to an item that was not cued, with its 95 % interval."""
    swap = items(dataset).swap
    require_trials(len(swap), 1, "trials")
    low, high = proportion_interval(swap.sum(), len(swap))
    return float(swap.mean()), float(low), float(high)


def swap_rate_by_distance(dataset: xr.Dataset, *, edges: np.ndarray | None = None, bins: int = 9) -> pd.DataFrame:
    """Swap rate in bins of probe distance: columns `distance` (mean of the bin), `rate`, `low`, `high`, `trials`,
    `swaps`.

    edges: bounds of the bins in radians; by default `bins` of equal width between the smallest and largest distance.
    """
    found = items(dataset)
    gap = found.probe_distance
    require_trials(int(np.isfinite(gap).sum()), 1, "trials with probe features")
    edges = np.linspace(gap.min(), gap.max() + 1e-9, bins + 1) if edges is None else np.asarray(edges)
    place = np.searchsorted(edges, gap, side="right") - 1
    rows = []
    for k in range(len(edges) - 1):
        own = place == k
        if not own.any():
            continue
        low, high = proportion_interval(found.swap[own].sum(), own.sum())
        rows.append((gap[own].mean(), found.swap[own].mean(), low, high, int(own.sum()), int(found.swap[own].sum())))
    return pd.DataFrame(rows, columns=["distance", "rate", "low", "high", "trials", "swaps"])


# --- How many modes? ---

_GRID = 256


def circular_density(angles: np.ndarray, bandwidth) -> np.ndarray:
    """Density of angles on a grid of 256 points from -pi, smoothed with a wrapped normal kernel of s.d. `bandwidth`.

    angles: [..., trial]; bandwidth: a number or [...]; returns [..., grid].
    """
    angles = np.asarray(angles)
    flat = angles.reshape(-1, angles.shape[-1])
    cell = np.floor((flat + np.pi) / (2 * np.pi) * _GRID).astype(int) % _GRID
    counts = np.zeros((len(flat), _GRID))
    np.add.at(counts, (np.arange(len(flat))[:, None], cell), 1.0)
    counts = counts.reshape(*angles.shape[:-1], _GRID)
    return _smooth(counts / angles.shape[-1] * _GRID / (2 * np.pi), bandwidth)


def _smooth(histogram: np.ndarray, bandwidth) -> np.ndarray:
    # Convolution with the wrapped normal is a product with exp(-k² h² / 2) of its Fourier coefficients.
    k = np.arange(_GRID // 2 + 1)
    kernel = np.exp(-0.5 * (k * np.asarray(bandwidth, dtype=float)[..., None]) ** 2)
    return np.fft.irfft(np.fft.rfft(histogram) * kernel, _GRID)


def _peaks(density: np.ndarray) -> np.ndarray:
    """Where the density on the ring has a local maximum: bool [..., grid]. Ripples below 1e-6 of the peak are
    rounding."""
    floor = 1e-6 * density.max(-1, keepdims=True)
    up = density - np.roll(density, 1, -1)
    down = density - np.roll(density, -1, -1)
    return (up > 0) & (down >= 0) & (density > floor)


def _critical_bandwidth(histogram: np.ndarray) -> np.ndarray:
    """Smallest bandwidth at which the density of each histogram [..., grid] has a single mode (bisection; [...])."""
    low = np.full(histogram.shape[:-1], 2 * np.pi / _GRID)
    high = np.full(histogram.shape[:-1], 3.0)
    for _ in range(14):
        middle = np.sqrt(low * high)
        single = _peaks(_smooth(histogram, middle)).sum(-1) <= 1
        low, high = np.where(single, low, middle), np.where(single, middle, high)
    return high


@dataclass(frozen=True)
class ModeTest:
    """Silverman's test of one mode on the circle: the critical bandwidth in radians and the p-value of unimodality."""

    bandwidth: float
    p: float


def unimodality(angles: np.ndarray, *, repeats: int = 200, seed: int = 0) -> ModeTest:
    """Silverman's test: is the smoothing that it takes to make angles [trial] unimodal more than samples of such a
    density need?"""
    angles = np.asarray(angles, dtype=float)
    require_trials(len(angles), 20, "trials")
    rng = np.random.default_rng(seed)
    to_cell = lambda a: np.floor((a + np.pi) / (2 * np.pi) * _GRID).astype(int) % _GRID  # noqa: E731
    histogram = np.bincount(to_cell(angles), minlength=_GRID).astype(float)
    critical = _critical_bandwidth(histogram)
    drawn = angles[rng.integers(len(angles), size=(repeats, len(angles)))] + critical * rng.standard_normal(
        (repeats, len(angles))
    )
    cell = to_cell(drawn)
    counts = np.zeros((repeats, _GRID))
    np.add.at(counts, (np.arange(repeats)[:, None], cell), 1.0)
    exceeds = _peaks(_smooth(counts, np.full(repeats, critical))).sum(-1) > 1
    return ModeTest(float(critical), float((1 + exceeds.sum()) / (1 + repeats)))


def distractor_mode(
    response: np.ndarray,
    target: float,
    distractor: float,
    *,
    window: float = np.pi / 8,
    repeats: int = 500,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Excess of responses at the distractor: the share within `window` of it minus the share at its mirror image about
    the target.

    A second mode at the distractor adds to the first share alone; responses spread evenly around the target, however
    wide, add the same to both. Returns the excess and its 95 % bootstrap interval.
    """
    response = np.asarray(response, dtype=float)
    require_trials(len(response), 20, "trials")
    mirror = target - difference(distractor, target)
    score = (distance(response, distractor) < window).astype(float) - (distance(response, mirror) < window)
    rng = np.random.default_rng(seed)
    drawn = score[rng.integers(len(score), size=(repeats, len(score)))].mean(1)
    return float(score.mean()), *(float(v) for v in np.quantile(drawn, [0.025, 0.975]))


def averaging(x: np.ndarray, target: np.ndarray, distractor: np.ndarray) -> np.ndarray:
    """Place of responses x [..., 2] on the line from the target's mode [..., 2] (0) to the distractor's (1): [...].

    A network that averages its modes puts every trial at the swap probability; one that swaps puts trials at 0 and 1.
    """
    line = distractor - target
    return ((x - target) * line).sum(-1) / (line**2).sum(-1)
