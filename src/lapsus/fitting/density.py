"""Learn the density of responses given stimuli from trials: for behaviour that has no model yet.

Mixtures of growing size are compared by their log density on held-out trials (five folds), and the smallest one is kept
that is within one standard error of the best. The kept one is fitted to resampled trials, and these members are
averaged. Calibration is measured on the held-out trials: how often a 90 % region of the density holds the response.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lapsus import circular, rng
from lapsus.behaviour.learned import (
    LINEAR_SCALE,
    LearnedDensity,
    Parts,
    Sizes,
    features,
    log_density,
    parts_of,
    response_arrays,
    sizes,
    split_weights,
)
from lapsus.designs import Design, Variable, pack
from lapsus.files import read_json, understood, write_json
from lapsus.protocols import Conditions
from lapsus.statistics.intervals import rate_interval

__all__ = ["Candidate", "DensityFit", "Modes", "fit_density", "load_density", "modes_of", "save_density"]

FOLDS, MEMBERS = 5, 5
_UPDATES, _BATCH, _RATE = 300, 1000, 0.04
# S.d. of the normal priors, about the start, on the direct weights of stimuli and on the constants of the parts, and of
# those on the weights of hidden units about 0: a part with few trials stays where its regression put it.
_PRIOR_DIRECT, _PRIOR_CONSTANT, _PRIOR_HIDDEN = 0.5, 1.5, 1.0
# Where ratios begin: a third of the largest.
_FIRST_RATIO = -0.8
_HIDDEN = 16
# A trial further than this from all parts so far (radians, or s.d. of the response) may belong to another one.
_FAR = 1.0


@dataclass(frozen=True)
class Candidate:
    """A mixture: what it is called, its parts, whether the last one covers all responses, and its hidden units."""

    name: str
    parts: int
    guesses: bool
    hidden: int


def candidates(responses: tuple[Variable, ...]) -> list[Candidate]:
    """Mixtures to compare for these responses, from the simplest on."""
    if any(variable.kind == "linear" for variable in responses):
        # A skewed distribution of numbers takes several parts, whatever its modes.
        ladder = [("one normal", 1), ("two normals", 2), ("three normals", 3), ("five normals", 5)]
        joint = len(responses) > 1
        kinds = [(name.replace("normal", "part") if joint else name, parts, False) for name, parts in ladder]
    else:
        kinds = [("one mode", 1, False), ("one mode and guesses", 2, True)]
        kinds += [("two modes and guesses", 3, True), ("three modes and guesses", 4, True)]
    return [
        Candidate(name if not hidden else f"{name}, bent", parts, guesses, hidden)
        for name, parts, guesses in kinds
        for hidden in (0, _HIDDEN)
    ]


@dataclass(frozen=True)
class DensityFit:
    """A learned density with its evidence.

    comparison: a row per candidate (held-out log density per trial and its difference from the kept one, with standard
    error, in nats); kept: its name; behaviour; rank [trial]: the share of the held-out density's own responses that are
    less probable than the response; position: variable → [trial], the held-out probability of a smaller response
    (of an angle: counted from opposite the mean direction).
    """

    design: Design
    comparison: pd.DataFrame
    kept: str
    behaviour: LearnedDensity
    rank: np.ndarray
    position: dict[str, np.ndarray] = field(default_factory=dict)

    def coverage(self, level: float = 0.9) -> tuple[float, float, float]:
        """Share of held-out responses in the smallest region of that probability, with its 95 % interval."""
        return rate_interval(self.rank >= 1 - level)

    @cached_property
    def conditions(self) -> Conditions:
        """The stimuli of all trials."""
        return conditions_of(self.design)

    @cached_property
    def modes(self) -> "Modes | None":
        """How many modes the density has at the stimuli of the trials; None for several responses."""
        return modes_of(self.behaviour, self.conditions) if len(self.behaviour.responses) == 1 else None

    def sentences(self) -> list[str]:
        """What was found, in words."""
        design = self.design
        said = [
            f"{len(design):,} trials; {' and '.join(v.name for v in design.responses)} given"
            f" {', '.join(v.name for v in self.behaviour.inputs)}."
        ]
        said += [f"{count:,} trials were left out: {why}." for why, count in design.dropped.items()]
        second = self.comparison[self.comparison.name != self.kept].nlargest(1, "log_density").iloc[0]
        said.append(
            f"The kept density is “{self.kept}”. The best of the others, “{second['name']}”, predicts held-out trials"
            f" {'better' if second.difference > 0 else 'worse'} by {abs(second.difference) * len(design):.1f} ±"
            f" {second.error * len(design):.1f} nats."
        )
        if self.modes is not None:
            said.append(self.modes.sentence(design.responses[0]))
        inside, low, high = self.coverage()
        fine = "calibrated" if low <= 0.92 and high >= 0.88 else "not calibrated"
        said.append(
            f"The density is {fine}: its 90 % regions hold {100 * inside:.1f} % [{100 * low:.1f}, {100 * high:.1f}] of"
            " held-out responses."
        )
        return said


def conditions_of(design: Design) -> Conditions:
    """The stimuli of the trials of a design, by name [trial]."""
    return {variable.name: torch.from_numpy(design.values[variable.name]).float() for variable in design.stimuli}


def responses_of(design: Design) -> dict[str, Tensor]:
    """The responses of the trials of a design, by name [trial]."""
    return {variable.name: torch.from_numpy(design.values[variable.name]).float() for variable in design.responses}


# --- Fitting ---


def fit_density(design: Design, *, seed: int = 0, progress: Callable[[str], None] = lambda name: None) -> DensityFit:
    """Compare candidates on held-out trials, keep one, and fit it to resampled trials.

    progress: called with the name of each candidate when its turn comes.
    """
    data = _Data.of(design)
    fold = np.random.default_rng(rng.seed_of(seed, "folds")).permutation(np.arange(len(design)) % FOLDS)
    trained = torch.from_numpy(np.stack([fold != k for k in range(FOLDS)]).astype(float))
    tried = candidates(design.responses)
    scores, fitted = {}, {}
    for candidate in tried:
        progress(candidate.name)
        shape = sizes(design.responses, design.stimuli, candidate.hidden, candidate.parts)
        weights = _train(data, shape, candidate.guesses, trained, rng.seed_of(seed, candidate.name))
        with torch.no_grad():
            parts = parts_of(split_weights(weights, shape), shape, data.x, candidate.guesses)
            all_scores = torch.logsumexp(log_density(parts, data.angles, data.numbers), -1).numpy()
        scores[candidate] = all_scores[fold, np.arange(len(design))]
        fitted[candidate] = weights
    kept = _kept(scores)
    progress(f"{kept.name}, on resampled trials")
    shape = sizes(design.responses, design.stimuli, kept.hidden, kept.parts)
    counts = np.random.default_rng(rng.seed_of(seed, "members")).multinomial(
        len(design), np.full(len(design), 1 / len(design)), size=MEMBERS
    )
    members = _train(data, shape, kept.guesses, torch.from_numpy(counts.astype(float)), rng.seed_of(seed, "weights"))
    make = lambda weights: LearnedDensity(
        design.responses,
        design.stimuli,
        pack(weights.numpy()),
        parts=kept.parts,
        hidden=kept.hidden,
        members=len(weights),
        guesses=kept.guesses,
    )
    rank, position = _held_out(design, [make(fitted[kept][k : k + 1]) for k in range(FOLDS)], fold, seed)
    return DensityFit(design, _table(scores, kept), kept.name, make(members), rank, position)


@dataclass(frozen=True)
class _Data:
    """Features [N, F], angles [N, angles] and numbers [N, numbers] of all trials."""

    x: Tensor
    angles: Tensor
    numbers: Tensor

    @classmethod
    def of(cls, design: Design) -> "_Data":
        x = features(design.stimuli, conditions_of(design))
        return cls(x, *response_arrays(design.responses, responses_of(design)))

    def __len__(self) -> int:
        return len(self.x)


def _train(data: _Data, shape: Sizes, guesses: bool, counts: Tensor, seed: int) -> Tensor:
    """Weights [E, count] of members that are fitted to the trials, each counted `counts` [E, N] times: the mode of the
    posterior, by Adam on batches."""
    generator = torch.Generator().manual_seed(seed % (1 << 62))
    members, total = len(counts), counts.sum(1, keepdim=True)
    start = _start(data, shape, guesses)
    first = split_weights(start, shape)["direct"]
    flat = start + 0.05 * torch.randn(members, shape.count, generator=generator, dtype=torch.float64)
    flat.requires_grad_()
    optimiser = torch.optim.Adam([flat], lr=_RATE)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, _UPDATES, eta_min=_RATE / 30)
    batch = min(_BATCH, len(data))
    for _ in range(_UPDATES):
        rows = torch.randperm(len(data), generator=generator)[:batch] if batch < len(data) else slice(None)
        weights = split_weights(flat, shape)
        parts = parts_of(weights, shape, data.x[rows], guesses)
        score = torch.logsumexp(log_density(parts, data.angles[rows], data.numbers[rows]), -1)
        own = counts[:, rows]
        loss = -(own * score).sum(1) / own.sum(1).clamp(min=1.0) + _penalty(weights, first) / total[:, 0]
        optimiser.zero_grad()
        loss.sum().backward()
        optimiser.step()
        falling.step()
    return flat.detach()


def _penalty(weights: dict[str, Tensor], first: Tensor) -> Tensor:
    """Minus the log prior of each member, [E]; `first` are the direct weights at the start."""
    moved = (weights["direct"] - first).square().sum(2)
    direct = moved[:, :-1].sum(1) / (2 * _PRIOR_DIRECT**2) + moved[:, -1] / (2 * _PRIOR_CONSTANT**2)
    hidden = weights["into"].square().sum((1, 2)) + weights["out"].square().sum((1, 2))
    return direct + hidden / (2 * _PRIOR_HIDDEN**2)


def _start(data: _Data, shape: Sizes, guesses: bool) -> Tensor:
    """First weights [count]: parts are linear regressions, the first of all trials, each further one of the trials that
    are far from all before it."""
    direct = torch.zeros(shape.features + 1, shape.parts, 1 + shape.locations + 1 + shape.circular, dtype=torch.float64)
    x = torch.cat([data.x, torch.ones_like(data.x[:, :1])], 1)
    vectors = circular.embed(data.angles).flatten(1)
    goal = torch.cat([vectors, LINEAR_SCALE * data.numbers], 1)
    nearest = torch.full((len(data),), math.inf, dtype=torch.float64)
    for part in range(shape.parts - int(guesses)):
        far = nearest > _FAR if part else torch.ones(len(data), dtype=torch.bool)
        if far.sum() < 5 * x.shape[1] and part:
            far = nearest >= nearest.quantile(0.9)
        own = x[far]
        gram = own.T @ own + 1.0 * torch.eye(x.shape[1], dtype=x.dtype)
        regression = torch.linalg.solve(gram, own.T @ goal[far])
        direct[:, part, 1 : 1 + shape.locations] = regression
        direct[-1, part, 0] = -float(part)  # a further part is rarer
        direct[-1, part, 2 + shape.locations :] = _FIRST_RATIO
        nearest = torch.minimum(nearest, _distance(x @ regression, goal, shape))
    flat = {"direct": direct.flatten(1)}
    flat["into"] = 0.3 * torch.randn(shape.shapes["into"], generator=torch.Generator().manual_seed(0)).double()
    flat["out"] = torch.zeros(shape.shapes["out"], dtype=torch.float64)
    if guesses:
        direct[-1, -1, 0] = -3.0
    return torch.cat([flat[name].flatten() for name in shape.shapes])


def _distance(found: Tensor, goal: Tensor, shape: Sizes) -> Tensor:
    """How far responses are from a part's predictions, [N]: radians and s.d. together."""
    angles = 2 * shape.circular
    gap = circular.distance(
        circular.angle(found[:, :angles].unflatten(1, (-1, 2))), circular.angle(goal[:, :angles].unflatten(1, (-1, 2)))
    )
    rest = (found[:, angles:] - goal[:, angles:]) / LINEAR_SCALE
    return torch.sqrt(gap.square().sum(1) + rest.square().sum(1))


