"""The five questions on systems with known answers: closed forms, written-down networks, made populations."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from made_networks import MemoryDecides, ResponseWalks, made, nearest_counts
from scipy import stats

from lapsus.analysis import commitment as commitment_analysis, dynamics as dynamics_analysis
from lapsus.analysis.activity import items
from lapsus.analysis.decoding import decoding
from lapsus.analysis.kind import KINDS, kind_of_swaps, prediction_model
from lapsus.analysis.outcomes import guess_of, outcomes, responsibilities
from lapsus.analysis.ring_fit import fit_ring, fit_ring_pair
from lapsus.analysis.swap_axis import Reports, discriminant_scores, random_cosine, roc_area, swap_axis
from lapsus.analysis.synthetic import synthetic_population
from lapsus.analysis.transplants import push_effects, transplant_curves
from lapsus.circular import embed, wrap
from lapsus.errors import LapsusError
from lapsus.networks import DendriticTree, PointNeurons, TwoLayer
from lapsus.study.commitment import commitment
from lapsus.study.dynamics import Step, find_slow_points, jacobian
from lapsus.study.transplants import transplants

pytestmark = pytest.mark.filterwarnings("ignore:The torch reference runs")

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
    chance = lambda slope: 1 / (1 + np.exp(-(-1 + slope * sizes)))  # noqa: E731
    draw = lambda slope: rng.binomial(200, chance(slope), (60, 3)) / 200  # noqa: E731
    found = push_effects(0, sizes, {"axis": draw(0.5), "random": draw(0.0)}, 200)
    assert found.slope["axis"][1] < 0.5 < found.slope["axis"][2]
    assert found.slope["random"][1] < 0 < found.slope["random"][2]
    assert found.against_random["axis"][1] > 0.3


# --- Along which direction ---


def _cells(role: float, imprint: float, *, locations=3, colours=4, trials=60, turn=0.0, noise=0.3, seed=0):
    """Populations that hold who is the target (along an axis that may differ between locations by `turn`) and the
    colour reported."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((10, 10)))[0].T
    rows = []
    for k in range(locations):
        axis = np.cos(turn * k) * basis[0] + np.sin(turn * k) * basis[1]
        row = []
        for c in range(colours):
            fixed = -np.pi + 2 * np.pi * c / colours
            free = np.repeat(wrap(fixed + np.linspace(np.pi / 4, 2 * np.pi - np.pi / 4, 12)), trials)
            target, reported = rng.random(len(free)) < 0.5, rng.random(len(free)) < 0.5
            colour = np.where(reported, fixed, free)
            m = role * np.where(target, 0.5, -0.5)[:, None] * axis + imprint * embed(colour) @ basis[2:4]
            row.append(Reports(m + noise * rng.standard_normal(m.shape), reported, target, free))
        rows.append(row)
    first = rows[0][0]
    path = first.m[first.reported][:, None]
    return rows, (np.zeros(1), path, ~first.target[first.reported], first.free[first.reported])


def test_swap_axis_is_found_and_shared():
    found = swap_axis(*_cells(2.0, 1.0))
    assert found.auc > 0.97 and found.low > 0.95 and abs(found.null - 0.5) < 0.05
    assert found.shared > 0.95 and found.across_colours > 0.9 and found.shared_null < 0.8
    assert found.auc_over_time[0] > 0.95


def test_swap_axis_that_turns_with_location_is_not_shared():
    found = swap_axis(*_cells(2.0, 1.0, turn=np.pi / 2))
    assert found.auc > 0.97 and found.shared < 0.3


def test_colour_alone_is_no_swap_axis():
    """The population holds the reported colour and nothing else: not holding it fixed would look like an axis."""
    found = swap_axis(*_cells(0.0, 2.0))
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


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_is_recognised(name):
    found = kind_of_swaps(synthetic_population(name, trials=1000, seed=1), every=12, repeats=100)
    assert found.decision == name
    for kind, (value, low, high) in found.weights.items():
        assert value == pytest.approx(float(kind == name), abs=0.1) and low <= value <= high
    assert (found.onset < -5) == (name == "misbinding")


