"""What is measured of a memory that fades."""

import numpy as np
import pytest
from error_growth import growth

from lapsus import read_experiment, simulate
from lapsus.evaluation.against_target import evaluate
from lapsus.evaluation.delays import DELAYS, evaluate_delays, noiseless_error, norm_ratio
from lapsus.training.model import Model


@pytest.fixture(scope="module")
def model():
    table = {
        "name": "tiny",
        "task": {"kind": "feature-cued", "denoise": 4},
        "network": {"kind": "dendritic", "units": 6, "branching": [3, 3]},
        "behaviour": {"kind": "bns", "swap": {"kind": "constant", "p": 0.2}},
        "stage": [{"updates": 1}],
    }
    return Model.of(read_experiment(table)).requires_grad_(False)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_the_exponent_of_growing_errors_is_found(exponent):
    errors = np.sqrt(0.1**2 + 0.12**2 * (np.array(DELAYS) / 40) ** exponent)
    found = growth(DELAYS, errors)
    assert found.exponent == pytest.approx(exponent, abs=0.051)
    assert (found.written, found.held) == pytest.approx((0.1, 0.12), abs=0.01)


def test_a_random_walk_grows_as_diffusion_and_a_drift_does_not():
    rng = np.random.default_rng(1)
    walk = np.cumsum(0.02 * rng.standard_normal((20_000, max(DELAYS))), 1)
    median = lambda error: [np.median(np.abs(error[:, delay - 1])) for delay in DELAYS]
    assert growth(DELAYS, median(walk)).exponent == pytest.approx(1, abs=0.15)
    drift = 0.003 * np.arange(1, 81) * rng.choice([-1, 1], (20_000, 1)) + 0.02 * rng.standard_normal((20_000, 1))
    assert growth(DELAYS, median(drift)).exponent > 1.6


def test_delays_are_those_of_the_model_at_each(model):
    rows = evaluate_delays(model, (2, 7), conditions=32, trials=4)
    for row in rows:
        one = evaluate(model.at(delay=row["delay"]), conditions=32, trials=4)
        assert row["median_error"] == one["median_error"] and row["excess"] == one["excess"]


def test_the_norm_is_that_of_the_activity_at_both_ends_of_the_delay(model):
    data = simulate(model.at(delay=12), 256, 8)
    norm = np.sqrt((data["activity"] ** 2).sum("unit")).mean("trial").to_numpy()
    shown = np.flatnonzero(data["epoch"].to_numpy() == "stimulus")[-1]
    held = np.flatnonzero(data["epoch"].to_numpy() == "delay")[-1]
    # Other conditions and noise: the same within sampling error.
    assert norm_ratio(model, 12) == pytest.approx(norm[held] / norm[shown], rel=0.03)


def test_without_noise_a_memory_is_lost_or_held_by_the_dynamics_alone(model):
    first, second = (noiseless_error(model, (5, 200), conditions=32, trials=2, seed=s) for s in (0, 0))
    assert first == second and [row["delay"] for row in first] == [5, 200]
    assert all(0 <= row["median_error"] <= np.pi for row in first)


def test_trials_of_any_delay_can_be_put_on_the_clock_that_the_question_needs(model):
    for delay in (0, 3, 20):
        data = simulate(model.at(delay=delay), 2, 2)
        epoch, since = data["epoch"].to_numpy(), {name: data[name].to_numpy() for name in data.coords}
        assert (data["delay"] == delay).all()
        # Time t holds the state that step t reached, so zero is the last step of the epoch before.
        assert epoch[since["from_stimulus_offset"] == 0] == "stimulus"
        assert epoch[since["from_cue_onset"] == 0] == ("delay" if delay else "stimulus")
        assert epoch[since["from_cue_onset"] == 1] == "cue" and epoch[since["time"] == 0] == "cue"
        assert (since["from_stimulus_offset"] - since["from_cue_onset"] == delay).all()
