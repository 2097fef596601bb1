"""Laplace's approximation: the posterior's mode and a Gaussian around it, in coordinates where that is nearly right.

It takes a second or so, which is what comparing two dozen models needs; the model that is kept is then sampled
(sampler.py), with chains that start from it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

from lapsus.fitting.conditional import Conditional, Expansion
from lapsus.fitting.model import MixtureModel

__all__ = ["Laplace", "approximate", "curvature"]

STARTS = (-1.5, -4.0)  # levels of f from which the ascent is tried


@dataclass
class Laplace:
    """N(centre, precision⁻¹) in the coordinates x of `conditional`: centre [P], precision [P, P]."""

    conditional: Conditional
    centre: np.ndarray
    value: float  # of the log joint at the centre
    evaluations: int
    restarts: list[float]  # the value that each start had reached when the best was chosen

    @cached_property
    def precision(self) -> np.ndarray:
        """Minus the Hessian at the centre [P, P]."""
        return self.conditional.curvature(self.centre)

    @cached_property
    def factor(self) -> Tensor:
        """A square root of the covariance [P, P]."""
        return _covariance_root(self.precision)

    def forget(self) -> None:
        """Let go of what is large; it is made again when it is asked for."""
        for name in ("precision", "factor"):
            self.__dict__.pop(name, None)
        self.conditional.model.forget()

    @property
    def mode(self) -> np.ndarray:
        """theta [P] at the centre."""
        with torch.no_grad():
            return self.conditional.theta(torch.tensor(self.centre)[:, None])[0][:, 0].numpy()

    def draw(self, count: int, rng: np.random.Generator) -> Tensor:
        """theta [P, count]."""
        z = torch.tensor(rng.standard_normal((len(self.centre), count)))
        with torch.no_grad():
            return self.conditional.theta(torch.tensor(self.centre)[:, None] + self.factor @ z)[0]


def approximate(model: MixtureModel, near: Laplace | None = None) -> Laplace:
    """The approximation of a model's posterior; near: that of a similar model on the same trials, to start from."""
    restarts: list[float] = []
    if near is not None:
        start = model.adopt(near.conditional.model, near.mode)
    else:
        starts = [model.initial(level) for level in (STARTS if "level" in model.rows else STARTS[:1])]
        rough = partial(model.log_joint, thinned=True)
        tries = [_ascend(rough, point, iterations=15) for point in starts]
        restarts = [-float(found.fun) for found in tries]
        start = min(tries, key=lambda found: found.fun).x
        if model.likelihood().thinned() is not model.likelihood():
            start = _ascend(rough, start).x
    # Joint modes of offsets and of their s.d. lie at small s.d.; in conditional coordinates the offsets are integrated
    # over, to the same approximation, so the mode there is one of the s.d. alone. So the way to the joint mode is not
    # walked to its end, and the expansion is renewed until it hardly moves.
    nested = bool(model.tiers) or model.prior is not None
    found = _ascend(model.log_joint, start, iterations=10 if nested else 300)
    count = found.nfev
    for turn in range(4 if nested else 1):
        conditional = Conditional(model, Expansion(model, found.x))
        centre = conditional.start(found.x)
        precision = conditional.curvature(centre)
        metric = _covariance_root(precision)
        better = _ascend(lambda x, c=conditional: c.log_joint(x, torch.float64), centre, metric, 0.1, 20)
        count += better.nfev
        with torch.no_grad():
            found.x = conditional.theta(torch.tensor(better.x)[:, None])[0][:, 0].numpy()
        if turn and better.nit < 8:
            break
    return Laplace(conditional, better.x, -float(better.fun), count, restarts)


def _covariance_root(precision: np.ndarray) -> Tensor:
    """A square root of the inverse of a precision [P, P]; directions that the data leave to the prior keep prior
    width: eigenvalues below 0.5 count as 0.5.

    By torch, which keeps to one thread here: numpy's eigenvectors of 500 coordinates take 0.06 s on one thread, and
    seconds where other work disturbs its threads. Where no eigenvalue is that small, Cholesky's factor does."""
    whole = torch.tensor(precision)
    identity = torch.eye(len(precision), dtype=torch.float64)
    if not torch.linalg.cholesky_ex(whole - 0.5 * identity)[1]:
        return torch.linalg.solve_triangular(torch.linalg.cholesky(whole), identity, upper=False).T
    values, vectors = torch.linalg.eigh(whole)
    return vectors / values.clamp_min(0.5).sqrt()


def _ascend(
    log_joint: Callable, start: np.ndarray, factor: Tensor | None = None, tolerance: float = 0.2, iterations: int = 300
) -> OptimizeResult:
    """L-BFGS from start; factor [P, P] is the metric."""

    origin = torch.tensor(start)[:, None]

    def point(y: np.ndarray) -> Tensor:
        move = torch.tensor(y)[:, None]
        return origin + (move if factor is None else factor @ move)

    def objective(y: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = log_joint(point(y))
        if not torch.isfinite(value):
            return 1e300, np.zeros_like(y)
        return -value.item(), -(gradient if factor is None else factor.T @ gradient)[:, 0].numpy()

    options = {"maxiter": iterations, "ftol": 1e-10, "gtol": tolerance, "maxcor": 20}
    found = minimize(objective, np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options)
    found.x = point(found.x)[:, 0].numpy()
    return found


def curvature(log_joint: Callable, point: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """Minus the Hessian of log_joint at a point [P] → [P, P], from central differences of its exact gradient."""
    identity = torch.eye(len(point), dtype=torch.float64) * step
    pieces, centre = [], torch.tensor(point)[:, None]
    for columns in identity.split(32, dim=1):
        _, gradient = log_joint(torch.cat([centre + columns, centre - columns], 1))
        half = columns.shape[1]
        pieces.append((gradient[:, :half] - gradient[:, half:]) / (2 * step))
    hessian = -torch.cat(pieces, 1).numpy()
    return (hessian + hessian.T) / 2
