"""What benchmarks/speed.py reports, and that it times what training does."""

import pytest
import torch

from lapsus.engine import fused, reference

pytestmark = pytest.mark.skipif(not fused.instruction_sets(), reason="the kernel was not built")


def test_the_roof_is_what_the_machine_can_do(monkeypatch):
    """A third of the arithmetic at the rate of products, the rest at the bandwidth: by hand for the paper's network."""
    import speed

    load, times = speed.Workload(64, 16), {"product": 1.0} | dict.fromkeys(speed.NETWORKS, 2.0)
    monkeypatch.setattr(speed, "in_turn", lambda contestants, rounds: {name: times[name] for name in contestants})
    monkeypatch.setattr(speed, "bandwidth", lambda: 1e9 / speed.resolve(None))
    roof = speed.roofs()[0]
    products = 16 * 100 * 16 * load.trial.steps * 1024  # leaves × units × steps × trials
    assert roof.useful == pytest.approx(6 * products / 2.0 / 1e9)
    assert roof.product == pytest.approx(2 * 2048**3 / 1e9)
    seconds = 2 * products / (2 * 2048**3) + 2 * products / 1e9
    assert roof.most == pytest.approx(6 * products / seconds / 1e9)


def test_contestants_are_timed_in_turn():
    """Each is asked as often as the others, after a round that does not count."""
    import speed

    asked = []

    def timed(name, seconds):
        asked.append(name)
        return next(seconds)

    a, b = iter([9.0, 1.0, 3.0, 2.0]), iter([9.0, 4.0, 4.0, 5.0])
    found = speed.in_turn({"a": lambda: timed("a", a), "b": lambda: timed("b", b)}, 3)
    assert asked == ["a", "b"] * 4 and found == {"a": 2.0, "b": 4.0}


@pytest.mark.slow
def test_bench_times_what_training_does():
    """Each way of running the workload makes a gradient of every weight, and the same one."""
    import speed

    gradients = []
    for run in (speed.kernel, speed.tuned, reference.rollout):
        load = speed.Workload(2, 4)
        load.train(run)
        gradients.append(torch.cat([tensor.grad.flatten() for tensor in load.leaves()]))
    for other in gradients[1:]:
        assert float((gradients[0] - other).abs().max() / other.abs().max()) < 1e-3
