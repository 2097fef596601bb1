"""The five questions on systems with known answers: closed forms, written-down networks, made populations."""

import numpy as np
import pytest
import torch
import xarray as xr
from made_networks import MemoryDecides, ResponseWalks, cells, made, nearest_counts
from scipy import stats

from lapsus.circular import embed, wrap
from lapsus.errors import LapsusError
from lapsus.mechanism import commitment as commitment_analysis
from lapsus.mechanism.activity import items
from lapsus.mechanism.colour_code import prediction_model
from lapsus.mechanism.commitment import commitment
from lapsus.mechanism.decoding import decoding
from lapsus.mechanism.discriminants import discriminant_scores, random_cosine, roc_area
from lapsus.mechanism.dynamics import divergence
from lapsus.mechanism.error_type import READABLE, classify_swaps, share_misread
from lapsus.mechanism.outcomes import guess_of, outcomes, responsibilities
from lapsus.mechanism.pushes import push_effects
from lapsus.mechanism.registry import Mechanism
from lapsus.mechanism.rings import fit_ring, fit_ring_pair
from lapsus.mechanism.slow_points import (
    Step,
    distinct_points,
    find_slow_points,
    jacobian,
    manifold_dimension,
    slow_modes,
    time_constants,
)
from lapsus.mechanism.swap_axis import swap_axis
from lapsus.mechanism.synthetic import MECHANISMS, synthetic_population
from lapsus.mechanism.transplants import transplants
from lapsus.networks import DendriticTree, PointNeurons, TwoLayer

pytestmark = pytest.mark.filterwarnings("ignore:The torch reference runs")


def _said(found):
    return found.sentence("error_type")


# --- Which trials are swaps ---


def test_outcomes_are_bayes_rule():
    response, report = np.array([0.1, 2.1, 1.0]), np.tile([0.0, 2.0], (3, 1))
    given = response, report, np.zeros(3, int), np.tile([0.8, 0.2], (3, 1)), 0.2
    kappa = 1 / 0.04
    density = stats.vonmises.pdf(response[:, None], kappa, loc=report)
    joint = density * [0.8, 0.2]
    swap, correct = responsibilities(*given)
    np.testing.assert_allclose([correct, swap], (joint / joint.sum(1, keepdims=True)).T, rtol=1e-9)
    swap, correct = responsibilities(*given, guess=0.1)
    joint = 0.9 * joint
    np.testing.assert_allclose([correct, swap], (joint / (joint.sum(1, keepdims=True) + 0.1 / (2 * np.pi))).T)


def test_guesses_are_neither_swaps_nor_correct():
    """A tenth guesses anywhere; nearest items would call half of the guesses swaps."""
    rng = np.random.default_rng(0)
    report = wrap(rng.uniform(-np.pi, np.pi, (4000, 1)) + np.array([0.0, 2.0]))
    kind = rng.choice(3, 4000, p=[0.87, 0.03, 0.1])
    at_item = report[np.arange(4000), np.minimum(kind, 1)] + 0.1 * rng.standard_normal(4000)
    response = wrap(np.where(kind == 2, rng.uniform(-np.pi, np.pi, 4000), at_item))
    assert guess_of(response, report, 0.1) == pytest.approx(0.1, abs=0.02)
    found = outcomes(response, report, np.zeros(4000, int))
    assert found.probability.mean() == pytest.approx(0.03, abs=0.006)
    assert (kind[found.swap] == 1).mean() > 0.8 and (kind[found.correct] == 0).mean() > 0.98
    # Nearest items put the rate of swaps at 0.08, so that a response is surely one within 1.18 s.d.: 76 % of them.
    assert found.swap[kind == 1].mean() == pytest.approx(0.76, abs=0.1) and found.swap[kind == 2].mean() < 0.15


def test_responses_between_items_are_left_out():
    rng = np.random.default_rng(0)
    report = np.tile([0.0, 1.0], (400, 1))
    response = np.r_[0.1 * rng.standard_normal(300), 1 + 0.1 * rng.standard_normal(90), np.full(10, 0.51)]
    found = outcomes(response, report, np.zeros(400, int))
    assert found.swap.sum() == pytest.approx(90, abs=2) and found.correct[:300].mean() > 0.98
    assert found.unclear >= 8


