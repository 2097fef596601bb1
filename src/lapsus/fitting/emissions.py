"""How responses scatter around the reported item.

    von_mises            one concentration
    variable_precision   a concentration that varies from trial to trial (gamma; van den Berg et al. 2012)
    wrapped_stable       symmetric alpha-stable noise: tails grow heavy as alpha falls below 2
    plane                a Gaussian in the plane: network outputs

Parameters are unconstrained, with a normal prior each (`names`, `means`, `scales`), and belong to groups of trials;
`natural` says what they mean, and `tails` names the one that says how heavy the tails are. For S parameter vectors at a
time (columns), `prepare` works out what depends on the group alone, `densities` the density of each response under each
item, and `pull_back` and `gradient` turn responsibilities (the gradient in the log densities) into the gradient in the
parameters: sums over the trials of a group first, then what depends on the group. A bias is an angle by which all
responses of a group are shifted.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lapsus.errors import LapsusError
from lapsus.fitting.interpolation import cubic_rows
from lapsus.fitting.likelihood import CHUNK, At, Total
from lapsus.statistics.intervals import robust_sd
from lapsus.trials import Trials

__all__ = ["EMISSIONS", "Plane", "Tabulated", "VariablePrecision", "VonMises", "WrappedStable"]

NODES = 720  # of a table of densities: half a degree apart
HALF, CLOSER = 97, 3.0  # nodes of half the circle: half a degree apart in the middle, 6 at the end


class _Angles:
    """Cosine (less 1) and sine of response minus item [N, T]: what every density of the circular error needs."""

    def __init__(self, deviation: np.ndarray, dtype: torch.dtype):
        self.cosine = torch.tensor(np.cos(deviation) - 1, dtype=dtype)
        self.sine = torch.tensor(np.sin(deviation), dtype=dtype)

    def shifted(self, cosine: Tensor | None, sine: Tensor | None) -> Tensor:
        """cos(δ − bias) − 1 [N, T, S], for the bias' own cosine and sine [T, S]; [N, T, 1] where there is none."""
        if cosine is None or sine is None:
            return self.cosine[:, :, None]
        return torch.addcmul(self.cosine[:, :, None] * cosine, self.sine[:, :, None], sine).add_(cosine - 1)

    def turned(self, cosine: Tensor, sine: Tensor, weights: Tensor) -> Tensor:
        """Σ_items weights · sin(δ − bias) [T, S]."""
        return (self.sine[:, :, None] * weights).sum(0) * cosine - ((self.cosine[:, :, None] + 1) * weights).sum(
            0
        ) * sine


