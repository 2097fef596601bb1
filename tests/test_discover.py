"""From trials to a mechanism: every stage, what is skipped, what is refused, and what is said."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch
from made_discovery import HOSTILE, MINUTES, made, table, tiny_start
from observers import MATCHED, OBSERVERS, write_session

from lapsus import Discovery, discover, load, rng, write_report
from lapsus.circular import distance, embed, wrap
from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import QUICK
from lapsus.fitting import fit as fit_trials
from lapsus.fitting.network_target import fitted_behaviour
from lapsus.mechanism.registry import Mechanism
from lapsus.pipeline.recording import GivenRecording, compare_recording
from lapsus.pipeline.result import STAGES
from lapsus.pipeline.stages import Interrupted, _default_folder
from lapsus.report import words
from lapsus.report.check_list import fit_checks, in_order, match_checks, network_checks
from lapsus.report.determined import Determined
from lapsus.report.words import ReportContext
from lapsus.trials import Trials, read_trials
from lapsus.trials.observer import make_observer, observer_f, observer_path


@pytest.fixture
def copy(tmp_path):
    """A finished discovery that a test may spoil."""
    return shutil.copytree(made(), tmp_path / "found")


def again(folder, **changed):
    settings = json.loads((folder / "stages.json").read_text())["settings"]
    arguments = {
        "minutes": settings["minutes"],
        "start_from": settings["start_from"],
        "output": folder,
        "say": lambda text: None,
        "sizes": QUICK,
    }
    return discover(table(), **(arguments | changed))


def undo(folder, *stages):
    stored = json.loads((folder / "stages.json").read_text())
    for stage in stages:
        del stored["done"][stage]
    (folder / "stages.json").write_text(json.dumps(stored))


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["networks/*/checkpoint*.safetensors", "networks/*/checkpoint*", "networks/*/*.toml"])
def test_a_network_that_is_lost_is_trained_again(copy, lost):
    for path in copy.glob(lost):
        path.unlink()
    with pytest.raises(LapsusError, match="the same `lapsus discover` trains it again"):
        write_report(copy)
    said = []
    found = again(copy, say=said.append)
    assert found.models[0] is not None and found.runs[0].update > 0 and list(found.done) == list(STAGES)
    assert any("is damaged or gone: it is trained again" in line for line in said)
    assert write_report(copy).is_file()


@pytest.mark.slow
def test_the_parts_of_a_discovery():
    found = Discovery(made())
    assert list(found.done) == list(STAGES)
    facts = json.loads((made() / "discovery.json").read_text())
    assert {"seconds", "model", "swap_curve_mad_fit", "matched", "sentences", "checks"} <= set(facts)
    assert len(found.sentences) == 8 and all(s.endswith(".") for s in found.sentences)
    assert facts["seconds"] == pytest.approx(sum(found.done.values()), abs=1)
    assert len(found.trials) == 200 and found.fit.name == facts["model"] and found.fit.comparison is not None
    assert found.trials.subject[0] == HOSTILE
    assert len(found.models) == len(found.runs) == len(found.matches) == len(found.mechanisms) == 1
    assert found.matched == facts["matched"] == (not found.matches[0].where)
    assert found.report.is_file() and "rings_path" in found.arrays()
    # The network was asked for the swap curve of the fit, on the distances of the data.
    network, conditions = found.models[0], found.models[0].task.sample(400, rng.generator("test"))
    assert set(np.round(np.degrees(distance(*conditions["probe"].numpy().T)))) <= set(range(45, 181, 15))
    conditions, p = asked(found.fit)
    assert network.behaviour.weights(conditions)[:, 1].numpy() == pytest.approx(p, abs=0.01)


def asked(fit):
    """Two conditions of two items, and the swap probability that the fit, of any model, gives to each."""
    probe, report = np.radians([[45.0, 120.0], [75.0, 150.0]])
    conditions = {
        "report": torch.tensor(np.stack([np.zeros(2), report], 1)),
        "probe": torch.tensor(np.stack([np.zeros(2), probe], 1)),
        "cued": torch.zeros(2, dtype=torch.long),
    }
    distances = {"report": report, "both": np.stack([probe, report], 1)}.get(fit.name, probe)
    return conditions, (1 / (1 + np.exp(-fit.f(distances)))).mean(1)


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("probe", "report", "both")]


@pytest.mark.parametrize("model", ["none", "constant", *SLOW])
def test_the_target_has_the_swap_probabilities_of_the_fit(model):
    trials = read_trials(observer_path())
    fit = fit_trials(trials[np.arange(len(trials)) < 250], model, seed=1)
    conditions, p = asked(fit)
    assert model == "none" or (p > 0.01).all(), "a swap probability of zero would say little"
    weights = fitted_behaviour(fit, 2, "feature").weights(conditions)
    assert weights[:, 1].numpy() == pytest.approx(p, abs=0.01)


@pytest.mark.slow
def test_what_is_done_is_skipped():
    before = {p: p.stat().st_mtime_ns for p in made().rglob("*") if p.is_file()}
    found = again(made())
    assert found.sentences and {p: p.stat().st_mtime_ns for p in made().rglob("*") if p.is_file()} == before


@pytest.mark.slow
def test_only_what_is_missing_is_done_again(copy):
    undo(copy, "report")
    (copy / "report.html").unlink()
    with (
        mock.patch("lapsus.pipeline.stages.fit_trials", side_effect=AssertionError("fitted again")),
        mock.patch("lapsus.pipeline.training.train", side_effect=AssertionError("trained again")),
    ):
        assert again(copy).report.is_file()


@pytest.mark.slow
def test_interrupted_training_keeps_the_fit_and_goes_on(copy):
    undo(copy, "train", "evaluate", "analyse", "report")
    for part in ("evaluation.json", "analysis.json", "report.html", "discovery.json"):
        (copy / part).unlink()
    network = next((copy / "networks").iterdir())
    kept = (network / "config.toml").read_bytes()
    for spare in (*network.glob("checkpoint*"), network / "metrics.jsonl"):
        spare.unlink()
    stopped = SimpleNamespace(reason="interrupted")
    with mock.patch("lapsus.pipeline.training.train", return_value=stopped), pytest.raises(Interrupted):
        again(copy)
    with pytest.raises(LapsusError, match="not done yet"):
        Discovery(copy).matches
    assert "fit" in Discovery(copy).done and "train" not in Discovery(copy).done
    with mock.patch("lapsus.pipeline.stages.fit_trials", side_effect=AssertionError("fitted again")):
        found = again(copy)
    assert (
        len(found.done) == len(STAGES) and (network / "config.toml").read_bytes() == kept and found.runs[0].update > 0
    )


@pytest.mark.slow
@pytest.mark.parametrize("margin", [True, False])
def test_training_is_left_early_when_the_network_matches_with_a_margin(tmp_path, margin):
    with (
        mock.patch("lapsus.pipeline.stages.fit_trials", return_value=Discovery(made()).fit),
        mock.patch("lapsus.pipeline.stages.updates_within", return_value=10),
        mock.patch("lapsus.evaluation.match.Match.with_margin", margin),
        mock.patch("lapsus.pipeline.stages._Work.evaluate", side_effect=Interrupted),
        pytest.raises(Interrupted),
    ):
        start = str(tiny_start(tmp_path))
        sizes = replace(QUICK, round_updates=2)
        discover(table(), minutes=1.0, output=tmp_path / "found", start_from=start, sizes=sizes)
    found = Discovery(tmp_path / "found")
    (run,) = found.runs
    # Rounds of 4, 2, 2 and 2 updates; nothing is checked after the last.
    assert [look["update"] for look in found.round_checks(run)] == ([4] if margin else [4, 6, 8])
    assert run.update == (4 if margin else 10) and found.settled(run) == margin


@pytest.mark.slow
def test_one_network_by_each_objective_is_trained_side_by_side(tmp_path, monkeypatch):
    """In processes of their own; another kind of start than the objective's is taken where both are asked for."""
    monkeypatch.setenv("LAPSUS_THREADS", "2")
    with (
        mock.patch("lapsus.pipeline.stages.fit_trials", return_value=Discovery(made()).fit),
        mock.patch("lapsus.pipeline.stages.updates_within", return_value=10),
        mock.patch("lapsus.pipeline.stages._Work.evaluate", side_effect=Interrupted),
        pytest.raises(Interrupted),
    ):
        arguments = {"minutes": 1.0, "output": tmp_path / "found", "start_from": str(tiny_start(tmp_path))}
        discover(table(), objectives=["energy", "diffusion"], sizes=replace(QUICK, round_updates=2), **arguments)
    found = Discovery(tmp_path / "found")
    assert [run.path.name for run in found.runs] == ["energy-1", "diffusion-1"]
    assert [run.experiment.stage[-1].objective["kind"] for run in found.runs] == ["energy", "diffusion"]
    assert all(run.update == 10 or found.settled(run) for run in found.runs)
    assert {one["start_objective"] for one in found.plan["networks"]} == {"diffusion"}


