"""What is cited from a fit: rates by set size and subject, contrasts, checks, units, tables, old folders."""

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from test_inference import items, observed
from typer.testing import CliRunner

from lapsus.circular import wrap
from lapsus.cli import app
from lapsus.errors import LapsusError
from lapsus.fitting import Fit, fit
from lapsus.fitting.candidates import Candidate, Choice, search
from lapsus.fitting.compared import comparison, disagreement
from lapsus.fitting.loo import Loo
from lapsus.fitting.power import power, simulate_experiment
from lapsus.fitting.sampler import effective_draws, split_rhat
from lapsus.fitting.subjects import SubjectFits
from lapsus.plots import swap_functions
from lapsus.statistics.counts import expected_count
from lapsus.trials import Trials


def two_sizes(low=-3.0, high=0.0, count=300, seed=0, **options):
    """Trials of two and of five items with different levels of f."""
    parts = [
        observed(*items(count, (size,), seed=seed + size), lambda d, level=level: 0 * d + level, kappa=20.0, **options)
        for size, level in ((2, low), (5, high))
    ]
    width = parts[1].report.shape[1]

    def padded(values):
        return np.pad(values, ((0, 0), (0, width - values.shape[1])), constant_values=np.nan)

    report, probe = (np.concatenate([padded(getattr(p, name)) for p in parts]) for name in ("report", "probe"))
    return Trials(np.concatenate([p.response for p in parts]), report, probe)


@pytest.fixture(scope="module")
def by_size():
    return fit(two_sizes(), "constant", progress=False)


@pytest.mark.slow
def test_each_set_size_has_its_own_level_and_agrees_with_itself_alone(by_size):
    assert by_size.model.sets == "offsets" and by_size.candidates is not None
    for size, level in ((2, -3.0), (5, 0.0)):
        row = by_size.rates.set_index("set_size").loc[size]
        truth = 0.95 * (size - 1) * np.exp(level) / (1 + (size - 1) * np.exp(level))
        assert row["swap_low"] < truth < row["swap_high"]
        alone = fit(by_size.trials[by_size.trials.set_size == size], "constant", progress=False).rates.iloc[0]
        assert abs(row["swap"] - alone["swap"]) < 0.5 * (alone["swap_high"] - alone["swap_low"])
    # f is the set size's own.
    assert by_size.f([1.0], 5).mean() - by_size.f([1.0], 2).mean() == pytest.approx(3.0, abs=1.0)
    with pytest.raises(LapsusError, match="not among those with swaps: 2, 5"):
        by_size.f([1.0], 3)


@pytest.mark.slow
def test_one_f_for_all_fails_the_predictive_checks_and_the_summary_says_so(by_size):
    assert by_size.checks["passed"].all() and "reproduces the responses at every set size" in by_size.summary()
    shared = fit(by_size.trials, "constant", sets="shared", bias=False, progress=False)
    failed = shared.checks[~shared.checks["passed"]]
    assert {"2", "5"} >= set(failed["which"]) and len(failed)
    assert "does not reproduce the responses of set size" in shared.summary()


@pytest.mark.slow
def test_the_command_prints_rates_in_the_users_words(tmp_path):
    trials = two_sizes(count=60)
    table = trials.table
    angles = [name for name in table if "target" in name or name == "response"]
    table[angles] = np.degrees(table[angles]) / 2 % 180  # orientations
    table.to_csv(tmp_path / "trials.csv", index=False)
    arguments = (
        "--model constant --unit degrees_180 --feature-name orientation --probe-name position --apart 20 --no-bias"
    )
    command = ["fit", str(tmp_path / "trials.csv"), *arguments.split(), "--sets", "offsets", "--json"]
    result = json.loads(CliRunner().invoke(app, command).output)
    row = result["rates"][1]
    assert row["set_size"] == 5 and row["swap_low"] < row["swap"] < row["swap_high"] and "subject" not in row
    assert row["guess_low"] < row["guess"] < row["guess_high"] and row["swap_apart"] < row["swap"]
    assert result["feature"] == {
        "name": "orientation",
        "probe": "position",
        "unit": "degrees of orientation",
        "circle": 180,
        "probe_unit": "degrees of orientation",
    }
    sd = result["emission"]["groups"][0]["circular_sd_degrees"]
    assert sd == pytest.approx(np.degrees(1 / np.sqrt(20)) / 2, rel=0.35)  # half of what it is on the full circle
    assert f"{sd:.1f}°" in result["summary"] or "over set sizes" in result["summary"]
    assert "radian" not in result["summary"] + result["methods"] and ") (" not in result["summary"]
    assert "° of orientation over set sizes (von Mises)" in result["summary"] and "worth about" in result["summary"]


