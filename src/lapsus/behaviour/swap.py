"""Swap functions f: the logit with which a distractor at some distance competes with the cued item.

With one distractor, p(swap | distance) = sigmoid(f(distance) - pi_correct). A swap function is any callable of the
signed circular distance (radians; of two distances when it depends on both features), so a plain function will do;
these four can also be named in an experiment file.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lapsus.checks import positive
from lapsus.errors import LapsusError


@dataclass(frozen=True)
class NoSwap:
    """A distractor is never reported.

    >>> float(torch.sigmoid(lapsus.NoSwap()(torch.zeros(1))))
    0.0
    """

    def __call__(self, distance: Tensor) -> Tensor:
        return torch.full_like(distance, -math.inf)


@dataclass(frozen=True)
class ConstantSwap:
    """The same logit at every distance; p is the swap probability with one distractor and pi_correct 0.

    >>> f = lapsus.ConstantSwap(p=0.1)
    >>> round(float(torch.sigmoid(f(torch.zeros(1)))), 3)
    0.1
    """

    p: float

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise LapsusError(
                f'swap.p must lie strictly between 0 and 1 (it is {self.p}); for no swaps use kind = "none".'
            )

    def __call__(self, distance: Tensor) -> Tensor:
        return torch.full_like(distance, math.log(self.p) - math.log1p(-self.p))


@dataclass(frozen=True)
class SmoothSwap:
    """f(d) = -d²/width: closer distractors are reported more often (the paper's networks: width 3).

    >>> f = lapsus.SmoothSwap()
    >>> bool(f(torch.tensor(0.8)) > f(torch.tensor(3.0)))
    True
    """

    width: float = 3.0

    def __post_init__(self) -> None:
        positive("swap", self, "width")

    def __call__(self, distance: Tensor) -> Tensor:
        return -(distance**2) / self.width


@dataclass(frozen=True)
class TabulatedSwap:
    """f by periodic linear interpolation of logits at increasing signed distances in [-pi, pi).

    For a function of both features, `logits` is a table [probe distance][report distance] on the same distances.

    >>> f = lapsus.TabulatedSwap(distances=(-2.0, 0.0, 2.0), logits=(-3.0, -1.0, -3.0))
    >>> round(float(f(torch.tensor(1.0))), 3)
    -2.0
    """

    distances: tuple[float, ...]
    logits: tuple

    def __post_init__(self) -> None:
        distances, logits = torch.tensor(self.distances, dtype=torch.float64), self._logits
        if len(distances) < 2 or logits.shape not in ((len(distances),), (len(distances),) * 2):
            raise LapsusError(
                "swap.logits must have one value for each of at least two swap.distances (or a square table of them)."
            )
        if bool((distances[1:] <= distances[:-1]).any()) or distances[0] < -math.pi or distances[-1] >= math.pi:
            raise LapsusError("swap.distances must increase within [-pi, pi).")
        if not bool(torch.isfinite(logits).all()):
            raise LapsusError("swap.logits must be finite numbers.")

    @cached_property
    def _knots(self) -> Tensor:
        """The distances, and the first of them once round the circle."""
        return torch.tensor([*self.distances, self.distances[0] + 2 * math.pi], dtype=torch.float64)

    @cached_property
    def _logits(self) -> Tensor:
        return torch.tensor(self.logits, dtype=torch.float64)

    def _place(self, distance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Left knot, right knot and how far in between."""
        knots = self._knots.to(distance.dtype)
        distance = torch.where(distance < knots[0], distance + 2 * math.pi, distance)
        left = (torch.searchsorted(knots, distance.contiguous(), right=True) - 1).clamp(0, len(knots) - 2)
        share = (distance - knots[left]) / (knots[left + 1] - knots[left])
        return left, (left + 1) % (len(knots) - 1), share

    def __call__(self, distance: Tensor, other: Tensor | None = None) -> Tensor:
        logits = self._logits.to(distance.dtype)
        left, right, share = self._place(distance)
        if logits.ndim == 1:
            return (1 - share) * logits[left] + share * logits[right]
        if other is None:
            raise LapsusError('A swap function of both features needs feature = "both".')
        low, high, part = self._place(other)
        near = (1 - part) * logits[left, low] + part * logits[left, high]
        far = (1 - part) * logits[right, low] + part * logits[right, high]
        return (1 - share) * near + share * far
