"""The verdict on a network, from responses that were made to be of each kind."""

import math
from types import SimpleNamespace

import pytest
import torch

from lapsus import circular, rng
from lapsus.behaviour import BNS, ConstantSwap, NoSwap, SmoothSwap
from lapsus.evaluation.verdict import LIMITS, verdict
from lapsus.mechanism.registry import Mechanism
from lapsus.report.check_list import network_checks
from lapsus.tasks import FeatureCued
from lapsus.zoo.shipped import shipped

TARGET = BNS(swap=SmoothSwap(), pi_correct=1.0)
CONDITIONS, TRIALS = 512, 16


def _drawn(items: int = 2) -> dict:
    return FeatureCued(items=items).sample(CONDITIONS, rng.generator(1, "conditions"))


def _found(conditions: dict, x_T: torch.Tensor, target: BNS = TARGET) -> dict:
    """What `evaluate` would measure of these responses [2, C, K], without the network's own loss."""
    of_target = target.measures(conditions, target.sample(conditions, TRIALS, rng.generator(3, "target")))
    found = {"conditions": CONDITIONS, "trials": TRIALS} | target.measures(conditions, x_T)
    return found | {f"{name}_target": value for name, value in of_target.items() if isinstance(value, float)}


def _reporting(conditions: dict, item: torch.Tensor) -> torch.Tensor:
    """Precise responses at items [C, K]."""
    angle = conditions["report"].gather(1, item) + 0.08 * torch.randn(item.shape, generator=rng.generator(4, "x"))
    return 2.5 * circular.embed(angle).permute(2, 0, 1)


def _cued(conditions: dict) -> torch.Tensor:
    return conditions["cued"].long()[:, None].expand(-1, TRIALS)


def test_samples_of_the_target_are_matched():
    conditions = _drawn()
    said = verdict(_found(conditions, TARGET.sample(conditions, TRIALS, rng.generator(2, "responses"))))
    assert said.kind == "matched" and said.matched and not said.advice


@pytest.mark.parametrize("items", [2, 3])
def test_any_item_at_random_does_not_use_the_cue(items):
    conditions = _drawn(items)
    item = torch.randint(items, (CONDITIONS, TRIALS), generator=rng.generator(5, "item"))
    said = verdict(_found(conditions, _reporting(conditions, item)))
    assert said.kind == "no cue" and "start_from" in said.advice and not said.matched


def test_a_target_that_does_not_use_the_cue_is_no_failure():
    conditions, target = _drawn(), BNS(swap=ConstantSwap(0.5))
    item = torch.randint(2, (CONDITIONS, TRIALS), generator=rng.generator(5, "item"))
    assert verdict(_found(conditions, _reporting(conditions, item), target)).kind != "no cue"


def test_the_cued_item_always_is_one_mode():
    conditions = _drawn()
    assert verdict(_found(conditions, _reporting(conditions, _cued(conditions)))).kind == "one mode"


def test_the_cued_item_always_is_right_where_nothing_else_is_due():
    conditions, target = _drawn(), BNS(swap=NoSwap())
    assert verdict(_found(conditions, _reporting(conditions, _cued(conditions)), target)).kind == "matched"


def test_responses_anywhere_are_away():
    conditions = _drawn()
    angle = 2 * math.pi * torch.rand(CONDITIONS, TRIALS, generator=rng.generator(6, "angle"))
    said = verdict(_found(conditions, 2.5 * circular.embed(angle).permute(2, 0, 1)))
    assert said.kind == "away"


def test_another_swap_function_is_still_learning_and_says_what_is_off():
    conditions = _drawn()
    other = BNS(swap=ConstantSwap(0.25)).sample(conditions, TRIALS, rng.generator(2, "responses"))
    said = verdict(_found(conditions, other))
    assert said.kind == "still learning" and "swap curve" in said.sentence and "step_weight_exponent" in said.advice
    assert "resume" in verdict(_found(conditions, other), unfinished=True).advice


@pytest.mark.parametrize("name, kind", [("feature-smooth-2", "matched"), ("feature-optimal-40", "matched")])
def test_shipped_networks_get_the_verdict_that_their_limits_give(name, kind):
    facts = shipped()[name]
    assert verdict(facts["evaluation"], facts["config"]["stage"][-1]["objective"]["kind"]).kind == kind


def test_angles_are_said_in_degrees():
    found = shipped()["feature-smooth-2"]["evaluation"]
    assert f"median error {math.degrees(found['median_error']):.1f}°" in str(verdict(found))
    said = str(verdict(found | {"median_error": math.radians(20)}))
    assert "median error 20.0° (limit 8.6°)" in said and "rad" not in said


def test_an_excess_over_its_limit_is_not_matched():
    found = shipped()["feature-smooth-2"]["evaluation"]
    said = verdict(found | {"excess": 2 * LIMITS["diffusion"]["excess"]})
    assert said.kind == "still learning" and "excess" in said.sentence


@pytest.mark.parametrize(
    "kind, matched_to, excess, status",
    [
        ("diffusion", None, LIMITS["diffusion"]["excess"], ["passed"]),
        ("diffusion", None, 0.1, ["failed"]),  # as the verdict says on the same page
        ("diffusion", "a subject", 0.1, ["passed"]),  # a discovery has minutes
        ("diffusion", "a subject", 0.3, ["failed"]),
        ("task-optimal", None, 1.5, []),  # never asked to denoise
    ],
)
def test_the_check_of_the_excess_has_the_verdicts_limit(kind, matched_to, excess, status):
    network = SimpleNamespace(
        update=1,
        updates=1,
        settled=False,
        evaluation={"excess": excess},
        mechanism=Mechanism(),
        match=matched_to,
        experiment=SimpleNamespace(stage=[SimpleNamespace(objective={"kind": kind})]),
    )
    assert [check.status for check in network_checks([network]) if check.name == "Denoising"] == status
    if matched_to is None:
        assert verdict({"excess": excess}, kind).matched == (status == ["passed"])


def test_there_is_no_verdict_only_where_nothing_that_has_a_limit_was_measured():
    assert verdict({"median_rt": 0.4}).kind == "not judged"
    for measured in ({"energy_excess_relative": 0.01}, {"energy_excess_relative": 0.9}, {"median_error": 0.01}):
        assert verdict(measured).kind != "not judged"
