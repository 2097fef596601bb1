"""lapsus train."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lapsus.cli.options import Engine, Minutes, Threads, Trust

if TYPE_CHECKING:
    from lapsus.zoo import Run

# Options that train and resume share.
Steps = Annotated[
    int | None, typer.Option("--steps", help="Stop after this number of further updates.", show_default="all stages")
]
MicroBatch = Annotated[
    int | None,
    typer.Option("--micro-batch", help="Conditions simulated at a time: less memory, same result.", show_default="all"),
]

# Conditions and trials from which the verdict after a training is made: two or three seconds.
_JUDGED = (2048, 16)


def command(
    experiment: str,
    output: Path | None = None,
    seed: int | None = None,
    set_: list[str] | None = None,
    steps: Steps = None,
    minutes: Minutes = None,
    engine: Engine = "auto",
    threads: Threads = None,
    micro_batch: MicroBatch = None,
    trust: Trust = False,
) -> None:
    """Train a network as an experiment file says, in a new run folder.

    experiment: An experiment file (.toml), or the name of one that ships with lapsus.
    output: Run folder to make. [default: runs/NAME-SEED]
    seed: Seed of weights and draws. [default: the file's]
    set_ KEY=VALUE: Change a field, as in task.delay=10 or stage.0.updates=500; repeatable.
    """
    from lapsus.files import file_name
    from lapsus.training import read_experiment
    from lapsus.training.kinds import check_trust, from_user
    from lapsus.training.rehearsal import rehearse
    from lapsus.training.trainer import check_options
    from lapsus.zoo import Run
    from lapsus.zoo.runs import first_model

    overrides = [*(set_ or []), *([] if seed is None else [f"seed={seed}"])]
    described = read_experiment(experiment, overrides)
    options: dict[str, Any] = {
        "steps": steps,
        "minutes": minutes,
        "engine": engine,
        "threads": threads,
        "micro_batch": micro_batch,
    }
    check_options(**options)
    check_trust(described.model_dump(), experiment, trust or from_user(experiment))
    output = output or Path("runs") / f"{file_name(described.name)}-{described.seed}"
    rehearse(described, first_model(described, output.parent), engine, threads)
    go(Run.create(output, described), **options)


def go(run: "Run", **options: Any) -> None:
    """Train, then say what happened and what to do next."""
    from lapsus.evaluation import evaluate
    from lapsus.evaluation.verdict import verdict
    from lapsus.training import train

    experiment = run.experiment
    typer.echo(f"Training {experiment.name} in {run.path} ({experiment.updates:,} updates).", err=True)
    outcome = train(run, say=lambda line: typer.echo(line, err=True), **options)
    reason = outcome.reason
    if reason == "done":
        typer.echo(f"Trained in {outcome.seconds / 60:.1f} min. `lapsus evaluate {run.path}` measures it in full.")
    else:
        why = {"interrupted": "Interrupted", "minutes": "Time is up", "steps": "Stopped"}[reason]
        progress = f"update {outcome.update:,} of {outcome.updates:,}"
        typer.echo(f"{why} at {progress}; all is saved. `lapsus resume {run.path}` continues.")
    if reason == "interrupted":
        raise typer.Exit(130)
    if reason != "steps":
        measured = evaluate(run.model(), *_JUDGED, engine=options["engine"])
        typer.echo(str(verdict(measured, experiment.stage[-1].objective["kind"], reason == "minutes")))
