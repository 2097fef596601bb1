"""How fast lapsus is on this machine, in about three minutes: python benchmarks/speed.py [--csv FILE] [--figure FILE]

One table: what, before, goal, here; docs/performance.md keeps it. Contestants of a ratio are timed in turn in this run,
so that a busy machine slows them alike; medians count. *Useful arithmetic* is one multiplication and one addition for
each weight, trial and step, in the forward pass, in the gradient in the rates and in the gradient in the weights.
--figure draws the roofline: the useful arithmetic of networks beside the most that the machine's rate of
multiplication and the bandwidth of its first-level cache allow.
"""

import argparse
import csv
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path

import torch
from fits import ONE_THREAD
from tqdm import tqdm
from workload import Trial, Workload, kernel, tuned

import lapsus
from lapsus.engine import fused
from lapsus.engine.threads import resolve, torch_threads
from lapsus.training.loop import Training

HERE = Path(__file__).resolve()
NETWORKS = {
    "16 units, 10 × 10 (the paper's)": Trial(),
    "32 units, 6 × 10 (persistent)": Trial(units=32, branching=(6, 10)),
    "64 units, 10 × 10": Trial(units=64),
}
# Rows and columns of the matrices by which the rate of multiplication is measured.
MATRIX = 2048


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    what: str
    before: str
    goal: str
    here: str


def seconds_of(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turn(contestants: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of the seconds that each contestant returns, all asked in turn, after a round that warms up. A single
    round takes so long that it needs none."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    warm_up = 1 if rounds > 1 else 0
    for number in range(warm_up + rounds):
        for name, timed in contestants.items():
            seconds = timed()
            if number >= warm_up:
                times[name].append(seconds)
    return {name: statistics.median(values) for name, values in times.items()}


def step(load: Workload) -> Callable[[], float]:
    """Seconds of one training step of the kernel."""
    return partial(seconds_of, partial(load.train, kernel))


# --- Against torch ---


class Torch:
    """A process that trains with torch alone, on demand: its threads wait as torch's default has it, which suits it
    best, and which would slow the kernel."""

    def __enter__(self) -> "Torch":
        environment = {**os.environ, "GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", "300000")}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env=environment,
        )
        return self

    def __call__(self, conditions: int, trials: int, size: int) -> float:
        """Seconds of one training step, `size` conditions at a time."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps([conditions, trials, size]) + "\n")
        return json.loads(self.process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def serve() -> None:
    """The other end of Torch."""
    torch.set_num_threads(resolve(None))
    load = None
    for line in sys.stdin:
        conditions, trials, size = json.loads(line)
        if load is None or (load.conditions, load.trials) != (conditions, trials):
            load = Workload(conditions, trials)
        sys.stdout.write(f"{seconds_of(partial(load.train, tuned, size))}\n")
        sys.stdout.flush()


def over_torch() -> list[Row]:
    """Training with the kernel relative to the fastest torch, on a small batch and on the paper's."""
    rows = []
    # Conditions that torch takes at a time; the fastest counts.
    for trials, cuts, rounds, before in ((16, (8, 16, 32), 5, "6.1 to 10"), (512, (1, 2), 1, "4.8 to 8.3")):
        load = Workload(32, trials)
        with Torch() as torch_only:
            torches = {f"torch {cut}": partial(torch_only, 32, trials, cut) for cut in cuts}
            found = in_turn({"kernel": step(load)} | torches, rounds)
        own = found.pop("kernel")
        what = f"kernel over the best torch, {32 * trials:,} trials"
        rows.append(Row(what, before, "15", f"{min(found.values()) / own:.1f} ({32 * trials / own:,.0f} trials/s)"))
    return rows


# --- Against what the machine can do ---


def multiply() -> Callable[[], object]:
    """A product of two matrices."""
    a, b, out = torch.ones(MATRIX, MATRIX), torch.ones(MATRIX, MATRIX), torch.empty(MATRIX, MATRIX)
    return lambda: torch.mm(a, b, out=out)