@pytest.mark.slow
def test_an_error_of_a_network_in_its_own_process_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("LAPSUS_THREADS", "2")
    with (
        mock.patch("lapsus.pipeline.stages.fit_trials", return_value=Discovery(made()).fit),
        mock.patch("lapsus.pipeline.stages.updates_within", return_value=10),
        mock.patch("lapsus.pipeline.training.sys.executable", "/bin/false"),
        pytest.raises(LapsusError, match=r"(energy|diffusion)-1: its training ended without a result \(exit code 1\)"),
    ):
        arguments = {"minutes": 1.0, "output": tmp_path / "found", "start_from": str(tiny_start(tmp_path))}
        discover(table(), objectives=["energy", "diffusion"], sizes=QUICK, **arguments)


def test_objectives_are_those_that_there_are(tmp_path):
    with pytest.raises(LapsusError, match="one or both of diffusion and energy, not likelihood"):
        discover(table(), objectives=["likelihood"], output=tmp_path / "out")


@pytest.mark.slow
def test_a_half_written_fit_is_made_again(copy):
    fit = Discovery(copy).fit
    undo(copy, "fit")
    (copy / "fit" / "summary.json").unlink()
    with mock.patch("lapsus.pipeline.stages.fit_trials", return_value=fit):
        assert again(copy).fit.name == fit.name
    assert (copy / "fit" / "summary.json").is_file()


