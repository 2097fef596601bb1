"""What carries a swap in a network: parts of the state exchanged between trials, and pushes of the state.

Experiments that no animal allows. A state r is the behavioural part x = W_x r and the memory m = W_x^perp r. At some
time the x of one trial is put together with the m of another of the same condition, the network goes on with fresh
noise, and what counts is how often it ends in a swap.
"""

import numpy as np
import torch

from lapsus.analysis.activity import NO_SWAPS
from lapsus.analysis.kind import prediction_model
from lapsus.analysis.transplants import Push, Transplant, push_effects, transplant_curves
from lapsus.circular import embed
from lapsus.errors import LapsusError
from lapsus.study.commitment import decision_steps
from lapsus.study.replay import Replay, probe_conditions, step_times
from lapsus.training.model import Model

__all__ = ["pushes", "transplants"]

SIZES = (-4.0, -2.0, 0.0, 2.0, 4.0)


def transplants(
    model: Model,
    *,
    conditions: int = 48,
    trials: int = 192,
    pairs: int = 8,
    replays: int = 4,
    probe_distance: float | None = None,
    every: int = 4,
    seed: int = 0,
    threads: int | None = None,
) -> Transplant:
    """p(swap) over time for all combinations of x and m of a swap and a correct trial of the same condition.

    `trials` a condition are simulated to find donors, of which at most `pairs` pairs a condition are used.
    """
    task = Replay.of(model, probe_conditions(model, conditions, seed, probe_distance))
    many = task.each(trials, seed)
    x_T, path = many.run(many.initial(1, seed), seed, keep=True, threads=threads)
    outcome = many.swaps(x_T)
    swap, correct = (part.reshape(conditions, trials) for part in (outcome.swap, outcome.correct))
    rng = np.random.default_rng(seed)
    chosen, number = [], np.zeros(conditions, dtype=int)
    for c in range(conditions):
        a, b = np.flatnonzero(swap[c]), np.flatnonzero(correct[c])
        if len(a) and len(b) > 1:
            take = min(pairs, len(a))
            number[c] = take
            first, second = rng.choice(b, take), rng.choice(b, take)
            second = np.where(first == second, b[(np.searchsorted(b, second) + 1) % len(b)], second)
            chosen.append(c * trials + np.stack([rng.choice(a, take, replace=False), first, second], 1))
    if not chosen:
        raise LapsusError(NO_SWAPS if not swap.any() else "no condition has both a swap and a correct trial")
    donors = np.concatenate(chosen)
    readout = model.network.readout
    onto = readout.T @ readout
    pool = Replay(
        model,
        {name: values[donors[:, 1]] for name, values in many.conditions.items()},
        many.drives[:, donors[:, 1]],
        many.biases,
    )
    steps, ends = decision_steps(model, every)
    steps = [step for step in steps[:-1] if step >= ends["delay"]]
    who = {"swap": (0, 0), "correct": (1, 1), "x_from_swap": (0, 1), "m_from_swap": (1, 0), "null": (2, 1)}
    rows = np.repeat(np.arange(conditions), number)
    p = {name: np.zeros((conditions, len(steps))) for name in who}
    for k, step in enumerate(steps):
        states = path[step][:, :, 0]
        for name, (x_of, m_of) in who.items():
            x, m = states[:, donors[:, x_of]], states[:, donors[:, m_of]]
            r = (onto @ x + m - onto @ m)[:, :, None].expand(-1, -1, replays).contiguous()
            reached, _ = pool.run(r, seed + 2, start=step, threads=threads)
            values = pool.swaps(reached).probability.mean(1)
            p[name][:, k] = np.bincount(rows, values, conditions) / np.maximum(number, 1)
    used = number > 0
    return transplant_curves(step_times(model)[steps], {k: v[used] for k, v in p.items()}, number[used], seed=seed)


