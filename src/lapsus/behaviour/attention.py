"""Swaps with a cause before the cue: the item that was not attended is lost to the other one more often."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lapsus.behaviour.bns import BNS
from lapsus.checks import within
from lapsus.protocols import Conditions


@dataclass(frozen=True)
class AttendedSwap(BNS):
    """Two items; the swap probability is `if_attended` where the cued item was attended and `if_not` where the other
    was.

    Conditions without `attended [C]` get the mean of the two: what is left when nobody knows the cause.

    >>> conditions = lapsus.AttendedIndexCued().sample(3, torch.Generator().manual_seed(0))
    >>> lapsus.AttendedSwap().weights(conditions).sum(1).tolist()
    [1.0, 1.0, 1.0]
    """

    if_attended: float = 0.02
    if_not: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        within("behaviour", self, if_attended=(0, 1), if_not=(0, 1))

    def weights(self, conditions: Conditions) -> Tensor:
        """Probability that each item is the one reported: [C, 2]; rows sum to 1 - uniform."""
        cued = conditions["cued"].long()
        if "attended" in conditions:
            swap = torch.where(conditions["attended"].long() == cued, self.if_attended, self.if_not)
        else:
            swap = torch.full(cued.shape, (self.if_attended + self.if_not) / 2)
        weights = torch.stack([swap, swap], 1).to(conditions["report"].dtype)
        return (1 - self.uniform) * weights.scatter(1, cued[:, None], 1 - weights[:, :1])

    @property
    def explained(self) -> float:
        """Share of the variance of swapping that the cause fixes, within a condition of which all else is known."""
        mean = (self.if_attended + self.if_not) / 2
        return ((self.if_not - self.if_attended) / 2) ** 2 / (mean * (1 - mean))