def bandwidth() -> float:
    """Bytes a second that one core adds up from its first-level cache: a row that is read again and again."""
    again, length = 20_000, 512
    row = torch.ones(length).expand(again, length)
    with torch_threads(1):
        seconds = min(seconds_of(lambda: row.sum(0)) for _ in range(5))
    return 4 * again * length / seconds


@dataclass(frozen=True)
class Roof:
    """Useful arithmetic of a network, Gflop/s: what it has, what a matrix product has, and the most that is possible.

    The forward pass needs its products. The backward pass looks sums up, for each leaf and trial as many bytes as there
    are units for the gradient in the rates and again for that in the weights; it needs bandwidth alone.
    """

    network: str
    useful: float
    product: float
    most: float


def roofs() -> list[Roof]:
    """Of every network, on all cores."""
    loads = {name: Workload(64, 16, trial) for name, trial in NETWORKS.items()}
    found = in_turn(
        {"product": partial(seconds_of, multiply())} | {name: step(load) for name, load in loads.items()}, 3
    )
    product = 2 * MATRIX**3 / found["product"]
    bytes_a_second = resolve(None) * bandwidth()
    rows = []
    for name, load in loads.items():
        operations = load.conditions * load.trials * load.trial.operations()
        least = operations / 3 / product + operations / 3 / bytes_a_second
        rows.append(Roof(name, operations / found[name] / 1e9, product / 1e9, operations / least / 1e9))
    return rows


def of_roofs(found: list[Roof]) -> list[Row]:
    """Useful arithmetic relative to matrix products, and to the most that is possible."""
    return [
        Row(
            f"useful arithmetic over a matrix product: {roof.network}",
            "0.5 to 0.8",
            "1.2",
            f"{roof.useful / roof.product:.2f} ({100 * roof.useful / roof.most:.0f} % of the limit)",
        )
        for roof in found
    ]


def draw_roofs(found: list[Roof], path: Path) -> None:
    """The roofline as a figure: a bar for each network, with its limits."""
    from matplotlib import pyplot as plt

    from lapsus.plots.style import BLUE, COLUMN_WIDTH, GREY, VERMILION, style

    with style():
        fig, ax = plt.subplots(figsize=(1.5 * COLUMN_WIDTH, 1.9), layout="constrained")
        for place, roof in enumerate(found):
            ax.barh(place, roof.useful, height=0.5, color=BLUE, label="training" if place == 0 else None)
            ax.plot(
                [roof.most] * 2, [place - 0.35, place + 0.35], color=VERMILION, label=None if place else "most possible"
            )
        ax.axvline(found[0].product, color=GREY, ls="--", lw=0.8, label="matrix product")
        ax.set_yticks(range(len(found)), [roof.network for roof in found])
        ax.invert_yaxis()
        ax.set(xlabel="useful arithmetic (Gflop/s, all cores)", xlim=(0, None))
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        fig.savefig(path, dpi=200)
        plt.close(fig)


def softplus() -> Row:
    """Training with softplus relative to ReLU."""
    relu, smooth = Workload(32, 16), Workload(32, 16)
    smooth.network.nonlinearity = "softplus"
    found = in_turn({"relu": step(relu), "softplus": step(smooth)}, 3)
    return Row("softplus over ReLU, trials/s", "0.28", "0.6", f"{found['relu'] / found['softplus']:.2f}")


# --- A training step ---


def training(objective: dict, threads: int) -> Training:
    """The training of a persistent network by an objective."""
    experiment = lapsus.read_experiment(
        {
            "name": "speed",
            "task": {"kind": "feature-cued"},
            "network": {"kind": "dendritic", "units": 32, "branching": [6, 10]},
            "behaviour": {"kind": "bns", "swap": {"kind": "smooth"}},
            "stage": [{"updates": 10_000, "objective": objective, "conditions": 64, "trials": 16}],
        }
    )
    return Training(experiment, lapsus.Model.of(experiment), threads=threads)


DIFFUSION, ENERGY = {"kind": "diffusion", "regress": "expectation"}, {"kind": "energy"}


