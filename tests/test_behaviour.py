import math

import numpy as np
import pytest
import torch
from scipy import stats

from lapsus import (
    BNS,
    ConstantSwap,
    FeatureCued,
    IndexCued,
    NoSwap,
    SmoothSwap,
    TabulatedSwap,
    check_behaviour,
    circular,
    rng,
)
from lapsus.errors import LapsusError

BEHAVIOURS = [
    BNS(),
    BNS(ConstantSwap(0.3)),
    BNS(SmoothSwap(), pi_correct=1.0),
    BNS(SmoothSwap(), uniform=0.1),
    BNS(lambda d: 0.3 * torch.cos(d), feature="report"),
    BNS(lambda a, b: -a.abs() - b.abs(), feature="both"),
]


@pytest.mark.parametrize("items", [1, 2, 5])
@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=range(len(BEHAVIOURS)))
def test_check(behaviour, items):
    check_behaviour(behaviour, FeatureCued(items=items))


def test_two_item_swap_probability_is_the_papers_sigmoid():
    conditions = FeatureCued().sample(200, rng.generator("p"))
    d = circular.distance(conditions["probe"][:, 0], conditions["probe"][:, 1])
    for pi_correct in (0.0, 1.0, 2.0):
        weights = BNS(SmoothSwap(), pi_correct=pi_correct).weights(conditions)
        swap = weights.gather(1, 1 - conditions["cued"][:, None])[:, 0]
        torch.testing.assert_close(swap, torch.sigmoid(-(d**2) / 3 - pi_correct))
    at = {
        "probe": torch.tensor([[0.0, math.pi / 4], [0.0, -math.pi]]),
        "report": torch.zeros(2, 2),
        "cued": torch.zeros(2, dtype=torch.long),
    }
    for pi_correct, expected in ((0, (0.45, 0.036)), (1, (0.23, 0.0135)), (2, (0.10, 0.005))):
        assert BNS(SmoothSwap(), pi_correct=pi_correct).weights(at)[:, 1].tolist() == pytest.approx(expected, rel=0.03)
    assert BNS(ConstantSwap(0.3)).weights(at)[:, 1].tolist() == pytest.approx([0.3, 0.3])
    assert BNS(NoSwap()).weights(at)[:, 1].tolist() == [0, 0]


def test_a_guess_is_no_swap():
    """Of a target and of a simulation alike."""
    from types import SimpleNamespace
    from unittest import mock

    from lapsus.behaviour.measures import prior_swap_probability
    from lapsus.evaluation import simulation

    conditions = FeatureCued().sample(20, rng.generator("q"))
    behaviour = BNS(ConstantSwap(0.3), uniform=0.2)
    assert prior_swap_probability(behaviour, conditions).tolist() == pytest.approx([0.8 * 0.3] * 20)
    model = SimpleNamespace(task=FeatureCued(), behaviour=behaviour)
    with mock.patch.object(simulation, "respond", lambda *a, **k: torch.ones(2, 20, 3)):
        found = simulation.simulate_responses(model, 20, 3)
    assert found["probability"].to_numpy() == pytest.approx(0.8 * 0.3)


def test_many_items_are_a_softmax_over_logits():
    conditions = FeatureCued(items=5).sample(20, rng.generator("q"))
    weights = BNS(SmoothSwap(2.0), pi_correct=0.7, uniform=0.2).weights(conditions)
    for c in range(20):
        cued = int(conditions["cued"][c])
        logits = [
            -(float(circular.distance(conditions["probe"][c, n], conditions["probe"][c, cued])) ** 2) / 2
            for n in range(5)
        ]
        logits[cued] = 0.7
        expected = 0.8 * np.exp(logits) / np.exp(logits).sum()
        np.testing.assert_allclose(weights[c], expected, rtol=1e-4)


@pytest.mark.parametrize("behaviour", [BEHAVIOURS[1], BEHAVIOURS[3]])
def test_sampled_angles_follow_the_circular_density(behaviour):
    conditions = {k: v[:1] for k, v in FeatureCued().sample(4, rng.generator("d")).items()}
    x_T = behaviour.sample(conditions, 40_000, rng.generator("d2"))
    angles = np.sort(circular.angle(x_T.permute(1, 2, 0))[0].double().numpy())
    grid = torch.linspace(-math.pi, math.pi, 20_001, dtype=torch.float64)
    double = {k: v.double() if v.is_floating_point() else v for k, v in conditions.items()}
    density = behaviour.density(grid[None], double)[0].numpy()
    cdf = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))])
    assert cdf[-1] == pytest.approx(1, abs=1e-6)
    assert stats.kstest(angles, lambda x: np.interp(x, grid, cdf)).pvalue > 1e-3


def test_uniform_ring_is_flat():
    conditions = FeatureCued(items=1).sample(1, rng.generator("u"))
    grid = torch.linspace(-math.pi, math.pi, 1000, dtype=torch.float64)
    double = {k: v.double() if v.is_floating_point() else v for k, v in conditions.items()}
    with_ring, without = BNS(uniform=0.5).density(grid[None], double), BNS().density(grid[None], double)
    ring = 2 * with_ring - without
    torch.testing.assert_close(ring, torch.full_like(ring, 1 / (2 * math.pi)), rtol=1e-3, atol=0)


