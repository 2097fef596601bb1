"""What a discovery's network is trained on: the task and the behaviour of the fit, and where it starts."""

from unittest import mock

import numpy as np
import pytest
import torch
from made_discovery import tiny_start

from lapsus import check_task, rng
from lapsus.behaviour import BNS, ConstantSwap, NoSwap, SmoothSwap, TabulatedSwap
from lapsus.circular import distance, embed
from lapsus.errors import LapsusError
from lapsus.fitting.network_target import left_out
from lapsus.pipeline.target import experiment, starts, task_like
from lapsus.tasks import FeatureCuedLike
from lapsus.training.build import build, describe
from lapsus.trials import read_trials
from lapsus.trials.observer import observer_path


def test_the_task_has_the_distances_of_the_data():
    trials = read_trials(observer_path())
    task = build("task", task_like(trials, "feature"))
    check_task(task)
    drawn = task.sample(20_000, rng.generator("test"))
    for name in ("probe", "report"):
        mine, own = np.sort(distance(*drawn[name].numpy().T)), np.sort(np.abs(trials.distance(name)[:, 1]))
        levels = np.linspace(0.05, 0.95, 7)
        assert np.quantile(mine, levels) == pytest.approx(np.quantile(own, levels), abs=0.14)
    assert isinstance(task, FeatureCuedLike)
    with pytest.raises(LapsusError, match=r"task\.items must be 2"):
        FeatureCuedLike(items=3)


@pytest.mark.parametrize(
    "behaviour",
    [
        BNS(NoSwap()),
        BNS(SmoothSwap(), pi_correct=1.5),
        BNS(ConstantSwap(0.2), uniform=0.1),
        BNS(TabulatedSwap((-3.0, 0.0, 1.0), (-1.0, 0.5, -2.0)), spread=0.3),
        BNS(TabulatedSwap((-2.0, 1.0), ((-1.0, 0.0), (0.5, -3.0))), feature="both"),
    ],
)
def test_a_behaviour_survives_the_experiment_file(behaviour, tmp_path):
    import tomllib

    from lapsus.files import to_toml

    read = build("behaviour", tomllib.loads(to_toml({"behaviour": describe("behaviour", behaviour)}))["behaviour"])
    conditions = FeatureCuedLike(probe_distances=(0.5, 2.0), report_distances=(1.0, 3.0)).sample(
        50, rng.generator("test")
    )
    assert torch.equal(read.weights(conditions), behaviour.weights(conditions)) and read.spread == behaviour.spread


def test_a_plain_function_is_refused_when_an_experiment_is_written():
    from lapsus.files import to_toml

    plain = lambda gap: 0 * gap
    with pytest.raises(LapsusError, match=r"behaviour\.swap is a plain function"):
        describe("behaviour", BNS(plain))
    with pytest.raises(LapsusError, match="a function must be a dataclass"):
        to_toml({"behaviour": {"kind": "bns", "swap": plain}})


def test_networks_start_where_none_swaps():
    def facts(kind, swap, objective="diffusion"):
        target = {"kind": "bns", "swap": swap}
        stage = {"objective": {"kind": objective}, "task": {"delay": {"from": 3, "to": 40}}}
        stage |= {"rate_budget": 15.0, "rate_hold": 0.1}
        network = {"kind": "dendritic"}
        return {"config": {"task": {"kind": kind}, "network": network, "behaviour": target, "stage": [stage]}}

    never, often = {"kind": "none"}, {"kind": "smooth"}
    at_one_delay = facts("index-cued", never)
    del at_one_delay["config"]["stage"][0]["task"]
    zoo = {
        "index": at_one_delay,
        "smooth-2": facts("feature-cued", often),
        "persistent-none": facts("feature-cued", never),
        "persistent-none@2": facts("feature-cued", never),
        "persistent-smooth-2": facts("feature-cued", often),
        "persistent-optimal": facts("feature-cued", never, "task-optimal"),
        "open-none": facts("feature-cued", never, "energy"),
    }
    task, target = task_like(read_trials(observer_path()), "feature"), BNS(SmoothSwap(), pi_correct=2.0)
    with mock.patch("lapsus.pipeline.target.shipped", lambda: zoo):
        found = starts(target, task, "feature", "diffusion")
        assert [start.name for start in found] == ["persistent-none", "persistent-none@2"]
        assert found[0].distance > 0.03
        # A network that was trained by one objective is no start for the other.
        assert [start.name for start in starts(target, task, "feature", "energy")] == ["open-none"]
        # One that was trained on a single delay is taken where there is none that holds its memory at any.
        assert [start.name for start in starts(target, task, "index", "diffusion")] == ["index"]
        del zoo["index"]
        assert starts(target, task, "index", "diffusion") == []
    (asked,) = starts(target, task, "feature", "diffusion", "feature-smooth-2")
    assert asked.name == "feature-smooth-2"
    with pytest.raises(LapsusError, match="cannot be the start"):
        starts(BNS(NoSwap()), task, "feature", "diffusion", "index-no-swap")
    # A network that holds its memory continues with the delays and the rates that made it do so.
    made_for = experiment(target, task, found[0], 1, "x", 1200)
    last = made_for.stage[-1]
    assert made_for.updates == 1200 and len(made_for.stage) == 2
    assert last.task == {"delay": {"from": 3, "to": 40}} and (last.rate_budget, last.rate_hold) == (15.0, 0.1)


