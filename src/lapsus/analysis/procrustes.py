"""How far the geometry of one network is from that of another: Procrustes' distance of condition means.

Two networks have no units in common, so their activity can be compared only up to a rotation, reflection, shift and
scale: what is left after the best of these is the distance (Schönemann, Psychometrika 1966; Gower, Psychometrika 1975).
It is symmetric, 0 for the same geometry and 1 for geometries that share nothing.
"""

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
    """within: mean distance of networks of the same group (seeds of one recipe); between: of different groups; p: share
    of relabellings of networks whose between - within is at least as large."""

    within: float
    between: float
    p: float
    networks: int


def compare_groups(distances: np.ndarray, group: np.ndarray, repeats: int = 999, seed: int = 0) -> GroupTest:
    """Do networks of different groups differ more than seeds of one group do? distances [network, network] of any kind,
    group [network]; networks are what is relabelled."""
    group, distances = np.asarray(group), np.asarray(distances)
    if len(distances) != len(group) or len(np.unique(group)) < 2 or np.unique(group, return_counts=True)[1].max() < 2:
        raise LapsusError("Comparing groups needs two groups of networks, one of them with two networks at least.")
    rng, pairs = np.random.default_rng(seed), np.triu_indices(len(group), 1)
    of_pairs = distances[pairs]

    def split(labels: np.ndarray) -> tuple[float, float]:
        same = labels[pairs[0]] == labels[pairs[1]]
        return float(of_pairs[same].mean()), float(of_pairs[~same].mean())

    within, between = split(group)
    drawn = np.array([np.subtract(*split(rng.permutation(group))[::-1]) for _ in range(repeats)])
    p = float((1 + (drawn >= between - within - 1e-12).sum()) / (1 + repeats))
    return GroupTest(within, between, p, len(group))