# --- When: commitment ---


def _walk(conditions, groups, replays, steps, rng):
    """Outcomes 1[sum of `steps` normals > 0] of walks that share their first t steps, [condition, t, group, replay]."""
    shared = np.cumsum(rng.standard_normal((conditions, groups, steps)), -1)
    found = []
    for t in range(steps + 1):
        past = shared[..., t - 1] if t else np.zeros((conditions, groups))
        rest = np.sqrt(steps - t) * rng.standard_normal((conditions, groups, replays))
        found.append((past[..., None] + rest > 0).astype(float))
    return np.stack(found, 1)


def test_commitment_of_a_random_walk_is_the_arcsine_law():
    steps = 12
    times = np.arange(steps + 1.0)
    found = commitment_analysis.commitment_curve(
        _walk(40, 60, 4, steps, np.random.default_rng(0)), times, {"first": 4.0, "second": 12.0}
    )
    exact = 2 / np.pi * np.arcsin(times / steps)
    np.testing.assert_allclose(found.share, exact, atol=0.04)
    assert np.mean((found.low <= exact + 1e-9) & (exact <= found.high + 1e-9)) > 0.8
    assert found.half_time == pytest.approx(steps * np.sin(np.pi / 4), abs=0.5)
    assert found.half_low < steps * np.sin(np.pi / 4) < found.half_high
    assert found.by_epoch["first"] == pytest.approx(exact[4], abs=0.04)
    assert sum(found.by_epoch.values()) == pytest.approx(1)


def test_commitment_is_unbiased_where_nothing_is_decided():
    """Few replays would otherwise look like agreement within groups."""
    rng = np.random.default_rng(1)
    outcome = (rng.random((400, 1, 4, 2)) < 0.3).astype(float)
    between, total = commitment_analysis.between_share(outcome)
    assert abs(between.mean()) < 0.01 and total.mean() == pytest.approx(0.21, abs=0.01)


def test_commitment_without_swaps_says_so():
    with pytest.raises(LapsusError, match="no swap trials"):
        commitment_analysis.commitment_curve(np.zeros((3, 2, 4, 3)), np.arange(2.0), {})


def test_commitment_of_a_network_that_walks(monkeypatch):
    """x is a random walk and the items' bisector goes through the origin: the arcsine law in the noise's variance."""
    nearest_counts(monkeypatch)
    model = made(ResponseWalks())
    found = commitment(model, conditions=24, groups=64, replays=4, every=3)
    variance = np.concatenate([[1.0], 1 + np.cumsum(np.square(model.timeline.sigma))])
    steps = (found.times - found.times[0]).astype(int)
    exact = 2 / np.pi * np.arcsin(variance[steps] / variance[-1])
    np.testing.assert_allclose(found.share, exact, atol=0.06)
    assert list(found.by_epoch) == ["initial", "prestimulus", "stimulus", "delay", "cue", "denoise"]
    assert found.share[-1] == 1


# --- What: transplants and pushes ---


def test_transplants_find_what_carries_the_outcome(monkeypatch):
    nearest_counts(monkeypatch)
    options = {"conditions": 12, "trials": 48, "pairs": 6, "replays": 8, "every": 3}
    walks, decides = transplants(made(ResponseWalks()), **options), transplants(made(MemoryDecides()), **options)
    assert walks.carried_by_x[0] == pytest.approx(1, abs=0.1) and abs(walks.carried_by_m[0]) < 0.1
    early = np.flatnonzero(decides.times <= 0)
    assert (decides.m_from_swap - decides.correct)[early].mean() > 3 * (decides.x_from_swap - decides.correct)[
        early
    ].mean()
    assert decides.carried_by_m[0] > 0.4
    for found in (walks, decides):
        assert (found.swap >= found.correct - 0.05).all() and abs(found.null - found.correct).max() < 0.25


def test_push_effects_recover_a_slope():
    sizes, rng = np.array([-2.0, 0.0, 2.0]), np.random.default_rng(0)
    chance = lambda slope: 1 / (1 + np.exp(-(-1 + slope * sizes)))
    draw = lambda slope: rng.binomial(200, chance(slope), (60, 3)) / 200
    found = push_effects(0, sizes, {"axis": draw(0.5), "random": draw(0.0)}, 200)
    assert found.slope["axis"][1] < 0.5 < found.slope["axis"][2]
    assert found.slope["random"][1] < 0 < found.slope["random"][2]
    assert found.against_random["axis"][1] > 0.3


