"""lapsus discover."""

from pathlib import Path
from typing import Annotated

import typer

from lapsus.cli.fit import ProbeUnit, Unit
from lapsus.cli.train import Trust
from lapsus.cli.words import as_typed


def command(
    trials: Annotated[
        Path | None,
        typer.Argument(
            help="Trial table: .csv, .tsv, .parquet or .mat, or a folder of van den Berg et al. (2012) recordings.",
            show_default="a synthetic observer",
        ),
    ] = None,
    subject: Annotated[
        list[str] | None, typer.Option(help="Use only this subject; repeatable.", show_default="all together")
    ] = None,
    minutes: Annotated[float, typer.Option(help="Time for everything together.")] = 10.0,
    cueing: Annotated[
        str,
        typer.Option(
            help=(
                "feature (the network sees both features), index (it is told which item), or auto: feature where the"
                " table has a probe feature."
            )
        ),
    ] = "auto",
    networks: Annotated[int, typer.Option(help="Networks to train; they share the time.")] = 1,
    set_size: Annotated[
        int | None, typer.Option(help="Use trials with this number of items.", show_default="the smallest from 2 on")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for everything.", show_default="runs/discover-NAME")
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(
            help="A run folder or shipped network to start from.",
            show_default="one that never swaps, of another seed for each network",
        ),
    ] = None,
    unit: Unit = None,
    probe_unit: ProbeUnit = None,
    seed: Annotated[int, typer.Option(help="Seed of fit and networks.")] = 1,
    trust: Trust = False,
) -> None:
    """From a trial table to a mechanism: fit, train a network that makes the same errors, analyse it, write a
    report."""
    from lapsus.pipeline.stages import Interrupted, discover

    try:
        found = discover(
            trials,
            subject=subject or None,
            set_size=set_size,
            cueing=cueing,
            minutes=minutes,
            networks=networks,
            output=output,
            start_from=start_from,
            unit=unit,
            probe_unit=probe_unit,
            seed=seed,
            trust=trust,
            say=lambda text: typer.echo(as_typed(text), err=True),
        )
    except Interrupted:
        typer.echo("Interrupted; all is saved. The same command continues.", err=True)
        raise typer.Exit(130) from None
    for number, sentence in enumerate(found.sentences, 1):
        typer.echo(f"{number}. {sentence}")
    failed = [check for check in found.checks if check["status"] == "failed"]
    if failed:
        typer.echo("\nTo doubt:")
        for check in failed:
            typer.echo(f"- {check['name']}: {check['text']}")
    typer.echo(f"\n{found.facts['seconds']:.0f} s. The report is {found.report}")
