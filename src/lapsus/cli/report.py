"""lapsus report."""

from pathlib import Path
from typing import Annotated

import typer

from lapsus.cli.train import Trust


def command(
    runs: Annotated[
        list[str],
        typer.Argument(help="Run folders or shipped networks, several side by side; or the folder of a discovery."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="HTML file to write.", show_default="report.html in the run, or here for several"
        ),
    ] = None,
    trust: Trust = False,
    seed: Annotated[int, typer.Option(help="Seed of fresh conditions and noise.")] = 1,
):
    """Write one self-contained page about trained networks: behaviour, mechanism, and how sure it is."""
    from lapsus.report import runs_page

    typer.echo(f"Written: {runs_page(runs, output, seed, trust)}")
