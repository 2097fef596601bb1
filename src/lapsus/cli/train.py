"""lapsus train."""

from pathlib import Path
from typing import Annotated

import typer

# Options that train and resume share.
Steps = Annotated[
    int | None, typer.Option("--steps", help="Stop after so many more updates.", show_default="all stages")
]
Minutes = Annotated[
    float | None, typer.Option("--minutes", help="Stop after so many minutes of training.", show_default="no limit")
]
Engine = Annotated[str, typer.Option("--engine", help="auto, fused (the C++ kernel) or reference (plain torch).")]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads of the kernel.", show_default="all cores")]
MicroBatch = Annotated[
    int | None,
    typer.Option("--micro-batch", help="Conditions simulated at a time: less memory, same result.", show_default="all"),
]

Trust = Annotated[
    bool, typer.Option("--trust", help="Import classes outside of lapsus that it names: this runs their code.")
]


def command(
    experiment: Annotated[
        str, typer.Argument(help="An experiment file (.toml), or the name of one that ships with lapsus.")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Run folder to make.", show_default="runs/NAME-SEED")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights and draws.", show_default="the file's")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change a field, as in task.delay=10 or stage.0.updates=500; repeatable."
        ),
    ] = None,
    steps: Steps = None,
    minutes: Minutes = None,
    engine: Engine = "auto",
    threads: Threads = None,
    micro_batch: MicroBatch = None,
    trust: Trust = False,
):
    """Train a network as an experiment file says, in a new run folder."""
    from lapsus.files import file_name
    from lapsus.library import Run
    from lapsus.library.runs import first_model
    from lapsus.training import read_experiment
    from lapsus.training.kinds import check_trust
    from lapsus.training.trainer import check_options

    overrides = list(set_ or []) + ([f"seed={seed}"] if seed is not None else [])
    described = read_experiment(experiment, overrides)
    options = {"steps": steps, "minutes": minutes, "engine": engine, "threads": threads, "micro_batch": micro_batch}
    check_options(**options)
    check_trust(described.model_dump(), experiment, trust, own=True)
    output = output or Path("runs") / f"{file_name(described.name)}-{described.seed}"
    check(described, first_model(described, output.parent, trust), engine, threads)
    run = Run.create(output, described)
    go(run, **options)


def check(experiment, model=None, engine: str = "auto", threads: int | None = None) -> None:
    """One update of a few conditions in each stage: what cannot be trained is said before a folder is made."""
    from lapsus.training.loop import NonFinite, Training
    from lapsus.training.model import Model

    model = Model.of(experiment) if model is None else model
    tried = [
        stage.model_copy(update={"updates": 1, "conditions": min(stage.conditions, 4), "hard": 0.0})
        for stage in experiment.stage
        if stage.updates
    ]
    if tried:
        try:
            for _ in Training(
                experiment.model_copy(update={"stage": tried}), model, engine=engine, threads=threads
            ).run():
                pass
        except NonFinite:
            pass  # so few conditions do not tell


def go(run, **options) -> None:
    """Train, then say what happened and what to do next."""
    from lapsus.training import train

    typer.echo(f"Training {run.experiment.name} in {run.path} ({run.experiment.updates:,} updates).", err=True)
    outcome = train(run, say=lambda line: typer.echo(line, err=True), **options)
    place = f"update {outcome.update:,} of {outcome.updates:,}"
    if outcome.reason == "done":
        typer.echo(f"Trained in {outcome.seconds / 60:.1f} min. `lapsus evaluate {run.path}` measures it.")
    else:
        why = {"interrupted": "Interrupted", "minutes": "Time is up", "steps": "Stopped"}[outcome.reason]
        typer.echo(f"{why} at {place}; all is saved. `lapsus resume {run.path}` goes on.")
    if outcome.reason == "interrupted":
        raise typer.Exit(130)