def pushes(
    model: Model,
    *,
    when: str = "before",
    conditions: int = 64,
    trials: int = 128,
    randoms: int = 4,
    sizes: tuple[float, ...] = SIZES,
    probe_distance: float | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Push:
    """p(swap) after a push of memory activity along a direction, at one place of the trial.

    when "before": at cue onset, along "alignment" (both colours read together, lapsus.analysis.trialwise) and
    "misbinding" (towards colours exchanged). "after": a quarter into delay 2, along the "swap axis" (towards the state
    of a trial with target and distractor exchanged) and, as a positive control, "response" (x towards the distractor).
    "random": directions in memory drawn at random. All pushes have the same length and share their noise.
    """
    if when not in ("before", "after"):
        raise LapsusError(f"when is 'before' or 'after' the cue, not {when!r}.")
    _, ends = decision_steps(model)
    step = ends["delay"] if when == "before" else ends["cue"] + (ends["denoise"] - ends["cue"]) // 4
    given = probe_conditions(model, conditions, seed, probe_distance)
    given["probe"] = given["probe"][:1].expand(conditions, 2).clone()  # one pair of places, so that codes are alike
    task = Replay.of(model, given)
    # Other trials at the same places, each with its own colours, tell how memory holds them.
    many = probe_conditions(model, 2048, seed + 5, probe_distance)
    many["probe"] = given["probe"][:1].expand(2048, 2).clone()
    known = Replay.of(model, many)
    _, path = known.run(known.initial(1, seed + 5), seed + 5, keep=True, threads=threads)
    null = torch.linalg.svd(model.network.readout, full_matrices=True)[2][len(model.network.readout) :]
    m = (null @ path[step][:, :, 0]).numpy().T.astype(float)
    cued = None if when == "before" else many["cued"].numpy()
    code = prediction_model(m, many["report"].numpy(), cued)
    report = given["report"].numpy()
    in_memory: dict[str, np.ndarray] = {}
    if when == "before":
        in_memory["alignment"] = _alignment_direction(m, many["report"].numpy(), report)
        in_memory["misbinding"] = code.exchanged(report) - code.nominal(report)
    else:
        which = given["cued"].numpy()
        in_memory["swap axis"] = code.misselected(report, which) - code.nominal(report, which)
    directions = {name: torch.as_tensor(d, dtype=torch.float32) @ null for name, d in in_memory.items()}
    if when == "after":
        own = given["cued"].long()[:, None]
        target, other = (embed(given["report"].gather(1, index)[:, 0]) for index in (own, 1 - own))
        directions["response"] = (other - target) @ model.network.readout
    rng = np.random.default_rng(seed)
    drawn = torch.as_tensor(rng.standard_normal((randoms, conditions, len(null))), dtype=torch.float32) @ null
    residual = m - (
        code.nominal(many["report"].numpy()) if cued is None else code.nominal(many["report"].numpy(), cued)
    )
    unit = float(np.sqrt((residual**2).mean()))
    _, path = task.run(task.initial(trials, seed), seed, keep=True, threads=threads)
    states = path[step]
    p = {}

    def swapped(r: torch.Tensor) -> np.ndarray:
        return task.swaps(task.run(r, seed + 3, start=step, threads=threads)[0]).probability.mean(1)

    left_alone = swapped(states)  # the same for all directions, for all share their noise

    def pushed(direction: torch.Tensor) -> np.ndarray:
        direction = direction / direction.norm(dim=1, keepdim=True).clamp(min=1e-12)
        moves = [(unit * size * direction.T)[:, :, None] for size in sizes]
        return np.stack([swapped(states + move) if size else left_alone for size, move in zip(sizes, moves)], 1)

    for name, direction in directions.items():
        p[name] = pushed(direction)
    p["random"] = np.mean([pushed(direction) for direction in drawn], axis=0)
    return push_effects(step_times(model)[step], np.asarray(sizes), p, trials, seed=seed)


def _alignment_direction(m: np.ndarray, colours: np.ndarray, report: np.ndarray) -> np.ndarray:
    """The direction of memory activity that adds most to `alignment` of lapsus.analysis.trialwise, [condition, unit].

    With D_i the linear decoder of item i's [cos, sin], alignment is the mean over items of (D_i m - u_i)·(u_1 + u_2),
    whose gradient in m is the sum of D_i' (u_1 + u_2).
    """
    u = embed(colours).reshape(len(colours), 4)
    x = m - m.mean(0)
    decoder = np.linalg.solve(x.T @ x + 1e-6 * len(x) * np.eye(x.shape[1]), x.T @ (u - u.mean(0)))  # [unit, 4]
    both = embed(report).sum(1)  # [condition, 2]
    return both @ (decoder[:, :2] + decoder[:, 2:]).T
