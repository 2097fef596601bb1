"""Fitting the causal-inference observer to trials: maximum likelihood, with intervals from the likelihood's profile."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy import optimize, stats
from torch import Tensor

from lapsus.behaviour.causal_inference import CausalInference, posterior
from lapsus.errors import LapsusError

__all__ = ["PARAMETERS", "CausalInferenceFit", "fit_causal_inference"]

PARAMETERS = ("sigma_v", "sigma_a", "sigma_p", "p_common")
_COLUMNS = ("s_v", "s_a", "response")
_FEWEST = 20


@dataclass(frozen=True)
class CausalInferenceFit:
    """Estimates of sigma_v, sigma_a, sigma_p (in the table's unit) and p_common, with their intervals and log
    likelihood."""

    estimates: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    level: float
    log_likelihood: float
    trials: int

    def behaviour(self, unit: float | None = None, bins: int = 200) -> CausalInference:
        """The fitted observer, ready to train a network on; unit: degrees (the table's unit) in 1 of the network's,
        sigma_p if not given."""
        return CausalInference(**self.estimates, unit=self.estimates["sigma_p"] if unit is None else unit, bins=bins)

    def __str__(self) -> str:
        lines = [
            f"Causal inference, {self.trials:,} trials, log likelihood {self.log_likelihood:.1f}; {100 * self.level:g}"
            " % intervals."
        ]
        for name in PARAMETERS:
            low, high = self.intervals[name]
            lines.append(f"{name:9} {self.estimates[name]:.3f} [{low:.3f}, {high:.3f}]")
        return "\n".join(lines)


def fit_causal_inference(trials: Mapping, level: float = 0.95) -> CausalInferenceFit:
    """Fit a table of trials (a data frame, or any mapping of columns) with s_v, s_a and response, all in one unit such
    as degrees.

    An interval holds all values of a parameter whose likelihood, maximised over the others, is close enough to the
    best. It is open (0 or infinity; 0 or 1 for p_common) where the trials do not bound the parameter.

    >>> cues = 40 * torch.rand(2, 100, generator=torch.Generator().manual_seed(0)) - 20
    >>> observer = lapsus.CausalInference(unit=1.0)
    >>> response = observer.sample({"s_v": cues[0], "s_a": cues[1]}, 1, torch.Generator().manual_seed(1))[0, :, 0]
    >>> found = lapsus.fit_causal_inference({"s_v": cues[0], "s_a": cues[1], "response": response})
    >>> list(found.estimates)
    ['sigma_v', 'sigma_a', 'sigma_p', 'p_common']
    """
    data, scale = _columns(trials)
    if not 0 < level < 1:
        raise LapsusError(f"level is the coverage of the intervals, between 0 and 1, not {level}.")
    best = min((_minimise(data, start) for start in _starts()), key=lambda found: found.fun)
    if not math.isfinite(best.fun):
        raise LapsusError(
            "The likelihood of these trials is not finite for any parameters; are s_v, s_a and response in the same"
            " unit?"
        )
    drop = 0.5 * float(stats.chi2.ppf(level, 1))
    covariance = _covariance(data, best.x)
    intervals = {}
    for index, name in enumerate(PARAMETERS):
        ends = [_end(data, best, index, sign, covariance, drop) for sign in (-1, 1)]
        low, high = (_natural(index, end, scale) for end in ends)
        intervals[name] = low, high
    estimates = {name: _natural(index, best.x[index], scale) for index, name in enumerate(PARAMETERS)}
    count = len(data[0])
    return CausalInferenceFit(estimates, intervals, level, -best.fun - count * math.log(scale), count)


def _columns(trials: Mapping) -> tuple[tuple[Tensor, ...], float]:
    """s_v, s_a and response in units of their overall scale, and that scale."""
    missing = [name for name in _COLUMNS if name not in trials]
    if missing:
        raise LapsusError(
            f"The table of trials has no column {missing[0]}; it needs s_v, s_a and response, all in the same unit."
        )
    columns = []
    for name in _COLUMNS:
        try:
            values = np.asarray(trials[name], float)
        except (TypeError, ValueError) as error:
            raise LapsusError(f"Column {name} has entries that are not numbers.") from error
        if values.ndim != 1 or not np.isfinite(values).all():
            bad = np.flatnonzero(~np.isfinite(values)) if values.ndim == 1 else np.empty(0, dtype=int)
            raise LapsusError(
                f"Column {name} must be finite numbers, one a trial"
                + (f"; row {bad[0] + 1} is not." if len(bad) else ".")
            )
        columns.append(values)
    lengths = {len(values) for values in columns}
    if len(lengths) != 1 or min(lengths) < _FEWEST:
        raise LapsusError(f"The columns s_v, s_a and response need the same number of trials, {_FEWEST} at least.")
    scale = float(np.std(np.concatenate(columns)))
    if not scale > 0:
        raise LapsusError("All cues and responses are the same number; there is nothing to fit.")
    return tuple(torch.from_numpy(values / scale) for values in columns), scale


def _starts() -> list[np.ndarray]:
    """Precise or coarse vision, rare or common causes: a mixture's likelihood may have several peaks."""
    return [np.array([math.log(v), math.log(0.7), 0.0, logit]) for v in (0.1, 0.4) for logit in (-1.5, 0.5)]


def _negative_log_likelihood(theta: Tensor, data: tuple[Tensor, ...]) -> Tensor:
    s_v, s_a, response = data
    sigma_v, sigma_a, sigma_p = torch.exp(theta[:3])
    weights, means, scales = posterior(s_v, s_a, sigma_v, sigma_a, sigma_p, torch.sigmoid(theta[3]))
    z = (response[:, None] - means) / scales
    return -torch.logsumexp(torch.log(weights) - 0.5 * z**2 - torch.log(scales) - 0.5 * math.log(2 * math.pi), 1).sum()


def _minimise(data: tuple[Tensor, ...], start: np.ndarray, fixed: int | None = None) -> optimize.OptimizeResult:
    """Best parameters from `start`, one of them held where `fixed` says so."""
    free = [index for index in range(len(start)) if index != fixed]

    def objective(values: np.ndarray) -> tuple[float, np.ndarray]:
        theta = torch.from_numpy(start.copy())
        theta[free] = torch.from_numpy(np.asarray(values, float))
        theta.requires_grad_()
        loss = _negative_log_likelihood(theta, data) / len(data[0])
        (gradient,) = torch.autograd.grad(loss, theta)
        return loss.item(), gradient.numpy()[free]

    bounds, tight = [(-8.0, 8.0)] * len(free), {"ftol": 1e-11, "gtol": 1e-6}
    found = optimize.minimize(
        objective, np.clip(start[free], -8.0, 8.0), jac=True, method="L-BFGS-B", bounds=bounds, options=tight
    )
    found.fun *= len(data[0])
    full = start.copy()
    full[free] = found.x
    found.x = full
    return found


def _covariance(data: tuple[Tensor, ...], theta: np.ndarray) -> np.ndarray:
    """Inverse curvature at the best parameters: the first guess of how far the interval's ends are and in which
    direction."""
    hessian = torch.autograd.functional.hessian(
        lambda t: _negative_log_likelihood(t, data), torch.from_numpy(theta)
    ).numpy()
    values, vectors = np.linalg.eigh(hessian)
    return (vectors / np.maximum(values, 0.25)) @ vectors.T


def _end(
    data: tuple[Tensor, ...], best: optimize.OptimizeResult, index: int, sign: int, covariance: np.ndarray, drop: float
) -> float:
    """Where the profile of the likelihood has fallen by `drop`, on one side; infinite if it never does."""
    direction = sign * covariance[index] / covariance[index, index]

    def fallen(distance: float) -> float:
        return _minimise(data, best.x + distance * direction, fixed=index).fun - best.fun - drop

    near, far = 0.0, 2 * math.sqrt(covariance[index, index])
    while fallen(far) < 0:
        near, far = far, 2 * far
        if abs(best.x[index] + sign * far) > 8.0:
            return sign * math.inf
    return best.x[index] + sign * optimize.brentq(fallen, near, far, xtol=3e-3)


def _natural(index: int, value: float, scale: float) -> float:
    if index == 3:
        return 1 / (1 + math.exp(-value)) if value > -700 else 0.0
    return scale * math.exp(value) if value < 700 else math.inf
