"""Swap curves, intervals and modes: what is counted, and that intervals hold their level."""

import numpy as np
import pytest

from lapsus.circular import embed, wrap
from lapsus.mechanism import modes
from lapsus.statistics import intervals, swaps


def test_the_swap_curve_counts_and_its_intervals_take_units_as_the_sample():
    rng = np.random.default_rng(0)
    probe = rng.uniform(np.pi / 4, np.pi, 4000)
    swap = rng.random(4000) < np.where(probe < 1.5, 0.3, 0.05)
    response, report = np.where(swap, 1.9, 0.1), np.tile([0.0, 2.0], (4000, 1))
    item, gap = swaps.nearest_item(response, report)
    np.testing.assert_array_equal(item == 1, swap)
    np.testing.assert_allclose(gap, 0.1)
    found = swaps.swap_curve(item == 1, probe, [0.7, 1.5, 3.2])
    np.testing.assert_allclose(found.rate, [swap[probe < 1.5].mean(), swap[probe >= 1.5].mean()])
    assert ((found.low < [0.3, 0.05]) & (found.high > [0.3, 0.05])).all() and found.pairs.sum() == 4000
    np.testing.assert_allclose(swaps.rate_by_distance(np.stack([swap, ~swap]), probe, [0.7, 1.5, 3.2])[0], found.rate)
    # Sixteen trials that all answer alike are one observation.
    wide = intervals.rate_interval(np.repeat(swap, 16), np.repeat(np.arange(4000), 16))
    assert wide == pytest.approx(intervals.rate_interval(swap, np.arange(4000)))


def test_intervals_over_units_cover():
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(400):
        p = rng.beta(1, 4, 60)
        hits = rng.random((60, 12)) < p[:, None]
        _, low, high = intervals.rate_interval(hits.ravel(), np.repeat(np.arange(60), 12))
        covered.append(low <= 0.2 <= high)
    assert 0.91 <= np.mean(covered) <= 0.98


def test_distances_that_differ_by_rounding_are_one():
    gap = np.radians([27.692, 27.693, 55.385, 83.077] * 5)
    assert len(swaps.distance_edges(gap)) == 4
    assert len(swaps.distance_edges(np.linspace(0.5, 3, 100), 6)) == 7
    edges = swaps.distance_edges(np.random.default_rng(0).exponential(0.5, 600) % np.pi, 6, equally_many=True)
    assert len(edges) == 7


def test_two_modes_are_not_one_wherever_it_is():
    rng = np.random.default_rng(0)
    target, distractor = 0.3, 0.3 - 2 * np.pi / 3
    for centre, width in ((target, 0.2), (target, 1.0), (distractor, 0.2)):
        one = wrap(centre + width * rng.standard_normal(256))
        assert not modes.two_modes(one, target, distractor)
    mixed = wrap(np.where(rng.random(256) < 0.2, distractor, target) + 0.2 * rng.standard_normal(256))
    assert modes.two_modes(mixed, target, distractor)
    elsewhere = wrap(np.where(rng.random(256) < 0.3, target + 2.0, target) + 0.2 * rng.standard_normal(256))
    assert not modes.two_modes(elsewhere, target, distractor)


def test_unimodality_test_is_calibrated_and_has_power():
    rng = np.random.default_rng(0)
    p = [modes.unimodality(rng.vonmises(1.0, 4.0, 200), repeats=60, seed=k).p for k in range(60)]
    # Silverman's test is known to be conservative; it must not be liberal.
    assert np.mean(np.array(p) <= 0.05) <= 0.12
    two = np.concatenate([rng.vonmises(0, 20, 170), rng.vonmises(2, 20, 30)])
    assert modes.unimodality(two, repeats=60).p <= 0.05


def test_averaging_places_modes_at_zero_and_one():
    target, distractor = embed(np.array([0.2]), 2.5), embed(np.array([2.0]), 2.5)
    np.testing.assert_allclose(
        modes.averaging(np.concatenate([target, distractor, (target + distractor) / 2]), target, distractor),
        [0, 1, 0.5],
    )


def test_a_robust_sd_is_that_of_a_normal_and_bears_strays():
    away = np.abs(np.random.default_rng(0).normal(0, 2.0, (3, 200_000)))
    np.testing.assert_allclose(intervals.robust_sd(away), 2.0, rtol=0.01)
    away[:, ::100] = 1e6
    np.testing.assert_allclose(intervals.robust_sd(away), 2.0, rtol=0.03)


def test_proportion_interval_covers():
    rng = np.random.default_rng(0)
    hits = rng.binomial(50, 0.1, 4000)
    low, high = intervals.proportion_interval(hits, 50)
    assert np.mean((low <= 0.1) & (high >= 0.1)) > 0.93
