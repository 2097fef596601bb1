"""A network of your own: point neurons with low-rank recurrence. The torch reference simulates and trains it."""

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import nn

import lapsus
from lapsus import rng
from lapsus.networks import orthonormal_rows
from lapsus.networks.time import TimeBias


class LowRank(nn.Module):
    """F = tanh(U V' r + W_s s + b(t)) with U, V of `rank` columns."""

    def __init__(
        self,
        stimulus_size: int,
        response_size: int = 2,
        units: int = 32,
        rank: int = 4,
        alpha: float = 0.1,
        seed: int = 0,
    ):
        super().__init__()
        generator = rng.generator(seed, "low rank")
        self.units, self.alpha, self.drive_size = units, alpha, units
        self.left = nn.Parameter(torch.randn(units, rank, generator=generator) / math.sqrt(rank))
        self.right = nn.Parameter(torch.randn(units, rank, generator=generator) / math.sqrt(units))
        self.input_weight = nn.Parameter(
            torch.randn(units, stimulus_size, generator=generator) / math.sqrt(stimulus_size)
        )
        self.time = TimeBias([units], 16, 8, generator)
        self.register_buffer("readout", orthonormal_rows(response_size, units, generator))

    def drive(self, s):
        return s @ self.input_weight.T

    def biases(self, steps):
        return self.time(steps)

    def F(self, r, drive, biases):
        h = torch.einsum("nr,mr,mck->nck", self.left, self.right, r) + biases[0][:, None, None]
        return torch.tanh(h if drive is None else h + drive.T[:, :, None])


if __name__ == "__main__":
    task = lapsus.IndexCued()
    lapsus.check_network(LowRank(task.stimulus_size), task.stimulus_size)
    experiment = lapsus.read_experiment(
        {
            "name": "low-rank",
            "task": {"kind": "index-cued", "delay": 1, "denoise": 5},
            "network": {"kind": "own_network:LowRank", "rank": 3},
            "stage": [{"updates": 20, "objective": {"kind": "task-optimal"}}],
        }
    )
    with TemporaryDirectory() as folder:
        run = lapsus.Run.create(Path(folder) / "run", experiment)  # an experiment that you give to a run is trusted
        lapsus.train(run, engine="reference", progress=False)
        last = run.metrics()[-1]
    print(f"loss after {last['update']} updates: {last['loss']:.3f}")
