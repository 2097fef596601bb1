"""Angles in radians in [-pi, pi): wrap, distance, embedding in the plane, mean.

Each function takes and returns either NumPy arrays (or numbers) or torch tensors.
"""

import math
from typing import Any

import numpy as np

__all__ = ["angle", "difference", "distance", "embed", "mean", "wrap"]


# A NumPy array, a number, or a torch tensor: a function returns what it is given. (Its own type would import torch.)
Array = Any


def _module(*values: Array) -> Any:
    """torch if any value is a tensor, else NumPy; torch is not imported for arrays."""
    if any(type(value).__module__.startswith("torch") for value in values):
        import torch

        return torch
    return np


def wrap(angle: Array) -> Array:
    """The same angle in [-pi, pi)."""
    xp = _module(angle)
    wrapped = xp.remainder(angle + math.pi, 2 * math.pi) - math.pi
    # The remainder of a tiny negative number rounds up to the modulus itself.
    return xp.where(wrapped >= math.pi, wrapped - 2 * math.pi, wrapped)


def difference(a: Array, b: Array) -> Array:
    """a minus b the short way round, in [-pi, pi)."""
    return wrap(a - b)


def distance(a: Array, b: Array) -> Array:
    """The length of the shorter arc between a and b, in [0, pi]."""
    return abs(wrap(a - b))


def embed(angle: Array, radius: Array = 1.0) -> Array:
    """Points radius * [cos, sin] in the plane; a last axis of length 2 is added."""
    xp = _module(angle)
    return radius * xp.stack([xp.cos(angle), xp.sin(angle)], -1)


def angle(x: Array) -> Array:
    """The angle of points in the plane (last axis of length 2): atan2(x2, x1), in [-pi, pi)."""
    xp = _module(x)
    return wrap((xp.atan2 if xp is not np else np.arctan2)(x[..., 1], x[..., 0]))


def mean(angles: Array, axis: int = -1, weights: Array | None = None) -> Array:
    """Direction of the (weighted) mean resultant vector along an axis."""
    xp = _module(angles)
    weights = 1.0 if weights is None else weights
    sine, cosine = (weights * xp.sin(angles)).sum(axis), (weights * xp.cos(angles)).sum(axis)
    return wrap((xp.atan2 if xp is not np else np.arctan2)(sine, cosine))
