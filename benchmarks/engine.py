"""How fast the engine is: python benchmarks/engine.py [--json] [--quick] [--no-plain]; docs/performance.md keeps it.

All contestants are timed in turn, over and over, in one run, so that a busy machine slows them alike; medians count.
Plain torch runs in a process of its own, where its threads wait as torch's default has it, which suits it best.
Useful arithmetic is what the mathematics needs: one multiplication and addition a weight, trial and step for the
forward pass, one for the gradient in the rates, one for the gradient in the weights.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from tqdm import tqdm
from workload import EPOCHS, Trial, Workload, kernel, tuned

from lapsus.engine import fused, reference
from lapsus.engine.threads import resolve, torch_threads
from lapsus.errors import LapsusError

__all__ = ["measure", "tables"]


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _interleaved(contestants: dict[str, Callable[[], float]], rounds: int, progress: tqdm) -> dict[str, float]:
    """The median of the seconds that each contestant returns, all of them asked in turn."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    # A first round warms up caches, allocators and clocks; where one round takes a minute, that does not matter.
    warm_up = 1 if rounds > 1 else 0
    for number in range(warm_up + rounds):
        for name, timed in contestants.items():
            seconds = timed()
            if number >= warm_up:
                times[name].append(seconds)
            progress.update()
    return {name: statistics.median(values) for name, values in times.items()}


def _sgemm(size: int) -> Callable[[], None]:
    a, b, out = torch.ones(size, size), torch.ones(size, size), torch.empty(size, size)

    def multiply() -> None:
        torch.mm(a, b, out=out)

    return multiply


def measure(quick: bool = False, plain: bool = True) -> dict:
    """Everything that is reported. quick leaves out the paper-size batch and most of the scaling."""
    if not fused.instruction_sets():
        raise LapsusError("there is no fused kernel to measure: the package was installed without a compiler")
    with torch_threads(resolve(None)):
        return _measure(quick, plain)


def _measure(quick: bool, plain: bool) -> dict:
    report: dict[str, Any] = {"machine": machine()}
    rounds = 3 if quick else 5
    with tqdm(desc="bench engine", unit=" runs", disable=None, leave=False) as progress:
        report["training"] = [_compare(32, 16, rounds, progress), _compare(64, 16, rounds, progress)]
        if not quick:
            report["training"].append(_compare(32, 512, 2, progress, plain=plain))
        report["scaling"] = _scaling(quick, progress)
    small, large = report["training"][0], report["training"][-1]
    report["fused_over_reference_512"] = small["fused"] / small["reference"]
    report["useful_fraction_of_sgemm"] = small["useful_fraction_of_sgemm"]
    if not quick:
        report["fused_over_reference_16384"] = large["fused"] / large["reference"]
        if plain:
            report["fused_over_plain_16384"] = large["fused"] / large["plain"]
        report["memory"] = {name: peak_memory(name) for name in ("fused", "reference", *(("plain",) if plain else ()))}
        report["peak_memory_16384_mb"] = report["memory"]["fused"]
    return report


