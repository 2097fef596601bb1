"""lapsus train."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lapsus.zoo import Run

from pathlib import Path
from typing import Annotated

import typer

# Options that train and resume share.
Steps = Annotated[
    int | None, typer.Option("--steps", help="Stop after this number of further updates.", show_default="all stages")
]
Minutes = Annotated[
    float | None, typer.Option("--minutes", help="Stop after this many minutes of training.", show_default="no limit")
]
Engine = Annotated[str, typer.Option("--engine", help="auto, fused (the C++ kernel) or reference (plain torch).")]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads of the kernel.", show_default="all cores")]
MicroBatch = Annotated[
    int | None,
    typer.Option("--micro-batch", help="Conditions simulated at a time: less memory, same result.", show_default="all"),
]

# Conditions and trials from which the verdict after a training is made: two or three seconds.
_JUDGED = (2048, 16)

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
) -> None:
    """Train a network as an experiment file says, in a new run folder."""
    from lapsus.files import file_name, holds
    from lapsus.training import read_experiment
    from lapsus.training.experiment import experiment_table
    from lapsus.training.kinds import accepted, check_trust
    from lapsus.training.rehearsal import rehearse
    from lapsus.training.trainer import check_options
    from lapsus.zoo import Run
    from lapsus.zoo.runs import first_model

    overrides = list(set_ or []) + ([f"seed={seed}"] if seed is not None else [])
    described = read_experiment(experiment, overrides)
    options: dict[str, Any] = {
        "steps": steps,
        "minutes": minutes,
        "engine": engine,
        "threads": threads,
        "micro_batch": micro_batch,
    }
    check_options(**options)
    own = not holds(Path(experiment).parent, "run")  # else it may be anybody's
    check_trust(described.model_dump(), experiment, trust or own or accepted(experiment_table(experiment)))
    output = output or Path("runs") / f"{file_name(described.name)}-{described.seed}"
    rehearse(described, first_model(described, output.parent), engine, threads)
    run = Run.create(output, described)
    go(run, **options)


def go(run: "Run", **options: Any) -> None:
    """Train, then say what happened and what to do next."""
    from lapsus.training import train

    typer.echo(f"Training {run.experiment.name} in {run.path} ({run.experiment.updates:,} updates).", err=True)
    outcome = train(run, say=lambda line: typer.echo(line, err=True), **options)
    place = f"update {outcome.update:,} of {outcome.updates:,}"
    if outcome.reason == "done":
        typer.echo(f"Trained in {outcome.seconds / 60:.1f} min. `lapsus evaluate {run.path}` measures it in full.")
    else:
        why = {"interrupted": "Interrupted", "minutes": "Time is up", "steps": "Stopped"}[outcome.reason]
        typer.echo(f"{why} at {place}; all is saved. `lapsus resume {run.path}` continues.")
    if outcome.reason == "interrupted":
        raise typer.Exit(130)
    if outcome.reason in ("done", "minutes"):
        from lapsus.evaluation import evaluate
        from lapsus.evaluation.verdict import verdict

        found = evaluate(run.model(), *_JUDGED, engine=options.get("engine", "auto"))
        typer.echo(str(verdict(found, run.experiment.stage[-1].objective["kind"], outcome.reason == "minutes")))
