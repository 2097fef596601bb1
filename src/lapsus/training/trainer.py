"""Train a run: progress, checkpoints, metrics, and a clean stop."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tqdm import tqdm

from lapsus.engine import ENGINES
from lapsus.errors import LapsusError
from lapsus.training.experiment import Experiment
from lapsus.training.loop import NonFinite, Progress, Training

# Metrics, the excess among them, are taken every so many updates.
_METRICS_EVERY = 20


class Trainable(Protocol):
    """What train() asks of a run folder (lapsus.zoo.Run): to hand out its training and to keep what comes of it."""

    path: Path
    experiment: Experiment

    def writing(self) -> AbstractContextManager[None]:
        """Have the folder alone."""

    def training(self, **options: Any) -> Training:
        """The training as the newest checkpoint left it."""

    def save(self, training: Training) -> None:
        """Write a checkpoint."""

    def cut_metrics(self, update: int) -> None:
        """Forget metrics of updates after this one."""

    def log(self, line: dict) -> None:
        """One more line of metrics."""


@dataclass(frozen=True)
class Outcome:
    """Why training stopped ("done", "steps", "minutes", "interrupted") and how far it is."""

    reason: str
    update: int
    updates: int
    seconds: float


@contextmanager
def _polite_interrupt() -> Iterator[threading.Event]:
    """The first Ctrl-C (or SIGTERM) asks the loop to stop after the current update; a second one stops at once."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def handler(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def check_options(engine: str = "auto", **numbers: float | None) -> None:
    """Refuse what cannot be trained with, before anything is made."""
    if engine not in ENGINES:
        raise LapsusError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}.")
    for name, value in numbers.items():
        if value is not None and not value > 0:
            raise LapsusError(f"--{name.replace('_', '-')} must be positive, not {value}.")


