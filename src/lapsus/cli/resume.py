"""lapsus resume."""

from pathlib import Path

import typer

from lapsus.cli.options import Engine, Minutes, Threads, Trust
from lapsus.cli.train import MicroBatch, Steps, go


def command(
    run: Path,
    steps: Steps = None,
    minutes: Minutes = None,
    engine: Engine = "auto",
    threads: Threads = None,
    micro_batch: MicroBatch = None,
    trust: Trust = False,
) -> None:
    """Continue a run from its newest checkpoint; it ends with the same bits as one that was never stopped.

    run: A run folder.
    """
    from lapsus.training.trainer import check_options
    from lapsus.zoo import Run

    options = {"steps": steps, "minutes": minutes, "engine": engine, "threads": threads, "micro_batch": micro_batch}
    check_options(**options)  # type: ignore[arg-type]  # mypy does not tell the keywords apart
    opened = Run(run, trust)
    if opened.update >= opened.experiment.updates:
        opened.model()  # refuses a config that was changed, which asks for another training
        opened.tidy()
        typer.echo(f"{run} is trained to its end. `lapsus evaluate {run}` measures it.")
        return
    go(opened, **options)
