"""Each sentence of a fit that is not always printed: on a fit for which it is true, and on one for which it is false.

The fits are made, not fitted: a model on some trials, and draws of its parameters. Sentences about which model was kept
are in test_rates.py, those about converging in test_fit.py."""

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib import pyplot
from test_inference import items, observed

from lapsus.fitting import Fit, SubjectFits
from lapsus.fitting.emissions import EMISSIONS
from lapsus.fitting.model import MixtureModel
from lapsus.plots.fits import parameters
from lapsus.report.check_list import fit_checks
from lapsus.report.words import ReportContext, _data, _swap_function
from lapsus.trials import Trials


def made(
    model="constant",
    emission="von_mises",
    sizes=(2,),
    subjects=1,
    seed=0,
    responses=None,
    apart=None,
    unit="radians",
    **options,
) -> Fit:
    """A fit with draws around the truth of its trials."""
    report, probe = items(240, sizes, seed=seed)
    trials = observed(report, probe, lambda d: 0 * d - 1.5, guess=0.05)
    who = np.array([f"s{i % subjects + 1}" for i in range(240)])
    conditions = {
        "cue": np.where(np.arange(240) // 2 % 2, "valid", "neutral"),
        "group": np.where(np.arange(240) // 4 % 2, "old", "young"),
    }
    trials = Trials(
        trials.response if responses is None else responses, report, probe, subject=who, conditions=conditions
    )
    trials.unit = unit
    mixture = MixtureModel(trials, model, EMISSIONS[emission](), **options)
    rng = np.random.default_rng(seed)
    theta = torch.tensor(mixture.initial(-1.5))[:, None] + 0.05 * torch.tensor(
        rng.standard_normal((mixture.dimension, 64))
    )
    with torch.no_grad():
        found = Fit(mixture, mixture.unpack(theta), 1.0, 0.9, seed, mixture.typical(theta), apart)
    found.seconds, found.standard = 1.0, None
    return found


def with_rhat(rhat):
    found = made()
    found.rhat = rhat
    return found


def with_checks(**changes):
    """Checks of which all pass, or as `changes` say (a value for each row)."""
    found = made()
    table = pd.DataFrame(
        {
            "kind": "set size",
            "which": "2",
            "measure": ["error", "nearest", "any", "error", "error"],
            "observed": 0.5,
            "predicted": 0.4,
            "sd": 0.01,
            "z": 0.5,
            "outside": False,
            "passed": True,
        }
    )
    found.__dict__["checks"] = table.assign(**changes)
    return found


def with_standard(**options):
    found = made(**options)
    found.standard = made(uniform=True).mean_rates
    return found


def with_dropped(count):
    found = made()
    found.trials.dropped = {"missing": count} if count else {}
    return found


def with_bias(bias):
    return made(bias=bias)


def precise_where_few():
    """Two set sizes, of which the smaller is reported more precisely."""
    found = made(sizes=(2, 3))
    found.parameters.emission[0, 0] += 2.0
    return found


def separate(rhat=1.0, wrong=False, unit="radians"):
    """Two subjects fitted one by one; wrong: the second answers at random."""
    random = np.random.default_rng(0).uniform(-3, 3, 240) if wrong else None
    first, second = made(unit=unit), made(seed=1, responses=random, unit=unit)
    second.rhat = rhat
    return SubjectFits({"s1": first, "s2": second})


SUMMARY = {
    "R-hat at most 1.030": (lambda: with_rhat(1.03), lambda: with_rhat(1.0)),
    "`draws=4096` brings R-hat nearer": (lambda: with_rhat(1.03), lambda: with_rhat(1.005)),
    "Not converged": (lambda: with_rhat(1.3), lambda: with_rhat(1.04)),
    "the model reproduces the responses": (with_checks, lambda: with_checks(passed=[False] + [True] * 4)),
    "lie outside their own 95 % band": (lambda: with_checks(outside=[True] + [False] * 4), with_checks),
    "where about 0.2 are expected by chance": (
        lambda: with_checks(outside=[True] + [False] * 4),
        lambda: with_checks(outside=False),
    ),
    "of every subject": (lambda: with_checks(kind="subject"), with_checks),
    "at every distance of non-targets": (lambda: with_checks(kind="distance"), with_checks),
    "The model does not reproduce the responses of set size 2": (
        lambda: with_checks(passed=[False] + [True] * 4),
        with_checks,
    ),
    "trials with a non-target at a distance of": (
        lambda: with_checks(kind="distance", measure="nearest", passed=False),
        lambda: with_checks(passed=False),
    ),
    "2 more predictive checks of 5 fail": (lambda: with_checks(passed=False), lambda: with_checks()),
    "does without them": (lambda: with_standard(model="none"), lambda: with_standard(model="report")),
    "lets some non-targets be reported more often": (
        lambda: with_standard(model="report"),
        lambda: with_standard(emission="variable_precision"),
    ),
    "gives responses variable-precision scatter": (
        lambda: with_standard(emission="variable_precision"),
        lambda: with_standard(model="report"),
    ),
    "has no guesses": (lambda: with_standard(uniform=False), lambda: with_standard(model="report")),
    "no non-target reports": (lambda: made(model="none"), made),
    "Told apart: non-targets whose": (made, lambda: made(model="none")),
    "of 240 trials were swaps": (made, lambda: made(model="none")),
    "a guess in": (made, lambda: made(uniform=False)),
    "All responses are shifted by": (lambda: with_bias(True), lambda: with_bias(False)),
    "mean of subjects": (lambda: made(subjects=3, hierarchical=True), lambda: made(subjects=3)),
    "f has an offset for each set size": (lambda: made(sizes=(2, 3)), made),
    "f is the same at all set sizes": (lambda: made(sizes=(2, 3), sets="shared"), lambda: made(sizes=(2, 3))),
    "f averaged over set sizes": (lambda: made(sizes=(2, 3)), lambda: made(sizes=(2, 3), sets="shared")),
    "A single non-target is reported instead": (made, lambda: made(model="probe")),
    "is reported more often than one at": (lambda: made(model="probe"), lambda: made(model="probe", even=False)),
    "Differences between cues and groups for": (lambda: made(by=("cue", "group")), lambda: made(by=("cue",))),
    "Set size 2, cue valid, group old:": (lambda: made(by=("cue", "group")), lambda: made(by=("cue",))),
    "Differences between cues for": (lambda: made(subjects=2, hierarchical=True, by=("cue",)), made),
    "in every condition": (lambda: made(subjects=2, hierarchical=True, by=("cue",)), made),
    "(≈: by Laplace's approximation)": (lambda: compared("bias"), made),
    "for comparison with other studies (by Laplace's approximation)": (
        lambda: with_standard(model="report"),
        with_standard,
    ),
    "By the model that was kept (report)": (lambda: with_standard(model="report"), with_standard),
    "They differ because the kept model": (
        lambda: with_standard(emission="variable_precision"),
        lambda: with_standard(model="none"),
    ),
    "a non-target is reported in": (made, lambda: made(model="none")),
    ": guesses in": (lambda: made(sizes=(1, 2)), made),
    "non-target reports       guesses": (
        lambda: made(subjects=3, hierarchical=True),
        lambda: made(subjects=12, sizes=(2, 3), hierarchical=True),
    ),
    "Every subject's rates are in `rates`": (
        lambda: made(subjects=12, sizes=(2, 3), hierarchical=True),
        lambda: made(subjects=3, hierarchical=True),
    ),
    "(as asked for)": (lambda: made(apart=0.5), made),
    "(two circular s.d.)": (made, lambda: made(apart=0.5)),
    "(by set size)": (precise_where_few, lambda: made(sizes=(2, 3))),
    "over set sizes (von Mises)": (precise_where_few, made),
    "° of orientation": (lambda: made(unit="degrees_180"), made),
    "with one non-target, by its distances": (lambda: made(model="both"), lambda: made(model="probe")),
    "averaged over set sizes unless one is named": (lambda: made(sizes=(2, 3), by=("cue",)), lambda: made(by=("cue",))),
    "% of responses are nearest to a non-target": (
        lambda: with_checks(measure="nearest", passed=False),
        lambda: with_checks(measure="error", passed=False),
    ),
    "% of responses are nearest to that non-target": (
        lambda: with_checks(kind="distance", measure="nearest", passed=False),
        lambda: with_checks(measure="nearest", passed=False),
    ),
    "mean cosine of the response to the target": (
        lambda: with_checks(measure="error", passed=False),
        lambda: with_checks(measure="any", passed=False),
    ),
    "mean cosine of the response to the nearest item": (
        lambda: with_checks(measure="any", passed=False),
        lambda: with_checks(measure="error", passed=False),
    ),
    "No other swap model and no other scatter was compared": (lambda: compared("bias"), lambda: compared("model")),
    "It predicts left-out responses best: 5.0 ± 1.0 nats": (
        lambda: compared("model"),
        lambda: compared("model", elpd_difference=-0.5),
    ),
    "0.5 ± 1.0 nats above report": (
        lambda: compared("model", elpd_difference=-0.5),
        lambda: compared("model", sampled=True),
    ),
    "Left-out responses are predicted 5.0 ± 1.0 nats better by constant": (
        lambda: compared("model", sampled=True),
        lambda: compared("model"),
    ),
    "Of swap models and scatters the simplest": (
        lambda: compared("model", elpd_difference=-0.5),
        lambda: compared("bias", elpd_difference=-0.5),
    ),
    "Offsets of f are kept unless": (
        lambda: compared("sets", elpd_difference=-0.5),
        lambda: compared("sets", sampled=True),
    ),
    "f shared predicts better than f with offsets": (lambda: compared("sets", sampled=True), lambda: compared("sets")),
    "A bias is kept where the density with it is higher": (
        lambda: compared("bias", elpd_difference=-0.5),
        lambda: compared("bias"),
    ),
    "1 trial with Pareto k above 0.7": (
        lambda: compared("bias", **{"pareto_k_above_0.7": 1}, sampled=True),
        lambda: compared("bias", **{"pareto_k_above_0.7": 1}),
    ),
    "Models that predict about equally well disagree": (
        lambda: compared("model", elpd_difference=-0.5, swap=0.3, swap_low=0.25, swap_high=0.35),
        lambda: compared("model", swap=0.3, swap_low=0.25, swap_high=0.35),
    ),
}


def compared(*what, **changes):
    """Two models that were compared, which differ in `what`; the other's numbers may differ too: with sampled=True
    it is the one that was kept."""
    found = made(sizes=(2, 3))
    own = {
        "model": "constant",
        "emission": "von_mises",
        "sets": "offsets",
        "bias": False,
        "elpd": 0.0,
        "se": 1.0,
        "elpd_difference": 0.0,
        "difference_se": 0.0,
        "pareto_k_above_0.7": 0,
        "swap": 0.1,
        "swap_low": 0.05,
        "swap_high": 0.15,
        "sampled": True,
    }
    other = {"model": "report", "emission": "variable_precision", "sets": "shared", "bias": True}
    behind = {"elpd_difference": -5.0, "difference_se": 1.0, "sampled": False}
    own["sampled"] = not changes.get("sampled", False)
    found.candidates = pd.DataFrame([own, own | behind | {name: other[name] for name in what} | changes])
    return found


METHODS = {
    "pooled: differences between subjects were not modelled": (
        lambda: made(subjects=3),
        lambda: made(subjects=3, hierarchical=True),
    ),
    "2 trials were left out": (lambda: with_dropped(2), lambda: with_dropped(0)),
    "1 trial was left out": (lambda: with_dropped(1), lambda: with_dropped(2)),
    "or none (a uniform guess)": (made, lambda: made(uniform=False)),
    "The cued item was the only one": (lambda: made(model="none"), made),
    "a Gaussian process on the circle": (lambda: made(model="probe"), made),
    "one set size was fitted": (made, lambda: made(sizes=(2, 3))),
    "A constant response bias was included": (lambda: with_bias(True), lambda: with_bias(False)),
    "The values of cue entered as an effect": (lambda: made(by=("cue",)), made),
    "partially pooled deviations of each condition in each set size": (
        lambda: made(sizes=(2, 3), by=("cue",)),
        lambda: made(by=("cue",)),
    ),
    "had partially pooled offsets of subjects": (lambda: made(subjects=3, hierarchical=True), lambda: made(subjects=3)),
    "subjects in each set size": (
        lambda: made(sizes=(2, 3), subjects=3, hierarchical=True),
        lambda: made(subjects=3, hierarchical=True),
    ),
    "The shape of the scatter had offsets of subjects only": (
        lambda: made(emission="variable_precision", sizes=(2, 3), subjects=3, hierarchical=True),
        lambda: made(emission="variable_precision", subjects=3, hierarchical=True),
    ),
    "The alpha of the scatter had offsets of subjects only": (
        lambda: made(emission="wrapped_stable", sizes=(2, 3), subjects=3, hierarchical=True),
        lambda: made(sizes=(2, 3), subjects=3, hierarchical=True),
    ),
    "models were compared": (lambda: compared("bias"), made),
    "the simplest within one standard error": (lambda: compared("model"), lambda: compared("bias")),
    "not all combinations were tried": (lambda: compared("model", "emission"), lambda: compared("model")),
    "swap model and scatter were chosen beforehand": (lambda: compared("bias"), lambda: compared("model")),
    "f with an offset for each set size was kept unless": (lambda: compared("sets"), lambda: compared("bias")),
    "a bias was included if it predicted better": (lambda: compared("bias"), lambda: compared("sets")),
    "the swap function f, were a constant": (made, lambda: made(model="probe")),
    "subjects in each cue": (
        lambda: made(subjects=2, hierarchical=True, by=("cue",)),
        lambda: made(subjects=2, hierarchical=True),
    ),
    "deviations of each combination of them": (
        lambda: made(by=("cue", "group")),
        lambda: made(sizes=(2, 3), by=("cue",)),
    ),
    "the probability of a guess (N(0, 1)": (lambda: made(by=("cue",)), lambda: made(by=("cue",), uniform=False)),
    "the probability of a guess and the bias had": (
        lambda: made(subjects=3, hierarchical=True, bias=True),
        lambda: made(subjects=3, hierarchical=True),
    ),
    "logit of a guess N(−3, 2)": (made, lambda: made(uniform=False)),
    "The trials of 2 subjects with 2 items were fitted separately": (separate, made),
    "draws for each subject": (separate, made),
}
SEPARATE = {
    "Every fit converged.": (separate, lambda: separate(rhat=1.3)),
    "Subject s2: Not converged": (lambda: separate(rhat=1.3), separate),
    "The model does not reproduce the responses of subject s2.": (lambda: separate(wrong=True), lambda: separate()),
    "of orientation": (lambda: separate(unit="degrees_180"), separate),
    "the model reproduces the responses of every subject": (lambda: separate(), lambda: separate(wrong=True)),
}


@pytest.mark.parametrize("sentence", SUMMARY)
def test_of_the_summary(sentence):
    true, false = (make().summary() for make in SUMMARY[sentence])
    assert sentence in true and sentence not in false


@pytest.mark.parametrize("sentence", METHODS)
def test_of_the_methods(sentence):
    true, false = (make().methods() for make in METHODS[sentence])
    assert sentence in true and sentence not in false


@pytest.mark.parametrize("sentence", SEPARATE)
def test_of_subjects_fitted_one_by_one(sentence):
    true, false = (make().summary() for make in SEPARATE[sentence])
    assert sentence in true and sentence not in false


def test_figures_name_conditions_as_the_summary_does():
    """cue, group valid, young."""
    found = made(subjects=2, hierarchical=True, by=("cue", "group"))
    with pyplot.rc_context():
        _, axes = pyplot.subplots(1, 3)
        parameters(axes, found)
        _, labels = axes[0].get_legend_handles_labels()
        pyplot.close()
    assert labels == [found.model.in_words(condition) for condition in found.model.conditions]
    assert "cue valid, group old" in labels


@pytest.mark.parametrize("low, clear", [(0.02, True), (-0.02, False)])
def test_a_difference_is_clear_where_its_interval_leaves_out_zero(low, clear):
    found = made(subjects=2, hierarchical=True, by=("cue",))
    row = {"factor": "cue", "condition": "valid", "reference": "neutral", "set_size": "all", "measure": "swap rate"}
    row |= {"unit": "share of responses", "difference": 0.05, "low": low, "high": 0.08}
    found.__dict__["contrasts"] = pd.DataFrame([row])
    assert ("(the interval excludes 0)" in found.summary()) == clear


def of_report(model="probe", near=(0.30, 0.25, 0.35), far=(0.1, 0.05, 0.15), **more):
    """What a page needs of a fit (Fit.to_dict()): p(swap) with its band at 45° and 180°."""
    names = ("p_swap", "p_low", "p_high")
    points = [(np.pi / 4, 45.0, near), (np.pi, 180.0, far)]
    rows = [{"distance": d, "degrees": degrees} | dict(zip(names, values)) for d, degrees, values in points]
    rows = [row | {"report_distance": row["distance"], "report_degrees": row["degrees"]} for row in rows]
    weights = [{"trials": 100, "non_target": 0.2}]
    given = {"model": model, "trials": 100, "subjects": 1, "swap_function": rows, "weights": weights}
    return given | {"comparison": None, "converged": True, "rhat": 1.01} | more


def row(model, gap=0.0):
    return {"model": model, "elpd_difference": -gap, "difference_se": 4.0}


def of_data(fit):
    return _data(fit, ReportContext(2, "probe", None, 0.0, True))


REPORT = {
    "it falls with distance": (_swap_function, of_report(), of_report(near=(0.12, 0.04, 0.2))),
    "it rises with distance": (_swap_function, of_report(near=(0.01, 0.0, 0.02)), of_report()),
    "the bands overlap": (_swap_function, of_report(near=(0.12, 0.04, 0.2)), of_report()),
    "whatever its distance": (_swap_function, of_report("constant"), of_report()),
    "opposite in both": (_swap_function, of_report("both"), of_report()),
    "no evidence that non-targets are ever reported": (_swap_function, of_report("none"), of_report()),
    "no model with swaps predicts": (of_data, of_report("none"), of_report()),
    "(only the cued item is ever reported) was kept": (
        of_data,
        of_report("none", comparison=[row("none"), row("probe", 3.0)]),
        of_report("none", comparison=[row("probe"), row("none", 3.0)]),
    ),
    "(the best, probe, is 3.0 ± 4.0 nats above)": (
        of_data,
        of_report("none", comparison=[row("probe"), row("none", 3.0)]),
        of_report("none", comparison=[row("none"), row("probe", 3.0)]),
    ),
    "according to the three-component mixture": (
        of_data,
        of_report(standard_mixture=[{"trials": 100, "swap": 0.18}]),
        of_report(),
    ),
    "the behaviour model is probe": (of_data, of_report(), of_report(comparison=[row("probe"), row("report", 9.0)])),
    "better than the next (report)": (
        of_data,
        of_report(comparison=[row("probe"), row("report", 9.0)]),
        of_report(comparison=[row("both"), row("probe", 2.0)]),
    ),
    "the simplest within one standard error of the best (both": (
        of_data,
        of_report(comparison=[row("both"), row("probe", 2.0)]),
        of_report(comparison=[row("probe"), row("both", 2.0)]),
    ),
}


@pytest.mark.parametrize("sentence", REPORT)
def test_of_a_page(sentence):
    words, true, false = REPORT[sentence]
    assert sentence in words(true) and sentence not in words(false)


@pytest.mark.parametrize(
    "title, true, false",
    [
        ("Fit converged", {}, {"converged": False}),
        ("Enough swaps", {"weights": [{"trials": 1000, "non_target": 0.5}]}, {}),
    ],
)
def test_of_the_checks_of_a_page(title, true, false):
    status = [next(c.status for c in fit_checks(of_report(**given)) if c.name == title) for given in (true, false)]
    assert status[0] == "passed" != status[1]