def train(
    run: Trainable,
    *,
    steps: int | None = None,
    minutes: float | None = None,
    engine: str = "auto",
    threads: int | None = None,
    micro_batch: int | None = None,
    progress: bool | None = None,
    checkpoint_seconds: float = 60.0,
    say: Callable[[str], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Outcome:
    """Train the run from where it stands to the end of its stages, or for so many more updates or minutes.

    A bar shows loss, excess over the Bayes denoiser and trials per second; metrics.jsonl keeps them. Where there is no
    terminal, `say` gets a line of them with every checkpoint. Interrupting saves; so does `stop`, which is asked with
    every line of metrics and ends the training when it says so.

    >>> run = lapsus.Run.create("short", lapsus.read_experiment("index-swap-10"))
    >>> lapsus.train(run, steps=1, progress=False).reason
    'steps'
    """
    check_options(steps=steps, minutes=minutes, engine=engine, threads=threads, micro_batch=micro_batch)
    with run.writing():
        training = run.training(engine=engine, threads=threads, micro_batch=micro_batch)
        total = run.experiment.updates
        until = total if steps is None else min(total, training.update + steps)
        run.cut_metrics(training.update)
        begun = time.monotonic()
        started = begun - training.seconds  # as if it had never stopped
        checkpoints = _Checkpoints(run, training, checkpoint_seconds)
        with _polite_interrupt() as interrupted, _Metrics(run, training.update, until, progress) as metrics:
            limits = _Limits(until, begun, minutes, stop, interrupted)
            reason = None
            try:
                for state in training.run(until, excess_every=_METRICS_EVERY):
                    now = time.monotonic()
                    training.seconds = now - started
                    metrics.add(state, now, training.seconds)
                    if reason := limits.reached(state.update, now):
                        break
                    if checkpoints.save_if_due(now) and say and not metrics.on_terminal:
                        say(f"update {state.update:,} of {until:,}: {metrics.latest()}")
            except NonFinite as error:
                kept = f"The last good checkpoint, at update {checkpoints.update}, is kept in {run.path}."
                raise LapsusError(f"{error} {kept}") from error
        training.seconds = time.monotonic() - started
        checkpoints.save_last()
        at_end = "done" if until == total else "steps"
        return Outcome(reason or at_end, training.update, total, training.seconds)


@dataclass(frozen=True)
class _Limits:
    """What ends a training before update `until`: minutes since `begun`, `stop`, or an interrupt."""

    until: int
    begun: float
    minutes: float | None
    stop: Callable[[], bool] | None
    interrupted: threading.Event

    def reached(self, update: int, now: float) -> str | None:
        """Why it ends after this update, if it does; `stop` is asked with every line of metrics."""
        asked_to_stop = self.stop is not None and update % _METRICS_EVERY == 0 and self.stop()
        if self.interrupted.is_set() or asked_to_stop:
            return "interrupted"
        if self.minutes is not None and now - self.begun > 60 * self.minutes and update < self.until:
            return "minutes"
        return None


class _Checkpoints:
    """Those that this training writes; `update` is that of the newest one which is on disk for certain."""

    def __init__(self, run: Trainable, training: Training, every: float) -> None:
        self.run, self.training, self.every = run, training, every
        self.update, self.written = training.update, time.monotonic()
        if self.update == 0:
            run.save(training)

    def save_if_due(self, now: float) -> bool:
        """Write one if the last is older than `every` seconds."""
        if now - self.written <= self.every:
            return False
        self.run.save(self.training)
        self.update, self.written = self.training.update, now
        return True

    def save_last(self) -> None:
        """Write one unless there is one of this update."""
        if self.update != self.training.update:
            self.run.save(self.training)


class _Metrics:
    """The lines of metrics.jsonl, and the newest numbers on a bar."""

    def __init__(self, run: Trainable, update: int, until: int, progress: bool | None) -> None:
        self.run, self.until = run, until
        self.on_terminal = sys.stderr.isatty() if progress is None else progress
        self.bar = tqdm(
            total=until, initial=update, unit="update", disable=not self.on_terminal, dynamic_ncols=True, smoothing=0.1
        )
        self.shown: dict[str, str] = {}
        self.trials, self.since = 0, time.monotonic()  # since the last line

    def __enter__(self) -> "_Metrics":
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def add(self, state: Progress, now: float, seconds: float) -> None:
        """Take up one update; every so many updates a line is written."""
        self.trials += state.trials
        if state.excess is not None or state.update % _METRICS_EVERY == 0 or state.update == self.until:
            trials_per_second = self.trials / max(now - self.since, 1e-9)
            self.trials, self.since = 0, now
            _log(self.run, state, trials_per_second, seconds)
            self._show(state, trials_per_second)
        self.bar.update()

    def latest(self) -> str:
        """The newest numbers in words."""
        return ", ".join(f"{name} {value}" for name, value in self.shown.items())

    def _show(self, state: Progress, trials_per_second: float) -> None:
        self.shown |= {"loss": f"{state.loss:.4g}", "trials/s": f"{trials_per_second:.0f}"}
        if state.excess is not None:
            self.shown["excess"] = f"{state.excess:.3f}"
        stages = self.run.experiment.stage
        self.bar.set_description(stages[state.stage].name or f"stage {state.stage + 1}/{len(stages)}", refresh=False)
        self.bar.set_postfix(self.shown, refresh=False)


def _log(run: Trainable, state: Progress, trials_per_second: float, seconds: float) -> None:
    line: dict[str, Any] = {
        "update": state.update,
        "stage": state.stage,
        "loss": state.loss,
        **{f"loss_{k}": v for k, v in state.terms.items()},
        "learning_rate": state.learning_rate,
        "gradient_norm": state.gradient_norm,
        "trials_per_second": round(trials_per_second, 1),
        "seconds": round(seconds, 2),
    }
    if state.excess is not None:
        line["excess"] = state.excess
    if state.durations:
        line["durations"] = state.durations
    if state.rate is not None:
        line |= {"rate": state.rate, "rate_price": state.price}
    run.log(line)
