"""Coordinates in which the posterior is nearly a standard normal whatever the kernel's scale and length.

Data fix some combinations of the coefficients of f, and the prior the others; which is which moves with the kernel's
parameters, so no fixed linear map whitens them all. But f is linear in widths(kernel) · coordinates: with the
log-likelihood's quadratic expansion at one point, the conditional Gaussian of the latent coordinates given any kernel
is known, and z = its whitening is what the bound and the chains move in.
"""

import numpy as np
import torch

__all__ = ["Conditional"]


class Conditional:
    """latent = mean(rest) + C(rest)⁻ᵀ z, with C Cᵀ = I + R P R, R = widths(rest) / widths(expansion point)."""

    def __init__(self, model, theta, precision, gradient):
        """Expansion at theta [P]: P = precision (minus the log-likelihood's Hessian) [latent, latent], its gradient [latent]."""
        self.model = model
        values, vectors = np.linalg.eigh(precision)
        precision = (vectors * np.maximum(values, 0.0)) @ vectors.T
        with torch.no_grad():
            self.widths = model.widths(torch.tensor(theta)[:, None])
        self.precision = torch.tensor(precision)
        self.pull = torch.tensor(precision @ theta[: model.latent] + gradient)[:, None]

    def __call__(self, rest):
        """Conditional mean [latent, S] and factor C [S, latent, latent] for the other coordinates [P − latent, S]."""
        model = self.model
        padding = torch.zeros(model.latent, rest.shape[1], dtype=torch.float64)
        ratio = model.widths(torch.cat([padding, rest])) / self.widths
        inner = ratio.T[:, :, None] * self.precision * ratio.T[:, None, :]
        # A chain that runs off to infinity gets NaN here and is sent back; it must not stop the others.
        C, _ = torch.linalg.cholesky_ex(inner + torch.eye(model.latent, dtype=torch.float64))
        mean = torch.cholesky_solve((ratio * self.pull).T[:, :, None], C)[:, :, 0].T
        return mean, C

    def theta(self, x):
        """Model coordinates [P, S] of x = (z, rest) [P, S], and the log volume of the map [S]."""
        latent = self.model.latent
        if latent == 0:
            return x, torch.zeros(x.shape[1], dtype=torch.float64)
        mean, C = self(x[latent:])
        move = torch.linalg.solve_triangular(C.transpose(1, 2), x[:latent].T[:, :, None], upper=True)[:, :, 0].T
        return torch.cat([mean + move, x[latent:]]), -torch.diagonal(C, dim1=1, dim2=2).log().sum(1)

    def log_joint(self, x):
        """log p(responses, x) [S] and its gradient [P, S]."""
        x = x.detach().requires_grad_(True)
        with torch.enable_grad():
            theta, volume = self.theta(x)
        value, gradient = self.model.log_joint(theta)
        outputs, inputs = [gradient], [theta]
        if volume.requires_grad:
            outputs, inputs = [gradient, torch.ones_like(volume)], [theta, volume]
        (gradient,) = torch.autograd.grad(inputs, x, outputs)
        return (value + volume).detach(), gradient

    @property
    def dimension(self):
        return self.model.dimension
