"""Recordings: from sessions of spikes and trials, in NWB files or in Python, to counts that every analysis takes."""

import contextlib
import importlib
import json
import os
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from command import lapsus
from scipy import stats
from scipy.io import loadmat

from lapsus.circular import distance, wrap
from lapsus.errors import LapsusError
from lapsus.files import check_all_inside
from lapsus.mechanism.activity import activity_dataset, two_items
from lapsus.mechanism.asking import analyse, over_sessions
from lapsus.mechanism.decoding import _interval, decoding, folds_by_condition
from lapsus.mechanism.plane_alignment import condition_alignment
from lapsus.mechanism.recorded import analysable, complete, describe
from lapsus.mechanism.resemblance import (
    FEATURES,
    Discriminant,
    Noise,
    Pool,
    _jackknife,
    _left_out,
    between_networks,
    decision,
    features,
    folds,
    kinds_of,
    like,
    matched_noise,
    noise_of,
    recovered,
    resemblance,
)
from lapsus.mechanism.synthetic import synthetic_population
from lapsus.recordings import PRESETS, Layout, Session, count_spikes, layout_of, pseudo_population, read_sessions
from lapsus.recordings.nwb import read_nwb, write_nwb
from lapsus.recordings.spikes import as_neurons, spike_session


def made_trials(count=60, seed=0, jitter=0.0):
    """Trials in our own columns; every fifth is a swap."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(-np.pi, np.pi, count)
    report = np.stack([first, wrap(first + rng.uniform(1, 2 * np.pi - 1, count))], 1)
    cued = rng.integers(2, size=count)
    recalled = np.where(np.arange(count) % 5 == 0, 1 - cued, cued)
    start = 1.0 + 4 * np.arange(count)
    delay = 0.8 + jitter * rng.random(count)
    return pd.DataFrame(
        {
            "start_time": start,
            "stop_time": start + 2.2 + delay,
            "stimulus_time": start + 0.2,
            "delay_time": start + 0.5,
            "cue_time": start + 0.5 + delay,
            "cue_offset_time": start + 0.8 + delay,
            "report_1": report[:, 0],
            "report_2": report[:, 1],
            "cued": cued + 1,
            "response": wrap(report[np.arange(count), recalled] + 0.05 * rng.standard_normal(count)),
        }
    )


def made_spikes(trials, units=6, rate=20.0, seed=1):
    rng, end = np.random.default_rng(seed), trials["stop_time"].max() + 1
    return [np.sort(rng.uniform(0, end, rng.poisson(rate * end))) for _ in range(units)]


def as_dandi(trials, seed=2):
    """The same trials in the columns of DANDI:000620, objects in an order of their own; and three trials more: one
    object alone, fixation broken, no response."""
    rng, rows = np.random.default_rng(seed), []
    at = lambda angle: [0.5 + 0.35 * np.cos(angle), 0.5 + 0.35 * np.sin(angle)]
    for _, trial in trials.iterrows():
        order = rng.permutation(2)
        objects = [(at(trial[f"report_{k + 1}"]), "ab"[k], bool(trial["cued"] == k + 1)) for k in order]
        rows.append(
            {
                "start_time": trial["start_time"],
                "stop_time": trial["stop_time"],
                "phase_fixation_time": trial["start_time"],
                "phase_stimulus_time": trial["stimulus_time"],
                "phase_delay_time": trial["delay_time"],
                "phase_cue_time": trial["cue_time"],
                "phase_response_time": trial["cue_offset_time"],
                "response_time": trial["stop_time"],
                "stimulus_object_positions": json.dumps([position for position, _, _ in objects]),
                "stimulus_object_identities": json.dumps([name for _, name, _ in objects]),
                "stimulus_object_target": json.dumps([target for _, _, target in objects]),
                "response_position": at(trial["response"]),
                "broke_fixation": False,
            }
        )
    last = rows[-1]
    for k, changed in enumerate(
        (
            {"stimulus_object_positions": json.dumps([at(0.0)]), "stimulus_object_target": "[true]"},
            {"broke_fixation": True},
            {"response_position": [np.nan, np.nan], "response_time": np.nan},
        ),
        1,
    ):
        later = {name: value + 4 * k for name, value in last.items() if name.endswith("_time")}
        rows.append(last | later | changed)
    return pd.DataFrame(rows)


def session(trials=None, **options):
    trials = made_trials(**options) if trials is None else trials
    return Session.of(made_spikes(trials), trials)


# --- Counting ---


def test_counts_are_those_of_a_histogram():
    found = session()
    counts = count_spikes(found, "50ms")
    assert counts["activity"].dtype == np.uint8 and dict(counts.sizes) == {"trial": 60, "time": 60, "unit": 6}
    start = found.trials["at_response"].to_numpy()
    for trial, unit in ((0, 0), (17, 3), (59, 5)):
        edges = start[trial] + np.append(counts["time"], counts["time"][-1] + 0.05)
        own = np.histogram(found.spikes[unit], edges)[0]
        np.testing.assert_array_equal(counts["activity"][trial, :, unit], own)
    assert counts["recorded"].all()
    onset = {
        name: float(counts["time"][counts["epoch"] == name][0]) for name in ("stimulus", "delay", "cue", "response")
    }
    assert onset == pytest.approx({"stimulus": -1.4, "delay": -1.1, "cue": -0.3, "response": 0.0}, abs=1e-9)


def test_delays_of_unequal_length_are_seen_on_two_clocks():
    """A unit that fires once, 0.1 s after each stimulus, and one 0.1 s after each cue."""
    trials = made_trials(jitter=0.6)
    spikes = [trials["stimulus_time"] + 0.11, trials["cue_time"] + 0.11]
    found = Session.of(spikes, trials)
    by_cue, by_both = (count_spikes(found, "20ms", align=align) for align in ("cue", "stimulus,cue"))
    peak = lambda dataset, unit: float(dataset["activity"][..., unit].mean("trial").max())
    assert peak(by_cue, 1) == peak(by_both, 1) == 1
    assert peak(by_both, 0) == 1 and peak(by_cue, 0) < 0.3
    masked = by_both["recorded"].mean("trial")
    assert masked[by_both["epoch"] == "stimulus"].min() == 1 and masked[by_both["epoch"] == "delay"].min() < 0.9
    whole = complete(by_both)
    assert "recorded" not in whole and 0 < whole.sizes["time"] < by_both.sizes["time"]
    assert set(whole["epoch"].to_numpy()) >= {"stimulus", "delay", "cue", "response"}


def test_smoothing_keeps_the_number_of_spikes():
    counts, smooth = (count_spikes(session(), smooth=width)["activity"] for width in (0, "60ms"))
    assert float(smooth.sum()) == pytest.approx(float(counts.sum()), rel=0.01)
    assert float(smooth.var()) < 0.5 * float(counts.astype(float).var())


def test_units_are_selected_by_region_rate_and_presence():
    trials = made_trials()
    spikes = made_spikes(trials)
    spikes[1] = spikes[1][spikes[1] < 60]
    spikes[2] = spikes[2][::20]
    found = Session.of(spikes, trials, units=pd.DataFrame({"area": list("AAABBB")}))
    assert len(found.select("area=A").spikes) == 3
    assert list(found.select(min_presence=0.9).units.index) == [0, 1, 2, 3, 4]
    assert len(found.select("area=A", min_rate=5.0, min_presence=0.9).spikes) == 1
    with pytest.raises(LapsusError, match="lower them"):
        found.select(min_rate=1000.0)


def test_pynapple_objects_are_taken_as_they_are():
    """By what they offer: values with `t`, `metadata`; an IntervalSet by `as_dataframe`."""
    trials = made_trials()
    spikes = made_spikes(trials)
    group = {k: SimpleNamespace(t=times) for k, times in enumerate(spikes)}
    group = type("TsGroup", (dict,), {"metadata": pd.DataFrame({"rate": 1.0, "area": list("AAABBB")})})(group)
    named = trials.rename(columns={"start_time": "start", "stop_time": "end"})
    found = Session.of(group, SimpleNamespace(as_dataframe=lambda: named))
    assert len(found.select("area=B").spikes) == 3
    expected = count_spikes(Session.of(spikes, trials))
    np.testing.assert_array_equal(count_spikes(found)["activity"], expected["activity"])


class TsdTensor:
    """What pynapple's TsdTensor offers: times, a support, and its values as an array [time, trial, unit]."""

    time_support = None

    def __init__(self, t, d):
        self.t, self.d = t, d

    def __array__(self, dtype=None, copy=None):
        return self.d


