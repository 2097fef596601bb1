"""How far sampled responses are from their target distribution: Kolmogorov and Smirnov's distance, and whether modes
are there.

Paper: appendix "Extension to cue combination tasks". Arrays in; samples are always on the last axis.
"""

from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy import stats

from lapsus.errors import LapsusError


def ks_distance(rank: np.ndarray) -> np.ndarray:
    """Largest vertical distance between the empirical and the target CDF, [...], from the target's CDF at each sample
    [..., K]."""
    rank = np.sort(np.asarray(rank, float), axis=-1)
    count = rank.shape[-1]
    if count < 1:
        raise LapsusError("The KS distance needs at least one sample.")
    steps = np.arange(count + 1) / count
    return np.maximum(steps[1:] - rank, rank - steps[:-1]).max(-1)


def ks_noise(samples: int, quantile: float = 0.5) -> float:
    """Quantile of the KS distance that samples of the target itself have: what sampling noise alone gives."""
    return float(stats.kstwo.ppf(quantile, samples))


def ks_over_cues(
    responses: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray], s_v: np.ndarray, s_a: np.ndarray
) -> xr.Dataset:
    """KS distance on a grid of cues: responses [s_v, s_a, sample], cdf of the target at such an array.

    Returns ks[s_v, s_a] with attributes ks_median, ks_p95, the number of samples, and noise_median and noise_p95, the
    same quantiles for samples of the target itself.
    """
    distance = ks_distance(cdf(responses))
    count = responses.shape[-1]
    return xr.Dataset(
        {"ks": (("s_v", "s_a"), distance)},
        coords={"s_v": np.asarray(s_v), "s_a": np.asarray(s_a)},
        attrs={
            "samples": count,
            "ks_median": float(np.median(distance)),
            "ks_p95": float(np.quantile(distance, 0.95)),
            "noise_median": ks_noise(count),
            "noise_p95": ks_noise(count, 0.95),
        },
    )


def bimodal(x: np.ndarray, density: np.ndarray) -> np.ndarray:
    """Lower mode, valley and upper mode [..., 3] of densities [..., X] at even points x [X]; NaN where there is one
    mode.

    Two modes count if the density between them falls below 0.7 times the lower of them, and if at least 5 % of all
    responses lie on either side of that valley: less would not be seen in two thousand samples.
    """
    density = np.asarray(density, float)
    flat = density.reshape(-1, len(x))
    places = np.full((len(flat), 3), np.nan)
    for row, p in enumerate(flat):
        peaks = np.flatnonzero((p[1:-1] > p[:-2]) & (p[1:-1] >= p[2:])) + 1
        if len(peaks) < 2:
            continue
        first, second = np.sort(peaks[np.argsort(p[peaks])[-2:]])
        valley = first + int(np.argmin(p[first : second + 1]))
        left = p[:valley].sum() / p.sum()
        if p[valley] < 0.7 * min(p[first], p[second]) and 0.05 <= left <= 0.95:
            places[row] = x[[first, valley, second]]
    return places.reshape(*density.shape[:-1], 3)


def both_modes(responses: np.ndarray, places: np.ndarray, width: float) -> np.ndarray:
    """Whether samples [..., K] crowd at both modes of `places` [..., 3] more than in the valley: [...], within ±width /
    2 of each.

    False where `places` has no second mode: ask only where it is finite.
    """
    share = _near(responses, places, width)
    return (share[..., 0] > share[..., 1]) & (share[..., 2] > share[..., 1])


def mode_mass(
    responses: np.ndarray, places: np.ndarray, width: float, cdf: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Share of samples [..., K] within ±width / 2 of a mode over the target's mass there, the smaller of the two modes:
    [...].

    1 where each mode is as frequent as it should be, 0 where one is missing; cdf of the target at an array [..., X].
    """
    modes = np.asarray(places)[..., [0, 2]]
    mass = cdf(modes + width / 2) - cdf(modes - width / 2)
    return (_near(responses, modes, width) / mass).min(-1)


def _near(responses: np.ndarray, places: np.ndarray, width: float) -> np.ndarray:
    """Share of samples [..., K] within ±width / 2 of each place [..., P]: [..., P]."""
    return (np.abs(np.asarray(responses)[..., None, :] - np.asarray(places)[..., :, None]) < width / 2).mean(-1)
