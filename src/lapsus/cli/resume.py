"""lapsus resume."""

from pathlib import Path
from typing import Annotated

import typer

from lapsus.cli.train import Engine, MicroBatch, Minutes, Steps, Threads, Trust, go


def command(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    steps: Steps = None,
    minutes: Minutes = None,
    engine: Engine = "auto",
    threads: Threads = None,
    micro_batch: MicroBatch = None,
    trust: Trust = False,
) -> None:
    """Continue a run from its newest checkpoint; it ends with the same bits as one that was never stopped."""
    from lapsus.training.trainer import check_options
    from lapsus.zoo import Run

    check_options(engine, steps=steps, minutes=minutes, threads=threads, micro_batch=micro_batch)
    opened = Run(run, trust)
    if opened.update >= opened.experiment.updates:
        opened.tidy()
        typer.echo(f"{run} is trained to its end. `lapsus evaluate {run}` measures it.")
        return
    go(opened, steps=steps, minutes=minutes, engine=engine, threads=threads, micro_batch=micro_batch)
