"""What is read out of a trajectory: against plain torch, and the same whatever the batch is cut into."""

import pytest
import torch

from lapsus.engine import fused
from lapsus.engine.read_out import project, read_out

SHAPES = [(1, 1, 1, 1), (3, 5, 2, 7), (4, 16, 3, 16), (2, 17, 1, 33), (70, 16, 64, 32)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("responses", [1, 2, 3])
def test_values_and_gradient_are_those_of_plain_torch(shape, responses, dtype):
    generator = torch.Generator().manual_seed(0)
    r = torch.randn(shape, generator=generator, dtype=dtype, requires_grad=True)
    W_x = torch.randn(responses, shape[1], generator=generator, dtype=dtype)
    x, power = read_out(r, W_x)
    plain_x, plain_power = torch.einsum("dn,snck->sdck", W_x, r), r.square().sum((0, 1))
    to_x, to_power = torch.randn(x.shape, generator=generator, dtype=dtype), torch.randn(power.shape, generator=generator, dtype=dtype)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(x, plain_x, **close)
    torch.testing.assert_close(power, plain_power, **close)
    torch.testing.assert_close(project(r, W_x), plain_x.detach(), **close)
    for ours, plain in [
        ((x * to_x).sum() + (power * to_power).sum(), (plain_x * to_x).sum() + (plain_power * to_power).sum()),
        ((x * to_x).sum(), (plain_x * to_x).sum()),
        ((power * to_power).sum(), (plain_power * to_power).sum()),
    ]:
        (gradient,) = torch.autograd.grad(ours, r, retain_graph=True)
        torch.testing.assert_close(gradient, torch.autograd.grad(plain, r, retain_graph=True)[0], **close)


@pytest.mark.skipif(fused.instruction_set() is None, reason="the kernel was not built")
@pytest.mark.parametrize("cut", [1, 3, 8])
def test_cutting_a_batch_changes_no_bit(cut):
    r = torch.randn(20, 16, 9, 5, generator=torch.Generator().manual_seed(1))
    W_x = torch.randn(2, 16, generator=torch.Generator().manual_seed(2))
    x, power = read_out(r, W_x)
    parts = [read_out(part.contiguous(), W_x) for part in r.split(cut, 2)]
    assert torch.equal(x, torch.cat([part[0] for part in parts], 2))
    assert torch.equal(power, torch.cat([part[1] for part in parts]))