@pytest.mark.slow
def test_nothing_foreign_is_touched(tmp_path, copy):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(LapsusError, match="is not a discovery"):
        again(copy, output=tmp_path / "mine")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    with pytest.raises(LapsusError, match=r"other settings \(minutes\)"):
        again(copy, minutes=7)
    with pytest.raises(LapsusError, match="other trials"):
        discover(table().iloc[:-1], minutes=MINUTES, output=copy, start_from=Discovery(copy).settings["start_from"])
    run = next((copy / "networks").iterdir())
    with pytest.raises(LapsusError, match="is not a discovery"):
        again(copy, output=run)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"subject": "nobody"}, "there is no subject"),
        ({"set_size": 5}, "no trial has set size 5"),
        ({"minutes": 0}, "`minutes` must be positive"),
        ({"networks": 0}, "`networks`"),
        ({"cueing": "smell"}, "`cueing` is feature"),
        ({"start_from": "nowhere"}, "nowhere"),
    ],
)
def test_mistakes_are_sentences(tmp_path, arguments, sentence):
    with (
        mock.patch("lapsus.pipeline.stages.fit_trials", return_value=Discovery(made()).fit),
        pytest.raises(LapsusError, match=sentence),
    ):
        discover(table(), output=tmp_path / "out", **arguments)


def test_one_item_and_few_trials_are_refused(tmp_path):
    single = Trials(np.zeros(50), np.zeros((50, 1)))
    with pytest.raises(LapsusError, match="every trial has one item"):
        discover(single, output=tmp_path / "out")
    with pytest.raises(LapsusError, match="too few"):
        discover(table(12), output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_options_of_a_table_are_not_passed_over_where_it_was_read(tmp_path):
    trials = Trials(np.zeros(50), np.tile([0.0, 1.0], (50, 1)))
    with pytest.raises(LapsusError, match=r"`where` is for reading a table, and these trials were read already"):
        discover(trials, where={"subject": "1"}, output=tmp_path / "out")
    with pytest.raises(LapsusError, match="too few"):
        discover(trials[:12], output=tmp_path / "out")


def test_a_folder_is_named_without_harm():
    for name in ("../../etc/passwd", "<b>", "\N{OCTOPUS}", "a" * 10_000, ""):
        path = _default_folder(name)
        assert path.parts[0] == "runs" and len(path.parts) == 2 and len(path.name) < 60 and path.name.isascii()


def three_items(count=120):
    """Trials with three items, of a subject who reports any of the others in a tenth of trials."""
    rng = np.random.default_rng(8)
    report, probe = rng.uniform(-np.pi, np.pi, (2, count, 3))
    item = np.where(rng.uniform(size=count) < 0.1, rng.integers(1, 3, count), 0)
    return Trials(wrap(report[np.arange(count), item] + 0.2 * rng.standard_normal(count)), report, probe)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["no probe", "three items"])
