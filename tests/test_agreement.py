"""Answers that agree with one another, and sentences that follow from the data: each on data for which it is false."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lapsus.circular import embed, wrap
from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import QUICK
from lapsus.mechanism import Mechanism, analyse, summary
from lapsus.mechanism.activity import activity_dataset, items
from lapsus.mechanism.clock import Clock, clock_of
from lapsus.mechanism.commitment import commitment_curve
from lapsus.mechanism.decoding import Decoding, decoding
from lapsus.mechanism.drawing import figure_of, percent
from lapsus.mechanism.error_type import classify_swaps
from lapsus.mechanism.plane_alignment import adjusted_alignment, plane_alignment, pre_and_post_cue
from lapsus.mechanism.single_trials import AlignmentTest
from lapsus.mechanism.synthetic import MECHANISMS, synthetic_population
from lapsus.mechanism.transplants import transplant_curves

ENDS = {"initial": -28.0, "prestimulus": -25.0, "stimulus": -20.0, "delay": -5.0, "cue": 0.0, "denoise": 40.0}


def curve(delay=0.0, cue=0.0, start=0.0):
    """Commitment of outcomes of which so much is decided at the start, by the end of delay 1 and by that of the cue."""
    rng = np.random.default_rng(0)
    shares = [start, start, start, max(delay, start), max(cue, delay, start), 1.0]
    choice = rng.random((20, 60, 1)) < 0.5
    known = rng.random((20, 60, 1))
    outcome = [np.where(known < s, choice, rng.random((20, 60, 4)) < 0.5) for s in shares]
    return commitment_curve(np.stack(outcome, 1).astype(float), np.array(list(ENDS.values())), ENDS)


def carried(by):
    p = {"swap": 0.9, "correct": 0.1, "x_from_swap": 0.1, "m_from_swap": 0.1, "null": 0.1} | {f"{by}_from_swap": 0.9}
    return transplant_curves(np.arange(3.0), {name: np.full((6, 3), v) for name, v in p.items()}, np.ones(6))


TYPES = {}


def of(name):
    if name not in TYPES:
        TYPES[name] = classify_swaps(synthetic_population(name, trials=1000, seed=1), every=30, repeats=60)
    return TYPES[name]


# --- Shares of the outcome ---


def test_shares_by_part_of_the_trial_add_up_to_one():
    found = curve(delay=0.3, cue=0.6).shares
    assert list(found) == ["before the stimuli", "stimulus", "first delay", "cue", "second delay"]
    assert sum(share for share, _, _ in found.values()) == pytest.approx(1)
    for part, expected in (("before the stimuli", 0), ("first delay", 0.3), ("cue", 0.3), ("second delay", 0.4)):
        value, low, high = found[part]
        assert value == pytest.approx(expected, abs=0.08) and 0 <= low <= value <= high <= 1, part


def test_no_percentage_lies_below_zero_or_above_a_hundred():
    """Estimates without bias do, where there is nothing: "-1 % [-1, -1]"."""
    assert percent((-0.012, -0.014, -0.01)) == "0 % [0, 0]" and percent((1.02, 0.9, 1.1)) == "100 % [90, 100]"
    nothing = replace(curve(), share=np.full(6, -0.01), low=np.full(6, -0.02), high=np.full(6, -0.005))
    assert "-" not in Mechanism(commitment=nothing).sentence("commitment").split("];")[1]


# --- The type of error agrees with commitment and transplants ---


@pytest.mark.parametrize(
    "name, when, by, named",
    [
        ("misbinding", {"start": 0.9}, "m", "misbinding"),
        ("misbinding", {"delay": 0.1}, "m", None),
        ("misselection", {"delay": 0.1, "cue": 0.9}, "m", "misselection"),
        ("misselection", {"delay": 0.1, "cue": 0.2}, "m", None),
        ("misinterpretation", {"delay": 0.1, "cue": 0.9}, "m", "misinterpretation"),
        ("misinterpretation", {"delay": 0.9}, "m", "prior inclination"),
        ("late switch", {"cue": 0.1}, "x", "late switch"),
        ("late switch", {"cue": 0.7}, "x", None),
        ("late switch", {"cue": 0.1}, "m", "late switch"),
        ("late switch", {"delay": 0.3, "cue": 0.6}, "m", "mixed"),
        ("misselection", {"delay": 0.45, "cue": 0.6}, "m", "mixed"),
        ("late switch", {"delay": 0.9}, "m", "prior inclination"),
        ("prior inclination", {"delay": 0.9}, "m", "prior inclination"),
        ("prior inclination", {"delay": 0.1, "cue": 0.9}, "m", "misinterpretation"),
    ],
)
def test_a_type_is_given_where_the_causal_measures_agree(name, when, by, named):
    found = Mechanism(commitment=curve(**when), transplant=carried(by), error_type=of(name))
    said = found.sentence("error_type")
    assert found.error == named and found.row()["error_type"] == (named or "not known")
    if named is None:
        assert f"memory suggests {name}, but" in said and f"Error type: {name}" not in said
        assert "No type of error is named" in summary([found]) and "error_type" in found.contradicted
    else:
        assert f"{named}" in said.replace("switches", "switch") and "but only" not in said


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_recording_of_each_type_is_named(name):
    """100 units and 400 trials, without commitment and transplants."""
    data = synthetic_population(name, trials=400, units=100, swap_probability=0.15, seed=4)
    found = Mechanism(error_type=classify_swaps(data, every=30, repeats=60), decoding=decoding(data, every=12))
    assert found.error == name


def test_a_recording_names_no_late_switch_where_part_of_it_shows_earlier():
    """How much of the outcome is decided early a recording cannot say; that some of it is, it can."""
    data = synthetic_population("late switch", trials=400, units=100, swap_probability=0.15, seed=4)
    answer, read = classify_swaps(data, every=30, repeats=60), decoding(data, every=12)
    assert Mechanism(error_type=answer, decoding=read).error == "late switch"
    begun = Mechanism(error_type=replace(answer, at_offset=(0.2, 0.15, 0.25)), decoding=read)
    assert begun.error is None and "when the cue ends" in begun.sentence("error_type")
    inclined = Mechanism(error_type=answer, decoding=replace(read, inclined=0.74))
    assert inclined.error is None and "before the cue (area 0.74)" in inclined.sentence("error_type")


@pytest.mark.parametrize("seed", range(3))
def test_a_recording_with_too_much_noise_does_not_say_that_there_is_no_mark(seed):
    data = synthetic_population("misselection", trials=400, units=100, swap_probability=0.3, noise=9.0, seed=seed)
    found = Mechanism(error_type=classify_swaps(data, every=30, repeats=60))
    assert found.error_type.weights["misselection"][2] < 0.5  # it looks as if there were none
    assert found.error is None and found.error_type.known < 0.5
    assert "known too poorly" in found.sentence("error_type") and "known too poorly" in summary([found])


def test_an_inclination_before_the_cue_is_not_seen_where_there_is_none():
    found = decoding(synthetic_population("misinterpretation", trials=800), every=24)
    assert abs(found.inclined - 0.5) < 0.12
    assert decoding(synthetic_population("prior inclination", trials=800), every=24).inclined > 0.9


# --- None of these ---


def _wrong_colour_selected(seed):
    """Items and cue are held correctly throughout; units of their own hold the selected colour from the cue on."""
    data = synthetic_population(trials=1500, swap_probability=0.0, seed=seed)
    shown, rng = items(data), np.random.default_rng(seed + 50)
    selected = np.where(rng.random(1500) < 0.2, shown.distractor, shown.target)
    on = (data["time"] >= -5).to_numpy()[None, :, None]
    own = on * (embed(selected) @ rng.standard_normal((2, 8)) * 0.5)[:, None]
    own = own + 0.5 * rng.standard_normal(own.shape)
    activity = np.concatenate([data["activity"].to_numpy(), own], 2)
    response = wrap(selected + 0.1 * rng.standard_normal(1500))
    return data.drop_vars("activity").assign(
        activity=(("trial", "time", "unit"), activity), response=("trial", response)
    )


@pytest.mark.parametrize("seed", range(3))
def test_none_of_the_types_is_named_where_none_explains_enough(seed):
    found = Mechanism(error_type=classify_swaps(_wrong_colour_selected(seed), every=30, repeats=60))
    assert found.error == "none of these" == found.row()["error_type"]
    assert found.error_type.explained[2] < 0.75
    assert "none of these types describes the swaps" in found.sentence("error_type")
    assert "None of the types" in summary([found])


def _selected_by_units_of_their_own(seed):
    """Items, cue and selected colour are each held by units of their own; the last alone are wrong in swap trials."""
    rng, trials, time = np.random.default_rng(seed), 1200, np.arange(-24.0, 26.0)
    table = pd.DataFrame(rng.uniform(-np.pi, np.pi, (trials, 2)), columns=["report_1", "report_2"])
    report, cued = table.to_numpy(), rng.integers(0, 2, trials)
    selected = report[np.arange(trials), np.where(rng.random(trials) < 0.18, 1 - cued, cued)]
    held = [embed(values) @ rng.standard_normal((2, 10)) for values in (*report.T, selected)]
    cue = np.where(cued == 0, 1, -1)[:, None] * rng.standard_normal((1, 6))
    on, since_cue = (time >= -20)[None, :, None], (time >= -5)[None, :, None]
    parts = [on * held[0][:, None], on * held[1][:, None], 0.7 * since_cue * held[2][:, None], since_cue * cue[:, None]]
    activity = np.concatenate(parts, 2) + 0.7 * rng.standard_normal((trials, len(time), 36))
    epoch = np.select(
        [time < -20, time < -15, time < -5, time < 0], ["prestimulus", "stimulus", "delay", "cue"], "denoise"
    )
    table = table.assign(cued=cued + 1, response=wrap(selected + 0.12 * rng.standard_normal(trials)))
    return activity_dataset(activity, table, time=time, epoch=epoch)


@pytest.mark.parametrize("seed", [2, 3])
def test_none_of_the_types_is_named_where_they_cannot_be_told_apart_and_explain_too_little(seed):
    answer = classify_swaps(_selected_by_units_of_their_own(seed), every=30, repeats=60)
    assert answer.decision == "cannot tell" and answer.explained[2] < 0.75
    found = Mechanism(error_type=answer)
    assert found.error == "none of these" and "cannot be told" not in found.sentence("error_type") + summary([found])


def test_how_much_a_type_explains_is_said():
    open_between = Mechanism(error_type=replace(of("misselection"), decision="cannot tell"))
    assert open_between.error is None and "The predictions explain" in open_between.sentence("error_type")
    explained = of("misselection").explained
    assert explained[0] > 0.9 and explained[1] <= explained[0] <= explained[2]
    said = Mechanism(error_type=of("misselection")).sentence("error_type")
    assert f"The predictions explain {percent(explained)}" in said


# --- Sentences that follow from the data ---


def test_the_odds_are_said_to_be_set_before_the_cue_only_where_a_test_supports_it():
    late = curve(cue=0.02)
    null, shown = (AlignmentTest(1.04, 0.97, 1.11, p, 400, 4000) for p in (0.28, 0.001))
    for tested in (None, null):
        assert "odds" not in Mechanism(commitment=late, prediction=tested).sentence("commitment")
    assert "changes the odds" in Mechanism(commitment=late, prediction=shown).sentence("commitment")


def test_the_cue_is_not_said_to_be_read_where_a_decoder_tells_swaps_when_it_ends():
    times = np.arange(-20.0, 41.0)
    area = np.interp(times, [-5, 0, 20, 40], [0.5, 0.65, 0.9, 0.95])
    read = Decoding(times, area, np.full(61, 0.5), -5.0, 600, 3400, 0, 0.0)
    for found in (Mechanism(error_type=of("late switch")), Mechanism(error_type=of("late switch"), decoding=read)):
        said = found.sentence("error_type") + summary([found])
        assert ("read correctly" in said) == (found.decoding is None)
        assert ("when the cue ends (AUC 0.65)" in said) == (found.decoding is not None)


def test_missing_swaps_are_those_of_the_trials_that_were_looked_at():
    """ "no swap trials" stood after "611 swap trials": other trials, of which none was surely a swap."""
    data = synthetic_population(trials=600, swap_probability=0.0)
    with pytest.raises(LapsusError, match=r"^no swap trials among 600$"):
        decoding(data)


# --- Planes of a recording ---


def test_planes_of_items_in_disjoint_units_are_not_called_aligned():
    """Nothing is shared; colours keep a margin, which alone puts the published statistic at a half."""
    data = synthetic_population(trials=1200, seed=3)
    shown, rng = items(data), np.random.default_rng(0)
    colours = embed(shown.report)
    held = np.concatenate([colours[:, k] @ rng.standard_normal((2, 12)) for k in (0, 1)], 1)
    on = (data["epoch"] != "prestimulus").to_numpy()[None, :, None]
    activity = on * held[:, None] + 0.5 * rng.standard_normal(data["activity"].shape)
    data = data.assign(activity=data["activity"].copy(data=activity))
    published = pre_and_post_cue(plane_alignment(data))[0][0]
    found = adjusted_alignment(data, repeats=20)
    assert published > 0.3 and found.before[0] < 0.1 and found.before[1] <= found.before[0] <= found.before[2]
    assert found.before[0] < found.null_before[2] < 0.5
    said = analyse(data, only=("alignment",), sizes=QUICK).sentence("alignment")
    assert "shuffled colours give" in said and "The published statistic, which has a bias, gives" in said


def test_the_interval_of_the_alignment_of_planes_has_the_angle_in_it():
    """Planes 0.6 rad apart in few, noisy trials; 95 % of intervals would have it if noise did not add to the angle."""
    covered = 0
    for seed in range(16):
        data = synthetic_population(trials=300, before=0.6, after=0.3, noise=1.2, seed=seed)
        value, low, high = adjusted_alignment(data, repeats=20, seed=seed).before
        assert 0 <= low <= value <= high <= 1
        covered += low <= np.cos(0.6) <= high
    assert covered >= 8


# --- Clocks ---


def _timed(scale, units=None):
    data = synthetic_population("late switch", trials=500)
    data = data.assign_coords(time=data["time"] * scale)
    data["time"].attrs.update({} if units is None else {"units": units})
    return data


@pytest.mark.parametrize(
    "scale, units, unit", [(1, None, "steps"), (50.0, None, "ms"), (0.05, None, "s"), (0.05, "s", "s")]
)
def test_times_have_the_unit_of_the_recording(scale, units, unit):
    data = _timed(scale, units)
    assert clock_of(data) == Clock(unit)
    found = analyse(data, only=("error_type", "decoding"), sizes=QUICK)
    said = found.sentence("error_type")
    assert ("steps)" in said) == (unit == "steps") and f" {'s' if unit == 'steps' else unit}" in said
    (label,) = {ax.get_xlabel() for ax in figure_of("decoding", found).axes}
    assert label == f"time from cue offset ({'ms' if unit == 'ms' else 's'})"
    assert found.row()["clock"] == found.to_dict()["clock"] == unit


def test_bins_of_a_millisecond_are_not_steps():
    fine = (
        synthetic_population(trials=60)
        .isel(time=np.repeat(np.arange(68), 20))
        .assign_coords(time=np.arange(1360) - 800)
    )
    assert clock_of(fine) == Clock("ms") and clock_of(fine.isel(time=slice(0, 100))) == Clock("steps")
    assert clock_of(fine.assign(readout=(("dim", "unit"), np.eye(2, 24)))) == Clock("steps")


def test_a_unit_that_is_not_known_is_refused():
    with pytest.raises(LapsusError, match="must be s, ms or steps"):
        clock_of(_timed(1, "fortnights"))


def test_steps_of_networks_are_fifty_milliseconds():
    assert Clock().text(20) == "1.00 s (20 steps)" and Clock().text(1) == "0.05 s (1 step)"
    assert Clock("ms").text(350.0) == "350 ms" and Clock("s").text(0.35) == "0.35 s"
    assert list(Clock().shown([20, 40])) == [1.0, 2.0] and list(Clock("ms").shown([20])) == [20.0]


def test_a_dataset_may_name_the_unit_of_its_time():
    made = synthetic_population(trials=300)
    table = made[["cued", "report_1", "report_2", "response"]].to_dataframe().reset_index(drop=True)
    given = {"time": made["time"].to_numpy() * 50.0, "epoch": made["epoch"].to_numpy(), "time_unit": "ms"}
    assert clock_of(activity_dataset(made["activity"].to_numpy(), table, **given)) == Clock("ms")
