"""The pieces of the fit against brute force: prior, likelihood, bound, coordinates, leave-one-out, maximum
likelihood."""

import math

import numpy as np
import pytest
import torch
from scipy.special import i0e, logsumexp

from lapsus.circular import wrap
from lapsus.fitting import fit
from lapsus.fitting.candidates import Choice, evaluate
from lapsus.fitting.conditional import Conditional, Expansion, expand
from lapsus.fitting.emissions import EMISSIONS, Tabulated
from lapsus.fitting.laplace import approximate, curvature
from lapsus.fitting.likelihood import At, Likelihood, Parameters
from lapsus.fitting.likelihood_fit import maximum_likelihood
from lapsus.fitting.loo import leave_one_out, pareto_fit, pareto_smooth
from lapsus.fitting.model import MixtureModel
from lapsus.fitting.sampler import _State
from lapsus.fitting.swap_prior import SwapPrior, wendland
from lapsus.statistics.swaps import distinct
from lapsus.trials import Trials

RING = 2 * np.pi * np.arange(8) / 8


def items(count, sizes=(2,), seed=0, ring=False):
    """Random items [count, max size], NaN beyond the set size: report, probe."""
    rng = np.random.default_rng(seed)
    width = max(sizes)
    report = rng.uniform(-np.pi, np.pi, (count, width))
    probe = (
        np.stack([rng.choice(RING, width, replace=False) for _ in range(count)])
        if ring
        else rng.uniform(-np.pi, np.pi, (count, width))
    )
    beyond = np.arange(width)[None] >= rng.choice(sizes, count)[:, None]
    report[beyond] = probe[beyond] = np.nan
    return report, probe


def observed(report, probe, f, kappa=10.0, guess=0.05, seed=1, plane=False, feature="probe"):
    """Trials answered by the swap model, written independently of the package: f is a function of signed distance."""
    rng = np.random.default_rng(seed)
    values = probe if feature == "probe" else report
    logits = np.where(np.isfinite(report), f(wrap(values - values[:, :1])), -np.inf)
    logits[:, 0] = 0.0
    weights = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    item = (rng.uniform(size=(len(report), 1)) > np.cumsum(weights, 1)).sum(1)
    angle = report[np.arange(len(report)), item]
    angle = np.where(rng.uniform(size=len(report)) < guess, rng.uniform(-np.pi, np.pi, len(report)), angle)
    if plane:
        point = 2.5 * np.stack([np.cos(angle), np.sin(angle)], 1) + 2.5 / np.sqrt(kappa) * rng.standard_normal(
            (len(report), 2)
        )
        return Trials(np.arctan2(point[:, 1], point[:, 0]), report, probe, point=point)
    return Trials(wrap(angle + rng.vonmises(0, kappa, len(report))), report, probe)


def some_trials(emission="von_mises", count=40, sizes=(1, 2, 4), ring=False):
    return observed(*items(count, sizes, ring=ring), lambda d: -1 - d**2 / 3, plane=emission == "plane")


def emission_density(kind, parameters, trials, t, angle):
    """Brute force: density of trial t's response around an angle (None: a uniform guess)."""
    error = trials.response[t] - (0 if angle is None else angle)
    if kind == "plane":
        radius, spread = np.exp(parameters)
        centres = radius * np.exp(
            1j * (np.linspace(0, 2 * np.pi, 4000, endpoint=False) if angle is None else np.array([angle]))
        )
        distance = np.abs(complex(*trials.point[t]) - centres)
        return np.mean(np.exp(-0.5 * (distance / spread) ** 2) / (2 * np.pi * spread**2))
    if angle is None:
        return 1 / (2 * np.pi)
    if kind == "variable_precision":
        kappa, shape = np.exp(parameters)
        x = np.log(2.0) * np.arange(-5, 3)
        weight = np.exp(shape * (x - np.exp(x)))
        each = kappa * np.exp(x)
        density = np.exp(each * (np.cos(error) - 1)) / (2 * np.pi * i0e(each))
        return (weight * density).sum() / weight.sum()
    if kind == "von_mises":
        kappa = np.exp(parameters[0])
        return np.exp(kappa * (np.cos(error) - 1)) / (2 * np.pi * i0e(kappa))
    alpha, gamma = 0.5 + 1.5 / (1 + np.exp(-parameters[0])), np.exp(parameters[1])
    k = np.arange(1, 400)
    return (1 + 2 * np.sum(np.exp(-((gamma * k) ** alpha)) * np.cos(k * error))) / (2 * np.pi)


