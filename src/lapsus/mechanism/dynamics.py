"""By what dynamics? Slow points before the cue, time constants, and where neighbouring trials part in delay 2."""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from lapsus.circular import embed
from lapsus.engine import Timeline, rollout
from lapsus.mechanism.clock import Clock
from lapsus.mechanism.commitment import Commitment, crossing
from lapsus.mechanism.drawing import SMALL, legend
from lapsus.mechanism.registry import AskedNetwork, Mechanism, Panel, Question
from lapsus.mechanism.replay import Replay, decision_steps, probe_conditions, step_times
from lapsus.mechanism.slow_points import (
    Step,
    distinct_points,
    find_slow_points,
    jacobian,
    manifold_dimension,
    time_constants,
)
from lapsus.plots.style import BLUE, GREY, ORANGE, SKY, VERMILION
from lapsus.protocols import Network
from lapsus.training.model import Model

__all__ = ["QUESTION", "Divergence", "Dynamics", "divergence", "dynamics"]

# Steps after delay 1 for which memories are followed.
_LASTS = 400
# Steps in which memories fade to 1/e, from which on they are said to stay.
STAYS = 200


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
    starts: int

    @property
    def memory_stays(self) -> bool:
        """Whether memories stay before the cue, without noise."""
        return not np.isfinite(self.lifetime) or self.lifetime > STAYS

    def row(self) -> dict:
        """Columns of a table."""
        row = {"fixed_points": self.fixed_points, "manifold_dimension": self.manifold_dimension}
        row |= {"lifetime": self.lifetime, "memory_dimension": self.memory_dimension}
        return row | {"linear_half_time": self.half_time, "agreement": self.agreement}


# --- Asking a network ---


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
) -> Dynamics:
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
    constants = time_constants(at) if len(at) else np.full((1, network.units), np.nan)
    certain = distinct_points(points[:, fixed].T.numpy(), 1e-3 * scale)
    cue_modes, cue_constants = [], []
    for c in range(cues):
        on = Step(network, task.drives[-1, c : c + 1].double(), _row(biases, 0))
        few = path[ends["cue"]][:, : min(256, starts), 0].double()
        reached, quick = find_slow_points(on, few, tolerance=1e-7 * usual)
        settled = quick * model.task.epochs["cue"] < usual
        if settled.any():
            here = time_constants(jacobian(on, reached[:, settled]).numpy())
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
    return Dynamics(
        fixed_points=len(certain),
        slow=float(slow.double().mean()),
        speed=float(speed[slow].median() / usual) if slow.any() else float("nan"),
        manifold_dimension=manifold_dimension(kept),
        slow_modes=float(np.median((constants > delay).sum(-1))) if len(at) else float("nan"),
        time_constants=np.median(constants, axis=0),
        cue_slow_modes=float(np.mean(cue_modes)) if cue_modes else float("nan"),
        cue_time_constants=np.mean(cue_constants, axis=0) if cue_constants else np.full(network.units, np.nan),
        memory_dimension=manifold_dimension(memories),
        lifetime=lifetime,
        divergence=parted,
        half_time=half,
        agreement=agreement,
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
) -> Divergence:
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
    return divergence(local, sigma, toward.double().numpy(), step_times(model)[ends["cue"] :])


def _ask(network: AskedNetwork) -> Dynamics:
    return dynamics(
        network.model, starts=network.sizes.starts, commitment=network.answers.get("commitment"), **network.settings
    )


# --- Words and panels ---


def _sentence(found: Dynamics, mechanism: Mechanism) -> str:
    clock = mechanism.clock
    memory = "memories persist without noise"
    if not found.memory_stays:
        memory = f"memories decay without noise to 1/e in {clock.text(found.lifetime)}"
    points = f"{found.fixed_points:,} fixed point{'s' * (found.fixed_points != 1)}"
    if found.fixed_points == 1 and found.manifold_dimension == 0:
        points = "one fixed point, to which all states decay"
    else:
        points += f"; slow points span {found.manifold_dimension:.1f} dimensions"
    text = f"Dynamics: before the cue {memory} ({points})."
    if not np.isfinite(found.half_time):
        return text
    text += f" In delay 2, linear response predicts that half of the outcome is fixed by {clock.text(found.half_time)}"
    agreement = f" (correlation with the commitment curve {found.agreement:.2f})"
    return text + (agreement if np.isfinite(found.agreement) else "") + "."


