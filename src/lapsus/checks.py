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
_OTHER_DRAWS = "must draw from the generator it is given, and from nothing else: the same generator gave other numbers."


def within(section: str, thing: object, **limits: tuple[float, float]) -> None:
    """Refuse fields of an object that are outside of their limits, which belong to the range, or are not finite."""
    for name, (low, high) in limits.items():
        value = getattr(thing, name)
        if not (math.isfinite(value) and low <= value <= high):
            allowed = f"at least {low:g}" if math.isinf(high) else f"from {low:g} to {high:g}"
            raise LapsusError(f"{section}.{name} must be {allowed} (it is {value}).")


def positive(section: str, thing: object, *names: str) -> None:
    """Refuse fields of an object that are not positive, finite numbers."""
    for name in names:
        if not 0 < getattr(thing, name) < math.inf:
            raise LapsusError(f"{section}.{name} must be positive, not {getattr(thing, name)}.")


def _need(condition: object, sentence: str) -> None:
    if not condition:
        raise LapsusError(sentence)


def _shaped(name: str, tensor: Tensor, called: str, *shape: int) -> None:
    _need(
        tuple(tensor.shape) == shape, f"{name} has shape {list(tensor.shape)}; it must be [{called}] = {list(shape)}."
    )


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
    _need(epochs, "task.epochs must be a dictionary from epoch name to steps, in order.")
    for name, steps in epochs.items():
        whole = isinstance(steps, int) and steps >= 0
        _need(whole, f"task.epochs[{name!r}] must be a whole number of steps, not {steps!r}.")
    last = list(epochs)[-1]
    _need(epochs[last] >= 1, f"The last epoch, {last!r}, is the denoising delay and needs at least one step.")
    first, again = _conditions(task), _conditions(task)
    _need(isinstance(first, dict) and first, "task.sample must return a dictionary of tensors.")
    for name, values in first.items():
        sampled = f"task.sample(count, generator)[{name!r}]"
        counted = isinstance(values, Tensor) and len(values) == _COUNT
        _need(counted, f"{sampled} must be a tensor whose first dimension is count.")
        _need(values.double().isfinite().all(), f"{sampled} has values that are not finite.")
        _need(torch.equal(values, again[name]), f"task.sample {_OTHER_DRAWS}")
    stimuli = task.stimuli(first)
    unknown = set(stimuli) - set(epochs)
    _need(not unknown, f"task.stimuli names epochs that task.epochs lacks: {', '.join(map(str, unknown))}.")
    _need(last not in stimuli, f"Nothing can be shown during {last!r}: the network denoises then.")
    encoder, twin = task.encoder(rng.generator("check")), task.encoder(rng.generator("check"))
    module = "task.encoder(generator) must return a torch.nn.Module (nn.Identity() if nothing is learned)."
    _need(isinstance(encoder, nn.Module), module)
    same = all(map(torch.equal, encoder.parameters(), twin.parameters()))
    _need(same, f"task.encoder {_OTHER_DRAWS}")
    encoded = encoder(stimuli)
    _need(set(encoded) == set(stimuli), "The encoder must return one tensor for each epoch of task.stimuli.")
    for name, s in encoded.items():
        _shaped(f"The encoder's {name!r}", s, "conditions, stimulus_size", _COUNT, task.stimulus_size)
    _need(len(task.table(first)) == _COUNT, "task.table must have one row a condition.")


