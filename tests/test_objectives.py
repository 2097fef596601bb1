"""What a loss is: excess over the exact denoiser, weights of steps and of rare responses, gradients written out."""

from dataclasses import replace

import pytest
import torch
from tiny_experiment import TINY

from lapsus import LapsusError, read_experiment, rng
from lapsus.training.build import build
from lapsus.training.experiment import Stage
from lapsus.training.loop import Training, draw
from lapsus.training.model import Model


def test_excess_of_the_exact_denoiser_is_zero():
    """A model whose behavioural step is the Bayes denoiser's has no excess: the floor is where it should be."""
    from lapsus.diffusion import exact_mean
    from lapsus.engine.read_out import read_out
    from lapsus.training.objectives import Batch, Diffusion, exact_loss

    model = Model.of(read_experiment(TINY))
    conditions = model.task.sample(5, rng.generator("e"))
    x_T = model.behaviour.sample(conditions, 7, rng.generator("x"))
    batch = model.batch(conditions, model.inputs(conditions), x_T, range(5), 3, forced=True)
    draws = batch.draws
    W_x, T = draws.readout, draws.schedule.T
    sigma = draws.schedule.sigma.float().view(-1, 1, 1, 1)
    means = exact_mean(draws.path, draws.schedule, draws.target)
    rates = torch.einsum("dn,tdck->tnck", W_x, means) + sigma * draws.noise[-T:]
    trajectory = torch.cat([batch.trajectory[:-T].detach(), rates])
    perfect = Batch(draws, trajectory, *read_out(trajectory, W_x))
    loss = Diffusion(rate_penalty=0, base_penalty=0)(perfect)["ddpm"]
    torch.testing.assert_close(loss, exact_loss(perfect), rtol=1e-4, atol=1e-5)


def test_base_term_is_right_on_average():
    """x_0 of known moments, a few trials a condition: the mean over many conditions is the distance from N(0, I)
    itself."""
    from lapsus.training.objectives import _DiffusionLoss

    root, mean = torch.tensor([[0.7, 0.0], [0.1, 1.2]]).double(), torch.tensor([0.3, -0.2]).double()
    for trials in (3, 8):
        noise = torch.randn(2, 200_000, trials, dtype=torch.double, generator=rng.generator("base", trials))
        x_0 = torch.einsum("de,eck->dck", root, noise) + mean.view(2, 1, 1)
        distance = _DiffusionLoss.apply(torch.stack([x_0, x_0]), torch.zeros(1, *x_0.shape).double(), None, True)[1]
        true = mean.square().sum() + (root @ root.T - torch.eye(2)).square().sum()
        assert abs(float(distance.mean() - true)) < 4 * float(distance.std()) / len(distance) ** 0.5
        assert float(distance.std()) / len(distance) ** 0.5 < 0.02


def test_rare_responses_are_drawn_more_often_and_what_is_learned_of_them_is_the_same(tiny):
    model = Model.of(tiny)
    objective = build("objective", {"kind": "diffusion", "regress": "expectation"})
    stages = [Stage(updates=1, conditions=200, trials=16, response_tempering=temper) for temper in (1.0, 0.5)]
    plain, tempered = (next(draw(model, stage, objective, 1, 0)).draws for stage in stages)

    def swaps(draws):
        cued = draws.conditions["cued"].long()[:, None]
        means = draws.target.means.gather(1, torch.stack([cued, 1 - cued], 1).expand(-1, -1, 2))  # target, distractor
        away = (draws.path[-1].permute(1, 2, 0)[:, None] - means[:, :, None]).norm(dim=-1)
        return float((away[:, 1] < away[:, 0]).float().mean())

    # 0.2 and 0.8 to the power of a half stand as 1 to 2.
    assert swaps(plain) == pytest.approx(0.2, abs=0.02) and swaps(tempered) == pytest.approx(1 / 3, abs=0.025)
    assert torch.equal(plain.target.weights, tempered.target.weights)
    # At one and the same x_t the network is asked for the same.
    led = replace(tempered, path=plain.path)
    assert torch.equal(led.exact_aim, plain.exact_aim)


def test_only_the_exact_denoiser_undoes_how_responses_were_drawn(tiny):
    stage = Stage(updates=1, conditions=4, trials=4, response_tempering=0.5)
    with pytest.raises(LapsusError, match="expectation"):
        next(draw(Model.of(tiny), stage, build("objective", {"kind": "diffusion"}), 1, 0))


