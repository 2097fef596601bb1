"""How well networks predict a subject's trials at several durations of an epoch: which of two mechanisms fits better
where the table has a column for a delay or an exposure.

The density of a response is estimated from the network's own responses to the same trial, by von Mises kernels whose
width is chosen on the network's responses (leave one out), and a small uniform share for guesses.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import i0e

from lapsus.evaluation.match import network_responses
from lapsus.statistics.intervals import Z95
from lapsus.training import Model
from lapsus.trials import Trials

__all__ = ["DensityDifference", "Durations", "compare_densities", "durations", "log_density", "score_durations"]

STEP = 0.05  # seconds, as in the paper
# What tables call a duration → the epoch of the task that it is the duration of.
_COLUMNS = {
    "delay": "delay",
    "retention": "delay",
    "retention_interval": "delay",
    "isi": "delay",
    "exposure": "stimulus",
    "exposure_time": "stimulus",
    "stimulus_duration": "stimulus",
    "presentation_time": "stimulus",
}
# Durations above this are milliseconds.
_LONGEST_SECONDS = 30.0
# Levels with fewer trials say nothing.
_LEAST_TRIALS = 20
_UNIFORM = 0.02
_CONCENTRATIONS = np.geomspace(5.0, 500.0, 12)


@dataclass(frozen=True)
class Durations:
    """A column of a trial table that gives the duration of an epoch: its name, the epoch, and seconds [trial]."""

    column: str
    epoch: str
    seconds: np.ndarray

    @property
    def steps(self) -> np.ndarray:
        """The same in steps of the network."""
        return np.maximum(1, np.rint(self.seconds / STEP)).astype(int)


@dataclass(frozen=True)
class DensityDifference:
    """Mean log density per trial of the networks of one kind minus that of the other, with its 95 % interval over
    trials."""

    column: str
    kinds: tuple[str, str]
    trials: int
    difference: float
    low: float
    high: float

    @property
    def favours(self) -> str | None:
        """The kind that predicts the trials better; None where that is open."""
        if self.low <= 0 <= self.high:
            return None
        return self.kinds[0] if self.difference > 0 else self.kinds[1]


def durations(trials: Trials) -> Durations | None:
    """The first column that gives the duration of an epoch and takes two values or more; None where there is none."""
    for column in trials.conditions:
        epoch = _COLUMNS.get(str(column).strip().lower().replace(" ", "_"))
        values = pd.to_numeric(trials.conditions[column], errors="coerce").to_numpy(float)
        if epoch is None or not np.isfinite(values).all() or (values < 0).any() or len(np.unique(values)) < 2:
            continue
        seconds = values / 1000 if values.max() > _LONGEST_SECONDS else values
        return Durations(str(column), epoch, seconds)
    return None


def log_density(response: np.ndarray, samples: np.ndarray, concentration: float) -> np.ndarray:
    """Log density [T] of responses [T] by kernels at samples [K, T]."""
    kernels = np.exp(concentration * (np.cos(response - samples) - 1)) / (2 * np.pi * i0e(concentration))
    return np.log((1 - _UNIFORM) * kernels.mean(0) + _UNIFORM / (2 * np.pi))


def _best_concentration(samples: np.ndarray) -> float:
    """The kernel width at which the first of a trial's samples is best predicted by the others."""
    scores = [log_density(samples[0], samples[1:], concentration).mean() for concentration in _CONCENTRATIONS]
    return float(_CONCENTRATIONS[int(np.argmax(scores))])


def score_durations(
    networks: Mapping[str, Model], trials: Trials, found: Durations, repeats: int = 64, most: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Log density of each trial under each network, shown that trial at its own duration.

    Columns: network, objective, trial (row of the table), seconds, log_density. At most `most` trials are used, drawn
    at random; durations with fewer than 20 of them are left out.
    """
    chosen = np.sort(np.random.default_rng([seed, 11]).permutation(len(trials))[:most])
    parts = []
    for steps in np.unique(found.steps[chosen]):
        rows = chosen[found.steps[chosen] == steps]
        if len(rows) < _LEAST_TRIALS:
            continue
        shown = trials[rows]
        for name, model in networks.items():
            at_duration = model.at(**{found.epoch: int(steps)})
            samples = network_responses(at_duration, shown.report, shown.probe, repeats, seed)
            density = log_density(shown.response, samples, _best_concentration(samples))
            columns = {"trial": rows, "seconds": found.seconds[rows], "log_density": density}
            parts.append(pd.DataFrame({"network": name, "objective": model.objective} | columns))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def compare_densities(scores: pd.DataFrame, column: str) -> DensityDifference | None:
    """Which of two objectives predicts the trials better; networks of one objective are averaged within a trial."""
    if scores.empty or scores["objective"].nunique() != 2:
        return None
    by_kind = scores.pivot_table(index="trial", columns="objective", values="log_density")
    first, second = by_kind.columns
    difference = (by_kind[first] - by_kind[second]).to_numpy()
    mean, error = float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))
    return DensityDifference(
        column, (str(first), str(second)), len(difference), mean, mean - Z95 * error, mean + Z95 * error
    )
