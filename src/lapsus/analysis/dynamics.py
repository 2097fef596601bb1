"""What dynamics? Fixed and slow points, time constants, and where neighbouring trials part.

Arrays in, numbers out: states and Jacobians come from a network (lapsus.study.dynamics).
"""

from dataclasses import dataclass

import numpy as np

__all__ = [
    "Divergence",
    "Dynamics",
    "distinct_points",
    "divergence",
    "manifold_dimension",
    "slow_modes",
    "time_constants",
]


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


@dataclass(frozen=True)
class Divergence:
    """Where neighbouring trials part in delay 2, from Jacobians along trajectories.

    times [time]; growth [time]: mean over trials of the log of the largest stretch of one step (above 0: neighbours
    part); exponent [time]: finite-time Lyapunov exponent a step from each time to the response; predicted [time]: the
    commitment curve that linear response predicts, i.e. the share of the variance of the response along the line
    between the items that noise up to each time puts there.
    """

    times: np.ndarray
    growth: np.ndarray
    exponent: np.ndarray
    predicted: np.ndarray


def divergence(jacobians: np.ndarray, sigma: np.ndarray, directions: np.ndarray, times: np.ndarray) -> Divergence:
    """From jacobians [trial, step, unit, unit] of r_{s+1} in r_s, noise s.d. sigma [step], and the direction in state
    space along which each trial's outcome is read, [trial, unit]; times [step + 1] of the states."""
    trials, steps, units, _ = jacobians.shape
    growth = np.log(np.maximum(np.linalg.norm(jacobians, ord=2, axis=(2, 3)), 1e-12)).mean(0)
    exponent = np.zeros(steps)
    effect = np.zeros((trials, steps + 1))
    ahead = np.broadcast_to(np.eye(units), (trials, units, units)).copy()
    read = directions.copy()
    effect[:, steps] = (read**2).sum(1)
    for s in reversed(range(steps)):
        ahead = ahead @ jacobians[:, s]
        read = np.einsum("tu,tuv->tv", read, jacobians[:, s])
        effect[:, s] = (read**2).sum(1)
        exponent[s] = np.log(np.maximum(np.linalg.norm(ahead, ord=2, axis=(1, 2)), 1e-12)).mean() / (steps - s)
    # Noise of step s enters r_{s+1}. The state at the first time counts as decided by what came before: its own spread
    # is not known here, so the curve starts at 0.
    added = np.asarray(sigma) ** 2 * effect[:, 1:]
    added = added.mean(0)
    predicted = np.concatenate([[0.0], np.cumsum(added) / max(added.sum(), 1e-12)])
    return Divergence(np.asarray(times, dtype=float), np.append(growth, np.nan), np.append(exponent, np.nan), predicted)


@dataclass(frozen=True)
class Dynamics:
    """The dynamics before the cue without noise, and what the cue and delay 2 do.

    fixed_points: distinct points whose speed vanishes (0 where memories drift everywhere); slow: share of starting
    states from which a slow point was found; speed: median speed there (distance a step), relative to that at visited
    states; manifold_dimension: local dimension of the slow points; slow_modes: median number of modes that outlast the
    first delay; time_constants [mode] in steps, medians over slow points, longest first; cue_slow_modes and
    cue_time_constants: the same with the cue on. memory_dimension: local dimension of all stimuli's memories at the
    cue, without noise; lifetime: steps in which their spread falls to 1/e when nothing comes (infinite where part of it
    stays). divergence: delay 2; half_time: when linear response expects half of
    the outcome to be fixed; agreement: correlation of its curve with the commitment curve (NaN where none is given).
    points [point, unit] and stable [point]: slow points and whether every mode there decays.
    """

    fixed_points: int
    slow: float
    speed: float
    manifold_dimension: float
    slow_modes: float
    time_constants: np.ndarray
    cue_slow_modes: float
    cue_time_constants: np.ndarray
    memory_dimension: float
    lifetime: float
    divergence: Divergence
    half_time: float
    agreement: float
    points: np.ndarray
    stable: np.ndarray
    starts: int
