"""Fixed and slow points of a network's dynamics, with Jacobians by autograd in float64; divergence in delay 2."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from lapsus.analysis import dynamics as analysis
from lapsus.analysis.commitment import Commitment, crossing
from lapsus.circular import embed
from lapsus.engine import Timeline, rollout
from lapsus.networks import DendriticTree
from lapsus.protocols import Network
from lapsus.study.commitment import decision_steps
from lapsus.study.replay import Replay, probe_conditions, step_times
from lapsus.training.model import Model

__all__ = ["dynamics", "find_slow_points", "jacobian"]


# Points computed at a time: the leaves of more would not stay in the cache, nor thousands in memory.
_POINTS = 128
# Steps after delay 1 for which memories are followed.
_LASTS = 400


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


def dynamics(
    model: Model,
    *,
    starts: int = 4096,
    trajectories: int = 64,
    cues: int = 2,
    probe_distance: float | None = None,
    commitment: Commitment | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> analysis.Dynamics:
    """Slow points of delay 1 from `starts` visited states, the same under the cue, and divergence along trajectories.

    A point is fixed where its speed is below a millionth of the median speed of visited states, slow where it would
    move less in the whole of delay 1 than visited states do in one step.
    """
    network = copy.deepcopy(model).double().requires_grad_(False).network
    given = probe_conditions(model, starts, seed, None)
    task = Replay.of(model, given)
    _, path = task.run(task.initial(1, seed), seed, keep=True, threads=threads)
    _, ends = decision_steps(model)
    delay = model.task.epochs["delay"]
    biases = tuple(table.double() for table in task.biases)
    free = Step(network, None, _row(biases, 0))
    rng = np.random.default_rng(seed)
    when = torch.as_tensor(rng.integers(ends["delay"] - delay, ends["delay"] + 1, starts))
    visited = path[when, :, torch.arange(starts), 0].T.double()  # [unit, point]
    usual = float((free(visited) - visited).norm(dim=0).median())
    points, speed = find_slow_points(free, visited, tolerance=1e-7 * usual)
    slow = speed * max(delay, 1) < usual
    fixed = speed < 1e-6 * usual
    kept = points[:, slow].T.numpy()
    scale = float(path[ends["delay"]][:, :, 0].double().var(1).sum().sqrt())
    at = jacobian(free, points[:, slow]).numpy() if slow.any() else np.empty((0, *[network.units] * 2))
    constants = analysis.time_constants(at) if len(at) else np.full((1, network.units), np.nan)
    certain = analysis.distinct_points(points[:, fixed].T.numpy(), 1e-3 * scale)
    cue_modes, cue_constants = [], []
    for c in range(cues):
        on = Step(network, task.drives[-1, c : c + 1].double(), _row(biases, 0))
        few = path[ends["cue"]][:, : min(256, starts), 0].double()
        reached, quick = find_slow_points(on, few, tolerance=1e-7 * usual)
        settled = quick * model.task.epochs["cue"] < usual
        if settled.any():
            here = analysis.time_constants(jacobian(on, reached[:, settled]).numpy())
            cue_constants.append(np.median(here, axis=0))
            cue_modes.append(float(np.median((here > delay).sum(-1))))
    memories, lifetime = _memories(model, task, ends, min(starts, 1024), threads)
    parted = _divergence(model, network, biases, trajectories, probe_distance, seed, threads)
    half = crossing(parted.times, parted.predicted)
    agreement = float("nan")
    if commitment is not None:
        late = commitment.times >= 0
        expected = np.interp(commitment.times[late], parted.times, parted.predicted)
        agreement = float(np.corrcoef(expected, commitment.share[late])[0, 1])
    return analysis.Dynamics(
        fixed_points=len(certain),
        slow=float(slow.double().mean()),
        speed=float(speed[slow].median() / usual) if slow.any() else float("nan"),
        manifold_dimension=analysis.manifold_dimension(kept),
        slow_modes=float(np.median((constants > delay).sum(-1))) if len(at) else float("nan"),
        time_constants=np.median(constants, axis=0),
        cue_slow_modes=float(np.mean(cue_modes)) if cue_modes else float("nan"),
        cue_time_constants=np.mean(cue_constants, axis=0) if cue_constants else np.full(network.units, np.nan),
        memory_dimension=analysis.manifold_dimension(memories),
        lifetime=lifetime,
        divergence=parted,
        half_time=half,
        agreement=agreement,
        points=kept,
        stable=np.isfinite(constants).all(-1) if len(at) else np.empty(0, dtype=bool),
        starts=starts,
    )


@torch.no_grad()
def _memories(
    model: Model, task: Replay, ends: dict[str, int], count: int, threads: int | None
) -> tuple[np.ndarray, float]:
    """Noise-free states of `count` conditions at the cue [condition, unit], and how long their spread lasts."""
    steps = ends["delay"] + _LASTS
    shown = [*model.timeline.drive_index[: ends["delay"]], *[-1] * _LASTS]
    r = torch.zeros(model.network.units, count, 1)
    still = Timeline(shown, [0] * steps, [0.0] * steps, 0)
    noise = torch.zeros(steps, *r.shape)
    path = rollout(model.network, r, task.drives[:, :count].contiguous(), task.biases, still, noise, threads=threads)
    spread = path[ends["stimulus"] :, :, :, 0].double().var(2).sum(1).sqrt().numpy()
    below = np.flatnonzero(spread < spread[0] / np.e)
    at_cue = path[ends["delay"], :, :, 0].double().T.numpy().copy()
    return at_cue, float(below[0]) if len(below) else float("inf")


def _row(biases: tuple[Tensor, ...], row: int) -> tuple[Tensor, ...]:
    return tuple(table[row] for table in biases)


def _divergence(
    model: Model,
    network: Network,
    biases: tuple[Tensor, ...],
    trajectories: int,
    probe_distance: float | None,
    seed: int,
    threads: int | None,
) -> analysis.Divergence:
    """Jacobians of every step of delay 2 along trajectories, and how the difference of the items is read at its end."""
    given = probe_conditions(model, trajectories, seed + 9, probe_distance)
    task = Replay.of(model, given)
    _, path = task.run(task.initial(1, seed + 9), seed + 9, keep=True, threads=threads)
    _, ends = decision_steps(model)
    line = model.timeline
    steps = range(ends["cue"], ends["denoise"])
    states = path[:, :, :, 0].double()
    maps = [Step(network, None, _row(biases, line.time_index[s])) for s in steps]
    local = torch.stack([jacobian(step, states[s]) for s, step in zip(steps, maps)], 1).numpy()
    own = given["cued"].long()[:, None]
    target, other = (embed(given["report"].gather(1, index)[:, 0]) for index in (own, 1 - own))
    toward = other - target
    toward = (toward / toward.norm(dim=1, keepdim=True)) @ model.network.readout
    sigma = np.array([line.sigma[s] for s in steps])
    return analysis.divergence(local, sigma, toward.double().numpy(), step_times(model)[ends["cue"] :])
