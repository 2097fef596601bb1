"""How responses scatter around the reported item: von Mises, wrapped stable, or a Gaussian in the plane.

An emission prepares what it needs of a block of trials once (`statistics`), then gives the density of the response
under every item for S parameter vectors at a time (columns), and turns responsibilities (the gradient in the log
densities) into the gradient in its parameters. Items are the first axis. Parameters are unconstrained, with a normal
prior each (`names`, `means`, `scales`); `natural` says what they mean.
"""

import math

import numpy as np
import torch

from lapsus.errors import LapsusError

__all__ = ["EMISSIONS", "Plane", "VonMises", "WrappedStable"]


class VonMises:
    """Density exp(kappa cos δ) / (2π I0(kappa)) of the circular error δ; kappa = exp(parameter 0)."""

    name, names, means, scales = "von_mises", ("kappa",), (2.5,), (1.5,)

    def statistics(self, trials, rows):
        return torch.tensor((np.cos(trials.deviation[rows]) - 1).T.copy())  # [N, T]

    def initial(self, trials):
        return [math.log(_rough_kappa(trials))]

    def densities(self, statistics, parameters):
        """Densities [N, T, S], that of a uniform guess [T, S] or a number, and what pull_back needs."""
        kappa = parameters[0].exp()
        norm = 1 / (2 * math.pi * torch.special.i0e(kappa))
        return torch.mul(statistics[:, :, None], kappa).exp_().mul_(norm), 1 / (2 * math.pi), kappa

    def pull_back(self, statistics, responsibility, guess_responsibility, kappa):
        """Gradient in the parameters [1, S], summed over trials; responsibilities of items [N, T, S], of a guess [T,
        S]."""
        ratio = torch.special.i1e(kappa) / torch.special.i0e(kappa)
        flat = responsibility.reshape(-1, responsibility.shape[-1])
        slope = statistics.reshape(-1) @ flat + flat.sum(0) * (1 - ratio)
        return (kappa * slope)[None]

    def natural(self, parameters):
        """Named quantities for people, from parameters [1, …]."""
        kappa = np.exp(parameters[0])
        return {"kappa": kappa, "circular_sd": np.sqrt(-2 * np.log(_resultant(kappa)))}

    def sample(self, parameters, angles, rng):
        """Responses around angles [T] with parameters [1, T]."""
        return angles + rng.vonmises(0.0, np.exp(parameters[0]))


class WrappedStable:
    """Symmetric alpha-stable noise wrapped on the circle: (1 + 2 Σ_k exp(−(γk)^α) cos kδ) / 2π.

    alpha in (0.5, 2) falls below 2 as tails grow heavy; gamma is the scale. The series is summed on a table of 721
    angles for every parameter vector, between which the density is interpolated by cubics.
    """

    name, names, means, scales = "wrapped_stable", ("alpha", "gamma"), (1.0, -1.0), (1.0, 1.0)
    terms, table = 160, 721

    def __init__(self):
        angles = np.linspace(0, math.pi, self.table)
        k = np.arange(1, self.terms + 1)
        self._k = torch.tensor(k, dtype=torch.float64)[:, None]
        self._cosines = torch.tensor(np.cos(angles[:, None] * k))

    def statistics(self, trials, rows):
        deviation = np.abs(trials.deviation[rows]).T
        return _cubic_rows(deviation / math.pi * (self.table - 1), self.table), deviation.shape

    def initial(self, trials):
        return [1.5, math.log(min(1 / math.sqrt(_rough_kappa(trials)), 1.0)) - 0.35]

    def _alpha(self, parameter):
        return 0.5 + 1.5 * torch.sigmoid(parameter)

    def densities(self, statistics, parameters):
        (rows, _), shape = statistics
        alpha, gamma = self._alpha(parameters[0]), parameters[1].exp()
        power = (gamma * self._k) ** alpha
        damping = torch.exp(-power)
        raw = (1 + 2 * self._cosines @ damping) / (2 * math.pi)
        table = raw.clamp_min(1e-12)
        values = (rows @ table).reshape(*shape, -1).clamp_min_(1e-12)
        return values, 1 / (2 * math.pi), (alpha, gamma, power, damping, raw > 1e-12, values.reciprocal())

    def pull_back(self, statistics, responsibility, guess_responsibility, saved):
        (_, columns), shape = statistics
        alpha, gamma, power, damping, positive, inverse = saved
        on_table = columns @ (responsibility * inverse).reshape(-1, responsibility.shape[-1]) * positive
        on_damping = 2 * self._cosines.T @ on_table / (2 * math.pi)
        slope = -on_damping * damping * power  # d/d log(power)
        sigmoid = (alpha - 0.5) / 1.5
        on_alpha = (slope * torch.log(gamma * self._k)).sum(0) * 1.5 * sigmoid * (1 - sigmoid)
        return torch.stack([on_alpha, (slope * alpha).sum(0)])

    def natural(self, parameters):
        alpha, gamma = 0.5 + 1.5 / (1 + np.exp(-parameters[0])), np.exp(parameters[1])
        return {"alpha": alpha, "gamma": gamma, "circular_sd": np.sqrt(2 * gamma**alpha)}

    def sample(self, parameters, angles, rng):
        alpha, gamma = 0.5 + 1.5 / (1 + np.exp(-parameters[0])), np.exp(parameters[1])
        # Chambers, Mallows and Stuck (1976), symmetric case.
        v, w = rng.uniform(-math.pi / 2, math.pi / 2, len(angles)), rng.exponential(1.0, len(angles))
        noise = np.sin(alpha * v) / np.cos(v) ** (1 / alpha) * (np.cos((1 - alpha) * v) / w) ** ((1 - alpha) / alpha)
        return angles + gamma * noise