def free_running() -> Row:
    """Trials a second of the energy score relative to diffusion."""
    updates = {name: training(kind, 1).run() for name, kind in (("forced", DIFFUSION), ("free", ENERGY))}
    found = in_turn({name: partial(seconds_of, partial(next, one)) for name, one in updates.items()}, 15)
    return Row("energy score over diffusion, trials/s", "not known", "0.9", f"{found['forced'] / found['free']:.2f}")


class Inside:
    """Seconds inside the kernel's calls."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for name in ("forward", "backward"):
            setattr(fused._Rollout, name, staticmethod(self._timed(getattr(fused._Rollout, name))))

    def _timed(self, function: Callable) -> Callable:
        def call(*arguments: object) -> object:
            start = time.perf_counter()
            result = function(*arguments)
            self.seconds += time.perf_counter() - start
            return result

        return call


def outside_kernel() -> list[Row]:
    """The share of a training step that is not the kernel, on one and on two threads."""
    inside, rows = Inside(), []
    for threads, before, goal in ((1, "9 to 13 %", "5 %"), (2, "13 to 25 %", "10 %")):
        if threads > resolve(None):
            continue
        updates, shares = training(DIFFUSION, threads).run(), []
        for number in range(25):
            inside.seconds = 0.0
            seconds = seconds_of(partial(next, updates))
            if number >= 5:
                shares.append(100 * (1 - inside.seconds / seconds))
        what = f"step outside the kernel, {threads} thread{'s' * (threads > 1)}"
        rows.append(Row(what, before, goal, f"{statistics.median(shares):.0f} %"))
    return rows


# --- Commands ---


def processor_seconds(*arguments: str) -> float:
    """Processor time of a command with its children, on one thread."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=os.environ | ONE_THREAD)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands() -> list[Row]:
    """Fits, questions and the start of the program."""
    fits = str(HERE.with_name("fits.py"))
    questions = "import lapsus; lapsus.analyse(lapsus.load('index-swap-10'))"
    asked = {
        "pooled fit, 15,200 trials (processor time)": ([fits, "pooled", "--one"], "49 to 60 s", "20 s"),
        "hierarchical fit, 19 subjects": ([fits, "hierarchical", "--one"], "143 s", "60 s"),
        "fit of 500 trials": ([fits, "small", "--one"], "not known", "5 s"),
        "all questions of a network": (["-c", questions], "20 to 47 s", "10 to 20 s"),
        "lapsus --help": (["-P", "-m", "lapsus", "--help"], "not known", "0.15 s"),
    }
    rows = []
    for what, (command, before, goal) in asked.items():
        seconds = processor_seconds(*command)
        rows.append(Row(what, before, goal, f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.0f} s"))
    return rows


# --- The table ---


def place() -> str:
    """Where the numbers come from."""
    model = platform.processor()
    cpu = Path("/proc/cpuinfo")
    if cpu.is_file():
        names = [line.split(":")[1].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    cores = resolve(None)
    return f"{model}, {cores} cores, {fused.instruction_set()}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}"


def table(rows: list[Row]) -> str:
    """The rows as text."""
    lines = [("what", "before", "goal", "here"), *((row.what, row.before, row.goal, row.here) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, help="write the table to this file, too")
    parser.add_argument("--figure", type=Path, help="draw the roofline to this file")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    for path in (options.csv, options.figure):
        if path is not None and not path.absolute().parent.is_dir():
            parser.error(f"there is no folder {path.parent}")
    if not fused.instruction_sets():
        raise SystemExit("There is no fused kernel to measure: lapsus was installed without a compiler.")
    found: list[Roof] = []

    def roofline() -> list[Row]:
        found.extend(roofs())
        return of_roofs(found)

    parts: list[Callable[[], list[Row] | Row]] = [
        over_torch,
        roofline,
        softplus,
        free_running,
        outside_kernel,
        commands,
    ]
    rows: list[Row] = []
    with torch_threads(resolve(None)):
        for part in tqdm(parts, desc="speed", disable=None, leave=False):
            measured = part()
            rows += measured if isinstance(measured, list) else [measured]
    print(place())
    print(table(rows))
    if options.csv:
        with options.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("what", "before", "goal", "here"), *map(astuple, rows)])
    if options.figure:
        draw_roofs(found, options.figure)


if __name__ == "__main__":
    main()
