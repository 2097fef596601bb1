"""The whole fit: recovery, calibration, against Hamiltonian Monte Carlo of our own making, files, command, human
data."""

import json
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from test_inference import items, observed
from typer.testing import CliRunner

import lapsus
from lapsus.circular import wrap
from lapsus.cli import app
from lapsus.errors import LapsusError
from lapsus.fitting import Fit, SubjectFits, calibrate, fit
from lapsus.fitting.candidates import EMISSION_ORDER, MODELS, most_candidates, search
from lapsus.fitting.model import SETS
from lapsus.fitting.progress import Bar
from lapsus.trials import Trials, read_trials

NEAR = np.radians([20.0, 60, 100, 140])


def smooth(d):
    return -0.5 - d**2 / 3


def flat(d):
    return 0 * d - 2


def run(arguments):
    """The command as the shell runs it: exit code, standard output."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if isinstance(result.exception, LapsusError):
        return 2, str(result.exception)
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def smooth_fit():
    return fit(observed(*items(800), smooth), "probe")


@pytest.mark.slow
def test_swap_function_is_recovered(smooth_fit):
    table = smooth_fit.swap_function(NEAR)
    assert ((table["low"] < smooth(NEAR)) & (smooth(NEAR) < table["high"])).sum() >= 3
    assert np.abs(table["f"] - smooth(NEAR)).max() < 1.0
    emission = smooth_fit.emission.iloc[0]
    assert emission["kappa_low"] < 10 < emission["kappa_high"]
    weights = smooth_fit.weights.iloc[0]
    assert weights["guess_low"] < 0.05 < weights["guess_high"] + 0.01
    assert weights["target"] + weights["non_target"] + weights["guess"] == pytest.approx(1)
    assert smooth_fit.converged


def test_same_seed_same_bits():
    trials = observed(*items(60), flat)
    first, again, other = (fit(trials, "none", bias=False, seed=seed).parameters.emission for seed in (0, 0, 1))
    np.testing.assert_array_equal(again, first)
    assert not np.array_equal(other, first)


@pytest.mark.parametrize("emission, sizes", [("wrapped_stable", (2,)), ("plane", (2,)), ("von_mises", (1, 3))])
@pytest.mark.slow
def test_other_emissions_and_set_sizes_recover(emission, sizes):
    trials = observed(*items(600, sizes), flat, kappa=30.0, plane=emission == "plane", guess=0.0)
    fitted = fit(trials, "constant", emission, uniform=False)
    row = fitted.swap_function([1.0]).iloc[0]
    assert row["low"] - 0.1 < -2 < row["high"] + 0.1
    if emission != "wrapped_stable":
        assert fitted.emission["circular_sd"].iloc[-1] == pytest.approx(1 / math.sqrt(30), rel=0.12)


@pytest.mark.slow
def test_signed_functions_need_not_be_even():
    trials = observed(*items(1500), lambda d: -1.5 + np.sin(d), guess=0.0)
    table = fit(trials, "probe", uniform=False, even=False, bias=False).swap_function(np.array([-1.5, 1.5]))
    assert table["f"][1] - table["f"][0] == pytest.approx(2, abs=0.8)


@pytest.mark.slow
def test_comparison_finds_the_model_that_made_the_data():
    for feature, f in (("probe", lambda d: 0.5 - d**2 / 2), ("report", lambda d: 0.5 - d**2 / 2)):
        trials = observed(*items(700, seed=3), f, kappa=30.0, feature=feature)
        assert fit(trials, models=("none", "constant", "probe", "report"), bias=False).name == feature
    trials = observed(*items(700, seed=4), flat, kappa=30.0)
    chosen = fit(trials, models=("none", "constant", "probe"), bias=False)
    assert chosen.name == "constant"
    assert {"model", "emission", "elpd", "se", "elpd_difference"} <= set(chosen.comparison)
    assert "constant" in chosen.summary() and "nats" in chosen.summary()


@pytest.mark.slow
def test_both_features():
    report, probe = items(1500, seed=5)
    gap = np.abs(wrap(report[:, 1] - report[:, 0]))
    trials = observed(
        report, probe, lambda d: np.column_stack([0 * gap, -0.5 - d[:, 1] ** 2 / 4 - gap**2 / 4]), kappa=30.0
    )
    table = fit(trials, "both", bias=False).swap_function(np.array([[0.7, 0.7], [2.5, 0.7], [0.7, 2.5], [2.5, 2.5]]))
    truth = -0.5 - np.array([0.98, 6.74, 6.74, 12.5]) / 4
    assert ((table["low"] - 0.3 < truth) & (truth < table["high"] + 0.3)).all()


@pytest.mark.slow
def test_posterior_against_long_hamiltonian_chains():
    """The model written again, by loops over terms and automatic derivatives, sampled long with a plain HMC."""
    trials = observed(*items(150, seed=6), smooth, kappa=12.0)
    ours = fit(trials, "probe", bias=False)
    deviation = torch.tensor(np.cos(wrap(trials.response[:, None] - trials.report)))
    gap = torch.tensor(np.abs(wrap(trials.probe[:, 1] - trials.probe[:, 0])))
    k = torch.arange(1, 13, dtype=torch.float64)
    lattice = torch.linspace(0, math.pi, 301, dtype=torch.float64)
    transform = torch.cos(k[:, None] * lattice) * torch.where((lattice == 0) | (lattice == math.pi), 0.5, 1.0)

    def f_at(x, d):
        scale, tau = torch.exp(math.log(0.7) + x[13]), 4 + torch.exp(0.5 + x[14])
        kernel = (1 + tau * lattice[:, None] / math.pi) * (1 - lattice[:, None] / math.pi) ** tau
        power = transform @ kernel
        power = power / power.sum(0)
        waves = math.sqrt(2) * torch.cos(d[:, None] * k)
        return -2.5 + 2 * x[12] + scale * (waves @ (power.sqrt() * x[:12]))

    def log_density(x):
        odds = torch.exp(f_at(x, gap))
        kappa, u = torch.exp(2.5 + 1.5 * x[15]), torch.sigmoid(-3 + 2 * x[16])
        density = torch.exp(kappa * (deviation[:, :, None] - 1)) / (2 * math.pi * torch.special.i0e(kappa))
        mixture = (density[:, 0] + odds * density[:, 1]) / (1 + odds)
        return torch.log((1 - u) * mixture + u / (2 * math.pi)).sum(0) - 0.5 * (x**2).sum(0)

    generator = torch.Generator().manual_seed(0)
    chains, step, kept = 64, 0.13, []
    x = 0.5 * torch.randn(17, chains, generator=generator, dtype=torch.float64)
    for iteration in range(120):

        def gradient(z):
            z = z.detach().requires_grad_(True)
            value = log_density(z)
            return value.detach(), torch.autograd.grad(value.sum(), z)[0]

        momentum = torch.randn(17, chains, generator=generator, dtype=torch.float64)
        value, slope = gradient(x)
        start, proposal = value - 0.5 * (momentum**2).sum(0), x
        length = step * (0.5 + torch.rand(1, generator=generator, dtype=torch.float64).item())
        for _ in range(8):
            momentum = momentum + 0.5 * length * slope
            proposal = proposal + length * momentum
            value, slope = gradient(proposal)
            momentum = momentum + 0.5 * length * slope
        accept = (
            torch.rand(chains, generator=generator, dtype=torch.float64).log()
            < value - 0.5 * (momentum**2).sum(0) - start
        )
        x = torch.where(accept, proposal, x)
        if iteration >= 30:
            kept.append(x)
    grid = np.radians([0.0, 45, 90, 135, 180])
    reference = torch.cat([f_at(draw, torch.tensor(grid)) for draw in kept], 1).numpy()
    exact = ours.f(grid)
    spread = reference.std(1)
    # A chain draw is worth less than an independent one: a fifth of a posterior s.d. is what 90 steps can tell.
    assert (np.abs(exact.mean(1) - reference.mean(1)) / spread).max() < 0.25
    assert (np.abs(np.log(exact.std(1) / spread))).max() < 0.25


@pytest.mark.long
def test_calibration_passes_and_flags_overconfidence():
    report, probe = items(120, seed=7)
    result = calibrate(Trials(np.zeros(120), report, probe), 16, progress=False, distances=np.linspace(0, np.pi, 5))
    assert result.passed, result.coverage
    assert not result.overconfident(3.0).passed
    assert abs(result.position.mean() - 0.5) < 0.15


def test_responsibilities_name_the_reported_item():
    report, probe = items(400, seed=8)
    trials = observed(report, probe, flat, kappa=60.0, guess=0.0)
    table = fit(trials, "constant", bias=False).responsibilities
    np.testing.assert_allclose(table.sum(axis=1), 1)
    apart = np.abs(wrap(report[:, 0] - report[:, 1])) > 1.2
    nearest = np.abs(trials.deviation).argmin(1)
    close = np.abs(trials.deviation).min(1) < 0.2
    assert ((table["non_target_1"] > 0.5) == (nearest == 1))[apart & close].all()


def test_behaviour_answers_like_the_fit(smooth_fit):
    for average in ("mean", "posterior"):
        behaviour = smooth_fit.behaviour(average)
        gaps = torch.tensor(NEAR)
        conditions = {
            "probe": torch.stack([0 * gaps, gaps], 1),
            "report": torch.tensor([[0.0, 2.0]], dtype=torch.float64).expand(4, 2),
            "cued": torch.zeros(4),
        }
        swaps = behaviour.weights(conditions)[:, 1].numpy() / (1 - behaviour.uniform)
        table = smooth_fit.swap_function(NEAR)
        expected = table["p_swap"] if average == "posterior" else 1 / (1 + np.exp(-table["f"]))
        np.testing.assert_allclose(swaps, expected, atol=0.005)
    assert behaviour.spread == pytest.approx(2.5 / math.sqrt(10), rel=0.15)
    assert smooth_fit.behaviour(spread=0.2).spread == 0.2


@pytest.mark.slow
def test_saved_fits_open_again(smooth_fit, tmp_path):
    from lapsus.plots.fits import save_all

    folder = smooth_fit.save(tmp_path / "results")
    save_all(smooth_fit, folder)
    again = Fit.load(folder)
    np.testing.assert_array_equal(again.swap_function(), smooth_fit.swap_function())
    assert again.summary() == smooth_fit.summary()
    np.testing.assert_array_equal(again.predict(1)[0].response, smooth_fit.predict(1)[0].response)
    assert json.loads((folder / "summary.json").read_text())["model"] == "probe"
    for name in ("swap_function", "errors", "non_target_errors", "predictive", "parameters"):
        assert (folder / f"{name}.png").stat().st_size > 5000 and (folder / f"{name}.pdf").exists()
    smooth_fit.save(folder)  # an earlier fit may be replaced
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(LapsusError, match=r"thesis\.txt"):
        smooth_fit.save(tmp_path / "mine")


def several_subjects():
    report, probe = items(360, seed=9)
    parts = [observed(report[i::3], probe[i::3], flat, kappa=k, seed=i) for i, k in enumerate((5.0, 15.0, 60.0))]
    return Trials(
        np.concatenate([p.response for p in parts]),
        np.concatenate([p.report for p in parts]),
        np.concatenate([p.probe for p in parts]),
        subject=np.repeat(["low", "middle", "high"], 120),
    )


@pytest.mark.slow
def test_subjects_have_their_own_emissions(tmp_path):
    trials = several_subjects()
    shared = fit(trials, "constant", by="hierarchical")
    kappa = shared.emission.set_index("subject")["kappa"]
    assert kappa["low"] < kappa["middle"] < kappa["high"]
    row = shared.swap_function([1.0]).iloc[0]  # the mean of subjects
    assert row["low"] < -2 < row["high"]
    separate = fit(trials, "constant", by="subject")
    assert isinstance(separate, SubjectFits) and list(separate) == ["high", "low", "middle"]
    assert separate["high"].emission["kappa"].iloc[0] > separate["low"].emission["kappa"].iloc[0]
    from lapsus.plots.fits import save_all

    folder = separate.save(tmp_path / "subjects")
    save_all(separate, folder)
    assert Fit.load(folder / "subject-low").name == "constant" and "3 subjects" in separate.summary()
    for pages, folded in ((shared, 2), (separate, 1)):  # the subjects of one fit are folded, like the summary
        assert pages._repr_html_().count("<details>") == folded and "middle" in pages._repr_html_()
    assert "the level of the swap function" in shared.methods().lower() and "separately" in separate.methods()
    assert "2 models were compared" in separate.methods()  # with a bias and without
    assert "reproduces the responses of every subject" in separate.summary()
    worst = separate["middle"]
    worst.rhat, worst.checks = 1.07, worst.checks.assign(z=9.0)
    assert "R-hat at most 1.07" in separate.methods()
    assert "does not reproduce the responses of subject middle." in separate.summary()
    assert {path.name for path in folder.glob("*.png")} == {"swap_function.png", "subjects.png"}
    # A shared swap function is known better than each subject's own.
    assert row["high"] - row["low"] < np.mean(
        [s.swap_function([1.0])["high"][0] - s.swap_function([1.0])["low"][0] for s in separate.values()]
    )


@pytest.mark.slow
def test_curves_end_where_the_data_do_and_every_subject_has_a_panel():
    from matplotlib import pyplot as plt

    from lapsus.plots.fits import figures
    from lapsus.plots.subject_fits import subject_swap_functions, subjects

    ring = fit(observed(*items(150, ring=True), smooth), "probe", bias=False, progress=False)
    fits = SubjectFits({f"s{i}": ring for i in range(7)})
    figure = subject_swap_functions(fits)
    panels = [ax for ax in figure.axes if ax.axison]
    assert [ax.get_title() for ax in panels] == [f"s{i}, n = 150" for i in range(7)]
    for ax in panels:
        (curve,) = (line for line in ax.lines if line.get_label() == "posterior mean")
        assert curve.get_xdata().min() == pytest.approx(45, abs=1.5) and curve.get_xdata().max() == pytest.approx(180)
    assert len(subjects(fits).axes) == 2  # nothing was compared, so there is no panel for it
    assert all("150 trials" in one.get_suptitle() for one in figures(ring).values())
    for one in (figure, *map(plt.figure, plt.get_fignums())):
        plt.close(one)


@pytest.mark.slow
def test_no_figure_is_a_sentence_on_an_empty_page():
    """What a fit has nothing to show of is left out: swaps of one item, guesses of a model without them."""
    from matplotlib import pyplot as plt

    from lapsus.plots.fits import figures
    from lapsus.plots.panels import behaviour_fit

    one = Trials(np.random.default_rng(0).normal(0, 0.3, 60), np.zeros((60, 1)))
    found = figures(fit(one, "none", uniform=False, bias=False, progress=False))
    assert set(found) == {"errors", "parameters"} and len(found["parameters"].axes) == 1
    two = fit(observed(*items(120), flat), "none", bias=False, progress=False)
    found = figures(two)
    assert [ax.get_ylabel() for ax in found["parameters"].axes] == ["guesses (%)", "circular s.d. (°)"]
    assert "swap_function" not in found and {"non_target_errors", "predictive"} <= set(found)
    assert all(ax.lines or ax.patches or ax.containers for figure in found.values() for ax in figure.axes)
    assert "the probability of a swap" not in behaviour_fit(two).caption
    plt.close("all")


@pytest.mark.slow
def test_command_prints_json_and_writes_results(tmp_path):
    observed(*items(120), flat).to_csv(tmp_path / "trials.csv")
    code, text = run(["fit", tmp_path / "trials.csv", "--model", "constant", "--json", "-o", tmp_path / "out"])
    result = json.loads(text)
    assert code == 0 and {"model", "seconds", "comparison", "swap_function"} <= set(result)
    assert {"distance", "f", "low", "high", "p_swap"} <= set(result["swap_function"][0])
    assert (tmp_path / "out" / "fit.nc").exists() and (tmp_path / "out" / "swap_function.pdf").exists()


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--model", "quadratic"], "quadratic"),
        (["--emission", "gamma"], "gamma"),
        (["--by", "session"], "session"),
        (["--set-size", "5"], "no trial has set size 5"),
        (["--unit", "furlongs"], "furlongs"),
        (["--emission", "plane"], "response_x"),
    ],
)
def test_wrong_requests_end_with_a_sentence(tmp_path, arguments, text):
    observed(*items(60), flat).to_csv(tmp_path / "trials.csv")
    code, output = run(["fit", tmp_path / "trials.csv", *arguments, "-o", tmp_path / "out"])
    assert code == 2 and text in output and not (tmp_path / "out").exists()


@pytest.mark.parametrize("by", ["subject", "hierarchical"])
def test_subjects_that_are_not_in_the_table(tmp_path, by):
    observed(*items(60), flat).table.drop(columns="subject").assign(session=1).to_csv(
        tmp_path / "trials.csv", index=False
    )
    code, output = run(["fit", tmp_path / "trials.csv", "--by", by, "-o", tmp_path / "new" / "out"])
    assert code == 2 and "no column subject" in output and "target" in output and "session" in output
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_an_earlier_fit_is_replaced_only_on_request(tmp_path, monkeypatch):
    monkeypatch.setattr("lapsus.plots.fits.save_all", lambda *_: [])  # plots take the time
    observed(*items(60), flat).to_csv(tmp_path / "trials.csv")
    command = ["fit", tmp_path / "trials.csv", "--model", "none", "-o", tmp_path / "out"]
    assert run(command)[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    code, output = run([*command, "--seed", "1"])
    assert code == 2 and "--force" in output
    assert before == {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert run([*command, "--seed", "1", "--force"])[0] == 0
    assert before[tmp_path / "out" / "fit.nc"] != (tmp_path / "out" / "fit.nc").read_bytes()


@pytest.mark.slow
def test_a_fit_that_is_stopped_says_what_was_kept(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    observed(*items(60), flat).to_csv(tmp_path / "trials.csv")
    command = ["fit", tmp_path / "trials.csv", "--model", "none", "-o", tmp_path / "out"]
    monkeypatch.setattr("lapsus.plots.fits.save_all", stop)
    code, output = run(command)
    assert code == 130 and "nothing was kept" in output and not (tmp_path / "out").exists()
    monkeypatch.setattr("lapsus.plots.fits.save_all", lambda *_: [])
    assert run(command)[0] == 0
    before = (tmp_path / "out" / "fit.nc").read_bytes()
    monkeypatch.setattr("lapsus.fitting.fit", stop)
    code, output = run([*command, "--force"])
    assert code == 130 and "is as it was" in output and (tmp_path / "out" / "fit.nc").read_bytes() == before


def test_output_that_cannot_be_written_is_said_before_fitting(tmp_path, monkeypatch):
    observed(*items(60), flat).to_csv(tmp_path / "trials.csv")
    monkeypatch.setattr("lapsus.fitting.fit", lambda *_: pytest.fail("it was fitted"))
    code, output = run(["fit", tmp_path / "trials.csv", "-o", tmp_path / "trials.csv" / "out"])
    assert code == 2 and "is a file" in output
    monkeypatch.setattr("os.access", lambda _, mode: not mode & os.W_OK)
    code, output = run(["fit", tmp_path / "trials.csv", "-o", tmp_path / "new" / "out"])
    assert code == 2 and "no permission" in output and not (tmp_path / "new").exists()


def test_fits_that_did_not_converge_say_so_and_what_to_do(smooth_fit, monkeypatch, tmp_path):
    assert smooth_fit.to_dict()["warning"] is None and "onverged:" not in smooth_fit.summary()
    monkeypatch.setattr(smooth_fit, "rhat", 1.15)
    assert not smooth_fit.converged and smooth_fit.to_dict()["converged"] is False
    for text in (smooth_fit.summary(), smooth_fit.to_dict()["warning"]):
        assert "Not converged: the chains disagree (R-hat 1.15" in text and "`seed=1`" in text and "`model`" in text
    both = SubjectFits({"a": smooth_fit, "b": smooth_fit})
    assert both.to_dict()["converged"] is False and "Subject b: Not converged" in both.summary()


def test_one_item_a_trial_is_fitted_without_swaps():
    report, probe = items(60, (1,))
    assert fit(observed(report, probe, flat), progress=False).name == "none"


def test_bad_tables_write_nothing(tmp_path):
    table = observed(*items(60), flat).table
    table.loc[3, "response"] = np.nan
    table.loc[7, "target"] = 99.0
    table.to_csv(tmp_path / "trials.csv", index=False)
    code, output = run(["fit", tmp_path / "trials.csv", "--unit", "radians", "-o", tmp_path / "out"])
    assert code == 2 and "row 4, column response" in output and "row 8, column target" in output
    assert not (tmp_path / "out").exists()


def test_too_little_to_fit():
    with pytest.raises(LapsusError, match="too few"):
        fit(observed(*items(5), flat), "constant")
    with pytest.raises(LapsusError, match="nothing to swap"):
        fit(Trials(np.zeros(20), np.zeros((20, 1))), "constant")
    report, _ = items(60)
    with pytest.raises(LapsusError, match="target_probe"):
        fit(Trials(report[:, 0], report), "probe")


def test_public_names():
    assert lapsus.fit is fit and lapsus.read_trials is read_trials


RING = np.radians([45, 90, 135, 180])


@pytest.mark.slow
@pytest.mark.parametrize("size, logits", [(6, [-1.89, -2.57, -2.62, -2.29]), (2, [-3.02, -3.60, -3.69, -4.52])])
def test_human_data_agree_with_reference_logits(human_data, size, logits):
    trials = read_trials(human_data / "bays2009/bays_data.mat")
    table = fit(trials[trials.set_size == size], "probe", bias=False).swap_function(RING)
    assert ((table["low"] < logits) & (logits < table["high"])).all(), table


@pytest.mark.slow
def test_probe_distance_is_preferred_for_eight_items_with_the_reference_logits(human_data):
    trials = read_trials(human_data / "vandenberg2012_color")
    result = fit(trials[trials.set_size == 8], models=("constant", "probe"), bias=False)
    assert result.name == "probe"
    constant = result.comparison.set_index("model").loc["constant"]
    assert constant["elpd_difference"] < -20 and constant["elpd_difference"] < -3 * constant["difference_se"]
    table, logits = result.swap_function(RING), [-1.67, -2.39, -5.15, -3.03]
    assert ((table["low"] < logits) & (logits < table["high"])).all(), table


def test_responses_without_scatter_are_refused_in_words():
    import numpy as np

    from lapsus import LapsusError, fit
    from lapsus.trials import Trials

    rng = np.random.default_rng(0)
    report = rng.uniform(-3, 3, (50, 2))
    with pytest.raises(LapsusError, match="no scatter to fit"):
        fit(Trials(response=report[:, 0], report=report, probe=rng.uniform(-3, 3, (50, 2))), "constant", progress=False)


# --- What is said while it runs ---


@pytest.mark.parametrize("seed", range(20))
def test_no_more_candidates_are_looked_at_than_the_time_left_counts(seed):
    """Predictive densities at random, so that every way through the search comes up."""
    rng = np.random.default_rng(seed)
    spaces = [space[: rng.integers(1, len(space) + 1)] for space in (MODELS, EMISSION_ORDER, SETS, (False, True))]
    looked = []

    def look(choice):
        looked.append(choice)
        by_trial = rng.normal(0, 5, 30)
        return SimpleNamespace(loo=SimpleNamespace(by_trial=by_trial, elpd=by_trial.sum()))

    search(*spaces, look)
    assert 1 <= len(looked) <= most_candidates(*spaces)


def test_the_time_left_is_that_of_the_work_left():
    bar = Bar(False, most=10)
    bar.stage("first")
    assert bar.left(5.0) == ""  # nothing is over yet
    bar.stage("second")
    assert bar.left(5.0) == ", at most about 0:45 left"
    bar.stage("third", weight=8)
    assert bar.left(20.0) == ", at most about 1:20 left"
    assert bar.left(20.0, since=50.0) == ", at most about 0:30 left"  # it runs while the chains do
    assert bar.left(20.0, since=90.0) == ""
    assert Bar(False).left(5.0) == ""