@pytest.mark.parametrize("features, even", [(("probe",), True), (("probe",), False), (("probe", "report"), True)])
def test_the_prior_is_the_wendland_process(features, even):
    """Covariance of f from its Fourier basis against the kernel, without its constant and mirrored where f is even."""
    prior, tau = SwapPrior(features, even, harmonics=40), 5.3
    x = np.random.default_rng(0).uniform(-np.pi, np.pi, (6, len(features)))
    basis = prior.basis(x).numpy()
    spectrum = prior.spectrum(torch.full((len(features), 1), tau, dtype=torch.float64))[:, 0].numpy()
    covariance = basis * spectrum @ basis.T
    lattice = np.linspace(-np.pi, np.pi, 20001)
    constant = np.mean(wendland(np.abs(lattice), tau)[:-1])
    product = np.ones((6, 6))
    for d in range(len(features)):
        minus, plus = (np.abs(wrap(x[:, None, d] + sign * x[None, :, d])) for sign in (-1, 1))
        # The mirrored process (f(x) + f(−x)) / √2 keeps the constant at its single weight.
        kernel = wendland(minus, tau) + wendland(plus, tau) - constant if even else wendland(minus, tau)
        product = product * kernel
    total = 1 - constant ** len(features)
    np.testing.assert_allclose(covariance, (product - constant ** len(features)) / total, atol=3e-4)


@pytest.mark.parametrize("emission", list(EMISSIONS))
@pytest.mark.parametrize(
    "name, sets", [("none", "shared"), ("constant", "offsets"), ("probe", "shapes"), ("both", "offsets")]
)
def test_likelihood_against_a_loop_over_trials(name, sets, emission):
    trials = some_trials(emission, ring=True)
    trials.subject[::2] = "other"
    model = MixtureModel(
        trials, name, EMISSIONS[emission](), even=name != "probe", sets=sets, bias=True, hierarchical=True
    )
    noise = 0.3 * np.random.default_rng(2).standard_normal((model.dimension, 2))
    p = model.unpack(torch.tensor(model.initial()[:, None] + noise))
    ours = model.likelihood().by_trial(p)
    np.testing.assert_allclose(model.likelihood(torch.float32).by_trial(p), ours, rtol=2e-4, atol=2e-4)
    p = p.map(torch.Tensor.numpy)
    several = [n for n in model.sizes if n > 1]
    for t in range(len(trials)):
        for s in range(2):
            n = trials.set_size[t]
            group = model.labels.index((n, trials.subject[t], "all"))
            logits = np.zeros(n)
            for j in range(1, n):
                logits[j] = -np.inf if p.level is None else p.level[group, s]
                if model.prior is not None:
                    gaps = [trials.distance(feature)[t, j] for feature in model.prior.features]
                    row = several.index(n) if sets == "shapes" else 0
                    logits[j] += (model.prior.basis(np.array([gaps])) @ torch.tensor(p.coefficients[row, :, s])).item()
            weights = np.exp(logits - logsumexp(logits))
            u = 1 / (1 + np.exp(-p.guess[group, s]))
            e, bias = p.emission[:, group, s], p.bias[group, s]
            chance = (1 - u) * sum(
                w * emission_density(emission, e, trials, t, a + bias) for w, a in zip(weights, trials.report[t, :n])
            )
            chance += u * emission_density(emission, e, trials, t, None)
            # f over reported distances is interpolated between the points of a grid.
            assert ours[t, s] == pytest.approx(np.log(chance), abs=2e-6 if name != "both" else 0.02)


def two_by_two(emission):
    """Trials of two subjects in two conditions."""
    trials = some_trials(emission)
    trials.subject[::2] = "other"
    return Trials(
        trials.response,
        trials.report,
        trials.probe,
        subject=trials.subject,
        point=trials.point,
        conditions={"cue": np.where(np.arange(40) % 4 < 2, "early", "late")},
    )