def test_a_tsd_tensor_is_taken_as_it_is():
    counts = count_spikes(session())
    table = counts[["report_1", "report_2", "cued", "response"]].to_dataframe().reset_index(drop=True)
    values, epoch = counts["activity"].to_numpy(), counts["epoch"].to_numpy()
    kinds = [TsdTensor]
    with contextlib.suppress(ImportError):
        kinds.append(importlib.import_module("pynapple").TsdTensor)
    for kind in kinds:
        found = activity_dataset(kind(t=counts["time"].to_numpy(), d=np.moveaxis(values, 1, 0)), table, epoch=epoch)
        np.testing.assert_array_equal(found["activity"], values)
        np.testing.assert_array_equal(found["time"], counts["time"])
        assert found["time"].attrs["units"] == "s"


def test_a_pseudo_population_matches_trials_by_condition():
    parts = [count_spikes(session(count=200, seed=seed)) for seed in (0, 1)]
    pooled = pseudo_population(parts)
    assert pooled.sizes["unit"] == 12 and 100 < pooled.sizes["trial"] < 200
    assert np.bincount(pooled["session"]).tolist() == [6, 6]
    silent = count_spikes(Session.of([*made_spikes(made_trials()), []], made_trials(), name="second.nwb"))
    notes = pseudo_population([parts[0], silent]).attrs["notes"]
    assert "second.nwb: 1 unit without spikes in the trials is left out" in notes
    assert two_items(pooled).swap.mean() == pytest.approx(0.2, abs=0.05)
    assert pooled.equals(pseudo_population(parts)) and not pooled.equals(pseudo_population(parts, seed=1))
    # Units of the second session: colours of a unit that codes them agree with those of the first session's trials.
    trials = made_trials(count=400, seed=3)
    code = np.repeat(trials["cue_time"] - 0.3, np.round(5 * (1 + np.cos(trials["report_1"]))).astype(int))
    code = np.sort(code + np.random.default_rng(4).uniform(0, 0.1, len(code)))
    coded = pseudo_population([parts[0], count_spikes(Session.of([code], trials))])
    strength = coded["activity"][..., -1].sum("time").to_numpy()
    assert np.corrcoef(strength, np.cos(coded["report_1"]))[0, 1] > 0.7


