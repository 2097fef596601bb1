"""A conditional density of responses that was learned from trials: a mixture whose parts depend on the stimuli.

Each part is an isotropic Gaussian in the space in which networks respond: an angle is a point in the plane, a number a
coordinate. So the exact denoiser and the energy score have their closed forms, and the density of the response itself
has one too: the angle of a Gaussian in the plane has the projected normal density, which is uniform where the Gaussian
is centred at the origin. Several networks (members), fitted to resampled trials, are averaged.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import special
from torch import Tensor

from lapsus import circular
from lapsus.designs import Variable, unpack
from lapsus.diffusion import Mixture
from lapsus.energy import energy_score, sampled_energy_excess
from lapsus.errors import LapsusError
from lapsus.protocols import Conditions

__all__ = ["LearnedDensity", "Parts", "features", "log_density", "other_mode", "parts_of", "sizes"]

# The largest radius of a response in the plane (the paper's A), the s.d. that a standardised number has there, and the
# limits of the parts' own s.d.
RADIUS, LINEAR_SCALE = 2.5, 1.25
NARROWEST, WIDEST = 0.15, 1.5
# From this ratio of radius to s.d. down, a part moves to the origin instead of growing wider.
_RATIO_AT_RADIUS = 2.0
_LARGEST_RATIO = RADIUS / NARROWEST
_HARMONICS = 1
# Responses further than this from the heaviest part (radians) belong to another mode.
OTHER = 1.0


def features(inputs: tuple[Variable, ...], conditions: Conditions) -> Tensor:
    """What parts depend on, [C, F]: cosines and sines of angles, numbers, categories one by one, and whether a value is
    there at all."""
    columns = []
    for variable in inputs:
        values = conditions[variable.name].double()
        there = ~torch.isnan(values)
        values = values.nan_to_num(0.0)
        match variable.kind:
            case "circular":
                own = [f(k * values) for k in range(1, _HARMONICS + 1) for f in (torch.cos, torch.sin)]
            case "linear":
                own = [values]
            case "categorical":
                own = [(values == k).double() for k in range(len(variable.levels))]
        columns += [torch.where(there, column, 0.0) for column in own] + [there.double()]
    return torch.stack(columns, 1)


def feature_count(inputs: tuple[Variable, ...]) -> int:
    """F."""
    own = {"circular": 2 * _HARMONICS, "linear": 1}
    return sum(own.get(variable.kind, len(variable.levels)) + 1 for variable in inputs)


@dataclass(frozen=True)
class Sizes:
    """Shapes of the weights: F features, H hidden units, M parts, and what each part has."""

    features: int
    hidden: int
    parts: int
    circular: int
    linear: int

    @property
    def locations(self) -> int:
        """Numbers that say where a part is."""
        return 2 * self.circular + self.linear

    @property
    def outputs(self) -> int:
        """All numbers of all parts: weight, place, s.d. and one ratio per angle."""
        return self.parts * (1 + self.locations + 1 + self.circular)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name → shape of each array of weights; the last row of each takes a constant."""
        return {
            "direct": (self.features + 1, self.outputs),
            "into": (self.features + 1, self.hidden),
            "out": (self.hidden, self.outputs),
        }

    @property
    def count(self) -> int:
        """Weights of one member."""
        return sum(math.prod(shape) for shape in self.shapes.values())


def sizes(responses: tuple[Variable, ...], inputs: tuple[Variable, ...], hidden: int, parts: int) -> Sizes:
    """Those of a density of these responses given these inputs."""
    angles = sum(variable.kind == "circular" for variable in responses)
    return Sizes(feature_count(inputs), hidden, parts, angles, len(responses) - angles)


@dataclass(frozen=True)
class Parts:
    """The parts at C conditions by E members: log_weights [E, C, M], direction [E, C, M, angles] in radians, ratio of
    radius and s.d. [E, C, M, angles], place [E, C, M, numbers] and s.d. [E, C, M], in the units of x."""

    log_weights: Tensor
    direction: Tensor
    ratio: Tensor
    place: Tensor
    sd: Tensor