@pytest.mark.parametrize("emission", list(EMISSIONS))
@pytest.mark.parametrize(
    "name, sets", [("none", "shared"), ("constant", "offsets"), ("probe", "shapes"), ("both", "shared")]
)
def test_gradients_against_differences(name, sets, emission):
    model = MixtureModel(
        two_by_two(emission),
        name,
        EMISSIONS[emission](),
        hierarchical=True,
        harmonics=3,
        sets=sets,
        bias=True,
        by=("cue",),
    )
    x = 0.3 * torch.tensor(np.random.default_rng(3).standard_normal((model.dimension, 1)))
    conditional = expand(model, model.initial() + 0.1 * x[:, 0].numpy())
    x = x + torch.tensor(model.initial())[:, None]
    for density in (model.log_joint, lambda x: conditional.log_joint(x, torch.float64)):
        _, gradient = density(x)
        step = 1e-5 * torch.eye(model.dimension, dtype=torch.float64)
        difference = (density(x + step)[0] - density(x - step)[0]) / 2e-5
        torch.testing.assert_close(gradient[:, 0], difference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sets", ["shared", "shapes"])
def test_conditional_coordinates_keep_volume(sets):
    trials = two_by_two("von_mises")
    model = MixtureModel(
        trials, "probe", EMISSIONS["von_mises"](), harmonics=3, hierarchical=True, sets=sets, by=("cue",)
    )
    x = torch.tensor(np.random.default_rng(4).standard_normal((model.dimension, 1)))
    conditional = expand(model, 0.3 * x[:, 0].numpy())
    jacobian = torch.autograd.functional.jacobian(lambda v: conditional.theta(v[:, None])[0][:, 0], x[:, 0])
    torch.testing.assert_close(conditional.theta(x)[1][0], torch.linalg.slogdet(jacobian)[1])


def test_offsets_make_up_for_few_guesses_within_reach_of_the_data_only(monkeypatch):
    """Far below its maximum the likelihood does not depend on how rare guesses are, and says nothing about offsets. It
    was taken for the parabola that it is at its maximum, which draws offsets up by logits, and chains stayed there."""
    trials = some_trials(count=1200, sizes=(2, 3))
    who = [f"s{i % 3}" for i in range(1200)]
    trials = Trials(trials.response, trials.report, trials.probe, subject=who)
    model = MixtureModel(trials, "constant", EMISSIONS["von_mises"](), hierarchical=True)
    conditional = expand(model, model.initial())
    (tier,) = (tier for tier in model.tiers if tier.name == "subject")
    x = torch.tensor(conditional.start(model.initial()))[:, None]
    few = x.clone()
    few[model.slices["guess"]] -= 1.5

    def drawn_up() -> float:
        row = tier.rows.index(model.rows.index("guess"))
        before, after = (tier.offsets(conditional.theta(at)[0])[row] for at in (x, few))
        return (after - before).max().item()

    logits = conditional.theta(few)[0] - conditional.theta(x)[0]
    assert logits[model.slices["guess"]].max() < -1.5
    assert 0 < drawn_up() < 1
    monkeypatch.setattr("lapsus.fitting.conditional.GUESS_REACH", 1e6)
    assert drawn_up() > 1.5


def test_curvature_from_groups_is_that_of_differences():
    """Groups do not interact and set sizes do not, so a few columns give every second derivative."""
    trials = two_by_two("von_mises")
    model = MixtureModel(
        trials, "probe", EMISSIONS["von_mises"](), harmonics=3, hierarchical=True, sets="shapes", bias=True
    )
    theta = 0.2 * np.random.default_rng(5).standard_normal(model.dimension)
    expansion = Expansion(model, theta)
    shape, eta = expansion.coefficients, expansion.eta
    sizes = (shape.numel(), eta.numel())

    def value(v):
        parts = v.split(sizes)
        p = model.as_parameters(parts[0].reshape(*shape.shape, -1), parts[1].reshape(*eta.shape, -1))
        total, on = model.likelihood().total(p)
        return total, torch.cat([on.coefficients.reshape(sizes[0], -1), model.as_eta(on).reshape(sizes[1], -1)])

    full = curvature(value, torch.cat([shape.reshape(-1), eta.reshape(-1)]).numpy())
    jacobian = torch.eye(sum(sizes), dtype=torch.float64)
    found = expansion.curvature(
        jacobian[sizes[0] :].reshape(*eta.shape, -1),
        jacobian[: sizes[0]].reshape(*shape.shape, -1),
        Conditional(model, expansion).shape_of_group,
    )
    np.testing.assert_allclose(found.numpy(), full, atol=2e-4 * np.abs(full).max())


def density_of(kind, trials, parameters):
    """Density [T] of responses around the one item of each trial, for parameters [E, 1]."""
    likelihood = Likelihood(trials, kind, np.zeros(len(trials), int))
    return np.exp(likelihood.by_trial(Parameters(None, None, parameters[:, None], None, None))[:, 0])


def test_emissions_with_closed_forms():
    """alpha = 2 is the wrapped normal, alpha = 1 the wrapped Cauchy; every density integrates to one."""
    error = np.linspace(-np.pi, np.pi, 801)[:-1]
    trials = Trials(error, np.zeros((800, 1)))
    kind = EMISSIONS["wrapped_stable"]()

    def density(alpha, gamma):
        logit = np.log((alpha - 0.5) / (2.0 - alpha)) if alpha < 2 else 40.0
        parameters = torch.tensor([[logit], [np.log(gamma)]])
        return density_of(kind, trials, parameters)

    gamma = 0.3
    cauchy = (1 - np.exp(-2 * gamma)) / (1 + np.exp(-2 * gamma) - 2 * np.exp(-gamma) * np.cos(error)) / (2 * np.pi)
    np.testing.assert_allclose(density(1.0, gamma), cauchy, atol=2e-6)
    variance = 2 * gamma**2
    normal = sum(np.exp(-((error + 2 * np.pi * k) ** 2) / (2 * variance)) for k in range(-3, 4)) / np.sqrt(
        2 * np.pi * variance
    )
    np.testing.assert_allclose(density(2.0, gamma), normal, atol=1e-6)
    assert density(1.4, 0.2).mean() * 2 * np.pi == pytest.approx(1, abs=1e-6)


def test_variable_precision_is_a_gamma_mixture():
    """Against the integral over the gamma; a large shape is a von Mises."""
    error = np.linspace(-np.pi, np.pi, 401)[:-1]
    trials = Trials(error, np.zeros((400, 1)))
    kind, kappa = EMISSIONS["variable_precision"](), 8.0
    for shape in (2.0, 4.0):
        each = np.linspace(1e-6, 12 * kappa, 40001)[1:]
        weight = each ** (shape - 1) * np.exp(-shape * each / kappa)
        weight /= weight.sum()
        density = np.exp(each[:, None] * (np.cos(error[::20]) - 1)) / (2 * np.pi * i0e(each)[:, None])
        ours = density_of(kind, trials, torch.tensor([[np.log(kappa)], [np.log(shape)]]))
        np.testing.assert_allclose(ours[::20], weight @ density, rtol=0.02, atol=1e-3)
        assert ours.mean() * 2 * np.pi == pytest.approx(1, abs=1e-9)
    sharp = density_of(kind, trials, torch.tensor([[np.log(kappa)], [6.0]]))
    np.testing.assert_allclose(sharp, np.exp(kappa * (np.cos(error) - 1)) / (2 * np.pi * i0e(kappa)), rtol=1e-6)


@pytest.mark.parametrize("emission", ["von_mises", "variable_precision", "wrapped_stable"])
def test_emissions_sample_what_they_say(emission):
    kind, rng = EMISSIONS[emission](), np.random.default_rng(0)
    parameters = np.array([[1.0], [0.3], [0.5]])[: len(kind.names)] * [[1.0]]
    drawn = wrap(kind.sample(np.repeat(parameters, 40000, 1), np.zeros(40000), rng))
    grid = np.linspace(-np.pi, np.pi, 721)[:-1]
    density = density_of(kind, Trials(grid, np.zeros((720, 1))), torch.tensor(parameters))
    for k in (1, 2, 3):
        assert np.cos(k * drawn).mean() == pytest.approx((density * np.cos(k * grid)).mean() * 2 * np.pi, abs=0.012)
    if emission != "wrapped_stable":
        sd = kind.natural(parameters)["circular_sd"].item()
        assert sd == pytest.approx(np.sqrt(-2 * np.log(np.cos(drawn).mean())), rel=0.02)


def test_distances_that_differ_by_rounding_are_one():
    values = np.radians([27.692, 27.693, 55.385, 55.384, 83.0, 83.0])
    np.testing.assert_allclose(np.degrees(distinct(values)), [27.6925, 55.3845, 83.0], atol=1e-6)
    assert len(distinct(np.repeat(values, 5000))) == 3


def test_distances_anywhere_are_not_one_distance():
    """Of many trials the distances lie closer than rounding makes them: all were taken for one, and f was constant."""
    from lapsus.fitting.interpolation import Sites
    from lapsus.statistics.swaps import distance_edges

    dense = np.random.default_rng(0).uniform(0, np.pi, 50_000)
    assert len(distinct(dense)) > 2000 and len(distance_edges(dense)) == 9
    trials = some_trials(count=4000, sizes=(6,))
    sites = Sites(trials, ("report",), True)
    assert not any(sites.exact) and len(sites.points) == 121


@pytest.mark.slow
def test_a_search_that_begins_with_some_of_many_trials_ends_at_the_same_mode(monkeypatch):
    from lapsus.fitting import likelihood

    monkeypatch.setattr(likelihood, "CHUNK", 8 * 3 * 20)
    model = MixtureModel(some_trials(count=600, sizes=(2, 3)), "probe", EMISSIONS["von_mises"]())
    whole = approximate(model)
    assert model.likelihood().thinned() is model.likelihood()
    monkeypatch.setattr(likelihood, "THIN", 150)
    part = model.likelihood().thinned()
    theta = torch.tensor(model.initial())[:, None]
    rows = np.concatenate([block.rows for block in part.blocks])
    assert 100 < len(rows) < 250 and {2, 3} == set(model.trials.set_size[rows])
    by_trial = model.likelihood().by_trial(model.unpack(theta))[rows].sum()
    assert np.isclose(part.total(model.unpack(theta))[0].item(), by_trial * 600 / len(rows))
    found = approximate(model)
    assert abs(found.value - whole.value) < 0.1
    assert np.abs((found.centre - whole.centre) * np.sqrt(np.diag(whole.precision))).max() < 0.1
    # Groups that share a set size are all needed.
    half = np.arange(600) % 2
    assert (
        shared := Likelihood(model.trials, model.emission, 2 * (model.trials.set_size - 2) + half)
    ).thinned() is shared


class Normal:
    """A normal of any mean and covariance."""

    def __init__(self, mean, covariance):
        self.mean, self.precision = torch.tensor(mean)[:, None], torch.linalg.inv(torch.tensor(covariance))

    def log_joint(self, x):
        pull = self.precision @ (self.mean - x)
        return -0.5 * ((x - self.mean) * -pull).sum(0), pull


def test_a_normal_in_its_own_metric_is_drawn_without_error():
    """The rotation is exact, so every move is accepted however long its steps; in a wrong metric the draws are still
    those of the normal."""
    mean, covariance = np.array([1.0, -2.0, 0.5]), np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
    model = Normal(mean, covariance)
    exact = _State(model, mean, torch.linalg.cholesky(torch.tensor(covariance)), np.random.default_rng(0), 64)
    exact.step = np.pi / 2
    assert exact.run(4, None)[2] == pytest.approx(1.0, abs=1e-9)
    wrong = _State(model, np.zeros(3), 0.7 * torch.eye(3, dtype=torch.float64), np.random.default_rng(1), 64)
    wrong.run(60, None, adapt=True)
    draws = wrong.run(150, None)[0].reshape(3, -1)
    assert np.abs(draws.mean(1) - mean).max() < 0.06
    assert np.abs(np.cov(draws) - covariance).max() < 0.12


@pytest.mark.slow
@pytest.mark.parametrize("other", [("constant", "von_mises", "offsets"), ("probe", "wrapped_stable", "shapes")])
def test_a_search_that_begins_at_another_models_mode_ends_at_its_own(other):
    trials = some_trials(count=600, sizes=(2, 3))
    own = MixtureModel(trials, "probe", EMISSIONS["von_mises"]())
    name, emission, sets = other
    near = approximate(MixtureModel(trials, name, EMISSIONS[emission](), sets=sets))
    scratch, warm = approximate(own), approximate(own, near)
    assert abs(warm.value - scratch.value) < 0.3 and warm.evaluations < scratch.evaluations + 20
    sd = 1 / np.sqrt(np.diag(scratch.precision))
    assert np.abs(warm.mode - scratch.mode)[own.slices["base"]].max() < 0.5 * sd[own.slices["base"]].max()
    # What two models have in common is taken over by name, not by place.
    start = own.adopt(near.conditional.model, near.mode)
    assert np.array_equal(start[own.slices["guess"]], near.mode[near.conditional.model.slices["guess"]])


def test_laplace_is_close_to_the_evidence_of_a_small_model():
    """Model "none" without guesses has one parameter: its posterior by a grid."""
    report, probe = items(60, (1,))
    trials = observed(report, probe, lambda d: 0 * d, guess=0.0)
    model = MixtureModel(trials, "none", EMISSIONS["von_mises"](), uniform=False)
    found = approximate(model)
    grid = torch.linspace(-2, 2, 4001, dtype=torch.float64)[None]
    joint, _ = model.log_joint(grid)
    weight = torch.softmax(joint, 0)
    mean = (grid[0] * weight).sum()
    sd = ((grid[0] - mean) ** 2 * weight).sum().sqrt()
    assert abs(found.centre[0] - mean) < 0.1 * sd
    assert 1 / np.sqrt(found.precision[0, 0]) == pytest.approx(sd.item(), rel=0.1)


def test_pareto_fit_and_leave_one_out():
    rng = np.random.default_rng(6)
    for k in (0.2, 0.7):
        x = np.sort(((1 - rng.uniform(size=(50, 2000))) ** -k - 1) / k, axis=1)
        assert pareto_fit(x)[0].mean() == pytest.approx(k, abs=0.05)
    # A normal mean with a flat prior: leaving out y_t leaves N(mean of the others, 1 + 1/(n − 1)).
    y = rng.standard_normal(60)
    draws = y.mean() + rng.standard_normal(4000) / np.sqrt(60)
    loo = leave_one_out(-0.5 * (y[:, None] - draws) ** 2 - 0.5 * np.log(2 * np.pi))
    others = (y.sum() - y) / 59
    exact = -0.5 * (y - others) ** 2 / (1 + 1 / 59) - 0.5 * np.log(2 * np.pi * (1 + 1 / 59))
    assert loo.elpd == pytest.approx(exact.sum(), abs=0.1) and loo.pareto_k.max() < 0.7
    np.testing.assert_allclose(loo.by_trial, exact, atol=0.05)


def test_pareto_smoothing_with_repeated_draws_and_wide_tails():
    """A chain that stays where it is repeats a draw up to the tail's cutoff and beyond; weights may span any range."""
    rng = np.random.default_rng(0)
    smooth = np.sort(rng.standard_normal(2000))
    tied = smooth.copy()
    tied[-150:-60] = tied[-61]  # the largest 135 begin with 75 that equal the cutoff
    one = np.where(np.arange(2000) == 7, 50.0, 0.0)
    with np.errstate(all="raise", under="ignore"):
        weights, k = pareto_smooth(np.stack([smooth, tied, 200 * smooth, one, np.zeros(2000)]))
    np.testing.assert_allclose(logsumexp(weights, axis=1), 0, atol=1e-12)
    assert abs(k[1] - k[0]) < 0.3  # with the ties in the tail it was in the hundreds
    assert k[2] > 0.7 and k[3] == np.inf and k[4] == -np.inf
    assert np.isfinite(weights).all()


class Funnel:
    """y is standard normal, x given y normal with s.d. exp(−y): the larger y, the smaller a step must be."""

    dimension = 2

    def log_joint(self, theta):
        x, y = theta
        value = -0.5 * y**2 - 0.5 * x**2 * torch.exp(2 * y) + y
        return value, torch.stack([-x * torch.exp(2 * y), -y - x**2 * torch.exp(2 * y) + 1])


def test_no_chain_stays_where_the_common_step_is_too_long():
    state = _State(Funnel(), np.zeros(2), torch.eye(2, dtype=torch.float64), np.random.default_rng(0), 8)
    state.x[:, 0] = torch.tensor([0.2, 2.0])
    state._use(torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64))
    draws, _, _ = state.run(60, None)
    assert (np.diff(draws[1], axis=-1) != 0).any(-1).all()
    assert draws[1, 0].min() < 1.0


