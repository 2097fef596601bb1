"""Causal inference in cue combination: observer against integration, fits against simulated observers, KS, the trained
network."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from figure_files import check_figure
from scipy import integrate, stats

import lapsus
from lapsus import CausalInference, CueCombination, LapsusError, rng
from lapsus.behaviour.causal_inference import posterior
from lapsus.diffusion import linear_schedule
from lapsus.evaluation.sample_sizes import QUICK_FIGURES
from lapsus.fitting.causal_inference import PARAMETERS, fit_causal_inference
from lapsus.mechanism.cue_grid import modes_at_cues
from lapsus.statistics.ks import bimodal, both_modes, ks_distance, ks_noise, ks_over_cues, mode_mass


def _normal(x, mean, sd):
    return np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))


def _integrated_posterior(z, s_v, s_a, v, a, p, common):
    """p(z_a | s_v, s_a) from the generative model alone: the visual source is summed over numerically, nothing is
    conditioned by hand."""
    axis = np.linspace(-12, 12, 48_001)
    separate_view = integrate.trapezoid(_normal(axis, 0, p) * _normal(s_v, axis, v), axis)

    def joint(z_a):
        seen = common * _normal(s_v, z_a, v) + (1 - common) * separate_view
        return _normal(z_a, 0, p) * _normal(s_a, z_a, a) * seen

    return joint(z) / integrate.trapezoid(joint(axis), axis)


@pytest.mark.parametrize("s_v, s_a", [(0.0, 0.0), (1.2, -0.4), (-3.0, 3.0), (2.9, 2.7), (0.8, -2.0)])
def test_posterior_is_that_of_the_generative_model(s_v, s_a):
    observer = CausalInference()
    sigma = (observer.sigma_v / 12.3, observer.sigma_a / 12.3, observer.sigma_p / 12.3)
    z = np.linspace(-4, 4, 321)
    conditions = {"s_v": torch.tensor([s_v], dtype=torch.float64), "s_a": torch.tensor([s_a], dtype=torch.float64)}
    exact = observer.density(torch.tensor(z)[None], conditions)[0].numpy()
    brute = _integrated_posterior(z, s_v, s_a, *sigma, observer.p_common)
    np.testing.assert_allclose(exact, brute, atol=1e-6)
    axis = np.linspace(-12, 12, 48_001)
    brute_cdf = integrate.cumulative_trapezoid(
        _integrated_posterior(axis, s_v, s_a, *sigma, observer.p_common), axis, initial=0
    )
    cdf = observer.cdf(torch.tensor(axis[::500])[None], conditions)[0].numpy()
    np.testing.assert_allclose(cdf, brute_cdf[::500], atol=1e-6)
    mean = integrate.trapezoid(axis * _integrated_posterior(axis, s_v, s_a, *sigma, observer.p_common), axis)
    assert observer.optimal(conditions).item() == pytest.approx(mean, abs=1e-6)


def test_common_cause_has_the_prior_of_the_text_not_of_the_display():
    """Cues without information leave p(C = 1) = p_common."""
    cues = torch.tensor([0.3], dtype=torch.float64), torch.tensor([-0.2], dtype=torch.float64)
    vague = torch.tensor(1e4, dtype=torch.float64)
    weights, _, _ = posterior(
        *cues, vague, vague, torch.tensor(1.0, dtype=torch.float64), torch.tensor(0.28, dtype=torch.float64)
    )
    assert weights[0, 0].item() == pytest.approx(0.28, abs=1e-4)


def test_discretised_posterior_has_the_exact_mass_of_each_bin():
    observer, conditions = CausalInference(), CueCombination().grid(5)
    conditions = {name: cue.double() for name, cue in conditions.items()}
    edges, mass = observer.discretised(conditions)
    assert mass.shape == (25, 200) and len(edges) == 201
    assert float(edges[-1]) == pytest.approx(4.0) and float(edges[0]) == pytest.approx(-4.0)
    torch.testing.assert_close(mass.sum(1), torch.ones(25, dtype=torch.float64))
    inside = np.linspace(float(edges[120]), float(edges[121]), 101)
    area = integrate.trapezoid(
        observer.density(torch.tensor(inside).expand(25, -1), conditions).numpy(), inside, axis=1
    )
    reached = observer.cdf(edges[[0, -1]].expand(25, -1), conditions).diff(dim=1)[:, 0].numpy()
    np.testing.assert_allclose(mass[:, 120].numpy(), area / reached, atol=1e-6)


@pytest.mark.parametrize("bins", [0, 200])
def test_samples_follow_the_density(bins):
    observer, conditions = CausalInference(bins=bins), CueCombination().grid(6, 2.5)
    x = observer.sample(conditions, 4000, rng.generator("samples", bins))
    assert x.shape == (1, 36, 4000)
    ks = ks_distance(observer.cdf(x[0], conditions).numpy())
    # Uniform noise within bins of 0.04 changes the CDF of the narrow component (s.d. 0.17) by less than 0.001.
    p = stats.kstwo.sf(ks, 4000)
    assert p.min() > 1e-5 and stats.kstest(p, "uniform").pvalue > 1e-3


def test_exact_denoiser_against_integration():
    observer = CausalInference()
    conditions = {"s_v": torch.tensor([1.0], dtype=torch.float64), "s_a": torch.tensor([-0.3], dtype=torch.float64)}
    alpha_bar = float(linear_schedule().alpha_bar[20])
    x_t = torch.linspace(-2, 2, 9, dtype=torch.float64)
    z = np.linspace(-8, 8, 20_001)
    density = observer.density(torch.tensor(z)[None], conditions)[0].numpy()
    weight = density * _normal(x_t.numpy()[:, None], math.sqrt(alpha_bar) * z, math.sqrt(1 - alpha_bar))
    brute = integrate.trapezoid(weight * z, z, axis=1) / integrate.trapezoid(weight, z, axis=1)
    exact = observer.mixture(conditions).denoise(x_t.view(1, 1, -1), alpha_bar)[0, 0]
    np.testing.assert_allclose(exact.numpy(), brute, atol=1e-6)


def test_units_are_the_users():
    """Degrees divided by any unit are the same observer."""
    degrees = CausalInference(unit=1.0)
    scaled = CausalInference()
    s_v, s_a, x = torch.tensor([14.0]), torch.tensor([-3.0]), torch.tensor([[5.0, 11.0]])
    in_degrees = degrees.density(x, {"s_v": s_v, "s_a": s_a})
    in_units = scaled.density(x / 12.3, {"s_v": s_v / 12.3, "s_a": s_a / 12.3})
    torch.testing.assert_close(in_degrees * 12.3, in_units, rtol=1e-4, atol=1e-6)


def test_checks_accept_task_and_behaviour():
    task = CueCombination()
    lapsus.check_task(task)
    for bins in (0, 200):
        lapsus.check_behaviour(CausalInference(bins=bins), task)
    assert list(task.table(task.sample(3, rng.generator(0))).columns) == ["s_v", "s_a"]
    grid = task.grid(20, 3.0)
    assert len(grid["s_v"]) == 400 and float(grid["s_v"].min()) == -3 and float(grid["s_a"].max()) == 3


@pytest.mark.parametrize("wrong", [{"sigma_v": 0.0}, {"p_common": 1.0}, {"bins": -1}, {"unit": -2.0}])
def test_impossible_observers_are_refused(wrong):
    with pytest.raises(LapsusError, match=f"behaviour.{next(iter(wrong))}"):
        CausalInference(**wrong)


def test_measures_tell_a_right_observer_from_wrong_ones():
    observer, conditions = CausalInference(), CueCombination().sample(600, rng.generator(3))
    right = observer.measures(conditions, observer.sample(conditions, 16, rng.generator(4)))
    assert right["ks"] < 0.02 and right["spread"] == pytest.approx(1, abs=0.03)
    always = CausalInference(p_common=0.9)
    wrong = observer.measures(conditions, always.sample(conditions, 16, rng.generator(4)))
    assert wrong["common"] > right["common"] + 0.1
    average = observer.optimal(conditions).T[..., None].expand(1, 600, 16)
    assert observer.measures(conditions, average)["spread"] < 0.01


# --- Fitting ---


def _simulated(truth: dict, trials: int, seed: int) -> pd.DataFrame:
    generator = rng.generator("observer", seed)
    cues = {name: 30 * (2 * torch.rand(trials, generator=generator) - 1) for name in ("s_v", "s_a")}
    response = CausalInference(**truth, unit=1.0, bins=0).sample(cues, 1, generator)[0, :, 0]
    return pd.DataFrame({"s_v": cues["s_v"], "s_a": cues["s_a"], "response": response})


def test_parameters_of_simulated_observers_are_recovered():
    truth = {"sigma_v": 3.0, "sigma_a": 8.0, "sigma_p": 14.0, "p_common": 0.4}
    table = _simulated(truth, 2000, 1)
    fitted = fit_causal_inference(table)
    for name in PARAMETERS:
        low, high = fitted.intervals[name]
        assert low < fitted.estimates[name] < high
        assert fitted.estimates[name] == pytest.approx(truth[name], rel=0.15)
    observer = CausalInference(**truth, unit=1.0)
    conditions = {name: torch.tensor(table[name].to_numpy()) for name in ("s_v", "s_a")}
    at_truth = float(torch.log(observer.density(torch.tensor(table["response"].to_numpy())[:, None], conditions)).sum())
    # Twice the gain over the truth is chi² with four degrees of freedom.
    assert 0 <= fitted.log_likelihood - at_truth < 0.5 * stats.chi2.ppf(0.999, 4)
    again = fitted.behaviour()
    assert again.sigma_v == fitted.estimates["sigma_v"] and again.unit == fitted.estimates["sigma_p"]


@pytest.mark.slow
def test_intervals_cover_the_truth():
    truth = {"sigma_v": 2.14, "sigma_a": 9.2, "sigma_p": 12.3, "p_common": 0.28}
    covered = []
    for seed in range(10):
        fitted = fit_causal_inference(_simulated(truth, 150, 10 + seed), level=0.8)
        covered += [fitted.intervals[name][0] <= truth[name] <= fitted.intervals[name][1] for name in PARAMETERS]
    # 40 intervals of 80 %: 32 expected, and a standard deviation of at most 4 if the four of a fit are correlated by a
    # half.
    assert 20 <= sum(covered) <= 39


@pytest.mark.slow
def test_fit_does_not_depend_on_the_unit():
    table = _simulated({"sigma_v": 3.0, "sigma_a": 8.0, "sigma_p": 14.0, "p_common": 0.4}, 200, 2)
    degrees, radians = fit_causal_inference(table), fit_causal_inference(table * math.pi / 180)
    for name in PARAMETERS:
        factor = 1 if name == "p_common" else math.pi / 180
        assert radians.estimates[name] == pytest.approx(factor * degrees.estimates[name], rel=1e-3)
    assert radians.log_likelihood == pytest.approx(degrees.log_likelihood - 200 * math.log(math.pi / 180), abs=1e-3)


def test_tables_that_cannot_be_fitted_say_why():
    table = _simulated({}, 50, 3)
    with pytest.raises(LapsusError, match="no column s_a"):
        fit_causal_inference(table.drop(columns="s_a"))
    with pytest.raises(LapsusError, match=r"Column response.*row 8"):
        fit_causal_inference(table.assign(response=table["response"].where(table.index != 7)))
    with pytest.raises(LapsusError, match="20 at least"):
        fit_causal_inference(table[:5])
    with pytest.raises(LapsusError, match="not numbers"):
        fit_causal_inference(table.assign(s_v="left"))


# --- KS ---


def test_ks_is_that_of_scipy():
    rng = np.random.default_rng(0)
    x = rng.normal(0.2, 1, (3, 200))
    expected = [stats.kstest(row, "norm").statistic for row in x]
    np.testing.assert_allclose(ks_distance(stats.norm.cdf(x)), expected)
    found = ks_over_cues(x[None], stats.norm.cdf, [0.0], [-1.0, 0.0, 1.0])
    assert found["ks"].shape == (1, 3) and found.attrs["ks_median"] == pytest.approx(np.median(expected))


def test_sampling_noise_of_ks_is_what_samples_of_the_target_show():
    ks = ks_distance(np.random.default_rng(1).random((2000, 500)))
    assert np.median(ks) == pytest.approx(ks_noise(500), rel=0.03)
    assert np.quantile(ks, 0.95) == pytest.approx(ks_noise(500, 0.95), rel=0.05)


def test_modes_are_found_where_they_are():
    x = np.linspace(-4, 4, 801)
    two = 0.5 * _normal(x, -1, 0.3) + 0.5 * _normal(x, 1.2, 0.3)
    rare = 0.98 * _normal(x, -1, 0.3) + 0.02 * _normal(x, 1.2, 0.3)
    places = bimodal(x, np.stack([two, _normal(x, 0, 1), rare]))
    np.testing.assert_allclose(places[0], [-1, 0.1, 1.2], atol=0.011)
    assert np.isnan(places[1:]).all()
    rng = np.random.default_rng(2)
    samples = np.where(rng.random(2000) < 0.5, rng.normal(-1, 0.3, 2000), rng.normal(1.2, 0.3, 2000))
    averaged = rng.normal(0.1, 0.6, 2000)
    assert both_modes(samples, places[0], 0.2)
    assert not both_modes(averaged, places[0], 0.2)
    elsewhere = places[0] + 0.5
    assert modes_at_cues(np.stack([samples, averaged, samples]), [*places[[0, 0]], elsewhere]).tolist() == [1, 0, 0]
    cdf = lambda z: 0.5 * stats.norm.cdf(z, -1, 0.3) + 0.5 * stats.norm.cdf(z, 1.2, 0.3)
    assert mode_mass(samples, places[0], 0.2, cdf) == pytest.approx(1, abs=0.15)
    assert mode_mass(rng.normal(-1, 0.3, 2000), places[0], 0.2, cdf) == 0


# --- The network ---


def test_experiment_is_described_and_buildable():
    experiment = lapsus.read_experiment("cue-combination")
    model = lapsus.Model.of(experiment)
    assert model.network.readout.shape == (1, 16) and model.network.branching == (10, 10)
    assert isinstance(model.behaviour, CausalInference) and model.behaviour.p_common == 0.28
    assert experiment.stage[-1].behaviour is None, "the last stage must train on the experiment's own target"


def test_a_short_training_learns(tmp_path):
    """From file to responses through the general machinery only: nothing in it knows of this task."""
    stage = {
        "updates": 60,
        "objective": {"kind": "task-optimal", "window": 3},
        "conditions": 32,
        "trials": 8,
        "warmup": 10,
        "clip": 5.0,
        "learning_rate": 0.01,
    }
    experiment = lapsus.read_experiment(
        {
            "name": "short",
            "task": {"kind": "cue-combination", "denoise": 6},
            "behaviour": {"kind": "causal-inference"},
            "network": {"kind": "dendritic", "units": 8, "branching": [4, 4]},
            "stage": [stage, stage | {"updates": 10, "objective": {"kind": "diffusion"}}],
        }
    )
    run = lapsus.Run.create(tmp_path / "run", experiment)
    lapsus.train(run, progress=False)
    losses = [line["loss"] for line in run.metrics() if line["stage"] == 0]
    assert losses[-1] < 0.8 * losses[0]
    result = lapsus.evaluate(run.model(), 16, 8)
    assert {"excess", "ks", "spread", "common", "exact_sampler"} <= set(result)
    from lapsus.cli.evaluate import describe

    assert "common: " in describe(result), "the command prints whatever a behaviour measures"
    activity = lapsus.simulate(run.model(), 4, 3)
    assert activity["response"].shape == (12,) and {"s_v", "s_a"} <= set(activity)


@pytest.fixture(scope="module")
def shipped():
    from lapsus.paper.roles import Networks

    networks = Networks.shipped()
    if "cue-combination" not in networks:
        pytest.skip("no trained cue-combination network ships yet")
    return networks


@pytest.mark.long
def test_shipped_network_samples_the_posterior(shipped):
    from lapsus.paper.cue_combination import summary

    found = summary(shipped)
    assert found["samples"] == 2000 and found["cells"] == 400
    assert found["ks_median"] <= 0.06 and found["ks_p95"] <= 0.15, found


@pytest.mark.long
def test_shipped_network_has_both_modes(shipped):
    """Responses crowd at both in three quarters of the clearly bimodal cells; posterior samples do in all of them."""
    from lapsus.paper.cue_combination import summary

    found = summary(shipped)
    assert found["both_modes"] >= 0.75 and found["both_modes_target"] >= 0.95 and found["mode_mass_least"] > 0.3, found


@pytest.fixture(scope="module")
def few_cues(shipped):
    """A coarser grid and fewer samples: the same code in a tenth of the time."""
    return replace(shipped, sizes=QUICK_FIGURES)


@pytest.mark.slow
def test_shipped_network_samples_the_posterior_of_a_few_cues(few_cues):
    """The limits of the full grid, which `make long` tests, widened by what sampling 800 instead of 2,000 responses
    adds to a KS distance: 0.03 instead of 0.02 in the median."""
    from lapsus.paper.cue_combination import summary

    found = summary(few_cues)
    assert (found["samples"], found["cells"]) == (800, 49)
    assert found["ks_median"] <= 0.07 and found["ks_p95"] <= 0.16, found


@pytest.mark.slow
def test_command_prints_numbers_and_draws(few_cues, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from lapsus.cli import app
    from lapsus.paper.roles import Networks

    monkeypatch.setattr(Networks, "shipped", classmethod(lambda *_: few_cues))
    done = CliRunner().invoke(app, ["reproduce", "cue-combination", "--json", "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    numbers = json.loads(done.stdout)
    assert 0 < numbers["ks_median"] <= numbers["ks_p95"]
    check_figure(tmp_path, "cue-combination")
    ks = pd.read_csv(tmp_path / "cue-combination.csv")
    assert len(ks) == 49 and ks["ks"].median() == pytest.approx(numbers["ks_median"], abs=1e-3)
