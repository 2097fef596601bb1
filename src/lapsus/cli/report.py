"""lapsus report."""

from pathlib import Path

import typer

from lapsus.cli.options import Trust
from lapsus.cli.words import on_terminal


def command(runs: list[str], output: Path | None = None, seed: int | None = None, trust: Trust = False) -> None:
    """Write one self-contained page about trained networks: behaviour, mechanism, and how sure it is.

    runs: Run folders or shipped networks, several side by side; or the folder of a discovery.
    output: HTML file to write. [default: report.html in the run, or here for several]
    seed: Seed of fresh conditions and noise. [default: 1]
    """
    from lapsus.pipeline.reports import write_report

    typer.echo(f"Written: {write_report(runs, output, seed, trust=trust, progress=on_terminal)}")