@pytest.mark.slow
def test_the_predictive_density_of_varying_precision_is_that_of_the_chains():
    """Models are compared by draws of Laplace's approximation. `studies/fit-calibration/predictive_density.py` adds
    k-fold cross-validation, which needs no importance weights."""
    rng = np.random.default_rng(0)
    report, probe = items(400, (2, 4), seed=3)
    trials = observed(report, probe, lambda d: 0 * d - 2.5, kappa=15 * rng.gamma(2.0, 0.5, 400))
    found = fit(trials, "constant", "variable_precision", sets="offsets", bias=False, progress=False)
    options = {"uniform": True, "even": True, "hierarchical": False, "by": (), "reference": {}}
    by_laplace = evaluate([trials], Choice("constant", "variable_precision"), options, 0, None).loo
    assert by_laplace.elpd == pytest.approx(found.loo.elpd, abs=1.5)
    seen = logsumexp(found.log_likelihood, axis=1).sum() - len(trials) * np.log(found.draws)
    assert seen - found.loo.elpd > 3  # by how much the density of responses that were not left out is too high


UNITS = (
    ("probe", "variable_precision", {}),
    ("constant", "von_mises", {"hierarchical": True}),
    ("probe", "von_mises", {"by": ("cue",)}),
    ("probe", "variable_precision", {"hierarchical": True, "by": ("cue",)}),
)


