"""lapsus reproduce train."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lapsus.cli.options import Engine, Minutes, Threads

if TYPE_CHECKING:
    from lapsus.sweep.one_by_one import Job


def command(
    name: list[str] | None = None,
    collection: str = "paper",
    seeds: int = 1,
    runs: Path = Path("runs"),
    ship: Path | None = None,
    minutes: Minutes = None,
    engine: Engine = "auto",
    threads: Threads = None,
) -> None:
    """Train the paper's networks in the order of their warm starts: skips what is done, resumes what was cut off.

    name [NAME]...: Experiments to train, with what they start from; none means all of a collection.
    collection: Where no experiment is named: all of this collection, paper, persistent or open.
    seeds: Train seeds 1 to this number.
    runs: Folder of the run folders.
    ship: Export finished networks (weights, config, evaluation) to this folder.
    """
    from lapsus.evaluation.ship import is_shipped, ship as export
    from lapsus.files import make_folder
    from lapsus.sweep.one_by_one import jobs_of, train_all
    from lapsus.training.trainer import check_options
    from lapsus.zoo import Run
    from lapsus.zoo.shipped import check_collection, experiments_in

    check_options(engine, minutes=minutes, threads=threads)
    names = name or experiments_in(check_collection(collection))
    jobs = jobs_of(names, seeds, runs)
    if ship is not None:
        make_folder(ship)

    def told(job: "Job", what: str) -> None:
        typer.echo(_table(jobs, job, what), err=True)

    stopped = None
    for job, outcome in train_all(
        jobs, minutes, told, engine=engine, threads=threads, say=lambda line: typer.echo(line, err=True)
    ):
        stopped = None if outcome.reason == "done" else outcome
        if ship is not None and outcome.reason == "done":
            export(Run(job.path), ship)
    if ship is not None:
        for job in jobs:
            if job.done() and not is_shipped(run := Run(job.path), ship):
                export(run, ship)
    typer.echo(_table(jobs, None, ""))
    if stopped is not None:
        typer.echo("Stopped; the same command resumes.")
        raise typer.Exit(130 if stopped.reason == "interrupted" else 0)


def _table(jobs: "list[Job]", current: "Job | None", what: str) -> str:
    """One line per network: done, how far, or waiting."""
    lines = [f"{'network':34} {'updates':>15}  state"]
    for job in jobs:
        update, total = job.update(), job.experiment.updates
        state = what if job is current else "done" if update >= total else "cut off" if update else "waiting"
        lines.append(f"{job.name:34} {update:7,}/{total:7,}  {state}")
    return "\n".join(lines) + ("\n" if sys.stderr.isatty() else "")