def _divergence_panel(ax: Axes, found: Dynamics, measured: Commitment | None, clock: Clock) -> Axes:
    """Stretch of one step in delay 2, and what linear response expects of commitment beside what was measured."""
    parted = found.divergence
    times = clock.shown(parted.times)
    ax.axhline(0, color=GREY, lw=0.5)
    if measured is not None:
        late = measured.times >= 0
        shown = clock.shown(measured.times[late])
        ax.plot(shown, measured.share[late], "o", color=VERMILION, ms=2.5, label="commitment, measured")
    expected = "expected by linear response"
    if np.isfinite(found.agreement):
        expected += f" (r = {found.agreement:.2f})"
    ax.plot(times, parted.predicted, color=VERMILION, ls=(0, (3, 1)), label=expected)
    ax.plot(times, parted.growth, color=BLUE, label="log stretch of a step")
    ax.plot(times, parted.exponent, color=SKY, lw=0.9, label="Lyapunov exponent to the response")
    legend(ax, bbox_to_anchor=(-0.12, 1.02), handlelength=1.4)
    ax.set(xlabel=clock.label, ylabel="share fixed; log stretch", ylim=(-0.25, 1.05))
    return ax


def _constants_panel(ax: Axes, found: Dynamics, clock: Clock) -> Axes:
    """Time constants before the cue and under it."""
    longest = float(clock.shown(1e4))
    for values, colour, label in ((found.time_constants, "k", "delay 1"), (found.cue_time_constants, ORANGE, "cue on")):
        # Modes that do not decay have no time constant (null in a file).
        known = np.isfinite(values).any() or np.isinf(values).any()
        seconds = clock.shown(values)
        shown = np.minimum(np.nan_to_num(seconds, nan=longest, posinf=longest), longest) if known else seconds
        ax.plot(np.arange(1, len(values) + 1), shown, "o-", ms=2.5, lw=0.7, color=colour, label=label)
    ax.set(yscale="log", xlabel="mode", ylabel="time constant (s)", ylim=(longest / 1e4, 1.5 * longest))
    ax.set_yticks([0.1, 1, 10, 100, longest], ["0.1", "1", "10", "100", "never\ndecays"])
    ax.minorticks_off()
    many = f"{found.fixed_points:,} fixed point{'s' * (found.fixed_points != 1)}"
    lasts = f"memories last {clock.text(found.lifetime)}" if np.isfinite(found.lifetime) else "memories stay"
    filled = f", {found.manifold_dimension:.1f} dimensions" if found.manifold_dimension else ""
    ax.set_title(f"{many}{filled}\n(from {found.starts:,} states); {lasts}", fontsize=SMALL, linespacing=1.2)
    ax.legend(fontsize=SMALL)
    return ax


QUESTION = Question(
    name="dynamics",
    title="By what dynamics?",
    definition="Slow points and time constants before the cue, and how fast neighbouring trials diverge after it.",
    in_recording="Memories that fade would be decoded less and less well during the first delay.",
    answer=Dynamics,
    ask=_ask,
    read="this needs the equations of the network",
    sentence=_sentence,
    panels=lambda answer, found: [
        Panel(lambda ax: _constants_panel(ax, answer, found.clock)),
        Panel(lambda ax: _divergence_panel(ax, answer, found.commitment, found.clock)),
    ],
    caption=(
        "Left: time constants at the slow points of delay 1, and under the cue. Right: how much one step of delay 2,"
        " and all steps up to the response, stretch differences (above 0: neighbouring trials diverge), and the"
        " commitment curve that linear response predicts, beside the measured one."
    ),
    unknown="The dynamics are not known",
    needs_swaps=False,
)
