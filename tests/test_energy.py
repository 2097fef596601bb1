"""The energy score: against brute force, another library, finite differences; proper; the same by either form."""

import math

import numpy as np
import pytest
import torch
from tiny_experiment import TINY

import lapsus
from lapsus import LapsusError, read_experiment, rng
from lapsus.diffusion import Mixture
from lapsus.energy import (
    _Weight,
    energy_excess,
    energy_score,
    expected_distance,
    has_closed_form,
    sampled_energy_excess,
    self_distance,
    weighted_energy_excess,
)
from lapsus.training.model import Model
from lapsus.training.objectives import Energy


def two_modes(d: int, conditions: int = 3) -> Mixture:
    generator = rng.generator("two modes", d)
    weights = torch.tensor([[0.9, 0.1]]).double().expand(conditions, -1)
    means = 2 * torch.randn(conditions, 2, d, generator=generator, dtype=torch.double)
    scales = torch.tensor([[0.2, 0.5]]).double().expand(conditions, -1)
    return Mixture(weights, means, scales)


@pytest.mark.parametrize("d", [1, 2])
def test_expected_distance_is_the_mean_over_samples(d):
    target = two_modes(d)
    x = torch.randn(d, 3, 5, generator=rng.generator("x"), dtype=torch.double)
    samples = target.sample(100_000, rng.generator("y"))
    brute = (x[:, :, :, None] - samples[:, :, None, :]).norm(dim=0)
    error = brute.std(-1) / math.sqrt(brute.shape[-1])
    assert bool(((expected_distance(x, target) - brute.mean(-1)).abs() < 5 * error).all())
    pairs = (samples[:, :, ::2] - samples[:, :, 1::2]).norm(dim=0)
    error = pairs.std(-1) / math.sqrt(pairs.shape[-1])
    assert bool(((self_distance(target) - pairs.mean(-1)).abs() < 5 * error).all())


def test_the_score_is_that_of_scoringrules():
    """Fair (unbiased) energy score of 16 members for one observation, by the package scoringrules."""
    scoringrules = pytest.importorskip("scoringrules")
    ensemble = np.random.default_rng(0).normal(size=(16, 2))
    observation = np.array([0.3, -1.2])
    other = scoringrules.es_ensemble(observation, ensemble, estimator="fair")
    x = torch.tensor(ensemble.T[:, None])
    # A target without width is an observation; its own score is 0.
    at_observation = Mixture(
        torch.ones(1, 1).double(), torch.tensor(observation).view(1, 1, 2), torch.full((1, 1), 1e-9)
    )
    assert float(energy_excess(x, at_observation)) == pytest.approx(float(other), rel=1e-6)
    samples = torch.tensor(observation).view(2, 1, 1).expand(2, 1, 16)
    assert float(sampled_energy_excess(x, samples)) == pytest.approx(float(other), rel=1e-9)


@pytest.mark.parametrize("d", [1, 2])
def test_gradients_are_those_of_finite_differences(d):
    target = two_modes(d)
    x = torch.randn(d, 3, 4, generator=rng.generator("x"), dtype=torch.double).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: energy_excess(x, target), x)
    y = target.sample(4, rng.generator("y"))
    assert torch.autograd.gradcheck(lambda x: sampled_energy_excess(x, y), x)


def test_gradients_stay_finite_where_two_trials_coincide_or_hit_a_mode():
    target = two_modes(2)
    x = target.means[:, :1].permute(2, 0, 1).expand(2, 3, 2).clone().requires_grad_()
    energy_excess(x, target).sum().backward()
    assert bool(torch.isfinite(x.grad).all())


@pytest.mark.slow
@pytest.mark.parametrize("trials", [2, 16])
def test_it_is_unbiased_and_proper(trials):
    """The target has an excess of 0 on average with any number of trials; wrong rates, widths and places have more."""
    conditions = 80_000 // trials
    right = Mixture(
        torch.tensor([[0.9, 0.1]]).expand(conditions, -1),
        torch.tensor([[[2.5, 0.0], [-2.5, 0.0]]]).expand(conditions, -1, -1),
        torch.full((conditions, 2), 0.2),
    )
    wrong = {
        "more swaps": Mixture(torch.tensor([[0.7, 0.3]]).expand(conditions, -1), right.means, right.scales),
        "no swaps": Mixture(torch.tensor([[1.0, 0.0]]).expand(conditions, -1), right.means, right.scales),
        "wider": Mixture(right.weights, right.means, 3 * right.scales),
        "shifted": Mixture(right.weights, right.means + 0.3, right.scales),
        "average": Mixture(right.weights, 0.8 * torch.tensor([2.5, 0.0]).expand_as(right.means), right.scales),
    }

    def mean_and_error(samples):
        values = energy_excess(samples.double(), right.double())
        return float(values.mean()), float(values.std()) / math.sqrt(conditions)

    mean, error = mean_and_error(right.sample(trials, rng.generator("right", trials)))
    assert abs(mean) < 4 * error
    for name, mixture in wrong.items():
        mean, error = mean_and_error(mixture.sample(trials, rng.generator(name, trials)))
        assert mean > 4 * error, name


