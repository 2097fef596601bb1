"""F as a two-layer perceptron: expressive enough, but its hidden layer would be neurons without a time constant."""

from dataclasses import dataclass

from torch import Tensor, nn

from lapsus.errors import LapsusError
from lapsus.networks.dendritic import NONLINEARITIES, TimedNetwork, he_normal

__all__ = ["TwoLayer"]


@dataclass(eq=False, repr=False)
class TwoLayer(TimedNetwork):
    """F = [W_2 [W_1 r + W_s s + b_1(t)]_+ + b_2(t)]_+, every hidden unit reaching every neuron.

    >>> lapsus.TwoLayer(stimulus_size=8, units=16).units
    16
    """

    hidden: int = 160

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.units < 1 or self.hidden < 1:
            raise LapsusError("network.units and network.hidden must be at least 1.")
        generator = self._begin(self.hidden)
        self.hidden_weight = nn.Parameter(he_normal((self.hidden, self.units), generator))
        self.output_weight = nn.Parameter(0.5 * he_normal((self.units, self.hidden), generator))
        self._end([self.hidden, self.units], generator)

    @property
    def rate_weight(self) -> nn.Parameter:
        """Weights on the rates [hidden, n]."""
        return self.hidden_weight

    def F(self, r: Tensor, drive: Tensor | None, biases: tuple[Tensor, ...]) -> Tensor:
        """F(r) [n, C, K] of rates r [n, C, K], a drive [C, hidden] and the biases of both layers."""
        act = NONLINEARITIES[self.nonlinearity]
        h = (self.hidden_weight @ r.flatten(1)).view(-1, *r.shape[1:]) + biases[0][:, None, None]
        if drive is not None:
            h = h + drive.T[:, :, None]
        return act((self.output_weight @ act(h).flatten(1)).view(r.shape) + biases[1][:, None, None])
