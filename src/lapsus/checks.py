"""Does your own task, behaviour or network fit? Each check raises LapsusError with what is wrong, or returns None.

The same checks run over everything that ships with lapsus.
"""

import math

import torch
from torch import Tensor, nn

from lapsus import rng
from lapsus.errors import LapsusError
from lapsus.protocols import Behaviour, Conditions, HasMixture, HasOptimum, Network, Task

_COUNT = 7


def _need(condition: bool, sentence: str) -> None:
    if not condition:
        raise LapsusError(sentence)


def _satisfies(thing: object, kind: type) -> None:
    """That a thing has every member of its protocol."""
    names = sorted(name for name in {**vars(kind), **kind.__annotations__} if not name.startswith("_"))
    missing = [name for name in names if not hasattr(thing, name)]
    what = f"A {kind.__name__.lower()} needs {', '.join(names)}"
    _need(not missing, f"{what}; {type(thing).__name__} has no {', '.join(missing)}.")


def _conditions(task: Task) -> Conditions:
    return task.sample(_COUNT, rng.generator("check"))


def check_task(task: Task) -> None:
    """Epochs, sampling of conditions, stimuli, encoder and table of a task.

    >>> lapsus.check_task(lapsus.IndexCued(delay=20))
    """
    _satisfies(task, Task)
    epochs = task.epochs
    _need(
        isinstance(epochs, dict) and len(epochs) > 0,
        "task.epochs must be a dictionary from epoch name to steps, in order.",
    )
    for name, steps in epochs.items():
        _need(
            isinstance(steps, int) and steps >= 0,
            f"task.epochs[{name!r}] must be a whole number of steps, not {steps!r}.",
        )
    last = list(epochs)[-1]
    _need(epochs[last] >= 1, f"The last epoch, {last!r}, is the denoising delay and needs at least one step.")
    first, again = _conditions(task), _conditions(task)
    _need(isinstance(first, dict) and len(first) > 0, "task.sample must return a dictionary of tensors.")
    for name, values in first.items():
        _need(
            isinstance(values, Tensor) and len(values) == _COUNT,
            f"task.sample(count, generator)[{name!r}] must be a tensor whose first dimension is count.",
        )
        _need(bool(torch.isfinite(values.double()).all()), f"task.sample(…)[{name!r}] has values that are not finite.")
        _need(
            torch.equal(values, again[name]),
            "task.sample must draw from the generator it is given, and from nothing else: the same generator gave other"
            " conditions.",
        )
    stimuli = task.stimuli(first)
    unknown = set(stimuli) - set(epochs)
    _need(not unknown, f"task.stimuli names epochs that task.epochs lacks: {', '.join(map(str, unknown))}.")
    _need(last not in stimuli, f"Nothing can be shown during {last!r}: the network denoises then.")
    encoder, twin = task.encoder(rng.generator("check")), task.encoder(rng.generator("check"))
    _need(
        isinstance(encoder, nn.Module),
        "task.encoder(generator) must return a torch.nn.Module (nn.Identity() if nothing is learned).",
    )
    _need(
        all(torch.equal(a, b) for a, b in zip(encoder.parameters(), twin.parameters())),
        "task.encoder must draw its weights from the generator it is given.",
    )
    encoded = encoder(stimuli)
    _need(set(encoded) == set(stimuli), "The encoder must return one tensor for each epoch of task.stimuli.")
    for name, s in encoded.items():
        _need(
            s.shape == (_COUNT, task.stimulus_size),
            f"The encoder's {name!r} has shape {list(s.shape)}; it must be [conditions, stimulus_size] = [{_COUNT},"
            f" {task.stimulus_size}].",
        )
    _need(len(task.table(first)) == _COUNT, "task.table must have one row a condition.")


