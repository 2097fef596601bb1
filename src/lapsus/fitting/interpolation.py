"""Functions known at a few points: the swap function's shape between distances, a density between angles.

Both are rows of a sparse matrix: values at the data are the matrix times values at the points, gradients at the points
its transpose times gradients at the data.
"""

import math
import warnings

import numpy as np
import torch
from torch import Tensor

from lapsus.statistics.swaps import distinct
from lapsus.trials import Trials

__all__ = ["Sites", "cubic_rows", "sparse_pair"]

GRID = {(1, True): 121, (1, False): 240, (2, True): 49, (2, False): 72}  # sites a dimension, by (features, even)
FEW = 48  # distinct distances that are sites themselves


def sparse_pair(
    index: np.ndarray, weight: np.ndarray, columns: int, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    """Sparse matrix with `weight` [R, c] at columns `index` [R, c], and its transpose."""
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(len(index)), index.shape[1])
    matrix = csr_array((weight.reshape(-1), (rows, index.reshape(-1))), shape=(len(index), columns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch announces that its sparse layout is young
        first, second = (
            torch.sparse_csr_tensor(
                torch.tensor(m.indptr), torch.tensor(m.indices), torch.tensor(m.data, dtype=dtype), m.shape
            )
            for m in (matrix, matrix.T.tocsr())
        )
    return first, second


class Sites:
    """The distances at which the shape is needed. points [sites] or [sites, 2], radians."""

    def __init__(self, trials: Trials, features: tuple[str, ...], even: bool):
        self.features, self.even = features, even
        self.axes, self.exact = [], []
        for feature in features:
            values = trials.distance(feature)[:, 1:]
            unique = distinct(_fold(values[np.isfinite(values)], even))
            self.exact.append(len(unique) <= FEW)
            if self.exact[-1]:
                self.axes.append(unique)
            elif even:
                self.axes.append(np.linspace(0, math.pi, GRID[len(features), True]))
            else:
                count = GRID[len(features), False]
                self.axes.append(np.arange(count) * 2 * math.pi / count - math.pi)
        grid = np.meshgrid(*self.axes, indexing="ij")
        self.points = np.stack([g.reshape(-1) for g in grid], -1)

    def locate(self, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        """index, weight [(N−1)·T, c], item by item: exp(shape) of a distractor is Σ weight · exp(shape(points))."""
        index, weight = np.zeros((1, 1), int), np.ones((1, 1))
        for feature, axis, exact in zip(self.features, self.axes, self.exact):
            values = _fold(trials.distance(feature)[:, 1:], self.even).T.reshape(-1)
            if exact:
                right = np.clip(np.searchsorted(axis, values), 0, len(axis) - 1)
                left = np.maximum(right - 1, 0)
                i = np.where(np.abs(values - axis[left]) < np.abs(values - axis[right]), left, right)[:, None]
                w = np.ones_like(i, float)
            else:
                position = (values - axis[0]) / (axis[1] - axis[0])
                left = np.floor(position).astype(int)
                left = np.minimum(left, len(axis) - 2) if self.even else left % len(axis)
                right = left + 1 if self.even else (left + 1) % len(axis)
                share = position - left if self.even else position - np.floor(position)
                i, w = np.stack([left, right], 1), np.stack([1 - share, share], 1)
            index = (index[:, :, None] * len(axis) + i[:, None, :]).reshape(len(i), -1)
            weight = (weight[:, :, None] * w[:, None, :]).reshape(len(w), -1)
        return index, weight


def _fold(values: np.ndarray, even: bool) -> np.ndarray:
    return np.abs(values) if even else values


def cubic_rows(
    position: np.ndarray, offset: np.ndarray, size: int, count: int, dtype: torch.dtype, half: bool = False
) -> tuple[Tensor, Tensor]:
    """Sparse matrix [positions, count] that interpolates tables by cubics (Lagrange), and its transpose.

    Tables of `size` values around the circle lie one below the other; `offset` says where that of each position (in
    steps between values) begins. half: the values are those of one half of the circle, of which the other is the mirror
    image.
    """
    position = position.reshape(-1)
    left = np.floor(position).astype(int)
    t = position - left
    index = np.stack([left - 1, left, left + 1, left + 2], 1)
    index = (size - 1) - np.abs((size - 1) - np.abs(index)) if half else index % size
    weight = np.stack(
        [
            -t * (t - 1) * (t - 2) / 6,
            (t + 1) * (t - 1) * (t - 2) / 2,
            -(t + 1) * t * (t - 2) / 2,
            (t + 1) * t * (t - 1) / 6,
        ],
        1,
    )
    return sparse_pair(index + offset.reshape(-1, 1), weight, count, dtype)
