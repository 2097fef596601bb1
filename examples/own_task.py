"""A task of your own: one colour, shown twice, the second time with a cue that says which showing to report.

Any class with these members is a task; nothing has to be registered.
"""

import math
from dataclasses import dataclass

import pandas as pd
import torch
from torch import nn

import lapsus


class Separate(nn.Module):
    """First showing, second showing and cue on channels of their own; nothing is learned here."""

    def forward(self, stimuli):
        padding = {"first": (0, 4), "second": (2, 2), "cue": (4, 0)}
        return {name: nn.functional.pad(s, padding[name]) for name, s in stimuli.items()}


@dataclass(frozen=True)
class TwoIntervals:
    steps: int = 4
    denoise: int = 8
    stimulus_size = 6
    response_size = 2

    @property
    def epochs(self):
        return {
            "first": self.steps,
            "gap": self.steps,
            "second": self.steps,
            "cue": self.steps,
            "denoise": self.denoise,
        }

    def sample(self, count, generator):
        angles = (2 * torch.rand(count, 2, generator=generator) - 1) * math.pi
        cued = torch.randint(2, (count,), generator=generator)
        return {"report": angles, "probe": torch.tensor([[0.0, -math.pi]]).repeat(count, 1), "cued": cued}

    def stimuli(self, conditions):
        first, second = conditions["report"].unbind(1)
        cue = nn.functional.one_hot(conditions["cued"], 2).float()
        return {"first": lapsus.circular.embed(first), "second": lapsus.circular.embed(second), "cue": cue}

    def encoder(self, generator):
        return Separate()

    def table(self, conditions):
        first, second = conditions["report"].unbind(1)
        return pd.DataFrame({"first": first, "second": second, "cued": conditions["cued"] + 1})


if __name__ == "__main__":
    task = TwoIntervals()
    lapsus.check_task(task)
    network = lapsus.DendriticTree(task.stimulus_size, units=8, branching=(4, 4))
    model = lapsus.Model(task, lapsus.BNS(lapsus.ConstantSwap(0.2)), network, task.encoder(None))
    print(lapsus.simulate(model, conditions=10, trials=2))