def parts_of(weights: dict[str, Tensor], shape: Sizes, x: Tensor, guesses: bool) -> Parts:
    """The parts at features x [C, F] or [E, C, F]; `guesses` makes the last part cover everything."""
    x = torch.cat([x, torch.ones_like(x[..., :1])], -1)
    hidden = torch.tanh(x @ weights["into"])
    out = x @ weights["direct"] + hidden @ weights["out"]
    out = out.unflatten(-1, (shape.parts, -1))
    angles, numbers = shape.circular, shape.linear
    logits, vectors, place, raw_sd, raw_ratio = out.split([1, 2 * angles, numbers, 1, angles], -1)
    vectors = vectors.unflatten(-1, (angles, 2))
    direction = torch.atan2(vectors[..., 1], vectors[..., 0] + 1e-12)
    if numbers:
        sd = NARROWEST + (WIDEST - NARROWEST) * torch.sigmoid(raw_sd[..., 0] - 1.0)
        ratio = 1.4 * RADIUS * torch.sigmoid(raw_ratio) / sd[..., None]
    else:
        ratio = _LARGEST_RATIO * torch.sigmoid(raw_ratio)
        sd = _radius(ratio[..., 0]) / ratio[..., 0]
    if guesses:
        last = torch.arange(shape.parts) == shape.parts - 1
        ratio = torch.where(last[:, None], 1e-3, ratio)
        place = torch.where(last[:, None], 0.0, place)
        sd = torch.where(last, RADIUS / _RATIO_AT_RADIUS, sd)
    return Parts(torch.log_softmax(logits[..., 0], -1), direction, ratio, place, sd)


def _radius(ratio: Tensor) -> Tensor:
    """Where in the plane a part with this ratio of radius and s.d. is: on the circle, unless it is very wide."""
    return RADIUS * (ratio / _RATIO_AT_RADIUS).clamp(max=1.0)


def log_density(parts: Parts, angles: Tensor, numbers: Tensor) -> Tensor:
    """log density of each part [E, C, M] at responses angles [C, angles] (radians) and numbers [C, numbers] (standard
    units), weights included."""
    found = parts.log_weights
    if parts.direction.shape[-1]:
        found = found + log_projected_normal(angles[..., None, :] - parts.direction, parts.ratio).sum(-1)
    if parts.place.shape[-1]:
        z = (LINEAR_SCALE * numbers[..., None, :] - parts.place) / parts.sd[..., None]
        log_sd = parts.sd.log() - math.log(LINEAR_SCALE)
        found = found - 0.5 * z.square().sum(-1) - z.shape[-1] * (log_sd + 0.5 * math.log(2 * math.pi))
    return found


