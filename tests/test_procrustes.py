"""Distance of geometries: against scipy, and on geometries that are known."""

import sys
from importlib import import_module
from importlib.metadata import version
from inspect import signature
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial import procrustes

from lapsus import LapsusError
from lapsus.mechanism.dynamical_distance import SETTINGS, dynamical_distances
from lapsus.mechanism.procrustes import compare_groups, distance_matrix, procrustes_distance, shuffled_distance

RNG = np.random.default_rng(0)


def ring(units: int, stretch: float = 1.0, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """24 colours on an ellipse, in a random plane of so many units, shifted and scaled."""
    rng = np.random.default_rng(seed)
    angle = np.arange(24) * 2 * np.pi / 24
    plane = np.linalg.qr(rng.normal(size=(units, 2)))[0].T
    points = np.stack([np.cos(angle), stretch * np.sin(angle)], 1) @ plane
    return rng.uniform(0.5, 5) * points + rng.normal(size=units) + noise * rng.normal(size=(24, units))


def test_equals_scipy():
    for _ in range(5):
        a, b = RNG.normal(size=(20, 7)), RNG.normal(size=(20, 7))
        assert np.isclose(procrustes_distance(a, b), procrustes(a, b)[2])
        assert np.isclose(procrustes_distance(a, b), procrustes_distance(b, a))


def test_the_same_ring_in_other_units_is_the_same():
    assert procrustes_distance(ring(16), ring(30, seed=5)) < 1e-12
    assert procrustes_distance(ring(16), ring(16, stretch=0.2, seed=1)) > 0.1


def test_distance_matrix_is_symmetric_with_an_empty_diagonal():
    found = distance_matrix([ring(8, s, seed=i) for i, s in enumerate((1.0, 0.5, 0.1))])
    assert np.allclose(found, found.T) and (np.diag(found) == 0).all() and found[0, 2] > found[0, 1] > 0


def test_groups_that_differ_are_told_from_groups_that_do_not():
    group = np.repeat([0, 1], 5)
    differ = [ring(12, 1.0 if g == 0 else 0.3, 0.1, seed=i) for i, g in enumerate(group)]
    found = compare_groups(distance_matrix(differ), group)
    assert found.within < found.between < shuffled_distance(differ) and found.p < 0.02
    p = [
        compare_groups(distance_matrix([ring(12, 1.0, 0.1, seed=100 * k + i) for i in range(10)]), group, repeats=99).p
        for k in range(40)
    ]
    assert (
        np.mean(np.array(p) <= 0.05) <= 0.175
    )  # 95 % of binomial(40, 0.05) are at most 4 of 40, all but 0.1 % at most 7


def started_alike(block: np.ndarray, group: np.ndarray, effect: float, seed: int) -> np.ndarray:
    """Distances of networks whose geometry is that of their start (block), a little of their group's, and noise."""
    rng = np.random.default_rng(seed)
    common, starts, groups = (rng.normal(size=(9, 40, 6)) for _ in range(3))
    noise = 0.05 * rng.normal(size=(len(group), 40, 6))
    return distance_matrix(list(common[0] + 0.5 * starts[block] + effect * groups[group] + noise))


def test_networks_that_share_a_start_are_relabelled_within_it():
    """Small marks of a group are found beside large ones of a start; where there is none, p is uniform."""
    block, group = np.repeat(np.arange(5), 3), np.tile(np.arange(3), 5)
    marked = started_alike(block, group, 0.2, seed=0)
    found = compare_groups(marked, group, block)
    assert found.p <= 0.005 and found.within < found.between and found.same_block < 0.2 * found.within
    assert compare_groups(marked, group).p > 0.5  # a test that takes them for independent does not see it
    null = [compare_groups(started_alike(block, group, 0.0, seed=k), group, block, repeats=99).p for k in range(1, 41)]
    assert 0.35 < np.mean(null) < 0.65 and np.mean(np.array(null) <= 0.05) <= 0.175


def test_the_least_p_is_that_of_all_relabellings():
    """Against every labelling of two blocks of two, and of six networks in two groups of three."""
    distances = RNG.uniform(0.5, 1, (6, 6))
    distances = distances + distances.T
    group = np.array([0, 0, 0, 1, 1, 1])
    ways = {frozenset([chosen, frozenset(range(6)) - chosen]) for chosen in map(frozenset, combinations(range(6), 3))}
    assert compare_groups(distances, group).least_p == pytest.approx(1 / len(ways)) == 0.1
    block = np.array([0, 0, 1, 1, 2, 2])
    assert compare_groups(distances, np.array([0, 1] * 3), block).least_p == pytest.approx(1 / 2**2)
    assert compare_groups(distances, np.array([0, 1, 0, 1, 0, 2]), block).least_p == pytest.approx(1 / 2**3)


@pytest.mark.parametrize("bad", [np.zeros((5, 3)), np.full((5, 3), np.nan), np.zeros(5)])
def test_what_has_no_geometry_is_refused(bad):
    with pytest.raises(LapsusError):
        procrustes_distance(bad, RNG.normal(size=(5, 3)))
    with pytest.raises(LapsusError, match="must be the same ones"):
        procrustes_distance(RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3)))
    with pytest.raises(LapsusError, match="two groups"):
        compare_groups(np.zeros((2, 2)), np.array([0, 0]))


