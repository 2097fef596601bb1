"""Each analysis on activity whose answer is known: angles, offsets and kinds of error put in by construction."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from lapsus.circular import embed, wrap
from lapsus.errors import LapsusError
from lapsus.mechanism import plane_alignment as alignment, ring_normals as rings, single_trials as trialwise
from lapsus.mechanism.activity import activity_dataset, behaviour, items, memory
from lapsus.mechanism.colour_code import periodic_spline
from lapsus.mechanism.discriminants import pairwise_cosine, roc_area, roc_curve
from lapsus.mechanism.error_type import classify_swaps
from lapsus.mechanism.synthetic import EPOCHS, planes, synthetic_population
from lapsus.paper.verdicts import criteria, judge

TIME = np.array([-6, -5, -3, 0, 1])
EPOCH = np.array(["delay", "delay", "cue", "denoise", "denoise"])


def two_planes(angle, trials, noise, *, units=10, margin=0.0, steps=5, seed=0, informative=True):
    """Correct trials of a population that holds the two colours in planes at a known angle."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(-np.pi, np.pi, trials)
    colours = np.stack([first, wrap(first + rng.uniform(margin, 2 * np.pi - margin, trials))], 1)
    cued = rng.integers(2, size=trials)
    activity = np.einsum("tix,ixu->tu", embed(colours), planes(angle, units, rng))[:, None] * informative
    activity = activity + noise * rng.standard_normal((trials, steps, units))
    table = pd.DataFrame({"cued": cued + 1, "report_1": colours[:, 0], "report_2": colours[:, 1]})
    table["response"] = colours[np.arange(trials), cued]
    return activity_dataset(activity, table, time=TIME[:steps], epoch=EPOCH[:steps])


def rotated(dataset, seed=0, scale=3.7):
    """The same population seen through a rotation, a gain, an offset and another order of units."""
    rng = np.random.default_rng(seed)
    units = dataset.sizes["unit"]
    turn = np.linalg.qr(rng.standard_normal((units, units)))[0]
    order = rng.permutation(units)
    return dataset.assign(
        activity=dataset["activity"].copy(data=(scale * dataset["activity"].to_numpy() @ turn + 1.3)[..., order])
    )


# --- Activity ---


def test_memory_and_behaviour_split_activity():
    rng = np.random.default_rng(0)
    readout = np.linalg.qr(rng.standard_normal((6, 6)))[0][:2]
    data = two_planes(1.0, 40, 0.3, units=6)
    data = activity_dataset(
        data["activity"].to_numpy(),
        data[["cued", "report_1", "report_2", "response"]].to_dataframe(),
        time=TIME,
        epoch=EPOCH,
        readout=readout,
    )
    m, x = memory(data), behaviour(data)
    assert m.shape[-1] == 4 and x.shape[-1] == 2
    # Nothing of activity is lost and nothing of the readout is left in m.
    np.testing.assert_allclose((m**2).sum(-1) + (x**2).sum(-1), (data["activity"].to_numpy() ** 2).sum(-1), rtol=1e-6)
    along = data.copy()
    along["activity"] = along["activity"] + xr.DataArray(readout[0] * 5, dims="unit")
    np.testing.assert_allclose(memory(along), m, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, t: (a[:-1], t), "rows"),
        (lambda a, t: (a[:, :, 0], t), "three axes"),
        (lambda a, t: (np.where(np.arange(a.size).reshape(a.shape) == 7, np.nan, a), t), "not finite at trial 0"),
        (lambda a, t: (a, t.assign(cued=0)), "cued"),
        (lambda a, t: (a, t.drop(columns="report_1")), "report_1"),
        (lambda a, t: (a, t.drop(columns="response")), "response"),
        (lambda a, t: (a, t.assign(report_1=t["report_1"] * 180 / np.pi)), "radians"),
        (lambda a, t: (a, t.assign(probe_1=0.0)), "one each an item"),
    ],
)
def test_wrong_recordings_are_refused_in_a_sentence(change, message):
    data = two_planes(1.0, 30, 0.3)
    table = data[["cued", "report_1", "report_2", "response"]].to_dataframe().reset_index(drop=True)
    with pytest.raises(LapsusError, match=message):
        activity_dataset(*change(data["activity"].to_numpy(), table), time=TIME, epoch=EPOCH)


# --- Plane alignment ---


def test_alignment_finds_known_angles_and_its_error_shrinks_with_trials():
    angles = (0.3, 0.9, 1.4)
    error = {}
    for trials in (500, 8000):
        gap = [
            alignment.plane_alignment(two_planes(angle, trials, 0.4, seed=seed)).to_numpy() - np.cos(angle)
            for angle in angles
            for seed in range(4)
        ]
        error[trials] = np.sqrt(np.mean(np.square(gap)))
    assert error[8000] < 0.02
    # Sixteen times the trials: a quarter of the error, give or take.
    assert 2.5 < error[500] / error[8000] < 9