def test_samples_of_the_target_give_the_same_excess_with_more_noise():
    target, wrong = (
        two_modes(2, 20_000),
        Mixture(*(getattr(two_modes(2, 20_000), n) for n in ("weights", "means", "scales"))),
    )
    x = wrong.sample(8, rng.generator("x")) + 0.2
    closed, sampled = energy_excess(x, target), sampled_energy_excess(x, target.sample(8, rng.generator("y")))
    error = float((closed - sampled).std()) / math.sqrt(len(closed))
    assert abs(float(closed.mean() - sampled.mean())) < 4 * error
    assert (
        abs(float(energy_score(target.sample(8, rng.generator("z"))).mean() - 0.5 * self_distance(target).mean()))
        < 0.01
    )


def test_three_dimensions_have_no_closed_form_and_are_scored_by_samples():
    target = two_modes(3, 5)
    assert not has_closed_form(target) and not has_closed_form(None)
    with pytest.raises(ValueError, match="1 or 2 dimensions"):
        expected_distance(torch.zeros(3, 5, 4).double(), target)


def test_training_by_energy_score_learns_the_target():
    """A few updates lower the excess of a tiny network, and the term is the excess that evaluate measures."""
    stage = {"updates": 150, "objective": {"kind": "energy"}, "conditions": 32, "trials": 8}
    table = {**TINY, "stage": [stage | {"learning_rate": 1e-2, "warmup": 0, "clip": 10.0, "task": {"denoise": 16}}]}
    training = lapsus.training.loop.Training(read_experiment(table), Model.of(read_experiment(table)))
    energies = [progress.terms["energy"] for progress in training.run()]
    assert np.mean(energies[-10:]) < 0.8 * np.mean(energies[:10])


def test_one_trial_per_condition_is_refused():
    table = {**TINY, "stage": [{"updates": 1, "objective": {"kind": "energy"}, "conditions": 4, "trials": 1}]}
    training = lapsus.training.loop.Training(read_experiment(table), Model.of(read_experiment(table)))
    with pytest.raises(LapsusError, match="at least two trials per condition"):
        next(training.run())


def test_a_target_known_from_samples_alone_is_judged_by_them():
    """Without a limit there is no verdict; the responses of another distribution are not called matched."""
    found = {"conditions": 100, "trials": 8, "seed": 0}
    assert lapsus.verdict(found).kind == "not judged" and not lapsus.verdict(found).matched
    stuck = lapsus.verdict(found | {"energy_excess_relative": 0.2})
    assert stuck.kind == "still learning" and "network.input_scale" in stuck.advice
    assert lapsus.verdict(found | {"energy_excess_relative": 0.01}).matched


def test_noise_of_each_epoch():
    table = {**TINY, "noise": {"delay": 0.0, "response": 0.1}}
    model = Model.of(read_experiment(table))
    sigma, start = model.timeline.sigma, 0
    by_epoch = {}
    for name, steps in model.task.epochs.items():
        by_epoch[name], start = sigma[start : start + steps], start + steps
    first = float(model.schedule.sigma[0])
    assert set(by_epoch["delay"]) == {0.0} and set(by_epoch["denoise"]) == {0.1} and set(by_epoch["cue"]) == {first}
    assert Model.of(read_experiment(TINY)).timeline.sigma[-1] == float(model.schedule.sigma[-1])
    assert model.at(delay=7).timeline.sigma.count(0.0) == 7