@pytest.mark.slow
def test_subjects_differ_and_are_shrunk_not_erased():
    levels = {"s1": -4.0, "s2": -2.0, "s10": 0.5}
    parts = {
        s: observed(*items(150, (2, 3), seed=i), lambda d, level=level: 0 * d + level, kappa=20.0, seed=i)
        for i, (s, level) in enumerate(levels.items())
    }
    trials = Trials(
        np.concatenate([p.response for p in parts.values()]),
        np.concatenate([p.report for p in parts.values()]),
        subject=np.repeat(list(parts), 150),
    )
    together = fit(trials, "constant", by="hierarchical", sets="offsets", bias=False, progress=False)
    assert together.model.subjects == ["s1", "s2", "s10"]  # as numbers, not as text
    rates = together.rates[together.rates["set_size"] == 2].set_index("subject")
    truth = {subject: 0.95 / (1 + np.exp(-level)) for subject, level in levels.items()}
    for subject, rate in truth.items():
        assert rates.loc[subject, "swap_low"] - 0.01 < rate < rates.loc[subject, "swap_high"] + 0.01
    spread = max(truth.values()) - min(truth.values())
    assert 0.6 * spread < rates["swap"].max() - rates["swap"].min() < spread
    written = together.table()
    assert set(written["subject"]) == {
        *levels,
        "group",
        "s.d. of set size",
        "s.d. of subject",
        "s.d. of subject in set size",
    }
    group = written[(written["subject"] == "group") & (written["set_size"] == 2)].set_index("parameter")
    assert group.loc["swap", "estimate"] == pytest.approx(rates["swap"].mean(), abs=1e-3)
    assert group.loc[["target", "swap", "guess"], "estimate"].sum() == pytest.approx(1, abs=1e-6)
    spread_of_level = written[(written["subject"] == "s.d. of subject") & (written["parameter"] == "level")].iloc[0]
    assert spread_of_level["low"] < np.std(list(levels.values()), ddof=1) < spread_of_level["high"] + 1
    assert "subject" in together.to_dict()["rates"][0]


@pytest.mark.slow
def test_a_difference_between_conditions_is_found_and_none_is_not(tmp_path):
    trials = simulate_experiment(np.random.default_rng(3), 4, 80, 0.1, 0.35, set_size=3)
    trials.unit = "degrees_180"
    found = fit(trials, "constant", by="condition", bias=False, progress=False)
    rows = found.contrasts.set_index("measure")
    assert set(rows["set_size"]) == {"all"} and set(rows["factor"]) == {"condition"}
    row = rows.loc["swap rate"]
    assert row["condition"] == "b" and row["reference"] == "a" and 0 < row["low"] < 0.35 < row["high"]
    for none in ("guess rate", "circular s.d."):  # neither guesses nor scatter differ
        assert rows.loc[none, "low"] < 0 < rows.loc[none, "high"]
    assert {"subject", "condition"} <= set(found.rates)
    assert "Differences between conditions for a typical subject [95" in found.summary()  # there is one set size
    assert "b − a, circular s.d.: " in found.summary() and "], f averaged over conditions." in found.summary()
    figure, ax = plt.subplots()
    assert swap_functions.swap_probability(ax, found).get_ylabel().endswith("\nf averaged over conditions")
    plt.close(figure)
    written = pd.read_csv(found.save(tmp_path / "out") / "contrasts.csv").set_index("measure")
    assert written.loc["swap rate", "difference"] == pytest.approx(row["difference"], rel=1e-5)
    assert written.loc["circular s.d.", "unit"] == "degrees of orientation"
    lines = found.summary().split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("subject     condition   set size"))
    assert [line.split()[:3] for line in lines[at + 1 : at + 3]] == [["s1", "a", "3"], ["s1", "b", "3"]]
    assert "offsets of subjects and subjects in each condition, whose" in found.methods()


