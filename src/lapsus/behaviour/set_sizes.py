"""A behaviour for each number of items: swap function, scatter and guesses may all change with set size."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lapsus.behaviour.bns import BNS
from lapsus.behaviour.measures import swap_measures
from lapsus.diffusion import Mixture
from lapsus.errors import LapsusError
from lapsus.protocols import Conditions


@dataclass(frozen=True)
class BySetSize:
    """`of` has the BNS of each set size, by its number of items. Conditions mark items that are not there by NaN.

    >>> behaviour = lapsus.BySetSize({1: lapsus.BNS(), 2: lapsus.BNS(swap=lapsus.ConstantSwap(p=0.1))})
    >>> conditions = lapsus.IndexCued(items=2).sample(4, torch.Generator().manual_seed(0))
    >>> behaviour.weights(conditions).shape
    torch.Size([4, 2])
    """

    of: dict[int, BNS]
    response_size = 2

    def __post_init__(self) -> None:
        try:
            by_number = {int(size): behaviour for size, behaviour in self.of.items()}
        except ValueError:
            raise LapsusError("behaviour.of has numbers of items as its keys, such as 1, 2 and 4.") from None
        if not by_number or min(by_number) < 1:
            raise LapsusError("behaviour.of needs the behaviour of at least one set size, of one item or more.")
        object.__setattr__(self, "of", dict(sorted(by_number.items())))
        if len({behaviour.radius for behaviour in self.of.values()}) > 1:
            raise LapsusError("behaviour.of must have the same radius at every set size.")
        if len({behaviour.feature for size, behaviour in self.of.items() if size > 1}) > 1:
            raise LapsusError("behaviour.of must have the same feature at every set size.")

    @property
    def feature(self) -> str:
        """The feature whose distance swaps depend on."""
        return self.of[max(self.of)].feature

    def _parts(self, conditions: Conditions) -> list[tuple[Tensor, BNS, Conditions]]:
        """The rows of each set size, with their behaviour and conditions."""
        set_size = (~torch.isnan(conditions["report"])).sum(1)
        parts = []
        for size in set_size.unique().tolist():
            if size not in self.of:
                known = ", ".join(map(str, self.of))
                raise LapsusError(f"The behaviour is given for set sizes {known}, and the task shows {size} items.")
            rows = torch.nonzero(set_size == size)[:, 0]
            parts.append((rows, self.of[size], {name: values[rows] for name, values in conditions.items()}))
        return parts

    def weights(self, conditions: Conditions) -> Tensor:
        """Probability that each item is the one reported: [C, N]."""
        found = torch.zeros_like(conditions["report"])
        for rows, behaviour, own in self._parts(conditions):
            found[rows] = behaviour.weights(own)
        return found

    def mixture(self, conditions: Conditions) -> Mixture:
        """The target density in the plane, exact."""
        return self._mixture(conditions, BNS.mixture)

    def tempered(self, conditions: Conditions, power: float) -> Mixture:
        """The same with rare swaps less rare, as that of BNS."""
        return self._mixture(conditions, lambda behaviour, own: behaviour.tempered(own, power))

    def _mixture(self, conditions: Conditions, of: Callable[[BNS, Conditions], Mixture]) -> Mixture:
        """The mixtures of all set sizes as one; where one has fewer components, the others have weight 0."""
        parts = [(rows, of(behaviour, own)) for rows, behaviour, own in self._parts(conditions)]
        count, most = len(conditions["report"]), max(mixture.weights.shape[1] for _, mixture in parts)
        first = parts[0][1]
        weights, scales = first.weights.new_zeros(count, most), first.scales.new_ones(count, most)
        means = first.means.new_zeros(count, most, self.response_size)
        for rows, mixture in parts:
            components = mixture.weights.shape[1]
            weights[rows, :components] = mixture.weights
            means[rows, :components] = mixture.means
            scales[rows, :components] = mixture.scales
        return Mixture(weights, means, scales, max(mixture.modes or most for _, mixture in parts))

    def sample(self, conditions: Conditions, trials: int, generator: torch.Generator) -> Tensor:
        """Responses x_T [2, C, K] in the plane."""
        return self.mixture(conditions).sample(trials, generator)

    def optimal(self, conditions: Conditions) -> Tensor:
        """What a perfect subject would answer, [C, 2]."""
        return self.of[min(self.of)].optimal(conditions)

    def density(self, angle: Tensor, conditions: Conditions) -> Tensor:
        """Density on the circle of the response angle [..., C, K]."""
        found = torch.zeros_like(angle)
        for rows, behaviour, own in self._parts(conditions):
            found[..., rows, :] = behaviour.density(angle[..., rows, :], own)
        return found

    def measures(self, conditions: Conditions, x_T: Tensor) -> dict:
        """What `lapsus evaluate` prints, over all set sizes and of each (behaviour/measures.py)."""
        return swap_measures(self, conditions, x_T)
