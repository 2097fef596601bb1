"""The whole trial, forward and backward: one function, rollout, with two implementations.

`reference` is plain torch and serves any network, device and dtype; `fused` is the C++ kernel of `native/` and serves
the dendritic tree on the CPU. Both take the same arguments and give the same numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import cast

from torch import Tensor

from lapsus.engine import fused, reference
from lapsus.engine.noise import normal
from lapsus.engine.read_out import read_out
from lapsus.engine.timeline import Timeline
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.networks import DendriticTree
from lapsus.protocols import Network

__all__ = ["ENGINES", "Timeline", "normal", "rollout", "rollout_and_read_out"]

ENGINES = ("auto", "fused", "reference")

_told: set[str] = set()


def rollout(
    network: Network,
    r0: Tensor,
    drives: Tensor,
    biases: tuple[Tensor, ...],
    timeline: Timeline,
    noise: Tensor,
    forcing: Tensor | None = None,
    *,
    engine: str = "auto",
    threads: int | None = None,
    group: int | None = None,
) -> Tensor:
    """Roll the network through one trial and return its trajectory r_0 ... r_S, shape [S+1, n, C, K].

    r_{s+1} = (1 - alpha) r + alpha F(r, drive, bias) + sigma_s noise_s, where r is r_s after clamping. All arrays put
    trials last: r0 [unit, condition, trial]; drives [P, condition, drive], already multiplied by W_s; biases one
    [Q, node] table a layer, leaves first, soma last; noise [step, unit, condition, trial], standard normal; forcing
    [F, response dimension, condition, trial]: before each of the last F steps W_x r is replaced by it.

    Differentiable in r0, drives, biases and the network's weights. `group` makes `backward()` add to the .grad of those
    weights and biases that are leaves after every `group` conditions, in order, instead of handing autograd one sum: a
    batch cut into micro-batches of whole groups, each followed by `backward()`, then gives the same bits as the whole
    (the kernel only; the reference takes no notice).

    >>> model = lapsus.load("index-swap-10")
    >>> drives, biases = model.inputs(model.task.sample(2, torch.Generator().manual_seed(0)))
    >>> timeline = lapsus.engine.Timeline(drive_index=[0, -1], time_index=[0, 0], sigma=[0.1, 0.1])
    >>> noise = torch.zeros(2, 16, 2, 3)
    >>> lapsus.rollout(model.network, torch.zeros(16, 2, 3), drives, biases, timeline, noise).shape
    torch.Size([3, 16, 2, 3])
    """
    return rollout_and_read_out(
        network, r0, drives, biases, timeline, noise, forcing, engine=engine, threads=threads, group=group
    )[0]


def rollout_and_read_out(
    network: Network,
    r0: Tensor,
    drives: Tensor,
    biases: tuple[Tensor, ...],
    timeline: Timeline,
    noise: Tensor,
    forcing: Tensor | None = None,
    *,
    engine: str = "auto",
    threads: int | None = None,
    group: int | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The trajectory of `rollout` with what losses are made of: x = W_x r [S+1, d, C, K] and the power, the sum of all
    squared rates [C, K]. Gradients in these two alone cost the kernel no pass over the trajectory.

    `meanwhile` is called just before the network runs. The kernel lets go of the interpreter, so work that it starts in
    another thread goes on beside it.
    """
    timeline.check(network, r0, drives, biases, noise, forcing)
    if engine not in ENGINES:
        raise LapsusError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    reason = None if engine == "reference" else fused.why_not(network, r0)
    if engine == "fused" and reason:
        raise LapsusError(f"engine = fused is impossible here: {reason}; engine = reference runs any network")
    if reason:
        _tell(f"The torch reference runs instead of the fused kernel, several times slower: {reason}.")
    if engine == "reference" or reason:
        if meanwhile:
            meanwhile()
        trajectory = reference.rollout(network, r0, drives, biases, timeline, noise, forcing)
        return trajectory, *read_out(trajectory, network.readout.to(trajectory.dtype))
    tree = cast(DendriticTree, network)  # or why_not would have said so
    return fused.rollout(
        tree, r0, drives, biases, timeline, noise, forcing, threads=threads, group=group, meanwhile=meanwhile
    )


def _tell(message: str) -> None:
    """Warn once a process."""
    if message not in _told:
        _told.add(message)
        warnings.warn(message, LapsusWarning, stacklevel=3)