class _Torch:
    """A process that trains and simulates with plain torch, on demand."""

    def __enter__(self) -> _Torch:
        # Otherwise its threads would sleep after every operation, as they must beside the kernel.
        environment = {**os.environ, "GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", "300000")}
        command = [sys.executable, __file__, "serve"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
        )
        return self

    def __call__(self, kind: str, conditions: int, trials: int, size: int) -> float:
        """Seconds of one run."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps([kind, conditions, trials, size]) + "\n")
        return json.loads(self.process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def _serve() -> None:
    """The other end of _Torch."""
    torch.set_num_threads(resolve(None))
    load = None
    for line in sys.stdin:
        kind, conditions, trials, size = json.loads(line)
        if load is None or (load.conditions, load.trials) != (conditions, trials):
            load = Workload(conditions, trials)
        work = {
            "train": partial(load.train, tuned, size),
            "simulate": partial(load.simulate, tuned, size),
            "plain": partial(load.train, reference.rollout),
        }
        sys.stdout.write(f"{_seconds(work[kind])}\n")
        sys.stdout.flush()


def _compare(conditions: int, trials: int, rounds: int, progress: tqdm, plain: bool = False) -> dict:
    """Trials a second of every way to train and to simulate one batch."""
    load = Workload(conditions, trials)
    count, size = conditions * trials, 2048
    # Conditions at a time for plain torch; the fastest counts.
    cuts = [c for c in (1, 2, 8, 16, 32) if 128 <= c * trials <= 1024 and c <= conditions]
    with _Torch() as torch_only:
        work: dict[str, Callable[[], float]] = {
            "sgemm": partial(_seconds, _sgemm(size)),
            "fused": partial(_seconds, partial(load.train, kernel)),
            "simulate fused": partial(_seconds, partial(load.simulate, kernel)),
            "simulate reference": partial(torch_only, "simulate", conditions, trials, max(1, 512 // trials)),
        }
        for cut in cuts:
            work[f"reference {cut * trials}"] = partial(torch_only, "train", conditions, trials, cut)
        if plain:
            work["plain"] = partial(torch_only, "plain", conditions, trials, conditions)
        seconds = _interleaved(work, rounds, progress)
    references = {name: value for name, value in seconds.items() if name.startswith("reference")}
    best = min(references, key=lambda name: references[name])
    peak = 2 * size**3 / seconds["sgemm"]
    useful = count * load.trial.operations() / seconds["fused"]
    result = {
        "conditions": conditions,
        "trials_a_condition": trials,
        "trials": count,
        "fused": count / seconds["fused"],
        "reference": count / seconds[best],
        "reference_trials_at_a_time": int(best.split()[1]),
        "simulate_fused": count / seconds["simulate fused"],
        "simulate_reference": count / seconds["simulate reference"],
        "sgemm_gflops": peak / 1e9,
        "useful_gflops": useful / 1e9,
        "useful_fraction_of_sgemm": useful / peak,
    }
    if plain:
        result["plain"] = count / seconds["plain"]
    return result


def _scaling(quick: bool, progress: tqdm) -> dict[str, list[dict]]:
    """Cost of a trial-step as one thing grows at a time."""
    longer = tuple(2 * steps for steps in EPOCHS)
    shorter = (1, 3, 7, 3, 20)
    cases = {
        "trials": [(Trial(), 32, 32), (Trial(), 64, 64)] if quick else [(Trial(), 64, k) for k in (16, 64, 256, 1536)],
        "trial length": [(Trial(epochs=epochs), 32, 16) for epochs in (shorter, EPOCHS, longer)],
        "units": [(Trial(units=n), 16, 16) for n in ((16, 32) if quick else (16, 32, 64, 128))],
        "branching": [(Trial(branching=b), 32, 16) for b in ((), (10,), (5, 5), (10, 10), (20, 10), (5, 5, 5))],
    }
    result: dict[str, list[dict]] = {}
    for name, rows in cases.items():
        result[name] = []
        loads = [Workload(conditions, trials, trial) for trial, conditions, trials in rows]
        # A batch of more than 16,384 trials is trained as the trainer would: in micro-batches.
        work: dict[str, Callable[[], float]] = {
            str(i): partial(_seconds, partial(load.train, kernel, max(1, 16384 // load.trials)))
            for i, load in enumerate(loads)
        }
        seconds = _interleaved(work, 3, progress)
        for i, load in enumerate(loads):
            trials = load.conditions * load.trials
            result[name].append(
                {
                    "units": load.trial.units,
                    "branching": list(load.trial.branching),
                    "steps": load.trial.steps,
                    "trials": trials,
                    "microseconds_a_trial_step": 1e6 * seconds[str(i)] / trials / load.trial.steps,
                    "useful_gflops": trials * load.trial.operations() / seconds[str(i)] / 1e9,
                }
            )
    return result


def machine() -> dict:
    """Where the numbers come from."""
    model = platform.processor()
    try:
        with open("/proc/cpuinfo") as file:
            model = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "processor": model,
        "threads": resolve(None),
        "instruction_set": fused.instruction_set(),
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def peak_memory(kind: str) -> float:
    """Megabytes that training on the paper's batch (32 x 512 trials) adds to a fresh process."""
    command = [sys.executable, __file__, kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _resident(field: str) -> float:
    """VmRSS (now) or VmHWM (at most so far) of this process in megabytes. getrusage would count the parent's too."""
    try:
        with open("/proc/self/status") as file:
            line = next(line for line in file if line.startswith(field))
        return int(line.split()[1]) * 1024 / 1e6
    except FileNotFoundError:
        # Not Linux: the high-water mark alone, in bytes on macOS.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _train_once(kind: str) -> float:
    before = _resident("VmRSS")
    load = Workload(32, 512)
    rollout, size = {"fused": (kernel, None), "reference": (tuned, 1), "plain": (reference.rollout, None)}[kind]
    load.train(rollout, size)
    return _resident("VmHWM") - before


def tables(report: dict) -> str:
    """The report as text."""
    place = report["machine"]
    lines = [
        f"{place['processor']}, {place['threads']} threads, {place['instruction_set']}, torch {place['torch']}, "
        f"{place['date']}",
        "",
    ]
    lines += ["Training and simulation, trials a second", ""]
    rows = [
        [
            "batch",
            "fused",
            "torch",
            "ratio",
            "plain torch",
            "simulate fused",
            "torch",
            "useful / sgemm GFLOP/s",
            "share",
        ]
    ]
    for row in report["training"]:
        rows.append(
            [
                f"{row['trials']:,}",
                f"{row['fused']:,.0f}",
                f"{row['reference']:,.0f}",
                f"{row['fused'] / row['reference']:.1f}",
                f"{row['plain']:,.0f}" if "plain" in row else "-",
                f"{row['simulate_fused']:,.0f}",
                f"{row['simulate_reference']:,.0f}",
                f"{row['useful_gflops']:.0f} / {row['sgemm_gflops']:.0f}",
                f"{row['useful_fraction_of_sgemm']:.0%}",
            ]
        )
    lines += _aligned(rows)
    for name, scaled in report["scaling"].items():
        lines += ["", f"Growing {name}", ""]
        rows = [["units", "branching", "steps", "trials", "us / trial-step", "useful GFLOP/s"]]
        for row in scaled:
            rows.append(
                [
                    str(row["units"]),
                    "x".join(map(str, row["branching"])) or "-",
                    str(row["steps"]),
                    f"{row['trials']:,}",
                    f"{row['microseconds_a_trial_step']:.3f}",
                    f"{row['useful_gflops']:.0f}",
                ]
            )
        lines += _aligned(rows)
    if "memory" in report:
        lines += ["", "Peak memory of one step on 16,384 trials, MB", ""]
        lines += _aligned([list(report["memory"]), [f"{value:,.0f}" for value in report["memory"].values()]])
    return "\n".join(lines)


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-plain", dest="plain", action="store_false")
    options = parser.parse_args()
    report = measure(quick=options.quick, plain=options.plain)
    print(json.dumps(report, indent=2) if options.json else tables(report))


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        _serve()
    elif sys.argv[1:] and not sys.argv[1].startswith("-"):
        sys.stdout.write(json.dumps(_train_once(sys.argv[1])))
    else:
        main()
