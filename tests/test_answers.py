"""What is said of a mechanism, and what networks and recordings are asked, on systems with known answers."""

from dataclasses import replace

import numpy as np
import pytest
from made_networks import cells

from lapsus.circular import wrap
from lapsus.errors import LapsusError
from lapsus.mechanism import analyse, commitment as commitment_analysis, summary
from lapsus.mechanism.activity import NO_SWAPS, NO_SWAPS_IN_DATA, items, require_trials
from lapsus.mechanism.decoding import decoding
from lapsus.mechanism.error_type import classify_swaps
from lapsus.mechanism.swap_axis import swap_axis
from lapsus.mechanism.synthetic import MECHANISMS, synthetic_population
from lapsus.mechanism.transplants import transplant_curves

pytestmark = pytest.mark.filterwarnings("ignore:The torch reference runs")


def _mechanism(**parts):
    from lapsus.mechanism.registry import Mechanism

    return Mechanism(**parts)


def _curve(shares):
    times, ends = np.array([-28.0, -5.0, 0.0, 20.0, 40.0]), {"delay": -5.0, "cue": 0.0, "denoise": 40.0}
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((20, 60, 1))
    walks = [np.sqrt(s) * latent + np.sqrt(1 - s) * rng.standard_normal((20, 60, 4)) > 0 for s in shares]
    return commitment_analysis.commitment_curve(np.stack(walks, 1).astype(float), times, ends)


def test_words_say_when_and_do_not_overstate():
    late = _mechanism(commitment=_curve([0, 0, 0, 0.7, 1])).sentence("commitment")
    assert "after the cue" in late and "Noise after the cue decides." in late
    early = _mechanism(commitment=_curve([0.5, 0.6, 0.6, 0.8, 1])).sentence("commitment")
    assert "decided before the cue" in early and "Noise after" not in early
    assert "is not known: no swap trials" in _mechanism(left_out={"transplant": "no swap trials"}).sentence(
        "transplant"
    )
    assert len(_mechanism(left_out={"transplant": "no swap trials", "dynamics": "it is not known"}).sentences()) == 2


@pytest.mark.parametrize("name", [*MECHANISMS, "cannot tell"])
def test_words_name_the_kind_that_was_built_in(name):
    if name == "cannot tell":
        data = synthetic_population("misselection", trials=1000, after=0.0, cue_code=0.0)
    else:
        data = synthetic_population(name, trials=1000)
    found = _mechanism(error_type=classify_swaps(data, every=30, repeats=60), decoding=decoding(data, every=12))
    text = found.sentence("error_type")
    assert ("cannot be told" if name == "cannot tell" else f"Error type: {name};") in text
    # Only of a late switch is it said that the cue was read, with its number; never that it was mistaken.
    assert ("memory is that of the other cue in" in text) == (name == "late switch")
    assert ("taken for the other one" in text) == (name == "misinterpretation")


def test_words_do_not_call_a_colour_an_axis():
    from types import SimpleNamespace

    from lapsus.mechanism.swap_axis import Geometry

    def of(found, **parts):
        return _mechanism(swap_axis=Geometry(swap_axis(*found), [], np.zeros((1, 2)), np.zeros(1)), **parts)

    assert "finds the colour" in of(cells(0.0, 2.0)).sentence("swap_axis")
    assert "one axis for all places" in of(cells(2.0, 1.0)).sentence("swap_axis")
    # A decoder that may use the colour tells swaps in the same memory: that is said, and by what.
    read = SimpleNamespace(at_response=0.98)
    assert "(AUC 0.98), but by the reported colour" in of(cells(0.0, 2.0), decoding=read).sentence("swap_axis")


