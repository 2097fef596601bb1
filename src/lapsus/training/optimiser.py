"""Adam on one flat vector of parameters, in the principal axes of the gradient where that is wished.

Rates have directions of very different size: a memory is tens of times larger than a response. Weights on the rates are
therefore ill-conditioned, and not along the axes of single neurons, which are all that Adam can scale. So Adam may work
in the eigenvectors of the gradient's covariance over the rates (one side of SOAP; Vyas et al. 2024, arXiv 2409.11321).
"""

import torch
from torch import Tensor

from lapsus.engine import fused

# Updates between two looks at the axes, which turn slowly.
_LOOK_EVERY = 10
_EPSILON = 1e-8


class Optimiser:
    """Moments of the gradient of `flat`, whose entries `turned` (a slice that holds a matrix of `columns` columns) may
    be seen in other axes than their own."""

    def __init__(self, flat: Tensor, turned: slice = slice(0, 0), columns: int = 1) -> None:
        self.moment_1, self.moment_2 = torch.zeros_like(flat), torch.zeros_like(flat)
        self.updates = 0
        self.turned, self.columns = turned, columns
        self.covariance, self.axes = flat.new_zeros(columns, columns), torch.eye(columns, dtype=flat.dtype)

    def state(self) -> dict[str, Tensor]:
        """All that a checkpoint must hold, besides `updates`."""
        return {name: getattr(self, name) for name in ("moment_1", "moment_2", "covariance", "axes")}

    @torch.no_grad()
    def step(self, grad: Tensor, rate: float, beta_1: float, beta_2: float, axes: float) -> Tensor:
        """What to subtract from the parameters; `grad` is overwritten. axes is the decay of the gradient's covariance,
        0 for plain Adam."""
        self.updates += 1
        self._look(grad, axes)
        if axes:
            matrix = self._matrix(grad)
            matrix.copy_(matrix @ self.axes)
        rate = rate / (1 - beta_1**self.updates)
        fused.adam(grad, self.moment_1, self.moment_2, beta_1, beta_2, rate, 1 - beta_2**self.updates, _EPSILON)
        if axes:
            matrix.copy_(matrix @ self.axes.T)
        return grad

    def _matrix(self, flat: Tensor) -> Tensor:
        return flat[self.turned].view(-1, self.columns)

    def _look(self, grad: Tensor, axes: float) -> None:
        """Follow the covariance, and now and then turn to its eigenvectors; without axes, turn back."""
        if not axes:
            if self.covariance.any():
                self._turn(torch.eye(self.columns, dtype=self.axes.dtype))
                self.covariance.zero_()
            return
        matrix = self._matrix(grad)
        self.covariance.lerp_(matrix.T @ matrix, 1 - axes)
        if self.updates % _LOOK_EVERY == 1:
            self._turn(torch.linalg.eigh(self.covariance.double())[1].to(self.axes.dtype))

    def _turn(self, axes: Tensor) -> None:
        """The first moment turns with the axes; the second as if entries of different columns were independent."""
        between = self.axes.T @ axes
        for moment, weights in ((self.moment_1, between), (self.moment_2, between.square())):
            matrix = self._matrix(moment)
            matrix.copy_(matrix @ weights)
        self.axes.copy_(axes)
