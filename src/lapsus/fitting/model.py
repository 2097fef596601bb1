"""The joint density of responses and parameters. Every coordinate has a standard normal prior; `unpack` says what it
means.

The swap function of a group (a set size; with "hierarchical" a subject in it; with `by` a condition in those) is

    f(Δ) = level + shape(Δ)

    shape          coefficients a_k (swap_prior.py), log scale N(log 0.7, 1), log(tau − 4) N(0.5, 1), one a feature;
                   with sets = "shapes" plus a deviation of each set size, of log scale N(log 0.3, 0.7)
    level          mean N(−2.5, 2), plus an offset of each set size, of log s.d. N(log 0.7, 0.7), unless
                   sets = "shared"; the cued item's logit is 0, so f is relative to it
    emission       of each set size: the emission's own normal priors
    guess          of each set size: logit N(−3, 2)
    bias           N(0, 0.15) radians, of all set sizes

and with "hierarchical" level, emission, guess and bias have, each with its own log s.d., an offset of each subject
(N(log 0.4, 0.7)) and, bias and the scatter's tails (`Emission.tails`) aside, a deviation of each subject in each set
size (N(log 0.2, 0.7)): a few dozen trials say nothing of tails.

With `by` (one or several factors) all but the bias have an effect of each level of a factor but its first (the
reference), N(0, 1); a deviation of each combination of several factors, and of each condition in each set size
(log s.d. N(log 0.5, 0.7)), so that the effect of a condition may differ between set sizes; and an offset of each
subject in each condition (N(log 0.2, 0.7)), tails aside, where subjects have more than one.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lapsus.fitting.emissions import HALF, NODES, Tabulated
from lapsus.fitting.likelihood import Likelihood, Parameters
from lapsus.fitting.swap_models import SWAP_MODELS
from lapsus.fitting.swap_prior import TAU_MIN, SwapPrior
from lapsus.trials import Trials

__all__ = ["SETS", "MixtureModel", "Tier", "condition_labels", "natural_order"]

SETS = ("shared", "offsets", "shapes")  # how f differs between set sizes, simplest first
MEAN, SCALE, TAU, GUESS, BIAS = (-2.5, 2.0), (math.log(0.7), 1.0), (0.5, 1.0), (-3.0, 2.0), 0.15
OFFSET, SUBJECT, DEVIATION = (math.log(0.7), 0.7), (math.log(0.4), 0.7), (math.log(0.2), 0.7)
SHAPES, EFFECT, INTERACTION = (math.log(0.3), 0.7), 1.0, (math.log(0.5), 0.7)


class Tier:
    """Offsets of units (set sizes, subjects, …) around what is above them: value = s.d. · z for some rows of eta.

    rows [R]      which of eta's rows (parameters of a group) they shift
    unit [G]      the unit of each group
    z, sd         slices of theta: coordinates of the offsets [R · units] and of the log s.d. [R]
    """

    def __init__(
        self,
        name: str,
        rows: list[int],
        unit: np.ndarray,
        prior: tuple[float, float],
        widths: Tensor,
        of_subjects: bool = False,
    ):
        self.name, self.rows, self.prior, self.of_subjects = name, rows, prior, of_subjects
        self.count = int(unit.max()) + 1
        self.unit = torch.tensor(unit)
        self.widths = widths[rows][:, None]  # an s.d. of 1 is one of these units
        self.z, self.sd = slice(0), slice(0)
        self.each = np.array_equal(unit, np.arange(len(unit)))  # every group is a unit: there is nothing to sum
        self.gather = torch.zeros(self.count, 0 if self.each else len(unit), dtype=torch.float64)
        if not self.each:
            self.gather[self.unit, torch.arange(len(unit))] = 1.0

    def spread(self, theta: Tensor) -> Tensor:
        """The s.d. [R, S]."""
        return self.widths * torch.exp(self.prior[0] + self.prior[1] * theta[self.sd])

    def offsets(self, theta: Tensor) -> Tensor:
        """s.d. · z of every unit [R, units, S]."""
        z = theta[self.z].reshape(len(self.rows), self.count, -1)
        return self.spread(theta)[:, None] * z

    def sum(self, values: Tensor) -> Tensor:
        """Sums over the groups of each unit: [R, G, S] → [R, units, S]."""
        return values if self.each else torch.einsum("ug,rgs->rus", self.gather, values)

    def add(self, eta: Tensor, offsets: Tensor) -> Tensor:
        """eta [F, G, S] with offsets [R, units, S] added to its rows."""
        more = torch.zeros_like(eta)
        more[self.rows] = offsets[:, self.unit]
        return eta + more


class MixtureModel:
    """One swap model on one set of trials.

    name        of the swap model (swap_models.py)
    sets        how f differs between set sizes: shared, offsets or shapes
    by          columns whose values are compared; the first level of each (`reference`, or the first by name) is the
                one that effects are relative to
    labels      what each group is: (set size, subject or "all", condition or "all")
    rows        names of the parameters that every group has: eta's rows
    dimension   number of coordinates
    """

    def __init__(
        self,
        trials: Trials,
        name: str,
        emission: Any,
        uniform: bool = True,
        even: bool = True,
        hierarchical: bool = False,
        sets: str = "offsets",
        bias: bool = False,
        by: tuple[str, ...] = (),
        reference: Mapping[str, str] | None = None,
        harmonics: int | None = None,
    ):
        self.trials, self.name, self.emission, self.uniform = trials, name, emission, uniform
        self.even, self.hierarchical, self.bias = even, hierarchical, bias
        self.by, self.reference = tuple(by), dict(reference or {})
        self.swap_model = SWAP_MODELS[name]
        self.sizes = sorted({int(n) for n in trials.set_size})
        several = [n for n in self.sizes if n > 1]
        self.sets = sets if len(several) > 1 and self.swap_model.swaps else "shared"
        features = self.swap_model.features
        if self.sets == "shapes" and not features:
            self.sets = "offsets"
        self.prior = SwapPrior(features, even, harmonics) if features else None
        self._label_groups()
        self.rows = [*emission.names, *["bias"] * bias, *["guess"] * uniform, *["level"] * self.swap_model.swaps]
        self._likelihoods: dict[torch.dtype, Likelihood] = {}
        if self.prior is not None:
            self.likelihood()  # distances that the model needs and the trials lack are missed now
        self._place(several)

    def _label_groups(self) -> None:
        trials = self.trials
        everyone = np.full(len(trials), "all", object)
        who = trials.subject.astype(str) if self.hierarchical else everyone
        self.levels = {factor: self._levels(factor) for factor in self.by}
        what = condition_labels(trials, self.by) if self.by else everyone
        self.subjects = natural_order(set(who))
        self.conditions = self._ordered_conditions(what)
        keys = list(zip(trials.set_size.tolist(), who.tolist(), what.tolist()))
        subject_number = {name: i for i, name in enumerate(self.subjects)}
        condition_number = {name: i for i, name in enumerate(self.conditions)}
        self.labels = sorted(set(keys), key=lambda k: (k[0], subject_number[k[1]], condition_number[k[2]]))
        number = {label: i for i, label in enumerate(self.labels)}
        self.groups = np.array([number[key] for key in keys])
        self._size = np.array([self.sizes.index(size) for size, _, _ in self.labels])
        self._subject = np.array([subject_number[subject] for _, subject, _ in self.labels])
        self._condition = np.array([condition_number[condition] for _, _, condition in self.labels])

    def _levels(self, factor: str) -> list[str]:
        """The levels of a factor, its reference first."""
        levels = natural_order(set(self.trials.conditions[factor].astype(str)))
        reference = self.reference.get(factor, levels[0])
        return [reference, *(level for level in levels if level != reference)]

    def _ordered_conditions(self, labels: np.ndarray) -> list[str]:
        """The combinations of levels that occur, and in `_effects` [conditions, levels but the first] what each has."""
        if not self.by:
            return ["all"]
        rows = self.trials.conditions[list(self.by)].astype(str)
        levels_of = dict(zip(labels, rows.itertuples(index=False, name=None)))
        order = {factor: {level: i for i, level in enumerate(levels)} for factor, levels in self.levels.items()}
        names = sorted(levels_of, key=lambda name: [order[f][v] for f, v in zip(self.by, levels_of[name])])
        self.levels_of = {name: dict(zip(self.by, levels_of[name])) for name in names}
        self._effects = torch.tensor(
            [
                [
                    float(self.levels_of[name][factor] == level)
                    for factor in self.by
                    for level in self.levels[factor][1:]
                ]
                for name in names
            ],
            dtype=torch.float64,
        )
        return names

    def _place(self, several: list[int]) -> None:
        """Where every part lies in theta."""
        emission, rows = self.emission, self.rows
        priors = dict(zip(emission.names, zip(emission.means, emission.scales)))
        priors |= {"bias": (0.0, BIAS), "guess": GUESS, "level": MEAN}
        # Offsets of a bias are measured in tenths of a radian, the others in units of a logit or a logarithm.
        widths = torch.tensor([0.1 if row == "bias" else 1.0 for row in rows], dtype=torch.float64)
        self._centre = torch.tensor([priors[row][0] for row in rows], dtype=torch.float64)[:, None, None]
        self._width = torch.tensor([priors[row][1] for row in rows], dtype=torch.float64)[:, None, None]
        # Level and bias have one base for all set sizes, the others one each.
        common = [i for i, row in enumerate(rows) if row in ("bias", "level")]
        each = [i for i in range(len(rows)) if i not in common]
        self._common, self._each = common, each
        counts = {
            "a": self.prior.size if self.prior else 0,
            "a_size": self.prior.size * len(several) if self.prior and self.sets == "shapes" else 0,
            "shape_sd": int(self.prior is not None and self.sets == "shapes"),
            "scale": int(self.prior is not None),
            "tau": len(self.prior.features) if self.prior else 0,
            "common": len(common),
            "base": len(each) * len(self.sizes),
        }
        unbiased = [i for i, row in enumerate(rows) if row != "bias"]
        self._contrasted = unbiased if self.by else []
        counts["effect"] = len(self._contrasted) * (self._effects.shape[1] if self.by else 0)
        self.slices, at = {}, 0
        for part, count in counts.items():
            self.slices[part] = slice(at, at + count)
            at += count
        first = self.slices["base"].start + len(emission.names) * len(self.sizes)
        self.slices["guess"] = slice(first, first + len(self.sizes) * self.uniform)  # a part of the base
        self.tiers: list[Tier] = []
        if self.sets != "shared":
            self.tiers.append(Tier("set size", [rows.index("level")], self._size, OFFSET, widths))
        if len(self.by) > 1:
            self.tiers.append(Tier("condition", unbiased, self._condition, INTERACTION, widths))
        if self.by and len(self.sizes) > 1:
            cells = _numbered(self._size, self._condition)
            self.tiers.append(Tier("condition in set size", unbiased, cells, INTERACTION, widths))
        if self.hierarchical and len(self.subjects) > 1:
            everything, pairs = list(range(len(rows))), _numbered(self._subject, self._condition)
            self.tiers.append(Tier("subject", everything, self._subject, SUBJECT, widths, True))
            plain = [i for i in unbiased if rows[i] != emission.tails]
            if pairs.max() + 1 > len(self.subjects):
                self.tiers.append(Tier("subject in condition", plain, pairs, DEVIATION, widths, True))
            if len(self.labels) > pairs.max() + 1:
                self.tiers.append(Tier("group", plain, np.arange(len(self.labels)), DEVIATION, widths, True))
        for tier in self.tiers:
            tier.z = slice(at, at + len(tier.rows) * tier.count)
            tier.sd = slice(tier.z.stop, tier.z.stop + len(tier.rows))
            at = tier.sd.stop
        self.dimension = at

    def in_words(self, condition: str) -> str:
        """A condition with the names of its factors: "cue valid, group old"."""
        return ", ".join(f"{factor} {level}" for factor, level in self.levels_of[condition].items())

    def units(self) -> tuple[Tensor, Tensor] | None:
        """Coordinates that matter to some groups alone: theirs [U, k], and the unit of each group [G].

        These are the deviations of single groups where there are such, else what each set size has; None where set
        sizes have subjects (or conditions) in common but groups no deviations."""
        last = self.tiers[-1] if self.tiers else None
        if last is not None and last.each and len(last.rows) > 1:
            return torch.arange(last.z.start, last.z.stop).reshape(len(last.rows), -1).T, last.unit
        if last is not None and last.name != "set size":
            return None
        parts = [self.slices["base"], *(tier.z for tier in self.tiers)]
        places = [torch.arange(part.start, part.stop).reshape(-1, len(self.sizes)) for part in parts]
        return torch.cat(places).T, torch.tensor(self._size)

    def forget(self) -> None:
        """Let go of what the likelihood keeps for each trial; it is made again when it is asked for."""
        self._likelihoods.clear()

    def likelihood(self, dtype: torch.dtype = torch.float64) -> Likelihood:
        """The likelihood of the trials; float32 for many draws, float64 for derivatives of derivatives."""
        if not self.uniform or self.emission.name == "plane":
            dtype = torch.float64  # without guesses a far response's density would be lost in float32
        if dtype not in self._likelihoods:
            basis = self.prior.basis if self.prior else None
            nodes = NODES if self.bias else HALF
            # Rows that interpolate take memory for each item, so tables of few trials go without.
            many = self.trials.set_size.sum() > 4 * max(nodes * len(self.labels), NODES * len(self.sizes))
            tabulated = many and self.emission.name == "variable_precision"
            self._likelihoods[dtype] = Likelihood(
                self.trials,
                Tabulated(self.emission, self.bias) if tabulated else self.emission,
                self.groups,
                self.prior.features if self.prior else (),
                self.even,
                self.bias,
                basis,
                self.sets == "shapes",
                dtype,
            )
        return self._likelihoods[dtype]

    def base(self, theta: Tensor) -> Tensor:
        """eta [F, G, S] above all tiers."""
        columns = theta.shape[1]
        z = torch.zeros(len(self.rows), len(self.labels), columns, dtype=theta.dtype)
        z[self._common] = theta[self.slices["common"]][:, None].expand(-1, len(self.labels), -1)
        each = theta[self.slices["base"]].reshape(len(self._each), len(self.sizes), columns)
        z[self._each] = each[:, torch.tensor(self._size)]
        eta = self._centre + self._width * z
        if self._contrasted:
            effect = EFFECT * theta[self.slices["effect"]].reshape(len(self._contrasted), -1, columns)
            more = torch.zeros_like(eta)
            more[self._contrasted] = (self._effects @ effect)[:, torch.tensor(self._condition)]
            eta = eta + more
        return eta

    def coefficients(self, theta: Tensor) -> Tensor | None:
        """Fourier coefficients of the shape [C, K, S]: C = 1, or the number of set sizes beyond one item."""
        if self.prior is None:
            return None
        width, a = self.shape_widths(theta), theta[self.slices["a"]]
        if self.sets != "shapes":
            return (width * a)[None]
        own = theta[self.slices["a_size"]].reshape(-1, *a.shape)
        return width * (a + self.shape_sd(theta) * own)

    def shape_widths(self, theta: Tensor) -> Tensor:
        """Prior s.d. of the shape's coefficients [K, S]."""
        if self.prior is None:
            raise ValueError("a model whose swaps depend on no distance has no shape")
        tau = TAU_MIN + torch.exp(TAU[0] + TAU[1] * theta[self.slices["tau"]])
        return torch.exp(SCALE[0] + SCALE[1] * theta[self.slices["scale"]]) * self.prior.spectrum(tau).sqrt()

    def shape_sd(self, theta: Tensor) -> Tensor:
        """How far the shapes of set sizes differ, relative to the shape itself [1, S]."""
        return torch.exp(SHAPES[0] + SHAPES[1] * theta[self.slices["shape_sd"]])

    def unpack(self, theta: Tensor) -> Parameters:
        """theta [P, S] → what the likelihood depends on."""
        eta = self.base(theta)
        for tier in self.tiers:
            eta = tier.add(eta, tier.offsets(theta))
        return self.as_parameters(self.coefficients(theta), eta)

    def typical(self, theta: Tensor) -> Parameters | None:
        """Draws of the parameters of a typical subject; None where the model has no subjects."""
        if not any(tier.of_subjects for tier in self.tiers):
            return None
        eta = self.base(theta)
        for tier in self.tiers:
            if not tier.of_subjects:
                eta = tier.add(eta, tier.offsets(theta))
        return self.as_parameters(self.coefficients(theta), eta)

    def as_parameters(self, coefficients: Tensor | None, eta: Tensor) -> Parameters:
        """Parameters from the shape's coefficients and eta [F, G, S]."""
        row = {name: eta[i] for i, name in enumerate(self.rows)}
        emission = eta[: len(self.emission.names)]
        return Parameters(coefficients, row.get("level"), emission, row.get("bias"), row.get("guess"))

    def as_eta(self, p: Parameters) -> Tensor:
        """eta [F, G, S] from Parameters."""
        return torch.cat([p.emission, *(part[None] for part in (p.bias, p.guess, p.level) if part is not None)])

    def log_joint(
        self, theta: Tensor, prior: float = 1.0, dtype: torch.dtype = torch.float64, thinned: bool = False
    ) -> tuple[Tensor, Tensor]:
        """log p(responses, theta) up to a constant [S], and its gradient [P, S]; prior = 0 leaves the likelihood;
        thinned: from some of the trials, where they are very many."""
        theta = theta.detach().requires_grad_(True)
        with torch.enable_grad():
            p = self.unpack(theta)
        likelihood = self.likelihood(dtype)
        value, on = (likelihood.thinned() if thinned else likelihood).total(p)
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(p.dot(on), theta)
        theta = theta.detach()
        return value - 0.5 * prior * (theta**2).sum(0), gradient - prior * theta

    def simulate(self, p: Parameters, rng: np.random.Generator) -> Trials:
        """The same trials with responses drawn from the model at parameters with one column."""
        trials, count = self.trials, len(self.trials)
        item, guessed = np.zeros(count, int), np.zeros(count, bool)
        for rows, weights, guess in self.likelihood().weights(p):
            cumulative = np.cumsum(weights[:, :, 0] / (1 - guess[:, 0]), 0)
            item[rows] = np.minimum((rng.uniform(size=len(rows)) > cumulative).sum(0), len(weights) - 1)
            guessed[rows] = rng.uniform(size=len(rows)) < guess[:, 0]
        angle = trials.report[np.arange(count), item]
        if p.bias is not None:
            angle = angle + p.bias[self.groups, 0].numpy()
        # A guess is anywhere already: in the plane it gets the same noise, on the circle more noise changes nothing.
        angle = np.where(guessed, rng.uniform(-np.pi, np.pi, count), angle)
        response = self.emission.sample(p.emission[:, self.groups, 0].numpy(), angle, rng)
        point = response if response.ndim == 2 else None
        if point is not None:
            response = np.arctan2(point[:, 1], point[:, 0])
        return trials.with_responses(response, point)

    def initial(self, mean: float = -2.5) -> np.ndarray:
        """A starting point [P] with f = mean everywhere and an emission read off the central errors."""
        theta = np.zeros(self.dimension)
        if "level" in self.rows:
            common = theta[self.slices["common"]]
            common[self._common.index(self.rows.index("level"))] = (mean - MEAN[0]) / MEAN[1]
        start = (np.array(self.emission.initial(self.trials)) - self.emission.means) / np.array(self.emission.scales)
        theta[self.slices["base"]].reshape(len(self._each), -1)[: len(start)] = start[:, None]
        return theta

    def adopt(self, other: "MixtureModel", theta: np.ndarray) -> np.ndarray:
        """A starting point [P] from another model's theta on the same trials: what the two have in common is the
        other's, the rest as in `initial`."""
        start = self.initial()
        if self.swap_model.features == other.swap_model.features:
            for part in ("a", "scale", "tau"):
                start[self.slices[part]] = theta[other.slices[part]]
        given = other._rows_by_part()
        for part, (place, rows) in self._rows_by_part().items():
            if part not in given:
                continue
            its_place, its_rows = given[part]
            values = dict(zip([other.rows[row] for row in its_rows], theta[its_place].reshape(len(its_rows), -1)))
            mine = start[place].reshape(len(rows), -1)
            for i, row in enumerate(rows):
                mine[i] = values.get(self.rows[row], mine[i])
        return start

    def _rows_by_part(self) -> dict[str, tuple[slice, list[int]]]:
        """Of every part of theta that is an array by rows of eta, its place and those rows."""
        parts = {"common": (self.slices["common"], self._common), "base": (self.slices["base"], self._each)}
        parts["effect"] = (self.slices["effect"], self._contrasted)
        for tier in self.tiers:
            parts[tier.name] = (tier.z, tier.rows)
            parts[f"{tier.name}, s.d."] = (tier.sd, tier.rows)
        return {name: (place, rows) for name, (place, rows) in parts.items() if rows}


def condition_labels(trials: Trials, by: tuple[str, ...]) -> np.ndarray:
    """The condition of every trial: its value in a column, or those in several."""
    columns = [trials.conditions[name].astype(str) for name in by]
    return np.array([", ".join(values) for values in zip(*columns)], object)


def _numbered(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pairs of numbers, numbered in the order of the pairs."""
    pairs = list(zip(first.tolist(), second.tolist()))
    number = {pair: i for i, pair in enumerate(sorted(set(pairs)))}
    return np.array([number[pair] for pair in pairs])


def natural_order(names: Iterable) -> list[str]:
    """Names sorted as people sort them: s2 before s10."""

    def key(name: object) -> list[tuple[int, str]]:
        parts = re.split(r"(\d+)", str(name))
        return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]

    return sorted(map(str, names), key=key)
