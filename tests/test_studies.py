"""Tables of the studies: rows are added and none is lost, claims count networks that are no longer there, and networks
with a known mechanism are recognised."""

import json

import claim_tables
import ensemble_tables as ensembles
import measure as study
import numpy as np
import pandas as pd
import pytest
from made_networks import ResponseWalks, made
from observers import observer
from scipy import stats
from sweep_members import write_sweep
from written_networks import MECHANISMS, written_network

from lapsus import LapsusError
from lapsus.circular import distance
from lapsus.evaluation.sample_sizes import QUICK_FIGURES, SampleSizes
from lapsus.evaluation.simulation import simulate
from lapsus.mechanism.asking import analyse
from lapsus.paper import claims
from lapsus.paper.roles import Networks, finished_runs
from lapsus.paper.values import recorded_values as recorded, statistic_digest
from lapsus.statistics.swaps import nearest_item
from lapsus.sweep import Sweep, plan_sweep, read_sweep
from lapsus.sweep.member import run_member
from lapsus.training.model import weights_digest

ID = "normal-separates"


def one_claim(monkeypatch, value, role="feature-smooth-0"):
    compute = lambda networks, role: (networks.model(role), value)[1]
    monkeypatch.setattr(claims, "CLAIMS", {ID: claims.Test("fig4", compute, ((role,),))})
    monkeypatch.setattr(claims, "criteria", lambda: {ID: {}})


def test_networks_that_are_no_longer_there_count_once_by_what_was_recorded_of_them(monkeypatch):
    one_claim(monkeypatch, (0.9, 0.88, 0.92))
    here = Networks({"feature-smooth-0": lambda: made(ResponseWalks())}, {"feature-smooth-0": "a"}, QUICK_FIGURES)
    kept = {ID: {"a": (0.1, 0.0, 0.2), "a@4": (0.8, 0.7, 0.9), "a@5": (0.7, 0.6, 0.8)}}
    (found,) = claims.evaluate_claims(here, recorded=kept)
    assert found.networks == 3 and set(found.each) == {"a", "a@4", "a@5"}
    assert found.each["a"][0] == 0.9  # what is there is computed, not believed
    assert found.value == pytest.approx(0.8) and found.holding == pytest.approx(1 / 3)
    (alone,) = claims.evaluate_claims(Networks({}, {}, QUICK_FIGURES), recorded={ID: {"a@4": (0.8, 0.7, 0.9)}})
    assert alone.networks == 1


def test_a_role_that_no_seed_has_makes_no_seed_count_for_another(monkeypatch):
    test = claims.Test("fig4", lambda networks, *_: (0.9, 0.8, 1.0), (("feature-smooth-0", "feature-smooth-1"),))
    monkeypatch.setattr(claims, "CLAIMS", {ID: test})
    monkeypatch.setattr(claims, "criteria", lambda: {ID: {}})
    seeds = [Networks({"feature-smooth-0": lambda: None}, {"feature-smooth-0": name}) for name in ("a", "a@2", "a@2")]
    (found,) = claims.evaluate_claims(seeds)
    assert set(found.each) == {"a", "a@2"}


def test_only_rows_of_the_same_recipe_and_statistic_are_believed(tmp_path):
    rows = [
        ("persistent", ID, "a@4", 0.8, 0.7, 0.9, statistic_digest(ID)),
        ("persistent", ID, "a@5", 0.8, 0.7, 0.9, "of another statistic"),
        ("persistent", ID, "a@6", float("nan"), 0.7, 0.9, statistic_digest(ID)),
        ("persistent", "no-such-claim", "a@4", 0.8, 0.7, 0.9, ""),
        ("paper", ID, "b", 0.8, 0.7, 0.9, statistic_digest(ID)),
    ]
    path = tmp_path / "claims.csv"
    pd.DataFrame(rows, columns=study.COLUMNS).to_csv(path, index=False)
    assert recorded("persistent", path) == {ID: {"a@4": (0.8, 0.7, 0.9)}}
    assert recorded("persistent", tmp_path / "none.csv") == {}
    path.write_text("a,b\n1,2\n")
    with pytest.raises(LapsusError, match=r"claims\.csv is not a table of claims"):
        recorded("persistent", path)