def _kept(scores: dict[Candidate, np.ndarray]) -> Candidate:
    """The first candidate whose held-out log density is within a standard error of the best."""
    best = max(scores, key=lambda candidate: scores[candidate].mean())
    for candidate, score in scores.items():
        short_by = scores[best] - score
        if short_by.mean() <= short_by.std(ddof=1) / math.sqrt(len(score)):
            return candidate
    return best


def _table(scores: dict[Candidate, np.ndarray], kept: Candidate) -> pd.DataFrame:
    rows = []
    for candidate, score in scores.items():
        gap = score - scores[kept]
        rows.append(
            {
                "name": candidate.name,
                "parts": candidate.parts,
                "hidden": candidate.hidden,
                "log_density": score.mean(),
                "difference": gap.mean(),
                "error": gap.std(ddof=1) / math.sqrt(len(gap)),
            }
        )
    return pd.DataFrame(rows)


def save_density(found: DensityFit, path: Path) -> None:
    """The fit as a file, without its trials."""
    behaviour = found.behaviour
    plain = {name: getattr(behaviour, name) for name in ("weights", "parts", "hidden", "members", "guesses")}
    write_json(
        path,
        {
            "format": 1,
            "behaviour": plain,
            "kept": found.kept,
            "comparison": found.comparison.to_dict("list"),
            "rank": found.rank.tolist(),
            "position": {name: values.tolist() for name, values in found.position.items()},
        },
    )


