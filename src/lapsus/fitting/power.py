"""How many subjects and trials a difference between two conditions needs, by simulation.

Experiments are simulated with a difference in the swap rate, analysed as `fit(trials, "constant", by=…)` would, with
the posterior's approximation instead of its draws, and counted where the 95 % interval of the log odds of a swap leaves
out 0. Without a difference that happens in about 5 % of experiments, which `power` measures too.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch

from lapsus.circular import wrap
from lapsus.engine.threads import torch_threads
from lapsus.errors import LapsusError
from lapsus.fitting.emissions import EMISSIONS
from lapsus.fitting.laplace import approximate
from lapsus.fitting.model import MixtureModel
from lapsus.statistics.intervals import limits, rate_interval
from lapsus.trials import Trials

__all__ = ["power", "simulate_experiment"]

DRAWS = 400
# Items in one simulated experiment.
_MOST = 10**8


def simulate_experiment(
    rng: np.random.Generator,
    subjects: int,
    trials: int,
    swap: float,
    difference: float,
    set_size: int = 4,
    guess: float = 0.05,
    scatter: float = 15.0,
    within: bool = True,
    spread: float = 0.6,
) -> Trials:
    """One experiment with conditions a and b: `trials` trials of each subject in each condition (within) or in its own
    (between, half of the subjects each).

    swap is the probability of a non-target report in condition a, swap + difference in b; scatter the circular s.d. in
    degrees; spread the s.d. of subjects in the log odds of a swap (a third of that in each condition beside)."""
    if not 0 < swap < 1 or not 0 < swap + difference < 1:
        raise LapsusError("swap and swap + difference are probabilities between 0 and 1.")
    if not 0 <= guess < 1 - max(swap, swap + difference):
        raise LapsusError("guesses and swaps together must leave reports of the target.")
    if not 0.1 <= scatter <= 180 or not 0 <= spread <= 10:
        raise LapsusError("scatter is between 0.1 and 180 degrees, spread between 0 and 10.")
    kappa = 1 / np.radians(scatter) ** 2
    parts = []
    for number in range(subjects):
        own, wide = spread * rng.standard_normal(), 0.3 * rng.standard_normal()
        for condition in ("a", "b") if within else ("ab"[number % 2],):
            rate = (swap + (difference if condition == "b" else 0.0)) / (1 - guess)
            logit = np.log(rate / (1 - rate)) + own + spread / 3 * rng.standard_normal() * within
            chosen = 1 / (1 + np.exp(-logit))
            report = rng.uniform(-np.pi, np.pi, (trials, set_size))
            item = np.where(rng.uniform(size=trials) < chosen, rng.integers(1, set_size, trials), 0)
            response = report[np.arange(trials), item] + rng.vonmises(0, kappa * np.exp(wide), trials)
            lost = rng.uniform(size=trials) < guess
            response = np.where(lost, rng.uniform(-np.pi, np.pi, trials), response)
            parts.append((wrap(response), report, [f"s{number + 1}"] * trials, [condition] * trials))
    response, report = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    names, conditions = ([one for part in parts for one in part[i]] for i in (2, 3))
    return Trials(response, report, subject=names, conditions={"condition": conditions}, source="simulated trials")


def _detected(trials: Trials, rng: np.random.Generator) -> bool:
    """Whether the 95 % interval of the difference in log odds leaves out 0."""
    model = MixtureModel(trials, "constant", EMISSIONS["von_mises"](), hierarchical=True, by=("condition",))
    draws = approximate(model).draw(DRAWS, rng)
    effect = draws[model.slices["effect"]].numpy()
    at = [model.rows[i] for i in model._contrasted].index("level")
    low, high = limits(effect[at])
    return bool(low > 0 or high < 0)


def power(
    subjects: list[int],
    trials: list[int],
    swap: float = 0.1,
    difference: float = 0.1,
    repeats: int = 40,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Share of simulated experiments in which the difference is detected, for each number of subjects and of trials a
    subject and condition: columns subjects, trials, power, low, high (95 %, Wilson), false_positives.

    options: set_size, guess, scatter, within, spread of `simulate_experiment`.
    """
    if min([*subjects, *trials, repeats]) < 2:
        raise LapsusError("subjects, trials and repeats must be 2 at least.")
    if seed < 0:
        raise LapsusError(f"seed must not be negative (it is {seed}).")
    if options.get("set_size", 4) < 2:
        raise LapsusError("with one item there is nothing to swap; give a set size of 2 or more.")
    if max(subjects) * max(trials) * options.get("set_size", 4) > _MOST:
        raise LapsusError(f"subjects × trials × set size are {_MOST:,} at most.")
    rows = []
    with torch_threads(1), torch.no_grad():
        for people in subjects:
            for count in trials:
                if progress is not None:
                    progress(f"{people} subjects, {count} trials")
                found = []
                for number in range(repeats):
                    rng = np.random.default_rng([seed, people, count, number])
                    one = simulate_experiment(rng, people, count, swap, difference, **options)
                    none = simulate_experiment(rng, people, count, swap, 0.0, **options)
                    found.append([_detected(one, rng), _detected(none, rng)])
                with_effect, without = np.array(found, float).T
                rows.append([people, count, *rate_interval(with_effect), without.mean()])
    return pd.DataFrame(rows, columns=["subjects", "trials", "power", "low", "high", "false_positives"])