@pytest.mark.slow
def test_a_recording_is_asked_what_it_can_answer():
    import json

    from lapsus.evaluation.sample_sizes import QUICK

    found = analyse(synthetic_population("misselection", trials=600), sizes=QUICK)
    assert found.error_type.decision == "misselection" and set(found.left_out) >= {
        "commitment",
        "transplant",
        "dynamics",
    }
    read = found.decoding
    assert (
        read.auc[-1] > 0.95 and abs(read.auc[read.times < -6].mean() - 0.5) < 0.1 and abs(read.null.mean() - 0.5) < 0.1
    )
    assert "decoded" in found.sentence("decoding")
    assert set(json.loads(json.dumps(found.to_dict()))) >= {"error_type", "left_out"}


@pytest.mark.slow
def test_every_analysis_of_a_recording_is_made_or_left_out_with_a_reason():
    from lapsus.evaluation.sample_sizes import QUICK
    from lapsus.mechanism.registry import QUESTIONS

    fixed = synthetic_population("misselection", trials=600)
    found = analyse(fixed, only=("alignment", "prediction", "pushes"), sizes=QUICK)
    assert found.alignment.trials == 600 and found.alignment.shuffled.shape[0] == 2 and found.prediction.swaps > 20
    assert set(found.left_out) == {"pushes"} and found.error_type is None and found.decoding is None
    places = np.random.default_rng(0).uniform(-np.pi, np.pi, 600)
    moved = fixed.assign(probe_1=("trial", places), probe_2=("trial", wrap(places + 2)))
    seen = []
    found = analyse(moved, sizes=QUICK, progress=seen.append)
    assert {name for name in QUESTIONS if getattr(found, name) is not None} | set(found.left_out) == set(QUESTIONS)
    assert all("places" in found.left_out[name] for name in ("alignment", "prediction")) and "error_type" in seen
    # With places that have a name: each distance is a curve.
    named = moved.assign(
        probe_1=("trial", 0 * places),
        probe_2=("trial", np.where(places > 0, 1.0, 2.0)),
        configuration=("trial", (places > 0).astype(int)),
    )
    assert analyse(named, only=("alignment",), sizes=QUICK).alignment.degrees == (57, 115)
    with pytest.raises(LapsusError, match="is for networks"):
        analyse(fixed, probe_distance=1.0)
    with pytest.raises(LapsusError, match="There is no question"):
        analyse(fixed, only=("why",))


def _unmarked(seed=100):
    """A population whose swaps leave no mark in memory, and the same with a shift on swap trials along a direction that
    none of the three kinds predicts."""
    data = synthetic_population(trials=1200, swap_probability=0.0)
    found, rng = items(data), np.random.default_rng(seed)
    swap = rng.random(1200) < 0.2
    response = wrap(np.where(swap, found.distractor, found.target) + 0.1 * rng.standard_normal(1200))
    data = data.assign(response=("trial", response))
    late = (data["time"] > 20).to_numpy()[None, :, None] & swap[:, None, None]
    direction = rng.standard_normal(data.sizes["unit"])
    moved = data["activity"] + late * 2.0 * direction / np.linalg.norm(direction)
    return data, data.assign(activity=data["activity"].copy(data=moved))


def test_nothing_is_said_that_a_held_out_decoder_contradicts():

    same, moved = (
        _mechanism(error_type=classify_swaps(data, every=30, repeats=60), decoding=decoding(data, every=12))
        for data in _unmarked()
    )
    assert (
        same.error_type.decision == "no mark"
        and not same.contradicted
        and "look like correct ones" in same.sentence("error_type")
    )
    assert abs(same.decoding.at_response - 0.5) < 0.1 and "no trace" in summary([same])
    # The regression on the three kinds sees nothing, the decoder does: the sentence must not be printed.
    assert moved.decoding.at_response > 0.9 and moved.decoding.before_cue < 0.6
    assert moved.error_type.decision == "no mark" and "error_type" in moved.contradicted and moved.error is None
    assert "look like correct ones" not in moved.sentence("error_type") and "no trace" not in summary([moved])
    assert same.row()["error_type"] == "no mark" and moved.row()["error_type"] == "not known"