@pytest.mark.parametrize("by, text", [("block", "block"), ("few", "2 to 12"), ("gaps", "empty in some rows")])
def test_conditions_that_cannot_be_compared(by, text):
    trials = two_sizes(count=30)
    rare = np.where(np.arange(60) < 30, "a", None)
    trials.conditions = trials.conditions.assign(few=np.arange(60).astype(str), gaps=rare)
    with pytest.raises(LapsusError, match=text):
        fit(trials, "constant", by=by)


@pytest.mark.slow
def test_power_grows_with_trials():
    table = power([4], [8, 60], swap=0.15, difference=0.5, repeats=6, set_size=2)
    assert table["power"].iloc[1] > table["power"].iloc[0] - 1e-9 and table["power"].iloc[1] >= 0.8
    assert (table["false_positives"] <= 0.5).all() and (table["low"] <= table["power"]).all()
    with pytest.raises(LapsusError, match="probabilities"):
        power([4], [8], swap=0.9, difference=0.3, repeats=2)


def test_the_power_command_says_when_its_simulations_are_few(monkeypatch):
    def said(low):
        rows = [[4, 8, 0.3, 0.1, 0.6, 0.0], [4, 60, 0.9, low, 0.98, 0.0]]
        columns = ["subjects", "trials", "power", "low", "high", "false_positives"]
        monkeypatch.setattr("lapsus.fitting.power.power", lambda *_, **__: pd.DataFrame(rows, columns=columns))
        return CliRunner().invoke(app, ["power"]).output

    reached = "80 % are reached with 4 subjects and 60 trials of each in each condition"
    assert f"{reached} (40 experiments leave 60 to 98 %: raise --repeats)." in said(0.6)
    assert f"{reached}." in said(0.85)


def test_a_bias_is_found_and_estimated():
    trials = observed(*items(300, (1,)), lambda d: 0 * d, kappa=20.0)
    shifted = trials.with_responses(trials.response + np.radians(6.0))
    found = fit(shifted, progress=False, emission="von_mises")
    assert found.model.bias and np.degrees(found.bias["bias"]) == pytest.approx(6, abs=2)
    assert "shifted by +" in found.summary()


@pytest.mark.slow
def test_heavy_tails_are_not_taken_for_swaps_or_guesses():
    report, probe = items(900, (3,))
    rng = np.random.default_rng(0)
    noise = rng.vonmises(0, np.maximum(rng.gamma(1.5, 20 / 1.5, 900), 0.05))
    trials = Trials(wrap(report[:, 0] + noise), report, probe)
    found = fit(trials, models=("none", "constant"), emission="auto", bias=False, progress=False)
    assert found.model.emission.name != "von_mises" and found.name == "none"
    assert found.rates["swap"].max() == 0 and found.expected_swaps["expected"] == 0
    assert "von Mises" not in found.methods() and "scatter" in found.methods()
    assert "no non-target reports" in found.summary()


@pytest.mark.slow
def test_a_design_without_swaps_reports_none(tmp_path):
    report, _ = items(400, (3,))
    rng = np.random.default_rng(1)
    guess = rng.uniform(size=400) < 0.2
    response = np.where(guess, rng.uniform(-np.pi, np.pi, 400), report[:, 0] + rng.vonmises(0, 20, 400))
    trials = Trials(wrap(response), report)
    trials.to_csv(tmp_path / "trials.csv")
    command = ["fit", str(tmp_path / "trials.csv"), "--unit", "radians", "--emission", "von_mises", "--no-bias"]
    result = json.loads(CliRunner().invoke(app, [*command, "--json", "-o", str(tmp_path / "out")]).output)
    row = result["rates"][0]
    assert (tmp_path / "out" / "parameters.png").exists() and not (tmp_path / "out" / "swap_function.png").exists()
    assert result["model"] == "none" and row["swap"] == row["swap_low"] == row["swap_high"] == 0
    assert row["guess_low"] < 0.2 < row["guess_high"]
    assert result["expected_swaps"]["expected"] == 0 and result["swap_function"] == []
    assert "no non-target reports" in result["summary"] and "p(swap)" not in result["summary"]
    assert "The cued item was the only one that could be reported" in result["methods"]
    nearest = np.abs(trials.deviation).argmin(1)
    assert (nearest != 0).mean() > 0.08  # what counting the nearest item would have called swaps


