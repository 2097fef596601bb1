"""What a recording would show: how many swaps a decoder needs in each part of the trial."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from lapsus.mechanism import recording_needs as module
from lapsus.mechanism.recording_needs import critical_area, earliest, recording_needs
from lapsus.mechanism.resemblance import WINDOWS
from lapsus.mechanism.synthetic import synthetic_population


class Population:
    """Stands for a network whose swaps arise in a known way."""

    objective = "none"

    def __init__(self, mechanism):
        self.mechanism = mechanism


@pytest.fixture
def populations(monkeypatch):
    made = lambda population, trials, seed: synthetic_population(
        population.mechanism, trials=trials, swap_probability=0.2, seed=seed
    )
    monkeypatch.setattr(module, "single_trials", made)
    return partial(recording_needs, units=(100,), swaps=(20, 40), recordings=10, trials=1500)


def test_the_critical_area_is_that_of_mann_and_whitney():
    rng = np.random.default_rng(0)
    swap, correct = 20, 80
    areas = [
        stats.mannwhitneyu(rng.standard_normal(swap), rng.standard_normal(correct)).statistic / (swap * correct)
        for _ in range(4000)
    ]
    assert np.mean(np.array(areas) > critical_area(swap, correct)) == pytest.approx(0.05, abs=0.012)


@pytest.mark.parametrize(
    "mechanism, first", [("misbinding", "delay 1"), ("misinterpretation", "cue"), ("late switch", "late delay 2")]
)
def test_a_swap_is_read_from_where_it_arises_on_and_not_before(populations, mechanism, first):
    table = populations({"made": Population(mechanism)})
    window, swaps = earliest(table, "made", 100)
    assert window == first and swaps in (20, 40)
    before = table.set_index("window")["area"].loc[list(WINDOWS[: WINDOWS.index(first)])]
    assert (np.abs(before - 0.5) < 0.06).all()


def test_a_network_that_hardly_swaps_has_no_number(populations, monkeypatch):
    few = lambda population, trials, seed: synthetic_population(
        "misbinding", trials=600, swap_probability=0.005, seed=0
    )
    monkeypatch.setattr(module, "single_trials", few)
    table = populations({"made": Population("misbinding")})
    assert table["swaps"].isna().all() and earliest(table, "made", 100) is None
