"""The members of a plan one after another in this process, each with all cores: what `lapsus reproduce train` does."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lapsus.files import holds
from lapsus.sweep.plan import plan_networks
from lapsus.training.experiment import Experiment
from lapsus.training.trainer import Outcome, train
from lapsus.zoo.runs import Run


@dataclass(frozen=True)
class Job:
    """One network of one seed, in its run folder."""

    experiment: Experiment
    path: Path

    @property
    def name(self) -> str:
        """As it is said while it runs."""
        return f"{self.experiment.name}, seed {self.experiment.seed}"

    def update(self) -> int:
        """How far its newest checkpoint is; 0 if it has not begun."""
        return Run.of(self.path, self.experiment).update if holds(self.path, "run") else 0

    def done(self) -> bool:
        """Whether all its updates are made."""
        return self.update() >= self.experiment.updates


def jobs_of(names: list[str], seeds: int, folder: Path) -> list[Job]:
    """Jobs for the named experiments and what they start from, each after its start."""
    plan = plan_networks(names, seeds, folder)
    return [Job(plan.experiment(name), folder / name) for name in plan.members]


def train_all(
    jobs: list[Job],
    minutes: float | None = None,
    told: Callable[[Job, str], None] = lambda job, what: None,
    **options: Any,
) -> Iterator[tuple[Job, Outcome]]:
    """Train the jobs that are not done, one after another, for at most so many minutes altogether."""
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    for job in jobs:
        if job.done():
            continue
        left = None if deadline is None else (deadline - time.monotonic()) / 60
        if left is not None and left <= 0:
            return
        run = Run.of(job.path, job.experiment)
        told(job, "resuming" if run.update else "training")
        outcome = train(run, minutes=left, **options)
        yield job, outcome
        if outcome.reason != "done":
            return