def test_a_coming_swap_that_is_read_before_the_cue_is_a_prior_inclination():
    """Memory after the cue is as after the other cue, and a mark of that, in no direction in which colours are held, is
    there before it: the cue was not misread."""
    data = synthetic_population("misinterpretation", trials=1000)
    found, rng = items(data), np.random.default_rng(0)
    early = (data["time"] < -5).to_numpy()[None, :, None] & found.swap[:, None, None]
    mark = 2.0 * rng.standard_normal(data.sizes["unit"])
    marked = data.assign(activity=data["activity"].copy(data=data["activity"] + early * mark))
    one = analyse(marked, only=("error_type", "decoding"))
    assert one.decoding.before_cue > 0.9 and one.error_type.decision == "misinterpretation"
    assert one.error == "prior inclination" and "AUC of 1.00 [" in one.sentence("decoding")
    assert "favoured before the cue" in summary([one]) and "taken for the other one" not in summary([one])


def test_the_first_answer_names_when_what_and_which():
    from lapsus.mechanism.registry import without_answer

    late, early = (_curve(shares) for shares in ([0, 0, 0, 0.7, 1], [0.9, 0.95, 0.95, 0.95, 1]))
    carried = transplant_curves(
        np.arange(3.0),
        {name: np.full((6, 3), p) for name, p in (("swap", 0.9), ("correct", 0.1), ("x_from_swap", 0.9))}
        | {name: np.full((6, 3), 0.1) for name in ("m_from_swap", "null")},
        np.ones(6),
    )
    kinds = {
        name: classify_swaps(synthetic_population(name, trials=1000), every=30, repeats=60)
        for name in ("late switch", "misbinding")
    }
    one = _mechanism(commitment=late, transplant=carried, error_type=kinds["late switch"])
    said = summary([one])
    assert "decided after the cue" in said and "by the forming response" in said and "later does memory change" in said
    assert "one network" in said and [name for name, _ in one.answered] == ["commitment", "transplant", "error_type"]
    assert len(without_answer(one)) == 1
    other = _mechanism(commitment=early, transplant=carried, error_type=kinds["misbinding"])
    assert "before the cue" in summary([other]) and "change places" in summary([other])
    both = summary([one, other])
    assert "late switch, misbinding" in both and "when, relative to the cue" in both and "2 networks" in both
    none = _mechanism(
        left_out={"commitment": "no swap trials: every outcome is the same", "error_type": "no swap trials"}
    )
    assert summary([none]) == "This network makes no swaps to explain."
    none = _mechanism(left_out={"commitment": NO_SWAPS_IN_DATA})
    assert summary([none]) == "This network makes no swaps to explain."
    with pytest.raises(LapsusError, match=f"^{NO_SWAPS}$"):
        require_trials(0, 20, "swap trials")


@pytest.mark.slow
def test_networks_that_cannot_tell_do_not_agree():
    from types import SimpleNamespace

    from lapsus.report.check_list import _agreement

    def checks(*kinds):
        made = []
        for name in kinds:
            options = {"after": 0.0, "cue_code": 0.0} if name == "cannot tell" else {}
            data = synthetic_population("misselection" if options else name, trials=600, **options)
            made.append(SimpleNamespace(mechanism=_mechanism(error_type=classify_swaps(data, every=40, repeats=40))))
        return {check.name: check.status for check in _agreement(made)}["Networks agree on the type of error"]

    assert checks("cannot tell", "cannot tell") == "not checked" == checks("cannot tell", "misselection")
    assert checks("misselection", "misselection") == "passed"
    assert checks("misselection", "misbinding") == "failed"