@pytest.mark.parametrize(("name", "emission", "options"), UNITS)
def test_units_decide_by_themselves_and_their_curvature_is_that_of_all(name, emission, options):
    """Moving one unit's coordinates changes the log joint by as much as its own share of it, and no other share."""
    model = MixtureModel(two_by_two("von_mises"), name, EMISSIONS[emission](), harmonics=3, **options)
    conditional = expand(model, model.initial())
    places, _ = conditional.units
    x = torch.tensor(0.3 * np.random.default_rng(4).standard_normal((model.dimension, 2)))
    whole, shares = conditional.log_joint(x, torch.float64)[0], conditional.by_unit(x, torch.float64)
    for unit, place in enumerate(places):
        moved = x.clone()
        moved[place] += 0.3
        change = conditional.by_unit(moved, torch.float64) - shares
        torch.testing.assert_close(change[unit], conditional.log_joint(moved, torch.float64)[0] - whole)
        change[unit] = 0
        assert change.abs().max() < 1e-9
    fast = conditional.curvature(x[:, 0].numpy())
    conditional.units = None
    np.testing.assert_allclose(fast, conditional.curvature(x[:, 0].numpy()), atol=1e-6)


@pytest.mark.slow
def test_a_table_with_eight_set_sizes_is_fitted_within_bounded_work_and_memory(monkeypatch):
    """Eight set sizes, thirteen positions and scatter of varying precision: chains did not agree after 470 moves of
    four gradients. Work is counted in gradients of one parameter vector, memory in bytes that trials keep."""
    rng = np.random.default_rng(0)
    count, sizes = 1600, rng.integers(1, 9, 1600)
    report, probe = rng.uniform(-np.pi, np.pi, (count, 8)), np.argsort(rng.uniform(size=(count, 13)), 1)[:, :8]
    probe = wrap(probe * 2 * np.pi / 13)
    report[np.arange(8) >= sizes[:, None]] = probe[np.arange(8) >= sizes[:, None]] = np.nan
    trials = observed(report, probe, lambda d: -3 + 1.5 * np.cos(d), kappa=12 * rng.gamma(2.0, 0.5, count))
    gradients, total = [], Likelihood.total

    def counted(likelihood, parameters):
        gradients.append(parameters.emission.shape[-1])
        return total(likelihood, parameters)

    monkeypatch.setattr(Likelihood, "total", counted)
    found = fit(trials, "probe", "variable_precision", sets="offsets", bias=False, progress=False)
    assert found.converged
    assert sum(gradients) < 35_000  # 56 moves of seven steps of 32 chains, twice, and the search
    likelihood = found.model.likelihood(torch.float32)
    kept = [block.statistics for block in likelihood.blocks]
    items_shown = np.isfinite(report).sum()
    held = sum(t.numel() * t.element_size() for angles in kept for t in (angles.cosine, angles.sine))
    assert held <= 8 * items_shown
    most = max(len(block.rows) * (block.others + 1) * 32 for block in likelihood.blocks)
    assert most <= 1 << 17  # elements of one array, however many trials there are