def test_networks_of_the_two_objectives_have_the_same_target_but_for_the_memory():
    """The denoiser's target is narrower by what memory adds; the energy score is of the final responses."""
    task, fitted = task_like(read_trials(observer_path()), "feature"), BNS(SmoothSwap(), pi_correct=2.0, spread=0.5)
    (start,) = starts(fitted, task, "feature", "diffusion", "persistent-feature-no-swap")
    by = {
        objective: experiment(fitted, task, start, 1, "x", 1200, memory=0.02, objective=objective)
        for objective in ("diffusion", "energy")
    }
    assert {one.stage[-1].objective["kind"]: one.behaviour["spread"] for one in by.values()} == {
        "diffusion": pytest.approx(2.5 * np.sqrt(0.2**2 - 0.02), abs=1e-3),
        "energy": 0.5,
    }
    assert by["diffusion"].behaviour["swap"] == by["energy"].behaviour["swap"]
    assert [stage.updates for stage in by["diffusion"].stage] == [stage.updates for stage in by["energy"].stage]


def test_a_start_that_names_classes_of_others_needs_trust(tmp_path):
    start = tiny_start(tmp_path, "feature-cued")
    config = start / "config.toml"
    config.write_text(config.read_text().replace('kind = "dendritic"', 'kind = "others:Tree"'))
    task, target = task_like(read_trials(observer_path()), "feature"), BNS(SmoothSwap(), pi_correct=2.0)
    with pytest.raises(LapsusError, match=r"others.*`trust=True`"):
        starts(target, task, "feature", "diffusion", str(start))
    (found,) = starts(target, task, "feature", "diffusion", str(start), trust=True)
    assert found.config["network"]["kind"] == "others:Tree"


def test_the_planar_target_scatters_as_the_circle_does():
    from lapsus.fitting.network_target import planar_scatter

    rng = np.random.default_rng(3)
    for sd in (0.08, 0.3, 0.8):
        x = embed(0.0) + planar_scatter(sd) * rng.standard_normal((200_000, 2))
        resultant = np.hypot(*(x / np.linalg.norm(x, axis=1, keepdims=True)).mean(0))
        assert np.sqrt(-2 * np.log(resultant)) == pytest.approx(sd, rel=0.01)


def test_from_scratch_an_index_cued_network_starts_as_the_shipped_ones():
    from lapsus import read_experiment
    from lapsus.pipeline.target import experiment

    made = experiment(BNS(NoSwap()), {"kind": "index-cued"}, None, seed=1, name="made", updates=200)
    assert made.network == read_experiment("index-preamble").network


def fitted_with(**parts):
    """A stand-in for a fit: what `left_out` looks at."""
    from types import SimpleNamespace

    facts = {"bias": None, "emission": "von_mises", "features": ()} | parts
    return SimpleNamespace(
        bias=facts["bias"],
        trials=SimpleNamespace(degrees=180 / np.pi, probe_name="location"),
        model=SimpleNamespace(emission=SimpleNamespace(name=facts["emission"])),
        swap_model=SimpleNamespace(features=facts["features"]),
    )


@pytest.mark.parametrize(
    "parts, uniform, cueing, said",
    [
        ({"bias": {"bias": 0.05}}, 0.0, "feature", "(+2.9°)"),
        ({}, 0.004, "feature", "Guesses (0.4 %)"),
        ({"emission": "variable_precision"}, 0.0, "feature", "not the heavy tails"),
        ({"features": ("probe",)}, 0.0, "index", "over distances in location"),
    ],
)
def test_what_the_target_lacks_is_a_sentence_and_only_then(parts, uniform, cueing, said):
    """A fitted bias was dropped without a word."""
    (sentence,) = left_out(fitted_with(**parts), BNS(ConstantSwap(0.2), uniform=uniform), cueing)
    assert said in sentence
    assert left_out(fitted_with(features=("probe",)), BNS(ConstantSwap(0.2), uniform=0.1), "feature") == []


def test_the_analysis_is_at_a_distance_where_the_network_is_like_the_data():
    """It was where the fit swaps most, although the network swapped eight times as often there."""
    from types import SimpleNamespace

    from lapsus.pipeline.stages import _where_matched

    fitted = BNS(SmoothSwap())  # near items are swapped most
    distance = np.radians([28.0, 60.0, 100.0, 150.0])
    fit = np.array([0.026, 0.02, 0.015, 0.01])
    found = SimpleNamespace(feature="probe", distance=distance, fit=fit, network=fit.copy(), tolerance=0.01)
    assert _where_matched(fitted, found) == pytest.approx(distance[0])
    found.network = fit + np.array([0.18, 0.005, 0.0, 0.0])
    assert _where_matched(fitted, found) == pytest.approx(distance[1])
    found.network = fit + np.array([0.18, 0.05, 0.03, np.nan])
    assert _where_matched(fitted, found) == pytest.approx(distance[2])  # none matches: where it is nearest
    found.feature = "report"
    assert _where_matched(fitted, found) == pytest.approx(np.pi / 4)