class VonMises:
    """Density exp(kappa cos δ) / (2π I0(kappa)) of the circular error δ; kappa = exp(parameter 0)."""

    name, names, means, scales, tails = "von_mises", ("kappa",), (2.5,), (1.5,), None

    def statistics(self, trials: Trials, groups: np.ndarray, dtype: torch.dtype) -> _Angles:
        """What a block of trials needs; groups [T] number the block's groups from 0."""
        return _Angles(trials.deviation.T, dtype)

    def initial(self, trials: Trials) -> list[float]:
        """Parameters to start from, read off the central errors."""
        return [math.log(_rough_kappa(trials))]

    def prepare(self, parameters: Tensor, bias: Tensor | None) -> tuple:
        """From parameters [1, G, S] and bias [G, S]."""
        kappa = parameters[0].exp()
        return kappa, 1 / (2 * math.pi * torch.special.i0e(kappa)), *_turn(bias)

    def densities(self, angles: _Angles, prepared: tuple, at: At) -> tuple:
        """Densities [N, T, S] under every item, of a guess (a number or [T, S]), and what pull_back needs.

        at(x [G, S]) repeats what a group has for its trials [T, S]."""
        kappa, norm, cosine, sine = map(at, prepared)
        x = angles.shifted(cosine, sine)
        return torch.mul(x, kappa).exp_().mul_(norm), 1 / (2 * math.pi), (x, kappa, cosine, sine)

    def pull_back(
        self, angles: _Angles, responsibility: Tensor, guess: Tensor | None, saved: tuple, total: Total
    ) -> Tensor:
        """Sums over the trials of each group [k, G, S]; responsibilities of items [N, T, S] and of a guess [T, S];
        total(x [T, S]) sums over the trials of a group."""
        x, _, cosine, sine = saved
        sums = [total((x * responsibility).sum(0)), total(responsibility.sum(0))]
        if cosine is not None:
            sums.append(total(angles.turned(cosine, sine, responsibility)))
        return torch.stack(sums)

    def gradient(self, sums: Tensor, prepared: tuple) -> Tensor:
        """Gradient in the parameters, and in the bias where there is one [E (+ 1), G, S]."""
        kappa = prepared[0]
        ratio = torch.special.i1e(kappa) / torch.special.i0e(kappa)
        rows = [kappa * (sums[0] + sums[1] * (1 - ratio))]
        return torch.stack([*rows, *(kappa * turn for turn in sums[2:])])

    def natural(self, parameters: np.ndarray) -> dict[str, np.ndarray]:
        """Named quantities for people, from parameters [1, …]; circular_sd in radians."""
        kappa = np.exp(parameters[0])
        return {"kappa": kappa, "circular_sd": _circular_sd(_resultant(kappa))}

    def sample(self, parameters: np.ndarray, angles: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Responses around angles [T] with parameters [1, T]."""
        return angles + rng.vonmises(0.0, np.exp(parameters[0]))


class VariablePrecision:
    """A von Mises whose concentration is drawn anew on every trial, from a gamma distribution of mean kappa.

    kappa = exp(parameter 0); the gamma's shape is exp(parameter 1): large is a von Mises again, near 1 has heavy tails.
    The integral over log concentration is a sum over the lattice kappa · 2^q, in which one exponential and repeated
    squaring give every term; a gamma on it has weights softmax(shape · (x − e^x)), x = q log 2.
    """

    name, names, means, scales = "variable_precision", ("kappa", "shape"), (2.5, 1.0), (1.5, 1.0)
    tails = "shape"
    steps = tuple(range(-5, 3))

    def __init__(self) -> None:
        self._x = np.log(2.0) * np.array(self.steps)

    def statistics(self, trials: Trials, groups: np.ndarray, dtype: torch.dtype) -> _Angles:
        """What a block of trials needs."""
        return _Angles(trials.deviation.T, dtype)

    def initial(self, trials: Trials) -> list[float]:
        """Parameters to start from, read off the central errors."""
        return [math.log(_rough_kappa(trials)) + 0.3, 1.0]

    def prepare(self, parameters: Tensor, bias: Tensor | None) -> tuple:
        """From parameters [2, G, S] and bias [G, S]."""
        kappa, shape = parameters[0].exp(), parameters[1].exp()
        x = torch.tensor(self._x, dtype=kappa.dtype)[:, None, None]
        slope = x - x.exp()
        weight = torch.softmax(shape * slope, 0)
        each = kappa * x.exp()
        norm = weight / (2 * math.pi * torch.special.i0e(each))
        return kappa, shape, slope, weight, each, norm, *_turn(bias)

    def densities(self, angles: _Angles, prepared: tuple, at: At) -> tuple:
        """Densities [N, T, S], of a guess, and what pull_back needs."""
        lowest, cosine, sine = at(prepared[4][0]), *map(at, prepared[6:])
        x = angles.shifted(cosine, sine)
        norm = [at(row) for row in prepared[5]]
        power = torch.mul(x, lowest).exp_()
        powers, density = [power], power * norm[0]
        for one in norm[1:]:
            power = power * power
            powers.append(power)
            density.addcmul_(power, one)
        return density, 1 / (2 * math.pi), (x, norm, lowest, powers, density.clamp_min(1e-30), cosine, sine)

    def pull_back(
        self, angles: _Angles, responsibility: Tensor, guess: Tensor | None, saved: tuple, total: Total
    ) -> Tensor:
        """Sums over the trials of each group [k, G, S]."""
        x, norm, lowest, powers, density, cosine, sine = saved
        ratio = responsibility / density
        sums, moved = [], torch.zeros_like(ratio)
        for q, (power, one) in enumerate(zip(powers, norm)):
            share = ratio * power
            sums.append(total(share.sum(0) * one))  # the responsibility of this concentration
            moved.addcmul_(share, one * (lowest * 2.0**q))
        sums.append(total((moved * x).sum(0)))
        if cosine is not None:
            sums.append(total(angles.turned(cosine, sine, moved)))
        return torch.stack(sums)

    def gradient(self, sums: Tensor, prepared: tuple) -> Tensor:
        """Gradient in the parameters, and in the bias where there is one [E (+ 1), G, S]."""
        _, shape, slope, weight, each, *_ = prepared
        count = len(self.steps)
        shares, moved = sums[:count], sums[count]
        ratio = torch.special.i1e(each) / torch.special.i0e(each)
        on_kappa = moved + (shares * each * (1 - ratio)).sum(0)
        on_shape = shape * ((shares * slope).sum(0) - shares.sum(0) * (weight * slope).sum(0))
        return torch.stack([on_kappa, on_shape, *sums[count + 1 :]])

    def natural(self, parameters: np.ndarray) -> dict[str, np.ndarray]:
        """Named quantities for people; the circular s.d. (radians) is that of all trials together."""
        kappa, shape = np.exp(parameters[0]), np.exp(parameters[1])
        weight = self._weights(shape)
        each = kappa[..., None] * np.exp(self._x)
        return {"kappa": kappa, "shape": shape, "circular_sd": _circular_sd((weight * _resultant(each)).sum(-1))}

    def _weights(self, shape: np.ndarray) -> np.ndarray:
        logits = shape[..., None] * (self._x - np.exp(self._x))
        weight = np.exp(logits - logits.max(-1, keepdims=True))
        return weight / weight.sum(-1, keepdims=True)

    def sample(self, parameters: np.ndarray, angles: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Responses around angles [T] with parameters [2, T]."""
        place = (rng.uniform(size=(len(angles), 1)) > np.cumsum(self._weights(np.exp(parameters[1])), -1)).sum(-1)
        place = np.minimum(place, len(self.steps) - 1)
        return angles + rng.vonmises(0.0, np.exp(parameters[0] + self._x[place]))


class _Table:
    """Densities from tables of `size` angles around the circle, one for each group and parameter vector, between which
    they are interpolated by cubics: the work is that of the nodes where many trials share a group.

    `prepare` returns the tables [G, size, S] and what `gradient` needs, which turns the gradient in their values
    [size, G, S] into that in the parameters."""

    size = NODES

    def statistics(self, trials: Trials, groups: np.ndarray, dtype: torch.dtype) -> tuple:
        """Sparse rows [N · T, groups · size] that interpolate, their transpose, and (N, T)."""
        deviation, size = trials.deviation.T, self.size
        offset = np.broadcast_to(groups * size, deviation.shape)
        count = (int(groups.max()) + 1) * size
        rows = cubic_rows(self.position(deviation), offset, size, count, dtype, half=size < NODES)
        return *rows, deviation.shape

    def position(self, deviation: np.ndarray) -> np.ndarray:
        """Where angles lie among the nodes."""
        return (deviation + math.pi) * NODES / (2 * math.pi)

    def densities(self, statistics: tuple, prepared: tuple, at: At) -> tuple:
        """Densities [N, T, S], of a guess, and what pull_back needs."""
        rows, _, shape = statistics
        table = prepared[0][at.groups]
        values = (rows @ table.reshape(-1, table.shape[-1])).reshape(*shape, -1)
        positive = values > 1e-9
        values = values.clamp_min(1e-9)
        return values, 1 / (2 * math.pi), positive / values

    def pull_back(
        self, statistics: tuple, responsibility: Tensor, guess: Tensor | None, inverse: Tensor, total: Total
    ) -> Tensor:
        """The gradient in the tables [size, G, S]."""
        share = (responsibility * inverse).reshape(-1, responsibility.shape[-1])
        return (statistics[1] @ share).reshape(-1, self.size, share.shape[-1]).transpose(0, 1)


class Tabulated(_Table):
    """The density of another emission, from tables of it.

    Without a bias it is even, so that half the circle will do; it is the smoother the farther from 0, so that nodes lie
    farther apart there."""

    def __init__(self, emission: Any, bias: bool):
        self.emission, self.names, self.name = emission, emission.names, emission.name
        self.size = NODES if bias else HALF
        if bias:
            self.nodes = 2 * math.pi * np.arange(NODES) / NODES - math.pi
        else:
            self.nodes = math.pi * np.sinh(CLOSER * np.arange(HALF) / (HALF - 1)) / math.sinh(CLOSER)

    def position(self, deviation: np.ndarray) -> np.ndarray:
        """Where angles lie among the nodes."""
        if self.size == NODES:
            return super().position(deviation)
        return np.arcsinh(np.abs(deviation) * math.sinh(CLOSER) / math.pi) * (HALF - 1) / CLOSER

    def prepare(self, parameters: Tensor, bias: Tensor | None) -> tuple:
        """From parameters [E, G, S] and bias [G, S]. The nodes stand for the items of one trial of each group."""
        angles = _Angles(self.nodes[:, None], parameters.dtype)
        tables, kept = [], []
        few = max(1, CHUNK // (self.size * parameters.shape[-1]))  # groups at a time: they fit into the cache
        for start in range(0, parameters.shape[1], few):
            part = slice(start, start + few)
            prepared = self.emission.prepare(parameters[:, part], None if bias is None else bias[part])
            density, _, saved = self.emission.densities(angles, prepared, _same)
            tables.append(density.transpose(0, 1))
            kept.append((part, prepared, density, saved))
        return torch.cat(tables), (angles, kept)

    def gradient(self, sums: Tensor, prepared: tuple) -> Tensor:
        """Gradient in the parameters, and in the bias where there is one [E (+ 1), G, S]."""
        angles, kept = prepared[1]
        parts = []
        for part, inner, density, saved in kept:
            share = self.emission.pull_back(angles, sums[:, part] * density, None, saved, _same)
            parts.append(self.emission.gradient(share, inner))
        return torch.cat(parts, 1)


def _same(x: Tensor | None) -> Tensor | None:
    return x


class WrappedStable(_Table):
    """Symmetric alpha-stable noise wrapped on the circle: (1 + 2 Σ_k exp(−(γk)^α) cos kδ) / 2π.

    alpha in (0.5, 2) falls below 2 as tails grow heavy; gamma is the scale. The series is summed on a table of angles
    for every parameter vector. A bias adds the odd part, with sin kδ sin kβ.
    """

    name, names, means, scales, tails = "wrapped_stable", ("alpha", "gamma"), (1.0, -1.0), (1.0, 1.0), "alpha"
    terms = 160

    def __init__(self) -> None:
        angles = np.linspace(0, math.pi, NODES // 2 + 1)
        k = np.arange(1, self.terms + 1)
        self._cosines, self._sines = (torch.tensor(f(angles[:, None] * k)) for f in (np.cos, np.sin))

    def initial(self, trials: Trials) -> list[float]:
        """Parameters to start from, read off the central errors."""
        return [1.5, math.log(min(1 / math.sqrt(_rough_kappa(trials)), 1.0)) - 0.35]

    def prepare(self, parameters: Tensor, bias: Tensor | None) -> tuple:
        """From parameters [2, G, S] and bias [G, S]: the tables, of which one half of the circle gives the other."""
        alpha, gamma = 0.5 + 1.5 * torch.sigmoid(parameters[0]), parameters[1].exp()
        # Harmonics that every column has damped away are left out.
        last = (18.0 ** (1 / alpha) / gamma).max()
        terms = int(min(max(8.0, float(torch.nan_to_num(last, nan=1e9))), self.terms))
        k = torch.arange(1, terms + 1, dtype=gamma.dtype)[:, None, None]
        power = (gamma * k) ** alpha
        damping = torch.exp(-power)
        cosines, sines = (table[:, :terms].to(gamma.dtype) for table in (self._cosines, self._sines))
        turn = None if bias is None else k * bias
        flat = (terms, -1)
        even = cosines @ (damping if turn is None else damping * torch.cos(turn)).reshape(flat)
        even = ((1 + 2 * even) / (2 * math.pi)).reshape(-1, *gamma.shape).transpose(0, 1)
        right = left = even
        if turn is not None:
            odd = (sines @ (damping * torch.sin(turn)).reshape(flat) / math.pi).reshape(-1, *gamma.shape)
            odd = odd.transpose(0, 1)
            right, left = even + odd, even - odd
        table = torch.cat([left[:, 1:].flip(1), right[:, :-1]], 1)
        return table, (alpha, gamma, k, power, damping, turn, cosines, sines)

    def gradient(self, sums: Tensor, prepared: tuple) -> Tensor:
        """Gradient in the parameters, and in the bias where there is one [E (+ 1), G, S]."""
        alpha, gamma, k, power, damping, turn, cosines, sines = prepared[1]
        shape = (len(k), *gamma.shape)
        half = NODES // 2
        nothing = torch.zeros_like(sums[:1])
        left, right = torch.cat([nothing, sums[:half].flip(0)]), torch.cat([sums[half:], nothing])
        even = (cosines.T @ (right + left).reshape(half + 1, -1) / math.pi).reshape(shape)
        rows = []
        if turn is None:
            on_damping = even
        else:
            odd = (sines.T @ (right - left).reshape(half + 1, -1) / math.pi).reshape(shape)
            on_damping = even * torch.cos(turn) + odd * torch.sin(turn)
            rows = [(damping * k * (odd * torch.cos(turn) - even * torch.sin(turn))).sum(0)]
        slope = -on_damping * damping * power  # d / d log(power)
        sigmoid = (alpha - 0.5) / 1.5
        on_alpha = (slope * torch.log(gamma * k)).sum(0) * 1.5 * sigmoid * (1 - sigmoid)
        return torch.stack([on_alpha, (slope * alpha).sum(0), *rows])

    def natural(self, parameters: np.ndarray) -> dict[str, np.ndarray]:
        """Named quantities for people; gamma and circular_sd in radians."""
        alpha, gamma = 0.5 + 1.5 / (1 + np.exp(-parameters[0])), np.exp(parameters[1])
        return {"alpha": alpha, "gamma": gamma, "circular_sd": np.sqrt(2 * gamma**alpha)}

    def sample(self, parameters: np.ndarray, angles: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Responses around angles [T] with parameters [2, T]."""
        alpha, gamma = 0.5 + 1.5 / (1 + np.exp(-parameters[0])), np.exp(parameters[1])
        # Chambers, Mallows and Stuck (1976), symmetric case.
        v, w = rng.uniform(-math.pi / 2, math.pi / 2, len(angles)), rng.exponential(1.0, len(angles))
        noise = np.sin(alpha * v) / np.cos(v) ** (1 / alpha) * (np.cos((1 - alpha) * v) / w) ** ((1 - alpha) / alpha)
        return angles + gamma * noise


class Plane:
    """Gaussian in the plane of s.d. spread around radius · [cos, sin] of the item: network outputs.

    A uniform guess is a point at a uniform angle on the same ring, with the same noise.
    """

    name, names, means, scales, tails = "plane", ("radius", "spread"), (0.5, -1.5), (1.0, 1.0), None

    def statistics(self, trials: Trials, groups: np.ndarray, dtype: torch.dtype) -> tuple:
        """Length of the response and its angles to the items."""
        return torch.tensor(np.hypot(*self._points(trials).T), dtype=dtype)[:, None], _Angles(trials.deviation.T, dtype)

    def _points(self, trials: Trials) -> np.ndarray:
        if trials.point is None:
            raise LapsusError(
                f"{trials.source}: emission 'plane' needs the responses as points; add columns response_x and"
                " response_y."
            )
        return trials.point

    def initial(self, trials: Trials) -> list[float]:
        """Parameters to start from, read off the central errors."""
        radius = np.median(np.hypot(*self._points(trials).T))
        return [math.log(radius), math.log(radius / math.sqrt(_rough_kappa(trials)))]

    def prepare(self, parameters: Tensor, bias: Tensor | None) -> tuple:
        """From parameters [2, G, S] and bias [G, S]."""
        return parameters[0].exp(), parameters[1].exp(), *_turn(bias)

    def densities(self, statistics: tuple, prepared: tuple, at: At) -> tuple:
        """Densities [N, T, S], of a guess [T, S], and what pull_back needs."""
        length, angles = statistics
        radius, spread, cosine, sine = map(at, prepared)
        x = angles.shifted(cosine, sine)
        ring = -0.5 * ((length - radius) / spread) ** 2 - torch.log(2 * math.pi * spread**2)
        pull = radius * length / spread**2
        values = torch.exp(ring + pull * x)
        return values, torch.exp(ring) * torch.special.i0e(pull), (radius, spread, pull, x, cosine, sine)

    def pull_back(
        self, statistics: tuple, responsibility: Tensor, guess: Tensor | None, saved: tuple, total: Total
    ) -> Tensor:
        """Sums over the trials of each group: the gradient itself [k, G, S]."""
        length, angles = statistics
        radius, spread, pull, x, cosine, sine = saved
        every, over_trial = responsibility.sum(0), (x * responsibility).sum(0)
        if guess is not None:
            every = every + guess
            over_trial = over_trial + guess * (torch.special.i1e(pull) / torch.special.i0e(pull) - 1)
        z = (length - radius) / spread
        sums = [
            total(every * z * radius / spread + over_trial * pull),
            total(every * (z**2 - 2) - 2 * over_trial * pull),
        ]
        if cosine is not None:
            sums.append(total(angles.turned(cosine, sine, responsibility) * pull))
        return torch.stack(sums)

    def gradient(self, sums: Tensor, prepared: tuple) -> Tensor:
        """Gradient in the parameters, and in the bias where there is one [E (+ 1), G, S]."""
        return sums

    def natural(self, parameters: np.ndarray) -> dict[str, np.ndarray]:
        """Named quantities for people; circular_sd in radians."""
        radius, spread = np.exp(parameters[0]), np.exp(parameters[1])
        return {"radius": radius, "spread": spread, "circular_sd": spread / radius}

    def sample(self, parameters: np.ndarray, angles: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Points [T, 2] around the items at angles [T] with parameters [2, T]."""
        radius, spread = np.exp(parameters[0]), np.exp(parameters[1])
        ring = radius * np.stack([np.cos(angles), np.sin(angles)])
        return (ring + spread * rng.standard_normal(ring.shape)).T


EMISSIONS = {kind.name: kind for kind in (VonMises, VariablePrecision, WrappedStable, Plane)}


def _turn(bias: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    return (None, None) if bias is None else (torch.cos(bias), torch.sin(bias))


def _resultant(kappa: np.ndarray) -> np.ndarray:
    from scipy.special import i0e, i1e

    return i1e(kappa) / i0e(kappa)


def _circular_sd(resultant: np.ndarray) -> np.ndarray:
    return np.sqrt(-2 * np.log(resultant))


def _rough_kappa(trials: Trials) -> float:
    """Concentration of the responses that are near their target; a starting point only."""
    error = np.abs(trials.error)
    spread = float(robust_sd(error[error < 1.0])) if (error < 1.0).any() else 1.0
    return 1 / max(spread, 0.02) ** 2
