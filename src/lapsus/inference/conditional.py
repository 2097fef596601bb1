"""Coordinates in which the posterior is nearly a standard normal whatever the kernel's scale and length.

Data fix some combinations of the coefficients of f, and the prior the others; which is which moves with the kernel's
parameters, so no fixed linear map whitens them all. But f is linear in widths(kernel) · coordinates: with the
log-likelihood's quadratic expansion at one point, the conditional Gaussian of the latent coordinates given any kernel
is known, and z = its whitening is what the bound and the chains move in. The parameters of a subject are, in the same
way, whitened given the mean and the s.d. of their population.
"""

import numpy as np
import torch

__all__ = ["Conditional"]


class Conditional:
    """latent = mean(rest) + C(rest)⁻ᵀ z, with C Cᵀ = I + R P R, R = widths(rest) / widths(expansion point)."""

    def __init__(self, model, theta, precision, gradient):
        """Expansion of the log-likelihood at theta [P]: minus its Hessian [P, P] and its gradient [P]."""
        self.model = model
        if model.hierarchical:
            groups = model.slices["groups"]
            with torch.no_grad():
                middle, sd = (part[..., 0] for part in model.population(torch.tensor(theta)[:, None]))
            sharpness = torch.tensor(np.maximum(precision.diagonal()[groups], 0.0)).reshape(middle.shape) / sd**2
            slope = torch.tensor(gradient[groups]).reshape(middle.shape) / sd
            value = middle + sd * torch.tensor(theta[groups]).reshape(middle.shape)
            self.sharpness, self.weighted = sharpness[..., None], (sharpness * value + slope)[..., None]
        precision, gradient = precision[: model.latent, : model.latent], gradient[: model.latent]
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

    def _groups(self, x):
        """Conditional mean of the groups' coordinates [E + 1, groups, S] and the square root of their precision."""
        middle, sd = self.model.population(x)
        precision = 1 + sd**2 * self.sharpness
        return sd * (self.weighted - self.sharpness * middle) / precision, precision.sqrt()

    def start(self, theta):
        """x [P] of the conditional mean of f at the other coordinates of theta [P]."""
        x = np.concatenate([np.zeros(self.model.latent), theta[self.model.latent :]])
        if self.model.hierarchical:
            groups = self.model.slices["groups"]
            mean, root = (part[..., 0].numpy() for part in self._groups(torch.tensor(theta)[:, None]))
            x[groups] = ((theta[groups].reshape(mean.shape) - mean) * root).reshape(-1)
        return x

    def theta(self, x):
        """Model coordinates [P, S] of x = (z, rest) [P, S], and the log volume of the map [S]."""
        latent, volume = self.model.latent, torch.zeros(x.shape[1], dtype=torch.float64)
        if self.model.hierarchical:
            mean, root = self._groups(x)
            groups = self.model.slices["groups"]
            z = mean + x[groups].reshape(mean.shape) / root
            volume = -root.log().sum((0, 1))
            x = torch.cat([x[: groups.start], z.reshape(-1, x.shape[1]), x[groups.stop :]])
        if latent == 0:
            return x, volume
        mean, C = self(x[latent:])
        move = torch.linalg.solve_triangular(C.transpose(1, 2), x[:latent].T[:, :, None], upper=True)[:, :, 0].T
        return torch.cat([mean + move, x[latent:]]), volume - torch.diagonal(C, dim1=1, dim2=2).log().sum(1)

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