def turning(rate: float, seed: int) -> np.ndarray:
    """Noisy activity [trial, time, unit] of a plane that turns by `rate` a step, in random coordinates."""
    rng = np.random.default_rng(seed)
    turn = 0.98 * np.array([[np.cos(rate), -np.sin(rate)], [np.sin(rate), np.cos(rate)]])
    x, seen = rng.normal(size=(40, 2)), []
    for _ in range(60):
        x = x @ turn.T + 0.05 * rng.normal(size=x.shape)
        seen.append(x)
    return np.stack(seen, 1) @ np.linalg.qr(rng.normal(size=(8, 2)))[0].T


@pytest.mark.filterwarnings("ignore")  # of the package and what it imports
def test_dynamics_that_turn_alike_are_near_whatever_their_coordinates():
    pytest.importorskip("DSA", reason="dsa-metric is not installed: lapsus[dsa]")
    found = dynamical_distances([turning(0.1, 0), turning(0.1, 1), turning(0.6, 2), turning(0.6, 3)], rank=4)
    test = compare_groups(found.to_numpy(), np.array([0, 0, 1, 1]))
    assert test.between > 3 * test.within


@pytest.mark.filterwarnings("ignore")
def test_every_argument_that_the_package_has_is_given_and_recorded():
    """Its defaults change between versions."""
    package = pytest.importorskip("DSA", reason="dsa-metric is not installed: lapsus[dsa]")
    arguments = {*signature(package.DSA).parameters, *signature(import_module("DSA.dmd").DMD).parameters}
    # What is compared, how it is printed and how it is shared out change no result.
    others = {"X", "Y", "data", "dmd_class", "dmd_kwargs", "verbose", "n_jobs", "send_to_cpu"}
    found = dynamical_distances([turning(0.1, 0), turning(0.1, 1)], delays=3, rank=4)
    assert set(found.attrs) - {"dsa-metric"} == arguments - others
    assert found.attrs["dsa-metric"] == version("dsa-metric") and found.attrs["n_delays"] == "3"


def test_arguments_are_given_and_recorded(monkeypatch):
    given = {}

    class Stand:
        def __init__(self, X, verbose=True, **others):
            given.update(others, verbose=verbose)
            self.count = len(X)

        def fit_score(self):
            return np.zeros((self.count, self.count))

    monkeypatch.setitem(sys.modules, "DSA", SimpleNamespace(DSA=Stand))
    monkeypatch.setattr("lapsus.mechanism.dynamical_distance.version", lambda name: f"{name} 9.9")
    found = dynamical_distances([turning(0.1, 0), turning(0.1, 1)], delays=3, rank=4)
    assert given == SETTINGS | {"n_delays": 3, "rank": 4, "verbose": True}
    assert found.attrs == {"dsa-metric": "dsa-metric 9.9"} | {k: str(v) for k, v in given.items() if k != "verbose"}
    assert found.shape == (2, 2)


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "DSA", None)
    with pytest.raises(LapsusError, match=r"install lapsus\[dsa\]"):
        dynamical_distances([turning(0.1, 0)])