def test_disagreeing_models_are_the_first_line(by_size, monkeypatch):
    assert by_size.summary().startswith("600 trials")
    other = by_size.candidates.iloc[[0]].assign(model="report", swap=0.9, swap_low=0.85, swap_high=0.95)
    monkeypatch.setattr(by_size, "candidates", pd.concat([by_size.candidates, other], ignore_index=True))
    assert by_size.summary().startswith("Models that predict about equally well disagree about swaps: constant")
    separate = SubjectFits({"s1": by_size}, by_size.candidates)
    # Against a model without swaps a band that all but reaches 0 is no disagreement, one far from it is.
    for low, swap, high, doubt in ((0.002, 0.013, 0.042, False), (0.04, 0.08, 0.12, True)):
        own = by_size.candidates.iloc[[0]].assign(swap=swap, swap_low=low, swap_high=high)
        none = own.assign(model="none", swap=0.0, swap_low=0.0, swap_high=0.0)
        with monkeypatch.context() as patch:
            patch.setattr(by_size, "candidates", pd.concat([own, none], ignore_index=True))
            assert (disagreement(by_size) is not None) == doubt
    assert separate.summary().startswith("Models that predict about equally well disagree about swaps: constant")


def test_the_summary_says_which_rule_kept_the_model(by_size, monkeypatch):
    (own,) = by_size.candidates[by_size.candidates["sampled"]].to_dict(orient="records")
    own |= {"sets": "offsets", "bias": by_size.model.bias, "elpd_difference": 0.0, "difference_se": 0.0}

    def said(*rows):
        with monkeypatch.context() as patch:
            patch.setattr(by_size, "candidates", pd.DataFrame(rows))
            return "\n".join(comparison(by_size))

    behind = {"elpd_difference": -0.1, "difference_se": 0.3}
    bias = ", bias" * own["bias"]
    shared = own | {"sets": "shared", "sampled": False}
    kept_by_default = said(shared, own | behind)
    assert f"0.1 ± 0.3 nats better by constant (von Mises scatter, f shared{bias}), which is within" in kept_by_default
    assert "Offsets of f are kept unless" in kept_by_default and "simplest" not in kept_by_default
    assert "swap model and scatter were chosen beforehand" in by_size.methods()
    assert "no other scatter was compared" in kept_by_default and " best:" not in kept_by_default
    ahead = said(own, shared | behind)
    assert f"0.1 ± 0.3 nats above constant (von Mises scatter, f shared{bias})" in ahead and " best:" not in ahead
    assert "predicts left-out responses best: 3.0 ± 1.0" in said(
        own, shared | behind | {"elpd_difference": -3.0} | {"difference_se": 1.0}
    )
    richer = said(own | {"model": "probe", "sampled": False}, own | behind)
    assert "the simplest within one standard error" in richer and "no other scatter" not in richer


def test_the_table_of_models_has_the_sampled_rate_of_the_kept_one(by_size):
    table, rates = by_size.candidates, by_size.rates
    mean = np.average(rates["swap"], weights=rates["trials"])
    assert table["sampled"].sum() == 1 and table["swap"][table["sampled"]].item() == pytest.approx(mean)
    rows = [line for line in by_size.summary().split("\n") if line.startswith("constant ")]
    assert [("≈" in row) != ("(kept)" in row) for row in rows] == [True] * len(table)


def test_search_keeps_the_simplest_within_a_standard_error():
    truth = Choice("probe", "variable_precision", "offsets", False)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(400)

    def look(choice):
        value = -1.0 + 0.3 * (choice.model in ("probe", "both")) + 0.2 * (choice.emission == truth.emission)
        value += 0.1 * (choice.sets == "offsets") - 0.05 * choice.bias
        by_trial = value + 0.01 * noise * (1 + len(choice.model))
        return Candidate(choice, [], Loo(by_trial.sum(), 1.0, by_trial, noise), None)

    models = ("none", "constant", "probe", "report", "both")
    chosen, seen = search(models, ("von_mises", "variable_precision"), ("shared", "offsets"), (False, True), look)
    assert chosen == truth and {c.model for c in seen if c.emission == truth.emission} == set(models)


def test_effective_draws_are_what_the_spread_of_means_says():
    rng = np.random.default_rng(0)
    for rho, most in ((0.0, 1.02), (0.6, 1.1)):
        draws = rng.standard_normal((1500, 32, 32))
        for t in range(1, 32):
            draws[..., t] = rho * draws[..., t - 1] + np.sqrt(1 - rho**2) * draws[..., t]
        rhat = split_rhat(draws)
        worth = 1 / draws.mean((1, 2)).var()  # every draw has variance 1
        assert effective_draws(np.sqrt((rhat**2).mean())) == pytest.approx(worth, rel=0.2) and rhat.mean() < most
    assert effective_draws(1.05) == pytest.approx(428, abs=1)


