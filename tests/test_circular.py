import math

import numpy as np
import pytest
import torch

from lapsus import circular

ANGLES = np.array([-20.0, -math.pi, -1.0, 0.0, 1.0, math.pi, 3 * math.pi, 1e-17, -1e-17, np.nextafter(-math.pi, -4)])


@pytest.mark.parametrize("make", [np.asarray, torch.tensor])
def test_wrap_lands_in_the_half_open_interval_and_keeps_the_point(make):
    wrapped = circular.wrap(make(ANGLES))
    assert bool((wrapped >= -math.pi).all()) and bool((wrapped < math.pi).all())
    np.testing.assert_allclose(np.cos(np.asarray(wrapped)), np.cos(ANGLES), atol=1e-12)
    np.testing.assert_allclose(np.sin(np.asarray(wrapped)), np.sin(ANGLES), atol=1e-12)


def test_distance_is_the_angle_between_unit_vectors():
    a, b = np.random.default_rng(0).uniform(-10, 10, (2, 1000))
    between = np.arccos(np.clip(np.cos(a) * np.cos(b) + np.sin(a) * np.sin(b), -1, 1))
    np.testing.assert_allclose(circular.distance(a, b), between, atol=1e-6)


def test_embedding_and_angle_are_inverse():
    angle = torch.linspace(-math.pi, math.pi - 1e-3, 101, dtype=torch.float64)
    torch.testing.assert_close(circular.angle(circular.embed(angle, 2.5)), angle)


def test_mean_turns_with_the_data():
    angles = np.array([0.1, -0.2, 0.4])
    for turn in (0.0, 2.0, 3.1):
        np.testing.assert_allclose(
            circular.difference(circular.mean(angles + turn), turn + circular.mean(angles)), 0, atol=1e-12
        )
    assert circular.mean(np.array([3.0, -3.0])) == pytest.approx(-math.pi)
    assert circular.mean(np.array([0.0, 1.0]), weights=np.array([1.0, 0.0])) == pytest.approx(0)
