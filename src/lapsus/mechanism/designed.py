"""When and where an error is decided in a network of any design.

The outcome of a trial is the mode that its response belongs to, where the density that the network was trained on has
several, and else the response itself: the unit vector of an angle, a number in standard units.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lapsus.behaviour.learned import LearnedDensity, other_mode
from lapsus.circular import embed
from lapsus.errors import LapsusError
from lapsus.mechanism.commitment import Commitment, commitment_curve
from lapsus.mechanism.replay import Replay, decision_steps, step_times
from lapsus.mechanism.transplants import DONORS, Transplant, transplant_curves
from lapsus.protocols import Conditions
from lapsus.training.model import Model

__all__ = ["DesignMechanism", "analyse_design"]

# Least share of responses in other modes for the mode to be the outcome.
LEAST_OTHER = 0.005


@dataclass(frozen=True)
class DesignMechanism:
    """outcome: "mode" or "response"; commitment: how much of it noise up to each time has fixed; transplant: what
    carries it, None where trials of one condition never differ by enough; rate: share of responses in other modes."""

    outcome: str
    commitment: Commitment
    transplant: Transplant | None
    rate: float

    def row(self) -> dict:
        """Columns of a table."""
        found = {"outcome": self.outcome, "other_mode": self.rate} | self.commitment.row()
        return found | (self.transplant.row() if self.transplant else {})


def _outcome(model: Model, conditions: Conditions, by_mode: bool, x_T: Tensor) -> Tensor:
    """The outcome of responses x_T [d, C, K]: [dimensions, C, K]."""
    behaviour = model.behaviour
    assert isinstance(behaviour, LearnedDensity)
    if by_mode:
        return other_mode(behaviour, conditions, x_T)[None]
    columns = []
    for variable in behaviour.responses:
        values = behaviour.values(x_T)[variable.name]
        columns += list(embed(values).movedim(-1, 0)) if variable.kind == "circular" else [values]
    return torch.stack(columns)


def analyse_design(
    model: Model,
    *,
    conditions: int = 48,
    groups: int = 64,
    replays: int = 4,
    pairs: int = 8,
    every: int = 4,
    seed: int = 0,
    threads: int | None = None,
) -> DesignMechanism:
    """Commitment and transplants of a network that was trained on a learned density."""
    behaviour = model.behaviour
    if not isinstance(behaviour, LearnedDensity):
        raise LapsusError("this analysis is of networks that were trained on a learned density")
    drawn = model.task.sample(conditions, torch.Generator().manual_seed(seed))
    shared = Replay.of(model, drawn).each(groups, seed)
    steps, ends = decision_steps(model, every)
    x_T, path = shared.run(shared.initial(1, seed), seed, keep=True, threads=threads)
    assert path is not None
    angular = len(behaviour.responses) == 1 and behaviour.responses[0].kind == "circular"
    rate = float(other_mode(behaviour, shared.conditions, x_T).mean()) if angular else 0.0
    by_mode = rate >= LEAST_OTHER
    of = lambda some, responses: _outcome(model, some, by_mode, responses)
    replayed = []
    for step in steps:
        if step == steps[-1]:
            responses = x_T.expand(-1, -1, replays)
        else:
            states = path[step].expand(-1, -1, replays - 1).contiguous()
            responses = torch.cat([x_T, shared.run(states, seed + 1, start=step, threads=threads)[0]], 2)
        found = of(shared.conditions, responses)
        replayed.append(found.reshape(len(found), conditions, groups, replays).numpy())
    times = step_times(model)
    by_epoch = {name: float(times[end]) for name, end in ends.items()}
    curve = commitment_curve(np.stack(replayed, 2), times[steps], by_epoch, seed=seed)
    donors = _donors(of(shared.conditions, x_T)[:, :, 0].reshape(-1, conditions, groups).numpy(), by_mode, pairs, seed)
    carried = None
    if len(donors.trials):
        carried = _transplant(model, shared, path, donors, steps, every, replays, times, of, seed, threads)
    return DesignMechanism("mode" if by_mode else "response", curve, carried, rate)


@dataclass(frozen=True)
class _Donors:
    """Trials (one, another, a third that is like the second) [pair, 3] through all conditions; how many pairs each
    condition has [condition]; the axis [dimension, condition] along which outcomes are compared, and the outcomes of
    the two groups on it [condition] each."""

    trials: np.ndarray
    number: np.ndarray
    axis: np.ndarray
    low: np.ndarray
    high: np.ndarray


def _donors(outcome: np.ndarray, by_mode: bool, pairs: int, seed: int) -> _Donors:
    """Pairs of trials of one condition with unlike outcomes [dimension, condition, trial]: in another mode and in the
    highest one, or of the upper and of the lower quarter along the direction in which responses vary most."""
    rng = np.random.default_rng(seed)
    _, conditions, trials = outcome.shape
    chosen, number = [], np.zeros(conditions, dtype=int)
    axis = np.zeros(outcome.shape[:2])
    low, high = np.zeros(conditions), np.ones(conditions)
    for c in range(conditions):
        if by_mode:
            axis[:, c], along = 1.0, outcome[0, c]
            upper, lower = np.flatnonzero(along > 0.9), np.flatnonzero(along < 0.1)
        else:
            centred = outcome[:, c] - outcome[:, c].mean(1, keepdims=True)
            axis[:, c] = np.linalg.svd(centred, full_matrices=False)[0][:, 0]
            along = axis[:, c] @ outcome[:, c]
            order = np.argsort(along)
            lower, upper = order[: trials // 4], order[-(trials // 4) :]
            low[c], high[c] = along[lower].mean(), along[upper].mean()
        if len(upper) and len(lower) > 1:
            number[c] = min(pairs, len(upper))
            first, second = rng.choice(lower, number[c]), rng.choice(lower, number[c])
            third = np.where(
                first == second, np.roll(lower, 1)[np.searchsorted(np.sort(lower), second) % len(lower)], second
            )
            ones = rng.choice(upper, number[c], replace=False)
            chosen.append(c * trials + np.stack([ones, first, third], 1))
    return _Donors(np.concatenate(chosen) if chosen else np.zeros((0, 3), int), number, axis, low, high)


def _transplant(model, shared, path, donors, steps, every, replays, times, of, seed, threads) -> Transplant:  # type: ignore[no-untyped-def]
    """Outcomes after states were put together from two trials, between that of the one (1) and of the other (0)."""
    pool = shared.only(donors.trials[:, 1])
    rows = np.repeat(np.arange(len(donors.number)), donors.number)
    onto_x = model.network.readout.T @ model.network.readout
    steps = [step for step in steps[:-1] if times[step] >= 0]
    p = {name: np.zeros((len(donors.number), len(steps))) for name in DONORS}
    for k, step in enumerate(steps):
        states = path[step][:, :, 0]
        for name, (x_of, m_of) in DONORS.items():
            x, m = states[:, donors.trials[:, x_of]], states[:, donors.trials[:, m_of]]
            r = (onto_x @ x + m - onto_x @ m)[:, :, None].expand(-1, -1, replays).contiguous()
            reached, _ = pool.run(r, seed + 2, start=step, threads=threads)
            found = of(pool.conditions, reached).mean(2).numpy()  # [dimension, pair]
            along = (donors.axis[:, rows] * found).sum(0)
            placed = (along - donors.low[rows]) / (donors.high - donors.low)[rows]
            p[name][:, k] = np.bincount(rows, placed, len(donors.number)) / np.maximum(donors.number, 1)
    used = donors.number > 0
    return transplant_curves(
        times[steps], {name: values[used] for name, values in p.items()}, donors.number[used], seed=seed
    )
