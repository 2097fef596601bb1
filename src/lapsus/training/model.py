"""A network with its task and its target behaviour: what an experiment describes and a run holds."""

import hashlib
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lapsus import rng
from lapsus.diffusion import Schedule, corrupt, linear_schedule
from lapsus.engine import Timeline, normal, rollout_and_read_out
from lapsus.errors import LapsusError
from lapsus.protocols import Behaviour, ByEpoch, Conditions, Network, Task
from lapsus.tasks.durations import drawn, fixed, varying
from lapsus.training.build import build
from lapsus.training.experiment import Experiment, Noise, Stage
from lapsus.training.objectives import Batch, Draws

# Drives [P, C, D] and biases of each layer [1 + T, nodes].
Inputs = tuple[Tensor, tuple[Tensor, ...]]
# By name: weights of a model, what a checkpoint holds.
Tensors = dict[str, Tensor]


def timeline(task: Task, schedule: Schedule, noise: Noise) -> Timeline:
    """Which drive, which biases and how much noise in each step of a trial of this task."""
    epochs = [name for name, steps in task.epochs.items() for _ in range(steps)]
    stimuli = task.stimuli(task.sample(1, rng.generator("epochs shown")))
    with_input = [name for name in task.epochs if name in stimuli]
    return Timeline(
        drive_index=[with_input.index(name) if name in with_input else -1 for name in epochs],
        time_index=[0] * (len(epochs) - schedule.T) + list(range(1, schedule.T + 1)),
        sigma=_sigma(task, schedule, noise),
        forced=schedule.T,
    )


def _sigma(task: Task, schedule: Schedule, noise: Noise) -> list[float]:
    """Standard deviation of the noise in each step: the schedule's, or that of the step's epoch."""
    *before, _ = task.epochs
    by_epoch = noise.by_epoch
    if unknown := sorted(by_epoch.keys() - {*before, "response"}):
        raise LapsusError(
            f"noise.{unknown[0]} is not an epoch of this task; noise can be set for {', '.join(before)} and response."
        )
    scheduled = schedule.sigma.tolist()
    sigma = [by_epoch.get(name, scheduled[0]) for name in before for _ in range(task.epochs[name])]
    return sigma + ([by_epoch["response"]] * schedule.T if "response" in by_epoch else scheduled)