def test_alignment_error_grows_with_noise():
    quiet, loud = (
        np.abs(
            alignment.plane_alignment(two_planes(1.2, 1500, noise, seed=3), adjust=True).to_numpy() - np.cos(1.2)
        ).mean()
        for noise in (0.05, 1.0)
    )
    assert quiet < 0.02 and quiet < 0.5 * loud


def test_panichello_variant_finds_known_angles():
    for angle in (0.3, 0.9, 1.4):
        found = alignment.panichello_alignment(two_planes(angle, 8000, 0.3))
        np.testing.assert_allclose(found.to_numpy(), np.cos(angle), atol=0.08)


def test_margin_tilts_the_planes_and_adjustment_undoes_it():
    data = two_planes(np.pi / 2, 8000, 0.2, margin=np.pi / 4)
    # Of the other item's plane, a bin mean keeps the mean of u(c_2) given c_1: -sin(margin) / (pi - margin) = k.
    # Perpendicular
    # planes that share a line then have normals along (-k, 1) and (1, -k).
    k = -np.sin(np.pi / 4) / (np.pi - np.pi / 4)
    np.testing.assert_allclose(alignment.plane_alignment(data).to_numpy(), -2 * k / (1 + k**2), atol=0.04)
    np.testing.assert_allclose(alignment.plane_alignment(data, adjust=True).to_numpy(), 0, atol=0.04)


@pytest.mark.parametrize("options", [{}, {"pool": "bins", "bins": 4}, {"adjust": True}])
def test_alignment_does_not_depend_on_rotation_gain_offset_or_order_of_units(options):
    data = two_planes(0.9, 800, 0.3)
    first, second = (alignment.plane_alignment(one, **options).to_numpy() for one in (data, rotated(data)))
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.slow
def test_shuffle_null_is_calibrated():
    p = []
    for seed in range(100):
        data = two_planes(1.0, 150, 1.0, units=5, steps=1, seed=seed, informative=False)
        observed = alignment.plane_alignment(data, bins=8).to_numpy()[0, 0]
        null = alignment.shuffle_null(data, repeats=19, bins=8, seed=seed).to_numpy()[:, 0]
        p.append((1 + (null >= observed - 1e-12).sum()) / 20)
    rate = np.mean(np.array(p) <= 0.05)
    # 5 % of 100, within 3.3 binomial standard errors; and p-values that are uniform have a mean of a half.
    assert rate <= 0.05 + 3.3 * np.sqrt(0.05 * 0.95 / 100)
    assert 0.42 < np.mean(p) < 0.6


def test_shuffle_null_is_left_behind_by_real_planes():
    data = two_planes(0.03, 600, 0.3, steps=1)
    null = alignment.shuffle_null(data, repeats=60).to_numpy()
    assert (null >= alignment.plane_alignment(data).to_numpy()).mean() < 0.1


def test_bootstrap_interval_covers_the_known_angle():
    covered = []
    for seed in range(12):
        data = two_planes(1.1, 1000, 0.3, steps=2, seed=seed)
        low, high = np.quantile(alignment.bootstrap_alignment(data, repeats=60, seed=seed), [0.025, 0.975], axis=0)
        covered.append((low <= np.cos(1.1)) & (np.cos(1.1) <= high))
    assert np.mean(covered) > 0.75


def test_vectorised_bootstrap_equals_repeating_trials():
    data = two_planes(1.1, 200, 0.3, steps=2)
    group = next(alignment._groups(data, 8, None))
    times = np.random.default_rng(0).integers(0, 3, len(group.cell))
    weighted = alignment._alignment(group, 8, "trials", False, np.stack([times, times]).astype(float))
    repeated = data.isel(trial=np.repeat(np.arange(len(times)), times))
    np.testing.assert_allclose(weighted[1], alignment.plane_alignment(repeated, bins=8).to_numpy()[0], atol=1e-9)


def test_groups_are_analysed_apart():
    flat, steep = two_planes(0.2, 1500, 0.2, seed=1), two_planes(1.4, 1500, 0.2, seed=2)
    both = xr.concat(
        [flat.assign(place=("trial", np.zeros(1500))), steep.assign(place=("trial", np.ones(1500)))],
        "trial",
        data_vars="minimal",
        coords="minimal",
        compat="override",
    )
    found = alignment.plane_alignment(both, groups="place", adjust=True).to_numpy()
    np.testing.assert_allclose(found[0], np.cos(0.2), atol=0.04)
    np.testing.assert_allclose(found[1], np.cos(1.4), atol=0.06)


