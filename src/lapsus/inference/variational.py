"""The evidence lower bound of the swap model, maximised without stochastic steps.

    ELBO = E_q(f)[log p(responses | f, emission)] − KL(q(f) ‖ p(f)) + log p(emission, kernel)

q is a Gaussian with full covariance over the coefficients and the mean of f; emission and kernel parameters are points.
With at most one distractor a trial the expectation is a one-dimensional Gauss–Hermite sum per trial, exact to rounding;
with more, it is the mean over fixed, antithetic Sobol draws of q, so that the bound is a smooth function either way
and L-BFGS maximises it.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize

__all__ = ["Variational", "curvature", "maximise", "maximum_a_posteriori"]

NODES = 20
DRAWS = 32


@dataclass
class Variational:
    """q(f) and the point estimates: theta [P] (q's mean in the first `latent` coordinates), factor L with q = N(·, L
    Lᵀ)."""

    theta: np.ndarray
    factor: np.ndarray
    elbo: float
    iterations: int
    converged: bool
    message: str

    def sample(self, count, rng):
        """Draws [P, count]: q(f) with the point estimates repeated."""
        draws = np.repeat(self.theta[:, None], count, 1)
        latent = len(self.factor)
        draws[:latent] += self.factor @ rng.standard_normal((latent, count))
        return draws


def maximum_a_posteriori(model, starts, pilot=None, tolerance=0.1):
    """The mode of the log joint: short L-BFGS ascents of the pilot model (the same on fewer trials), then the best on
    all trials.

    Returns theta [P], the log likelihood's gradient there, and the pilot value that each start reached.
    """
    pilot = pilot or model
    tries = [
        _ascend(pilot, start, np.eye(model.dimension), tolerance, 12 if len(starts) > 1 else 300) for start in starts
    ]
    best = _ascend(pilot, min(tries, key=lambda found: found.fun).x, np.eye(model.dimension), tolerance)
    if pilot is not model:
        # The pilot's curvature, scaled to all trials, is the metric: a few steps remain.
        prior = np.eye(model.dimension)
        precision = (curvature(pilot.log_joint, best.x) - prior) * len(model.trials) / len(pilot.trials) + prior
        values, vectors = np.linalg.eigh(precision)
        best = _ascend(model, best.x, vectors / np.sqrt(np.maximum(values, 0.5)), tolerance)
    _, gradient = model.log_joint(torch.tensor(best.x)[:, None])
    return best.x, gradient[:, 0].numpy() + best.x, [-found.fun for found in tries]


def _ascend(model, start, factor, tolerance, iterations=300):
    """L-BFGS from `start` in the coordinates start + factor x."""

    def objective(x):
        value, gradient = model.log_joint(torch.tensor(start + factor @ x)[:, None])
        return -value.item(), -(factor.T @ gradient[:, 0].numpy())

    options = {"maxiter": iterations, "ftol": 1e-12, "gtol": tolerance, "maxcor": 20}
    found = minimize(objective, np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options)
    found.x = start + factor @ found.x
    return found


def curvature(log_joint, point, step=1e-4):
    """Minus the Hessian of log_joint at a point [P] → [P, P], from central differences of its exact gradient."""
    identity = torch.eye(len(point), dtype=torch.float64) * step
    pieces, centre = [], torch.tensor(point)[:, None]
    for columns in identity.split(32, dim=1):
        _, gradient = log_joint(torch.cat([centre + columns, centre - columns], 1))
        half = columns.shape[1]
        pieces.append((gradient[:, :half] - gradient[:, half:]) / (2 * step))
    hessian = -torch.cat(pieces, 1).numpy()
    return (hessian + hessian.T) / 2


def maximise(model, conditional, theta, precision, max_iterations=200) -> Variational:
    """Maximise the ELBO from the mode theta [P], where the log joint has the curvature `precision` [P, P]."""
    latent = model.latent
    if latent == 0:
        value, _ = model.log_joint(torch.tensor(theta)[:, None])
        return Variational(theta, np.zeros((0, 0)), value.item(), 0, True, "no swap function to infer")
    lower = np.tril_indices(latent)
    diagonal = torch.tensor(lower[0] == lower[1])
    at = tuple(map(torch.tensor, lower))
    count = model.dimension - latent
    # L-BFGS starts from a unit metric: z has unit width, the others are measured by their posterior covariance.
    values, vectors = np.linalg.eigh(precision)
    covariance = ((vectors / np.maximum(values, 0.5)) @ vectors.T)[latent:, latent:]
    spread = torch.tensor(np.linalg.cholesky(covariance)) if count else torch.zeros(0, 0, dtype=torch.float64)
    rest_start = torch.tensor(theta[latent:])
    bound = _QuadratureBound(model) if model.trials.set_size.max() <= 2 else _SobolBound(model)

    def q(x):
        rest = rest_start + spread @ x[:count]
        centre, C = conditional(rest[:, None])
        entries = 0.3 * x[count + latent :]
        L = torch.zeros(latent, latent, dtype=torch.float64).index_put(
            at, torch.where(diagonal, entries.exp(), entries)
        )
        factor = torch.linalg.solve_triangular(C[0].T, L, upper=True)
        move = torch.linalg.solve_triangular(C[0].T, x[count : count + latent, None], upper=True)
        volume = L.diagonal().log().sum() - C[0].diagonal().log().sum()
        return torch.cat([(centre + move)[:, 0], rest]), factor, volume

    def objective(vector):
        x = torch.tensor(vector, requires_grad=True)
        point, factor, volume = q(x)
        kl = 0.5 * ((factor**2).sum() + (point[:latent] ** 2).sum() - latent) - volume
        value = bound(point, factor) - kl - 0.5 * (point[latent:] ** 2).sum()
        (gradient,) = torch.autograd.grad(value, x)
        return -value.item(), -gradient.numpy()

    options = {"maxiter": max_iterations, "ftol": 1e-9, "gtol": 1e-2, "maxcor": 30}
    found = minimize(objective, np.zeros(count + latent + len(lower[0])), jac=True, method="L-BFGS-B", options=options)
    with torch.no_grad():
        point, factor, _ = q(torch.tensor(found.x))
    return Variational(point.numpy(), factor.numpy(), -found.fun, found.nit, bool(found.success), str(found.message))


class _Expectation(torch.autograd.Function):
    """A scalar whose gradient was computed along with it."""

    @staticmethod
    def forward(ctx, value, gradients, *inputs):
        ctx.gradients = gradients
        return value

    @staticmethod
    def backward(ctx, upstream):
        return (None, None, *(upstream * g for g in ctx.gradients))


class _SobolBound:
    """E_q[log likelihood] as a mean over fixed antithetic Sobol draws."""

    def __init__(self, model):
        from scipy.stats import norm, qmc

        self.model = model
        draws = max(DRAWS, 2 ** math.ceil(math.log2(model.latent)))
        uniform = qmc.Sobol(model.latent, scramble=True, rng=np.random.default_rng(0)).random(draws)
        half = norm.ppf(np.clip(uniform, 1e-9, 1 - 1e-9))
        self.normal = torch.tensor(np.concatenate([half, -half])).T.contiguous()

    def __call__(self, point, factor):
        model, count = self.model, self.normal.shape[1]
        latent = point[: model.latent, None] + factor @ self.normal
        theta = torch.cat([latent, point[model.latent :, None].expand(-1, count)])
        value, gradient = model.log_joint(theta, prior=0.0)
        return _Expectation.apply(value.mean(), [gradient / count], theta)


class _QuadratureBound:
    """E_q[log likelihood] where no trial has more than one distractor: Gauss–Hermite in that distractor's f."""

    def __init__(self, model):
        self.model = model
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        self.nodes, self.weights = torch.tensor(nodes), torch.tensor(weights / weights.sum())

    def __call__(self, point, factor):
        model, likelihood = self.model, self.model.likelihood
        parts = model.unpack(point[:, None])
        centre = model.f_at_sites(parts)[:, 0]
        features = model.features @ (model.widths(point[:, None]) * factor)
        emission, guess = parts["emission"], parts["guess"]
        with torch.no_grad():
            columns = len(self.nodes)
            value = 0.0
            on_centre, on_features = torch.zeros_like(centre), torch.zeros_like(features)
            on_emission, on_guess = torch.zeros_like(emission), torch.zeros_like(guess) if guess is not None else None
            for block in likelihood.blocks:
                e = emission[:, block.group].expand(-1, columns)
                g = guess[block.group].expand(columns) if guess is not None else None
                items = None
                if block.others:
                    if likelihood.kind == "constant":
                        middle = centre.expand(len(block.rows))
                        rows = features.expand(len(block.rows), -1)
                    else:
                        middle = (block.interpolate @ centre[:, None])[:, 0]
                        rows = block.interpolate @ features
                    sd = (rows**2).sum(1).sqrt()
                    items = (middle[:, None] + sd[:, None] * self.nodes)[None]
                log_p, df, de, dg = likelihood.of_block(block, items, e, g, True)
                value += (log_p.sum(0) * self.weights).sum()
                on_emission[:, block.group] += (de * self.weights).sum(-1, keepdim=True)
                if dg is not None:
                    on_guess[block.group] += (dg * self.weights).sum()
                if df is not None:
                    df = df[0] * self.weights
                    on_middle, on_sd = df.sum(1), (df * self.nodes).sum(1)
                    on_rows = (on_sd / sd)[:, None] * rows
                    if likelihood.kind == "constant":
                        on_centre += on_middle.sum()
                        on_features += on_rows.sum(0)
                    else:
                        on_centre += (block.scatter @ on_middle[:, None])[:, 0]
                        on_features += block.scatter @ on_rows
        inputs, gradients = [centre, features, emission], [on_centre, on_features, on_emission]
        if guess is not None:
            inputs, gradients = [*inputs, guess], [*gradients, on_guess]
        return _Expectation.apply(value, gradients, *inputs)