def test_other_tables_run_to_a_report(case, tmp_path):
    from lapsus.fitting import fit

    task = "index-cued" if case == "no probe" else "feature-cued"
    trials = (
        three_items() if case == "three items" else table(120, "S").drop(columns=["target_probe", "non_target_probe_1"])
    )
    quick = lambda used, seed: fit(used, "constant", seed=seed)
    with mock.patch("lapsus.pipeline.stages.fit_trials", quick):
        start = str(tiny_start(tmp_path, task))
        found = discover(trials, minutes=MINUTES, output=tmp_path / "out", start_from=start, sizes=QUICK)
    page, match = found.report.read_text(), found.matches[0]
    if case == "no probe":
        assert found.plan["cueing"] == "index" and match.feature == "report" and "no probe feature" in page
        assert found.models[0].behaviour.swap.p == pytest.approx(found.fit.swap_function([0.0])["p_swap"][0], abs=1e-3)
    else:
        assert (
            match.data is None
            and "applied to networks that hold two items" in page
            and "compared with the fitted model" in page
        )
        assert any(c["name"] == "Network matches the data" and c["status"] == "not checked" for c in found.checks)


# --- The embedded observer ---


def test_the_observer_is_made_by_its_script_and_does_what_it_says(tmp_path):
    assert make_observer(tmp_path / "observer.csv").read_bytes() == observer_path().read_bytes()
    trials = read_trials(observer_path())
    gap = np.abs(trials.distance("probe")[:, 1])
    swap = np.abs(trials.deviation[:, 1]) < np.abs(trials.deviation[:, 0])
    for low, high in ((0.7, 1.2), (1.2, 2.0), (2.0, 3.2)):
        rows = (gap >= low) & (gap < high)
        expected = (1 / (1 + np.exp(-observer_f(gap[rows])))).mean()
        assert swap[rows].mean() == pytest.approx(expected, abs=3.5 * np.sqrt(expected / rows.sum()))
    assert np.hypot(*embed(trials.error[~swap]).mean(0)) == pytest.approx(1 - 1 / (2 * 25), abs=0.01)


# --- Words ---


def described(model, **changed):
    curve = [
        {"distance": d, "report_distance": d, "degrees": np.degrees(d), "report_degrees": np.degrees(d)}
        | {"p_swap": 0.3 - 0.08 * d, "p_low": 0.1, "p_high": 0.4}
        for d in np.linspace(0, np.pi, 20)
    ]
    comparison = [
        {"model": m, "elpd": -100.0 - 9 * k, "elpd_difference": -9.0 * k, "difference_se": 3.0, "pareto_k_above_0.7": 0}
        for k, m in enumerate(dict.fromkeys((model, "probe", "constant", "none")))
    ]
    weights = [{"set_size": 2, "trials": 400, "target": 0.9, "non_target": 0.1, "guess": 0.0}]
    return {
        "model": model,
        "trials": 400,
        "subjects": 1,
        "weights": weights,
        "standard_mixture": [{"set_size": 2, "trials": 400, "swap": 0.1}],
        "methods": "Trials were fitted.",
        "comparison": comparison,
        "swap_function": [] if model == "none" else curve,
        "converged": True,
        "rhat": 1.0,
    } | changed


@pytest.mark.slow
@pytest.mark.parametrize("model", ["none", "constant", "probe", "report", "both"])
def test_sentences_and_failures_first(model):
    found = Discovery(made())
    networks = found.networks()
    facts = ReportContext(2, "feature", "x", 0.0, True)
    fit = described(model)
    together = Determined((), {}, {}, ["Nothing is determined."])
    assert len(words.discovery_sentences(fit, networks, facts, together)) >= 7
    # Of several networks, the verdict is of all, and the mechanism is what they say together.
    other = replace(networks[0].match, matched=not networks[0].match.matched)
    said = words.discovery_sentences(fit, [networks[0], replace(networks[0], match=other)], facts, together)
    assert "1 of 2 are matched" in said[2] and said[3] == "Nothing is determined."
    found = in_order(fit_checks(fit) + match_checks(networks, 2, False) + network_checks(networks))
    order = [c.status for c in found]
    assert order == sorted(order, key=["failed", "not checked", "nearly", "passed"].index)
    few = fit_checks(
        described(model, weights=[{"set_size": 2, "trials": 400, "target": 0.97, "non_target": 0.03, "guess": 0.0}])
    )
    said = "too few swaps, if any" if model == "none" else "rests on its prior"
    assert any(c.name == "Enough swaps" and c.status == "failed" and said in c.text for c in few)
    six = words.methods(fit, networks, replace(facts, set_size=6))
    assert "six" not in words.methods(fit, networks, facts) and "6-item" in six
    # What the network or its target lacks is among the findings, not in a parenthesis.
    lacking = replace(facts, set_size=6, left_out=("The fitted bias was left out.",))
    said = words.discovery_sentences(fit, networks, lacking, together)
    assert said[3].startswith("Networks hold two items, not 6.") and said[4] == "The fitted bias was left out."
    assert not any("hold two items" in one for one in words.discovery_sentences(fit, networks, facts, together))


