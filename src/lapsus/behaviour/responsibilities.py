"""Which item a response reported, by probability: from the target's own mixture, or the nearest item.

A response near a distractor may be a swap or a guess that landed there. The target density of a behaviour says which
is how likely; taking the nearest item instead calls every guess near a distractor a swap.
"""

import torch
from torch import Tensor

from lapsus import circular
from lapsus.protocols import Conditions, HasMixture
from lapsus.statistics.swaps import nearest_item as nearest_of


def item_responsibilities(behaviour: HasMixture, conditions: Conditions, x_T: Tensor) -> Tensor:
    """Probability that each response x_T [2, C, K] reports each item, or (last) is a guess: [C, N + 1, K].

    `behaviour` has a `mixture` whose first N components are the items (BNS); components beyond them make the guess.
    """
    shares = behaviour.mixture(conditions).responsibilities(x_T).transpose(0, 1)  # [C, M, K]
    items = conditions["report"].shape[1]
    return torch.cat([shares[:, :items], shares[:, items:].sum(1, keepdim=True)], 1)


def nearest_item(conditions: Conditions, x_T: Tensor) -> tuple[Tensor, Tensor]:
    """The item that is nearest to each response x_T [2, C, K], and how near (radians): both [C, K]. Guesses count as
    the item that they happen to be near."""
    item, gap = nearest_of(circular.angle(x_T.permute(2, 1, 0)).numpy(), conditions["report"].numpy())
    return torch.from_numpy(item.T), torch.from_numpy(gap.T)


def swap_probability(behaviour: HasMixture, conditions: Conditions, x_T: Tensor) -> Tensor:
    """Probability that each response reports an item that was not cued, [C, K]."""
    shares = item_responsibilities(behaviour, conditions, x_T)
    cued = conditions["cued"].long()
    rows = torch.arange(len(cued))
    return shares[:, :-1].sum(1) - shares[rows, cued]