def test_members_of_a_sweep_are_seeds_of_the_experiment_that_they_are_of(tmp_path, monkeypatch):
    changes = {"task": {"kind": "index-cued"}, "stage": [{"updates": 2, "conditions": 2, "trials": 4}]}
    path = write_sweep(
        tmp_path, changes, member=[{"name": "mine", "seeds": [4, 5]}, {"name": "x_wide", "set": {"network.units": 6}}]
    )
    sweep = Sweep.make(tmp_path / "out", plan_sweep(read_sweep(path), tmp_path / "out"))
    assert {run_member(sweep, name).kind for name in ("mine-4", "x_wide-1")} == {"done"}
    assert set(finished_runs(sweep.path)) == {"tiny@4", "x_wide"}  # seed 5 was not trained
    both = Networks.every_seed(None, [sweep.path])
    assert [one.sources["index-none"] for one in both] == ["x_wide", "tiny@4"]
    assert len(Networks.every_seed("persistent")) == 3
    # What `lapsus reproduce --further SWEEP --values FILE` keeps is what the study takes, by the same names.
    one_claim(monkeypatch, (0.9, 0.88, 0.92), "index-none")
    path = tmp_path / "values.json"
    (claim,) = claims.evaluate_claims(both, values=path)
    assert set(claim.each) == {"tiny@4", "x_wide"}
    monkeypatch.setattr(study, "OTHER_CLAIMS", tmp_path / "claims.csv")
    study.add_claims(path, "mine")
    kept = {recipe: set(recorded(recipe, tmp_path / "claims.csv")[ID]) for recipe in ("mine", "mine: wide")}
    assert kept == {"mine": {"tiny@4"}, "mine: wide": {"x_wide"}}
    # Of the shipped seeds, each has its own networks; another seed stands in where one is missing.
    assert Networks.every_seed("persistent")[2].sources["index-none"] == "persistent-index-no-swap@3"


def test_a_network_that_was_trained_on_is_the_network_of_its_role(tmp_path):
    """The one it was trained on from has as many updates and is a stage of it, unless it has another target or was
    asked for by itself."""
    stage = {"stage": [{"updates": 2, "conditions": 2, "trials": 4}], "task": {"kind": "index-cued"}}
    for name, start, left in (
        ("same", stage, {"tiny"}),
        ("other", stage | {"behaviour": {"kind": "bns", "swap": {"kind": "constant", "p": 0.05}}}, {"tiny", "first"}),
        ("asked", stage, {"tiny", "first"}),
    ):
        (tmp_path / name).mkdir()
        both = {"experiment": ["first.toml", "tiny.toml"]} if name == "asked" else {}
        path = write_sweep(tmp_path / name, changes=stage, start=start, **both)
        sweep = Sweep.make(tmp_path / name / "out", plan_sweep(read_sweep(path), tmp_path / name / "out"))
        assert {run_member(sweep, one).kind for one in ("first-1", "tiny-1")} == {"done"}
        assert set(finished_runs(sweep.path)) == left
        if name != "asked":
            assert Networks.every_seed(None, [sweep.path])[0].sources["index-none"] == "tiny"
            assert Networks.in_folder(sweep.path).sources["index-none"] == str(sweep.run_folder("tiny-1"))
        assert {network.name for network in study.networks(f"mine={sweep.path}")} == left


def test_a_network_costs_what_it_starts_from_too(tmp_path):
    path = write_sweep(tmp_path, start={}, changes={"stage": [{"updates": 2, "conditions": 2, "trials": 4}]})
    sweep = Sweep.make(tmp_path / "out", plan_sweep(read_sweep(path), tmp_path / "out"))
    assert {run_member(sweep, name).kind for name in ("first-1", "tiny-1")} == {"done"}
    assert [folder.name for folder in study.chain_of(sweep.run("tiny-1"))] == ["tiny-1", "first-1"]
    assert study.core_minutes(sweep.run_folder("first-1")) > study.core_minutes(sweep.run_folder("tiny-1")) > 0


