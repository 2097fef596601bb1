"""Bayesian causal inference in cue combination: where was the sound, given a flash and a sound that may belong
together?

Paper: appendix "Extension to cue combination tasks" (Wei and Körding 2011; Körding et al. 2007). With probability
p_common visual and auditory source are one (C = 1), else both are drawn from the prior on their own (C = 0); the cues
are the sources plus sensory noise. The response is one sample of the posterior p(z_a | s_v, s_a). (The paper's display
of the prior over C has its two cases exchanged; its text, and this module, say C = 1 with probability p_common.)
"""

import itertools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lapsus.checks import positive, within
from lapsus.diffusion import Mixture
from lapsus.errors import LapsusError
from lapsus.protocols import Conditions

# The discretised posterior reaches this many standard deviations of the prior to either side.
_REACH = 4.0


@dataclass(frozen=True)
class CausalInference:
    """The ideal observer; conditions have `s_v [C]` and `s_a [C]`, the two cues.

    sigma_v, sigma_a, sigma_p (visual noise, auditory noise, prior) are in degrees, as experiments report them; cues and
    responses are in units of `unit` degrees, the scale on which networks work. bins: responses are drawn from the
    posterior's mass in so many bins, uniformly within a bin, as in the paper; 0 draws them from the exact mixture.

    >>> lapsus.CausalInference(p_common=0.5).response_size
    1
    """

    sigma_v: float = 2.14
    sigma_a: float = 9.2
    sigma_p: float = 12.3
    p_common: float = 0.28
    unit: float = 12.3
    bins: int = 200
    response_size = 1

    def __post_init__(self) -> None:
        positive("behaviour", self, "sigma_v", "sigma_a", "sigma_p", "unit")
        if not 0 < self.p_common < 1:
            raise LapsusError(f"behaviour.p_common is a probability strictly between 0 and 1, not {self.p_common}.")
        within("behaviour", self, bins=(0, 10**6))

    def mixture(self, conditions: Conditions) -> Mixture:
        """p(z_a | s_v, s_a) in closed form: component 0 is a common cause, component 1 separate causes."""
        s_v, s_a = conditions["s_v"], conditions["s_a"]
        v, a, p = (s_v.new_tensor(sigma / self.unit) for sigma in (self.sigma_v, self.sigma_a, self.sigma_p))
        weights, means, scales = posterior(s_v, s_a, v, a, p, s_v.new_tensor(self.p_common))
        return Mixture(weights, means[..., None], scales)

    def discretised(self, conditions: Conditions) -> tuple[Tensor, Tensor]:
        """The paper's posterior: edges [bins + 1] over ±4 sigma_p and the mass of each bin [C, bins], rows summing to
        1."""
        if not self.bins:
            raise LapsusError("behaviour.bins = 0 asks for the exact posterior; the discretised one needs bins.")
        reach = _REACH * self.sigma_p / self.unit
        edges = torch.linspace(-reach, reach, self.bins + 1, dtype=conditions["s_v"].dtype)
        mass = torch.diff(self.cdf(edges.expand(len(conditions["s_v"]), -1), conditions), dim=1).clamp(min=0)
        return edges, mass / mass.sum(1, keepdim=True)

    def sample(self, conditions: Conditions, trials: int, generator: torch.Generator) -> Tensor:
        """Responses x_T [1, C, K]: samples of the posterior."""
        if not self.bins:
            return self.mixture(conditions).sample(trials, generator)
        edges, mass = self.discretised(conditions)
        chosen = torch.multinomial(mass, trials, replacement=True, generator=generator)
        within = torch.rand(chosen.shape, generator=generator, dtype=edges.dtype)
        return (edges[chosen] + within * (edges[1] - edges[0]))[None]

    def density(self, x: Tensor, conditions: Conditions) -> Tensor:
        """Posterior density of responses x [C, K]: [C, K]."""
        return torch.exp(self.mixture(conditions).log_density(x[None]))

    def cdf(self, x: Tensor, conditions: Conditions) -> Tensor:
        """Posterior probability of a source left of x [C, K]: [C, K]."""
        target = self.mixture(conditions)
        z = (x[:, None] - target.means) / target.scales[..., None]  # [C, M, K]
        return (target.weights[..., None] * torch.special.ndtr(z)).sum(1)

    def optimal(self, conditions: Conditions) -> Tensor:
        """The posterior mean, which has the least squared error: [C, 1]."""
        target = self.mixture(conditions)
        return (target.weights[..., None] * target.means).sum(1)

    def measures(self, conditions: Conditions, x_T: Tensor) -> dict:
        """What `lapsus evaluate` prints, pooled over conditions.

        ks: largest deviation from uniformity of the posterior's CDF at each response, 0 if every response distribution
        is right; mean_error: r.m.s. distance of the mean response from the posterior mean; spread: r.m.s. deviation
        from the posterior mean, in its standard deviations (1 is right); common: how often a common cause is inferred,
        by likelihood; common_curve: the same for five ranges of the cues' disparity.
        """
        x, target = x_T[0], self.mixture(conditions)
        rank = self.cdf(x, conditions).flatten().double().sort().values
        steps = torch.arange(len(rank) + 1, dtype=rank.dtype) / len(rank)
        mean = self.optimal(conditions)
        variance = (target.weights * (target.scales**2 + target.means[..., 0] ** 2)).sum(1, keepdim=True) - mean**2
        common = target.responsibilities(x_T)[0].mean(1)
        disparity = (conditions["s_v"] - conditions["s_a"]).abs()
        curve = []
        edges = torch.linspace(0, float(disparity.max()) + 1e-6, 6)
        for low, high in itertools.pairwise(edges):
            here = (disparity >= low) & (disparity < high)
            if bool(here.any()):
                curve.append(
                    {
                        "disparity": float(disparity[here].mean()),
                        "common": float(common[here].mean()),
                        "target": float(target.weights[here, 0].mean()),
                    }
                )
        return {
            "ks": float(torch.maximum(steps[1:] - rank, rank - steps[:-1]).max()),
            "mean_error": math.sqrt(float((x.mean(1, keepdim=True) - mean).square().mean())),
            "spread": math.sqrt(float(((x - mean).square() / variance).mean())),
            "common": float(common.mean()),
            "common_curve": curve,
        }


def posterior(
    s_v: Tensor, s_a: Tensor, sigma_v: Tensor, sigma_a: Tensor, sigma_p: Tensor, p_common: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, means and standard deviations [C, 2] of p(z_a | s_v, s_a), common cause first; differentiable in all."""
    v, a, p = sigma_v**2, sigma_a**2, sigma_p**2
    # Evidence for each structure: the cues are jointly Gaussian, correlated through a shared source or not.
    determinant = v * a + p * (v + a)
    log_common = -0.5 * (
        (s_v**2 * (a + p) - 2 * p * s_v * s_a + s_a**2 * (v + p)) / determinant + torch.log(determinant)
    )
    log_separate = -0.5 * (s_v**2 / (v + p) + s_a**2 / (a + p) + torch.log((v + p) * (a + p)))
    odds = torch.stack([torch.log(p_common) + log_common, torch.log1p(-p_common) + log_separate], -1)
    variances = torch.stack([1 / (1 / v + 1 / a + 1 / p), 1 / (1 / a + 1 / p)])
    means = torch.stack([variances[0] * (s_v / v + s_a / a), variances[1] * s_a / a], -1)
    return torch.softmax(odds, -1), means, torch.sqrt(variances).expand(*s_a.shape, 2)