class Model(nn.Module):
    """task, behaviour, network, the task's learned encoder, the process noise, and the kind of objective that the
    weights were last trained for, where that is known.

    >>> model = lapsus.load("index-swap-10")
    >>> type(model.task).__name__, type(model.network).__name__
    ('IndexCued', 'DendriticTree')
    """

    network: Network
    encoder: nn.Module

    def __init__(
        self,
        task: Task,
        behaviour: Behaviour,
        network: Network,
        encoder: nn.Module,
        noise: Noise | None = None,
        objective: str | None = None,
    ) -> None:
        super().__init__()
        if not task.response_size == behaviour.response_size == network.readout.shape[0]:
            raise LapsusError(
                f"The task's responses have {task.response_size} dimensions, the behaviour's {behaviour.response_size} "
                f"and the network's readout {network.readout.shape[0]}: these must be equal."
            )
        self.task, self.behaviour, self.network, self.encoder = task, behaviour, network, encoder
        self.noise, self.objective = noise or Noise(), objective
        self.schedule = linear_schedule(list(task.epochs.values())[-1], self.noise.first, self.noise.last)
        self.timeline = timeline(task, self.schedule, self.noise)

    def __repr__(self) -> str:
        names = ", ".join(type(part).__name__ for part in (self.task, self.behaviour, self.network))
        return f"Model({names}, {sum(weight.numel() for weight in self.parameters()):,} weights)"

    @classmethod
    def of(cls, experiment: Experiment) -> "Model":
        """The untrained model of an experiment."""
        task = build("task", experiment.task)
        behaviour = build("behaviour", experiment.behaviour)
        sizes = {"stimulus_size": task.stimulus_size, "response_size": task.response_size}
        network = build("network", experiment.network, **sizes, seed=experiment.seed)
        encoder = task.encoder(rng.generator(experiment.seed, "encoder"))
        objective = experiment.stage[-1].objective.get("kind")
        return cls(task, behaviour, network, encoder, experiment.noise, objective)

    def at_stage(self, stage: Stage) -> "Model":
        """The same weights with the task and target of a stage."""
        task, behaviour = self.task, self.behaviour
        if stage.task:
            unknown = [key for key in stage.task if not hasattr(task, key)]
            if unknown:
                raise LapsusError(
                    f"stage.task.{unknown[0]} is not a field of the task; it has: {', '.join(task.epochs)}."
                )
            task = replace(task, **stage.task)  # type: ignore[type-var]  # tasks whose stages differ are dataclasses
        if stage.behaviour is not None:
            behaviour = build("behaviour", stage.behaviour)
        return Model(task, behaviour, self.network, self.encoder, self.noise, self.objective)

    def with_task(self, task: Task) -> "Model":
        """The same weights and target on another task, for instance one with other durations."""
        return Model(task, self.behaviour, self.network, self.encoder, self.noise, self.objective)

    def at(self, **durations: int) -> "Model":
        """The same model on trials whose epochs have these numbers of steps, as in model.at(delay=40)."""
        return self.with_task(fixed(self.task, **durations)) if durations else self

    def drawn(self, seed: int, update: int) -> "Model":
        """The model with the durations of that update of a run, itself if none varies."""
        if not varying(self.task):
            return self
        return self.with_task(drawn(self.task, rng.generator(seed, update, "durations")))

    def _timeline(self, noise_scale: float) -> Timeline:
        if noise_scale == 1:
            return self.timeline
        return replace(self.timeline, sigma=[noise_scale * sigma for sigma in self.timeline.sigma])

    def inputs(self, conditions: Conditions, stimuli: ByEpoch | None = None) -> Inputs:
        """All that reaches the nodes besides the rates."""
        encoded = self.encoder(self.task.stimuli(conditions) if stimuli is None else stimuli)
        inputs = [encoded[name] for name in self.task.epochs if name in encoded]
        if len({s.shape for s in inputs}) > 1:
            raise LapsusError(
                "These trials do not have as many items as the task that the network was trained on. The mechanism is"
                " looked for on trials with two items; `lapsus evaluate` and `lapsus simulate` take any number."
            )
        count = len(next(iter(conditions.values())))
        s = torch.stack(inputs) if inputs else torch.zeros(0, count, self.task.stimulus_size)
        return self.network.drive(s), self.network.biases(self.schedule.T)

    @torch.no_grad()
    def draw(self, conditions: Conditions, x_T: Tensor, part: range, key: int, threads: int | None = None) -> Draws:
        """Everything random about the conditions in `part` with responses x_T [d, C, K] as target.

        The noise of condition c depends on `key` and c alone, so how a batch is cut changes nothing.
        """
        normals = partial(
            normal, conditions=part, trials=x_T.shape[-1], dtype=self.network.readout.dtype, threads=threads
        )
        here = slice(part.start, part.stop)
        return Draws(
            behaviour=self.behaviour,
            conditions={name: values[here] for name, values in conditions.items()},
            schedule=self.schedule,
            readout=self.network.readout,
            path=corrupt(x_T[:, here], self.schedule, normals(self.schedule.T, len(x_T), key=(key, 1))),
            noise=normals(self.timeline.steps, self.network.units, key=(key, 2)),
            r0=normals(1, self.network.units, key=(key, 3))[0],
        )

    def simulate(
        self, draws: Draws, inputs: Inputs, *, forced: bool, noise_scale: float = 1.0, **options: Any
    ) -> Batch:
        """Roll the network through what was drawn; inputs are those of the same conditions. The options are those of
        lapsus.engine.rollout_and_read_out."""
        if forced and "response" in self.noise.by_epoch:
            raise LapsusError(
                "noise.response replaces the noise that the diffusion objective assumes in the response epoch: use an"
                ' objective without teacher forcing (kind = "energy"), or leave it out.'
            )
        forcing = draws.path[:-1] if forced else None
        timeline = self._timeline(noise_scale)
        rolled = rollout_and_read_out(self.network, draws.r0, *inputs, timeline, draws.noise, forcing, **options)
        return Batch(draws, *rolled)

    def batch(
        self,
        conditions: Conditions,
        inputs: Inputs,
        x_T: Tensor,
        part: range,
        key: int,
        *,
        threads: int | None = None,
        **options: Any,
    ) -> Batch:
        """Draw and simulate the conditions in `part`; inputs are those of all conditions."""
        drives, biases = inputs
        draws = self.draw(conditions, x_T, part, key, threads)
        return self.simulate(draws, (drives[:, part.start : part.stop], biases), threads=threads, **options)


def set_weights(model: Model, weights: Tensors, source: object) -> None:
    """Copy weights by name, refusing those of another network and any that are not finite; `source` names them in
    errors."""
    expected = model.state_dict()
    for name, tensor in expected.items():
        if name not in weights:
            raise LapsusError(f"{source} has no weights {name}: it belongs to another kind of network.")
        if weights[name].shape != tensor.shape:
            raise LapsusError(
                f"{source}: {name} has shape {list(weights[name].shape)}, this network needs {list(tensor.shape)}."
            )
        if not bool(torch.isfinite(weights[name]).all()):
            raise LapsusError(f"{source}: the weights {name} contain values that are not finite numbers.")
    model.load_state_dict({name: weights[name] for name in expected})


def weights_digest(model: nn.Module) -> str:
    """Sixteen hex digits that another set of weights, or of names for them, does not have."""
    digest = hashlib.sha256()
    for name, weight in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(weight.cpu().numpy().tobytes())
    return digest.hexdigest()[:16]
