"""The networks of a discovery, trained side by side: one process and its share of the cores each.

A process per network, since the interpreter is the bottleneck beside the kernel: two networks on one core each are
trained in less time than one after the other on two.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
from tqdm import tqdm

from lapsus.engine.threads import resolve
from lapsus.errors import LapsusError
from lapsus.evaluation.match import Match, match
from lapsus.evaluation.sample_sizes import SampleSizes
from lapsus.files import write_json
from lapsus.pipeline.result import Discovery
from lapsus.pipeline.target import ROUND_NAME
from lapsus.training import Model, train
from lapsus.trials import Trials
from lapsus.zoo import Run

__all__ = ["Interrupted", "Processes", "match_network", "side_by_side", "threads_each", "train_networks"]

# Seconds between two looks at the processes.
_POLL = 0.5
# Seconds between two lines of progress where there is no terminal.
_TELL = 60.0


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while training: all is saved, and the same call resumes."""


def side_by_side(networks: int) -> int:
    """How many of the networks are trained at a time: as many as there are cores."""
    return min(networks, resolve(None))


def threads_each(networks: int) -> int:
    """Threads of the kernel for each network that is trained."""
    return max(1, resolve(None) // side_by_side(networks))


def match_network(discovery: Discovery, trials: Trials, model: Model, sizes: SampleSizes) -> Match:
    """A network of the discovery beside the fit and the data."""
    settings = discovery.settings
    return match(model, trials, discovery.fit, discovery.fitted, settings["cueing"], seed=settings["seed"], sizes=sizes)


def train_networks(discovery: Discovery, trials: Trials, sizes: SampleSizes, say: Callable[[str], None]) -> None:
    """Train every network of the discovery until it is matched, or its updates or its time are over."""
    waiting = [run for run in discovery.runs if _unfinished(discovery, run)]
    for run in waiting:
        minutes = _seconds_left(discovery, run) / 60
        say(f"      {run.path.name}: up to {run.experiment.updates:,} updates in {minutes:.1f} min")
    if len(waiting) == 1 or side_by_side(len(discovery.runs)) == 1:
        for run in waiting:
            train_network(discovery, trials, run, sizes)
    elif waiting:

        def job(run: Run) -> dict:
            return {
                "folder": str(discovery.path),
                "trust": discovery.trust,
                "network": run.path.name,
                "threads": threads_each(len(discovery.runs)),
                "sizes": asdict(sizes),
            }

        Processes(job, side_by_side(len(discovery.runs)), say).train(waiting)


def train_network(
    discovery: Discovery, trials: Trials, run: Run, sizes: SampleSizes, threads: int | None = None
) -> None:
    """Train one network round by round, in this process; after each round it is seen whether it is matched."""
    stages = run.experiment.stage
    ends = np.cumsum([stage.updates for stage in stages])
    for stage, end in zip(stages, ends):
        if not _unfinished(discovery, run):
            return
        if run.update >= end:
            continue
        # Only what this network has left of its time: a resumed discovery does not start its clock again.
        left = max(_seconds_left(discovery, run), 1.0)
        outcome = train(run, steps=int(end) - run.update, minutes=left / 60, threads=threads)
        if outcome.reason == "interrupted":
            raise Interrupted
        if stage.name == ROUND_NAME and run.update == end < run.experiment.updates:
            _check(discovery, trials, run, sizes)


def _check(discovery: Discovery, trials: Trials, run: Run, sizes: SampleSizes) -> None:
    """Note whether the network matches with a margin: then it needs no more training."""
    settled = bool(match_network(discovery, trials, run.model(), sizes).with_margin)
    checks = [*discovery.round_checks(run), {"update": run.update, "settled": settled}]
    write_json(run.path.with_name(f"{run.path.name}.json"), {"checks": checks})


def _seconds_left(discovery: Discovery, run: Run) -> float:
    metrics = run.metrics()
    return discovery.plan["seconds"] - (metrics[-1]["seconds"] if metrics else 0.0)


def _unfinished(discovery: Discovery, run: Run) -> bool:
    begun = run.update > 0
    out_of_time = begun and _seconds_left(discovery, run) <= 1
    return not (discovery.settled(run) or out_of_time or run.update >= run.experiment.updates)


# --- Side by side ---


class Processes:
    """Networks in processes of their own, `most` at a time; `job` says what each is told."""

    def __init__(self, job: Callable[[Run], dict], most: int, say: Callable[[str], None]):
        self.job, self.most, self.say = job, most, say
        self.running: dict[str, subprocess.Popen] = {}

    def train(self, runs: list[Run]) -> None:
        """Train all; an interruption stops each after its current update, saved."""
        waiting = list(runs)
        with _Bars(runs, self.say) as bars:
            try:
                while waiting or self.running:
                    while waiting and len(self.running) < self.most:
                        self._start(waiting.pop(0))
                    time.sleep(_POLL)
                    bars.update()
                    self._collect()
            finally:
                self._stop()

    def _start(self, run: Run) -> None:
        # -P: nothing is imported from the working folder because it is the working folder. A session of its own: Ctrl-C
        # reaches this process alone, which then asks the others to stop, once.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "lapsus.pipeline.training"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # a process that is gone already is collected with what it said
            process.stdin.write(json.dumps(self.job(run)) + "\n")
            process.stdin.flush()
        self.running[run.path.name] = process

    def _collect(self) -> None:
        """Processes that ended leave; an error of theirs is raised here."""
        for name, process in list(self.running.items()):
            if process.poll() is None:
                continue
            lines = process.communicate()[0].strip().splitlines() or [f"exit code {process.returncode}"]
            del self.running[name]
            try:
                outcome = json.loads(lines[-1])
            except ValueError:
                raise LapsusError(f"{name}: its training ended without a result ({lines[-1][:300]}).") from None
            if outcome.get("error"):
                raise LapsusError(outcome["error"])
            if outcome["interrupted"]:
                raise Interrupted

    def _stop(self) -> None:
        """Ask those that still run to save and end: their standard input closes."""
        for process in self.running.values():
            process.communicate()


class _Bars:
    """Progress of several networks: a bar for each on a terminal, else a line now and then."""

    def __init__(self, runs: list[Run], say: Callable[[str], None]):
        self.runs, self.say, self.told = runs, say, time.monotonic()
        self.shows = sys.stderr.isatty()
        self.bars = [
            tqdm(
                total=run.experiment.updates,
                desc=run.path.name,
                unit="update",
                position=place,
                disable=not self.shows,
                dynamic_ncols=True,
            )
            for place, run in enumerate(runs)
        ]

    def __enter__(self) -> "_Bars":
        return self

    def __exit__(self, *error: object) -> None:
        for bar in self.bars:
            bar.close()

    def update(self) -> None:
        """Read how far each network is."""
        tell = not self.shows and time.monotonic() - self.told > _TELL
        if not (self.shows or tell):
            return
        for run, bar in zip(self.runs, self.bars):
            last = (run.metrics() or [{"update": 0, "loss": float("nan")}])[-1]
            bar.n = last["update"]
            bar.set_postfix({"loss": f"{last['loss']:.4g}"}, refresh=True)
            if tell:
                self.say(
                    f"      {run.path.name}: update {last['update']:,} of {run.experiment.updates:,},"
                    f" loss {last['loss']:.4g}"
                )
        if tell:
            self.told = time.monotonic()


def main() -> None:
    """One network in this process: the job is a line of standard input, what became of it the last line of standard
    output. When the input closes, because whoever started this stops or is gone, training saves and ends."""
    job = json.loads(sys.stdin.readline())
    outcome: dict = {"interrupted": False}
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        if "run" in job:  # a network that is trained to its end, whatever becomes of it
            finished = train(Run(job["run"]), threads=job["threads"])
            outcome["interrupted"] = finished.reason == "interrupted"
            return
        discovery = Discovery(Path(job["folder"]), job["trust"])
        (run,) = (run for run in discovery.runs if run.path.name == job["network"])
        train_network(discovery, discovery.trials, run, SampleSizes(**job["sizes"]), job["threads"])
    except KeyboardInterrupt:
        outcome["interrupted"] = True
    except LapsusError as error:
        outcome["error"] = str(error)
    finally:
        print(json.dumps(outcome))


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _end_with_input() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