def test_kinds_that_predict_the_same_cannot_be_told_apart():
    """Roles are held alike at both places and the cue leaves no trace: exchanging colours is exchanging cues."""
    found = kind_of_swaps(
        synthetic_population("misselection", trials=1000, after=0.0, cue_code=0.0), every=30, repeats=100
    )
    assert found.decision == "cannot tell"
    assert (found.needed is None or found.needed > found.swaps) and found.total[1] > 0.8
    clear = kind_of_swaps(synthetic_population("misselection", trials=1000), every=30, repeats=100)
    assert clear.needed < clear.swaps and clear.apart > 3 * found.apart


def test_swaps_that_leave_no_mark_are_called_that():
    data = synthetic_population(trials=1200, swap_probability=0.0)
    found = items(data)
    swap = np.random.default_rng(0).random(1200) < 0.2
    response = np.where(swap, found.distractor, found.target) + 0.1 * np.random.default_rng(1).standard_normal(1200)
    kind = kind_of_swaps(data.assign(response=("trial", wrap(response))), every=30, repeats=100)
    assert kind.decision == "no mark" and np.isnan(kind.onset) and abs(kind.total[0]) < 0.1


def test_kind_needs_swaps():
    with pytest.raises(LapsusError, match="no swap trials"):
        kind_of_swaps(synthetic_population(trials=400, swap_probability=0.0))


# --- What dynamics ---