class TwoModes:
    """A normal coordinate, and two units: one normal around the first, one with a second mode far away that holds a
    quarter of its mass."""

    def __init__(self, units):
        self.renewed = torch.tensor([[1], [2]]) if units else None

    def by_unit(self, x):
        near, far = math.log(0.75) - 0.5 * (x[2] / 0.5) ** 2, math.log(0.25) - 0.5 * ((x[2] - 6) / 0.5) ** 2
        return torch.stack([-0.5 * (x[1] - x[0]) ** 2, torch.logaddexp(near, far)])

    def log_joint(self, x):
        x = x.detach().requires_grad_(True)
        value = -0.5 * x[0] ** 2 + self.by_unit(x).sum(0)
        return value.detach(), torch.autograd.grad(value.sum(), x)[0]


@pytest.mark.slow
@pytest.mark.parametrize("units", [True, False])
def test_units_are_renewed_across_modes(units):
    """The draws are those of the distribution; trajectories alone leave the chains in the modes where they began."""
    model = TwoModes(units)
    factor = torch.diag(torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64))
    state = _State(model, np.array([0.0, 0.0, 1.5]), factor, np.random.default_rng(0), 64)
    state.x[2] = 0.0
    state._use(state.centre, state.covariance)
    state.step = 0.15
    state.run(30, None)
    draws = state.run(120, None)[0].reshape(3, -1)
    share = (draws[2] > 3).mean()
    assert share == (pytest.approx(0.25, abs=0.03) if units else 0)
    assert np.abs(np.cov(draws[:2]) - [[1, 1], [1, 2]]).max() < 0.12