class _LogProjection(torch.autograd.Function):
    """log(1 + a M(a)) with M = Phi / phi of the standard normal; M' = 1 + a M gives the derivative."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        # SciPy's function is many times faster than torch's.
        mills = math.sqrt(math.pi / 2) * torch.from_numpy(special.erfcx(-a.detach().numpy() / math.sqrt(2)))
        # The two terms nearly cancel for a far below 0: there the sum is 1/a² - 3/a⁴ + 15/a⁶ - ...
        inverse = 1 / a.square().clamp(min=1.0)
        value = torch.where(a < -20.0, inverse * (1 - 3 * inverse + 15 * inverse.square()), 1 + a * mills)
        ctx.save_for_backward(a, mills, value)
        return value.log()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        a, mills, value = ctx.saved_tensors
        return grad * (mills / value + a)


def log_projected_normal(angle: Tensor, ratio: Tensor) -> Tensor:
    """log density of the angle of N([ratio, 0], I) in the plane."""
    projection: Tensor = _LogProjection.apply(ratio * torch.cos(angle))
    return projection - 0.5 * ratio.square() - math.log(2 * math.pi)


@dataclass(frozen=True)
class LearnedDensity:
    """The density as a behaviour.

    responses and inputs: variables of a design; parts, hidden, members: of the mixture; guesses: whether the last part
    covers all responses; weights: those of all members [E, count], packed as text.
    """

    responses: tuple[Variable, ...]
    inputs: tuple[Variable, ...]
    weights: str = field(repr=False)
    parts: int = 1
    hidden: int = 0
    members: int = 1
    guesses: bool = False

    def __post_init__(self) -> None:
        if not self.responses:
            raise LapsusError("behaviour.responses needs at least one variable.")
        if self._weights.shape != (self.members, self._sizes.count):
            raise LapsusError("behaviour.weights does not fit the behaviour's parts, inputs and members.")

    @cached_property
    def _sizes(self) -> Sizes:
        return sizes(self.responses, self.inputs, self.hidden, self.parts)

    @cached_property
    def _weights(self) -> np.ndarray:
        return unpack(self.weights, "behaviour.weights")

    @property
    def response_size(self) -> int:
        """Two for an angle, one for a number."""
        return self._sizes.locations

    def at(self, conditions: Conditions) -> Parts:
        """The parts of every member at these conditions."""
        weights = split_weights(torch.from_numpy(self._weights).double(), self._sizes)
        return parts_of(weights, self._sizes, features(self.inputs, conditions), self.guesses)

    def mixture(self, conditions: Conditions) -> Mixture:
        """The density in the space of the network's responses: all parts of all members."""
        parts = self.at(conditions)
        members, count, _ = parts.log_weights.shape
        columns = []
        angle = number = 0
        for variable in self.responses:
            if variable.kind == "circular":
                ratio = parts.ratio[..., angle]
                radius = ratio * parts.sd if self._sizes.linear else _radius(ratio)
                columns.append(circular.embed(parts.direction[..., angle]) * radius[..., None])
                angle += 1
            else:
                columns.append(parts.place[..., number : number + 1])
                number += 1
        means = torch.cat(columns, -1)  # [E, C, M, d]
        flat = lambda values: values.transpose(0, 1).reshape(count, -1, *values.shape[3:]).float()
        return Mixture(flat(parts.log_weights.exp() / members), flat(means), flat(parts.sd))

    def sample(self, conditions: Conditions, trials: int, generator: torch.Generator) -> Tensor:
        """Responses x_T [d, C, K]."""
        return self.mixture(conditions).sample(trials, generator)

    def optimal(self, conditions: Conditions) -> Tensor:
        """The mean response, [C, d]; of an angle, the mean direction at the radius of a sharp response."""
        mixture = self.mixture(conditions)
        mean = (mixture.weights[..., None] * mixture.means).sum(1)
        place = 0
        for variable in self.responses:
            if variable.kind == "circular":
                vector = mean[:, place : place + 2]
                mean[:, place : place + 2] = RADIUS * vector / vector.norm(dim=1, keepdim=True).clamp(min=1e-6)
                place += 2
            else:
                place += 1
        return mean

    def values(self, x_T: Tensor) -> dict[str, Tensor]:
        """Responses x_T [d, C, K] as values of the response variables, [C, K] each: radians, or standard units."""
        found, place = {}, 0
        for variable in self.responses:
            if variable.kind == "circular":
                found[variable.name] = circular.angle(x_T[place : place + 2].permute(1, 2, 0))
                place += 2
            else:
                found[variable.name] = x_T[place] / LINEAR_SCALE
                place += 1
        return found

    def log_density(self, conditions: Conditions, responses: dict[str, Tensor]) -> Tensor:
        """log density [C] of one response to each condition, each variable [C]."""
        angles, numbers = response_arrays(self.responses, responses)
        joint = log_density(self.at(conditions), angles, numbers)
        return torch.logsumexp(joint.flatten(2), -1).logsumexp(0) - math.log(self.members)

    def measures(self, conditions: Conditions, x_T: Tensor) -> dict:
        """What `lapsus evaluate` prints: how far responses are from the density's own."""
        wanted = self.sample(conditions, x_T.shape[-1], torch.Generator().manual_seed(0))
        own = float(energy_score(wanted).mean())
        excess = float(sampled_energy_excess(x_T, wanted).mean())
        return {"energy_excess_sampled": excess, "energy_excess_relative": excess / max(own, 1e-9)}


def other_mode(behaviour: LearnedDensity, conditions: Conditions, x_T: Tensor) -> Tensor:
    """Probability that each response x_T [d, C, K] belongs to another mode than the highest one of its condition,
    [C, K], by the parts of the density: those further than a radian from the heaviest belong to another mode."""
    mixture = behaviour.mixture(conditions)
    share = mixture.responsibilities(x_T)  # [M, C, K]
    angle = torch.atan2(mixture.means[..., 1], mixture.means[..., 0])
    heaviest = mixture.weights.argmax(1, keepdim=True)
    gap = (angle - angle.gather(1, heaviest) + math.pi).remainder(2 * math.pi) - math.pi
    guesses = mixture.means.norm(dim=-1) < 0.1
    elsewhere = ((gap.abs() > OTHER) & ~guesses).float()  # [C, M]
    return (share * elsewhere.T[..., None]).sum(0)


def split_weights(flat: Tensor, shape: Sizes) -> dict[str, Tensor]:
    """Weights [E, count] as arrays by name, [E, rows, columns]."""
    lengths = [math.prod(size) for size in shape.shapes.values()]
    found = zip(shape.shapes.items(), flat.split(lengths, -1))
    return {name: values.unflatten(-1, size) for (name, size), values in found}


def response_arrays(variables: tuple[Variable, ...], values: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Angles [C, angles] and numbers [C, numbers] in the order of the variables."""
    some = next(iter(values.values()))

    def of(kind: str) -> Tensor:
        own = [values[variable.name].double() for variable in variables if variable.kind == kind]
        return torch.stack(own, -1) if own else torch.zeros(*some.shape, 0, dtype=torch.float64)

    return of("circular"), of("linear")