@pytest.mark.slow
def test_data_without_swaps_have_none_explained(tmp_path):
    rows = table(subject="S")
    rows["response"] = (rows["target"] + np.random.default_rng(0).normal(0, 12, len(rows)) + 180) % 360 - 180
    start = str(tiny_start(tmp_path))
    quick = lambda used, seed: fit_trials(used, "auto", models=("none", "constant"), seed=seed)
    with mock.patch("lapsus.pipeline.stages.fit_trials", quick):
        found = discover(rows, minutes=MINUTES, output=tmp_path / "found", start_from=start, sizes=QUICK)
    assert found.fit.name == "none"
    (mechanism,) = found.mechanisms
    for name in ("commitment", "transplant", "pushes", "swap_axis", "error_type", "decoding", "prediction"):
        assert getattr(mechanism, name) is None and "no swaps in these data" in mechanism.left_out[name]
    assert mechanism.alignment is not None
    asked = [check["status"] for check in found.checks if check["name"].startswith("Analysis: ")]
    assert asked == ["not checked"]  # nothing failed
    page = found.report.read_text()
    assert "there are none to explain" in page and page.count("<figcaption>Share of the outcome") == 0


@pytest.mark.parametrize("done, status", [(100, "passed"), (99, "nearly"), (40, "failed")])
def test_a_time_that_was_up_first_is_not_passed(done, status):
    experiment = SimpleNamespace(stage=[SimpleNamespace(objective={"kind": "diffusion"})])
    network = SimpleNamespace(
        update=done, updates=100, evaluation={}, mechanism=Mechanism(), settled=False, experiment=experiment, match=None
    )
    (check,) = [c for c in network_checks([network]) if c.name == "Training reached its end"]
    assert check.status == status and ("Time ran out" in check.text) == (status != "passed")
    network.settled = True  # left early on purpose
    (check,) = [c for c in network_checks([network]) if c.name == "Training reached its end"]
    assert check.status == "passed" and "matched with a margin" in check.text


# --- A recording beside a discovery ---


@pytest.mark.long
def test_two_observers_lead_the_recording_to_different_answers(copy, tmp_path):
    """The swaps of one are decided before the cue by construction, those of the other after it; both are compared with
    a network of each objective, and the page names the one that decides as early or as late."""
    pytest.importorskip("pynwb", reason="NWB files need pynwb (the extra `nwb`)")
    networks = {f"{objective}-1": load(name) for objective, name in MATCHED.items()}
    for name, (_, _, answer) in OBSERVERS.items():
        write_session(tmp_path / f"{name}.nwb", name, 3, units=60)
        given = GivenRecording.read(tmp_path / f"{name}.nwb", {})
        compare_recording(Discovery(copy), networks, given, QUICK, lambda text: None)
        page = Discovery(copy).write_report().read_text()
        found = Discovery(copy).recording
        assert found.comparison.kind == f"networks trained by {answer}", found.sentence
        assert found.comparison.scores[f"networks trained by {answer}"][0] > 0.99
        said = json.loads((copy / "discovery.json").read_text())["sentences"][-1]
        assert "What the recording says" in page and said == found.sentence
    # The same again is not computed again.
    before = (copy / "recording.json").read_bytes()
    with mock.patch("lapsus.pipeline.recording.resemblance", side_effect=AssertionError):
        compare_recording(Discovery(copy), networks, given, QUICK, lambda text: None)
    assert (copy / "recording.json").read_bytes() == before
    # A damaged comparison is made anew.
    (copy / "recording.json").write_text('{"made_of": [')
    compare_recording(Discovery(copy), {}, given, QUICK, lambda text: None)
    assert "compared with nothing" in Discovery(copy).recording.sentence


@pytest.mark.slow
def test_a_recording_without_matched_networks_is_compared_with_nothing(copy, tmp_path):
    pytest.importorskip("pynwb", reason="NWB files need pynwb (the extra `nwb`)")
    write_session(tmp_path / "made.nwb", "late", 3, units=20, swaps=10)
    found = again(copy, recording=tmp_path / "made.nwb")
    assert "compared with nothing" in found.sentences[-1] and "report" in found.done
    assert "What the recording says" in found.report.read_text()
    with pytest.raises(LapsusError, match="There is no file"):
        again(copy, recording="absent.nwb")