@pytest.mark.parametrize("bias", [False, True])
def test_densities_from_tables_are_those_of_the_emission(bias):
    """A table of half degrees is right to a millionth of a nat, for the value, and to the same for the gradient."""
    trials = two_by_two("von_mises")
    emission = EMISSIONS["variable_precision"]()
    groups = np.array([np.flatnonzero(np.unique(trials.set_size) == n)[0] for n in trials.set_size])
    count, rng = groups.max() + 1, np.random.default_rng(2)
    eta = torch.tensor(np.array([3.0, 0.5])[:, None, None] + 0.5 * rng.standard_normal((2, count, 3)))
    shift = torch.tensor(0.2 * rng.standard_normal((count, 3))) if bias else None
    level, guess = (torch.tensor(rng.standard_normal((count, 3)) - 2) for _ in range(2))
    p = Parameters(None, level, eta, shift, guess)
    kinds = (emission, Tabulated(emission, bias))
    plain, fast = (Likelihood(trials, kind, groups, bias=bias).total(p) for kind in kinds)
    torch.testing.assert_close(fast[0], plain[0], atol=1e-6 * len(trials), rtol=0)
    torch.testing.assert_close(fast[1].emission, plain[1].emission, atol=1e-4, rtol=1e-5)
    if bias:
        torch.testing.assert_close(fast[1].bias, plain[1].bias, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("kappa, shape, limit", [(3, 1.0, 2e-5), (40, 0.3, 2e-5), (150, 1.0, 1e-4), (400, 1.0, 1e-3)])
def test_tables_of_half_the_circle_hold_for_narrow_and_wide_scatter(kappa, shape, limit):
    """Everywhere on the circle, with 2 % of guesses. On average over responses the error is a hundredth of that."""
    angles = np.linspace(-np.pi, np.pi, 3001)
    emission, at = EMISSIONS["variable_precision"](), At(np.zeros(len(angles), int))
    table = Tabulated(emission, bias=False)
    shown = np.zeros((len(angles), 1))
    trials = Trials(angles, shown, shown)
    eta = torch.tensor([[[math.log(kappa)]], [[math.log(shape)]]], dtype=torch.float64)
    density = {}
    for kind in (emission, table):
        statistics = kind.statistics(trials, at.local, torch.float64)
        density[kind] = kind.densities(statistics, kind.prepare(eta, None), at)[0].flatten()
    exact, found = (0.98 * density[kind] + 0.02 / (2 * np.pi) for kind in (emission, table))
    error = (found / exact).log()
    assert error.abs().max() < limit
    assert abs((error * exact).sum() / exact.sum()) < 0.01 * limit


def expectation_maximisation(trials, iterations=4000):
    """The three-component mixture of Bays, Catalao & Husain (2009): target, non-targets, uniform; von Mises. The
    oracle."""
    from scipy.optimize import brentq
    from scipy.special import i1e

    deviation = wrap(trials.response[:, None] - trials.report)
    weights, kappa = np.array([0.6, 0.3, 0.1]), 5.0
    others = trials.report.shape[1] - 1
    for _ in range(iterations):
        before = kappa
        density = np.exp(kappa * (np.cos(deviation) - 1)) / (2 * np.pi * i0e(kappa))
        joint = np.column_stack(
            [
                weights[0] * density[:, 0],
                weights[1] / others * density[:, 1:],
                np.full(len(trials), weights[2] / (2 * np.pi)),
            ]
        )
        responsibility = joint / joint.sum(1, keepdims=True)
        weights = np.array(
            [responsibility[:, 0].mean(), responsibility[:, 1:-1].sum(1).mean(), responsibility[:, -1].mean()]
        )
        resultant = (responsibility[:, :-1] * np.cos(deviation)).sum() / responsibility[:, :-1].sum()
        kappa = brentq(lambda k: i1e(k) / i0e(k) - resultant, 1e-3, 1e4, xtol=1e-13)
        if abs(kappa - before) < 1e-12 * kappa:
            break
    return np.log(joint.sum(1)).sum(), weights, kappa


@pytest.mark.parametrize("size", [2, 5])
def test_constant_swaps_equal_the_three_component_mixture(size):
    trials = observed(*items(800, (size,), seed=size), lambda d: 0 * d - 1.5, kappa=8.0, guess=0.15)
    value, weights, kappa = expectation_maximisation(trials)
    ours = maximum_likelihood(trials, "constant")
    odds = (size - 1) * np.exp(ours.f[0])
    assert ours.log_likelihood == pytest.approx(value, abs=1e-6)
    assert ours.emission["kappa"] == pytest.approx(kappa, rel=1e-6)
    assert ours.uniform == pytest.approx(weights[2], abs=1e-6)
    assert (1 - ours.uniform) * odds / (1 + odds) == pytest.approx(weights[1], abs=1e-6)


@pytest.mark.slow
def test_maximum_likelihood_reproduces_the_reference_logits(human_data):
    """Pooled van den Berg et al. (2012), eight items: one free logit per ring distance, and its gain over a flat f."""
    from lapsus.trials import read_trials

    trials = read_trials(human_data / "vandenberg2012_color")
    trials = trials[trials.set_size == 8]
    free, flat = maximum_likelihood(trials, "probe"), maximum_likelihood(trials, "constant")
    np.testing.assert_allclose(free.f, [-1.67, -2.39, -5.15, -3.03], atol=0.006)
    assert free.log_likelihood - flat.log_likelihood == pytest.approx(45.7, abs=0.05)
