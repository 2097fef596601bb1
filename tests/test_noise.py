"""The counter-based generator: its words, its distribution, and what its draws depend on."""

import numpy as np
import pytest
import torch
from scipy import stats

from lapsus.engine import fused, noise, normal
from lapsus.errors import LapsusError


@pytest.mark.parametrize(
    "counter, key, words",
    [
        # The known answers that the authors of Philox publish with their generator.
        ([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            (0xA4093822, 0x299F31D0),
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_known_answers(counter, key, words):
    assert noise.philox(np.array(counter), key).tolist() == words


@pytest.mark.parametrize("isa", fused.instruction_sets())
@pytest.mark.parametrize("shape", [(7, 5, 3, 11), (1, 1, 1, 1), (68, 16, 2, 16), (3, 2, 4, 130)])
def test_kernel_draws_what_numpy_draws(isa, shape, monkeypatch):
    monkeypatch.setenv("LAPSUS_ISA", isa)
    steps, units, conditions, trials = shape
    seed = 0x123456789ABCDEF0
    ours = normal(*shape, key=(seed, 9)).numpy().reshape(-1, conditions, trials)
    theirs = noise._normal(steps * units, range(conditions), trials, seed & 0xFFFFFFFF, seed >> 32, 9)
    assert np.abs(ours - theirs).max() < 3e-6


def test_moments_and_distribution():
    draws = normal(64, 16, 64, 32, key=(2024, 0)).double().flatten().numpy()
    count = len(draws)
    assert abs(draws.mean()) < 4 / np.sqrt(count)
    assert abs(draws.var() - 1) < 4 * np.sqrt(2 / count)
    assert abs((draws**3).mean()) < 4 * np.sqrt(15 / count)
    assert abs((draws**4).mean() - 3) < 4 * np.sqrt(96 / count)
    assert stats.kstest(draws[:200_000], "norm").pvalue > 1e-3
    # Tails, where a poor transformation shows first.
    for level in (3.0, 4.0):
        expected = 2 * stats.norm.sf(level) * count
        assert abs((np.abs(draws) > level).sum() - expected) < 5 * np.sqrt(expected)


def test_neighbours_are_independent():
    draws = normal(40, 16, 16, 32, key=(1, 0)).double()
    count = draws.numel()
    for axis in range(4):
        first, second = draws.narrow(axis, 0, draws.shape[axis] - 1), draws.narrow(axis, 1, draws.shape[axis] - 1)
        assert abs((first * second).mean()) < 5 / np.sqrt(count)
        assert abs(((first**2 - 1) * (second**2 - 1)).mean()) < 5 * 2 / np.sqrt(count)


@pytest.mark.parametrize("other", [(2, 0), (1, 1), (1 + 2**32, 0)])
def test_keys_are_independent(other):
    one, two = normal(32, 16, 8, 16, key=(1, 0)), normal(32, 16, 8, 16, key=other)
    assert not torch.equal(one, two)
    assert abs((one * two).double().mean()) < 5 / np.sqrt(one.numel())


def test_conditions_do_not_depend_on_how_the_batch_is_cut():
    whole = normal(5, 3, 10, 7, key=(4, 2))
    parts = [normal(5, 3, part, 7, key=(4, 2)) for part in (range(3), range(3, 4), range(4, 10))]
    assert torch.equal(whole, torch.cat(parts, 2))
    assert torch.equal(whole, normal(5, 3, 10, 7, key=(4, 2), threads=1))


def test_float64_is_the_same_draw():
    double = normal(5, 3, 2, 7, key=(4, 2), dtype=torch.float64)
    assert double.dtype == torch.float64 and torch.equal(double.float(), normal(5, 3, 2, 7, key=(4, 2)))


def test_bad_keys_are_named():
    with pytest.raises(LapsusError, match="key"):
        normal(1, 1, 1, 1, key=(-1, 0))
    with pytest.raises(LapsusError, match="conditions"):
        normal(1, 1, range(0, 4, 2), 1, key=(0, 0))
