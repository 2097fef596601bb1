"""Where a short preamble retrieves the wrong item, with two kinds of first weights: `python studies/training/pockets.py
[--seeds K]`.

For each seed the feature-cued preamble is trained for 2,000 updates of 64 × 8 trials from the encoder's isotropic first
weights and from normal ones. Printed are the share of conditions with a mean error above 0.5 rad and, over these, the
mean resultant length of the sum of the two locations: 1 if the errors lie where both items are equally far from one
direction. A run takes about a minute.
"""

import argparse
import math

import numpy as np
import torch

import lapsus
from lapsus import circular, rng
from lapsus.evaluation.against_target import respond
from lapsus.training.loop import Training

CONDITIONS, TRIALS = 4096, 2


def normal_weights(model: lapsus.Model, seed: int) -> None:
    for name in ("probe_weight", "report_weight"):
        weight = getattr(model.encoder, name)
        weight.data.copy_(torch.randn(weight.shape, generator=rng.generator(seed, name)) / math.sqrt(weight.shape[1]))


def pockets(model: lapsus.Model) -> tuple[float, float]:
    conditions = model.task.sample(CONDITIONS, rng.generator("pockets"))
    response = circular.angle(respond(model, conditions, TRIALS, 1).permute(1, 2, 0))
    due = conditions["report"].gather(1, conditions["cued"].long()[:, None])
    wrong = circular.distance(response, due).mean(1) > 0.5
    total = conditions["probe"].sum(1)[wrong]
    return float(wrong.float().mean()), float(circular.resultant_length(total)) if len(total) else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    print("seed  first weights  loss   wrong    resultant length")
    for seed in range(1, seeds + 1):
        changes = [
            f"seed={seed}",
            "stage.0.updates=2000",
            "stage.0.conditions=64",
            "stage.0.final_learning_rate=1e-3",
            "stage.0.hard_example_fraction=0",
        ]
        experiment = lapsus.read_experiment("feature-preamble", changes)
        for kind in ("isotropic", "normal"):
            training = Training(experiment, lapsus.Model.of(experiment))
            if kind == "normal":
                normal_weights(training.model, seed)
                training.average.copy_(training.flat)
            loss = np.mean([step.loss for step in training.run()][-100:])
            training.flat.copy_(training.average)
            share, length = pockets(training.model)
            print(f"{seed:4}  {kind:13}  {loss:.3f}  {share:7.4f}  {length:.2f}", flush=True)


if __name__ == "__main__":
    main()
