"""Predictions for manipulations: each changes what it says and nothing else; power is what a simulation gives."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from command import lapsus

from lapsus import LapsusError, load, predict
from lapsus.evaluation.manipulations import VARIABLES, separate


@pytest.fixture(scope="module")
def network():
    return {"net": load("index-swap-10")}


@pytest.mark.parametrize(
    ("name", "level"),
    [("delay", 15), ("cue", 5), ("stimulus_strength", 1.0), ("cue_strength", 1.0), ("noise_cue", 1.0)],
)
def test_the_level_of_training_is_the_baseline_to_the_last_digit(network, name, level):
    base, same = predict(network, {name: [level]}, conditions=32, trials=4).to_dict("records")
    assert (base["swaps"], base["median_error"]) == (same["swaps"], same["median_error"])


@pytest.mark.slow
def test_manipulations_do_what_they_say(network):
    found = predict(network, {"second_cue": [0], "noise_response": [0], "cue_strength": [0]}, conditions=256, trials=8)
    swaps = dict(zip(found["manipulation"], found["swaps"]))
    # Without a cue either item is as likely; a second cue at once turns many; a network that was trained by diffusion
    # needs the noise of the response epoch for its swaps.
    assert swaps["cue_strength"] == pytest.approx(0.5, abs=0.15)
    assert swaps["second_cue"] > swaps["baseline"] + 0.2
    assert swaps["noise_response"] < 0.2 * swaps["baseline"]


@pytest.mark.slow
def test_the_distance_of_probes_is_set():
    smooth = {"net": load("feature-smooth-0")}
    rows = predict(smooth, {"probe_distance": [45, 180]}, conditions=256, trials=8).to_dict("records")
    near, far = (row["swaps"] for row in rows[1:])
    assert near == pytest.approx(0.45, abs=0.06) and far == pytest.approx(0.036, abs=0.06)


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ({"retention": [1]}, "no manipulation retention; there are delay"),
        ({"cue": [1.5]}, "whole number of steps, not 1.5"),
        ({"second_cue": [39]}, "from 0 to 35, not 39"),
    ],
)
def test_wrong_manipulations_get_a_sentence(network, vary, said):
    with pytest.raises(LapsusError, match=said):
        predict(network, vary, conditions=4, trials=2)


def made_predictions(effects: dict[str, list[float]], baseline: float = 0.1) -> pd.DataFrame:
    rows = []
    for kind, of_networks in effects.items():
        for number, effect in enumerate(of_networks):
            network = {"network": f"{kind}-{number}", "objective": kind}
            rows.append(network | {"manipulation": "baseline", "level": math.nan, "swaps": baseline})
            rows.append(network | {"manipulation": "cue", "level": 10.0, "swaps": baseline + effect})
    return pd.DataFrame(rows)


def test_power_is_that_of_simulated_experiments():
    """As many trials as are said, drawn from either kind: a test of the change tells them apart in 80 %."""
    (found,) = separate(made_predictions({"energy": [0.10], "diffusion": [0.0]}))
    assert found.difference == pytest.approx(0.1) and math.isnan(found.spread)
    rng, n = np.random.default_rng(0), found.trials
    before, after = rng.binomial(n, 0.1, 20_000) / n, rng.binomial(n, 0.2, 20_000) / n
    error = np.sqrt((0.1 * 0.9 + 0.5 * (0.1 * 0.9 + 0.2 * 0.8)) / n)
    told_apart = (after - before) / error > 1.96
    assert told_apart.mean() == pytest.approx(0.8, abs=0.04)


def test_kinds_that_differ_no_more_than_their_networks_are_not_separated():
    (found,) = separate(made_predictions({"energy": [0.10, -0.05, 0.02], "diffusion": [0.0, 0.08, -0.03]}))
    assert found.trials is None
    with pytest.raises(LapsusError, match="Two kinds"):
        separate(made_predictions({"energy": [0.1]}))


def test_the_command(tmp_path):
    said = lapsus("predict", "index-swap-10", "--vary", "cue=2,10", "--conditions", "16", "-o", "p.csv", cwd=tmp_path)
    assert VARIABLES["cue"][0] in said and len(pd.read_csv(tmp_path / "p.csv")) == 3
    found = json.loads(
        lapsus("predict", "index-swap-10", "--vary", "cue=2", "--conditions", "16", "--json", cwd=tmp_path)
    )
    assert found["predictions"][1]["level"] == 2 and found["separations"] == []
    assert "--vary takes a name and numbers" in lapsus(
        "predict", "index-swap-10", "--vary", "cue", cwd=tmp_path, code=2
    )