# --- Along which direction ---


def test_swap_axis_is_found_and_shared():
    found = swap_axis(*cells(2.0, 1.0))
    assert found.auc > 0.97 and found.low > 0.95 and abs(found.null - 0.5) < 0.05
    assert found.shared > 0.95 and found.across_colours > 0.9 and found.shared_null < 0.8
    assert found.auc_over_time[0] > 0.95


def test_swap_axis_that_turns_with_location_is_not_shared():
    found = swap_axis(*cells(2.0, 1.0, turn=np.pi / 2))
    assert found.auc > 0.97 and found.shared < 0.3


def test_colour_alone_is_no_swap_axis():
    """The population holds the reported colour and nothing else: not holding it fixed would look like an axis."""
    found = swap_axis(*cells(0.0, 2.0))
    assert abs(found.auc - 0.5) < 0.06 and found.colour_confound > 0.95


def test_held_out_area_has_a_fair_null_for_few_swaps():
    rng = np.random.default_rng(0)
    areas = []
    for _ in range(40):
        m, stimulus = rng.standard_normal((120, 8)), np.repeat(np.arange(12), 10)
        swap = np.zeros(120, dtype=bool)
        swap[rng.choice(120, 12, replace=False)] = True
        areas.append(roc_area(discriminant_scores(m, swap, stimulus), swap))
    assert abs(np.mean(areas) - 0.5) < 0.04


def test_random_cosine_is_exact_in_whole_dimensions():
    assert random_cosine(2) == pytest.approx(2 / np.pi) and random_cosine(3) == pytest.approx(0.5)


def test_rings_are_fitted_directly():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((12, 12)))[0].T
    colour, recalled = rng.uniform(-np.pi, np.pi, 1200), rng.random(1200) < 0.6
    # The normal has less variance than noise along another direction: it is no third principal component.
    m = 1.5 * embed(colour + 0.7) @ basis[:2] + np.where(recalled, 0.0, 0.8)[:, None] * basis[2]
    m = m + 0.1 * rng.standard_normal(m.shape) + 0.5 * rng.standard_normal((1200, 1)) * basis[4]
    pair = fit_ring_pair(m, colour, recalled)
    assert pair.normal @ basis[2] > 0.97 and pair.distance == pytest.approx(8, rel=0.25)
    assert pair.parallel > 0.99 and pair.explained > 0.95
    np.testing.assert_allclose(pair.recalled.radii, 1.5, rtol=0.05)
    at = np.array([-2.0, 0.3])
    expected = pair.recalled.centre + 1.5 * embed(at + 0.7) @ basis[:2]
    np.testing.assert_allclose(pair.recalled.at(at), expected, atol=0.15)
    m = m + 2.0 * rng.standard_normal((1200, 1)) * basis[4]
    ring = fit_ring(m, colour)
    at_zero = ring.centre + (np.cos(ring.phase) * ring.plane[0] + np.sin(ring.phase) * ring.plane[1]) * 1.5
    assert np.linalg.norm((at_zero - ring.centre) - 1.5 * embed(0.7) @ basis[:2]) < 0.1
    assert ring.dimensions == 3  # the two of the ring and the noisy one before them
    assert fit_ring(m, rng.permutation(colour)).explained < 0.05


# --- Which kind ---


@pytest.mark.parametrize("name", MECHANISMS)
def test_each_kind_is_recognised(name):
    found = classify_swaps(synthetic_population(name, trials=1000, seed=1), every=12, repeats=100)
    # A prior inclination shows before the cue, in no direction in which colours are held (tests/test_agreement.py).
    name = "misinterpretation" if name == "prior inclination" else name
    assert found.decision == name
    looks_like = "misinterpretation" if name == "late switch" else name
    for kind, (value, low, high) in found.weights.items():
        assert value == pytest.approx(float(kind == looks_like), abs=0.1) and low <= value <= high
    assert (found.onset < -5) == (name == "misbinding") and (found.onset > 5) == (name == "late switch")
    # How far swap trials have come at cue offset, and whether the cue was read as the other one.
    assert found.at_offset[0] == pytest.approx(float(name != "late switch"), abs=0.1)
    if name in ("misinterpretation", "late switch"):
        assert found.misread[0] == pytest.approx(float(name == "misinterpretation"), abs=0.1)
        assert found.cue_read is (name == "late switch") and found.misread_error < 0.1
        over_time = found.misread_over_time[found.times > 30]
        assert len(over_time) and over_time == pytest.approx(np.ones(len(over_time)), abs=0.1)
    assert np.isnan(found.misread_over_time[found.times < -5]).all()


