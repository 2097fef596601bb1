"""F as a two-layer perceptron: expressive enough, but its hidden layer would be neurons without a time constant."""

from typing import Literal

from torch import Tensor, nn

from lapsus import streams
from lapsus.errors import LapsusError
from lapsus.networks.dendritic import NONLINEARITIES, TimedNetwork, check_size, he_normal
from lapsus.networks.readout import orthonormal_rows
from lapsus.networks.time import TimeBias

__all__ = ["TwoLayer"]


class TwoLayer(TimedNetwork):
    """F = [W_2 [W_1 r + W_s s + b_1(t)]_+ + b_2(t)]_+, every hidden unit reaching every neuron.

    >>> lapsus.TwoLayer(stimulus_size=8, units=16).units
    16
    """

    def __init__(
        self,
        stimulus_size: int,
        response_size: int = 2,
        units: int = 16,
        hidden: int = 160,
        nonlinearity: Literal["relu", "softplus"] = "relu",
        alpha: float = 0.1,
        input_scale: float = 1.0,
        time_code: int = 16,
        time_shared: int = 8,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if units < 1 or hidden < 1:
            raise LapsusError("network.units and network.hidden must be at least 1.")
        check_size(units, hidden, stimulus_size, time_code, time_shared, input_scale, alpha)
        generator = streams.generator(seed, "network")
        self.units, self.alpha, self.nonlinearity, self.drive_size = units, alpha, nonlinearity, hidden
        self.hidden_weight = nn.Parameter(he_normal((hidden, units), generator))
        self.output_weight = nn.Parameter(0.5 * he_normal((units, hidden), generator))
        self.input_weight = nn.Parameter(input_scale * he_normal((hidden, stimulus_size), generator))
        self.time = TimeBias([hidden, units], time_code, time_shared, generator)
        self.register_buffer("readout", orthonormal_rows(response_size, units, generator))

    @property
    def rate_weight(self) -> nn.Parameter:
        return self.hidden_weight

    def F(self, r: Tensor, drive: Tensor | None, biases: tuple[Tensor, ...]) -> Tensor:
        act = NONLINEARITIES[self.nonlinearity]
        h = (self.hidden_weight @ r.flatten(1)).view(-1, *r.shape[1:]) + biases[0][:, None, None]
        if drive is not None:
            h = h + drive.T[:, :, None]
        return act((self.output_weight @ act(h).flatten(1)).view(r.shape) + biases[1][:, None, None])
