"""How far the geometry of one network is from that of another: Procrustes' distance of condition means.

Two networks have no units in common, so their activity can be compared only up to a rotation, reflection, shift and
scale: what is left after the best of these is the distance (Schönemann, Psychometrika 1966; Gower, Psychometrika 1975).
It is symmetric, 0 for the same geometry and 1 for geometries that share nothing.
"""

import math
from dataclasses import dataclass

import numpy as np

from lapsus.errors import LapsusError

__all__ = ["GroupTest", "compare_groups", "distance_matrix", "procrustes_distance", "shuffled_distance"]


def _normalised(means: np.ndarray) -> np.ndarray:
    """Centred over conditions and of norm one: [condition, unit]."""
    if means.ndim != 2 or not np.isfinite(means).all():
        raise LapsusError("Condition means must be finite and of shape [condition, unit].")
    centred = means - means.mean(0)
    norm = np.linalg.norm(centred)
    if norm == 0:
        raise LapsusError("All condition means are the same: there is no geometry to compare.")
    return centred / norm


def procrustes_distance(a: np.ndarray, b: np.ndarray) -> float:
    """1 - (sum of singular values of a'b)² of two sets of condition means [condition, unit], in [0, 1].

    The conditions are the same in both and in the same order; the numbers of units may differ.
    """
    if len(a) != len(b):
        raise LapsusError(f"The two sets have {len(a)} and {len(b)} conditions; they must be the same ones.")
    nuclear = np.linalg.svd(_normalised(a).T @ _normalised(b), compute_uv=False).sum()
    return float(np.clip(1 - nuclear**2, 0.0, 1.0))


def distance_matrix(means: list[np.ndarray]) -> np.ndarray:
    """Of every pair of networks: [network, network]."""
    found = np.zeros((len(means), len(means)))
    for i in range(len(means)):
        for j in range(i):
            found[i, j] = found[j, i] = procrustes_distance(means[i], means[j])
    return found


def shuffled_distance(means: list[np.ndarray], seed: int = 0) -> float:
    """Mean distance over pairs of networks when the conditions of one of the two are shuffled: what chance gives."""
    rng = np.random.default_rng(seed)
    pairs = zip(*np.triu_indices(len(means), 1))
    return float(np.mean([procrustes_distance(means[i], rng.permutation(means[j])) for i, j in pairs]))


@dataclass(frozen=True)
class GroupTest:
    """within: mean distance of networks of the same group and different blocks; between: of different groups and
    blocks; same_block: of different groups and the same block (NaN where no block has two). p: share of relabellings
    whose between - within is at least as large; least_p: the smallest that so few networks can give."""

    within: float
    between: float
    same_block: float
    p: float
    least_p: float
    networks: int


def compare_groups(
    distances: np.ndarray, group: np.ndarray, block: np.ndarray | None = None, repeats: int = 999, seed: int = 0
) -> GroupTest:
    """Do networks of different groups differ more than networks of one group do? distances [network, network] of any
    kind, group [network].

    Networks of one block [network] (a seed, whose networks share their start) are alike for that reason: their
    distances do not count, and networks are relabelled within blocks. Without blocks every network is its own, and all
    are relabelled.
    """
    group, distances = np.asarray(group), np.asarray(distances)
    blocks = np.arange(len(group)) if block is None else np.asarray(block)
    if not len(distances) == len(group) == len(blocks):
        raise LapsusError("Comparing groups needs a group, and a block if there are any, of every network.")
    pairs = np.triu_indices(len(group), 1)
    apart, of_pairs = blocks[pairs[0]] != blocks[pairs[1]], distances[pairs]

    def split(labels: np.ndarray) -> tuple[float, float]:
        same = labels[pairs[0]] == labels[pairs[1]]
        return float(of_pairs[same & apart].mean()), float(of_pairs[~same & apart].mean())

    same = group[pairs[0]] == group[pairs[1]]
    if not (same & apart).any() or not (~same & apart).any():
        raise LapsusError("Comparing groups needs two groups of networks, one of them with two networks at least.")
    exchanged = [np.flatnonzero(blocks == one) for one in np.unique(blocks)] if block is not None else [slice(None)]
    rng = np.random.default_rng(seed)
    (within, between), as_large = split(group), 0
    for _ in range(repeats):
        labels = group.copy()
        for own in exchanged:
            labels[own] = rng.permutation(labels[own])
        as_large += np.subtract(*split(labels)[::-1]) >= between - within - 1e-12
    p = (1 + int(as_large)) / (1 + repeats)
    inside = of_pairs[~same & ~apart]
    return GroupTest(
        within,
        between,
        float(inside.mean()) if len(inside) else float("nan"),
        p,
        _least_p(group, exchanged),
        len(group),
    )


def _least_p(group: np.ndarray, exchanged: list) -> float:
    """One over the number of ways to part the networks; groups of one size may change places."""
    ways = 1.0
    for own in exchanged:
        counts = np.unique(group[own], return_counts=True)[1]
        ways *= math.factorial(int(counts.sum())) / math.prod(math.factorial(int(k)) for k in counts)
    profile = [tuple(np.sum(group[own] == one) for own in exchanged) for one in np.unique(group)]
    alike = math.prod(math.factorial(profile.count(one)) for one in set(profile))
    return alike / ways