def load_density(path: Path, design: Design) -> DensityFit:
    """The fit of a design from its file."""
    table = read_json(path)
    with understood(path):
        behaviour = LearnedDensity(design.responses, design.stimuli, **table["behaviour"])
        position = {name: np.array(values) for name, values in table["position"].items()}
        comparison = pd.DataFrame(table["comparison"])
        return DensityFit(design, comparison, table["kept"], behaviour, np.array(table["rank"]), position)


# --- Calibration ---


def _held_out(
    design: Design, behaviours: list[LearnedDensity], fold: np.ndarray, seed: int, samples: int = 200
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Ranks of responses among samples of the density that was fitted without them."""
    rank = np.zeros(len(design))
    position = {variable.name: np.zeros(len(design)) for variable in design.responses}
    for k, behaviour in enumerate(behaviours):
        rows = np.flatnonzero(fold == k)
        own = design.only(rows)
        conditions, responses = conditions_of(own), responses_of(own)
        drawn = behaviour.values(
            behaviour.sample(conditions, samples, rng.generator(seed, k, "calibration"))
        )  # [C, K] each
        with torch.no_grad():
            parts = behaviour.at(conditions)
            density = _densities(behaviour, parts, responses, None)
            others = _densities(behaviour, parts, drawn, samples)
        rank[rows] = (others < density[:, None]).double().mean(1).numpy()
        for variable in design.responses:
            value, sample = responses[variable.name], drawn[variable.name]
            if variable.kind == "circular":
                middle = circular.mean(sample, 1)
                value, sample = circular.wrap(value - middle), circular.wrap(sample - middle[:, None])
            position[variable.name][rows] = (sample < value[:, None]).double().mean(1).numpy()
    return rank, position


def _densities(behaviour: LearnedDensity, parts: Parts, responses: dict[str, Tensor], samples: int | None) -> Tensor:
    """log density at one response per condition [C], or at several, [C, K]."""
    if samples is None:
        angles, numbers = response_arrays(behaviour.responses, responses)
        return torch.logsumexp(log_density(parts, angles, numbers), -1).mean(0)
    columns = [
        _densities(behaviour, parts, {name: values[:, k] for name, values in responses.items()}, None)
        for k in range(samples)
    ]
    return torch.stack(columns, 1)


# --- Modes ---

# A mode counts if its basin holds this share of responses, if the density between it and a higher one falls to this
# share of its height, and if this share of the members has it, too.
_LEAST_MASS, _DEEP, _AGREED = 0.005, 0.5, 0.8
_GRID = 180


@dataclass(frozen=True)
class Modes:
    """Modes of the density at each of C conditions.

    count [C]; second [C]: share of responses in the basins of all but the highest mode; low, high: that share's mean
    over conditions in the members, the smallest and the largest; offset [C]: from the highest to the next mode (radians
    or standard units; NaN where there is one).
    """

    count: np.ndarray
    second: np.ndarray
    rates: np.ndarray
    offset: np.ndarray

    @property
    def rate(self) -> tuple[float, float, float]:
        """Share of responses outside of the highest mode, over all conditions, with its 95 % interval over members
        (their spread is that of resampled trials)."""
        mean = float(self.second.mean())
        half = 2.8 * float(self.rates.std(ddof=1)) if len(self.rates) > 1 else math.nan
        return mean, max(mean - half, 0.0), mean + half

    def sentence(self, response: Variable) -> str:
        """How many modes there are, in words."""
        several = float((self.count > 1).mean())
        if several < 0.05:
            return "Responses have one mode."
        value, low, high = (100 * share for share in self.rate)
        offset = np.nanmedian(np.abs(self.offset))
        if response.kind == "circular":
            where = f"{np.degrees(offset):.0f}° away" if response.period > 7 else f"{offset:.2f} rad away"
            where = f"{offset * response.period / (2 * np.pi):.0f}° away" if response.period in (180, 360) else where
        else:
            where = f"{offset * response.scale:.3g} away"
        return (
            f"Responses have more than one mode in {100 * several:.0f} % of trials: {value:.1f} %"
            f" [{low:.1f}, {high:.1f}] of all responses belong to another mode, typically {where}."
        )


def modes_of(behaviour: LearnedDensity, conditions: Conditions, most: int = 400, seed: int = 0) -> Modes:
    """The modes at some of the conditions."""
    (variable,) = behaviour.responses
    count = len(next(iter(conditions.values())))
    if count > most:
        rows = np.sort(np.random.default_rng(seed).choice(count, most, replace=False))
        conditions = {name: values[rows] for name, values in conditions.items()}
    density = _on_grid(behaviour, conditions)  # [E, C, G]
    closed = variable.kind == "circular"
    together = [_modes_in(curve, closed) for curve in density.mean(0)]
    alone = [[_modes_in(curve, closed) for curve in member] for member in density]
    numbers, second, offset = [], [], []
    for c, (places, masses) in enumerate(together):
        agreed = [0] + [
            k
            for k in range(1, len(places))
            if np.mean([_has(member[c][0], places[k], closed) for member in alone]) >= _AGREED
        ]
        numbers.append(len(agreed))
        second.append(masses[agreed[1:]].sum())
        step = (2 * np.pi if closed else _span()) / _GRID
        gap = (places[agreed[1]] - places[0]) * step if len(agreed) > 1 else np.nan
        offset.append(float(circular.wrap(gap)) if closed and np.isfinite(gap) else gap)
    several = np.array(numbers) > 1
    rates = np.array(
        [np.mean([member[c][1][1:].sum() if several[c] else 0.0 for c in range(len(several))]) for member in alone]
    )
    return Modes(np.array(numbers), np.array(second), rates, np.array(offset))


def _span() -> float:
    return 10.0  # standard units, from -5 to 5


def _on_grid(behaviour: LearnedDensity, conditions: Conditions) -> np.ndarray:
    """Density of each member on a grid of responses, [E, C, grid]."""
    (variable,) = behaviour.responses
    if variable.kind == "circular":
        grid = -math.pi + 2 * math.pi / _GRID * torch.arange(_GRID, dtype=torch.float64)
    else:
        grid = -_span() / 2 + _span() / _GRID * torch.arange(_GRID, dtype=torch.float64)
    parts = behaviour.at(conditions)
    found = []
    for value in grid:
        own = value.expand(len(next(iter(conditions.values()))), 1)
        angles, numbers = (own, own[:, :0]) if variable.kind == "circular" else (own[:, :0], own)
        found.append(torch.logsumexp(log_density(parts, angles, numbers), -1).exp())
    return torch.stack(found, -1).numpy()


def _modes_in(curve: np.ndarray, closed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Places (in steps of the grid) and basins' masses of the modes of a density, highest first."""
    padded = np.concatenate([curve[-1:], curve, curve[:1]]) if closed else np.concatenate([[0.0], curve, [0.0]])
    peaks = np.flatnonzero((padded[1:-1] > padded[:-2]) & (padded[1:-1] >= padded[2:]))
    peaks = peaks[np.argsort(-curve[peaks])]
    if len(peaks) == 0:
        return np.array([int(curve.argmax())]), np.ones(1)
    mass = curve / curve.sum()
    kept = [int(peaks[0])]
    ways = [_lowest_on_the_way(curve, kept[0], closed)]
    for peak in peaks[1:]:
        if all(way[peak] < _DEEP * curve[peak] for way in ways):
            kept.append(int(peak))
            ways.append(_lowest_on_the_way(curve, int(peak), closed))
    basins = np.argmax(ways, axis=0)  # a place belongs to the peak that is reached through the highest valley
    masses = np.array([mass[basins == k].sum() for k in range(len(kept))])
    large = [0] + [k for k in range(1, len(kept)) if masses[k] >= _LEAST_MASS]
    return np.array(kept)[large], masses[large]


def _lowest_on_the_way(curve: np.ndarray, peak: int, closed: bool) -> np.ndarray:
    """The lowest density between a peak and each place of the grid; on a circle, on the way whose lowest is higher."""
    if closed:
        turned = np.roll(curve, -peak)
        forward = np.minimum.accumulate(turned)
        backward = np.roll(np.minimum.accumulate(np.roll(turned[::-1], 1))[::-1], 1)
        return np.roll(np.maximum(forward, backward), peak)
    left = np.minimum.accumulate(curve[peak::-1])[::-1]
    return np.concatenate([left, np.minimum.accumulate(curve[peak:])[1:]])


def _has(places: np.ndarray, place: int, closed: bool, within: int = 15) -> bool:
    """Whether a mode is near a place of the grid."""
    gap = np.abs(places - place)
    return bool((np.minimum(gap, _GRID - gap) if closed else gap).min() <= within)
