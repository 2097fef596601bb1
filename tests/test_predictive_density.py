"""Which of two networks predicts a subject's trials better over the durations that the table has."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lapsus.circular import wrap
from lapsus.evaluation.match import network_responses
from lapsus.evaluation.predictive_density import (
    DensityDifference,
    compare_densities,
    durations,
    log_density,
    score_durations,
)
from lapsus.report.determined import _density_sentence
from lapsus.trials import Trials
from lapsus.zoo import load

NETWORKS = {"late": "persistent-index-swap-10", "early": "open-index-swap-10"}


def test_density_is_that_of_a_mixture_of_von_mises_kernels():
    samples, response = np.array([[0.3, -2.0], [3.0, 1.0]]), np.array([0.5, 1.2])
    kernels = stats.vonmises.pdf(response - samples, 20.0).mean(0)
    assert log_density(response, samples, 20.0) == pytest.approx(np.log(0.98 * kernels + 0.02 / (2 * np.pi)))
    angles = np.linspace(-np.pi, np.pi, 2001)[:-1]
    density = np.exp(log_density(angles, np.tile(samples[:, :1], (1, 2000)), 20.0))
    assert density.mean() * 2 * np.pi == pytest.approx(1, abs=1e-6)


def _table(**columns) -> Trials:
    report = np.tile([[0.0, 2.0]], (4, 1))
    return Trials(np.zeros(4), report, conditions=pd.DataFrame(columns))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"delay": [0.5, 1.0, 0.5, 1.0]}, ("delay", [10, 20, 10, 20])),
        ({"Delay": [500, 1000, 500, 1000]}, ("delay", [10, 20, 10, 20])),
        ({"exposure_time": [100, 100, 500, 500]}, ("stimulus", [2, 2, 10, 10])),
        ({"delay": [0.5, 0.5, 0.5, 0.5]}, None),
        ({"delay": ["short", "long", "short", "long"]}, None),
        ({"block": [1, 2, 3, 4]}, None),
    ],
)
def test_a_column_of_durations_is_found(columns, expected):
    found = durations(_table(**columns))
    assert (None if found is None else (found.epoch, found.steps.tolist())) == expected


def _subject(network: str, trials: int) -> Trials:
    """Simulated answers of a network after delays of 5 and of 160 steps."""
    rng = np.random.default_rng(0)
    report = rng.uniform(-np.pi, np.pi, (trials, 1)) + np.array([[0.0, 1.0]]) * rng.uniform(1, 5, (trials, 1))
    report = wrap(report)
    steps = rng.choice([5, 160], trials)
    response = np.empty(trials)
    for delay in (5, 160):
        rows = steps == delay
        response[rows] = network_responses(load(network).at(delay=delay), report[rows], None, 1, seed=9)[0]
    return Trials(response, report, conditions=pd.DataFrame({"delay": 0.05 * steps}))


@pytest.mark.slow
@pytest.mark.parametrize(("truth", "objective"), [("late", "diffusion"), ("early", "energy")])
def test_the_network_that_made_the_trials_predicts_them_better(truth, objective):
    trials = _subject(NETWORKS[truth], 1200)
    models = {name: load(network) for name, network in NETWORKS.items()}
    scores = score_durations(models, trials, durations(trials))
    assert set(scores["network"]) == set(NETWORKS) and scores["trial"].nunique() == 1200
    found = compare_densities(scores, "delay")
    assert found.favours == objective and f"trained with the {objective} objective" in _density_sentence(found)


def test_nothing_is_favoured_where_the_interval_includes_zero():
    found = DensityDifference("delay", ("diffusion", "energy"), 100, 0.001, -0.002, 0.004)
    assert found.favours is None and "does not tell them apart" in _density_sentence(found)