@pytest.mark.slow
def test_mse_against_samples_averages_the_modes():
    """The control that must fail: with 40 % swaps, squared error on samples puts responses between the modes, on
    neither."""
    from lapsus import circular
    from lapsus.evaluation.against_target import respond

    experiment = read_experiment(
        {
            "name": "control",
            "task": {"kind": "index-cued", "prestimulus": 0, "stimulus": 3, "delay": 0, "cue": 3, "denoise": 10},
            "network": {"kind": "dendritic", "units": 10, "branching": [6, 5], "alpha": 0.3, "input_scale": 6.0},
            "behaviour": {"kind": "bns", "swap": {"kind": "constant", "p": 0.4}},
            "stage": [
                {
                    "updates": 600,
                    "objective": {"kind": "sample-mse", "window": 3},
                    "learning_rate": 4e-3,
                    "final_learning_rate": 1e-3,
                    "clip": 5.0,
                    "average": 0.99,
                }
            ],
        }
    )
    training = Training(experiment, Model.of(experiment))
    for _ in training.run():
        pass
    training.flat.copy_(training.average)
    conditions = training.model.task.sample(256, rng.generator("control"))
    far = circular.distance(conditions["report"][:, 0], conditions["report"][:, 1]) > 1.8
    conditions = {name: values[far] for name, values in conditions.items()}
    x_T = respond(training.model, conditions, 32, seed=3)
    target = training.model.behaviour.mixture(conditions)
    mean = (target.weights[..., None] * target.means).sum(1).T[..., None]
    near_mean = float(((x_T - mean).norm(dim=0) < 0.75).double().mean())
    near_mode = max(
        float(((x_T - target.means[:, m].T[..., None]).norm(dim=0) < 0.75).double().mean()) for m in range(2)
    )
    assert near_mean > 0.6 and near_mode < 0.05, (near_mean, near_mode)
    # What the target itself would give, so that the measure can tell the two apart.
    ideal = training.model.behaviour.sample(conditions, 32, rng.generator("ideal"))
    assert float(((ideal - mean).norm(dim=0) < 0.75).double().mean()) < 0.05


@pytest.mark.parametrize("floor", [0.0, 0.6])
def test_step_weights_weigh_steps_and_nothing_else(floor):
    """The weighted loss is the sum of single-step losses, each over its weight of x_T, or the floor, to that power."""
    from lapsus.training.objectives import Diffusion, predicted_mean

    model = Model.of(read_experiment(TINY))
    conditions = model.task.sample(3, rng.generator("e"))
    x_T = model.behaviour.sample(conditions, 5, rng.generator("x"))
    batch = model.batch(conditions, model.inputs(conditions), x_T, range(3), 3, forced=True)
    made = Diffusion(rate_penalty=0, base_penalty=0, step_weight_exponent=1.5, step_weight_floor=floor)(batch)["ddpm"]
    schedule = batch.draws.schedule
    assert float(schedule.from_x_T.min()) < 0.6 < float(schedule.from_x_T.max())
    by_hand = sum(
        (batch.draws.sampled_mean[t] - predicted_mean(batch)[t]).square().sum(0).mean(-1)
        / max(floor, float(schedule.from_x_T[t])) ** 1.5
        for t in range(schedule.T)
    )
    torch.testing.assert_close(made, by_hand, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_written_out_gradient_of_the_diffusion_loss_is_autograds(weighted):
    from lapsus.training.objectives import _DiffusionLoss

    generator = rng.generator("loss")
    x = torch.randn(9, 2, 4, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    aim = torch.randn(6, 2, 4, 5, generator=generator, dtype=torch.float64)
    weights = torch.rand(6, generator=generator, dtype=torch.float64) if weighted else None
    to = torch.randn(2, 4, generator=generator, dtype=torch.float64)

    error = (x[-6:] - aim).square() * (weights.view(-1, 1, 1, 1) if weighted else 1)
    covariance = torch.stack([torch.cov(x[-7, :, c]) for c in range(4)])
    trace, square = (
        torch.einsum("cii->c", matrix) for matrix in (covariance, covariance @ covariance)
    )  # of five trials
    base = x[-7].mean(-1).square().sum(0) - trace / 5 + 16 / 18 * (square - trace**2 / 4) - 2 * trace + 2
    plain = error.sum((0, 1)).mean(-1), base
    ours = _DiffusionLoss.apply(x, aim, weights, True)
    for one, other in zip(ours, plain):
        torch.testing.assert_close(one, other)
    gradients = [torch.autograd.grad((to[0] * pair[0] + to[1] * pair[1]).sum(), x)[0] for pair in (ours, plain)]
    torch.testing.assert_close(*gradients)
    alone = _DiffusionLoss.apply(x, aim, weights, False)
    assert alone[1] is None and torch.equal(alone[0], ours[0])
