"""How long a fit of a published table's size takes, and how much memory.

    python benchmarks/fits.py [pooled] [hierarchical] [condition] [small] [--steps]

The table is made: 19 subjects with 800 trials each, set sizes 1 to 8, items at 13 positions, colours anywhere, swaps
that fall off with the distance between positions, and a cue that matters more at large set sizes. Every case runs in a
process of its own, on one thread. Prints processor time and the largest memory of each. As machines differ, the time is
also given in products of two matrices of 1,024 × 1,024 single-precision numbers, and in evaluations of the kept model's
likelihood with its gradient at 32 parameter vectors, both timed in the same process.

    pooled         all subjects together, every model and scatter compared
    hierarchical   subjects around a population, the same comparison
    condition      subjects and the two values of a cue, the same comparison
    small          the first 500 trials
"""

import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch

from lapsus.circular import wrap
from lapsus.engine.threads import torch_threads
from lapsus.fitting import Fit
from lapsus.trials import Trials

ONE_THREAD = {"LAPSUS_THREADS": "1", "OMP_NUM_THREADS": "1"}
POSITIONS, SUBJECTS, PER_SIZE = 13, 19, 100
CASES = {"pooled": {}, "hierarchical": {"by": "hierarchical"}, "condition": {"by": "cue"}, "small": {}}


def published_table(seed: int = 0) -> Trials:
    """15,200 trials with the layout of a published table."""
    rng = np.random.default_rng(seed)
    sizes = np.tile(np.repeat(np.arange(1, 9), PER_SIZE), SUBJECTS)
    count, most = len(sizes), sizes.max()
    subject = np.repeat(np.arange(SUBJECTS), count // SUBJECTS)
    cue = rng.integers(0, 2, count)
    report = rng.uniform(-np.pi, np.pi, (count, most))
    positions = np.argsort(rng.uniform(size=(count, POSITIONS)), 1)[:, :most]
    probe = wrap(positions * 2 * np.pi / POSITIONS)
    own = 0.4 * rng.standard_normal((SUBJECTS, 2))
    level = -3.2 + own[subject, 0] + 0.12 * sizes * cue
    f = level[:, None] + 1.5 * np.cos(wrap(probe - probe[:, :1]))
    f[:, 0] = 0.0
    f[np.arange(most) >= sizes[:, None]] = -np.inf
    weights = np.exp(f)
    cumulative = np.cumsum(weights / weights.sum(1, keepdims=True), 1)
    item = (rng.uniform(size=(count, 1)) > cumulative).sum(1)
    kappa = 20 * np.exp(own[subject, 1]) / sizes**0.7 * rng.gamma(2.0, 0.5, count)
    response = wrap(report[np.arange(count), item] + rng.vonmises(0, kappa))
    guessed = rng.uniform(size=count) < 0.02 * sizes
    response[guessed] = rng.uniform(-np.pi, np.pi, guessed.sum())
    absent = np.arange(most) >= sizes[:, None]
    report[absent] = probe[absent] = np.nan
    names = [f"s{i + 1}" for i in subject]
    return Trials(response, report, probe, subject=names, conditions={"cue": np.array(["no", "yes"])[cue]})


def fastest(work: Callable[[], object], repeats: int = 5) -> float:
    """Processor seconds of the fastest of some calls."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def units(result: Fit) -> tuple[float, float]:
    """Seconds of a matrix product, and of an evaluation of the likelihood with its gradient at 32 draws."""
    a, b = torch.randn(2, 1024, 1024)
    likelihood, draws = result.model.likelihood(torch.float32), result.parameters.at(slice(32))
    with torch_threads(1):
        return fastest(lambda: a @ b), fastest(lambda: likelihood.total(draws))


def run(case: str, steps: bool) -> None:
    """One case in this process."""
    import lapsus.fitting.fitting as fitting

    trials = published_table()
    if case == "small":
        trials = trials[::30][:500]
    if steps:
        evaluate = fitting.evaluate

        def timed(parts: list, choice: object, *rest: object) -> object:
            start = time.process_time()
            found = evaluate(parts, choice, *rest)
            print(f"  {choice} {time.process_time() - start:.1f} s, elpd {found.loo.elpd:.1f}", flush=True)
            return found

        fitting.evaluate = timed
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fitting.fit(trials, progress=False, **CASES[case])
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    compared = 1 if result.candidates is None else len(result.candidates)
    product, evaluation = units(result)
    relative = f"{seconds / product:,.0f} of {1000 * product:.1f} ms | {seconds / evaluation:,.0f} of"
    print(
        f"| {case} | {len(trials)} | {compared} | {result.name}, {result.model.emission.name}, {result.model.sets} |"
        f" {result.rhat:.3f} | {seconds:.1f} s | {memory:.2f} GB | {relative} {1000 * evaluation:.1f} ms |",
        flush=True,
    )


if __name__ == "__main__":
    chosen = [name for name in sys.argv[1:] if name in CASES] or list(CASES)
    if "--one" in sys.argv:
        run(chosen[0], "--steps" in sys.argv)
        sys.exit()
    print(
        "| fit | trials | models compared | kept | R-hat | processor time | memory | matrix products | evaluations |\n"
        "|---|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    for case in chosen:
        command = [sys.executable, __file__, case, "--one", *(a for a in sys.argv if a == "--steps")]
        subprocess.run(command, check=True, env=os.environ | ONE_THREAD)
