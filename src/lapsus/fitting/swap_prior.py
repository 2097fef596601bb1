"""The prior of the swap function f: a Gaussian process on the circle (or the torus), in its Fourier basis.

A stationary kernel on the circle is diagonal in sines and cosines, so

    f(d) = mean + scale · sum_k sqrt(lambda_k(tau)) a_k phi_k(d),   a_k ~ N(0, 1),

is the process itself, cut off at K harmonics: the inducing variables are Fourier coefficients instead of values at
points, and need no matrix inversion. An even f keeps the cosines only, which is the process mirrored at 0. The constant
is the mean's, so the process has no zeroth harmonic; lambda sums to 1, so scale is f's s.d. over distances.
"""

import math

import numpy as np
import torch

__all__ = ["TAU_MIN", "SwapPrior", "wendland"]

TAU_MIN = 4.0  # the smallest exponent for which the C2-Wendland function is positive definite on the circle
HARMONICS = {1: 12, 2: 6}  # by number of features


def wendland(delta: torch.Tensor, tau: torch.Tensor) -> torch.Tensor:
    """C2-Wendland correlation (1 + tau δ/π)(1 − δ/π)^tau at circular distance δ in [0, π]."""
    x = delta / math.pi
    return (1 + tau * x) * (1 - x) ** tau


class SwapPrior:
    """f over one or two circular distances. `features` is ("probe",), ("report",) or both."""

    def __init__(self, features: tuple[str, ...], even: bool = True, harmonics: int | None = None):
        self.features, self.even = tuple(features), even
        self.harmonics = harmonics or HARMONICS[len(self.features)]
        nodes = np.linspace(0, math.pi, 129)  # the trapezoid rule is then right to 1e-6 of the largest coefficient
        weights = np.full(129, nodes[1])
        weights[[0, -1]] /= 2
        k = np.arange(self.harmonics + 1)
        self._nodes = torch.tensor(nodes)[:, None]
        self._transform = torch.tensor(np.cos(k[:, None] * nodes) * weights * np.where(k[:, None] > 0, 2, 1) / math.pi)
        one = k if even else np.concatenate([k, k[1:]])
        orders = np.stack(np.meshgrid(*[one] * len(self.features), indexing="ij"), -1).reshape(-1, len(self.features))
        self._orders = torch.tensor(orders[1:])  # row 0 is the constant
        self.size = len(orders) - 1

    def basis(self, distances: np.ndarray) -> torch.Tensor:
        """phi_k at distances [G] (or [G, 2] on the torus) → [G, size]."""
        distances = np.asarray(distances, float).reshape(len(distances), -1)
        k = np.arange(self.harmonics + 1)
        values = np.ones((len(distances), 1))
        for column in distances.T:
            one = np.cos(k * column[:, None]) * np.where(k > 0, np.sqrt(2), 1.0)
            if not self.even:
                one = np.concatenate([one, np.sqrt(2) * np.sin(k[1:] * column[:, None])], 1)
            values = (values[:, :, None] * one[:, None, :]).reshape(len(distances), -1)
        return torch.tensor(values[:, 1:])

    def spectrum(self, tau: torch.Tensor) -> torch.Tensor:
        """lambda_k for exponents tau [features, S] → [size, S], of sum 1."""
        values = torch.ones_like(tau[:1])
        for i in range(len(self.features)):
            coefficients = self._transform @ wendland(self._nodes, tau[i : i + 1])
            values = values * coefficients.clamp_min(1e-12)[self._orders[:, i]]
        return values / values.sum(0)