def test_a_large_recording_is_analysed_as_components(monkeypatch):
    monkeypatch.setattr("lapsus.mechanism.recorded.MOST_NUMBERS", 60 * 30 * 3)
    monkeypatch.setattr("lapsus.mechanism.recorded.MOST_BINS", 30)
    counts = count_spikes(session())
    small = analysable(counts)
    assert small.sizes["unit"] == 3 and small.sizes["time"] == 30 and "principal components" in small.attrs["notes"]
    # The components are those of all counts in the same bins, in units of Poisson noise.
    assert set(small["epoch"].to_numpy()) == set(counts["epoch"].to_numpy())
    variance = small["activity"].to_numpy().reshape(-1, 3)
    assert abs(np.corrcoef(variance.T)[0, 1]) < 1e-3


def test_a_recording_is_described_in_the_words_of_physiology():
    counts = count_spikes(session())
    said, facts = describe(counts, analysable(counts))
    assert facts["units"] == 6 and facts["trials"] == 60 and facts["swaps"] == 12
    assert "6 neurons" in said[0] and "spikes/s" in said[0] and "50 ms" in said[0]
    assert facts["spikes_per_second"] == pytest.approx(20, rel=0.05)
    assert any("Fewer than 20 swaps" in line for line in said)


def test_neurons_fire_once_at_mean_activity_and_mix_what_the_network_holds():
    rng = np.random.default_rng(0)
    activity = rng.standard_normal((50, 8, 4))
    rates = as_neurons(activity)
    assert rates.min() > 0 and rates[np.abs(activity) < 0.01].mean() == pytest.approx(1, abs=0.05)
    assert as_neurons(activity, 30).shape == (50, 8, 30)
    assert np.array_equal(as_neurons(activity, 30), as_neurons(activity, 30))
    flat = np.log(np.expm1(as_neurons(activity, 30) * np.log(2))).reshape(-1, 30)
    assert np.linalg.matrix_rank(flat - flat.mean(0), tol=1e-6) == 4


def test_plane_alignment_of_conditions_finds_a_known_angle():
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((40, 3)))[0].T
    circle = np.stack([np.cos(np.pi / 2 * np.arange(4)), np.sin(np.pi / 2 * np.arange(4))], 1)
    leaning = np.stack([basis[0], np.cos(1.1) * basis[1] + np.sin(1.1) * basis[2]])
    made = np.concatenate([circle @ basis[:2], circle @ leaning])
    assert condition_alignment(made) == pytest.approx(np.cos(1.1), abs=1e-6)


def test_plane_alignment_is_that_of_panichello_and_buschman(human_data):
    """Rates of 380 neurons in their eight conditions."""
    path = human_data / "panichello2021" / "planesDemo.mat"
    if not path.exists():
        pytest.skip("the rates of Panichello & Buschman (2021) are not part of the repository")
    assert condition_alignment(loadmat(path)["dat"]) == pytest.approx(0.13, abs=0.005)


# --- Columns ---


def test_the_columns_of_dandi_000620_need_only_the_preset():
    trials = made_trials()
    spikes = made_spikes(trials)
    found = Session.of(spikes, as_dandi(trials), "dandi-000620")
    plain = Session.of(spikes, trials).trials
    for name in ("report_1", "report_2", "response"):
        assert distance(found.trials[name], plain[name]).max() < 1e-9
    assert np.array_equal(found.trials["cued"], plain["cued"])
    assert any("another number of items" in note for note in found.notes)
    assert any("without a response" in note for note in found.notes)
    numbers = as_dandi(trials).assign(broke_fixation=lambda table: table["broke_fixation"].astype(int))
    assert Session.of(spikes, numbers, "dandi-000620").trials.equals(found.trials)


def test_what_a_preset_cannot_mean_is_a_sentence():
    trials = made_trials()
    spikes, table = made_spikes(trials), as_dandi(trials)
    with pytest.raises(LapsusError, match="give their `centre`"):
        Session.of(spikes, table, replace(PRESETS["dandi-000620"], centre=[0.0, 0.0]))
    with pytest.raises(LapsusError, match="different names for the two items"):
        Session.of(spikes, table.assign(stimulus_object_identities='["a", "a"]'), "dandi-000620")


def test_any_other_columns_are_a_small_toml(tmp_path):
    trials = made_trials()
    theirs = pd.DataFrame(
        {
            "start_time": trials["start_time"],
            "stop_time": trials["stop_time"],
            "on": trials["stimulus_time"],
            "cue_on": trials["cue_time"],
            "upper": np.degrees(trials["report_1"]),
            "lower": np.degrees(trials["report_2"]),
            "probed": trials["cued"],
            "answer": np.degrees(trials["response"]),
        }
    )
    path = tmp_path / "mine.toml"
    path.write_text(
        'report = ["upper", "lower"]\nresponse = "answer"\ncued = "probed"\nunit = "degrees"\n'
        '[events]\nprestimulus = "start_time"\nstimulus = "on"\ndelay = "on + 0.3"\ncue = "cue_on"\n'
        'response = "cue_on + 0.3"\n'
    )
    spikes = made_spikes(trials)
    found = count_spikes(Session.of(spikes, theirs, layout_of(path)))
    plain = count_spikes(Session.of(spikes, trials))
    np.testing.assert_array_equal(found["activity"], plain["activity"])
    assert distance(found["response"], plain["response"]).max() < 1e-9