def test_tabulated_function_interpolates_around_the_circle():
    knots = np.linspace(-math.pi, math.pi, 24, endpoint=False)
    table = TabulatedSwap(tuple(knots), tuple(np.cos(knots)))
    d = torch.linspace(-math.pi, math.pi - 1e-6, 500, dtype=torch.float64)
    expected = np.interp(d, np.append(knots, knots[0] + 2 * math.pi), np.append(np.cos(knots), np.cos(knots[0])))
    np.testing.assert_allclose(table(d), expected, atol=1e-12)
    offset = TabulatedSwap((-1.0, 1.0), (0.0, 2.0))  # wraps through pi
    assert float(offset(torch.tensor(math.pi - 1e-9, dtype=torch.float64))) == pytest.approx(1.0, abs=1e-6)
    both = TabulatedSwap(tuple(knots), tuple(tuple(np.cos(a) + np.sin(knots)) for a in knots))
    a, b = torch.tensor(knots[3] + 0.05), torch.tensor(knots[7] + 0.1)
    assert float(both(a, b)) == pytest.approx(math.cos(a) + math.sin(b), abs=0.02)


def test_optimal_is_the_cued_colour():
    conditions = IndexCued().sample(10, rng.generator("o"))
    angle = circular.angle(BNS().optimal(conditions))
    torch.testing.assert_close(
        angle, conditions["report"].gather(1, conditions["cued"][:, None])[:, 0], atol=1e-5, rtol=0
    )


def test_measures_recover_what_generated_the_responses():
    behaviour = BNS(SmoothSwap(), pi_correct=0.0)
    conditions = FeatureCued().sample(3000, rng.generator("m"))
    result = behaviour.measures(conditions, behaviour.sample(conditions, 16, rng.generator("m2")))
    assert result["swap_curve_mad"] < 0.01
    for point in result["swap_curve"]:
        assert point["rate"] == pytest.approx(point["target"], abs=0.03)
        assert point["likelihood"] == pytest.approx(point["target"], abs=0.03)
        assert point["low"] <= point["rate"] <= point["high"]
    assert result["median_error"] == pytest.approx(0.054, abs=0.002)
    assert result["away"] < 0.001
    assert result["radius_mean"] == pytest.approx(2.5, abs=0.02)


@pytest.mark.slow
def test_intervals_cover_the_target():
    behaviour = BNS(ConstantSwap(0.1))
    inside = total = 0
    for repeat in range(40):
        conditions = FeatureCued().sample(256, rng.generator("cover", repeat))
        for point in behaviour.measures(conditions, behaviour.sample(conditions, 16, rng.generator("c2", repeat)))[
            "swap_curve"
        ]:
            inside += point["low"] <= point["target"] <= point["high"]
            total += 1
    assert 0.90 < inside / total < 0.985


def test_likelihood_corrects_what_the_nearest_item_confuses():
    # Imprecise responses: half of the circle between the items is crossed often, which biases the nearest-item count.
    behaviour = BNS(ConstantSwap(0.1), spread=1.3)
    conditions = FeatureCued().sample(4000, rng.generator("blur"))
    curve = behaviour.measures(conditions, behaviour.sample(conditions, 16, rng.generator("b2")))["swap_curve"]
    nearest = np.mean([point["rate"] for point in curve])
    likelihood = np.mean([point["likelihood"] for point in curve])
    assert nearest > 0.13 and likelihood == pytest.approx(0.1, abs=0.015)


def test_stray_responses_are_counted():
    behaviour = BNS(uniform=0.3)
    conditions = FeatureCued(items=1).sample(2000, rng.generator("s"))
    result = behaviour.measures(conditions, behaviour.sample(conditions, 8, rng.generator("s2")))
    assert result["away"] == pytest.approx(0.3 * (1 - 0.6 / math.pi), abs=0.015)
    assert result["swap_curve"] == []


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ConstantSwap(0.0), "strictly between 0 and 1"),
        (lambda: BNS(uniform=1.0), "behaviour.uniform"),
        (lambda: BNS(spread=0.0), "behaviour.spread must be positive"),
        (lambda: TabulatedSwap((0.0, -1.0), (0.0, 0.0)), "must increase"),
        (lambda: TabulatedSwap((0.0, 1.0), (0.0, math.nan)), "finite"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(LapsusError, match=message):
        make()


def test_the_check_catches_a_sampler_that_ignores_its_density():
    class Wrong(BNS):
        def sample(self, conditions, trials, generator):
            return 0.9 * super().sample(conditions, trials, generator)

    with pytest.raises(LapsusError, match="disagree"):
        check_behaviour(Wrong(), FeatureCued())


@pytest.mark.parametrize("uniform", [0.0, 0.1])
def test_tempered_probabilities_are_those_of_scaled_logits(uniform):
    conditions = FeatureCued().sample(50, torch.Generator().manual_seed(1))
    behaviour = BNS(swap=SmoothSwap(), pi_correct=2.0, uniform=uniform)
    halved = BNS(swap=lambda gap: 0.5 * SmoothSwap()(gap), pi_correct=1.0, uniform=uniform)
    assert torch.allclose(behaviour.tempered(conditions, 0.5).weights, halved.mixture(conditions).weights, atol=1e-6)
    never = BNS().tempered(conditions, 0.5).weights
    assert torch.equal(never, BNS().mixture(conditions).weights)
