"""Fixed and slow points of a map, with Jacobians by autograd in float64, time constants, and the local dimension of a
cloud of points."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from lapsus.networks import DendriticTree
from lapsus.protocols import Network

__all__ = [
    "Step",
    "distinct_points",
    "find_slow_points",
    "jacobian",
    "manifold_dimension",
    "slow_modes",
    "time_constants",
]

# Points computed at a time: the leaves of more would not stay in the cache, nor thousands in memory.
_POINTS = 128


def jacobian(step: Callable[[Tensor], Tensor], r: Tensor) -> Tensor:
    """Jacobians [point, unit, unit] of a map of states [unit, point], which treats points apart, by autograd."""
    return torch.cat([_jacobian(step, part) for part in r.split(_POINTS, dim=1)])


def _jacobian(step: Callable[[Tensor], Tensor], r: Tensor) -> Tensor:
    if isinstance(step, Step) and step.is_tree:
        return step.tree_jacobian(r)
    r = r.detach().requires_grad_(True)
    with torch.enable_grad():
        reached = step(r)
        rows = [
            torch.autograd.grad(reached[k].sum(), r, retain_graph=k + 1 < len(reached))[0] for k in range(len(reached))
        ]
    return torch.stack(rows).permute(2, 0, 1)  # [unit out, unit in, point] → point first


@dataclass(frozen=True, eq=False)
class Step:
    """One step without noise of states [unit, point]: r ← (1 - alpha) r + alpha F(r, drive, biases), with one drive
    [1, D] for all points and one row of biases for each layer."""

    network: Network
    drive: Tensor | None
    biases: tuple[Tensor, ...]

    def __call__(self, r: Tensor) -> Tensor:
        parts = [self.network.F(part[:, None], self.drive, self.biases)[:, 0] for part in r.split(_POINTS, dim=1)]
        return (1 - self.network.alpha) * r + self.network.alpha * torch.cat(parts, 1)

    @property
    def is_tree(self) -> bool:
        """Whether every leaf belongs to one unit, so that one backward pass to the leaves gives all of the Jacobian."""
        return isinstance(self.network, DendriticTree) and type(self.network).F is DendriticTree.F

    def tree_jacobian(self, r: Tensor) -> Tensor:
        """dF_k/dr_j is the sum over the leaves of unit k of dF_k/dleaf, by autograd, times the weight of j there."""
        tree = cast(DendriticTree, self.network)
        leaves = r.new_zeros(len(tree.leaf_weight), r.shape[1])
        if self.drive is not None:
            leaves += self.drive.T
        leaves.requires_grad_(True)
        with torch.enable_grad():
            F = tree.F(r.detach()[:, :, None], leaves.T, self.biases)
            slope = torch.autograd.grad(F.sum(), leaves)[0]
        own = slope.view(tree.units, -1, r.shape[1]).mT  # leaves lie unit by unit
        rows = own @ tree.leaf_weight.view(tree.units, -1, tree.units)  # [unit out, point, unit in]
        return (1 - tree.alpha) * torch.eye(tree.units, dtype=r.dtype) + tree.alpha * rows.transpose(0, 1)


def find_slow_points(
    step: Callable[[Tensor], Tensor], starts: Tensor, *, iterations: int = 20, tolerance: float = 1e-9
) -> tuple[Tensor, Tensor]:
    """Minimise the speed |step(r) - r| from states [unit, point] by Levenberg–Marquardt, all points in one batch.

    Returns the points [unit, point] and their speeds [point].
    """
    r = starts.clone()
    count = r.shape[1]
    damping = torch.full((count,), 1e-3, dtype=r.dtype)
    identity = torch.eye(len(r), dtype=r.dtype)
    residual = step(r) - r
    for _ in range(iterations):
        speed = residual.norm(dim=0)
        active = torch.nonzero((speed > tolerance) & (damping < 1e6))[:, 0]
        if len(active) == 0:
            break
        here, error = r[:, active], residual[:, active]
        slope = jacobian(step, here) - identity
        normal = slope.mT @ slope + damping[active, None, None] * identity
        move = torch.linalg.solve(normal, (slope.mT @ error.T[..., None]))[..., 0].T
        reached = here - move
        new = step(reached) - reached
        gain = 1 - new.norm(dim=0) / speed[active]
        better = gain > 0
        # A point that hardly gets slower any more has found its slow point.
        damping[active[better & (gain < 1e-3)]] = 1e9
        chosen = active[better]
        r[:, chosen], residual[:, chosen] = reached[:, better], new[:, better]
        damping[active] = damping[active] * torch.where(better, 0.3, 8.0).to(r.dtype)
    return r, residual.norm(dim=0)


def time_constants(jacobians: np.ndarray) -> np.ndarray:
    """Time constants in steps, longest first, of maps r ← J r: [point, mode], infinite for modes that do not decay.

    jacobians: [point, unit, unit]. A mode with eigenvalue z shrinks by |z| a step, so by 1/e in -1/ln|z| steps.
    """
    size = np.sort(np.abs(np.linalg.eigvals(jacobians)), axis=-1)[..., ::-1]
    with np.errstate(divide="ignore"):
        return np.where(size < 1 - 1e-9, -1 / np.log(np.clip(size, 1e-12, 1 - 1e-12)), np.inf)


def slow_modes(jacobians: np.ndarray, duration: float) -> np.ndarray:
    """How many modes of each map last longer than `duration` steps: [point]."""
    return (time_constants(jacobians) > duration).sum(-1)


def distinct_points(points: np.ndarray, tolerance: float) -> np.ndarray:
    """Which of points [point, unit] are more than `tolerance` from all kept before them: indices."""
    kept: list[int] = []
    for k in range(len(points)):
        if not kept or np.linalg.norm(points[kept] - points[k], axis=1).min() > tolerance:
            kept.append(k)
    return np.array(kept, dtype=int)


def manifold_dimension(points: np.ndarray, *, neighbours: int = 24) -> float:
    """Local dimension of a cloud of points [point, unit]: how the volume within reach grows with distance.

    The maximum-likelihood estimate from distances to nearest neighbours (Levina & Bickel 2005, with MacKay &
    Ghahramani's average of inverses). 0 for a single point or a handful of them.
    """
    count = len(points)
    if count <= neighbours + 1:
        return 0.0
    square = (points**2).sum(1)
    gap = np.sqrt(np.maximum(square[:, None] + square - 2 * points @ points.T, 0))
    near = np.sort(np.partition(gap, neighbours, axis=1)[:, : neighbours + 1], axis=1)[:, 1:]
    scale = np.sqrt(points.var(0).sum())
    kept = near[:, 0] > 1e-6 * max(scale, 1e-12)
    # Points that fell on each other are isolated fixed points: a cloud of a few dots has no dimension.
    if kept.mean() < 0.5:
        return 0.0
    inverse = np.log(near[kept, -1:] / near[kept, :-1]).sum(1) / (neighbours - 2)
    return float(1 / max(inverse.mean(), 1e-12))