def test_alignment_says_what_it_lacks():
    data = two_planes(1.0, 100, 0.3)
    with pytest.raises(LapsusError, match="at least 3 of 16 bins"):
        alignment.plane_alignment(data.isel(trial=data["cued"].to_numpy() == 1))


# --- Sigmoid against flat ---


def test_sigmoid_is_recovered_and_beats_flat():
    time = np.arange(-20, 41)
    rng = np.random.default_rng(0)
    curves = alignment.sigmoid(time, 0.8, -3.0, 0.2, 0.6) + 0.02 * rng.standard_normal((5, 61))
    fit = alignment.sigmoid_against_flat(time, curves)
    np.testing.assert_allclose([fit.slope, fit.x_offset, fit.y_offset, fit.y_scale], [0.8, -3, 0.2, 0.6], rtol=0.1)
    assert fit.sigmoid_mse == pytest.approx(0.02**2, rel=0.15)
    assert fit.difference == pytest.approx(np.var(alignment.sigmoid(time, 0.8, -3.0, 0.2, 0.6)), rel=0.05)


def test_sigmoid_gains_nothing_on_a_flat_line_and_never_loses():
    time = np.arange(-20, 41)
    assert alignment.sigmoid_against_flat(time, np.full((3, 61), 0.4)).difference == pytest.approx(0, abs=1e-12)
    noise = np.random.default_rng(1).uniform(0, 1, (4, 61))
    assert alignment.sigmoid_against_flat(time, noise).difference >= -1e-12


def test_sigmoid_falls_where_curves_fall():
    time = np.arange(-20, 41)
    assert alignment.sigmoid_against_flat(time, alignment.sigmoid(time, 0.5, 5, 0.9, -0.5)).y_scale == pytest.approx(
        -0.5, abs=0.01
    )


# --- Rings and kinds ---


def test_the_kind_does_not_depend_on_rotation_gain_or_order_of_units():
    data = synthetic_population("misselection", trials=800, noise=0.3, seed=2)
    first, second = (classify_swaps(one, every=40, repeats=40) for one in (data, rotated(data)))
    assert first.decision == second.decision == "misselection"
    # The ridge and the floor of the noise do depend on the scale, so the numbers agree only closely.
    for name, weight in first.weights.items():
        assert weight[0] == pytest.approx(second.weights[name][0], abs=0.02)


@pytest.mark.slow
def test_swaps_in_name_only_are_no_kind():
    """On a fifth of trials the response is at the distractor, whatever activity does."""
    rng, said = np.random.default_rng(1000), []
    for seed in range(20):
        options = {"trials": 300, "units": 6, "swap_probability": 0.0, "noise": 1.0, "seed": seed}
        data = synthetic_population("misselection", **options).isel(time=slice(18, 34, 3))
        found = items(data)
        response = np.where(rng.random(300) < 0.2, found.distractor, found.target)
        kind = classify_swaps(data.assign(response=("trial", response)), every=40, repeats=40)
        said.append(kind.decision)
    assert sum(one not in ("no mark", "cannot tell") for one in said) <= 1 and said.count("no mark") > 10


def test_periodic_spline_is_a_partition_and_reproduces_knots():
    basis = periodic_spline(np.linspace(-np.pi, np.pi, 50, endpoint=False))
    np.testing.assert_allclose(basis.sum(1), 1)
    assert ((basis > 0).sum(1) <= 2).all()
    np.testing.assert_allclose(periodic_spline(-np.pi + 2 * np.pi * np.arange(5) / 5), np.eye(5), atol=1e-12)
    np.testing.assert_allclose(
        periodic_spline(np.array([np.pi - 1e-9])), periodic_spline(np.array([-np.pi])), atol=1e-6
    )


def test_roc_area_equals_counting_pairs():
    rng = np.random.default_rng(0)
    scores, positive = rng.integers(0, 8, 60).astype(float), rng.random(60) < 0.4
    pairs = scores[positive][:, None] - scores[~positive]
    area = roc_area(scores, positive)
    assert area == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean())
    false, true = roc_curve(scores, positive)
    assert np.trapezoid(true, false) == pytest.approx(area)