@pytest.mark.slow
def test_analyse_command_prints_what_it_promises(tmp_path):
    import json

    from typer.testing import CliRunner

    from lapsus.cli import app
    from lapsus.evaluation.sample_sizes import QUICK
    from lapsus.zoo import load

    only = ("commitment", "transplant", "swap_axis", "error_type", "dynamics")
    sizes = replace(QUICK, donors=48, single_trials=800)
    found = analyse(load("index-swap-10"), only=only, sizes=sizes).to_dict()
    assert set(found["commitment"]) >= {"times", "share", "low", "high", "half_time", "by_epoch"}
    assert set(found["transplant"]) >= {"times", "swap", "correct", "x_from_swap", "m_from_swap"}
    assert set(found["swap_axis"]) >= {"auc", "shared", "shared_null"}
    assert set(found["error_type"]) >= {"decision", "weights", "onset"}
    assert set(found["dynamics"]) >= {"fixed_points", "manifold_dimension", "time_constants"}
    path = tmp_path / "recording.nc"
    synthetic_population(trials=400).to_netcdf(path, engine="h5netcdf")
    result = CliRunner().invoke(app, ["analyse", str(path), "--json", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["error_type"]["decision"] == "misselection"
    assert (tmp_path / "out" / "recording-decoding.png").exists() and (tmp_path / "out" / "mechanism.csv").exists()


def test_analyse_goes_on_where_it_was_cut(tmp_path, monkeypatch):
    """Networks whose answers are in the folder are not asked again, unless told to or with another seed."""
    import pandas as pd
    from typer.testing import CliRunner

    from lapsus.cli import app
    from lapsus.report import analyses

    asked = []

    def answered(model, progress, **options):
        asked.append((progress.args[0], model.task.delay))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return _mechanism(commitment=_curve([0, 0, 0, 0.7, 1]), left_out={})

    monkeypatch.setattr(analyses, "analyse", answered)
    monkeypatch.setattr(analyses, "_draw", lambda *drawn: None)
    call = ["analyse", "index-swap-10", "index-swap-5", "-o", str(tmp_path / "out")]
    assert CliRunner().invoke(app, call).exit_code != 0
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0 and [name for name, _ in asked] == ["index-swap-10", "index-swap-5", "index-swap-5"]
    assert "index-swap-10:" in done.stdout and "Noise after the cue decides" in done.stdout
    rows = pd.read_csv(tmp_path / "out" / "mechanism.csv")
    assert list(rows["network"]) == ["index-swap-10", "index-swap-5"] and rows["half_time"].notna().all()
    CliRunner().invoke(app, [*call, "--again"])
    CliRunner().invoke(app, [*call, "--seed", "1"])
    assert len(asked) == 7
    # Another delay is another question, with a file of its own.
    at = ["analyse", "index-swap-10", "--delay", "5,20", "-o", str(tmp_path / "out")]
    assert CliRunner().invoke(app, at).exit_code == 0 and asked[7:] == [("index-swap-10", 5), ("index-swap-10", 20)]
    assert "delay of 20 steps" in CliRunner().invoke(app, at).stdout and len(asked) == 9
    assert list(pd.read_csv(tmp_path / "out" / "mechanism.csv")["delay"]) == [5, 20]
    wrong = CliRunner().invoke(app, ["analyse", "recording.nc", "--delay", "5"])
    assert wrong.exit_code == 2 and "a recording has the delays" in wrong.output


def test_trials_part_where_a_held_out_decoder_can_tell_them_too():
    """The regression's onset alone may follow the odds of a display, which are there before the cue."""
    from dataclasses import replace

    from lapsus.mechanism.decoding import Decoding
    from lapsus.mechanism.error_type import _parting_sentence

    times = np.arange(-20.0, 41.0)
    read = Decoding(times, np.where(times < 12, 0.5, 0.95), np.full(61, 0.5), -5.0, 50, 500, 0)
    found = classify_swaps(synthetic_population("late switch", trials=600), every=60, repeats=20)
    early, late = replace(found, onset=-6.0), replace(found, onset=15.0)

    def said(answer, decoded):
        return _parting_sentence(_mechanism(error_type=answer, decoding=decoded))

    assert said(late, read) == " They diverge from correct trials at 0.75 s (15 steps)."
    assert (
        "held-out decoder" in said(early, read) and "(12 steps)" in said(early, read) and "-6" not in said(early, read)
    )
    assert said(early, replace(read, auc=np.full(61, 0.5))) == ""
    assert "(-6 steps)" in said(early, None)
