"""Shipped networks, and training them in the order of their warm starts."""

import json

import pytest
import torch

from lapsus import LapsusError, Run, load, read_experiment, simulate, train
from lapsus.evaluation.ship import ship
from lapsus.evaluation.verdict import LIMITS
from lapsus.files import to_toml
from lapsus.sweep.one_by_one import jobs_of, train_all
from lapsus.training.experiment import shipped_experiments
from lapsus.zoo.shipped import (
    collection_of,
    experiments_in,
    halfway,
    load_shipped,
    shipped,
    shipped_name,
    summary,
    weights_folder,
)

FIRST = {
    "name": "first",
    "task": {"kind": "index-cued", "prestimulus": 1, "stimulus": 2, "delay": 1, "cue": 2, "denoise": 4},
    "network": {"kind": "dendritic", "units": 6, "branching": [3, 3]},
    "stage": [{"updates": 6, "objective": {"kind": "task-optimal"}, "conditions": 4, "trials": 4}],
}


@pytest.fixture
def experiments(tmp_path, monkeypatch):
    """Two experiments, the second starting from the first, in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first").write_text(to_toml(FIRST))
    (tmp_path / "second").write_text(to_toml(FIRST | {"name": "second", "start_from": "first"}))
    return tmp_path


def test_a_start_comes_before_what_starts_from_it(experiments):
    jobs = jobs_of(["second"], 2, experiments / "runs")
    assert [job.name for job in jobs] == ["first, seed 1", "second, seed 1", "first, seed 2", "second, seed 2"]


def test_done_is_skipped_and_cut_off_goes_on(experiments):
    jobs = jobs_of(["second"], 1, experiments / "runs")
    assert [job.name for job, _ in train_all(jobs)] == ["first, seed 1", "second, seed 1"]
    assert all(job.done() for job in jobs) and list(train_all(jobs)) == []
    _start = Run(jobs[1].path).training()
    jobs = jobs_of(["second"], 2, experiments / "runs")
    train(Run.create(jobs[2].path, jobs[2].experiment), steps=2)
    assert [(job.name, outcome.reason) for job, outcome in train_all(jobs)] == [
        ("first, seed 2", "done"),
        ("second, seed 2", "done"),
    ]


def test_warm_start_is_that_of_the_same_seed(experiments):
    jobs = jobs_of(["second"], 2, experiments / "runs")
    list(train_all(jobs))
    fresh = Run.create(experiments / "runs" / "again", jobs[3].experiment)
    training = fresh.training()
    assert torch.equal(training.model.network.readout, load(experiments / "runs" / "first-2").network.readout)


def test_a_run_of_another_description_is_refused(experiments):
    list(train_all(jobs_of(["first"], 1, experiments / "runs")))
    (experiments / "first").write_text(to_toml(FIRST | {"stage": [FIRST["stage"][0] | {"updates": 9}]}))
    with pytest.raises(LapsusError, match=r"first-1 holds a run of first .* differs in stage\)"):
        list(train_all(jobs_of(["first"], 1, experiments / "runs")))


def test_shipping_keeps_weights_config_and_evaluation(experiments):
    varying = FIRST["stage"][0] | {"task": {"delay": {"from": 1, "to": 3}}}
    run = Run.create("runs/first-1", read_experiment(FIRST | {"stage": [varying]}))
    with pytest.raises(LapsusError, match="update 0 of 6"):
        ship(run, experiments)
    train(run)
    path = ship(run, experiments, conditions=64)
    facts = json.loads(path.read_text())
    assert facts["config"]["name"] == "first" and "median_error" in facts["evaluation"] and facts["trials_seen"] == 96
    assert [found["delay"] for found in facts["delays"]] == [5, 10, 15, 20, 30, 40, 80] and facts["norm_ratio"] > 0
    from safetensors.torch import load_file

    weights = load_file(path.with_suffix(".safetensors"))
    assert all(torch.equal(value, weights[name]) for name, value in run.model().state_dict().items())


@pytest.mark.slow
def test_a_network_of_another_description_is_not_taken_for_the_one_that_ships(experiments):
    """Killed between training and export, the same command left the earlier network of that name where it was."""
    from command import lapsus

    list(train_all(jobs_of(["first"], 1, experiments / "runs")))
    run, place = Run(experiments / "runs" / "first-1"), experiments / "shipped"
    place.mkdir()
    other = run.experiment.model_dump(exclude_none=True) | {"description": "another"}
    (place / "first.json").write_text(json.dumps({"config": other}))
    for _ in range(2):
        lapsus("reproduce", "train", "first", "--ship", place, cwd=experiments)
        facts = json.loads((place / "first.json").read_text())
        assert facts["config"]["description"] == run.experiment.description and facts.pop("evaluation")
        (place / "first.json").write_text(json.dumps(facts | {"evaluation": "not made again"}))


@pytest.mark.filterwarnings("ignore:The torch reference runs")  # the two-layer control is no tree
@pytest.mark.parametrize("name", list(shipped()))
def test_shipped_network_opens_and_answers(name):
    data = simulate(load_shipped(name), conditions=3, trials=2)
    assert data.sizes["trial"] == 6 and bool(torch.isfinite(torch.tensor(data["activity"].values)).all())


@pytest.mark.parametrize("name", list(shipped()))
def test_shipped_network_was_trained_as_its_file_says(name):
    """The experiment file trains this very network again: nothing was changed in it after the training."""
    from lapsus.training.experiment import Experiment, read_experiment

    config = Experiment.model_validate(shipped()[name]["config"]).model_dump()
    described = read_experiment(config["name"], [f"seed={config['seed']}"]).model_dump()
    assert {key: value for key, value in config.items() if key != "versions"} == {
        key: value for key, value in described.items() if key != "versions"
    }


# The networks of Figures 3C and 3D.
COMPARED = (
    "index-optimal",
    "index-no-swap",
    "index-swap-5",
    "index-swap-10",
    "feature-optimal-40",
    "feature-no-swap",
    "feature-constant-5",
    "feature-smooth-2",
)


def test_every_network_ships_and_those_of_figure_3_in_three_seeds():
    names = set(shipped())
    assert set(shipped_experiments()) <= names
    assert {f"{name}@{seed}" for name in (*COMPARED, "index-preamble", "feature-preamble") for seed in (2, 3)} <= names
    assert {f"persistent-{name}@{seed}" for name in COMPARED for seed in (2, 3)} <= names


@pytest.mark.parametrize("name", ["point-constant-30", "two-layer-constant-30"])
def test_architecture_controls_have_the_stages_of_the_tree(name):
    control = read_experiment(name).stage
    preamble, tree = read_experiment("feature-preamble"), read_experiment("feature-constant-30")
    durations = {"task": {key: preamble.task[key] for key in ("denoise", "delay")}}
    assert control == [*(stage.model_copy(update=durations) for stage in preamble.stage), *tree.stage]
    assert all(getattr(read_experiment(name), part) == getattr(tree, part) for part in ("behaviour", "task", "noise"))


def _of_the_paper(facts: dict) -> bool:
    """Trees on the delayed-estimation tasks; the controls are there to miss the limits."""
    config = facts["config"]
    if collection_of(config["name"]) != "paper":
        return False
    kind, objective = config["task"]["kind"], config["stage"][-1]["objective"]["kind"]
    return kind != "cue-combination" and config["network"]["kind"] == "dendritic" and objective != "sample-mse"


@pytest.mark.parametrize("name", [name for name, facts in shipped().items() if _of_the_paper(facts)])
def test_shipped_network_is_within_the_limits(name):
    facts = shipped()[name]
    limits, found = LIMITS[facts["config"]["stage"][-1]["objective"]["kind"]], facts["evaluation"]
    assert not {measure: found[measure] for measure, limit in limits.items() if found[measure] > limit}


# As in docs/memory.md. The curve by likelihood too, for at 5 % a network that hardly swaps would pass the other ones.
# Networks that were trained by the energy score are held to its excess, those that denoise to theirs.
AT_EVERY_DELAY = {
    "energy_excess": 0.05,
    "swap_curve_mad": 0.02,
    "swap_curve_max": 0.05,
    "swap_likelihood_mad": 0.02,
    "away": 0.03,
    "excess": 0.08,
}
# They were trained on delays of 3 to 40 steps; 80 shows that the memory fades and does not break.
MEDIAN_ERROR = {5: 0.15, 10: 0.15, 15: 0.15, 20: 0.15, 30: 0.20, 40: 0.20, 80: 0.35}


HOLD_MEMORY = [n for collection in ("persistent", "open") for n in shipped(collection) if not halfway(n)]


@pytest.mark.parametrize("name", HOLD_MEMORY)
def test_shipped_network_that_holds_its_memory_is_within_the_limits_at_every_delay(name):
    (row,) = (row for row in summary() if shipped_name(row["name"], row["seed"]) == name)
    found = {point["delay"]: point for point in row["delays"]}
    assert set(found) == set(MEDIAN_ERROR) and row["norm_ratio"] > 0
    missed = {d: found[d]["median_error"] for d, limit in MEDIAN_ERROR.items() if found[d]["median_error"] > limit}
    for delay, point in found.items():
        limits = {"away": 0.15} if delay == 80 else AT_EVERY_DELAY
        over = {key: point[key] for key, limit in limits.items() if point[key] is not None and point[key] > limit}
        missed |= {delay: over} if over else {}
    assert not missed


@pytest.mark.parametrize("cueing", ["feature", "index"])
@pytest.mark.parametrize("collection", ["persistent", "open"])
def test_networks_of_one_collection_and_cueing_differ_in_their_targets_alone(collection, cueing):
    names = [n for n in experiments_in(collection) if n.startswith(f"{collection}-{cueing}-")]
    trained = [e for e in map(read_experiment, names) if e.start_from == f"{collection}-{cueing}-base"]
    assert len(trained) >= 2 and len({json.dumps(e.behaviour, sort_keys=True) for e in trained}) == len(trained)
    for part in ("task", "network", "noise"):
        assert len({str(getattr(e, part)) for e in trained}) == 1
    stages = {e.name: [stage.model_copy(update={"behaviour": None}) for stage in e.stage] for e in trained}
    common = stages[f"{collection}-{cueing}-no-swap"]
    # smooth-0, which no claim compares with the others, goes on for one more stage: its file says why.
    longer = {f"persistent-{cueing}-smooth-0"} & stages.keys()
    assert all(stages[name][: len(common)] == common and len(stages[name]) == len(common) + 1 for name in longer)
    assert all(one == common for name, one in stages.items() if name not in longer)


@pytest.mark.slow
def test_recorded_limits_hold_on_other_conditions():
    """The network with the largest deviation of its swap curve, measured again with another seed."""
    from lapsus.evaluation import evaluate

    records = {name: facts["evaluation"] for name, facts in shipped().items() if _of_the_paper(facts)}
    worst = max(records, key=lambda name: records[name]["swap_curve_max"])
    found, recorded = evaluate(load_shipped(worst), conditions=2048, trials=16, seed=12345), records[worst]
    assert (
        found["swap_curve_mad"] < recorded["swap_curve_mad"] + 0.006
        and found["swap_curve_max"] < recorded["swap_curve_max"] + 0.015
    )
    assert found["median_error"] == pytest.approx(recorded["median_error"], abs=0.01) and found["excess"] < 0.08


def test_shipped_weights_stay_small():
    assert sum(path.stat().st_size for path in weights_folder().glob("*.safetensors")) < 60e6
    for row in summary():
        assert set(row) - {"delays", "norm_ratio"} == {
            "name",
            "seed",
            "collection",
            "objective",
            "energy_excess",
            "excess",
            "swap_likelihood_mad",
            "swap_curve_mad",
            "swap_curve_max",
            "median_error",
            "away",
            "trials_seen",
            "core_minutes",
        }


def test_unknown_name_says_what_there_is():
    with pytest.raises(LapsusError, match="neither a run folder nor a network"):
        load("feature-smoth-0")
    with pytest.raises(LapsusError, match="neither"):
        load("../../etc/passwd")
