"""What is read out of rates outside the rollout: against plain torch, and the same whatever the batch is cut into."""

import pytest
import torch

from lapsus.engine import fused
from lapsus.engine.read_out import project, read_out

SHAPES = [(1, 1, 1, 1), (3, 5, 2, 7), (4, 16, 3, 16), (2, 17, 1, 33), (70, 16, 64, 32)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("responses", [1, 2, 3])
def test_values_are_those_of_sums_written_out(shape, responses, dtype):
    generator = torch.Generator().manual_seed(0)
    r = torch.randn(shape, generator=generator, dtype=dtype)
    W_x = torch.randn(responses, shape[1], generator=generator, dtype=dtype)
    plain = torch.stack([sum(W_x[d, n] * r[:, n] for n in range(shape[1])) for d in range(responses)], 1)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    x, power = read_out(r, W_x)
    torch.testing.assert_close(x, plain, **close)
    torch.testing.assert_close(power, r.square().sum((0, 1)), **close)
    torch.testing.assert_close(project(r, W_x), plain, **close)


@pytest.mark.skipif(fused.instruction_set() is None, reason="the kernel was not built")
@pytest.mark.parametrize("cut", [1, 3, 8])
def test_cutting_a_batch_changes_no_bit(cut):
    r = torch.randn(20, 16, 9, 5, generator=torch.Generator().manual_seed(1))
    W_x = torch.randn(2, 16, generator=torch.Generator().manual_seed(2))
    parts = [project(part.contiguous(), W_x) for part in r.split(cut, 2)]
    assert torch.equal(project(r, W_x), torch.cat(parts, 2))
