"""Which pushes make a swap likelier? Memory moved along a direction in mid-trial: an experiment on a network.

At cue onset, memory is pushed along "alignment" (both colours read together, lapsus.mechanism.single_trials) and
"misbinding" (towards colours exchanged); a quarter into delay 2, along the "swap axis" (towards the state of a trial
with target and distractor exchanged) and, as a positive control, along "response" (x towards the distractor). Pushes
along random directions of memory have the same length and share their noise.
"""

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes

from lapsus.circular import embed
from lapsus.errors import LapsusError
from lapsus.mechanism.clock import Clock
from lapsus.mechanism.colour_code import prediction_model
from lapsus.mechanism.drawing import SMALL, interval, legend
from lapsus.mechanism.registry import AskedNetwork, Mechanism, Panel, Question
from lapsus.mechanism.replay import Replay, decision_steps, memory_axes, probe_conditions, step_times
from lapsus.plots.style import GREEN, GREY, ORANGE, PURPLE, VERMILION
from lapsus.statistics.intervals import Interval, resampled_interval
from lapsus.training.model import Model

__all__ = ["QUESTION", "Push", "Pushes", "push_effects", "push_panel", "pushes"]

SIZES = (-4.0, -2.0, 0.0, 2.0, 4.0)
# Trials from which it is learned how memory holds colours.
LEARNED = 2048


@dataclass(frozen=True)
class Push:
    """p(swap) after a push of the state along a direction.

    time: of the push, in steps from cue offset. sizes [size] in s.d. of memory activity (root mean square over
    directions, within conditions); p: name of the direction → [size]. slope: name → log odds of a swap per s.d., with
    its 95 % interval over conditions; against_random: the same minus that of random directions of the same size.
    """

    time: float
    sizes: np.ndarray
    p: dict[str, np.ndarray]
    slope: dict[str, Interval]
    against_random: dict[str, Interval]
    conditions: int


@dataclass(frozen=True)
class Pushes:
    """Pushes before the cue and after it."""

    before: Push
    after: Push

    def row(self) -> dict:
        """Columns of a table."""
        return {
            "push_alignment": self.before.against_random["alignment"][0],
            "push_swap_axis": self.after.against_random["swap axis"][0],
        }


def _log_odds(p: np.ndarray, trials: float) -> np.ndarray:
    p = (p * trials + 0.5) / (trials + 1)
    return np.log(p / (1 - p))


def push_effects(
    time: float, sizes: np.ndarray, p: dict[str, np.ndarray], trials: int, *, repeats: int = 500, seed: int = 0
) -> Push:
    """From p(swap) [condition, size] of each direction ("random" among them), `trials` in each.

    The slope is that of the log odds of all conditions together, by least squares over sizes.
    """
    sizes = np.asarray(sizes, dtype=float)
    count = len(next(iter(p.values())))
    rows = np.random.default_rng(seed).integers(count, size=(repeats, count))
    centred = sizes - sizes.mean()

    def slope(values: np.ndarray) -> np.ndarray:
        return (_log_odds(values, trials * count) * centred).sum(-1) / (centred**2).sum()

    point = {name: slope(values.mean(0)) for name, values in p.items()}
    drawn = {name: slope(values[rows].mean(1)) for name, values in p.items()}
    return Push(
        time=float(time),
        sizes=sizes,
        p={name: values.mean(0) for name, values in p.items()},
        slope={name: resampled_interval(point[name], drawn[name]) for name in p},
        against_random={
            name: resampled_interval(point[name] - point["random"], drawn[name] - drawn["random"])
            for name in p
            if name != "random"
        },
        conditions=count,
    )


