"""Does a network answer as the learned density does, and as the subjects did, in every part of a design?

Three things are compared: the energy excess over the density; how often a 90 % region of the network's responses to a
trial's own stimuli holds the response that was given; and, where responses have several modes, how often they belong to
another one than the highest.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from lapsus.behaviour.learned import LearnedDensity, other_mode
from lapsus.circular import embed
from lapsus.designs import Design, Variable
from lapsus.errors import LapsusError
from lapsus.evaluation.against_target import energy, respond
from lapsus.evaluation.verdict import RELATIVE_EXCESS
from lapsus.fitting.density import conditions_of, responses_of
from lapsus.training.model import Model

__all__ = ["DesignMatch", "Group", "groups_of", "match_design", "problems_of", "responses_to_trials"]

# Share of responses that a 90 % region may hold, and how far the rate of another mode may be off: by half of it, and no
# finer than half a per cent. Written down before any network was compared.
COVERAGE = (0.84, 0.96)
OF_RATE, LEAST_RATE = 0.5, 0.005
_LEVEL = 0.9
_TRIALS = 32
# Most trials of the table that are shown again.
_MOST = 2048


@dataclass(frozen=True)
class Group:
    """Trials that are looked at together: what they have in common, and their rows."""

    name: str
    rows: np.ndarray


@dataclass(frozen=True)
class DesignMatch:
    """One network beside the density and the data.

    excess: energy excess relative to the density's own score; coverage: group → (share, low, high) of responses inside
    the network's 90 % regions; modes: of the network and of the density, how often a response belongs to another mode,
    None where there is one; problems: what is not matched, in sentences.
    """

    excess: float
    coverage: dict[str, tuple[float, float, float]]
    modes: tuple[float, float] | None
    problems: list[str] = field(default_factory=list)

    @property
    def matched(self) -> bool:
        """Whether nothing is beyond its limit."""
        return not self.problems


def groups_of(design: Design, most: int = 3) -> list[Group]:
    """All trials, and those at each level of each category and of each number in thirds."""
    groups = [Group("all trials", np.arange(len(design)))]
    for variable in design.stimuli:
        values = design.values[variable.name]
        there = np.isfinite(values)
        if variable.kind == "categorical" and 1 < len(variable.levels) <= 6:
            cuts = [(f"{variable.name} {level}", values == k) for k, level in enumerate(variable.levels)]
        elif variable.kind == "linear" and there.any():
            cuts = _thirds(variable, values, most)
        else:
            continue
        groups += [Group(name, np.flatnonzero(rows)) for name, rows in cuts if rows.sum() >= 50]
    return groups


def _thirds(variable: Variable, values: np.ndarray, most: int) -> list[tuple[str, np.ndarray]]:
    """The levels of a number where it has few, else ranges with about as many trials each."""
    levels = np.unique(values[np.isfinite(values)])
    if len(levels) <= 6:
        return [(f"{variable.name} {_text(variable, level)}", values == level) for level in levels]
    edges = np.nanquantile(values, np.linspace(0, 1, most + 1))
    return [
        (
            f"{variable.name} {_text(variable, low)} to {_text(variable, high)}",
            (values >= low) & ((values < high) | (high == edges[-1])),
        )
        for low, high in itertools.pairwise(edges)
    ]


def _text(variable: Variable, value: float) -> str:
    return f"{float(variable.decode(np.array([value]))[0]):.3g}"


def responses_to_trials(model: Model, design: Design, rows: np.ndarray, trials: int = _TRIALS, seed: int = 0) -> Tensor:
    """Responses x_T [d, trial, K] of a network to the stimuli of some trials, each with its own durations."""
    conditions = conditions_of(design.only(rows))
    found = torch.zeros(model.behaviour.response_size, len(rows), trials)
    if not design.durations:
        return respond(model, conditions, trials, seed)
    names = list(design.durations)
    steps = np.stack([design.durations[name][rows] for name in names], 1)
    for own in np.unique(steps, axis=0):
        here = np.flatnonzero((steps == own).all(1))
        some = {name: values[here] for name, values in conditions.items()}
        found[:, here] = respond(model.at(**dict(zip(names, own.tolist()))), some, trials, seed)
    return found


def match_design(model: Model, design: Design, seed: int = 0) -> DesignMatch:
    """A network beside the density that it was trained on and the trials that this was learned from."""
    behaviour = model.behaviour
    if not isinstance(behaviour, LearnedDensity):
        raise LapsusError("this network was not trained on a learned density")
    rows = np.arange(len(design))
    if len(rows) > _MOST:
        rows = np.sort(np.random.default_rng(seed).choice(rows, _MOST, replace=False))
    shown = design.only(rows)
    conditions = conditions_of(shown)
    responses = responses_to_trials(model, design, rows, seed=seed)
    wanted = behaviour.sample(conditions, _TRIALS, torch.Generator().manual_seed(seed))
    excess = energy(behaviour, conditions, responses, wanted)["energy_excess_relative"]
    rank = _rank(behaviour, responses_of(shown), responses)
    coverage = {}
    for group in groups_of(shown):
        inside = float((rank[group.rows] <= _LEVEL).mean())
        half = 1.96 * math.sqrt(max(inside * (1 - inside), 1e-4) / len(group.rows))
        coverage[group.name] = (inside, inside - half, inside + half)
    modes = _modes(behaviour, conditions, responses, wanted)
    return DesignMatch(excess, coverage, modes, problems_of(excess, coverage, modes))


def problems_of(
    excess: float, coverage: dict[str, tuple[float, float, float]], modes: tuple[float, float] | None
) -> list[str]:
    """What is beyond its limit, in sentences; the numbers are those of a DesignMatch."""
    problems = []
    if excess > RELATIVE_EXCESS:
        problems.append(
            f"Its energy excess is {100 * excess:.1f} % of the density's score; {100 * RELATIVE_EXCESS:.0f} % are"
            " allowed."
        )
    for name, (inside, low, high) in coverage.items():
        if high < COVERAGE[0] or low > COVERAGE[1]:
            problems.append(
                f"Its 90 % regions hold {100 * inside:.0f} % of responses ({name});"
                f" {100 * COVERAGE[0]:.0f} to {100 * COVERAGE[1]:.0f} % are allowed."
            )
    if modes is not None and abs(modes[0] - modes[1]) > max(OF_RATE * modes[1], LEAST_RATE):
        problems.append(
            f"{100 * modes[0]:.1f} % of its responses belong to another mode, where {100 * modes[1]:.1f} % are due."
        )
    return problems


def _modes(
    behaviour: LearnedDensity, conditions: dict[str, Tensor], responses: Tensor, wanted: Tensor
) -> tuple[float, float] | None:
    if len(behaviour.responses) > 1 or behaviour.responses[0].kind != "circular":
        return None
    network, density = (float(other_mode(behaviour, conditions, x).mean()) for x in (responses, wanted))
    return (network, density) if max(network, density) >= LEAST_RATE else None


def _rank(behaviour: LearnedDensity, given: dict[str, Tensor], responses: Tensor) -> np.ndarray:
    """How far out each response is among the network's own, [trial] from 0 to 1: by its mean distance to them, which
    needs no density and takes responses of any dimension."""
    own = _points(behaviour, behaviour.values(responses))  # [trial, K, dimension]
    asked = _points(behaviour, {name: values[:, None] for name, values in given.items()})
    between = torch.cdist(own, own).sum(2) / (own.shape[1] - 1)
    out = torch.cdist(asked, own).mean(2)
    return (between < out).double().mean(1).numpy()


def _points(behaviour: LearnedDensity, values: dict[str, Tensor]) -> Tensor:
    """Responses as points: angles on the unit circle, numbers in standard units."""
    columns = []
    for variable in behaviour.responses:
        own = values[variable.name].float()
        columns.append(embed(own) if variable.kind == "circular" else own[..., None])
    return torch.cat(columns, -1)