def test_alignment_across_locations_and_colours():
    rng = np.random.default_rng(0)
    colours = np.linspace(-np.pi, np.pi, 12, endpoint=False)
    basis = np.linalg.qr(rng.standard_normal((14, 14)))[0]
    # A direction that turns by half the colour's angle: same colour parallel, opposite perpendicular.
    pc3 = embed(colours / 2) @ basis[:2] + 0.02 * rng.standard_normal((8, 12, 14))
    pc3 /= np.linalg.norm(pc3, axis=-1, keepdims=True)
    assert pairwise_cosine(pc3[:, 0]).mean() > 0.98
    assert pairwise_cosine(pc3[:, 0], pc3[:, 6]).mean() < 0.05
    matrix = rings.cyclic_alignment(pc3)
    gap = np.abs(wrap(colours[:, None] - colours))
    np.testing.assert_allclose(matrix, np.abs(np.cos(gap / 2)), atol=0.06)


def test_random_alignment_has_the_exact_mean():
    from scipy.special import gamma

    units = 14
    expected = gamma(units / 2) / (np.sqrt(np.pi) * gamma((units + 1) / 2))
    assert rings.random_alignment(units, count=50_000).mean() == pytest.approx(expected, rel=0.02)


# --- Single trials ---


def leaning(effect, trials=3000, swap_by_lean=True, seed=0):
    """Before the cue, plane 2 leans into plane 1 by an amount that differs between trials; swaps depend on it, or on
    nothing."""
    rng = np.random.default_rng(seed)
    data = synthetic_population("misselection", trials=trials, swap_probability=0.0, noise=0.15, units=10, seed=seed)
    found = items(data)
    lean = rng.standard_normal(trials)
    basis = np.linalg.qr(rng.standard_normal((10, 10)))[0].T
    u = embed(found.report)
    m = u[:, 0] @ basis[:2] + u[:, 1] @ basis[2:4] + 0.4 * lean[:, None] * (u[:, 1] @ basis[:2] + u[:, 0] @ basis[2:4])
    activity = m[:, None] + 0.15 * rng.standard_normal((trials, sum(EPOCHS.values()), 10))
    logit = -1.5 + effect * (lean if swap_by_lean else rng.standard_normal(trials))
    swapped = rng.random(trials) < 1 / (1 + np.exp(-logit))
    response = np.where(swapped, found.distractor, found.target)
    return data.assign(activity=(("trial", "time", "unit"), activity), response=("trial", response)), lean


def test_trial_alignment_measures_the_lean():
    data, lean = leaning(0.0)
    table = trialwise.trial_alignment(data)
    near = table["report_distance"] < 1.5
    assert np.corrcoef(table["alignment"][near], lean[near])[0, 1] > 0.8


def test_alignment_that_causes_swaps_is_found():
    data, _ = leaning(1.5)
    found = trialwise.alignment_predicts_swaps(trialwise.trial_alignment(data), repeats=199)
    assert found.low > 1.2 and found.p <= 0.01


def test_misbinding_is_not_taken_for_alignment():
    data = synthetic_population("misbinding", trials=3000, noise=0.3, seed=4)
    found = trialwise.alignment_predicts_swaps(trialwise.trial_alignment(data), repeats=199)
    assert found.low < 1.05


@pytest.mark.slow
def test_regression_is_calibrated():
    p = []
    for seed in range(80):
        data, _ = leaning(1.0, trials=400, swap_by_lean=False, seed=seed)
        p.append(
            trialwise.alignment_predicts_swaps(
                trialwise.trial_alignment(data.isel(time=slice(18, 25))), repeats=59, seed=seed
            ).p
        )
    p = np.array(p)
    assert np.mean(p <= 0.05) <= 0.05 + 3.3 * np.sqrt(0.05 * 0.95 / len(p))
    assert 0.38 < p.mean() < 0.62


def test_logistic_regression_recovers_coefficients():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.ones((20_000, 1)), rng.standard_normal((20_000, 2))], 1)
    beta = np.array([-1.0, 0.7, -0.4])
    y = (rng.random(20_000) < 1 / (1 + np.exp(-x @ beta))).astype(float)
    found, covariance = trialwise._logistic(x, y)
    assert (np.abs(found - beta) < 4 * np.sqrt(np.diag(covariance))).all()


# --- Claims ---


def test_every_claim_has_one_threshold_and_a_reason():
    for id, rule in criteria().items():
        assert ("above" in rule) != ("below" in rule), id
        assert rule["reason"] and rule["claim"] and rule["statistic"]


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((0.9, 0.85, 0.95), "holds"),
        ((0.5, 0.4, 0.6), "does not hold"),
        ((0.82, 0.75, 0.9), "undecided"),
        ((np.nan,) * 3, "undecided"),
    ],
)
def test_verdicts_follow_the_interval(interval, verdict):
    claim = judge("normal-separates", *interval)
    assert claim.verdict == verdict and claim.id == "normal-separates"
    assert set(vars(claim)) == {"id", "claim", "statistic", "value", "low", "high", "paper", "verdict"} | {
        "networks",
        "seeds",
        "holding",
        "each",
    }