def check_behaviour(behaviour: Behaviour, task: Task) -> None:
    """Samples of a behaviour on conditions of a task and, where it has a closed form, that they follow its density.

    >>> lapsus.check_behaviour(lapsus.BNS(), lapsus.IndexCued())
    """
    _satisfies(behaviour, Behaviour)
    conditions, trials = _conditions(task), 5
    x_T = behaviour.sample(conditions, trials, rng.generator("check"))
    shape = (behaviour.response_size, _COUNT, trials)
    _need(
        x_T.shape == shape,
        f"behaviour.sample(conditions, trials, generator) has shape {list(x_T.shape)}; it must be [response_size,"
        f" conditions, trials] = {list(shape)}.",
    )
    _need(bool(torch.isfinite(x_T).all()), "behaviour.sample returned values that are not finite.")
    again = behaviour.sample(conditions, trials, rng.generator("check"))
    _need(torch.equal(x_T, again), "behaviour.sample must draw from the generator it is given, and from nothing else.")
    _need(
        isinstance(behaviour.measures(conditions, x_T), dict),
        "behaviour.measures(conditions, x_T) must return a dictionary.",
    )
    if isinstance(behaviour, HasOptimum):
        best = (_COUNT, behaviour.response_size)
        _need(
            behaviour.optimal(conditions).shape == best, f"behaviour.optimal(conditions) must have shape {list(best)}."
        )
    if isinstance(behaviour, HasMixture):
        mixture = behaviour.mixture(conditions)
        sums = mixture.weights.sum(1)
        _need(
            bool(torch.allclose(sums, torch.ones_like(sums), atol=1e-5)),
            "behaviour.mixture: the weights of each condition must sum to 1.",
        )
        many = behaviour.sample(conditions, 4000, rng.generator("check", 1))
        mean = torch.einsum("cm,cmd->dc", mixture.weights, mixture.means)
        square = mixture.means.square().sum(2) + behaviour.response_size * mixture.scales**2
        second = (mixture.weights * square).sum(1)
        error = 5 * many.std(2) / math.sqrt(4000) + 1e-6
        _need(
            bool(((many.mean(2) - mean).abs() < error).all()),
            "behaviour.sample and behaviour.mixture disagree: their means differ.",
        )
        power = many.square().sum(0)
        _need(
            bool(((power.mean(1) - second).abs() < 5 * power.std(1) / math.sqrt(4000) + 1e-6).all()),
            "behaviour.sample and behaviour.mixture disagree: their second moments differ.",
        )


def check_network(network: Network, stimulus_size: int) -> None:
    """Shapes, readout, and that conditions and trials do not leak into each other.

    >>> lapsus.check_network(lapsus.DendriticTree(stimulus_size=4), 4)
    """
    _satisfies(network, Network)
    if not isinstance(network, nn.Module):
        raise LapsusError("A network must be a torch.nn.Module, so that its weights are found.")
    W_x = network.readout
    _need(
        W_x.ndim == 2 and W_x.shape[1] == network.units,
        f"network.readout must have shape [response_size, units], not {list(W_x.shape)}.",
    )
    identity = torch.eye(len(W_x), dtype=W_x.dtype)
    _need(
        bool(torch.allclose(W_x @ W_x.T, identity, atol=1e-5)),
        "The rows of network.readout must be orthonormal: W_x W_x' = I.",
    )
    _need(not W_x.requires_grad, "network.readout is fixed and must not require a gradient (register it as a buffer).")
    _need(0 < network.alpha <= 1, f"network.alpha = dt/lambda must lie in (0, 1], not {network.alpha}.")
    steps, C, K = 3, 4, 5
    drive = network.drive(torch.randn(C, stimulus_size, generator=rng.generator("check")))
    _need(
        drive.shape == (C, network.drive_size),
        f"network.drive(s) has shape {list(drive.shape)}; it must be [conditions, drive_size] = [{C},"
        f" {network.drive_size}].",
    )
    biases = network.biases(steps)
    _need(
        isinstance(biases, tuple) and all(len(table) == steps + 1 for table in biases),
        "network.biases(T) must return a tuple of tables with 1 + T rows each.",
    )
    row = tuple(table[1] for table in biases)
    r = torch.randn(network.units, C, K, generator=rng.generator("check", 1))
    out = network.F(r, drive, row)
    _need(out.shape == r.shape, f"network.F has shape {list(out.shape)}; it must be that of r, {list(r.shape)}.")
    _need(
        network.F(r, None, row).shape == r.shape, "network.F must accept drive = None, for epochs without a stimulus."
    )
    changed = r.clone()
    changed[:, 0, 0] += 1
    difference = (network.F(changed, drive, row) - out).detach().abs().amax(0)
    difference[0, 0] = 0
    _need(float(difference.max()) < 1e-4, "network.F mixes trials: changing one trial's rates changed another's.")
    out.square().sum().backward()
    _need(
        any(p.grad is not None and bool((p.grad != 0).any()) for p in network.parameters()),
        "No weight of the network receives a gradient from F.",
    )
    network.zero_grad()
