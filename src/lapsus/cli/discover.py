"""lapsus discover."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lapsus.cli.table_options import reads_table
from lapsus.cli.train import Trust
from lapsus.cli.words import as_typed


@reads_table
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
    minutes: Annotated[float, typer.Option(help="Time for everything together.")] = 12.0,
    cueing: Annotated[
        str,
        typer.Option(
            help=(
                "feature (the network sees both features), index (it is told which item), or auto: feature where the"
                " table has a probe feature."
            )
        ),
    ] = "auto",
    objectives: Annotated[
        str | None,
        typer.Option(
            help="What networks are trained by: diffusion, energy, or both as diffusion,energy.",
            show_default="both, or that of --start-from",
        ),
    ] = None,
    networks: Annotated[int, typer.Option(help="Networks to train by each objective; they share the time.")] = 1,
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
    seed: Annotated[int, typer.Option(help="Seed of fit and networks.")] = 1,
    recording: Annotated[
        str | None,
        typer.Option(help="An NWB file of the same task: the report says which of the networks it resembles."),
    ] = None,
    recording_columns: Annotated[
        str | None, typer.Option(help="Which columns of its trials hold what: dandi-000620, or a TOML file.")
    ] = None,
    recording_align: Annotated[
        str, typer.Option(help="Event that its time bins are aligned to; stimulus,cue has delays on two clocks.")
    ] = "cue",
    trust: Trust = False,
    design: Annotated[
        Path | None,
        typer.Option(help="A design file, for experiments other than delayed estimation.", show_default="none"),
    ] = None,
    *,
    table: dict[str, Any],
) -> None:
    """From a trial table to a mechanism: fit, train networks that make the same errors, analyse them, report."""
    if design is not None:
        _with_design(trials, design, minutes, objectives, networks, output, seed)
        return
    from lapsus.pipeline.stages import discover
    from lapsus.pipeline.training import Interrupted

    try:
        found = discover(
            trials,
            subject=subject or None,
            set_size=set_size,
            cueing=cueing,
            minutes=minutes,
            objectives=None if objectives is None else [one.strip() for one in objectives.split(",")],
            networks=networks,
            output=output,
            start_from=start_from,
            seed=seed,
            trust=trust,
            recording=recording,
            reading={"columns": recording_columns, "align": recording_align},
            say=lambda text: typer.echo(as_typed(text), err=True),
            **table,
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


def _with_design(
    trials: Path | None,
    design: Path,
    minutes: float,
    objectives: str | None,
    networks: int,
    output: Path | None,
    seed: int,
) -> None:
    """The same for a table whose columns a design file describes."""
    from lapsus.errors import LapsusError
    from lapsus.pipeline.designed import discover_design

    if trials is None:
        raise LapsusError("A design describes a table; name the table, as in `lapsus discover TABLE --design FILE`.")
    try:
        found = discover_design(
            trials,
            design,
            output=output,
            minutes=minutes,
            objectives=None if objectives is None else [one.strip() for one in objectives.split(",")],
            networks=networks,
            seed=seed,
            say=lambda text: typer.echo(as_typed(text), err=True),
        )
    except KeyboardInterrupt:
        typer.echo("Interrupted; all is saved. The same command continues.", err=True)
        raise typer.Exit(130) from None
    for number, sentence in enumerate(found.sentences, 1):
        typer.echo(f"{number}. {sentence}")
    typer.echo(f"\n{found.seconds:.0f} s. The report is {found.report}")
