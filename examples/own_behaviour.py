"""A behaviour of your own: responses biased towards the nearest of four preferred colours.

`sample` and `measures` are enough; `mixture`, where there is a closed form, adds the excess over the Bayes denoiser.
"""

import math
from dataclasses import dataclass

import torch

import lapsus
from lapsus import circular
from lapsus.diffusion import Mixture


@dataclass(frozen=True)
class CategoricalBias:
    """The cued colour, pulled by `pull` (0 … 1) towards the nearest category, with two widths of noise."""

    pull: float = 0.3
    lapse: float = 0.1
    response_size = 2

    def _biased(self, conditions):
        colour = conditions["report"].gather(1, conditions["cued"][:, None])[:, 0]
        category = torch.round(colour / (math.pi / 2)) * (math.pi / 2)
        return colour + self.pull * circular.difference(category, colour)

    def mixture(self, conditions):
        mean = circular.embed(self._biased(conditions), 2.5)
        weights = torch.tensor([1 - self.lapse, self.lapse]).repeat(len(mean), 1)
        scales = torch.tensor([0.2, 0.6]).repeat(len(mean), 1)
        return Mixture(weights, mean[:, None].repeat(1, 2, 1), scales)

    def sample(self, conditions, trials, generator):
        return self.mixture(conditions).sample(trials, generator)

    def measures(self, conditions, x_T):
        error = circular.difference(circular.angle(x_T.permute(1, 2, 0)), self._biased(conditions)[:, None])
        return {"median_error": float(error.abs().median()), "bias_left": float(circular.mean(error.flatten()))}


if __name__ == "__main__":
    task, behaviour = lapsus.IndexCued(), CategoricalBias()
    lapsus.check_behaviour(behaviour, task)
    conditions = task.sample(1000, torch.Generator().manual_seed(0))
    print(behaviour.measures(conditions, behaviour.sample(conditions, 8, torch.Generator().manual_seed(1))))
