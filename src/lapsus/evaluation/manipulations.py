"""What networks predict for manipulations that nobody trained them on, and which of them would tell two kinds apart.

A manipulation is something that an experimenter can do: longer delays, weaker stimuli, a second cue that contradicts
the first, more noise in one epoch. Each is given by its name and its levels (`VARIABLES`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import stats

from lapsus import circular, rng
from lapsus.behaviour.measures import nearest_item
from lapsus.errors import LapsusError
from lapsus.evaluation.against_target import check_draws, respond
from lapsus.evaluation.predictive_density import STEP
from lapsus.protocols import Conditions
from lapsus.statistics.intervals import median_interval, rate_interval
from lapsus.training.model import Inputs, Model

# A level that a network was trained on would be no prediction; these are what `predict` varies by default.
MANIPULATIONS: dict[str, tuple[float, ...]] = {
    "delay": (5, 40, 80),
    "stimulus": (2, 10),
    "cue": (2, 10),
    "stimulus_strength": (0.5, 2.0),
    "cue_strength": (0.5, 2.0),
    "second_cue": (0, 5, 10, 20),
    "noise_stimulus": (0.0, 2.0),
    "noise_delay": (0.0, 2.0),
    "noise_cue": (0.0, 2.0),
    "noise_response": (0.0, 2.0),
}


@dataclass
class _Trial:
    """A model with its conditions and inputs, as a manipulation may change them."""

    model: Model
    conditions: Conditions
    inputs: Inputs

    @classmethod
    def of(cls, model: Model, conditions: Conditions) -> "_Trial":
        return cls(model, conditions, model.inputs(conditions))

    def place(self, epoch: str) -> slice:
        """The steps of an epoch."""
        epochs = self.model.task.epochs
        if epoch not in epochs:
            raise LapsusError(f"This task has no epoch {epoch}; it has: {', '.join(epochs)}.")
        names = list(epochs)
        start = sum(epochs[name] for name in names[: names.index(epoch)])
        return slice(start, start + epochs[epoch])

    def with_timeline(self, inputs: Inputs | None = None, **changed: Any) -> "_Trial":
        """Other drives or noise in some steps; the model is a copy, so that only this trial changes."""
        model = self.model.with_task(self.model.task)
        model.timeline = replace(model.timeline, **changed)
        return _Trial(model, self.conditions, self.inputs if inputs is None else inputs)


def _duration(trial: _Trial, level: float, epoch: str) -> _Trial:
    if level != int(level) or level < 0:
        raise LapsusError(f"{epoch} is a whole number of steps, not {level:g}.")
    return _Trial.of(trial.model.at(**{epoch: int(level)}), trial.conditions)


def _strength(trial: _Trial, level: float, epoch: str) -> _Trial:
    index = trial.model.timeline.drive_index[trial.place(epoch).start]
    drives, biases = trial.inputs
    drives = drives.clone()
    drives[index] *= level
    return replace(trial, inputs=(drives, biases))


def _noise(trial: _Trial, level: float, epoch: str) -> _Trial:
    name = list(trial.model.task.epochs)[-1] if epoch == "response" else epoch
    sigma, place = list(trial.model.timeline.sigma), trial.place(name)
    sigma[place] = [level * value for value in sigma[place]]
    return trial.with_timeline(sigma=sigma)


def _second_cue(trial: _Trial, level: float) -> _Trial:
    """The other item is cued for as long as the first was, so many steps after cue offset."""
    cue, response = trial.place("cue"), trial.place(list(trial.model.task.epochs)[-1])
    duration = cue.stop - cue.start
    start = response.start + int(level)
    if level != int(level) or level < 0 or start + duration > response.stop:
        most = response.stop - response.start - duration
        raise LapsusError(f"second_cue is a whole number of steps after cue offset, from 0 to {most}, not {level:g}.")
    drives, biases = trial.inputs
    index = list(trial.model.timeline.drive_index)
    other = trial.conditions | {"cued": 1 - trial.conditions["cued"]}
    contradicting = trial.model.inputs(other)[0][index[cue.start]]
    index[start : start + duration] = [len(drives)] * duration
    return trial.with_timeline((torch.cat([drives, contradicting[None]]), biases), drive_index=index)


def _probe_distance(trial: _Trial, level: float) -> _Trial:
    """The distractor's probe feature, so many degrees from the target's."""
    conditions = dict(trial.conditions)
    if "probe" not in conditions:
        raise LapsusError("probe_distance needs a feature-cued network.")
    cued = conditions["cued"].long()[:, None]
    target = conditions["probe"].gather(1, cued)
    side = torch.where(torch.arange(len(target)) % 2 == 0, 1.0, -1.0)[:, None]
    other = circular.wrap(target + side * math.radians(level))
    conditions["probe"] = torch.where(torch.arange(2)[None] == cued, target, other)
    return _Trial.of(trial.model, conditions)


# Name → what it is, its unit, and how a trial changes with its level.
VARIABLES: dict[str, tuple[str, str, Callable[[_Trial, float], _Trial]]] = {
    "delay": ("first delay", "steps", partial(_duration, epoch="delay")),
    "stimulus": ("duration of the stimuli", "steps", partial(_duration, epoch="stimulus")),
    "cue": ("duration of the cue", "steps", partial(_duration, epoch="cue")),
    "stimulus_strength": ("strength of the stimuli", "×", partial(_strength, epoch="stimulus")),
    "cue_strength": ("strength of the cue", "×", partial(_strength, epoch="cue")),
    "second_cue": ("second cue to the other item, after cue offset", "steps", _second_cue),
    "probe_distance": ("distance of the probe features", "°", _probe_distance),
    **{
        f"noise_{epoch}": (f"process noise in the {epoch} epoch", "×", partial(_noise, epoch=epoch))
        for epoch in ("prestimulus", "stimulus", "delay", "cue", "response")
    },
}


def title_of(manipulation: str, level: float, joined: str = "") -> str:
    """A manipulation at one of its levels, in words; joined: what stands between the two."""
    what, unit, _ = VARIABLES[manipulation]
    value = f"{STEP * level:g} s ({level:g} steps)" if unit == "steps" else f"{level:g} {unit}"
    return f"{what}{joined} {value}"


@torch.no_grad()
def predict(
    networks: Mapping[str, Model],
    vary: Mapping[str, Sequence[float]] | None = None,
    conditions: int = 512,
    trials: int = 16,
    seed: int = 0,
) -> pd.DataFrame:
    """Swap rate of each network at each level of each manipulation, beside its own baseline, as one row each.

    vary: name → levels (`VARIABLES` has the names; default `MANIPULATIONS`). A swap is a response nearer to the other
    item than to the one that was cued first. Intervals are over conditions, which are the same for all levels.

    >>> found = lapsus.predict({"network": lapsus.load("index-swap-10")}, {"cue_strength": [0.5]}, conditions=64)
    >>> list(found["manipulation"])
    ['baseline', 'cue_strength']
    """
    check_draws("predict", conditions, trials, seed, least=2)
    vary = MANIPULATIONS if vary is None else vary
    for name in vary:
        if name not in VARIABLES:
            raise LapsusError(f"There is no manipulation {name}; there are {', '.join(VARIABLES)}.")
    rows = []
    for network, model in networks.items():
        if model.behaviour.response_size != 2 or "cue" not in model.task.epochs:
            raise LapsusError(f"{network} is not a delayed-estimation network; manipulations are made for those.")
        base = _Trial.of(model.at(), model.task.sample(conditions, rng.generator(seed, "manipulations")))
        described = {"network": network, "objective": model.objective}
        rows.append(described | {"manipulation": "baseline", "level": math.nan} | _swaps(base, trials, seed))
        for name, levels in vary.items():
            for level in levels:
                changed = VARIABLES[name][2](base, float(level))
                row = {"manipulation": name, "level": float(level)} | _swaps(changed, trials, seed)
                rows.append(described | row)
    return pd.DataFrame(rows)


def _swaps(trial: _Trial, trials: int, seed: int) -> dict[str, float]:
    """Swap rate and median error (radians) to the nearest item, with 95 % intervals over conditions."""
    x_T = respond(trial.model, trial.conditions, trials, seed, trial.inputs)
    item, near = nearest_item(trial.conditions, x_T)
    swap = (item != trial.conditions["cued"].long()[:, None]).numpy()
    condition = np.repeat(np.arange(len(swap)), trials)
    rate, low, high = rate_interval(swap.ravel(), condition)
    return {"swaps": rate, "low": low, "high": high, "median_error": median_interval(near.numpy())[0]}


@dataclass(frozen=True)
class Separation:
    """How well one manipulation tells two kinds of networks apart.

    effects: kind → change of the swap rate from baseline, mean over networks; spread: s.d. of that change between
    networks of a kind (NaN where there is one of each); trials: how many of each, baseline and manipulated, tell the
    two changes apart with a power of 80 % at the 5 % level; None where the kinds do not differ by more than networks of
    one kind do.
    """

    manipulation: str
    level: float
    effects: dict[str, float]
    spread: float
    difference: float
    trials: int | None


def separate(predictions: pd.DataFrame) -> list[Separation]:
    """Each manipulation of `predict`, the one that separates networks of the two objectives best first."""
    kinds = sorted(predictions["objective"].unique())
    if len(kinds) != 2:
        raise LapsusError(f"Two kinds of networks can be told apart, not {len(kinds)} ({', '.join(map(str, kinds))}).")
    baseline = predictions[predictions["manipulation"] == "baseline"].set_index("network")["swaps"]
    changed = predictions[predictions["manipulation"] != "baseline"].copy()
    changed["baseline"] = changed["network"].map(baseline)
    changed["effect"] = changed["swaps"] - changed["baseline"]
    separations = [
        _separation(str(name), float(level), rows) for (name, level), rows in changed.groupby(["manipulation", "level"])
    ]
    return sorted(separations, key=lambda one: (one.trials is None, one.trials or 0, -abs(one.difference)))


def _separation(name: str, level: float, rows: pd.DataFrame) -> Separation:
    by_kind = rows.groupby("objective")["effect"]
    effects = {str(kind): float(mean) for kind, mean in by_kind.mean().items()}
    first, second = effects.values()
    freedom = len(rows) - len(effects)
    within = float(((rows["effect"] - by_kind.transform("mean")) ** 2).sum())
    spread = math.sqrt(within / freedom) if freedom else math.nan
    binomial = sum(rows[column] * (1 - rows[column]) for column in ("swaps", "baseline"))
    needed = float(stats.norm.ppf(0.975) + stats.norm.ppf(0.8))
    # What is left of the difference for two subjects that are a typical pair of networks apart.
    certain = abs(second - first) - (0.0 if math.isnan(spread) else 2 * spread)
    trials = math.ceil(needed**2 * float(binomial.mean()) / certain**2) if certain > 0 else None
    return Separation(name, level, effects, spread, second - first, trials)
