"""Displays whose number of items varies: what is shown, what is asked for, what is measured."""

import math

import pytest
import torch

from lapsus import BNS, ConstantSwap, FeatureCued, IndexCued, LapsusError, SmoothSwap
from lapsus.behaviour import BySetSize
from lapsus.energy import energy_excess
from lapsus.evaluation.against_target import respond
from lapsus.tasks import Range
from lapsus.tasks.delayed_estimation import present
from lapsus.training import Experiment, Model
from lapsus.training.build import build, describe

TASKS = {
    "feature": FeatureCued(items=Range(1, 4), report_margin=0.3, probe_margin=0.3),
    "index": IndexCued(items=Range(1, 4), report_margin=0.3),
}


def draw(task, count=400, seed=0):
    return task.sample(count, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", TASKS)
def test_every_number_of_items_occurs_and_the_cued_one_is_there(kind):
    conditions = draw(TASKS[kind])
    there = present(conditions)
    sizes = there.sum(1)
    assert sizes.unique().tolist() == [1, 2, 3, 4]
    assert ((sizes == 3).float().mean() - 0.25).abs() < 0.1
    assert there.gather(1, conditions["cued"][:, None]).all()
    assert torch.equal(torch.isnan(conditions["probe"]), ~there)
    cued = conditions["cued"][sizes == 4]
    assert all((cued == item).any() for item in range(4))


@pytest.mark.parametrize("kind", TASKS)
def test_an_absent_item_is_absent_from_input_and_table(kind):
    task, conditions = TASKS[kind], draw(TASKS[kind])
    shown = task.stimuli(conditions)
    assert all(torch.isfinite(values.float()).all() for values in shown.values())
    smaller = type(task)(items=2, report_margin=0.3)
    two = present(conditions).sum(1) == 2
    pair = {name: (v[two][:, :2] if v.ndim == 2 else v[two]) for name, v in conditions.items()}
    expected = smaller.stimuli(pair)["stimulus"]
    found = shown["stimulus"][two]
    if kind == "index":  # channels of items 3 and 4 are silent
        found = found[:, [0, 1, 4, 5]]
        assert (shown["stimulus"][two][:, [2, 3, 6, 7]] == 0).all()
    assert torch.allclose(found, expected)
    table = task.table(conditions)
    assert (table["set_size"] == present(conditions).sum(1).numpy()).all()
    assert table.loc[table["set_size"] == 1, "report_2"].isna().all() and table["target"].notna().all()


def test_one_number_of_items_draws_what_it_always_drew():
    task = FeatureCued(items=2)
    conditions = draw(task, 5)
    assert "set_size" not in task.table(conditions).columns
    assert [round(v, 4) for v in conditions["report"][0].tolist()] == [-2.3051, -0.2961]
    assert conditions["cued"].tolist() == [0, 1, 0, 1, 1]


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(LapsusError, match=r"task.items must be from 1 to 64 \(it goes from 0 to 4\)"):
        IndexCued(items=Range(0, 4))
    with pytest.raises(LapsusError, match="impossible for 8 items"):
        FeatureCued(items={"from": 1, "to": 8})
    with pytest.raises(LapsusError, match='"scalar" cannot show'):
        IndexCued(items=Range(1, 2), encoding="scalar")
    with pytest.raises(LapsusError, match="a range of items and needs `from` and `to`"):
        IndexCued(items={"from": 1})
    with pytest.raises(LapsusError, match="given for set sizes 1, 2, and the task shows 3 items"):
        BySetSize({1: BNS(), 2: BNS()}).weights(draw(TASKS["index"]))


# --- One after the other ---


@pytest.mark.parametrize("made", [FeatureCued, IndexCued])
def test_items_are_shown_one_after_the_other_and_together_make_the_display(made):
    task = made(items=Range(1, 3), report_margin=0.3, presentation="sequential", gap=2)
    assert list(task.epochs)[:7] == [
        "prestimulus", "stimulus_1", "gap_1", "stimulus_2", "gap_2", "stimulus_3", "delay",
    ]  # fmt: skip
    conditions = draw(task)
    shown = task.stimuli(conditions)
    at_once = made(items=Range(1, 3), report_margin=0.3).stimuli(conditions)["stimulus"]
    assert torch.allclose(sum(shown[f"stimulus_{k}"] for k in (1, 2, 3)), at_once, atol=1e-5)
    single = present(conditions).sum(1) == 1
    assert (shown["stimulus_1"][single] == 0).all() and (shown["stimulus_3"][single] != 0).any()
    encoded = task.encoder(torch.Generator().manual_seed(0))(shown)
    assert encoded["stimulus_2"].shape == encoded["cue"].shape


def test_a_network_runs_on_sequential_displays_of_any_size():
    table = {
        "name": "sequential",
        "task": {
            "kind": "index-cued",
            "items": {"from": 1, "to": 3},
            "report_margin": 0.3,
            "presentation": "sequential",
        },
        "network": {"kind": "dendritic", "units": 8, "branching": [2, 3]},
        "behaviour": {"kind": "bns", "swap": {"kind": "constant", "p": 0.1}},
        "stage": [{"updates": 1, "objective": {"kind": "energy"}, "conditions": 4, "trials": 4}],
    }
    model = Model.of(Experiment.model_validate(table))
    conditions = draw(model.task, 6)
    fused = respond(model, conditions, 3, 0)
    reference = respond(model, conditions, 3, 0, engine="reference")
    assert torch.isfinite(fused).all() and torch.allclose(fused, reference, atol=1e-3)


# --- The target ---


def test_items_that_are_not_there_are_never_reported():
    behaviour, conditions = BNS(swap=SmoothSwap(), pi_correct=1.0), draw(TASKS["feature"])
    weights, there = behaviour.weights(conditions), present(conditions)
    assert (weights[~there] == 0).all() and torch.allclose(weights.sum(1), torch.ones(len(weights)))
    mixture = behaviour.mixture(conditions)
    assert torch.isfinite(mixture.means).all() and torch.isfinite(behaviour.optimal(conditions)).all()
    x = behaviour.sample(conditions, 64, torch.Generator().manual_seed(1))
    assert torch.isfinite(x).all() and abs(float(energy_excess(x.double(), mixture.double()).mean())) < 0.02


def test_a_scale_mixture_has_the_moments_and_the_density_of_its_parts():
    parts = ((0.7, 0.2), (0.3, 0.8))
    conditions = {"report": torch.zeros(1, 1), "probe": torch.zeros(1, 1), "cued": torch.zeros(1, dtype=torch.long)}
    heavy = BNS(scale_mixture=parts, uniform=0.1)
    x = heavy.sample(conditions, 200_000, torch.Generator().manual_seed(0))
    angle = torch.linspace(-math.pi, math.pi, 721)[None, :-1]
    density = heavy.density(angle, conditions)
    assert float(density.sum() * 2 * math.pi / 720) == pytest.approx(1, abs=1e-3)
    ring = BNS(spread=0.2, uniform=0.1).density(angle, conditions) - 0.9 * BNS(spread=0.2).density(angle, conditions)
    mean = 0.9 * sum(share * BNS(spread=spread).density(angle, conditions) for share, spread in parts) + ring
    assert torch.allclose(density, mean, atol=1e-5)
    drawn = torch.atan2(x[1, 0], x[0, 0])
    for limit in (0.1, 0.3, 1.0):
        expected = float(density[0, angle[0].abs() < limit].sum() * 2 * math.pi / 720)
        assert float((drawn.abs() < limit).float().mean()) == pytest.approx(expected, abs=0.01)
    with pytest.raises(LapsusError, match="shares that sum to 1"):
        BNS(scale_mixture=((0.5, 0.2),))


def by_set_size():
    return BySetSize(
        {
            1: BNS(spread=0.15),
            2: BNS(swap=ConstantSwap(0.1), spread=0.2),
            3: BNS(swap=ConstantSwap(0.15), scale_mixture=((0.5, 0.2), (0.5, 0.6))),
            4: BNS(swap=ConstantSwap(0.2), uniform=0.1, spread=0.4),
        }
    )


def test_every_set_size_has_its_own_swaps_scatter_and_guesses():
    behaviour, conditions = by_set_size(), draw(TASKS["feature"], 2000)
    sizes, mixture = present(conditions).sum(1), behaviour.mixture(conditions)
    assert torch.allclose(mixture.weights.sum(1), torch.ones(len(sizes)), atol=1e-5)
    for size, own in behaviour.of.items():
        rows = sizes == size
        part = {name: values[rows] for name, values in conditions.items()}
        assert torch.allclose(behaviour.weights(conditions)[rows], own.weights(part))
        angle = torch.linspace(-3, 3, 50).expand(int(rows.sum()), -1)
        whole = behaviour.density(torch.linspace(-3, 3, 50).expand(len(sizes), -1), conditions)[rows]
        assert torch.allclose(whole, own.density(angle, part), atol=1e-6)
        assert torch.allclose(behaviour.optimal(conditions)[rows], own.optimal(part))


def test_measures_of_each_set_size_find_what_was_put_in():
    behaviour, conditions = by_set_size(), draw(TASKS["feature"], 4000)
    x = behaviour.sample(conditions, 16, torch.Generator().manual_seed(2))
    found = behaviour.measures(conditions, x)
    by_size = {row["set_size"]: row for row in found["set_sizes"]}
    assert list(by_size) == [1, 2, 3, 4] and by_size[1]["swap_curve"] == []
    for size in (2, 3, 4):
        assert by_size[size]["swap_likelihood_mad"] < 0.02
    assert by_size[2]["swap_curve_mad"] < 0.02
    assert by_size[1]["median_error"] < by_size[2]["median_error"] < by_size[4]["median_error"]
    assert by_size[4]["away"] > 0.01 > by_size[1]["away"]


def test_a_behaviour_by_set_size_goes_through_a_file():
    table = describe("behaviour", by_set_size())
    assert table["kind"] == "by-set-size" and table["of"]["2"]["swap"] == {"kind": "constant", "p": 0.1}
    assert build("behaviour", table) == by_set_size()
    task = describe("task", TASKS["index"])
    assert task["items"] == {"from": 1, "to": 4} and build("task", task) == TASKS["index"]


def test_evaluate_prints_a_line_for_each_set_size():
    from lapsus.cli.evaluate import _set_sizes

    behaviour, conditions = by_set_size(), draw(TASKS["feature"], 4000)
    x = behaviour.sample(conditions, 16, torch.Generator().manual_seed(3))
    lines = _set_sizes(behaviour.measures(conditions, x)["set_sizes"])
    swaps = {int(line.split()[0]): [float(part) for part in line.split()[1:3]] for line in lines[2:]}
    assert swaps[1] == [0, 0]
    odds = 0.1 / 0.9
    assert swaps[2][1] == pytest.approx(odds / (1 + odds), abs=1e-3)
    odds = 2 * 0.15 / 0.85
    assert swaps[3][1] == pytest.approx(odds / (1 + odds), abs=1e-3)
    assert all(abs(rate - target) < 0.05 for rate, target in swaps.values())
