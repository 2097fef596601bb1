"""The Bayesian non-parametric model of swap errors (BNS) as a generative model of responses.

Paper: appendix "Bayesian Non-parametric model of Swap errors"; Radmard et al. 2025. One item is drawn from
softmax(logits), the cued item with logit pi_correct and each distractor with logit f(distance to the cued item); the
response is that item's report feature, embedded in the plane at radius A with isotropic noise sigma_x.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from lapsus import circular
from lapsus.behaviour.measures import swap_measures
from lapsus.behaviour.swap import ConstantSwap, NoSwap, SmoothSwap
from lapsus.checks import positive, within
from lapsus.diffusion import Mixture
from lapsus.errors import LapsusError
from lapsus.protocols import Conditions

# Gaussians that stand for the uniform component: at radius 2.5 and sigma_x 0.2 the ripple of their sum is below 1e-5.
_RING = 64


@dataclass(frozen=True)
class BNS:
    """BNS for any number of items; conditions have `report [C, N]`, `probe [C, N]` and `cued [C]`.

    swap: f, a callable of signed distance; feature: the distance it takes ("probe", "report" or "both"); uniform: the
    probability of a response anywhere on the circle; radius and spread: A and sigma_x of the paper. scale_mixture:
    pairs (share, spread) in place of one spread, for scatter with heavy tails or precision that varies between trials.
    Items that are not there (NaN) are never reported.

    >>> behaviour = lapsus.BNS(swap=lapsus.ConstantSwap(p=0.1))
    >>> conditions = lapsus.IndexCued().sample(4, torch.Generator().manual_seed(0))
    >>> behaviour.sample(conditions, 8, torch.Generator().manual_seed(1)).shape
    torch.Size([2, 4, 8])
    """

    swap: Callable[..., Tensor] = field(default_factory=NoSwap)
    pi_correct: float = 0.0
    feature: Literal["probe", "report", "both"] = "probe"
    uniform: float = 0.0
    radius: float = 2.5
    spread: float = 0.2
    scale_mixture: tuple[tuple[float, float], ...] = ()
    response_size = 2

    def __post_init__(self) -> None:
        if not 0 <= self.uniform < 1:
            raise LapsusError(f"behaviour.uniform is a probability below 1, not {self.uniform}.")
        positive("behaviour", self, "radius", "spread")
        within("behaviour", self, pi_correct=(-1e6, 1e6))
        shares = [share for share, _ in self.scale_mixture]
        if shares and not (
            abs(sum(shares) - 1) < 1e-6 and min(shares) >= 0 and all(spread > 0 for _, spread in self.scale_mixture)
        ):
            raise LapsusError(
                "behaviour.scale_mixture is a list of pairs [share, spread]: shares that sum to 1, positive spreads."
            )
        if self.pi_correct and isinstance(self.swap, (NoSwap, ConstantSwap)):
            raise LapsusError(
                f"behaviour.pi_correct = {self.pi_correct} means nothing with this swap function: leave it out, and say"
                " with swap.p how often there are swaps."
            )
        if self.pi_correct < 0 and isinstance(self.swap, SmoothSwap):
            raise LapsusError(
                f"behaviour.pi_correct = {self.pi_correct} would make the cued item less likely than another at its own"
                " place; it cannot be negative."
            )

    def weights(self, conditions: Conditions) -> Tensor:
        """Probability that each item is the one reported: [C, N]; rows sum to 1 - uniform."""
        cued = conditions["cued"].long()[:, None]
        gaps = {}
        for name in ("probe", "report"):
            if self.feature in (name, "both"):
                values = conditions[name]
                gaps[name] = circular.difference(values, values.gather(1, cued))
        logits = self.swap(*gaps.values())
        logits = logits.scatter(1, cued, torch.full_like(logits[:, :1], self.pi_correct))
        logits = logits.masked_fill(torch.isnan(conditions["report"]), -math.inf)
        return (1 - self.uniform) * torch.softmax(logits, 1)

    def mixture(self, conditions: Conditions) -> Mixture:
        """The target density in the plane, exact: one Gaussian an item (and a ring of them for the uniform
        component)."""
        return self._mixture(conditions, self.weights(conditions))

    def tempered(self, conditions: Conditions, power: float) -> Mixture:
        """The same with the items' probabilities raised to a power and scaled to their sum: below 1, rare swaps are
        less rare, and what never happens still does not."""
        weights = self.weights(conditions) ** power
        return self._mixture(conditions, (1 - self.uniform) * weights / weights.sum(1, keepdim=True))

    def _mixture(self, conditions: Conditions, weights: Tensor) -> Mixture:
        means = circular.embed(conditions["report"], self.radius).nan_to_num(0.0)
        scales = torch.full_like(weights, self.spread)
        if self.scale_mixture:
            shares, spreads = weights.new_tensor(self.scale_mixture).T
            scales = spreads.repeat(weights.shape).reshape(len(weights), -1)
            weights = (weights[:, :, None] * shares).flatten(1)
            means = means.repeat_interleave(len(shares), 1)
        modes = weights.shape[1]
        if self.uniform:
            ring = circular.embed(torch.arange(_RING, dtype=means.dtype) * (2 * math.pi / _RING), self.radius)
            weights = torch.cat([weights, weights.new_full((len(weights), _RING), self.uniform / _RING)], 1)
            scales = torch.cat([scales, scales.new_full((len(scales), _RING), self.spread)], 1)
            means = torch.cat([means, ring.expand(len(means), -1, -1)], 1)
        return Mixture(weights, means, scales, modes)

    def sample(self, conditions: Conditions, trials: int, generator: torch.Generator) -> Tensor:
        """Responses x_T [2, C, K] in the plane."""
        return self.mixture(conditions).sample(trials, generator)

    def optimal(self, conditions: Conditions) -> Tensor:
        """What a perfect subject would answer: A [cos, sin] of the cued item's report feature, [C, 2]."""
        cued = conditions["cued"].long()[:, None]
        return circular.embed(conditions["report"].gather(1, cued)[:, 0], self.radius)

    def density(self, angle: Tensor, conditions: Conditions) -> Tensor:
        """Density on the circle of the response angle [..., C, K], exact for the planar target: the projected
        normal."""
        mixture = self.mixture(conditions)
        total = torch.zeros_like(angle)
        for m in range(mixture.weights.shape[1]):
            mean = circular.angle(mixture.means[:, m])[:, None]
            distance = self.radius / mixture.scales[:, m, None]
            total = total + mixture.weights[:, m, None] * _projected_normal(angle - mean, distance)
        return total

    def measures(self, conditions: Conditions, x_T: Tensor) -> dict:
        """What `lapsus evaluate` prints: swap curve, errors, stray responses, radius (behaviour/measures.py)."""
        return swap_measures(self, conditions, x_T)


def _projected_normal(angle: Tensor, distance: Tensor) -> Tensor:
    """Density of the angle of N([distance, 0], I) in the plane."""
    c = distance * torch.cos(angle)
    # exp(-distance²/2)/2pi · (1 + c Phi(c)/phi(c)), phi the normal density, arranged so that nothing overflows for
    # large distances.
    return torch.exp(-(distance**2) / 2) / (2 * math.pi) + c * torch.special.ndtr(c) * torch.exp(
        (c**2 - distance**2) / 2
    ) / math.sqrt(2 * math.pi)