def check_behaviour(behaviour: Behaviour, task: Task) -> None:
    """Samples of a behaviour on conditions of a task and, where it has a closed form, that they follow its density.

    >>> lapsus.check_behaviour(lapsus.BNS(), lapsus.IndexCued())
    """
    _satisfies(behaviour, Behaviour)
    conditions, trials, size = _conditions(task), 5, behaviour.response_size
    x_T, again = (behaviour.sample(conditions, trials, rng.generator("check")) for _ in range(2))
    sampled = "behaviour.sample(conditions, trials, generator)"
    _shaped(sampled, x_T, "response_size, conditions, trials", size, _COUNT, trials)
    _need(x_T.isfinite().all(), "behaviour.sample returned values that are not finite.")
    _need(torch.equal(x_T, again), f"behaviour.sample {_OTHER_DRAWS}")
    measures = behaviour.measures(conditions, x_T)
    _need(isinstance(measures, dict), "behaviour.measures(conditions, x_T) must return a dictionary.")
    if isinstance(behaviour, HasOptimum):
        optimal = behaviour.optimal(conditions)
        _shaped("behaviour.optimal(conditions)", optimal, "conditions, response_size", _COUNT, size)
    if isinstance(behaviour, HasMixture):
        mixture = behaviour.mixture(conditions)
        whole = ((mixture.weights.sum(1) - 1).abs() < 2e-5).all()
        _need(whole, "behaviour.mixture: the weights of each condition must sum to 1.")
        many = behaviour.sample(conditions, 4000, rng.generator("check", 1))
        mean = torch.einsum("cm,cmd->dc", mixture.weights, mixture.means)
        square = mixture.means.square().sum(2) + size * mixture.scales**2
        power = (mixture.weights * square).sum(1)
        for name, drawn, due in (("means", many, mean), ("second moments", many.square().sum(0), power)):
            error = 5 * drawn.std(-1) / math.sqrt(4000) + 1e-6
            close = ((drawn.mean(-1) - due).abs() < error).all()
            _need(close, f"behaviour.sample and behaviour.mixture disagree: their {name} differ.")


def check_network(network: Network, stimulus_size: int) -> None:
    """Shapes, readout, and that conditions and trials do not leak into each other.

    >>> lapsus.check_network(lapsus.DendriticTree(stimulus_size=4), 4)
    """
    _satisfies(network, Network)
    if not isinstance(network, nn.Module):
        raise LapsusError("A network must be a torch.nn.Module, so that its weights are found.")
    W_x = network.readout
    shaped = W_x.ndim == 2 and W_x.shape[1] == network.units
    _need(shaped, f"network.readout must have shape [response_size, units], not {list(W_x.shape)}.")
    orthonormal = torch.allclose(W_x @ W_x.T, torch.eye(len(W_x), dtype=W_x.dtype), atol=1e-5)
    _need(orthonormal, "The rows of network.readout must be orthonormal: W_x W_x' = I.")
    _need(not W_x.requires_grad, "network.readout is fixed and must not require a gradient (register it as a buffer).")
    _need(0 < network.alpha <= 1, f"network.alpha = dt/lambda must lie in (0, 1], not {network.alpha}.")
    steps, C, K = 3, 4, 5
    drive = network.drive(torch.randn(C, stimulus_size, generator=rng.generator("check")))
    _shaped("network.drive(s)", drive, "conditions, drive_size", C, network.drive_size)
    biases = network.biases(steps)
    rows = isinstance(biases, tuple) and all(len(table) == steps + 1 for table in biases)
    _need(rows, "network.biases(T) must return a tuple of tables with 1 + T rows each.")
    row = tuple(table[1] for table in biases)
    r = torch.randn(network.units, C, K, generator=rng.generator("check", 1))
    out, silent = network.F(r, drive, row), network.F(r, None, row)
    for name, rates in (("network.F", out), ("network.F without a drive (None)", silent)):
        _shaped(name, rates, "units, conditions, trials", *r.shape)
    changed = r.clone()
    changed[:, 0, 0] += 1
    difference = (network.F(changed, drive, row) - out).detach().abs().amax(0)
    difference[0, 0] = 0
    _need(difference.max() < 1e-4, "network.F mixes trials: changing one trial's rates changed another's.")
    out.square().sum().backward()
    learns = any(p.grad is not None and p.grad.any() for p in network.parameters())
    _need(learns, "No weight of the network receives a gradient from F.")
    network.zero_grad()