@pytest.mark.slow
def test_a_cue_that_memory_does_not_hold_decides_nothing():
    """Memory that does not hold the cue before the middle of delay 2: trials that go over then are not called late
    switches, because nothing says that their cue was read; noise that hides the cue in a third of trials does not."""
    data = synthetic_population("late switch", trials=1000)
    empty = (data["time"] >= -5) & (data["time"] < 18)
    noise = 0.5 * np.random.default_rng(3).standard_normal(data["activity"].shape)
    blank = data.assign(activity=data["activity"].where(~empty, data["activity"].copy(data=noise)))
    found = classify_swaps(blank, every=30, repeats=60)
    assert found.misread_error > READABLE and found.cue_read is None and found.late and found.decision == "cannot tell"
    assert "does not show whether the cue was read correctly" in _said(Mechanism(error_type=found))
    weak = classify_swaps(synthetic_population("late switch", trials=1500, noise=2.0), every=60, repeats=60)
    assert 0.02 < weak.misread_error < READABLE and abs(weak.misread[0]) < 0.15 and weak.decision == "late switch"


def _mixed(one, other, share, **options):
    """A population in which swaps are of one kind in a share of trials and of another in the rest: the same displays,
    the same trials swapped."""
    first, second = (synthetic_population(name, trials=1500, seed=2, **options) for name in (one, other))
    own = np.random.default_rng(4).random(1500) < share
    return first.assign(activity=first["activity"].where(xr.DataArray(own, dims="trial"), second["activity"]))


@pytest.mark.slow
def test_swaps_of_two_kinds_are_not_called_one():
    both = classify_swaps(_mixed("misbinding", "late switch", 0.4), every=30, repeats=60)
    assert (
        both.decision == "cannot tell" and both.partly_misbound and "more than one" in _said(Mechanism(error_type=both))
    )
    some = classify_swaps(_mixed("misinterpretation", "late switch", 0.35), every=30, repeats=60)
    said = _said(Mechanism(error_type=some))
    assert some.decision == "late switch" and some.begun and some.misread[0] == pytest.approx(0.35, abs=0.12)
    # A recording cannot show how much is decided when the cue ends.
    assert "memory suggests late switch, but part of the way to the error is there when the cue ends" in said
    none = classify_swaps(_mixed("late switch", "late switch", 0.5), every=30, repeats=60)
    assert (
        none.decision == "late switch" and not none.begun and "part of the way" not in _said(Mechanism(error_type=none))
    )


def test_a_cue_held_at_its_offset_speaks_against_a_misread_one():
    """Memory that holds the cue that was given for five steps and then that of the other one: no misinterpretation."""
    given, other = (synthetic_population(name, trials=1200, seed=5) for name in ("late switch", "misinterpretation"))
    shown = given["activity"].where((given["time"] < 5), other["activity"])
    found = classify_swaps(given.assign(activity=shown), every=30, repeats=60)
    assert found.decision == "late switch" and found.at_offset[2] < 0.2


def test_the_clock_of_a_recording_does_not_matter():
    """Cue offset comes from the epochs: a clock that begins at 0 gives the same answer."""
    data = synthetic_population("late switch", trials=800)
    moved = data.assign_coords(time=data["time"] + 100)
    first, second = (classify_swaps(one, every=30, repeats=40) for one in (data, moved))
    assert first.decision == second.decision == "late switch" and first.at_offset == second.at_offset