# --- Asking a network ---


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
    """p(swap) after a push of memory activity along each direction, "before" or "after" the cue."""
    if when not in ("before", "after"):
        raise LapsusError(f"when is 'before' or 'after' the cue, not {when!r}.")
    _, ends = decision_steps(model)
    step = ends["delay"] if when == "before" else ends["cue"] + (ends["denoise"] - ends["cue"]) // 4
    given = probe_conditions(model, conditions, seed, probe_distance)
    given["probe"] = given["probe"][:1].expand(conditions, 2).clone()  # one pair of places, so that codes are alike
    task = Replay.of(model, given)
    # Other trials at the same places, each with its own colours, tell how memory holds them.
    many = probe_conditions(model, LEARNED, seed + 5, probe_distance)
    many["probe"] = given["probe"][:1].expand(LEARNED, 2).clone()
    known = Replay.of(model, many)
    _, path = known.run(known.initial(1, seed + 5), seed + 5, keep=True, threads=threads)
    null = memory_axes(model)
    m = (null @ path[step][:, :, 0]).numpy().T.astype(float)
    colours, report = many["report"].numpy(), given["report"].numpy()
    shown = (colours,) if when == "before" else (colours, many["cued"].numpy())
    code = prediction_model(m, *shown)
    in_memory: dict[str, np.ndarray] = {}
    if when == "before":
        in_memory["alignment"] = _alignment_direction(m, colours, report)
        in_memory["misbinding"] = code.exchanged(report) - code.nominal(report)
    else:
        cued = given["cued"].numpy()
        in_memory["swap axis"] = code.misselected(report, cued) - code.nominal(report, cued)
    directions = {name: torch.as_tensor(d, dtype=torch.float32) @ null for name, d in in_memory.items()}
    if when == "after":
        own = given["cued"].long()[:, None]
        target, other = (embed(given["report"].gather(1, index)[:, 0]) for index in (own, 1 - own))
        directions["response"] = (other - target) @ model.network.readout
    rng = np.random.default_rng(seed)
    drawn = torch.as_tensor(rng.standard_normal((randoms, conditions, len(null))), dtype=torch.float32) @ null
    unit = float(np.sqrt(((m - code.nominal(*shown)) ** 2).mean()))
    _, path = task.run(task.initial(trials, seed), seed, keep=True, threads=threads)
    states = path[step]

    def swapped(r: torch.Tensor) -> np.ndarray:
        return task.swaps(task.run(r, seed + 3, start=step, threads=threads)[0]).probability.mean(1)

    left_alone = swapped(states)  # the same for all directions, for all share their noise

    def pushed(direction: torch.Tensor) -> np.ndarray:
        direction = direction / direction.norm(dim=1, keepdim=True).clamp(min=1e-12)
        moves = [(unit * size * direction.T)[:, :, None] for size in sizes]
        return np.stack([swapped(states + move) if size else left_alone for size, move in zip(sizes, moves)], 1)

    p = {name: pushed(direction) for name, direction in directions.items()}
    p["random"] = np.mean([pushed(direction) for direction in drawn], axis=0)
    return push_effects(step_times(model)[step], np.asarray(sizes), p, trials, seed=seed)


def _alignment_direction(m: np.ndarray, colours: np.ndarray, report: np.ndarray) -> np.ndarray:
    """The direction of memory that adds most to `alignment` of lapsus.mechanism.single_trials, [condition, unit].

    With D_i the linear decoder of item i's [cos, sin], alignment is the mean over items of (D_i m - u_i)·(u_1 + u_2),
    whose gradient in m is the sum of D_i' (u_1 + u_2).
    """
    u = embed(colours).reshape(len(colours), 4)
    x = m - m.mean(0)
    decoder = np.linalg.solve(x.T @ x + 1e-6 * len(x) * np.eye(x.shape[1]), x.T @ (u - u.mean(0)))  # [unit, 4]
    both = embed(report).sum(1)  # [condition, 2]
    return both @ (decoder[:, :2] + decoder[:, 2:]).T


def _ask(network: AskedNetwork) -> Pushes:
    sizes = network.sizes
    before, after = (
        pushes(network.model, when=when, conditions=sizes.push_conditions, trials=sizes.push_trials, **network.settings)
        for when in ("before", "after")
    )
    return Pushes(before, after)


# --- Words and panels ---


def _sentence(found: Pushes, mechanism: Mechanism) -> str:
    effects = []
    for push, where in ((found.before, "at cue onset"), (found.after, f"{mechanism.clock.text(found.after.time)} on")):
        each = [f"{name} {interval(value, '+z.2f')}" for name, value in push.against_random.items()]
        effects.append(f"{where}, {', '.join(each)}")
    return (
        f"Pushes: log odds of a swap per s.d. of memory beyond a random push of the same length: {'; '.join(effects)}."
    )


def push_panel(ax: Axes, found: Push, clock: Clock = Clock()) -> Axes:  # noqa: B008
    """p(swap) after pushes along directions of the same length; log odds per s.d. beyond random directions."""
    colours = {"alignment": PURPLE, "misbinding": GREEN, "swap axis": VERMILION, "response": ORANGE, "random": GREY}
    for name, values in found.p.items():
        more = "" if name == "random" else f" {interval(found.against_random[name], '+z.2f')}"
        line = {"ls": (0, (2, 1))} if name == "random" else {}
        ax.plot(found.sizes, values, marker="o", ms=2.5, color=colours.get(name, "k"), label=name + more, **line)
    where = "at cue onset" if found.time < 0 else f"at {clock.text(found.time)}"
    ax.set(xlabel="push (s.d. of memory)", ylabel="p(swap)", ylim=(-0.02, 1.02))
    title = f"push {where};\nlog odds per s.d. beyond random"
    legend(ax, title=title, title_fontsize=SMALL, alignment="left")
    return ax


QUESTION = Question(
    name="pushes",
    title="Which pushes make it likelier?",
    definition="How a push of memory along a direction changes the log odds of a swap, beyond a random push.",
    in_recording="No counterpart: it would take stimulation along a direction of the population's activity.",
    answer=Pushes,
    ask=_ask,
    read="it takes pushes of the state, which only a network allows",
    sentence=_sentence,
    panels=lambda answer, found: [
        Panel(lambda ax: push_panel(ax, answer.before, found.clock)),
        Panel(lambda ax: push_panel(ax, answer.after, found.clock)),
    ],
    caption=(
        "p(swap) after pushes of the same length along named directions and along random ones, before the cue (left)"
        " and after it (right), and by how much each changes the log odds more than random ones."
    ),
    unknown="Which pushes make swaps likelier cannot be said",
)