def test_noise_of_an_epoch_that_is_not_there_or_that_diffusion_needs_is_refused():
    with pytest.raises(LapsusError, match=r"noise\.retention is not an epoch of this task"):
        Model.of(read_experiment({**TINY, "noise": {"retention": 0.1}}))
    with pytest.raises(LapsusError, match=r"noise\.delay"):
        read_experiment({**TINY, "noise": {"delay": -1.0}})
    table = {**TINY, "noise": {"response": 0.1}, "stage": TINY["stage"][1:]}
    training = lapsus.training.loop.Training(read_experiment(table), Model.of(read_experiment(table)))
    with pytest.raises(LapsusError, match="without teacher forcing"):
        next(training.run())


# --- Weighted by how rare a mode is ---


def _two_modes(p: float) -> Mixture:
    angles = torch.tensor([[0.0, 2.0], [0.5, 1.4]], dtype=torch.float64)
    weights = torch.tensor([[1 - p, p]], dtype=torch.float64).expand(2, 2)
    means = 2.5 * torch.stack([angles.cos(), angles.sin()], -1)
    return Mixture(weights, means, torch.full((2, 2), 0.2, dtype=torch.float64))


def test_weighted_excess_is_the_excess_where_all_modes_count_alike():
    target = _two_modes(0.1)
    x = _two_modes(0.3).sample(40, torch.Generator().manual_seed(1))
    assert torch.allclose(weighted_energy_excess(x, target, 1.0), energy_excess(x, target), atol=1e-9)


def test_weighted_excess_is_the_kernel_distance_of_weighted_samples():
    """By brute force: the mean of the kernel over pairs of samples of each of the two, each with its weight."""
    target, draws, count = _two_modes(0.1), torch.Generator().manual_seed(2), 600
    weight = _Weight.of(target, 0.4)

    def kernel(a, b):
        distance = (a[:, :, :, None] - b[:, :, None, :]).norm(dim=0)
        similarity = 0.5 * (a.norm(dim=0)[:, :, None] + b.norm(dim=0)[:, None, :] - distance)
        return weight(a)[:, :, None] * weight(b)[:, None, :] * similarity

    def within(a):
        values = kernel(a, a)
        return (values.sum((1, 2)) - values.diagonal(dim1=1, dim2=2).sum(1)) / (count * (count - 1))

    found, brute, masses = [], [], []
    for _ in range(40):
        x, y = _two_modes(0.25).sample(count, draws), target.sample(count, draws)
        found.append(weighted_energy_excess(x, target, 0.4))
        brute.append(within(x) + within(y) - 2 * kernel(x, y).mean((1, 2)))
        masses.append(weight(y).mean(1))
    by_hand = torch.stack(brute).mean(0) / torch.stack(masses).mean(0) ** 2
    assert torch.allclose(torch.stack(found).mean(0), by_hand, rtol=0.05)


def test_weighted_excess_is_least_at_the_target_and_steeper_in_the_rate_of_a_rare_mode():
    target, draws = _two_modes(0.05), torch.Generator().manual_seed(3)

    def mean(p, function):
        return float(torch.stack([function(_two_modes(p).sample(400, draws)) for _ in range(20)]).mean())

    weighted = {p: mean(p, lambda x: weighted_energy_excess(x, target, 0.4)) for p in (0.02, 0.05, 0.1)}
    plain = {p: mean(p, lambda x: energy_excess(x, target)) for p in (0.02, 0.05, 0.1)}
    assert abs(weighted[0.05]) < 0.1 * min(weighted[0.02], weighted[0.1])
    assert weighted[0.02] > 2 * plain[0.02] and weighted[0.1] > 2 * plain[0.1]


def test_gradient_of_the_weighted_excess():
    target = _two_modes(0.1)
    x = _two_modes(0.4).sample(5, torch.Generator().manual_seed(4)).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: weighted_energy_excess(z, target, 0.4), x, atol=1e-6)


def test_power_of_the_weight_is_between_0_and_1():
    with pytest.raises(LapsusError, match="rare_weight_power"):
        Energy(rare_weight_power=1.5)


def test_guesses_do_not_multiply_the_components_of_the_weight():
    """All 64 of their ring did: products of products took 10 GB."""
    from lapsus.energy import _Weight

    task, behaviour = lapsus.tasks.IndexCued(), lapsus.behaviour.BNS(uniform=0.3)
    target = behaviour.mixture(task.sample(4, lapsus.rng.generator(1)))
    assert target.weights.shape[1] > 60 and _Weight.of(target, 0.7).centres.shape[1] == 2
    raised = _Weight.of(target.double(), 0.7).times(target.double())
    assert raised.weights.shape[1] == 3 * target.weights.shape[1]