# --- NWB files ---

nwb = pytest.fixture(lambda: pytest.importorskip("pynwb", reason="NWB files need pynwb (the extra `nwb`)"))


@pytest.mark.slow
def test_a_session_survives_its_file(nwb, tmp_path):
    trials = made_trials()
    spikes = made_spikes(trials)
    write_nwb(tmp_path / "a.nwb", spikes, trials, "made")
    (found,) = read_sessions(tmp_path / "a.nwb")
    assert found.equals(count_spikes(Session.of(spikes, trials)))
    for name in ("behavior+ecephys.nwb", "a,b.nwb"):  # the first is as DANDI names files
        (tmp_path / name).write_bytes((tmp_path / "a.nwb").read_bytes())
        assert read_sessions(tmp_path / name)[0].equals(found)
    assert len(read_sessions(f"{tmp_path}/a,b.nwb,{tmp_path}/behavior+ecephys.nwb+{tmp_path}/a.nwb")) == 2
    (fewer,) = read_sessions(tmp_path / "a.nwb", where=["cued=1"])
    assert fewer.sizes["trial"] == (trials["cued"] == 1).sum()


@pytest.mark.slow
def test_a_file_with_the_columns_of_dandi_000620_is_read_with_the_preset_alone(nwb, tmp_path):
    """Units in another file than the trials, with the area by electrode."""
    trials = made_trials()
    spikes = made_spikes(trials)
    write_nwb(tmp_path / "trials.nwb", [], as_dandi(trials), "behaviour")
    write_nwb(tmp_path / "units.nwb", spikes, trials.iloc[:0], "sorting")
    found = read_nwb(f"{tmp_path}/trials.nwb+{tmp_path}/units.nwb", "dandi-000620")
    assert len(found.trials) == 60 and len(found.spikes) == 6
    expected = count_spikes(Session.of(spikes, trials))
    np.testing.assert_array_equal(count_spikes(found)["activity"], expected["activity"])


def changed(**columns):
    """A table with some columns replaced (None: dropped)."""

    def change(trials, spikes):
        table = trials.assign(**{name: value for name, value in columns.items() if value is not None})
        return table.drop(columns=[name for name, value in columns.items() if value is None]), spikes

    return change


def ms(trials, spikes):
    times = [name for name in trials if name.endswith("_time")]
    return trials.assign(**{name: 1000 * trials[name] for name in times}), [1000 * times for times in spikes]


MALFORMED = {
    "no trials": (lambda trials, spikes: (trials.iloc[:0], spikes), {}, "no (table of )?trials"),
    "no units": (lambda trials, spikes: (trials, []), {}, "no units"),
    "no spikes": (lambda trials, spikes: (trials, [np.empty(0)] * 3), {}, "units are without spikes"),
    "another clock": (lambda trials, spikes: (trials, [times + 1e6 for times in spikes]), {}, "on one clock"),
    "spikes not finite": (lambda trials, spikes: (trials, [np.append(spikes[0], np.nan)]), {}, "unit 0 .* not finite"),
    "milliseconds": (ms, {}, "a trial lasts .* milliseconds"),
    "spikes in milliseconds": (lambda t, s: (t, [1000 * times for times in s]), {}, "spike times must be milliseconds"),
    "too few flags": (lambda t, s: (t.assign(cued="[true]"), s), {}, "without a cued item"),
    "flags in lists": (lambda t, s: (t.assign(cued="[[true], [true, false]]"), s), {}, "list of flags"),
    "flags are words": (lambda t, s: (t.assign(cued='["no", "yes"]'), s), {}, "list of flags"),
    "bins finer than any": (changed(), {"bin": "0.01ms"}, "exact to 0.1 ms"),
    "out of order": (
        lambda t, s: (t.assign(cue_time=t["cue_time"] - 5 * (t.index > 2)), s),
        {},
        "57 trials .*first: id 3. cue comes before .*id!=3",
    ),
    "no cue time": (changed(cue_time=np.nan), {}, "without a cue time"),
    "no response": (changed(response=np.nan), {}, "without a response"),
    "column missing": (changed(report_2=None), {}, "no column 'report_2'"),
    "degrees": (changed(response=180.0), {}, 'unit = "degrees"'),
    "items from 0": (lambda t, s: (t.assign(cued=t["cued"] - 1), s), {}, "counts items from 0"),
    "cued is text": (changed(cued="left"), {}, "neither a number nor a JSON list"),
    "times are text": (changed(cue_time="late"), {}, "must hold times in seconds"),
    "responses are lists": (changed(response="[1, 2, 3]"), {}, "without a response|angles"),
    "bins too fine": (lambda t, s: (t, [np.round(times, 2) for times in s]), {"bin": "5ms"}, "finer than the data"),
    "bin is not a time": (changed(), {"bin": "fast"}, "not a duration"),
    "unknown event": (changed(), {"align": "reward"}, "no event 'reward'"),
    "unknown column": (changed(), {"where": ["block=1"]}, "no column block"),
    "unknown region": (changed(), {"units": ["area=V1"]}, "no column area"),
    "unknown layout": (changed(), {"columns": "dandi-1"}, "TOML file or one of"),
    "no angles": (changed(report_1=np.nan), {}, "without the angles of both items"),
    "infinite times": (changed(cue_time=np.inf), {}, "cue_time holds 'inf'"),
    "trials end before they begin": (lambda t, s: (t.assign(stop_time=t["start_time"]), s), {}, "end comes before"),
    "third item cued": (lambda t, s: (t.assign(cued=t["cued"] + 2), s), {}, "without a cued item"),
    "no flag": (lambda t, s: (t.assign(cued="[false, false]"), s), {}, "without a cued item"),
    "list that does not end": (changed(response="[1, 2"), {}, "neither a number nor a JSON list"),
    "no bin": (changed(), {"bin": 0}, "A bin of 0 s"),
    "no rule": (changed(), {"where": ["cued"]}, "not of the form column=value"),
    "silent units": (changed(), {"min_rate": 1e9}, "lower them"),
    "wrong preset": (changed(), {"columns": "dandi-000620"}, "no column 'stimulus_object_positions'"),
}