def test_the_share_of_misread_cues_is_corrected_for_the_decoder():
    """By brute force: a decoder that errs in a quarter of trials, swaps of which 60 % were shown the other cue."""
    rng = np.random.default_rng(0)
    errs, misread = rng.random(200_000) < 0.25, rng.random(200_000) < 0.6
    assert share_misread(np.mean(errs ^ misread), np.mean(errs)) == pytest.approx(0.6, abs=0.01)


def test_kinds_that_predict_the_same_cannot_be_told_apart():
    """Roles are held alike at both places and the cue leaves no trace: exchanging colours is exchanging cues."""
    found = classify_swaps(
        synthetic_population("misselection", trials=1000, after=0.0, cue_code=0.0), every=30, repeats=100
    )
    assert found.decision == "cannot tell"
    assert (found.needed is None or found.needed > found.swaps) and found.total[1] > 0.8
    clear = classify_swaps(synthetic_population("misselection", trials=1000), every=30, repeats=100)
    assert clear.needed < clear.swaps and clear.apart > 3 * found.apart


def test_swaps_that_leave_no_mark_are_called_that():
    data = synthetic_population(trials=1200, swap_probability=0.0)
    found = items(data)
    swap = np.random.default_rng(0).random(1200) < 0.2
    response = np.where(swap, found.distractor, found.target) + 0.1 * np.random.default_rng(1).standard_normal(1200)
    kind = classify_swaps(data.assign(response=("trial", wrap(response))), every=30, repeats=100)
    assert kind.decision == "no mark" and np.isnan(kind.onset) and abs(kind.total[0]) < 0.1


def test_kind_needs_swaps():
    with pytest.raises(LapsusError, match="no swap trials"):
        classify_swaps(synthetic_population(trials=400, swap_probability=0.0))


# --- What dynamics ---