class Plane:
    """Gaussian in the plane of s.d. spread around radius · [cos, sin] of the item: network outputs.

    A uniform guess is a point at a uniform angle on the same ring, with the same noise.
    """

    name, names, means, scales = "plane", ("radius", "spread"), (0.5, -1.5), (1.0, 1.0)

    def statistics(self, trials, rows):
        if trials.point is None:
            raise LapsusError(
                f"{trials.source}: emission 'plane' needs the responses as points; add columns response_x and"
                " response_y."
            )
        length = np.hypot(*trials.point[rows].T)
        return torch.tensor(length), torch.tensor(np.cos(trials.deviation[rows]).T.copy())

    def initial(self, trials):
        if trials.point is None:
            self.statistics(trials, slice(0, 0))
        radius = np.median(np.hypot(*trials.point.T))
        return [math.log(radius), math.log(radius / math.sqrt(_rough_kappa(trials)))]

    def densities(self, statistics, parameters):
        length, cosine = statistics
        radius, spread = parameters[0].exp(), parameters[1].exp()
        ring = -0.5 * ((length[:, None] - radius) / spread) ** 2 - torch.log(2 * math.pi * spread**2)
        pull = radius * length[:, None] / spread**2
        values = torch.exp(ring + pull * (cosine[:, :, None] - 1))
        return values, torch.exp(ring) * torch.special.i0e(pull), (radius, spread, pull)

    def pull_back(self, statistics, responsibility, guess_responsibility, saved):
        length, cosine = statistics
        radius, spread, pull = saved
        total, over_trial = responsibility.sum(0), ((cosine[:, :, None] - 1) * responsibility).sum(0)
        if guess_responsibility is not None:
            total = total + guess_responsibility
            over_trial = over_trial + guess_responsibility * (torch.special.i1e(pull) / torch.special.i0e(pull) - 1)
        z = (length[:, None] - radius) / spread
        on_radius = (total * z * radius / spread + over_trial * pull).sum(0)
        on_spread = (total * (z**2 - 2) - 2 * over_trial * pull).sum(0)
        return torch.stack([on_radius, on_spread])

    def natural(self, parameters):
        radius, spread = np.exp(parameters[0]), np.exp(parameters[1])
        return {"radius": radius, "spread": spread, "circular_sd": spread / radius}

    def sample(self, parameters, angles, rng):
        radius, spread = np.exp(parameters[0]), np.exp(parameters[1])
        ring = radius * np.stack([np.cos(angles), np.sin(angles)])
        return (ring + spread * rng.standard_normal(ring.shape)).T


EMISSIONS = {kind.name: kind for kind in (VonMises, WrappedStable, Plane)}


def _resultant(kappa):
    from scipy.special import i0e, i1e

    return i1e(kappa) / i0e(kappa)


def _rough_kappa(trials):
    """Concentration of the responses that are near their target; a starting point only."""
    error = np.abs(trials.error)
    spread = np.median(error[error < 1.0]) / 0.6745 if (error < 1.0).any() else 1.0
    return 1 / max(spread, 0.02) ** 2


def _cubic_rows(position, size):
    """Sparse matrix [points, size] that interpolates a table, even at both ends, by cubics (Lagrange), and its
    transpose."""
    from lapsus.inference.likelihood import sparse_pair

    # Padding columns (beyond a trial's items) never occur inside a block.
    position = position.reshape(-1)
    left = np.clip(np.floor(position).astype(int), 0, size - 2)
    t = position - left
    index = np.stack([left - 1, left, left + 1, left + 2], 1)
    index = np.abs(index)
    index = np.where(index > size - 1, 2 * (size - 1) - index, index)
    weight = np.stack(
        [
            -t * (t - 1) * (t - 2) / 6,
            (t + 1) * (t - 1) * (t - 2) / 2,
            -(t + 1) * t * (t - 2) / 2,
            (t + 1) * t * (t - 1) / 6,
        ],
        1,
    )
    return sparse_pair(index, weight, size)
