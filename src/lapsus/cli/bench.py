"""lapsus bench."""

from typing import Annotated

import typer

app = typer.Typer(help="Measure how fast lapsus is on this machine.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `engine` a command of its own while it is the only one."""


@app.command("engine")
def engine(
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    quick: Annotated[bool, typer.Option(help="Small batches only: under a minute.")] = False,
    plain: Annotated[
        bool, typer.Option(help="Also time the plain loop on 16,384 trials (about 8 GB, minutes).")
    ] = True,
) -> None:
    """Fused kernel against torch: training, simulation, arithmetic, memory, scaling."""
    import json

    from lapsus.training import bench

    report = bench.measure(quick=quick, plain=plain)
    typer.echo(json.dumps(report, indent=2) if json_ else bench.tables(report))
