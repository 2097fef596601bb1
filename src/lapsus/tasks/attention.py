"""Index-cued delayed estimation with a cause of swaps before the cue: one item is attended during the first delay.

Which item it is changes from trial to trial and is nothing that the experimenter sets: a latent cause. The network is
shown a noisy trace of it, a premature cue: the learned vectors of the two cues, mixed by `evidence`. With the behaviour
`AttendedSwap`, items that are cued and were not attended are swapped more often.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import nn

from lapsus.checks import within
from lapsus.errors import LapsusError
from lapsus.protocols import ByEpoch, Conditions
from lapsus.tasks.delayed_estimation import IndexCued, _Concatenate
from lapsus.tasks.durations import Duration


class _WithAttention(_Concatenate):
    """Before the cue, the mean of the cues' vectors weighted by how much each item is attended."""

    def forward(self, stimuli: ByEpoch) -> ByEpoch:
        encoded = super().forward(stimuli)
        evidence = stimuli["attention"].to(self.cue.dtype)[:, None]
        early = (1 - evidence) / 2 * self.cue[0] + (1 + evidence) / 2 * self.cue[1]
        encoded["attention"] = torch.cat([early.new_zeros(len(early), self.stimulus_channels), early], 1)
        return encoded


@dataclass(frozen=True)
class AttendedIndexCued(IndexCued):
    """Two items; after they are shown one is attended, `attended [C]` (0 or 1), seen as `evidence [C]` = ±1 + noise.

    evidence_noise: s.d. of that noise. The epoch `attention` shows the evidence, and the first delay follows it.

    >>> lapsus.AttendedIndexCued().epochs
    {'prestimulus': 3, 'stimulus': 5, 'attention': 5, 'delay': 10, 'cue': 5, 'denoise': 40}
    """

    delay: Duration = 10
    attention: Duration = 5
    evidence_noise: float = 0.5
    _epochs: ClassVar[tuple[str, ...]] = ("prestimulus", "stimulus", "attention", "delay", "cue", "denoise")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.items != 2:
            raise LapsusError(f"task.items must be 2 where one of two items is attended (it is {self.items}).")
        within("task", self, evidence_noise=(0, math.inf))

    def sample(self, count: int, generator: torch.Generator) -> Conditions:
        """Conditions with `attended [C]` and `evidence [C]`."""
        return self.with_latent(super().sample(count, generator), generator)

    def with_latent(self, conditions: Conditions, generator: torch.Generator) -> Conditions:
        """The same stimuli and cues, attention drawn anew: what differs between trials that look the same."""
        count = len(conditions["cued"])
        attended = torch.randint(2, (count,), generator=generator)
        noise = self.evidence_noise * torch.randn(count, generator=generator)
        return conditions | {"attended": attended, "evidence": 2.0 * attended - 1 + noise}

    def stimuli(self, conditions: Conditions) -> ByEpoch:
        """What is shown, with the `evidence [C]` in the epoch `attention`; 0 where nothing says."""
        neutral = torch.zeros(len(conditions["cued"]))
        return super().stimuli(conditions) | {"attention": conditions.get("evidence", neutral)}

    def encoder(self, generator: torch.Generator) -> nn.Module:
        """The learned vectors of the cues, which show the evidence too."""
        return _WithAttention(self._channels, self.most_items, self.cue_size, generator)

    def table(self, conditions: Conditions) -> pd.DataFrame:
        """The trial table, with attended (1, 2) and evidence."""
        columns = super().table(conditions)
        if "attended" in conditions:
            columns = columns.assign(
                attended=conditions["attended"].numpy() + 1, evidence=conditions["evidence"].numpy()
            )
        return columns
