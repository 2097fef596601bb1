import math

import numpy as np
import pytest
import torch
from scipy import integrate

from lapsus import diffusion
from lapsus.errors import LapsusError


@pytest.fixture(scope="module")
def schedule():
    return diffusion.linear_schedule(40)


def test_the_published_numbers(schedule):
    assert float(schedule.sigma[0]) == pytest.approx(0.5476, abs=1e-4)
    assert float(schedule.sigma[-1]) == 0
    assert float(schedule.alpha_bar[-1]) == 1
    assert schedule.beta[[0, -1]].tolist() == pytest.approx([0.3, 0.01])


def _joint_covariance(schedule, variance_T):
    """Covariance of (x_0, …, x_T) of the scalar noising chain, built step by step without any formula for alpha_bar."""
    T = schedule.T
    matrix = np.zeros((T + 1, T + 1))
    matrix[T, T] = variance_T
    for t in reversed(range(T)):
        beta = float(schedule.beta[t])
        matrix[t, t + 1 :] = math.sqrt(1 - beta) * matrix[t + 1, t + 1 :]
        matrix[t + 1 :, t] = matrix[t, t + 1 :]
        matrix[t, t] = (1 - beta) * matrix[t + 1, t + 1] + beta
    return matrix


@pytest.mark.parametrize("T", [1, 2, 5, 40])
def test_posterior_and_marginals_are_those_of_gaussian_conditioning(T):
    schedule = diffusion.linear_schedule(T)
    prior = 1.7
    joint = _joint_covariance(schedule, prior)
    shrink = torch.sqrt(schedule.alpha_bar).numpy()
    np.testing.assert_allclose(joint[:, T], shrink * prior, rtol=1e-10)
    np.testing.assert_allclose(np.diag(joint), shrink**2 * prior + 1 - shrink**2, rtol=1e-10)
    for t in range(T):
        given = [t, T] if t + 1 < T else [t]
        cross = joint[t + 1, given]
        if t + 1 == T:  # then x_{t+1} is x_T itself: conditioning on both is degenerate
            assert float(schedule.from_x_T[t]) == pytest.approx(1, abs=1e-10)
            assert float(schedule.from_x_t[t]) == pytest.approx(0, abs=1e-10)
            continue
        weights = np.linalg.solve(joint[np.ix_(given, given)], cross)
        variance = joint[t + 1, t + 1] - weights @ cross
        assert float(schedule.from_x_t[t]) == pytest.approx(weights[0], abs=1e-10)
        assert float(schedule.from_x_T[t]) == pytest.approx(weights[1], abs=1e-10)
        assert float(schedule.sigma[t]) ** 2 == pytest.approx(variance, abs=1e-10)


def test_corruption_has_the_chains_covariance(schedule):
    generator = torch.Generator().manual_seed(0)
    count = 200_000
    x_T = torch.randn(1, 1, count, generator=generator, dtype=torch.float64) * 1.3
    noise = torch.randn(40, 1, 1, count, generator=generator, dtype=torch.float64)
    path = diffusion.corrupt(x_T, schedule, noise)[:, 0, 0].numpy()
    assert path.shape == (41, count)
    np.testing.assert_allclose(np.cov(path), _joint_covariance(schedule, 1.69), atol=0.02)


