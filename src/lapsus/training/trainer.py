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
        last = training.update  # of the checkpoint that is on disk for certain
        if last == 0:
            run.save(training)
        here = saved = mark = time.monotonic()
        started = here - training.seconds  # as if it had never stopped
        reason, trials_since = "done" if until == total else "steps", 0
        show = sys.stderr.isatty() if progress is None else progress
        bar = tqdm(
            total=until, initial=training.update, unit="update", disable=not show, dynamic_ncols=True, smoothing=0.1
        )
        shown: dict[str, str] = {}
        with _polite_interrupt() as asked, bar:
            try:
                for state in training.run(until, excess_every=_METRICS_EVERY):
                    trials_since += state.trials
                    now = time.monotonic()
                    training.seconds = now - started
                    if state.excess is not None or state.update % _METRICS_EVERY == 0 or state.update == until:
                        rate = trials_since / max(now - mark, 1e-9)
                        mark, trials_since = now, 0
                        _log(run, state, rate, training.seconds)
                        shown |= {"loss": f"{state.loss:.4g}", "trials/s": f"{rate:.0f}"}
                        if state.excess is not None:
                            shown["excess"] = f"{state.excess:.3f}"
                        stage = run.experiment.stage[state.stage]
                        bar.set_description(
                            stage.name or f"stage {state.stage + 1}/{len(run.experiment.stage)}", refresh=False
                        )
                        bar.set_postfix(shown, refresh=False)
                    bar.update()
                    if asked.is_set() or (stop is not None and state.update % _METRICS_EVERY == 0 and stop()):
                        reason = "interrupted"
                        break
                    if minutes is not None and now - here > 60 * minutes and state.update < until:
                        reason = "minutes"
                        break
                    if now - saved > checkpoint_seconds:
                        run.save(training)
                        saved, last = now, state.update
                        if say and not show:
                            say(
                                f"update {state.update:,} of {until:,}: "
                                + ", ".join(f"{k} {v}" for k, v in shown.items())
                            )
            except NonFinite as error:
                raise LapsusError(
                    f"{error} The last good checkpoint, at update {last}, is kept in {run.path}."
                ) from error
        training.seconds = time.monotonic() - started
        if last != training.update:
            run.save(training)
        return Outcome(reason, training.update, total, training.seconds)


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
