"""What benchmarks/engine.py reports, and that it times what training does."""

import pytest
import torch

from lapsus.engine import fused, reference

pytestmark = pytest.mark.skipif(not fused.instruction_sets(), reason="the kernel was not built")


def test_bench_reports_what_it_promises(monkeypatch):
    """The names that programs read; the ratios are those of the measured rates."""
    import engine as bench

    rates = {"fused": 12.0, "reference": 3.0, "plain": 0.5, "useful_fraction_of_sgemm": 0.9}
    monkeypatch.setattr(
        bench,
        "_compare",
        lambda conditions, trials, rounds, progress, plain=False: rates | {"trials": conditions * trials},
    )
    monkeypatch.setattr(bench, "_scaling", lambda quick, progress: {})
    monkeypatch.setattr(bench, "peak_memory", lambda kind: {"fused": 450.0}.get(kind, 9000.0))
    report = bench.measure()
    assert [row["trials"] for row in report["training"]] == [512, 1024, 16384]
    promised = {
        "fused_over_reference_512": 4,
        "fused_over_reference_16384": 4,
        "fused_over_plain_16384": 24,
        "useful_fraction_of_sgemm": 0.9,
        "peak_memory_16384_mb": 450,
    }
    assert {name: report[name] for name in promised} == promised


@pytest.mark.slow
def test_bench_times_what_training_does():
    """Each way of running the workload makes a gradient of every weight, and the same one."""
    import engine as bench

    gradients = []
    for run in (bench.kernel, bench.tuned, reference.rollout):
        load = bench.Workload(2, 4)
        load.train(run)
        gradients.append(torch.cat([tensor.grad.flatten() for tensor in load.leaves()]))
    for other in gradients[1:]:
        assert float((gradients[0] - other).abs().max() / other.abs().max()) < 1e-3