def _starts(count=200, units=3, seed=0):
    return 1.5 * torch.randn(units, count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_bistable_switch_has_three_fixed_points():
    gain = torch.tensor([2.0, 0.0, 0.0], dtype=torch.float64)[:, None]
    step = lambda r: 0.9 * r + 0.1 * torch.tanh(gain * r)  # noqa: E731
    points, speed = find_slow_points(step, _starts())
    found = points[:, speed < 1e-8].T.numpy()
    kept = found[dynamics_analysis.distinct_points(found, 1e-3)]
    np.testing.assert_allclose(np.sort(kept[:, 0]), [-0.957504, 0, 0.957504], atol=1e-5)
    at = jacobian(step, torch.tensor(kept.T)).numpy()
    middle = np.abs(kept[:, 0]).argmin()
    # At 0 the first direction grows by 0.9 + 0.1 × 2 a step; the others decay by 0.9.
    assert np.isinf(dynamics_analysis.time_constants(at)[middle, 0])
    np.testing.assert_allclose(dynamics_analysis.time_constants(at)[middle, 1:], -1 / np.log(0.9), rtol=1e-6)
    assert dynamics_analysis.manifold_dimension(found) == 0


def test_line_attractor_has_one_slow_direction():
    decay = torch.tensor([1.0, 0.8, 0.5], dtype=torch.float64)[:, None]
    step = lambda r: decay * r  # noqa: E731
    points, speed = find_slow_points(step, _starts())
    assert (speed < 1e-8).all() and points[1:].abs().max() < 1e-6
    assert dynamics_analysis.manifold_dimension(points.T.numpy()) == pytest.approx(1, abs=0.15)
    assert (dynamics_analysis.slow_modes(jacobian(step, points).numpy(), 15) == 1).all()


def test_ring_attractor_is_a_ring():
    def step(r):
        radius = r[:2].norm(dim=0)
        return torch.cat([r[:2] * (1 + 0.1 * (1 - radius)), 0.5 * r[2:]])

    points, speed = find_slow_points(step, _starts(400))
    on = points[:, (speed < 1e-8) & (points[:2].norm(dim=0) > 0.5)]
    np.testing.assert_allclose(on[:2].norm(dim=0), 1, atol=1e-5)
    assert dynamics_analysis.manifold_dimension(on.T.numpy()) == pytest.approx(1, abs=0.15)
    constants = dynamics_analysis.time_constants(jacobian(step, on).numpy())
    assert (constants[:, 0] > 1e5).all()
    np.testing.assert_allclose(constants[:, 1], -1 / np.log(0.9), rtol=1e-3)


def test_divergence_of_linear_maps_is_known():
    """All noise is carried on by 1.1 a step along the axis that is read, and by 0.5 elsewhere."""
    steps, trials = 10, 4
    J = np.tile(np.diag([1.1, 0.5, 0.5]), (trials, steps, 1, 1))
    read = np.tile([1.0, 0.0, 0.0], (trials, 1))
    found = dynamics_analysis.divergence(J, np.ones(steps), read, np.arange(steps + 1))
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


# --- In words ---


def _mechanism(**parts):
    from lapsus.study.mechanism import Mechanism

    return Mechanism(**parts)


def _curve(shares):
    times, ends = np.array([-28.0, -5.0, 0.0, 20.0, 40.0]), {"delay": -5.0, "cue": 0.0, "denoise": 40.0}
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((20, 60, 1))
    walks = [np.sqrt(s) * latent + np.sqrt(1 - s) * rng.standard_normal((20, 60, 4)) > 0 for s in shares]
    return commitment_analysis.commitment_curve(np.stack(walks, 1).astype(float), times, ends)


def test_words_say_when_and_do_not_overstate():
    from lapsus.report.mechanism import answers, carried, decided

    late = decided(_mechanism(commitment=_curve([0, 0, 0, 0.7, 1])))
    assert "after the cue" in late and "throws the dice" in late
    early = decided(_mechanism(commitment=_curve([0.5, 0.6, 0.6, 0.8, 1])))
    assert "decided before the cue" in early and "dice" not in early
    assert "cannot be said: no swap trials" in carried(_mechanism(left_out={"transplant": "no swap trials"}))
    assert len(answers(_mechanism(left_out={}))) == 5


@pytest.mark.parametrize("name", [*KINDS, "cannot tell"])
def test_words_name_the_kind_that_was_built_in(name):
    from lapsus.report.mechanism import kind

    if name == "cannot tell":
        data = synthetic_population("misselection", trials=1000, after=0.0, cue_code=0.0)
    else:
        data = synthetic_population(name, trials=1000)
    text = kind(_mechanism(kind=kind_of_swaps(data, every=30, repeats=60)))
    assert (f"its swaps are {name}s" in text) or (name == "cannot tell" and "cannot be told" in text)


def test_words_do_not_call_a_colour_an_axis():
    from types import SimpleNamespace

    from lapsus.report.mechanism import axis
    from lapsus.study.geometry import Geometry

    def of(cells, **parts):
        return _mechanism(swap_axis=Geometry(swap_axis(*cells), [], np.zeros((1, 2)), np.zeros(1)), **parts)

    assert "finds the colour" in axis(of(_cells(0.0, 2.0)))
    assert "one axis for all places" in axis(of(_cells(2.0, 1.0)))
    # A decoder that may use the colour tells swaps in the same memory: that is said, and by what.
    read = SimpleNamespace(at_response=0.98)
    assert "(area 0.98) by the colour that is reported" in axis(of(_cells(0.0, 2.0), decoding=read))


@pytest.mark.slow
def test_a_recording_is_asked_what_it_can_answer():
    import json

    from lapsus.report.mechanism import answers
    from lapsus.study import analyse
    from lapsus.study.sizes import QUICK

    found = analyse(synthetic_population("misselection", trials=600), sizes=QUICK)
    assert found.kind.decision == "misselection" and set(found.left_out) >= {"commitment", "transplant", "dynamics"}
    read = found.decoding
    assert (
        read.auc[-1] > 0.95 and abs(read.auc[read.times < -6].mean() - 0.5) < 0.1 and abs(read.null.mean() - 0.5) < 0.1
    )
    assert "decoded" in answers(found)[0] and set(json.loads(json.dumps(found.to_dict()))) >= {"kind", "left_out"}


def test_every_analysis_of_a_recording_is_made_or_left_out_with_a_reason():
    from lapsus.study import analyse
    from lapsus.study.mechanism import ALL
    from lapsus.study.sizes import QUICK

    fixed = synthetic_population("misselection", trials=600)
    found = analyse(fixed, only=("alignment", "prediction", "pushes"), sizes=QUICK)
    assert found.alignment.trials == 600 and found.alignment.shuffled.shape[0] == 2 and found.prediction.swaps > 20
    assert set(found.left_out) == {"pushes"} and found.kind is None and found.decoding is None
    places = np.random.default_rng(0).uniform(-np.pi, np.pi, 600)
    moved = fixed.assign(probe_1=("trial", places), probe_2=("trial", wrap(places + 2)))
    seen = []
    found = analyse(moved, sizes=QUICK, progress=seen.append)
    assert {name for name in ALL if getattr(found, name) is not None} | set(found.left_out) == set(ALL)
    assert all("places" in found.left_out[name] for name in ("alignment", "prediction")) and "kind" in seen
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
    from lapsus.report.mechanism import first_answer, kind
    from lapsus.study.mechanism import table_row

    same, moved = (
        _mechanism(kind=kind_of_swaps(data, every=30, repeats=60), decoding=decoding(data, every=12))
        for data in _unmarked()
    )
    assert same.kind.decision == "no mark" and not same.contradicted and "look like correct ones" in kind(same)
    assert abs(same.decoding.at_response - 0.5) < 0.1 and "no trace" in first_answer([same])
    # The regression on the three kinds sees nothing, the decoder does: the sentence must not be printed.
    assert moved.decoding.at_response > 0.9 and moved.decoding.before_cue < 0.6
    assert moved.kind.decision == "no mark" and "kind" in moved.contradicted and moved.error is None
    assert "look like correct ones" not in kind(moved) and "no trace" not in first_answer([moved])
    assert table_row(same)["kind"] == "no mark" and table_row(moved)["kind"] == "not known"


def test_memory_before_the_cue_is_not_called_right_where_the_coming_swap_is_read_in_it():
    """The cue is misread, and a mark of that, in no direction in which colours are held, is there before it."""
    from lapsus.report.mechanism import answers, first_answer
    from lapsus.study import analyse

    data = synthetic_population("misinterpretation", trials=1000)
    found, rng = items(data), np.random.default_rng(0)
    early = (data["time"] < -5).to_numpy()[None, :, None] & found.swap[:, None, None]
    mark = 2.0 * rng.standard_normal(data.sizes["unit"])
    marked = data.assign(activity=data["activity"].copy(data=data["activity"] + early * mark))
    one = analyse(marked, only=("kind", "decoding"))
    assert one.decoding.before_cue > 0.9 and one.error == "misinterpretation"
    assert "area of 1.00 before the cue" in answers(one)[0]
    said = first_answer([one])
    assert "colours are in their places" in said and "Memory before the cue" not in said


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
    kind = kind_of_swaps(data, every=12, repeats=100)
    before = kind.times < -5
    lean = (kind.over_time["misbinding"] - kind.over_time_correct["misbinding"])[before]
    assert np.isnan(kind.onset) and np.abs(lean).max() < 0.06 and kind.decision == "no mark"
    # With the conjunctions left in, the same trials would be taken for misbound ones.
    monkeypatch.setattr("lapsus.analysis.kind.without_conjunctions", lambda m, given, known: m)
    kind = kind_of_swaps(data, every=12, repeats=100)
    assert (kind.over_time["misbinding"] - kind.over_time_correct["misbinding"])[before][-1] > 0.2


def test_the_first_answer_names_when_what_and_which():
    from lapsus.report.mechanism import asked, first_answer, unasked

    late, early = (_curve(shares) for shares in ([0, 0, 0, 0.7, 1], [0.5, 0.6, 0.6, 0.8, 1]))
    carried = transplant_curves(
        np.arange(3.0),
        {name: np.full((6, 3), p) for name, p in (("swap", 0.9), ("correct", 0.1), ("x_from_swap", 0.9))}
        | {name: np.full((6, 3), 0.1) for name in ("m_from_swap", "null")},
        np.ones(6),
    )
    kinds = {
        name: kind_of_swaps(synthetic_population(name, trials=1000), every=30, repeats=60)
        for name in ("misselection", "misbinding")
    }
    one = _mechanism(commitment=late, transplant=carried, kind=kinds["misselection"])
    said = first_answer([one])
    assert "decided after the cue" in said and "response that is forming" in said and "wrong colour is selected" in said
    assert "one network" in said and list(asked(one)) == ["when", "what", "kind"] and len(unasked(one)) == 1
    other = _mechanism(commitment=early, transplant=carried, kind=kinds["misbinding"])
    assert "before the cue" in first_answer([other]) and "change places" in first_answer([other])
    both = first_answer([one, other])
    assert "misselection, misbinding" in both and "when, relative to the cue" in both and "2 networks" in both
    none = _mechanism(left_out={"commitment": "no swap trials: every outcome is the same", "kind": "no swap trials"})
    assert first_answer([none]) == "This network makes no swaps to explain."


@pytest.mark.slow
def test_networks_that_cannot_tell_do_not_agree():
    from types import SimpleNamespace

    from lapsus.study.checks import _agreement

    def checks(*kinds):
        made = []
        for name in kinds:
            options = {"after": 0.0, "cue_code": 0.0} if name == "cannot tell" else {}
            data = synthetic_population("misselection" if options else name, trials=600, **options)
            made.append(SimpleNamespace(mechanism=_mechanism(kind=kind_of_swaps(data, every=40, repeats=40))))
        return {check.name: check.status for check in _agreement(made)}["Networks agree on the kind of error"]

    assert checks("cannot tell", "cannot tell") == "not checked" == checks("cannot tell", "misselection")
    assert checks("misselection", "misselection") == "passed"
    assert checks("misselection", "misbinding") == "failed"


@pytest.mark.slow
def test_analyse_command_prints_what_it_promises(tmp_path):
    import json

    from typer.testing import CliRunner

    from lapsus.cli import app
    from lapsus.library import load
    from lapsus.study.mechanism import analyse
    from lapsus.study.sizes import QUICK

    only = ("commitment", "transplant", "swap_axis", "kind", "dynamics")
    sizes = replace(QUICK, donors=48, single_trials=800)
    found = analyse(load("index-swap-10"), only=only, sizes=sizes).to_dict()
    assert set(found["commitment"]) >= {"times", "share", "low", "high", "half_time", "by_epoch"}
    assert set(found["transplant"]) >= {"times", "swap", "correct", "x_from_swap", "m_from_swap"}
    assert set(found["swap_axis"]) >= {"auc", "shared", "shared_null"}
    assert set(found["kind"]) >= {"decision", "weights", "onset"}
    assert set(found["dynamics"]) >= {"fixed_points", "manifold_dimension", "time_constants"}
    path = tmp_path / "recording.nc"
    synthetic_population(trials=400).to_netcdf(path, engine="h5netcdf")
    result = CliRunner().invoke(app, ["analyse", str(path), "--json", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["kind"]["decision"] == "misselection"
    assert (tmp_path / "out" / "recording-when.png").exists() and (tmp_path / "out" / "mechanism.csv").exists()


def test_analyse_goes_on_where_it_was_cut(tmp_path, monkeypatch):
    """Networks whose answers are in the folder are not asked again, unless told to or with another seed."""
    import pandas as pd
    from typer.testing import CliRunner

    from lapsus.cli import analyse as cli, app

    asked = []

    def answered(name, opened, steps, seed, threads):
        asked.append(name if steps is None else (name, steps))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return _mechanism(commitment=_curve([0, 0, 0, 0.7, 1]), left_out={})

    monkeypatch.setattr(cli, "_analyse", answered)
    monkeypatch.setattr(cli, "_draw", lambda found, path: None)
    call = ["analyse", "index-swap-10", "index-swap-5", "-o", str(tmp_path / "out")]
    assert CliRunner().invoke(app, call).exit_code != 0
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0 and asked == ["index-swap-10", "index-swap-5", "index-swap-5"]
    assert "index-swap-10:" in done.stdout and "throws the dice" in done.stdout
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
    from types import SimpleNamespace

    from lapsus.report.mechanism import _parting

    times = np.arange(-20.0, 41.0)
    read = SimpleNamespace(times=times, auc=np.where(times < 12, 0.5, 0.95))
    early, late = SimpleNamespace(onset=-6.0), SimpleNamespace(onset=15.0)
    assert _parting(SimpleNamespace(kind=late, decoding=read)) == " They part from correct trials at step 15."
    said = _parting(SimpleNamespace(kind=early, decoding=read))
    assert "held-out decoder" in said and "step 12" in said and "-6" not in said
    blind = SimpleNamespace(times=times, auc=np.full(len(times), 0.5))
    assert _parting(SimpleNamespace(kind=early, decoding=blind)) == ""
    assert "step -6" in _parting(SimpleNamespace(kind=early, decoding=None))