@pytest.mark.slow
@pytest.mark.parametrize("change, options, message", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_session_is_a_sentence(nwb, tmp_path, change, options, message):
    trials = made_trials()
    table, spikes = change(trials, made_spikes(trials))
    write_nwb(tmp_path / "a.nwb", spikes, table, "made")
    with pytest.raises(LapsusError, match=message):
        read_sessions(tmp_path / "a.nwb", **options)


@pytest.mark.slow
def test_files_that_are_not_nwb_are_a_sentence(nwb, tmp_path):
    import h5py

    path = tmp_path / "a.nwb"
    with pytest.raises(LapsusError, match="There is no file"):
        read_nwb(path)
    with pytest.raises(LapsusError, match="is a folder"):
        read_nwb(tmp_path)
    path.write_text("start_time,stop_time\n")
    with pytest.raises(LapsusError, match="not an NWB file"):
        read_nwb(path)
    with h5py.File(tmp_path / "other.nwb", "w") as file:
        file["data"] = [1, 2]
    with pytest.raises(LapsusError, match="cannot be read as NWB"):
        read_nwb(tmp_path / "other.nwb")
    write_nwb(path, made_spikes(made_trials()), made_trials(), "made")
    with pytest.raises(LapsusError, match="name of a file is missing"):
        read_nwb(f"{path}+")
    with pytest.raises(LapsusError, match="named twice"):
        read_sessions(f"{path},{path}")
    path.write_bytes(path.read_bytes()[:20000])
    with pytest.raises(LapsusError, match="cannot be read as NWB"):
        read_nwb(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, change, message",
    [
        ("units/spike_times_index", lambda ends: ends[::-1], "not one list after the other"),
        ("units/spike_times_index", lambda ends: ends.astype(int) + 10, "not one list after the other"),
        ("units/spike_times", lambda times: np.stack([times, times], 1), "not one list after the other"),
        ("units/spike_times", lambda times: np.full(len(times), b"late"), "spike times of unit 0 cannot be read"),
        ("intervals/trials/cue_time", lambda times: times[:-1], "must be the same length"),
    ],
)
def test_a_file_with_a_broken_column_is_a_sentence(nwb, tmp_path, name, change, message):
    import h5py

    path = tmp_path / "a.nwb"
    spikes = made_spikes(made_trials())
    spikes[0] = spikes[0][:3]
    write_nwb(path, spikes, made_trials(), "made")
    with h5py.File(path, "a") as file:
        values, attributes = file[name][:], dict(file[name].attrs)
        del file[name]
        file[name] = change(values)
        file[name].attrs.update(attributes)
    with pytest.raises(LapsusError, match=message):
        read_nwb(path)


@pytest.mark.slow
def test_a_session_that_reads_other_files_is_refused(nwb, tmp_path):
    import h5py

    path, pipe = tmp_path / "a.nwb", tmp_path / "pipe"
    write_nwb(path, made_spikes(made_trials()), made_trials(), "made")
    with h5py.File(tmp_path / "links.nwb", "w") as file:
        file["a/b"] = h5py.SoftLink("/a")  # NWB has such links
        check_all_inside(file, "links.nwb", soft_links=True)
    os.mkfifo(pipe)  # reading it would wait for ever
    with h5py.File(path, "a") as file:
        count = len(file["units/spike_times"])
        del file["units/spike_times"]
        file["units"].create_dataset("spike_times", (count,), "f8", external=[(str(pipe), 0, 8 * count)])
    with pytest.raises(LapsusError, match="spike_times is kept outside of this file"):
        read_nwb(path)


def test_layouts_are_checked():
    events = {"stimulus": "a", "cue": "b", "response": "c"}
    with pytest.raises(LapsusError, match="no event 'go'"):
        Layout(events | {"go": "d"}, "r", "x", "c")
    with pytest.raises(LapsusError, match="no event 'cue'"):
        Layout({"stimulus": "a", "response": "c"}, "r", "x", "c")
    with pytest.raises(LapsusError, match="unit 'hours'"):
        Layout(events, "r", "x", "c", unit="hours")
    with pytest.raises(LapsusError, match="does not say which columns hold response, cued"):
        layout_of({"events": events, "report": "r"})
    with pytest.raises(LapsusError, match="unknown field 'colour'"):
        layout_of({"events": events, "report": "r", "response": "x", "cued": "c", "colour": "q"})
    with pytest.raises(LapsusError, match="does not describe"):
        layout_of({"events": events, "report": 3, "response": "x", "cued": "c"})
    with pytest.raises(LapsusError, match="centre"):
        Layout(events, "r", "x", "c", centre=[0.5])


# --- Comparing ---


def counted(mechanism, trials=900, units=40, seed=0, swap=0.1, noise=0.0):
    """A population that errs in a known way as a recording of Poisson counts, 10 spikes/s on average."""
    made = synthetic_population(mechanism, trials=trials, swap_probability=swap, noise=noise, seed=seed)
    rates = 10 * as_neurons(made["activity"].to_numpy(), units, 0.5, seed)
    counts = np.random.default_rng(seed).poisson(0.05 * rates).astype(np.uint8)
    recording = made.assign(activity=(("trial", "time", "unit"), counts)).assign_attrs(bin=0.05)
    return recording.assign_coords(time=0.05 * made["time"])


@pytest.mark.slow
def test_the_control_holds_the_report_fixed():
    """Memory that is that of the reported item alone tells swaps by the report; among equal reports it does not."""
    found = decoding(counted("misinterpretation", trials=1500), every=17, hold_report=True)
    assert found.at_response > 0.8
    assert found.same_report[-1] == pytest.approx(0.5, abs=0.12)
    # A population whose memory stays that of the cued item is told from trials that report the same.
    late = decoding(counted("late switch", trials=1500), every=17, hold_report=True)
    after_cue = np.flatnonzero(late.times > 0)[0]
    assert late.same_report[after_cue] > 0.75 and late.auc[after_cue] < 0.65


def test_the_interval_of_an_area_is_that_of_mann_and_whitney_where_there_is_nothing_to_read():
    rng, swap = np.random.default_rng(0), np.arange(400) < 60
    outcome = SimpleNamespace(swap=swap, correct=~swap)
    widths = [np.ptp(_interval(rng.standard_normal((1, 400)), outcome, rng)) for _ in range(20)]
    assert np.mean(widths) == pytest.approx(2 * 1.96 * np.sqrt(401 / (12 * 60 * 340)), rel=0.1)


def test_folds_hold_whole_conditions():
    items = SimpleNamespace(report=np.repeat([[0.1, 1], [0.2, 1], [0.3, 1], [0.4, 1]], 30, 0), cued=np.zeros(120, int))
    swap = np.arange(120) % 10 == 0
    fold = folds_by_condition(items, swap, 2, np.random.default_rng(0))
    assert [len(np.unique(fold[30 * k : 30 * k + 30])) for k in range(4)] == [1, 1, 1, 1]
    assert np.bincount(fold).tolist() == [60, 60]


@pytest.mark.slow
def test_a_recording_is_assigned_to_the_kind_that_it_was_made_from():
    kinds = ("misbinding", "misinterpretation")
    for kind in kinds:
        found = resemblance(counted(kind, seed=11), kinds, recordings=8, trials=600)
        assert found.kind == kind and found.scores[kind][0] > 0.9, found
        assert found.units == 40 and 60 < found.swaps < 120
        assert min(found.recovered.values()) >= 0.9
        assert found.sentence().startswith(f"Comparison: the recording resembles {kind}")
    again = resemblance(counted(kinds[-1], seed=11), kinds, recordings=8, trials=600)
    assert again == found


@pytest.mark.slow
def test_a_recording_of_another_kind_is_none_of_these():
    """Also where few recordings are asked for, which alone would leave no degrees of freedom to say so."""
    found = resemblance(counted("late switch", seed=11), "misbinding,misinterpretation", recordings=8, trials=600)
    assert found.kind == "none of these" and "as far away" in found.sentence()


@pytest.mark.slow
def test_kinds_that_cannot_be_told_apart_are_not_told_apart():
    """Two kinds by name that are one; and too few swaps."""
    twice = {name: kinds_of(["misbinding", "late switch"])["misbinding"] for name in ("one", "other")}
    found = resemblance(counted("misbinding", seed=5), twice, recordings=8, trials=600)
    assert found.kind == "cannot tell" and np.mean(list(found.recovered.values())) < 0.9
    few = resemblance(counted("misbinding", seed=5, swap=0.005), "misbinding,late switch")
    assert few.kind == "cannot tell" and "it takes 5 swaps" in few.sentence()


def toy(apart, count=24, seed=0):
    """Features of simulated recordings of two kinds, each of two networks in turn; the networks of a kind differ in the
    first feature, as kinds do in the second."""
    rng = np.random.default_rng(seed)
    noise = lambda: 0.5 * rng.standard_normal((count, 3))
    network = np.where(np.arange(count) % 2, 1.0, -1.0)
    return {name: noise() + np.stack([network, np.full(count, place), 0 * network], 1) for name, place in apart.items()}


def test_a_recording_is_recognised_without_the_recordings_of_its_own_network():
    """A kind of which one network is like another kind: that network is recognised only where its own recordings are
    among those that it is compared with."""
    found, same = toy({"one": 0.0, "other": 6.0}), np.zeros((3, 3))
    assert recovered(found, {"one": 2, "other": 2}, same) == {"one": 1.0, "other": 1.0}
    stray = np.arange(24) % 2 == 0
    mixed = {
        "one": found["one"],
        "other": np.where(stray[:, None], found["one"] + [0, 3, 0], found["other"] + [0, 6, 0]),
    }
    assert recovered(mixed, {"one": 1, "other": 1}, same)["other"] > 0.7
    assert recovered(mixed, {"one": 2, "other": 2}, same)["other"] == 0.5  # the network that is not stray


def test_the_answer_is_one_of_the_kinds_or_none_or_cannot_tell():
    sure, same, two = {"one": 1.0, "other": 1.0}, np.zeros((3, 3)), {"one": 2, "other": 2}
    far, near = (Discriminant.of(toy({"one": 0.0, "other": place}), two, same) for place in (6.0, 0.6))
    assert decision(far, sure, np.array([0.0, 6.0, 0.0])) == ("other", "")
    assert decision(far, sure, np.array([0.0, 6.0, 30.0]))[0] == "none of these"
    assert decision(near, sure, np.array([0.0, 0.3, 0.0])) == ("cannot tell", "it lies between the kinds")
    kind, why = decision(far, {"one": 0.7, "other": 0.9}, np.array([0.0, 6.0, 0.0]))
    assert kind == "cannot tell" and "80 % of simulated recordings" in why


def many_networks(rng, networks, recordings, spread):
    """Features of recordings of networks of one kind in turn: networks differ by `spread` [feature], recordings of one
    network by 1."""
    own = spread * rng.standard_normal((networks, len(spread)))
    return np.tile(own, (recordings, 1)) + rng.standard_normal((networks * recordings, len(spread)))


def test_the_spread_between_networks_is_recovered():
    rng, spread = np.random.default_rng(0), np.array([2.0, 1.0, 0.0])
    networks = {"one": 200, "other": 150, "single": 1}
    found = {kind: many_networks(rng, count, 6, spread) for kind, count in networks.items()}
    between = between_networks(found, networks)
    assert np.sqrt(np.diag(between)) == pytest.approx(spread, abs=0.15)
    assert np.linalg.eigvalsh(between).min() > -1e-9
    assert between_networks({"single": found["single"]}, {"single": 1}) is None


def test_a_recording_of_a_new_network_is_as_unlikely_as_is_said():
    """Of a kind with one network, recordings of other networks of this kind: one in a hundred is called less likely
    than one in a hundred. Without the spread between networks nearly all are."""
    rng, spread = np.random.default_rng(1), np.array([3.0, 1.0, 0.0])
    called: dict = {True: [], False: []}
    for _ in range(400):
        known = {"one": many_networks(rng, 1, 40, spread)}
        (value,) = many_networks(rng, 1, 1, spread)
        for allowed, rates in called.items():
            kinds = Discriminant.of(known, {"one": 1}, np.diag(allowed * spread**2))
            rates.append(kinds.unlikely(value) < 0.01)
    assert np.mean(called[True]) == pytest.approx(0.01, abs=0.012)
    assert np.mean(called[False]) > 0.3


def test_kinds_are_named_and_put_together():
    found = kinds_of("early = misbinding + misselection, late switch")
    assert {kind: len(sources) for kind, sources in found.items()} == {"early": 8, "late switch": 4}
    with pytest.raises(LapsusError, match="two kinds or more"):
        kinds_of("misbinding")
    with pytest.raises(LapsusError, match="nowhere"):
        kinds_of("early=nowhere,late switch")
    with pytest.raises(LapsusError, match="name is missing"):
        kinds_of("early=,late switch")


@pytest.mark.slow
def test_intervals_of_what_is_compared_are_no_narrower_than_the_spread_of_recordings():
    """The jackknife's standard error beside the s.d. over simulated recordings: it errs on the wide side."""
    pool = Pool.of(kinds_of("misselection,late switch")["misselection"][0], 1200, 1)
    made = partial(like, pool, swaps=40, correct=200, seconds=np.full(5, 0.3), rates=np.full(30, 10.0), depth=0.3)
    values, errors = [], []
    for seed in range(12):
        one = made(shared=0.05, seed=seed)
        fold = folds(one, seed)
        values.append(features(one, fold))
        errors.append(np.sqrt((_jackknife(_left_out(one, fold, seed)) ** 2).sum(0)))
    ratio = np.median(np.mean(errors, 0) / np.std(values, 0, ddof=1))
    assert 0.9 < ratio < 2.5


def test_noise_is_matched():
    """Reliability and noise correlations of simulated recordings are those that were asked for."""
    source = kinds_of(["misselection", "late switch"])["misselection"][0]
    pool = Pool.of(source, 900, 1)
    seconds, rates = np.array([0.15, 0.5, 0.15, 0.65, 0.65]), np.full(40, 10.0)
    made = partial(like, swaps=40, correct=400, seconds=seconds, rates=rates)
    for wanted in (Noise(0.05, 0.05, rates), Noise(0.15, 0.1, rates)):
        depth, shared = matched_noise(pool, made, wanted)
        found = noise_of(made(pool, depth=depth, shared=shared, seed=9))
        assert found.reliability == pytest.approx(wanted.reliability, abs=0.03)
        assert found.correlation == pytest.approx(wanted.correlation, abs=0.03)
        assert found.rates.mean() == pytest.approx(10, rel=0.05)


@pytest.mark.slow
def test_a_network_written_as_nwb_is_analysed_and_compared(nwb, tmp_path, monkeypatch):
    monkeypatch.setattr("lapsus.mechanism.resemblance.RECORDINGS", 12)
    options = ("--conditions", 700, "--trials", 1, "--nwb", "made.nwb", "--units", 40, "--gain", 20)
    lapsus("simulate", "index-swap-10", *options, cwd=tmp_path)
    assert "--force" in lapsus("simulate", "index-swap-10", *options, cwd=tmp_path, code=2)
    asked = ("analyse", "made.nwb", "--against", "misbinding,late switch", "--json", "-o", "out")
    first, second = (json.loads(lapsus(*asked, cwd=tmp_path)) for _ in range(2))
    for found in (first, second):
        found["row"].pop("seconds")
    assert first == second
    assert first["units"] == 40 and first["swaps"] > 30 and set(first["scores"]) == {"misbinding", "late switch"}
    assert first["kind"] in ("late switch", "none of these", "cannot tell")
    assert first["decoding"]["before_interval"][0] < first["row"]["decoding_before_cue"]
    assert first["features"].keys() == first["expected"]["misbinding"].keys()
    assert (tmp_path / "out" / "made-comparison.png").stat().st_size > 10_000
    assert first["clock"] == "s" and first["decoding"]["same_report"]
    assert "needs replays" in first["left_out"]["commitment"]


@pytest.mark.slow
def test_intervals_over_sessions_are_those_of_a_jackknife():
    parts = []
    for seed in range(3):
        made = synthetic_population("misbinding", trials=300, swap_probability=0.2, units=8, seed=seed)
        parts.append(count_spikes(Session.of(*spike_session(made, gain=30)), "100ms"))
    ask = lambda sessions: analyse(pseudo_population(sessions), only=("decoding",))
    value, low, high = over_sessions(parts, ask(parts))["decoding_before_cue"]
    without = [ask([*parts[:k], *parts[k + 1 :]]).decoding.before_cue for k in range(3)]
    error = np.sqrt(2 / 3 * np.sum((np.array(without) - np.mean(without)) ** 2))
    assert value == ask(parts).decoding.before_cue > 0.6
    assert (high - low) / 2 == pytest.approx(4.3027 * error, rel=1e-3) and error > 0


def test_the_interval_of_a_mean_over_sessions_is_that_of_students_t(monkeypatch):
    sessions = np.random.default_rng(0).normal(3.0, 1.0, 7).tolist()
    answer = lambda pooled, **_: SimpleNamespace(answers={}, row=lambda: {"mean": float(np.mean(pooled))})
    monkeypatch.setattr("lapsus.mechanism.asking.analyse", answer)
    monkeypatch.setattr("lapsus.mechanism.asking.pseudo_population", lambda pooled, seed: pooled)
    value, low, high = over_sessions(sessions, answer(sessions))["mean"]
    expected = stats.ttest_1samp(sessions, 0).confidence_interval(0.95)
    assert (low, value, high) == pytest.approx((expected.low, np.mean(sessions), expected.high))


@pytest.mark.slow
def test_sessions_that_differ_widen_the_intervals_as_much_as_results_scatter():
    """Experiments of eight sessions with six neurons each, made again and again: sessions are equally deeply modulated,
    or some far more than others. The standard error over sessions is that of new experiments."""
    pool, per = Pool.of(kinds_of("misselection,late switch")["late switch"][0], 1200, 1), 6
    decoded, gone = FEATURES.index("decoder, late delay 2"), FEATURES.index("way to the error, late delay 2")
    scatter, claimed = {}, {}
    for effect in (0.0, 1.5):
        values, errors = [], []
        for seed in range(12):
            depth = 0.4 * np.exp(effect * np.random.default_rng(seed).standard_normal(8))
            made = partial(like, pool, swaps=40, correct=200, seconds=np.full(5, 0.3), rates=np.full(8 * per, 10.0))
            one = replace(made(depth=np.repeat(depth, per), shared=0.05, seed=seed), session=np.repeat(range(8), per))
            fold = folds(one, seed)
            values.append(features(one, fold))
            errors.append((_jackknife(_left_out(one, fold, seed)) ** 2).sum(0))
        scatter[effect], claimed[effect] = np.std(values, 0, ddof=1), np.sqrt(np.mean(errors, 0))
        assert 0.8 < np.median(claimed[effect] / scatter[effect]) < 1.8
    for feature in (decoded, gone):
        assert scatter[1.5][feature] > 1.3 * scatter[0.0][feature]
        assert claimed[1.5][feature] > 1.3 * claimed[0.0][feature]


def test_durations_without_a_unit_are_taken_for_seconds_and_do_not_pass_for_milliseconds():
    with pytest.raises(LapsusError, match="bins of 50 s no bin is in the cue"):
        count_spikes(session(), "50")
    with pytest.raises(LapsusError, match="`smooth` of 20 s is longer than the trial"):
        count_spikes(session(), smooth="20")


def test_counts_that_would_not_fit_in_memory_are_a_sentence(monkeypatch):
    found = session()  # 60 trials × 60 bins × 6 units
    monkeypatch.setattr("lapsus.recordings.counts.MOST_BYTES", 60 * 60 * 6)
    assert count_spikes(found).sizes["time"] == 60
    with pytest.raises(LapsusError, match="no `smooth`"):
        count_spikes(found, smooth="50ms")
    with pytest.raises(LapsusError, match="give a longer `bin`, or fewer"):
        count_spikes(found, "20ms")
