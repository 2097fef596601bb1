"""How much of a training step is the kernel, and how much everything around it: `python benchmarks/step.py`.

The paper's feature-cued network, 32 conditions × 16 trials. Prints the median of several rounds.
"""

import statistics
import time

import lapsus
from lapsus.engine import fused
from lapsus.training.loop import Training

ROUNDS, UPDATES = 7, 30


def timed(function, spent: list[float]):
    def call(*arguments):
        start = time.perf_counter()
        result = function(*arguments)
        spent[0] += time.perf_counter() - start
        return result

    return staticmethod(call)


def main() -> None:
    spent = [0.0]
    for name in ("forward", "backward"):
        setattr(fused._Rollout, name, timed(getattr(fused._Rollout, name), spent))
    experiment = lapsus.read_experiment({
        "name": "step", "task": {"kind": "feature-cued"}, "behaviour": {"kind": "bns", "swap": {"kind": "smooth"}},
        "stage": [{"updates": (ROUNDS + 1) * UPDATES}],
    })  # fmt: skip
    updates = Training(experiment, lapsus.Model.of(experiment)).run()
    rates, shares = [], []
    for number in range(ROUNDS + 1):
        spent[0], start = 0.0, time.perf_counter()
        for _ in range(UPDATES):
            next(updates)
        seconds = time.perf_counter() - start
        if number:
            rates.append(UPDATES * 512 / seconds)
            shares.append(1 - spent[0] / seconds)
    print(f"training: {statistics.median(rates):,.0f} trials/s ({min(rates):,.0f} to {max(rates):,.0f})")
    print(f"around the kernel: {100 * statistics.median(shares):.1f} % of a step ({100 * min(shares):.1f} to {100 * max(shares):.1f})")


if __name__ == "__main__":
    main()
