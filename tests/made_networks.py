"""Networks and populations whose mechanism is known because it was written down: no training."""

import numpy as np
import torch
from torch import nn

from lapsus.behaviour import BNS, ConstantSwap
from lapsus.circular import embed, wrap
from lapsus.mechanism.swap_axis import Reports
from lapsus.networks.readout import orthonormal_rows
from lapsus.tasks import IndexCued
from lapsus.training.model import Model

UNITS = 6


class _Written(nn.Module):
    """r ← r + push(r), with no input: whatever `push` adds in a step is all that happens besides noise."""

    def __init__(self, units: int = UNITS):
        super().__init__()
        self.units, self.alpha = units, 0.5
        generator = torch.Generator().manual_seed(3)
        self.register_buffer("readout", orthonormal_rows(2, units, generator))
        self.register_buffer("null", torch.linalg.svd(self.readout, full_matrices=True)[2][2:])
        self.drive_size = 1

    def drive(self, s):
        return s[..., :1] * 0

    def biases(self, steps):
        return (torch.zeros(1 + steps, 1),)

    def push(self, r):
        raise NotImplementedError

    def F(self, r, drive, biases):
        return r + self.push(r) / self.alpha


class ResponseWalks(_Written):
    """The response does a random walk, memory does another one that nobody reads: x carries everything."""

    def push(self, r):
        return 0 * r


class MemoryDecides(_Written):
    """Two directions of memory do a random walk and are added to the response at every step: m carries the outcome."""

    def push(self, r):
        m = torch.tensordot(self.null[:2], r, 1)
        return 5.0 * torch.tensordot(self.readout.T, m, 1)


class AlignedSwaps(_Written):
    """Memory holds each item's colour in a plane of its own, with noise; the cue loads the item that was not cued where
    the two held colours agree (sign 1), or where they do not (sign -1). Whatever turns both colours the same way before
    the cue makes swaps likelier, or rarer."""

    def __init__(self, sign: float):
        super().__init__()
        self.sign, self.drive_size = sign, 8

    def drive(self, s):
        return s

    def F(self, r, drive, biases):
        if drive is None:
            return r
        shown, cue = drive[:, :4].T[:, :, None], drive[:, 4][None, :, None]
        held = torch.tensordot(self.null, r, 1)  # cos 1, cos 2, sin 1, sin 2
        first, second = held[[0, 2]], held[[1, 3]]
        own, other = (torch.where(cue > 0, *pair) for pair in ((first, second), (second, first)))
        swap = self.sign * (first * second).sum(0) > 0
        loaded = torch.where(swap, other, own) * (cue != 0)
        return r + (3 * torch.tensordot(self.null.T, shown + 0 * held, 1) + self._onto_x(loaded)) / self.alpha

    def _onto_x(self, loaded):
        return torch.tensordot(self.readout.T, loaded, 1)


def made(network: nn.Module, **task) -> Model:
    task = IndexCued(**({"prestimulus": 1, "stimulus": 2, "delay": 3, "cue": 2, "denoise": 12} | task))
    encoder = task.encoder(torch.Generator().manual_seed(0))
    # Which item is cued, in one number.
    encoder.cue.data = torch.tensor([[1.0], [-1.0]]).expand_as(encoder.cue).clone()
    return Model(task, BNS(ConstantSwap(0.3)), network, encoder).requires_grad_(False)


def nearest_counts(monkeypatch) -> None:
    """Responses of the networks above walk over the whole plane: the nearest item counts, and nothing is a guess."""
    monkeypatch.setattr("lapsus.mechanism.outcomes.scatter_of", lambda *_: 0.02)
    monkeypatch.setattr("lapsus.mechanism.outcomes.guess_of", lambda *_: 0.0)


class ForgetsUntilCue(_Written):
    """The response is erased at every step up to cue offset and walks from then on: nothing before the cue counts."""

    def biases(self, steps):
        return (torch.cat([torch.ones(1, 1), torch.zeros(steps, 1)]),)

    def F(self, r, drive, biases):
        before = biases[0].flatten()[0]
        x = torch.tensordot(self.readout.T, torch.tensordot(self.readout, r, 1), 1)
        return r - before * x / self.alpha


def cells(role: float, imprint: float, *, locations=3, colours=4, trials=60, turn=0.0, noise=0.3, seed=0):
    """Populations that hold who is the target (along an axis that may differ between locations by `turn`) and the
    colour reported."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((10, 10)))[0].T
    rows = []
    for k in range(locations):
        axis = np.cos(turn * k) * basis[0] + np.sin(turn * k) * basis[1]
        row = []
        for c in range(colours):
            fixed = -np.pi + 2 * np.pi * c / colours
            free = np.repeat(wrap(fixed + np.linspace(np.pi / 4, 2 * np.pi - np.pi / 4, 12)), trials)
            target, reported = rng.random(len(free)) < 0.5, rng.random(len(free)) < 0.5
            colour = np.where(reported, fixed, free)
            m = role * np.where(target, 0.5, -0.5)[:, None] * axis + imprint * embed(colour) @ basis[2:4]
            row.append(Reports(m + noise * rng.standard_normal(m.shape), reported, target, free))
        rows.append(row)
    first = rows[0][0]
    path = first.m[first.reported][:, None]
    return rows, (np.zeros(1), path, ~first.target[first.reported], first.free[first.reported])
