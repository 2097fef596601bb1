"""Coordinates in which the posterior is nearly a standard normal whatever the scales are.

Data fix some combinations of coordinates, and the prior the others; which is which moves with the learned scales (of
the swap function's shape, of subjects' differences), so no fixed linear map whitens them all. But given the scales
everything is Gaussian up to the likelihood, and the log-likelihood's quadratic expansion at one point says what the
data would make of each: z − its conditional mean, over its conditional s.d., is what the chains move in.

The probability of a guess has a log odds that the data bound from above only: its posterior has a sharp side and a long
one. Close to the expansion's point the square root of the odds is what the chains move in, which is nearly normal.

The expansion says too much of guesses: below its point the likelihood hardly depends on their log odds, where the
expansion falls ever more steeply. So it is believed within GUESS_REACH of its own maximum. Without that bound, offsets
of groups were drawn far up wherever few guesses were proposed, and chains that got there stayed.

The expansion treats the parameters of a group (eta) as independent of one another and of the shape; what that leaves
out the chains' metric takes up.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lapsus.fitting.model import MixtureModel, Tier

__all__ = ["Conditional", "Expansion", "expand"]

SHARPNESS = 4.0  # how fast the root of the odds of a guess ends at 0
GUESS_REACH = 1.0  # log odds


class Expansion:
    """Quadratic expansion of the log likelihood in the shape's coefficients and in eta, at one point.

    coefficients [C, K] and eta [F, G] of the point, gradients there, and minus the Hessian: groups [G, F, F], shape
    [C, K, K], cross [C, K, F, G] (a set size's coefficients meet only its own groups).
    """

    shape: Any  # this and the next two are tensors, or None where the swap function has no shape
    cross: Any
    shape_gradient: Any

    def __init__(self, model: MixtureModel, theta: np.ndarray):
        with torch.no_grad():
            p = model.unpack(torch.tensor(theta)[:, None])
        self.coefficients = None if p.coefficients is None else p.coefficients[:, :, 0]
        self.eta = model.as_eta(p)[:, :, 0]
        self.guess = torch.tensor(theta[model.slices["guess"]])[:, None]
        rows, step = len(self.eta), 1e-3
        shapes = 0 if self.coefficients is None else self.coefficients.shape[1]
        columns = rows + shapes
        eta = self.eta[:, :, None].repeat(1, 1, 2 * columns)
        for i in range(rows):
            eta[i, :, i] += step
            eta[i, :, columns + i] -= step
        coefficients = None
        if self.coefficients is not None:
            coefficients = self.coefficients[:, :, None].repeat(1, 1, 2 * columns)
            for k in range(shapes):
                coefficients[:, k, rows + k] += step
                coefficients[:, k, columns + rows + k] -= step
        on_eta, on_shape = self._gradients(model, coefficients, eta)
        change = -(on_eta[..., :columns] - on_eta[..., columns:]) / (2 * step)
        groups = change[..., :rows].permute(1, 0, 2)
        self.groups = 0.5 * (groups + groups.transpose(1, 2))
        self.eta_gradient = on_eta.mean(-1)
        self.shape = self.cross = self.shape_gradient = None
        if on_shape is not None:
            bend = -(on_shape[..., :columns] - on_shape[..., columns:])[..., rows:] / (2 * step)
            self.shape = 0.5 * (bend + bend.transpose(1, 2))
            self.cross = change[..., rows:].permute(2, 0, 1)  # [K, F, G]
            self.shape_gradient = on_shape.mean(-1)

    @staticmethod
    def _gradients(model: MixtureModel, coefficients: Tensor | None, eta: Tensor) -> tuple[Tensor, Tensor | None]:
        """Gradients of the log likelihood in eta and in the coefficients, in parts of 32 columns."""
        on_eta: list[Tensor] = []
        on_shape: list[Any] = []
        for part in torch.arange(eta.shape[-1]).split(32):
            own = None if coefficients is None else coefficients[..., part]
            _, on = model.likelihood().total(model.as_parameters(own, eta[..., part]))
            on_eta.append(model.as_eta(on))
            on_shape.append(on.coefficients)
        return torch.cat(on_eta, -1), None if coefficients is None else torch.cat(on_shape, -1)

    def curvature(self, jacobian_eta: Tensor, jacobian_shape: Tensor | None, shape_of_group: Tensor) -> Tensor:
        """Jᵀ H J [P, P], H minus the Hessian, from d eta / dx [F, G, P] and d coefficients / dx [C, K, P]."""
        P = jacobian_eta.shape[-1]
        moved = torch.einsum("gij,jgp->igp", self.groups, jacobian_eta)
        if jacobian_shape is not None:
            own = jacobian_shape[shape_of_group]  # [G, K, P]
            moved = moved + torch.einsum("kfg,gkp->fgp", self.cross, own)
        total = jacobian_eta.reshape(-1, P).T @ moved.reshape(-1, P)
        if jacobian_shape is not None:
            bent = torch.einsum("ckl,clp->ckp", self.shape, jacobian_shape)
            for c in range(len(jacobian_shape)):
                mine = (shape_of_group == c).nonzero()[:, 0]
                if len(mine):
                    bent[c] += torch.einsum("kfg,fgp->kp", self.cross[:, :, mine], jacobian_eta[:, mine])
            total = total + jacobian_shape.reshape(-1, P).T @ bent.reshape(-1, P)
        return total


def expand(model: MixtureModel, theta: np.ndarray) -> "Conditional":
    """The coordinates around theta [P], from the expansion there."""
    return Conditional(model, Expansion(model, theta))


class Conditional:
    """x [P, S] ↔ theta [P, S]: each tier's and the shape's coordinates relative to their conditional mean and s.d."""

    def __init__(self, model: MixtureModel, expansion: Expansion):
        self.model, self.expansion = model, expansion
        self.dimension, self.units = model.dimension, model.units()
        # Units of hierarchical models have no tails of their own, hence no two modes: renewing them gains nothing.
        single = self.units is not None and not any(tier.of_subjects for tier in model.tiers)
        self.renewed = self.units[0] if single and self.units else None
        diagonal = torch.diagonal(expansion.groups, dim1=1, dim2=2).T.clamp_min(1e-4)  # [F, G]
        self.sharpness = diagonal[:, :, None]
        # Newton's step to where the data would put each parameter; a flat direction must not throw it far away.
        step = (expansion.eta_gradient / diagonal).clamp(-3, 3)
        self.aim = (expansion.eta + step)[:, :, None]
        self.of_guesses = torch.tensor([row == "guess" for row in model.rows])[:, None, None]
        several = [n for n in model.sizes if n > 1]
        self.shape_of_group = torch.tensor(
            [several.index(n) if n > 1 and model.sets == "shapes" else 0 for n, _, _ in model.labels]
        )
        if expansion.shape is not None:
            values, vectors = torch.linalg.eigh(expansion.shape.sum(0) if model.sets != "shapes" else expansion.shape)
            precision = (vectors * values.clamp_min(0.0)[..., None, :]) @ vectors.transpose(-1, -2)
            self.precision = precision if model.sets == "shapes" else precision[None]  # [C, K, K]
            centre, slope = expansion.coefficients, expansion.shape_gradient
            self.pull = torch.einsum("ckl,cl->ck", self.precision, centre) + slope

    def _tier(self, tier: Tier, theta: Tensor, lower: Tensor, eta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Conditional mean and root of the precision of a tier's z [R, units, S], given all above (in eta)."""
        sd = tier.spread(theta)[:, None]
        weight = 1 / (1 / self.sharpness[tier.rows] + lower[tier.rows])  # what a group says, with what is below it
        every = tier.sum(weight.expand(-1, -1, theta.shape[1]))
        gap = self.aim[tier.rows] - eta[tier.rows]
        bounded = GUESS_REACH * torch.tanh(gap / GUESS_REACH)
        told = tier.sum(weight * torch.where(self.of_guesses[tier.rows], bounded, gap))
        precision = 1 + sd**2 * every
        return sd * told / precision, precision.sqrt(), sd

    def _lower(self, theta: Tensor) -> list[Tensor]:
        """For every tier the variance that the tiers below it add to each group [F, 1, S]."""
        total = torch.zeros(len(self.model.rows), 1, theta.shape[1], dtype=theta.dtype)
        found = []
        for tier in reversed(self.model.tiers):
            found.append(total)
            more = torch.zeros_like(total)
            more[tier.rows] = tier.spread(theta)[:, None] ** 2
            total = total + more
        return found[::-1]

    def _shape(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor]:
        """Conditional mean [C', K, S] and factor [S, C', K, K] of the shape's coordinates: the common one first."""
        model = self.model
        width = model.shape_widths(theta).T  # [S, K]
        eye = torch.eye(width.shape[1], dtype=torch.float64)
        inner = width[:, None, :, None] * self.precision * width[:, None, None, :]  # [S, C, K, K]
        pull = width[:, None, :] * self.pull  # [S, C, K]
        if model.sets == "shapes":
            # Integrating the set sizes' own deviations d ~ N(0, 1): the common part sees each through (I + r² P)⁻¹.
            r = model.shape_sd(theta)[0][:, None, None, None]
            own, _ = torch.linalg.cholesky_ex(r**2 * inner + eye)
            # P − r² P (I + r² P)⁻¹ P = (I + r² P)⁻¹ P
            common = torch.cholesky_solve(inner, own)
            common = 0.5 * (common + common.transpose(-1, -2))
            told = torch.cholesky_solve(pull[..., None], own)[..., 0].sum(1)
            top, _ = torch.linalg.cholesky_ex(common.sum(1) + eye)
            return told, top, own, inner, pull
        top, _ = torch.linalg.cholesky_ex(inner[:, 0] + eye)
        return pull[:, 0], top, None, inner, pull

    def _root_odds(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x with the guesses' coordinates z = z0 + log(1 + x − z0), z0 the expansion's, and their log slopes: the log
        odds are 2 z plus a constant, so x is linear in the root of the odds; far below, where that ends, z goes on as
        SHARPNESS times x."""
        place = self.model.slices["guess"]
        if place.start == place.stop:
            return x, x[place]
        root = 1 + x[place] - self.expansion.guess
        positive = torch.nn.functional.softplus(root, beta=SHARPNESS)
        z = self.expansion.guess + positive.log()
        slope = torch.sigmoid(SHARPNESS * root) / positive
        return torch.cat([x[: place.start], z, x[place.stop :]]), slope.log()

    def theta(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Model coordinates [P, S] of x [P, S], and the log volume of the map [S]."""
        model, pieces = self.model, [x]
        x, slopes = self._root_odds(x)
        volume = slopes.sum(0)
        eta, out = model.base(x), x
        lower = self._lower(x) if model.tiers else []
        replaced = {}
        for tier, below in zip(model.tiers, lower):
            mean, root, sd = self._tier(tier, x, below, eta)
            z = mean + x[tier.z].reshape(mean.shape) / root
            volume = volume - root.log().sum((0, 1))
            eta = tier.add(eta, sd * z)
            replaced[tier.z.start] = (tier.z, z.reshape(-1, x.shape[1]))
        if model.prior is not None:
            told, top, own, inner, pull = self._shape(x)
            place = model.slices["a"]
            mean = torch.cholesky_solve(told[..., None], top)
            move = torch.linalg.solve_triangular(top.transpose(1, 2), x[place].T[..., None], upper=True)
            a = (mean + move)[..., 0]  # [S, K]
            volume = volume - torch.diagonal(top, dim1=-2, dim2=-1).log().sum(-1)
            replaced[place.start] = (place, a.T)
            if own is not None:
                place = model.slices["a_size"]
                r = model.shape_sd(x)[0][:, None, None]
                rest = pull - torch.einsum("sckl,sl->sck", inner, a)
                mean = torch.cholesky_solve((r * rest)[..., None], own)
                z = x[place].reshape(*own.shape[1:3], -1).permute(2, 0, 1)[..., None]
                move = torch.linalg.solve_triangular(own.transpose(-1, -2), z, upper=True)
                volume = volume - torch.diagonal(own, dim1=-2, dim2=-1).log().sum((-1, -2))
                replaced[place.start] = (place, (mean + move)[..., 0].permute(1, 2, 0).reshape(-1, x.shape[1]))
        pieces, at = [], 0
        for start in sorted(replaced):
            place, values = replaced[start]
            pieces += [x[at:start], values]
            at = place.stop
        out = torch.cat([*pieces, x[at:]])
        return out, volume

    def start(self, theta: np.ndarray) -> np.ndarray:
        """x [P] at the scales and bases of theta [P], with everything else at its conditional mean."""
        x = theta.copy()
        for tier in self.model.tiers:
            x[tier.z] = 0.0
        for part in ("a", "a_size"):
            x[self.model.slices[part]] = 0.0
        return x

    def prior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Log density of x [P, S] without the data [S], and its gradient [P, S]."""
        x = x.detach().requires_grad_(True)
        with torch.enable_grad():
            theta, volume = self.theta(x)
            value = volume - 0.5 * (theta**2).sum(0)
            (gradient,) = torch.autograd.grad(value.sum(), x)
        return value.detach(), gradient

    def log_joint(self, x: Tensor, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """log p(responses, x) [S] and its gradient [P, S]."""
        x = x.detach().requires_grad_(True)
        with torch.enable_grad():
            theta, volume = self.theta(x)
            p = self.model.unpack(theta)
            prior = volume - 0.5 * (theta**2).sum(0)
        value, on = self.model.likelihood(dtype).total(p)
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(prior.sum() + p.dot(on), x)
        return (value + prior).detach(), gradient

    @torch.no_grad()
    def by_unit(self, x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """What of the log joint each unit's own coordinates (`units`) decide, given all others [U, S]."""
        assert self.units is not None
        places, unit = self.units
        theta, _ = self.theta(x)
        on_coordinates = -0.5 * theta**2
        on_coordinates[self.model.slices["guess"]] += self._root_odds(x)[1]
        own = on_coordinates[places].sum(1)
        return own.index_add_(0, unit, self.model.likelihood(dtype).by_group(self.model.unpack(theta)))

    def curvature(self, x: np.ndarray) -> np.ndarray:
        """Minus the Hessian of the log joint at x [P] → [P, P]: the data's part from the expansion (Gauss–Newton), the
        prior's by differences. Units do not meet, so their coordinates are moved all at once, one of each."""
        model, step, P = self.model, 1e-4, self.dimension
        places, unit = (torch.zeros(0, 0, dtype=torch.long), None) if self.units is None else self.units
        common = torch.tensor(np.setdiff1d(np.arange(P), places.numpy()))
        moves = torch.eye(P, dtype=torch.float64)[:, common]
        if unit is not None:
            together = torch.zeros(P, places.shape[1], dtype=torch.float64)
            for k in range(places.shape[1]):
                together[places[:, k], k] = 1.0
            moves = torch.cat([moves, together], 1)
        centre = torch.tensor(x)[:, None]
        both = torch.cat([centre + step * moves, centre - step * moves], 1)
        prior, etas, shapes = [], [], []
        for part in both.split(256, dim=1):
            prior.append(self.prior(part)[1])
            with torch.no_grad():
                p = model.unpack(self.theta(part)[0])
            etas.append(model.as_eta(p))
            shapes.append(p.coefficients)

        def slope(pieces: list) -> Tensor:
            whole = torch.cat(pieces, -1)
            half = whole.shape[-1] // 2
            return (whole[..., :half] - whole[..., half:]) / (2 * step)

        bend, eta = slope(prior), slope(etas)
        hessian = torch.zeros(P, P, dtype=torch.float64)
        on_eta = torch.zeros(*eta.shape[:2], P, dtype=torch.float64)
        hessian[:, common], on_eta[:, :, common] = bend[:, : len(common)], eta[..., : len(common)]
        if unit is not None:
            hessian[common] = hessian[:, common].T
            groups = torch.arange(len(unit))
            for k in range(places.shape[1]):
                column = len(common) + k
                for other in range(places.shape[1]):
                    hessian[places[:, other], places[:, k]] = bend[places[:, other], column]
                on_eta[:, groups, places[unit, k]] = eta[..., column]
        on_shape = None
        if shapes[0] is not None:
            on_shape = torch.zeros(*shapes[0].shape[:2], P, dtype=torch.float64)
            on_shape[..., common] = slope(shapes)[..., : len(common)]
        total = self.expansion.curvature(on_eta, on_shape, self.shape_of_group) - hessian
        return (0.5 * (total + total.T)).numpy()
