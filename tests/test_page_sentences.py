"""Each sentence of a page that is not always there: on findings for which it is true, and on others for which it is
false. Findings are made, not computed, but for matches. Sentences about a fit are in test_fit_sentences.py, about what
networks say together in test_determined.py, about mechanisms in test_agreement.py."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from test_fit_sentences import of_report, row

from lapsus.circular import wrap
from lapsus.evaluation.design_match import problems_of
from lapsus.evaluation.match import compare
from lapsus.fitting.density import DensityFit, Modes
from lapsus.fitting.examine import examine
from lapsus.mechanism import Mechanism
from lapsus.mechanism.activity import NO_SWAPS
from lapsus.report import discovery, networks as networks_report
from lapsus.report.check_list import Check, Truth, fit_checks, match_checks, network_checks
from lapsus.report.designed import design_sentences
from lapsus.report.determined import Determined, determined
from lapsus.report.findings import RecordingFindings
from lapsus.report.parts import sure
from lapsus.report.words import ReportContext, _apart, _network, discovery_sentences, methods, networks_methods
from lapsus.trials import Trials


def of_match(swaps=0.2, noise=0.2, guesses=0.0, shown=True):
    """A network with so many swaps, scatter and guesses beside a fit and data with 20 %, 0.2 rad and none."""
    rng = np.random.default_rng(0)
    report = rng.uniform(-np.pi, np.pi, (400, 1)) + np.array([[0.0, 1.0]]) * rng.uniform(1.0, 5.0, (400, 1))

    def responses(repeats, rate, spread, lapses=0.0):
        item = (rng.random((repeats, 400)) < rate).astype(int)
        angle = np.take_along_axis(report[None], item[:, :, None], 2)[:, :, 0] + spread * rng.normal(size=item.shape)
        return np.where(rng.random(item.shape) < lapses, rng.uniform(-np.pi, np.pi, item.shape), angle)

    network, fitted = responses(24, swaps, noise, guesses), responses(24, 0.2, 0.2)
    data = responses(1, 0.2, 0.2)[0] if shown else None
    return compare(report, np.abs(report[:, 1] - report[:, 0]) % np.pi, network, fitted, data)


def network(name="a", objective="diffusion", match=None, evaluation=None, mechanism=None, done=100, settled=False):
    experiment = SimpleNamespace(
        stage=[SimpleNamespace(objective={"kind": objective})], network={"units": 16, "branching": (4, 5)}, seed=0
    )
    return SimpleNamespace(
        name=name,
        experiment=experiment,
        match=match,
        evaluation=evaluation or {},
        mechanism=mechanism or Mechanism(),
        update=done,
        updates=100,
        seconds=60.0,
        settled=settled,
    )


LIKE, UNLIKE, TWO_ITEMS = of_match(), of_match(swaps=0.0), of_match(shown=False)
CONTEXT = ReportContext(2, "feature", None, 0.0, True)


def test_matches_that_are_made_are_what_they_are_called():
    assert LIKE.matched and not UNLIKE.matched and TWO_ITEMS.data is None
    assert of_match(noise=0.3).failing == ("precision",) and "stray" in of_match(guesses=0.3).failing


# --- Findings ---


def said(matches, **context):
    given = [network(f"n{i}", match=match) for i, match in enumerate(matches)]
    return _network(given, replace(CONTEXT, **context))


NETWORKS = {
    "started from scratch": (lambda: said([LIKE]), lambda: said([LIKE], start="base")),
    "started from base": (lambda: said([LIKE], start="base"), lambda: said([LIKE])),
    "its behaviour is matched to the fitted model and the raw data": (lambda: said([LIKE]), lambda: said([UNLIKE])),
    "its behaviour is not matched": (lambda: said([UNLIKE]), lambda: said([LIKE])),
    "criteria fail)": (lambda: said([UNLIKE]), lambda: said([LIKE])),
    "(the raw trials have more items than": (lambda: said([TWO_ITEMS]), lambda: said([LIKE])),
    "2 networks": (lambda: said([LIKE, LIKE]), lambda: said([LIKE])),
    "all are matched": (lambda: said([LIKE, LIKE]), lambda: said([LIKE, UNLIKE])),
    "1 of 2 are matched": (lambda: said([LIKE, UNLIKE]), lambda: said([LIKE, LIKE])),
    "none is matched": (lambda: said([UNLIKE, UNLIKE]), lambda: said([LIKE, UNLIKE])),
}


def told(fit=None, matches=(LIKE, LIKE), answered=(), **context):
    mechanism = SimpleNamespace(answers=dict.fromkeys(answered), sentence=lambda name: "")
    given = [network(f"n{i}", match=match, mechanism=mechanism) for i, match in enumerate(matches)]
    together = Determined((), {}, {}, ["What they say together."])
    return " ".join(discovery_sentences(fit or of_report(), given, replace(CONTEXT, **context), together))


FINDINGS = {
    "Networks hold two items, not 4.": (lambda: told(set_size=4), told),
    "The bias was dropped.": (lambda: told(left_out=("The bias was dropped.",)), told),
    "The target has no swaps: these are responses that happened": (
        lambda: told(of_report("none"), answered=("transplant",)),
        lambda: told(of_report("probe"), answered=("transplant",)),
    ),
}


def of_methods(matches=(LIKE,), objective="diffusion", **context):
    given = [network(f"n{i}", objective, match) for i, match in enumerate(matches)]
    return methods(of_report(methods="Fitted."), given, replace(CONTEXT, **context))


METHODS = {
    "the target of a recurrent network": (of_methods, lambda: of_methods((LIKE, LIKE))),
    "the target of 2 recurrent networks": (lambda: of_methods((LIKE, LIKE)), of_methods),
    "a task-optimal preamble of growing horizon": (of_methods, lambda: of_methods(start="base")),
    "ships with lapsus": (lambda: of_methods(start="base"), lambda: of_methods(start="base", shipped=False)),
    "chosen by the user": (lambda: of_methods(start="base", shipped=False), lambda: of_methods(start="base")),
    "by denoising diffusion": (of_methods, lambda: of_methods(objective="energy")),
    "by the energy score": (lambda: of_methods(objective="energy"), of_methods),
    "by the objective mine": (lambda: of_methods(objective="mine"), of_methods),
    "feature-cued: both features": (of_methods, lambda: of_methods(cueing="index")),
    "index-cued: the network is told": (lambda: of_methods(cueing="index"), of_methods),
    "swap function of 4-item trials was applied": (lambda: of_methods(set_size=4), of_methods),
    "Left out.": (lambda: of_methods(left_out=("Left out.",)), of_methods),
    "A recurrent network with dendritic trees was": (
        lambda: networks_methods([network()], "1"),
        lambda: networks_methods([network(), network()], "1"),
    ),
    "2 recurrent networks with dendritic trees were": (
        lambda: networks_methods([network(), network()], "1"),
        lambda: networks_methods([network()], "1"),
    ),
    "a delayed-estimation task by denoising diffusion through": (
        lambda: networks_methods([network()], "1"),
        lambda: networks_methods([network(objective="energy")], "1"),
    ),
    "a delayed-estimation task by the energy score of": (
        lambda: networks_methods([network(objective="energy")], "1"),
        lambda: networks_methods([network()], "1"),
    ),
}


# --- Checks: status and text ---


def check(checks, name):
    """Status and text of the check of that name; nothing where there is none."""
    return " ".join(f"{c.status}: {c.text}" for c in checks if c.name == name)


def compared(model="probe", gap=9.0, k=0):
    ours = row(model) | {"elpd": -100.0, "pareto_k_above_0.7": k}
    other = "constant" if model == "none" else "none"
    rival = row(other, gap) | {"elpd": -100.0 - gap, "pareto_k_above_0.7": 0}
    return of_report(model, comparison=[ours, rival])


def weights(share):
    return [{"trials": 1000, "non_target": share}]


def of_fit(name, truth=None, **given):
    return lambda: check(fit_checks(of_report(**given), truth), name)


def of_comparison(name, *given, **more):
    return lambda: check(fit_checks(compared(*given, **more)), name)


def of_networks(name, *given):
    return lambda: check(network_checks(list(given)), name)


def of_matches(name, *matches, averaged=False, items=2):
    given = [network(f"n{i}", match=match) for i, match in enumerate(matches)]
    return lambda: check(match_checks(given, items, averaged), name)


LACKING = Mechanism(left_out={"dynamics": "it has one unit"})
WITHOUT = Mechanism(left_out={"transplant": NO_SWAPS})
CHECKS = {
    "passed: The true swap function": (
        of_fit("Truth recovered", Truth(0.95, 0.01)),
        of_fit("Truth recovered", Truth(0.5, 0.2)),
    ),
    "failed: The true swap function": (of_fit("Truth recovered", Truth(0.5, 0.2)), of_fit("Truth recovered")),
    "failed: R-hat": (of_fit("Fit converged", converged=False), of_fit("Fit converged")),
    "passed: About 200 swap trials in the data.": (
        of_fit("Enough swaps", weights=weights(0.2)),
        of_fit("Enough swaps", weights=weights(0.02)),
    ),
    "too few (below 50) to say what swaps depend on": (
        of_fit("Enough swaps", weights=weights(0.02)),
        of_fit("Enough swaps", weights=weights(0.2)),
    ),
    "No model with swaps is clearly better": (
        of_fit("Enough swaps", model="none", weights=weights(0.0)),
        of_fit("Enough swaps", weights=weights(0.02)),
    ),
    "passed: probe predicts 9.0 ± 4.0 nats better": (
        of_comparison("The model is needed"),
        of_comparison("The model is needed", gap=5.0),
    ),
    "the data do not tell them apart": (
        of_comparison("The model is needed", gap=5.0),
        of_comparison("The model is needed"),
    ),
    "No model with swaps predicts better by more": (
        of_comparison("Swaps were looked for", "none"),
        of_comparison("Swaps were looked for"),
    ),
    "failed: 2 trials with Pareto k": (
        of_comparison("Predictive density is reliable", k=2),
        of_comparison("Predictive density is reliable"),
    ),
    "3 subjects were fitted together": (of_fit("Subjects alike", subjects=3), of_fit("Subjects alike")),
    "Time ran out before": (
        of_networks("Training reached its end", network(done=50)),
        of_networks("Training reached its end", network()),
    ),
    "It matched with a margin": (
        of_networks("Training reached its end", network(done=50, settled=True)),
        of_networks("Training reached its end", network(done=50)),
    ),
    "failed: Excess loss over the exact Bayes denoiser": (
        of_networks("Denoising", network(evaluation={"excess": 9.0})),
        of_networks("Denoising", network(evaluation={"excess": 0.0})),
    ),
    "failed: It could not be made: it has one unit": (
        of_networks("Analysis: dynamics", network(mechanism=LACKING)),
        of_networks("Analysis: dynamics", network()),
    ),
    "not checked: It could not be made": (
        of_networks("Analysis: transplant", network(mechanism=WITHOUT)),
        of_networks("Analysis: dynamics", network(mechanism=LACKING)),
    ),
    "Only one network was trained with each objective": (
        of_networks("Networks agree", network()),
        of_networks("Networks agree", network("a"), network("b")),
    ),
    "passed: The subject's swap rates lie within the network's": (
        of_matches("Network matches the data", LIKE),
        of_matches("Network matches the data", UNLIKE),
    ),
    "failed: The subject's swap rate lies outside the network's": (
        of_matches("Network matches the data", UNLIKE),
        of_matches("Network matches the data", LIKE),
    ),
    "(network 2) at": (
        of_matches("Network matches the data", LIKE, UNLIKE),
        of_matches("Network matches the data", UNLIKE),
    ),
    "The trials have 4 items and the network holds two": (
        of_matches("Network matches the data", TWO_ITEMS, items=4),
        of_matches("Network matches the data", LIKE),
    ),
    "passed: The subject's swap rates lie within the fit's": (
        of_matches("Fit explains the data", LIKE),
        of_matches("Fit explains the data", LIKE, averaged=True),
    ),
    "the fitted swap function was averaged over distances": (
        of_matches("Fit explains the data", LIKE, averaged=True),
        of_matches("Fit explains the data", LIKE),
    ),
    "failed: Mean deviation of the swap curve": (
        of_matches("Network matches the fit: swaps", UNLIKE),
        of_matches("Network matches the fit: swaps", LIKE),
    ),
    "failed: Responses scatter 1.5": (
        of_matches("Network matches the fit: precision", of_match(noise=0.3)),
        of_matches("Network matches the fit: precision", LIKE),
    ),
    "of responses are far from both items": (
        of_matches("Network matches the fit: far from items", of_match(guesses=0.3)),
        of_matches("Network matches the fit: swaps", LIKE),
    ),
}
FAILED = [Check("a", "failed", ""), Check("b", "not checked", "")]


# --- The page of a discovery ---


def trials(count=400, unit="radians", probe=True, subjects=1):
    rng = np.random.default_rng(0)
    report = rng.uniform(-np.pi, np.pi, (count, 2))
    who = [f"s{i % subjects}" for i in range(count)]
    made = Trials(wrap(report[:, 0] + 0.2 * rng.normal(size=count)), report, report if probe else None, subject=who)
    made.unit = unit
    return made


def power(model="probe", share=0.2, count=400):
    return discovery._power(trials(count), of_report(model, weights=[{"trials": count, "non_target": share}]))


def about_data(monkeypatch, **given):
    monkeypatch.setattr(discovery.panels, "data_overview", lambda trials: None)
    return discovery._data(trials(**given), of_report(weights=[{"trials": 400, "non_target": 0.2}]), [])["text"]


def verdict_of(*matches):
    return discovery._verdict([network(f"n{i}", match=match) for i, match in enumerate(matches)])["text"]


RECORDING = SimpleNamespace(sentence=lambda: "It resembles those trained by energy.")
PAGE = {
    "a swap rate below about": (lambda: power("none"), power),
    "The fit puts the swap rate at 20.0 %, about 80 trials": (power, lambda: power("none")),
    "There are too few swaps to show what they depend on": (lambda: power(share=0.01), power),
    "show (with 80 % power)": (power, lambda: power(share=0.01)),
    "The network's responses match the fitted model and the data.": (
        lambda: verdict_of(LIKE),
        lambda: verdict_of(UNLIKE),
    ),
    "The responses of all networks match": (lambda: verdict_of(LIKE, LIKE), lambda: verdict_of(LIKE, UNLIKE)),
    "Why: n1: the swap curve is": (lambda: verdict_of(LIKE, UNLIKE), lambda: verdict_of(LIKE, LIKE)),
    "the trials themselves have more items": (lambda: verdict_of(TWO_ITEMS), lambda: verdict_of(LIKE)),
    "The recording was compared with nothing": (
        lambda: RecordingFindings("a", [], None).sentence,
        lambda: RecordingFindings("a", [], RECORDING).sentence,
    ),
    "1 of 2 checks failed; they come first. 1 could not": (lambda: sure(FAILED), lambda: sure(FAILED[1:])),
    "None of 1 checks failed; 1 could not": (lambda: sure(FAILED[1:]), lambda: sure(FAILED)),
}


def judged(*excesses):
    curve = [{"rate": 0.1, "target": 0.1, "likelihood": 0.1, "responses": 16000}]
    found = {"conditions": 1000, "trials": 16, "swap_curve": curve, "swap_curve_mad": 0.0, "swap_curve_max": 0.0}
    found |= {"median_error": 0.1, "away": 0.0, "away_target": 0.0}
    return networks_report._verdict([network(evaluation=found | {"excess": excess}) for excess in excesses])["text"]


OWN_PAGE = {
    "The network is within every limit of its target": (lambda: judged(0.0), lambda: judged(9.0)),
    "All networks are within every limit of their targets": (lambda: judged(0.0, 0.0), lambda: judged(0.0, 9.0)),
    "Network 2: Still learning": (lambda: judged(0.0, 9.0), lambda: judged(9.0, 0.0)),
}


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({}, "angles were given in radians"),
        ({"unit": "degrees_180"}, "Orientations repeat after 180°"),
        ({"probe": False}, "The table has no probe feature"),
        ({"subjects": 3}, "of 3 subjects with"),
    ],
)
def test_of_the_data_of_a_page(given, sentence, monkeypatch):
    assert sentence in about_data(monkeypatch, **given)
    assert sentence not in about_data(monkeypatch, unit="degrees")


# --- Discoveries with a design ---


def designed(objective="diffusion", matched=True, outcome="mode", carrier="x"):
    commitment = SimpleNamespace(at=lambda time: (0.5, 0.4, 0.6))
    mechanism = SimpleNamespace(outcome=outcome, commitment=commitment, transplant=SimpleNamespace(carrier=carrier))
    return SimpleNamespace(
        run=SimpleNamespace(path=SimpleNamespace(name=objective)),
        objective=objective,
        match=SimpleNamespace(matched=matched),
        mechanism=None if outcome is None else mechanism,
        without="no responses of another mode",
    )


def of_design(*networks):
    return lambda: " ".join(design_sentences(list(networks)))


def of_density(difference=-0.01, inside=0.9, dropped=0, second=0.0):
    """What is said of a density with so many held-out responses in its 90 % regions."""
    variable = SimpleNamespace(name="response", kind="circular", period=360)
    design = SimpleNamespace(
        responses=(variable,), dropped={"missing": dropped} if dropped else {}, __len__=lambda: 2000
    )
    table = pd.DataFrame({"name": ["a", "b"], "log_density": [0.0, difference], "difference": [0.0, difference]})
    rank = np.where(np.arange(2000) < 2000 * inside, 0.5, 0.05)
    found = DensityFit(_Length(design), table.assign(error=0.001), "a", SimpleNamespace(inputs=[variable]), rank)
    offset = np.full(4, np.pi if second else np.nan)
    found.__dict__["modes"] = Modes(np.full(4, 1 + (second > 0)), np.full(4, second), np.array([second] * 5), offset)
    return " ".join(found.sentences())


class _Length:
    """A design of 2,000 trials."""

    def __init__(self, design):
        self.__dict__.update(vars(design))

    def __len__(self):
        return 2000


DESIGN = {
    "of the mode that a response belongs to is fixed": (of_design(designed()), of_design(designed(outcome="value"))),
    "of the variance of responses is fixed": (of_design(designed(outcome="value")), of_design(designed())),
    "the forming response carries it": (of_design(designed()), of_design(designed(carrier="m"))),
    "memory carries it": (of_design(designed(carrier="m")), of_design(designed())),
    "neither part alone": (of_design(designed(carrier="neither")), of_design(designed())),
    "diffusion: no responses of another mode.": (of_design(designed(outcome=None)), of_design(designed())),
    "(not matched: do not interpret)": (of_design(designed(matched=False)), of_design(designed())),
    "1 of 2 networks answer": (of_design(designed(), designed("energy", False)), of_design(designed())),
    "noise before the response epoch cannot decide": (of_design(designed()), of_design(designed("energy"))),
    "Where matched networks of both objectives differ": (
        of_design(designed(), designed("energy")),
        of_design(designed(), designed("energy", False)),
    ),
    "held-out trials worse by 20.0 ± 2.0": (of_density, lambda: of_density(0.01)),
    "held-out trials better by 20.0 ± 2.0": (lambda: of_density(0.01), of_density),
    "The density is calibrated": (of_density, lambda: of_density(inside=0.8)),
    "The density is not calibrated": (lambda: of_density(inside=0.8), of_density),
    "12 trials were left out: missing": (lambda: of_density(dropped=12), of_density),
    "Responses have one mode.": (of_density, lambda: of_density(second=0.1)),
    "10.0 % [10.0, 10.0] of all responses belong to another mode, typically 180° away": (
        lambda: of_density(second=0.1),
        of_density,
    ),
}


def of_design_match(excess=0.0, coverage=(0.9, 0.88, 0.92), modes=(0.02, 0.02)):
    return lambda: " ".join(problems_of(excess, {"cue valid": coverage}, modes))


DESIGN |= {
    "energy excess is 30.0 % of the density's score": (of_design_match(0.3), of_design_match()),
    "regions hold 70 % of responses (cue valid)": (of_design_match(coverage=(0.7, 0.66, 0.74)), of_design_match()),
    "regions hold 99 % of responses (cue valid)": (of_design_match(coverage=(0.99, 0.98, 1.0)), of_design_match()),
    "0.0 % of its responses belong to another mode": (of_design_match(modes=(0.0, 0.02)), of_design_match(modes=None)),
}


@cache
def examined(sizes=(2, 3), subjects=2, trials=300, swaps=0.3, probe=False, cue=True):
    """What `lapsus doctor` says of a table."""
    rng = np.random.default_rng(0)
    size = rng.choice(sizes, trials)
    report = rng.uniform(-np.pi, np.pi, (trials, max(sizes)))
    report[np.arange(max(sizes)) >= size[:, None]] = np.nan
    item = np.where((rng.random(trials) < swaps) & (size > 1), 1, 0)
    response = wrap(report[np.arange(trials), item] + rng.normal(0, 0.2, trials))
    who = [f"s{i % subjects}" for i in range(trials)] if subjects else None
    conditions = {"cue": rng.choice(["a", "b"], trials)} if cue else None
    return examine(Trials(response, report, report if probe else None, subject=who, conditions=conditions)).text()


DOCTOR = {
    "swap models constant, report, probe, both": (lambda: examined(probe=True), examined),
    "swaps by similarity of the cue need target_probe": (examined, lambda: examined(probe=True)),
    "no trial has a second item to swap": (lambda: examined(sizes=(1,)), examined),
    "by subject   2 subjects": (examined, lambda: examined(subjects=1)),
    "no: there is one subject": (lambda: examined(subjects=1), examined),
    "no: there is no column subject": (lambda: examined(subjects=0), examined),
    "no column with 2 to 12 values": (lambda: examined(cue=False), examined),
    '`by="cue"`': (examined, lambda: examined(cue=False)),
    "`set_size=2` has most swaps to learn from": (lambda: examined(sizes=(2,)), lambda: examined(sizes=(1,))),
    "3 items of which its network shows two": (lambda: examined(sizes=(3,)), lambda: examined(sizes=(2,))),
    "are few: what it says of them will be uncertain": (lambda: examined(swaps=0.02), lambda: examined(trials=600)),
    "no: it needs 30 trials with two items or more": (lambda: examined(sizes=(1,)), examined),
    "Kept, for `by` and `where`: cue.": (examined, lambda: examined(cue=False)),
}
ALL = DOCTOR | NETWORKS | FINDINGS | METHODS | CHECKS | PAGE | OWN_PAGE | DESIGN


@pytest.mark.parametrize("sentence", ALL)
def test_of_a_page(sentence):
    true, false = (make() for make in ALL[sentence])
    assert sentence in true and sentence not in false


def test_networks_without_swaps_have_nothing_to_explain():
    none = [network(match=LIKE)]
    assert determined(none, []).sentences == ["The matched networks make no swaps to explain."]
    swaps = SimpleNamespace(verdict=SimpleNamespace(name="v", of=lambda mechanism: "after"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lapsus.report.determined.QUESTIONS", {"v": swaps})
        assert "make no swaps" not in " ".join(determined(none, []).sentences)


@pytest.mark.parametrize("report, both", [(45.0, True), (90.0, False)])
def test_items_are_called_apart_in_both_features_only_where_both_distances_are_alike(report, both):
    text = _apart({"degrees": 45.0, "report_degrees": report})
    assert ("both features" in text) == both and (f"{report:.0f}° in report" in text) != both