def _starts(count=200, units=3, seed=0):
    return 1.5 * torch.randn(units, count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_bistable_switch_has_three_fixed_points():
    gain = torch.tensor([2.0, 0.0, 0.0], dtype=torch.float64)[:, None]
    step = lambda r: 0.9 * r + 0.1 * torch.tanh(gain * r)
    points, speed = find_slow_points(step, _starts())
    found = points[:, speed < 1e-8].T.numpy()
    kept = found[distinct_points(found, 1e-3)]
    np.testing.assert_allclose(np.sort(kept[:, 0]), [-0.957504, 0, 0.957504], atol=1e-5)
    at = jacobian(step, torch.tensor(kept.T)).numpy()
    middle = np.abs(kept[:, 0]).argmin()
    # At 0 the first direction grows by 0.9 + 0.1 × 2 a step; the others decay by 0.9.
    assert np.isinf(time_constants(at)[middle, 0])
    np.testing.assert_allclose(time_constants(at)[middle, 1:], -1 / np.log(0.9), rtol=1e-6)
    assert manifold_dimension(found) == 0


def test_line_attractor_has_one_slow_direction():
    decay = torch.tensor([1.0, 0.8, 0.5], dtype=torch.float64)[:, None]
    step = lambda r: decay * r
    points, speed = find_slow_points(step, _starts())
    assert (speed < 1e-8).all() and points[1:].abs().max() < 1e-6
    assert manifold_dimension(points.T.numpy()) == pytest.approx(1, abs=0.15)
    assert (slow_modes(jacobian(step, points).numpy(), 15) == 1).all()


def test_ring_attractor_is_a_ring():
    def step(r):
        radius = r[:2].norm(dim=0)
        return torch.cat([r[:2] * (1 + 0.1 * (1 - radius)), 0.5 * r[2:]])

    points, speed = find_slow_points(step, _starts(400))
    on = points[:, (speed < 1e-8) & (points[:2].norm(dim=0) > 0.5)]
    np.testing.assert_allclose(on[:2].norm(dim=0), 1, atol=1e-5)
    assert manifold_dimension(on.T.numpy()) == pytest.approx(1, abs=0.15)
    constants = time_constants(jacobian(step, on).numpy())
    assert (constants[:, 0] > 1e5).all()
    np.testing.assert_allclose(constants[:, 1], -1 / np.log(0.9), rtol=1e-3)


def test_divergence_of_linear_maps_is_known():
    """All noise is carried on by 1.1 a step along the axis that is read, and by 0.5 elsewhere."""
    steps, trials = 10, 4
    J = np.tile(np.diag([1.1, 0.5, 0.5]), (trials, steps, 1, 1))
    read = np.tile([1.0, 0.0, 0.0], (trials, 1))
    found = divergence(J, np.ones(steps), read, np.arange(steps + 1))
    np.testing.assert_allclose(found.growth[:-1], np.log(1.1))
    np.testing.assert_allclose(found.exponent[:-1], np.log(1.1))
    added = 1.1 ** (2 * np.arange(steps - 1, -1, -1))
    np.testing.assert_allclose(found.predicted, np.r_[0, np.cumsum(added) / added.sum()])


@pytest.mark.parametrize(
    "network",
    [
        DendriticTree(4, units=5, branching=(3, 2), nonlinearity="softplus"),
        PointNeurons(4, units=5, nonlinearity="softplus"),
        TwoLayer(4, units=5, nonlinearity="softplus"),
    ],
    ids=lambda network: type(network).__name__,
)
@pytest.mark.parametrize("driven", [False, True])
def test_jacobian_of_a_network_equals_differences(network, driven):
    """Trees have a shorter way to it than other networks."""
    network = network.double().requires_grad_(False)
    drive = torch.linspace(-1, 1, network.drive_size, dtype=torch.float64)[None] if driven else None
    step = Step(network, drive, tuple(table[1] for table in network.biases(3)))
    r = torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    exact = jacobian(step, r)
    for k in range(5):
        shift = torch.zeros(5, 1, dtype=torch.float64)
        shift[k] = 1e-6
        rough = (step(r + shift) - step(r - shift)) / 2e-6
        np.testing.assert_allclose(exact[:, :, k].T, rough, atol=1e-7)


def test_a_decoder_does_not_take_the_display_for_a_sign_of_the_coming_swap():
    """Displays whose colours are close are swapped more often, and memory holds how close they are; noise decides."""
    data = synthetic_population(trials=1500, swap_probability=0.0)
    found, rng = items(data), np.random.default_rng(100)
    close = np.cos(found.report[:, 0] - found.report[:, 1])
    swap = rng.random(1500) < 1 / (1 + np.exp(1.5 - 2 * close))
    response = wrap(np.where(swap, found.distractor, found.target) + 0.05 * rng.standard_normal(1500))
    held = np.outer(close, rng.standard_normal(data.sizes["unit"]))[:, None] + data["activity"]
    data = data.assign(response=("trial", response), activity=data["activity"].copy(data=held))
    read = decoding(data, every=24)
    assert abs(read.auc.mean() - 0.5) < 0.06 and roc_area(close, swap) > 0.7


def test_the_kind_does_not_take_the_display_for_a_mark_of_the_coming_swap(monkeypatch):
    """Memory leans towards exchanged colours in displays that are swapped more often, swap or not; noise decides."""
    data = synthetic_population(trials=1500, swap_probability=0.0)
    found, rng = items(data), np.random.default_rng(100)
    close = np.cos(found.report[:, 0] - found.report[:, 1])
    swap = rng.random(1500) < 1 / (1 + np.exp(1.5 - 2 * close))
    response = wrap(np.where(swap, found.distractor, found.target) + 0.05 * rng.standard_normal(1500))
    code = prediction_model(data["activity"].to_numpy()[:, 10], found.report)
    toward = code.exchanged(found.report) - code.nominal(found.report)
    held = data["activity"] + 0.8 * (close[:, None] * toward)[:, None] * (data["time"] < -5).to_numpy()[:, None]
    data = data.assign(response=("trial", response), activity=data["activity"].copy(data=held))
    kind = classify_swaps(data, every=12, repeats=100)
    before = kind.times < -5
    lean = (kind.over_time["misbinding"] - kind.over_time_correct["misbinding"])[before]
    assert np.isnan(kind.onset) and np.abs(lean).max() < 0.06 and kind.decision == "no mark"
    # With the conjunctions left in, the same trials would be taken for misbound ones.
    monkeypatch.setattr("lapsus.mechanism.error_type.without_conjunctions", lambda m, given, known: m)
    kind = classify_swaps(data, every=12, repeats=100)
    assert (kind.over_time["misbinding"] - kind.over_time_correct["misbinding"])[before][-1] > 0.2
