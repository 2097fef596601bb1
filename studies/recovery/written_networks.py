"""Networks that nobody trained: their equations were written down, so that it is known how each of them makes swaps.

Memory holds the two colours of delay 1 in two planes; the cue loads them into planes of role and place, with a code of
the cue heard; the response is drawn towards the colour in the role of the target. One direction of memory, the die, is
the noise of the last step and nothing else. Where it is above a threshold at one moment, the trial is swapped:

    misbinding           one step into the stimuli, whose colours are stored at each other's place
    misselection         one step into the cue, with which the colours are loaded at each other's place
    cue-time noise       one step into the cue, which is heard as the other one
    prior inclination    one step into the stimuli, from which on one item is favoured; the cue does not overrule it
    late switch          twenty steps after the cue, when memory goes over to what it would hold after the other cue
    response-time noise  twenty steps after the cue, when the response jumps to the other colour and memory stays
"""

from statistics import NormalDist

import torch
from torch import Tensor, nn

from lapsus.behaviour import BNS, ConstantSwap
from lapsus.networks.readout import orthonormal_rows
from lapsus.tasks import IndexCued
from lapsus.training.model import Model

__all__ = ["MECHANISMS", "written_network"]

MECHANISMS = ("misbinding", "prior inclination", "misselection", "cue-time noise", "late switch", "response-time noise")
# Places of memory: colours of delay 1; colours by role and place; the cue heard; the die; what it said, meanwhile.
STORED, TARGET, OTHER, HEARD, DIE, SAID = slice(0, 4), slice(4, 8), slice(8, 12), 12, 13, 14
MEMORY, LATE = 15, 20
# Of a prior inclination alone: above 0 where item 1 is favoured, below where item 2 is.
FAVOURED = 15
# How large the colour of the other item is where that of the target is one.
WEAK = 0.7
# What SAID holds, where noise is about 0.5 a step: the die is to be thrown; it was, and this is what it said.
BEGUN, SURE = 30.0, 100.0


