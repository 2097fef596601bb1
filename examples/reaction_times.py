"""Reaction times: a network whose responses are skewed and bounded, as those of a drift-diffusion observer.

Evidence for a signal of some strength drifts to a bound; the response is *when* it gets there, plus a non-decision
time. Copy this file for your own task: a task, a behaviour, and what it takes to train, simulate and compare.
    python reaction_times.py [updates]
"""

import sys
import tempfile
from dataclasses import dataclass

import pandas as pd
import torch
from torch import nn

import lapsus


@dataclass(frozen=True)
class Detection:
    """A signal of strength 0 … 1 comes on and stays on; the network answers with one number."""

    signal: int = 5
    denoise: int = 20
    stimulus_size = 1
    response_size = 1

    @property
    def epochs(self):
        return {"signal": self.signal, "denoise": self.denoise}

    def sample(self, count, generator):
        return {"strength": torch.rand(count, generator=generator)}

    def stimuli(self, conditions):
        return {"signal": conditions["strength"][:, None] - 0.5}

    def encoder(self, generator):
        return nn.Identity()

    def table(self, conditions):
        return pd.DataFrame({"strength": conditions["strength"].numpy()})


@dataclass(frozen=True)
class DriftDiffusion:
    """First passage of a drifting random walk, t_0 + Wald(bound / drift, bound²) seconds; a response is (t - centre) /
    unit."""

    bound: float = 1.3
    slow: float = 1.5
    fast: float = 4.0
    t_0: float = 0.25
    centre: float = 0.75
    unit: float = 0.4
    response_size = 1

    def sample(self, conditions, trials, generator):
        mean = self.bound / (self.slow + (self.fast - self.slow) * conditions["strength"][:, None].repeat(1, trials))
        # Michael, Schucany and Haas (1976): one normal and one uniform number make a Wald variate.
        y = mean * torch.randn(mean.shape, generator=generator) ** 2 / (2 * self.bound**2)
        small = mean * (1 + y - torch.sqrt(2 * y + y**2))
        first = torch.rand(mean.shape, generator=generator) <= mean / (mean + small)
        seconds = self.t_0 + torch.where(first, small, mean**2 / small)
        return ((seconds - self.centre) / self.unit)[None]

    def measures(self, conditions, x_T):
        t = (self.centre + self.unit * x_T).flatten().double()
        low, median, high = torch.quantile(t, torch.tensor([0.1, 0.5, 0.9], dtype=t.dtype)).tolist()
        # Bowley's skewness from deciles, which a few late responses do not sway; 0 for a symmetric distribution.
        skewness = (high + low - 2 * median) / (high - low)
        return {
            "10 %": low,
            "median": median,
            "90 %": high,
            "skewness": skewness,
            "before t_0": float((t < self.t_0).double().mean()),
        }


def trained(updates: int) -> lapsus.Model:
    stage = {
        "updates": updates,
        "objective": {"kind": "diffusion"},
        "conditions": 32,
        "trials": 8,
        "average": 0.99,
        "learning_rate": 5e-3,
        "final_learning_rate": 5e-4,
        "beta_2": 0.999,
    }
    experiment = lapsus.read_experiment(
        {
            "name": "reaction-times",
            "task": {"kind": "reaction_times:Detection"},
            "behaviour": {"kind": "reaction_times:DriftDiffusion"},
            # The signal is of order one, like the noise of every step: larger input weights lift it out from the start.
            "network": {"kind": "dendritic", "units": 8, "branching": [6, 6], "input_scale": 20.0},
            "stage": [stage],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        run = lapsus.Run.create(folder, experiment)
        lapsus.train(run)
        return run.model()


if __name__ == "__main__":
    lapsus.check_task(Detection())
    lapsus.check_behaviour(DriftDiffusion(), Detection())
    model = trained(int(sys.argv[1]) if len(sys.argv) > 1 else 2500)
    for strength in (0.1, 0.5, 0.9):
        conditions = {"strength": torch.full((200,), strength)}
        network = torch.from_numpy(lapsus.simulate(model, conditions, 20)["response"].to_numpy()).view(1, 200, 20)
        observer = model.behaviour.sample(conditions, 20, lapsus.rng.generator(1))
        for name, x_T in (("observer", observer), ("network", network)):
            found = model.behaviour.measures(conditions, x_T)
            print(f"strength {strength}, {name:8}: " + ", ".join(f"{key} {value:.2f}" for key, value in found.items()))