def test_expected_counts():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.beta(0.2, 1.5, 200), np.zeros(30), np.ones(5)])
    draws = (rng.uniform(size=(20000, len(p))) < p).sum(1)
    found = expected_count(p)
    assert found["expected"] == pytest.approx(p.sum())
    assert [found["low"], found["high"]] == pytest.approx(np.quantile(draws, (0.025, 0.975)), abs=1)
    large = expected_count(np.full(5000, 0.2))
    assert large["high"] - large["low"] == pytest.approx(2 * 1.96 * np.sqrt(5000 * 0.16), rel=0.01)
    assert expected_count(np.zeros(50)) == {"expected": 0.0, "low": 0.0, "high": 0.0}
    assert expected_count(np.ones(50)) == {"expected": 50.0, "low": 50.0, "high": 50.0}


def test_expected_counts_are_as_uncertain_as_the_parameters():
    """Draws that disagree by more than chance widen the interval to their own spread."""
    rng = np.random.default_rng(1)
    share = np.clip(0.3 + 0.05 * rng.standard_normal(400), 0.05, 0.9)
    found = expected_count(np.broadcast_to(share, (1000, 400)))
    counts = rng.binomial(1000, np.tile(share, 50))
    low, high = np.quantile(counts, (0.025, 0.975))
    assert [found["low"], found["high"]] == pytest.approx([low, high], abs=3)
    alone = expected_count(np.full(1000, share.mean()))
    assert found["high"] - found["low"] > 3 * (alone["high"] - alone["low"])


def test_tables_and_pages(by_size, tmp_path):
    table = by_size.table()
    assert list(table.columns) == ["set_size", "subject", "condition", "parameter", "estimate", "low", "high", "unit"]
    swap = table[(table["parameter"] == "swap") & (table["set_size"] == 5)].iloc[0]
    assert swap["estimate"] == pytest.approx(by_size.rates["swap"].iloc[1])
    assert "<table" in by_size._repr_html_() and "Hamiltonian" in by_size.methods()
    # One swap model and one scatter: no rule about choosing among them, but those for set sizes and bias.
    assert "an offset for each set size was kept unless" in by_size.methods() and "simplest" not in by_size.methods()
    folder = by_size.save(tmp_path / "out")
    estimates = (folder / "estimates.csv").read_text()
    assert estimates.startswith("set_size,subject,condition,parameter")
    assert max(map(len, estimates.split("\n")[1].split(",")[4:7])) <= 12  # six digits, a sign, an exponent
    again = Fit.load(folder)
    assert again.summary() == by_size.summary() and again.model.sets == "offsets"


def test_arviz(by_size):
    arviz = pytest.importorskip("arviz")
    data = by_size.to_arviz()
    assert data.posterior["level"].dims == ("chain", "draw", "group")
    found = arviz.summary(data, var_names=["swap", "level"], round_to="none")
    rates = by_size.rates
    for size in (2, 5):
        mean = rates[rates["set_size"] == size]["swap"].item()
        assert found["mean"][f"swap[{size}]"] == pytest.approx(mean, abs=0.01)
    assert found["r_hat"].max() < 1.1 and found["ess_bulk"].min() > 100  # as chains, not as one
    loo = arviz.loo(data)
    elpd = loo.elpd if hasattr(loo, "elpd") else loo.elpd_loo  # from version 1, and before
    assert elpd == pytest.approx(by_size.loo.elpd, abs=2)


def test_the_swap_function_is_drawn_for_each_set_size(by_size):
    figure, ax = plt.subplots()
    swap_functions.swap_probability(ax, by_size)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["set size 2: mean, 95 % band", "set size 5: mean, 95 % band"]
    drawn = [line.get_ydata()[0] for line in ax.get_lines()]
    assert drawn == pytest.approx([by_size.swap_function([0.0], n)["p_swap"].item() for n in (2, 5)])
    swap_functions.curve(ax.figure.add_subplot(), by_size, "p_swap", "p_low", "p_high", "")
    assert swap_functions.averaged(by_size).endswith("averaged over set sizes")
    assert len(figure.axes[-1].get_lines()) == 1
    plt.close(figure)