def test_rows_are_added_and_none_is_lost(tmp_path, monkeypatch):
    """A second look adds columns, other networks and claims; other weights replace a row and its distances."""
    monkeypatch.setattr(study, "FOLDER", tmp_path)
    asked = []

    def part_of(network, model, part):
        asked.append((network.name, part))
        return {part: len(asked)}

    monkeypatch.setattr(study, "part_of", part_of)
    models = {name: made(ResponseWalks()) for name in "ab"}
    networks = [
        study.Network("mine", name, type("E", (), {"seed": 1})(), "index-none", {}, lambda name=name: models[name])
        for name in "ab"
    ]
    study.add_members(networks[:1], ["evaluation"])
    study.add_members(networks, ["evaluation", "alignment"])
    table = study.read("members", study.KEY).set_index("network")
    assert asked == [("a", "evaluation"), ("a", "alignment"), ("b", "evaluation"), ("b", "alignment")]
    assert table.loc["a", "evaluation"] == 1 and table.loc["a", "alignment"] == 2
    assert table.loc["a", "measured"] == "evaluation alignment"
    pairs = pd.DataFrame(
        [("mine", "index", "response", "a", "b", 0.5, 0.9), ("mine", "index", "response", "b", "b", 0, 1)]
    )
    pairs.columns = ["recipe", "cueing", "when", "first", "second", "distance", "shuffled"]
    pairs.to_csv(tmp_path / "distances.csv", index=False)
    models["a"].network.readout.mul_(-1)
    study.add_members(networks, ["evaluation"])
    table = study.read("members", study.KEY).set_index("network")
    assert table.loc["a", "measured"] == "evaluation" and np.isnan(table.loc["a", "alignment"])
    assert table.loc["b", "alignment"] == 4 and len(study.read("distances", [])) == 1
    # Answers that were kept are taken instead of being asked again, of the network with these weights alone.
    kept = {"made_of": {"weights": weights_digest(models["b"]), "seed": 0, "lapsus": ""}}
    kept["row"] = {"error_type": "late switch", "parting": 18, "left_out": "", "seconds": 1.0}
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "b.json").write_text(json.dumps(kept))
    count = len(asked)
    study.add_members(networks, ["error_type"], study.kept_answers(tmp_path / "answers"))
    table = study.read("members", study.KEY).set_index("network")
    assert (
        table.loc["b", "error_type"] == "late switch"
        and "parting" not in table
        and asked[count:] == [("a", "error_type")]
    )
    assert table.loc["b", "measured"].split() == ["evaluation", "alignment", "error_type"]
    values = tmp_path / "values.json"
    values.write_text(json.dumps({f"{ID}: feature-smooth-0": {"value": [0.9, 0.8, 1.0], "made_of": ""}}))
    monkeypatch.setattr(study, "PACKAGE_CLAIMS", tmp_path / "claims.csv")
    study.add_claims(values, None)
    values.write_text(json.dumps([{"id": ID, "each": {"feature-smooth-0@2": [0.7, 0.6, 0.8]}}]))
    study.add_claims(values, None)
    assert recorded("paper", tmp_path / "claims.csv")[ID] == {
        "feature-smooth-0": (0.9, 0.8, 1.0),
        "feature-smooth-0@2": (0.7, 0.6, 0.8),
    }


@pytest.mark.slow
def test_tables_that_are_kept_are_those_of_the_rows():
    """A table that was changed by hand, or not made again after rows were added, is seen."""
    members, pairs = ensembles.table("members"), ensembles.table("distances")
    found = ensembles.spreads(members[~members["recipe"].str.contains(":")])
    for name, made_now in {
        "how-many": ensembles.how_many(found),
        "factors": ensembles.factors(members),
        "alignment": ensembles.alignment(members),
        "distances": ensembles.distances(pairs, members),
    }.items():
        assert (ensembles.FOLDER / "tables" / f"{name}.csv").read_text() == made_now.to_csv(index=False)
    for name in ("paper", "persistent"):
        made_now = claim_tables.results(claim_tables.judged(name)).to_csv(index=False)
        assert (claim_tables.FOLDER / "tables" / f"results-{name}.csv").read_text() == made_now


def test_how_many_networks_would_decide():
    """The interval of the mean must be narrower than the gap: with an s.d. as large, seven networks (2.447 / √7)."""
    assert claim_tables.networks_needed(1.0, 1.0) == "7"
    assert claim_tables.networks_needed(0.0, 1.0) == "2" and claim_tables.networks_needed(1.0, 1e-6) == "> 1000"


