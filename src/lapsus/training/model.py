"""A network with its task and its target behaviour: what an experiment describes and a run holds."""

from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from lapsus import streams
from lapsus.diffusion import Schedule, corrupt, linear_schedule
from lapsus.engine import Timeline, normal, rollout
from lapsus.errors import LapsusError
from lapsus.training.build import build
from lapsus.training.experiment import Experiment
from lapsus.training.objectives import Batch

__all__ = ["Model", "timeline"]

def timeline(task, schedule: Schedule) -> Timeline:
    """Which drive, which biases and how much noise in each step of a trial of this task."""
    epochs, shown = list(task.epochs.items()), list(_shown(task))
    steps_before = sum(steps for _, steps in epochs[:-1])
    drive_index = [shown.index(name) if name in shown else -1 for name, steps in epochs for _ in range(steps)]
    time_index = [0] * steps_before + list(range(1, schedule.T + 1))
    sigma = [float(schedule.sigma[0])] * steps_before + schedule.sigma.tolist()
    return Timeline(
        drive_index=drive_index, time_index=time_index, sigma=sigma, forced=schedule.T,
    )  # fmt: skip


def _shown(task) -> list[str]:
    """Epochs in which something is shown, in their order."""
    stimuli = task.stimuli(task.sample(1, streams.generator("epochs shown")))
    return [name for name in task.epochs if name in stimuli]


class Model(nn.Module):
    """task, behaviour, network and the task's learned encoder; `seed` fixes the initial weights."""

    def __init__(self, task, behaviour, network: nn.Module, encoder: nn.Module, noise: tuple[float, float] = (0.3, 0.01)):
        super().__init__()
        if not task.response_size == behaviour.response_size == network.readout.shape[0]:
            raise LapsusError(
                f"The task's responses have {task.response_size} dimensions, the behaviour's {behaviour.response_size} "
                f"and the network's readout {network.readout.shape[0]}: these must be equal."
            )
        self.task, self.behaviour, self.network, self.encoder, self.noise = task, behaviour, network, encoder, noise
        self.schedule = linear_schedule(list(task.epochs.values())[-1], *noise)
        self.timeline = timeline(task, self.schedule)

    @classmethod
    def of(cls, experiment: Experiment) -> "Model":
        """The untrained model of an experiment."""
        task = build("task", experiment.task)
        behaviour = build("behaviour", experiment.behaviour)
        sizes = {"stimulus_size": task.stimulus_size, "response_size": task.response_size}
        network = build("network", experiment.network, **sizes, seed=experiment.seed)
        encoder = task.encoder(streams.generator(experiment.seed, "encoder"))
        return cls(task, behaviour, network, encoder, (experiment.noise.first, experiment.noise.last))

    def at_stage(self, stage) -> "Model":
        """The same weights with the task and target of a stage."""
        task, behaviour = self.task, self.behaviour
        if stage.task:
            unknown = [key for key in stage.task if not hasattr(task, key)]
            if unknown:
                raise LapsusError(f"stage.task.{unknown[0]} is not a field of the task; it has: {', '.join(task.epochs)}.")
            task = replace(task, **stage.task)
        if stage.behaviour is not None:
            behaviour = build("behaviour", stage.behaviour)
        return Model(task, behaviour, self.network, self.encoder, self.noise)

    def _timeline(self, noise_scale: float) -> Timeline:
        if noise_scale == 1:
            return self.timeline
        return replace(self.timeline, sigma=[noise_scale * sigma for sigma in self.timeline.sigma])

    def inputs(self, conditions: dict[str, Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Drives [P, C, D] and biases of each layer [1 + T, nodes]: all that reaches the nodes besides the rates."""
        encoded = self.encoder(self.task.stimuli(conditions))
        shown = [encoded[name] for name in self.task.epochs if name in encoded]
        s = torch.stack(shown) if shown else torch.zeros(0, len(next(iter(conditions.values()))), self.task.stimulus_size)
        return self.network.drive(s), self.network.biases(self.schedule.T)

    def batch(self, conditions, inputs, x_T: Tensor, part: range, key: int, *, forced: bool, noise_scale: float = 1.0,
              engine: str = "auto", threads: int | None = None, group: int | None = None) -> Batch:  # fmt: skip
        """Simulate the conditions in `part`, with responses x_T [d, C, K] as target, and gather what an objective needs.

        The noise of condition c depends on `key` and c alone, so how a batch is cut changes nothing.
        """
        drives, biases = inputs
        schedule, trials, here = self.schedule, x_T.shape[-1], slice(part.start, part.stop)
        chosen = {name: values[here] for name, values in conditions.items()}
        steps, units, d = self.timeline.steps, self.network.units, len(x_T)
        draw = partial(normal, conditions=part, trials=trials, dtype=self.network.readout.dtype, threads=threads)
        path = corrupt(x_T[:, here], schedule, draw(schedule.T, d, key=(key, 1)))
        noise = draw(steps, units, key=(key, 2))
        trajectory = rollout(
            self.network, draw(1, units, key=(key, 3))[0], drives[:, here], biases,
            self._timeline(noise_scale), noise, path[:-1] if forced else None,
            engine=engine, threads=threads, group=group,
        )  # fmt: skip
        return Batch(
            trajectory=trajectory, noise=noise, readout=self.network.readout, schedule=schedule, path=path,
            optimal=self.behaviour.optimal(chosen) if hasattr(self.behaviour, "optimal") else None,
            target=self.behaviour.mixture(chosen) if hasattr(self.behaviour, "mixture") else None,
        )  # fmt: skip
