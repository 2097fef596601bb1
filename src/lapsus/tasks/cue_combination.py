"""Cue combination: a visual and an auditory cue on a line, then an estimate of where the sound came from.

Paper: appendix "Extension to cue combination tasks". Both cues are shown at once, as two numbers; the response is one
number, read out along one direction of activity.
"""

from dataclasses import dataclass

import pandas as pd
import torch
from torch import nn

from lapsus.checks import positive
from lapsus.protocols import ByEpoch, Conditions
from lapsus.tasks.durations import Duration, check_durations, steps_of

_EPOCHS = ("prestimulus", "stimulus", "denoise")


class _AsShown(nn.Module):
    """The two cues reach the network as they are; nothing is learned before its own input weights."""

    def forward(self, stimuli: ByEpoch) -> ByEpoch:
        return dict(stimuli)


@dataclass(frozen=True)
class CueCombination:
    """Cues [s_v, s_a], each uniform within ±limit (in units of the behaviour's `unit`); no delay between cues and
    response.

    gain: how strongly cues drive the untrained network. Its noise is of order one in every step, and a memory that is
    to resolve a tenth of a unit must be larger than that; input weights would get there by themselves, in many more
    updates.

    >>> lapsus.CueCombination().epochs
    {'prestimulus': 3, 'stimulus': 5, 'denoise': 40}
    """

    limit: float = 3.0
    gain: float = 1.0
    prestimulus: Duration = 3
    stimulus: Duration = 5
    denoise: Duration = 40
    stimulus_size = 2
    response_size = 1

    def __post_init__(self) -> None:
        positive("task", self, "limit", "gain")
        check_durations(self, _EPOCHS)

    @property
    def epochs(self) -> dict[str, int]:
        """Steps of each epoch, in their order; the middle of the range of one that varies."""
        return {name: steps_of(getattr(self, name)) for name in _EPOCHS}

    def sample(self, count: int, generator: torch.Generator) -> Conditions:
        """Cues `s_v [C]` and `s_a [C]`, uniform within ±limit."""
        cues = self.limit * (2 * torch.rand(2, count, generator=generator) - 1)
        return {"s_v": cues[0], "s_a": cues[1]}

    def grid(self, size: int = 20, limit: float = 3.0) -> Conditions:
        """Every pair of `size` evenly spaced cues within ±limit, s_v in the slower index: [size²]."""
        values = torch.linspace(-limit, limit, size)
        return {"s_v": values.repeat_interleave(size), "s_a": values.repeat(size)}

    def stimuli(self, conditions: Conditions) -> ByEpoch:
        """Both cues times the gain, `stimulus [C, 2]`."""
        return {"stimulus": self.gain * torch.stack([conditions["s_v"], conditions["s_a"]], 1)}

    def encoder(self, generator: torch.Generator) -> nn.Module:
        """Cues go in as they are shown; nothing is learned."""
        return _AsShown()

    def table(self, conditions: Conditions) -> pd.DataFrame:
        """The trial table: s_v and s_a, in the units of the conditions."""
        return pd.DataFrame({name: conditions[name].numpy() for name in ("s_v", "s_a")})
