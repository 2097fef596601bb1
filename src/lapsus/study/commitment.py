"""When a network decides to swap: replays that share noise up to a time and not after it."""

import numpy as np
import torch

from lapsus.analysis.activity import NO_SWAPS
from lapsus.analysis.commitment import Commitment, commitment_curve
from lapsus.errors import LapsusError
from lapsus.study.replay import Replay, probe_conditions, step_times
from lapsus.training.model import Model

__all__ = ["commitment", "decision_steps"]


def decision_steps(model: Model, every: int = 4) -> tuple[list[int], dict[str, int]]:
    """Steps at which commitment is measured, and the step at which each epoch ends (the initial state is step 0)."""
    ends, step = {"initial": 0}, 0
    for name, length in model.task.epochs.items():
        step += length
        ends[name] = step
    offset = list(ends.values())[-2]
    return sorted({*ends.values(), *range(offset, step, every), (ends["delay"] + offset) // 2}), ends


def commitment(
    model: Model,
    *,
    conditions: int = 24,
    groups: int = 48,
    replays: int = 4,
    probe_distance: float | None = None,
    every: int = 4,
    seed: int = 0,
    threads: int | None = None,
) -> Commitment:
    """The commitment curve of a network: `groups` pasts in each condition, each continued `replays` times at each time;
    as it went is one of them.

    probe_distance (radians): how far items are apart in feature-cued tasks, by default as the task draws them.
    """
    if conditions < 1 or groups < 2 or replays < 2:
        raise LapsusError("commitment needs at least one condition, two groups and two replays.")
    task = Replay.of(model, probe_conditions(model, conditions, seed, probe_distance))
    shared = task.each(groups, seed)
    steps, ends = decision_steps(model, every)
    first = shared.initial(1, seed)
    went, path = shared.run(first, seed, keep=True, threads=threads)
    if not shared.swaps(went).swap.any():
        raise LapsusError(NO_SWAPS)
    found = []
    for step in steps:
        if step == steps[-1]:
            x_T = went.expand(-1, -1, replays)
        else:
            states = path[step].expand(-1, -1, replays - 1).contiguous()
            x_T = torch.cat([went, shared.run(states, seed + 1, start=step, threads=threads)[0]], 2)
        found.append(shared.swaps(x_T).probability.reshape(conditions, groups, replays))
    times = step_times(model)
    return commitment_curve(
        np.stack(found, 1), times[steps], {name: float(times[end]) for name, end in ends.items()}, seed=seed
    )
