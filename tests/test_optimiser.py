"""Adam against torch's, and in the principal axes of the gradient against the same written out."""

import pytest
import torch

from lapsus.engine import fused
from lapsus.training.optimiser import Optimiser


def _gradients(count, rows=30, columns=4, others=7, seed=0):
    """Gradients whose matrix part has columns of very different size along oblique axes."""
    generator = torch.Generator().manual_seed(seed)
    oblique = torch.linalg.qr(torch.randn(columns, columns, generator=generator))[0]
    for _ in range(count):
        matrix = torch.randn(rows, columns, generator=generator) * torch.tensor([10.0, 3.0, 1.0, 0.2]) @ oblique.T
        yield torch.cat([matrix.flatten(), torch.randn(others, generator=generator)])


@pytest.mark.parametrize("native", [True, False])
def test_without_axes_it_is_torchs_adam(native, monkeypatch):
    if not native:
        monkeypatch.setattr(fused, "_native", None)
    elif not fused.instruction_sets():
        pytest.skip("the kernel was not built")
    ours = torch.randn(127, generator=torch.Generator().manual_seed(2))
    theirs = ours.clone().requires_grad_()
    adam, optimiser = torch.optim.Adam([theirs], lr=1e-2, betas=(0.9, 0.999)), Optimiser(ours, slice(0, 120), 4)
    for gradient in _gradients(30):
        theirs.grad = gradient.clone()
        adam.step()
        ours -= optimiser.step(gradient, 1e-2, 0.9, 0.999, 0.0)
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-6)


def test_with_axes_it_is_adam_in_the_eigenvectors_of_the_covariance():
    rows, columns, others, decay = 30, 4, 7, 0.9
    optimiser = Optimiser(torch.zeros(rows * columns + others), slice(0, rows * columns), columns)
    covariance, axes = torch.zeros(columns, columns, dtype=torch.float64), torch.eye(columns, dtype=torch.float64)
    m, v = (torch.zeros(rows, columns, dtype=torch.float64) for _ in range(2))
    for update, gradient in enumerate(_gradients(35), 1):
        matrix = gradient[: rows * columns].view(rows, columns).double()
        covariance = decay * covariance + (1 - decay) * matrix.T @ matrix
        if update % 10 == 1:
            new = torch.linalg.eigh(covariance)[1]
            m, v = m @ axes.T @ new, v @ (axes.T @ new) ** 2
            axes = new
        seen = matrix @ axes
        m, v = 0.9 * m + 0.1 * seen, 0.99 * v + 0.01 * seen**2
        step = 1e-2 * (m / (1 - 0.9**update)) / ((v / (1 - 0.99**update)).sqrt() + 1e-8) @ axes.T
        found = optimiser.step(gradient.clone(), 1e-2, 0.9, 0.99, decay)[: rows * columns].view(rows, columns)
        torch.testing.assert_close(found.double(), step, rtol=1e-2, atol=1e-4)


def test_axes_cure_an_oblique_valley():
    """A quadratic with curvatures of 1 to 1,000 along oblique axes: in them Adam gets much further than along the given
    ones."""
    generator = torch.Generator().manual_seed(1)
    oblique = torch.linalg.qr(torch.randn(6, 6, generator=generator))[0]
    curvature = oblique @ torch.diag(torch.logspace(0, 3, 6)) @ oblique.T
    start = torch.randn(20, 6, generator=generator)
    reached = {}
    for axes in (0.0, 0.9):
        flat, optimiser = start.flatten().clone(), Optimiser(torch.zeros(120), slice(0, 120), 6)
        for update in range(1000):
            gradient = (flat.view(20, 6) @ curvature).flatten()
            flat -= optimiser.step(gradient, 0.1 * 0.99**update, 0.9, 0.99, axes)
        reached[axes] = float(torch.einsum("ri,ij,rj->", flat.view(20, 6), curvature, flat.view(20, 6)))
    assert reached[0.9] < 0.01 * reached[0.0], reached


def test_turning_back_leaves_plain_adam():
    optimiser = Optimiser(torch.zeros(127), slice(0, 120), 4)
    for gradient in _gradients(12):
        optimiser.step(gradient, 1e-2, 0.9, 0.99, 0.9)
    assert not torch.equal(optimiser.axes, torch.eye(4))
    first = (optimiser.moment_1[:120].view(30, 4) @ optimiser.axes.T).flatten()
    gradient = next(_gradients(1, seed=5))
    optimiser.step(gradient.clone(), 1e-2, 0.9, 0.99, 0.0)
    assert torch.equal(optimiser.axes, torch.eye(4))
    torch.testing.assert_close(optimiser.moment_1[:120], 0.9 * first + 0.1 * gradient[:120], rtol=1e-4, atol=1e-3)
