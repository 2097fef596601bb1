"""Means over units that differ: against closed forms, and how often their intervals cover what was put in."""

import numpy as np
import pytest
from scipy import stats

from lapsus.statistics.random_effects import differences_within, ensemble_mean, outliers


def test_without_errors_it_is_students_interval():
    y = np.array([0.1, 0.4, 0.2, 0.9, 0.3])
    found = ensemble_mean(y)
    low, high = stats.t.interval(0.95, 4, y.mean(), stats.sem(y))
    assert np.allclose([found.mean, found.low, found.high, found.between], [y.mean(), low, high, y.std(ddof=1)])


def test_equal_errors_have_a_closed_form():
    """With one s.e. for all, tau² is the sample variance less that error, and the mean is the plain one."""
    y, s = np.array([1.0, 2.0, 4.0, 5.0]), 0.7
    found = ensemble_mean(y, np.full(4, s))
    assert np.isclose(found.between**2, y.var(ddof=1) - s**2) and np.isclose(found.mean, y.mean())
    assert np.isclose(found.high - found.mean, stats.t.ppf(0.975, 3) * stats.sem(y))


def test_no_more_spread_than_errors_means_no_difference_between_units():
    found = ensemble_mean(np.array([1.0, 1.1, 0.9]), np.array([1.0, 2.0, 0.5]))
    weights = 1 / np.array([1.0, 4.0, 0.25])
    assert found.between == 0 and np.isclose(found.mean, (weights * [1.0, 1.1, 0.9]).sum() / weights.sum())


@pytest.mark.parametrize("between, units", [(0.0, 3), (0.5, 3), (2.0, 5), (0.5, 12)])
@pytest.mark.parametrize("least, most, level", [(0.2, 0.6, 0.95), (0.1, 1.0, 0.92)])
@pytest.mark.slow
def test_intervals_have_their_level(between, units, least, most, level):
    """1,000 ensembles with errors that differ threefold, as in members of one sweep: 95 % within four standard errors
    of that, or more (with no difference between units the interval is known to be wide); tenfold: 92 %."""
    rng = np.random.default_rng(units)
    errors = rng.uniform(least, most, (1000, units))
    y = 1.5 + between * rng.normal(size=errors.shape) + errors * rng.normal(size=errors.shape)
    found = [ensemble_mean(*pair) for pair in zip(y, errors)]
    covered = np.mean([one.low <= 1.5 <= one.high for one in found])
    assert covered > level - 4 * np.sqrt(0.95 * 0.05 / 1000), covered
    if between == 2.0:
        assert covered < 0.985 and abs(np.median([one.between for one in found]) - 2) < 0.4


def test_a_further_unit_lies_where_it_is_expected():
    rng = np.random.default_rng(1)
    y = rng.normal(size=(1000, 9))
    inside = np.mean([one.next_low <= new <= one.next_high for one, new in zip(map(ensemble_mean, y[:, :8]), y[:, 8])])
    assert abs(inside - 0.95) < 0.02, inside


def test_few_or_missing_units():
    assert ensemble_mean(np.array([np.nan, 3.0])).units == 1 and np.isnan(ensemble_mean(np.array([3.0])).low)
    assert ensemble_mean(np.array([])).units == 0
    same = ensemble_mean(np.array([2.0, 2.0, 2.0]))
    assert (same.low, same.high, same.between) == (2.0, 2.0, 0.0)
    assert np.isfinite(ensemble_mean(np.array([2.0, 2.0, 2.5]), np.array([0.0, 0.0, 0.1])).mean)


def test_outliers():
    y = np.array([1.0, 1.1, 0.9, 1.05, 0.95, 4.0, np.nan])
    assert list(np.flatnonzero(outliers(y))) == [5]
    assert not outliers(np.array([1.0, 1.0, 9.0])).any() and not outliers(np.full(8, 2.0)).any()
    rng = np.random.default_rng(0)
    assert np.mean([outliers(rng.normal(size=20)).any() for _ in range(500)]) < 0.15


def test_values_whose_squares_vanish_are_as_good_as_equal():
    """Likelihoods may be that small; their variance is 0 where the values differ."""
    found = ensemble_mean(np.array([0.0, 1.7e-281]))
    assert (found.mean, found.low, found.between, found.units) == (0.0, 0.0, 0.0, 2)


def test_differences_within_units_are_students():
    rng = np.random.default_rng(5)
    first, second = rng.standard_normal((2, 6, 4))
    first[2, 1] = second[:5, 2] = second[:, 3] = np.nan
    mean, low, high, units = differences_within(first, second)
    assert units.tolist() == [6, 5, 1, 0]
    for k in (0, 1):
        both = np.isfinite(first[:, k])
        interval = stats.ttest_rel(first[both, k], second[both, k]).confidence_interval()
        assert np.allclose([low[k], high[k]], interval) and np.isclose(mean[k], (first - second)[both, k].mean())
    assert mean[2] == first[5, 2] - second[5, 2] and np.isnan([low[2], high[2], mean[3]]).all()
