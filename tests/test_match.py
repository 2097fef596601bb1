"""Whether a network answers as a subject does: matched, or where it is not."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from lapsus.circular import wrap
from lapsus.evaluation.match import compare
from lapsus.report.check_list import match_checks
from lapsus.trials.observer import observer_f


def answers(report, gap, f, scatter, repeats, seed):
    """Responses drawn with NumPy alone: [repeats, T]."""
    rng = np.random.default_rng(seed)
    swap = rng.uniform(size=(repeats, len(gap))) < 1 / (1 + np.exp(-f(gap)))
    return wrap(np.where(swap, report[:, 1], report[:, 0]) + scatter * rng.standard_normal(swap.shape))


@pytest.fixture(scope="module")
def shown():
    rng = np.random.default_rng(5)
    first = rng.uniform(-np.pi, np.pi, 1500)
    gap = np.radians(rng.choice(np.arange(45, 181, 15), 1500))
    return wrap(np.stack([first, first + rng.uniform(0.8, 5.4, 1500)], 1)), gap


def test_the_same_behaviour_is_matched(shown):
    report, gap = shown
    network, fitted, data = (answers(report, gap, observer_f, 0.15, k, seed) for seed, k in enumerate((8, 16, 1)))
    found = compare(report, gap, network, fitted, data[0])
    assert found.matched and found.where == () and found.swap_curve_mad_fit < 0.015 and found.fit_explains_data
    # The curve is the one that was put in: nothing is lost between bins and trials.
    truth = [1 / (1 + np.exp(-observer_f(d))) for d in found.distance]
    assert found.fit == pytest.approx(truth, abs=0.03)
    assert found.scatter.network == pytest.approx(0.15, rel=0.1)


def test_another_behaviour_is_not_and_it_says_where(shown):
    report, gap = shown
    fitted, data = (answers(report, gap, observer_f, 0.15, k, seed) for seed, k in enumerate((16, 1)))
    never = compare(report, gap, answers(report, gap, lambda d: -9 + 0 * d, 0.15, 8, 9), fitted, data[0])
    assert not never.matched
    nearest = f"{np.degrees(never.distance[0]):.0f}"  # where the subject swaps most, and this network fails most
    (curve,) = (re.search(r"the swap curve is (0\.\d+) .* most at (\d+)°", w) for w in never.where if "curve" in w)
    assert float(curve[1]) == pytest.approx(np.mean(never.fit), abs=0.01) and curve[2] == nearest
    (outside,) = (re.findall(r"(\d+)°", w) for w in never.where if "predictive interval" in w)
    assert nearest in outside
    wide = compare(report, gap, answers(report, gap, observer_f, 0.3, 8, 9), fitted)
    assert not wide.matched and any("scatter" in w for w in wide.where) and wide.data is None
    guesses = answers(report, gap, observer_f, 0.15, 8, 9)
    guesses[:, ::5] = np.random.default_rng(1).uniform(-np.pi, np.pi, guesses[:, ::5].shape)
    lost = compare(report, gap, guesses, fitted)
    assert not lost.matched and "stray" in lost.failing and "precision" in wide.failing and "swaps" in never.failing
    # Each criterion is a check, with the verdict that the match gives.
    names = {"swaps": "swaps", "precision": "precision", "stray": "far from items"}
    for one in (never, wide, lost):
        said = {check.name: check.status for check in match_checks([SimpleNamespace(match=one)], 2, False)}
        assert {c for c, name in names.items() if said[f"Network matches the fit: {name}"] == "failed"} == set(
            one.failing
        )


def test_a_network_without_swaps_is_never_matched_where_swaps_are_rare(shown):
    """2.6 % swaps, guesses or not: no swaps at all are not within the tolerance, the same swaps are."""
    report, gap = shown
    rare, never = (lambda d: -3.62 + 0 * d), (lambda d: -30 + 0 * d)
    for guessing in (0.0, 0.1):

        def drawn(f, repeats, seed, guessing=guessing):
            responses = answers(report, gap, f, 0.15, repeats, seed)
            rng = np.random.default_rng([seed, 1])
            guess = rng.uniform(size=responses.shape) < guessing
            return np.where(guess, rng.uniform(-np.pi, np.pi, responses.shape), responses)

        fitted = drawn(rare, 16, 0)
        same, without = (compare(report, gap, drawn(f, 16, 3), fitted) for f in (rare, never))
        assert same.tolerance == pytest.approx(0.013, abs=0.004)
        assert same.matched and same.with_margin
        assert not without.matched and without.failing == ("swaps",) and "is allowed" in without.where[0]


def test_items_that_are_near_each_other_do_not_widen_the_tolerance():
    """With colours anywhere a tenth of the responses were nearest to the non-target, a quarter of these by a swap: the
    tolerance was above the rate of swaps, so that a network without any was within it."""
    rng = np.random.default_rng(0)
    report = rng.uniform(-np.pi, np.pi, (3000, 2))
    gap = np.abs(wrap(report[:, 1] - report[:, 0]))

    def drawn(rate, seed, guesses=0.05):
        rng = np.random.default_rng(seed)
        item = (rng.uniform(size=(16, 3000)) < rate).astype(int)
        response = report[np.arange(3000), item] + 0.27 * rng.normal(size=item.shape)
        guessed = rng.uniform(size=item.shape) < guesses
        return wrap(np.where(guessed, rng.uniform(-np.pi, np.pi, item.shape), response))

    fitted = drawn(0.026, 1)
    same, without = (compare(report, gap, drawn(rate, 2), fitted) for rate in (0.026, 0.0))
    assert same.fit.mean() > 0.07 and same.tolerance < 0.015
    assert same.matched and not without.matched and without.failing == ("swaps",)


def test_orientations_are_counted_in_their_own_degrees(shown):
    """Half as many as on the full circle, in what is said and in what is drawn."""
    report, gap = shown
    fitted, data = (answers(report, gap, observer_f, 0.15, k, seed) for seed, k in enumerate((16, 1)))
    never = answers(report, gap, lambda d: -9 + 0 * d, 0.15, 8, 9)
    circle, half = (compare(report, gap, never, fitted, data[0], degrees=d) for d in (180 / np.pi, 90 / np.pi))
    assert half.shown_distance == pytest.approx(np.degrees(half.distance) / 2)
    first, second = (np.array([float(n) for n in re.findall(r"(\d+)°", " ".join(m.where))]) for m in (circle, half))
    assert len(first) >= 2 and second == pytest.approx(first / 2, abs=1)


@pytest.mark.slow
def test_predictive_intervals_hold_their_level(shown):
    report, gap = shown
    fitted = answers(report, gap, observer_f, 0.15, 16, 1)
    network = answers(report, gap, observer_f, 0.15, 8, 2)
    outside = [
        any(
            compare(
                report, gap, network, fitted, answers(report, gap, observer_f, 0.15, 1, 50 + k)[0]
            ).predictive_network.outside
        )
        for k in range(25)
    ]
    # 5 % of data sets may have a bin outside; the network's own sampling error adds a little.
    assert np.mean(outside) <= 0.24