class Written(nn.Module):
    """radius: of the colours in memory, where the noise of a step is about 0.5 in every direction; rate: of swaps."""

    def __init__(self, mechanism: str, rate: float, radius: float):
        super().__init__()
        self.mechanism, self.radius = mechanism, radius
        self.units, self.alpha, self.drive_size = MEMORY + 2 + (mechanism == "prior inclination"), 1.0, 8
        self.register_buffer("readout", orthonormal_rows(2, self.units, torch.Generator().manual_seed(3)))
        self.register_buffer("null", torch.linalg.svd(self.readout, full_matrices=True)[2][2:])
        self.quantile = NormalDist().inv_cdf(1 - rate)

    def thresholds(self, sigma: list[float]) -> None:
        """From the noise s.d. of each step before and after cue offset: where the die has to fall."""
        self.early = self.quantile * sigma[0]
        self.late = self.quantile * sigma[-40:][LATE - 2]

    def drive(self, s: Tensor) -> Tensor:
        return s

    def biases(self, steps: int) -> tuple[Tensor, ...]:
        return (torch.arange(1.0 + steps)[:, None],)

    def F(self, r: Tensor, drive: Tensor | None, biases: tuple[Tensor, ...]) -> Tensor:
        x, m = torch.tensordot(self.readout, r, 1), torch.tensordot(self.null, r, 1)
        after = m.clone()
        after[DIE] = after[SAID] = 0
        time = float(biases[0].flatten()[0])
        if time:
            after[STORED] = 0
            if self.mechanism == "late switch" and time == LATE:
                self._switch(m, after)
            x = self._respond(x, m, time)
        elif drive is not None and bool(drive[:, 4].any()):
            self._cue(m, after, drive[:, 4][:, None].expand(m.shape[1:]))
        elif drive is not None:
            colours = drive[:, :4].T[[0, 2, 1, 3]][:, :, None].expand(-1, -1, m.shape[2])  # cos 1, sin 1, cos 2, sin 2
            swap = self._throw(m, after, "misbinding")
            if self.mechanism == "prior inclination":
                self._favour(m, after)
            after[STORED] = self.radius * torch.where(swap, colours.roll(2, 0), colours)
        return torch.tensordot(self.readout.T, x, 1) + torch.tensordot(self.null.T, after, 1)

    def _throw(self, m: Tensor, after: Tensor, mechanism: str) -> Tensor:
        """Whether trials are swapped by this mechanism: decided in the second step of an epoch, by the noise of the
        first, and kept in it."""
        if self.mechanism != mechanism:
            return torch.zeros_like(m[DIE], dtype=torch.bool)
        known, begun = m[SAID].abs() > (BEGUN + SURE) / 2, m[SAID].abs() > BEGUN / 2
        swap = torch.where(known, m[SAID] > 0, begun & (m[DIE] > self.early))
        after[SAID] = torch.where(begun, torch.where(swap, SURE, -SURE), BEGUN)
        return swap

    def _favour(self, m: Tensor, after: Tensor) -> None:
        """Favour an item where the die of the first step fell far to one side or the other, and keep to it."""
        known, begun = m[SAID].abs() > (BEGUN + SURE) / 2, m[SAID].abs() > BEGUN / 2
        side = (m[DIE] > self.early).float() - (m[DIE] < -self.early).float()
        kept = SURE * torch.round(m[FAVOURED] / SURE)
        after[FAVOURED] = torch.where(known, kept, torch.where(begun, SURE * side, 0.0))
        after[SAID] = torch.where(begun, SURE, BEGUN)

    def _cue(self, m: Tensor, after: Tensor, cue: Tensor) -> None:
        stored = torch.where(self._throw(m, after, "misselection"), m[STORED].roll(2, 0), m[STORED])
        heard = torch.where(self._throw(m, after, "cue-time noise"), -cue, cue) > 0
        if self.mechanism == "prior inclination":
            heard = torch.where(m[FAVOURED].abs() > SURE / 2, m[FAVOURED] > 0, heard)
        own = torch.stack([heard, heard, ~heard, ~heard])
        after[TARGET], after[OTHER] = stored * own, WEAK * stored * ~own
        after[HEARD] = torch.where(heard, 0.5, -0.5) * self.radius

    def _switch(self, m: Tensor, after: Tensor) -> None:
        swap = m[DIE] > self.late
        after[TARGET] = torch.where(swap, m[OTHER] / WEAK, m[TARGET])
        after[OTHER] = torch.where(swap, m[TARGET] * WEAK, m[OTHER])
        after[HEARD] = torch.where(swap, -m[HEARD], m[HEARD])

    def _respond(self, x: Tensor, m: Tensor, time: float) -> Tensor:
        first = m[HEARD] > 0
        target = torch.where(first, m[TARGET][:2], m[TARGET][2:])
        other = torch.where(first, m[OTHER][2:], m[OTHER][:2])
        target, other = (2.5 * one / one.norm(dim=0).clamp(min=1e-6) for one in (target, other))
        goal = target
        if self.mechanism == "response-time noise":
            if time == LATE:
                x = torch.where(m[DIE] > self.late, other, x)
            if time >= LATE:  # the response itself holds what was decided
                goal = torch.where((x - other).norm(dim=0) < (x - target).norm(dim=0), other, target)
        return x + 0.3 * (goal - x)


def written_network(mechanism: str, rate: float, radius: float) -> Model:
    """An index-cued model whose swaps come about in this way, in a share `rate` of trials."""
    task = IndexCued()
    encoder = task.encoder(torch.Generator().manual_seed(0))
    encoder.cue.data = torch.tensor([[1.0], [-1.0]]).expand_as(encoder.cue).clone()
    network = Written(mechanism, rate, radius)
    model = Model(task, BNS(ConstantSwap(rate)), network, encoder).requires_grad_(False)
    network.thresholds(model.timeline.sigma)
    return model
