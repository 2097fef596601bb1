"""Do responses have a second mode at the distractor, one mode, or an average of two (Fig 2)?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lapsus.circular import distance
from lapsus.mechanism.activity import require_trials

__all__ = ["ModeTest", "averaging", "two_modes", "unimodality"]


_GRID = 256


def _smooth(histogram: np.ndarray, bandwidth: ArrayLike) -> np.ndarray:
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
    to_cell = lambda a: np.floor((a + np.pi) / (2 * np.pi) * _GRID).astype(int) % _GRID
    histogram = np.bincount(to_cell(angles), minlength=_GRID).astype(float)
    critical = _critical_bandwidth(histogram)
    drawn = angles[rng.integers(len(angles), size=(repeats, len(angles)))] + critical * rng.standard_normal(
        (repeats, len(angles))
    )
    place = to_cell(drawn) + _GRID * np.arange(repeats)[:, None]
    counts = np.bincount(place.ravel(), minlength=repeats * _GRID).reshape(repeats, _GRID).astype(float)
    exceeds = _peaks(_smooth(counts, np.full(repeats, critical))).sum(-1) > 1
    return ModeTest(float(critical), float((1 + exceeds.sum()) / (1 + repeats)))


def two_modes(response: np.ndarray, target: float, distractor: float, *, within: float = np.pi / 8) -> bool:
    """Whether responses [trial] of one condition have a mode at the distractor beside one at the target.

    Silverman's test must reject a single mode at 5 %, and of the two highest modes (at half the bandwidth at which they
    merge) one must lie `within` some radians of the target (by default 22.5°) and the other of the distractor. A single
    mode, wherever it is and however wide, is not enough.
    """
    test = unimodality(response, repeats=100)
    if test.p >= 0.05:
        return False
    cell = np.floor((np.asarray(response, dtype=float) + np.pi) / (2 * np.pi) * _GRID).astype(int) % _GRID
    density = _smooth(np.bincount(cell, minlength=_GRID).astype(float), test.bandwidth / 2)
    peaks = np.flatnonzero(_peaks(density))
    highest = peaks[np.argsort(density[peaks])[-2:]]
    if len(highest) < 2:
        return False
    place = -np.pi + (highest + 0.5) * 2 * np.pi / _GRID
    at = [[distance(one, item) < within for item in (target, distractor)] for one in place]
    return bool((at[0][0] and at[1][1]) or (at[0][1] and at[1][0]))


def averaging(x: np.ndarray, target: np.ndarray, distractor: np.ndarray) -> np.ndarray:
    """Place of responses x [..., 2] on the line from the target's mode [..., 2] (0) to the distractor's (1): [...].

    A network that averages its modes puts every trial at the swap probability; one that swaps puts trials at 0 and 1.
    """
    line = distractor - target
    return ((x - target) * line).sum(-1) / (line**2).sum(-1)