EXPECTED = {
    "misbinding": ("misbinding", "before", "m"),
    "prior inclination": ("misinterpretation", "before", "m"),
    "misselection": ("misselection", "at", "m"),
    "cue-time noise": ("misinterpretation", "at", "m"),
    "late switch": ("late switch", "after", "m"),
    "response-time noise": ("no mark", "after", "x"),
}

# What all answers together support: the part of the trial that decides half of the outcome limits the types.
AGREED = {
    "misbinding": "misbinding",
    "prior inclination": "prior inclination",
    "misselection": "misselection",
    "cue-time noise": "misinterpretation",
    "late switch": "late switch",
    "response-time noise": "no mark",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The torch reference runs")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_networks_with_a_known_mechanism_are_recognised(mechanism):
    """When, what and which kind, of a network that was written down to swap in this way in one trial of five."""
    model = written_network(mechanism, 0.2, 20.0)
    data = simulate(model, 500, 4, threads=1)
    report = np.stack([data["report_1"], data["report_2"]], 1)
    swapped = distance(report, data["response"].to_numpy()[:, None]).argmin(1) != data["cued"].to_numpy() - 1
    assert abs(swapped.mean() - 0.2) < 0.04
    sizes = SampleSizes(replay_conditions=16, groups=32, replays=4, donors=64, single_trials=2000, every=8)
    found = analyse(model, only=("commitment", "transplant", "error_type"), sizes=sizes, threads=1)
    half, onset = found.commitment.half_time, found.commitment.cue_onset
    when = "before" if half < onset else "at" if half <= 0 else "after"
    assert (found.error_type.decision, when, found.carrier) == EXPECTED[mechanism]
    assert found.error == AGREED[mechanism] and sum(
        share for share, *_ in found.commitment.shares.values()
    ) == pytest.approx(1)


def test_swaps_of_the_observers_are_decided_early_or_late_by_construction():
    """The early one has noise before the cue only, the late one after it only; both swap."""
    for name, early in (("early", True), ("late", False)):
        model = observer(name)
        onset = sum(model.task.epochs[epoch] for epoch in ("prestimulus", "stimulus", "delay"))
        noisy = np.array(model.timeline.sigma) > 0
        assert noisy[:onset].all() == early == (not noisy[onset:].any())
        data = simulate(model, 1500, 1, seed=3, threads=1)
        nearest, _ = nearest_item(data["response"].to_numpy(), np.stack([data["report_1"], data["report_2"]], 1))
        assert 0.03 < np.mean(nearest != data["cued"].to_numpy() - 1) < 0.12


def test_differences_are_within_seeds_where_networks_share_a_start():
    """By hand: differences 1 and 3 have a mean of 2 and a standard error of 1; Student's factor for two is 12.7."""
    first, second = pd.Series({1: 11.0, 2: 23.0, 3: 5.0}), pd.Series({1: 10.0, 2: 20.0})
    assert ensembles.difference(first, second, paired=True) == "+2 [-11, 15]"
    mean, low, high = (-2.0, *stats.ttest_ind(first, second, equal_var=False).confidence_interval())
    assert ensembles.difference(first, second, paired=False) == f"{mean:+.3g} [{low:.2g}, {high:.2g}]"
    assert ensembles.difference(first[:1], second, paired=True) == ""


def test_distances_do_not_count_what_networks_of_one_seed_share():
    """Two targets in two seeds: within a seed 0.1 apart, and between seeds 0.5 or, of other targets, 0.6."""
    names = [f"{target}{seed}" for target in "ab" for seed in ("", "@2")]
    rows = [
        ("mine", "index", "response", one, two, 0.001 if one == two else _apart(one, two), 0.9)
        for k, one in enumerate(names)
        for two in names[k:]
    ]
    pairs = pd.DataFrame(rows, columns=["recipe", "cueing", "when", "first", "second", "distance", "shuffled"])
    members = pd.DataFrame({"recipe": "mine", "network": names, "role": ["index-none", "index-none", "x", "x"]})
    row = list(ensembles.distances(pairs, members).iloc[-1])
    assert row[2:9] == ["4 of 2", "response", "0.001", "0.100", "0.500", "0.600", "0.900"] and "(0.5)" in row[-1]


def _apart(one: str, two: str) -> float:
    if one[1:] == two[1:]:
        return 0.1
    return 0.5 if one[0] == two[0] else 0.6