def test_posterior_mean_uses_the_last_state_as_data(schedule):
    path = torch.randn(41, 2, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mean = diffusion.posterior_mean(path, schedule)
    t = 17
    by_hand = schedule.from_x_t[t] * path[t] + schedule.from_x_T[t] * path[40]
    torch.testing.assert_close(mean[t], by_hand)
    torch.testing.assert_close(mean[39], path[40])


def _mixture(dtype=torch.float64):
    return diffusion.Mixture(
        weights=torch.tensor([[0.3, 0.7], [0.9, 0.1]], dtype=dtype),
        means=torch.tensor([[[-1.0], [2.0]], [[0.5], [0.6]]], dtype=dtype),
        scales=torch.tensor([[0.2, 0.5], [0.4, 0.1]], dtype=dtype),
    )


@pytest.mark.parametrize("alpha_bar", [0.9, 0.3, 0.01])
def test_exact_denoiser_against_numerical_integration(alpha_bar):
    mixture = _mixture()
    for c in range(2):
        for x in (-1.5, 0.0, 0.7):

            def weight(z):
                prior = sum(
                    float(mixture.weights[c, m])
                    * math.exp(-((z - float(mixture.means[c, m, 0])) ** 2) / 2 / float(mixture.scales[c, m]) ** 2)
                    / float(mixture.scales[c, m])
                    / math.sqrt(2 * math.pi)
                    for m in range(2)
                )
                likelihood = math.exp(-((x - math.sqrt(alpha_bar) * z) ** 2) / 2 / (1 - alpha_bar)) / math.sqrt(
                    2 * math.pi * (1 - alpha_bar)
                )
                return prior * likelihood

            options = {"limit": 400, "points": [-1, 0.5, 0.6, 2], "epsabs": 1e-13}
            evidence = integrate.quad(weight, -6, 6, **options)[0]
            mean = integrate.quad(lambda z: z * weight(z), -6, 6, **options)[0] / evidence
            x_t = torch.full((1, 2, 1), x, dtype=torch.float64)
            assert float(mixture.denoise(x_t, alpha_bar)[0, c, 0]) == pytest.approx(mean, abs=1e-8)
            assert float(mixture.log_density(x_t, alpha_bar)[c, 0]) == pytest.approx(math.log(evidence), abs=1e-8)


def test_all_steps_at_once_is_step_by_step(schedule):
    mixture = _mixture()
    path = torch.randn(41, 1, 2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    together = diffusion.exact_mean(path, schedule, mixture)
    for t in (0, 13, 39):
        x_T = mixture.denoise(path[t], float(schedule.alpha_bar[t]))
        torch.testing.assert_close(together[t], schedule.from_x_t[t] * path[t] + schedule.from_x_T[t] * x_T)


def test_mixture_sampler_follows_its_moments():
    mixture = _mixture()
    x = mixture.sample(200_000, torch.Generator().manual_seed(3))
    mean = (mixture.weights[..., None] * mixture.means).sum(1)[:, 0]
    second = (mixture.weights * (mixture.means[..., 0] ** 2 + mixture.scales**2)).sum(1)
    torch.testing.assert_close(x[0].mean(1), mean, atol=0.01, rtol=0)
    torch.testing.assert_close(x[0].square().mean(1), second, atol=0.03, rtol=0)


def _second_mode_rate(T, p, count=300_000, seed=0):
    """Exact denoiser through our sampler, two modes at a right angle at radius 2.5, total corruption that of the
    paper."""
    schedule = (
        diffusion.Schedule.of(torch.linspace(0.3, 0.01, T, dtype=torch.float64) * 40 / T)
        if T != 40
        else diffusion.linear_schedule(40)
    )
    target = diffusion.Mixture(
        torch.tensor([[1 - p, p]]), torch.tensor([[[2.5, 0.0], [0.0, 2.5]]]), torch.tensor([[0.2, 0.2]])
    )
    generator = torch.Generator().manual_seed(seed)
    x_0 = torch.randn(2, 1, count, generator=generator)
    noise = torch.randn(T, 2, 1, count, generator=generator)
    x = diffusion.reverse_sample(x_0, schedule, target, noise)
    angle = torch.atan2(x[1, 0], x[0, 0])
    error = torch.minimum(angle.abs(), (angle - math.pi / 2).abs())
    return float((angle > math.pi / 4).double().mean()), float(error.median())


@pytest.mark.slow
def test_sampler_converges_to_the_target_at_first_order():
    # The bias of ancestral sampling is of the order of a step, so halving the steps halves it: order 1.
    bias = [0.1 - _second_mode_rate(T, 0.1)[0] for T in (20, 40, 80)]
    orders = [math.log2(bias[0] / bias[1]), math.log2(bias[1] / bias[2])]
    assert all(b > 0 for b in bias)
    assert 0.6 < sum(orders) / 2 < 1.5, (bias, orders)


@pytest.mark.parametrize("nominal, published", [(0.02, 0.016), (0.05, 0.043), (0.10, 0.091), (0.45, 0.447)])
@pytest.mark.slow
def test_known_bias_at_forty_steps(nominal, published):
    rate, median = _second_mode_rate(40, nominal)
    assert rate == pytest.approx(published, abs=0.0015 + 3 * math.sqrt(nominal / 300_000))
    assert median == pytest.approx(0.042, abs=0.003)


def test_bad_schedules_are_refused():
    with pytest.raises(LapsusError, match="at least one step"):
        diffusion.linear_schedule(0)
    with pytest.raises(LapsusError, match="between 0 and 1"):
        diffusion.Schedule.of(torch.tensor([0.3, 1.2]))
