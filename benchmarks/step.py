"""How much of a training step is the kernel, and how much everything around it: `python benchmarks/step.py`.

The paper's feature-cued network, 32 conditions × 16 trials, medians of several rounds. What the next batch needs from
chance is drawn by another thread while the kernel runs, which slows the kernel a little; so the share is given twice:
of what is left outside the kernel's calls, and of all that a step takes beyond the same calls with nothing beside them.
"""

import statistics
import time

import torch

import lapsus
from lapsus.engine import fused
from lapsus.training.build import build
from lapsus.training.loop import Training, _group, draw

ROUNDS, UPDATES = 7, 30


def timed(function, spent: list[float]):
    def call(*arguments):
        start = time.perf_counter()
        result = function(*arguments)
        spent[0] += time.perf_counter() - start
        return result

    return staticmethod(call)


def alone(training: Training, stage, spent: list[float]) -> float:
    """Seconds of one rollout and its gradient with nothing beside them."""
    drawn = next(draw(training.model, stage, build("objective", stage.objective), 0, 0))
    drives, biases = training.model.inputs(drawn.conditions)
    leaves = [tensor.detach().requires_grad_() for tensor in (drives, *biases)]
    seconds = []
    for _ in range(UPDATES):
        spent[0] = 0.0
        batch = training.model.simulate(
            drawn.draws, (leaves[0], tuple(leaves[1:])), forced=True, group=_group(stage.trials)
        )
        torch.autograd.backward([batch.x, batch.power], [batch.x.detach(), torch.ones_like(batch.power)])
        seconds.append(spent[0])
    return statistics.median(seconds)


def main() -> None:
    spent = [0.0]
    for name in ("forward", "backward"):
        setattr(fused._Rollout, name, timed(getattr(fused._Rollout, name), spent))
    experiment = lapsus.read_experiment(
        {
            "name": "step",
            "task": {"kind": "feature-cued"},
            "behaviour": {"kind": "bns", "swap": {"kind": "smooth"}},
            "stage": [
                {"updates": (ROUNDS + 1) * UPDATES, "objective": {"kind": "diffusion", "regress": "expectation"}}
            ],
        }
    )
    training = Training(experiment, lapsus.Model.of(experiment))
    updates = training.run()
    rates, outside, beyond = [], [], []
    for number in range(ROUNDS + 1):
        spent[0], start = 0.0, time.perf_counter()
        for _ in range(UPDATES):
            next(updates)
        seconds, inside = (time.perf_counter() - start) / UPDATES, spent[0] / UPDATES
        if number:
            rates.append(512 / seconds)
            outside.append(100 * (1 - inside / seconds))
            beyond.append(100 * (1 - alone(training, experiment.stage[0], spent) / seconds))
    print(f"training: {_range(rates, ',.0f')} trials/s")
    print(f"outside the kernel's calls: {_range(outside, '.1f')} % of a step")
    print(f"beyond the kernel alone: {_range(beyond, '.1f')} % of a step")


def _range(values: list[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


if __name__ == "__main__":
    main()
