"""lapsus report."""

from pathlib import Path
from typing import Annotated

import typer

from lapsus.cli.train import Trust
from lapsus.cli.words import on_terminal


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
    seed: Annotated[int | None, typer.Option(help="Seed of fresh conditions and noise.", show_default="1")] = None,
    trust: Trust = False,
) -> None:
    """Write one self-contained page about trained networks: behaviour, mechanism, and how sure it is."""
    from lapsus.pipeline.reports import write_report

    typer.echo(f"Written: {write_report(runs, output, seed, trust=trust, progress=on_terminal)}")
