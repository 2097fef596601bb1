"""lapsus discover."""

from pathlib import Path
from typing import Any

import typer

from lapsus.cli.options import Trust
from lapsus.cli.table_options import reads_table
from lapsus.cli.words import as_typed


@reads_table
def command(
    trials: Path | None = None,
    subject: list[str] | None = None,
    minutes: float = 12.0,
    cueing: str = "auto",
    objectives: str | None = None,
    networks: int = 1,
    set_size: int | None = None,
    output: Path | None = None,
    start_from: str | None = None,
    seed: int = 1,
    recording: str | None = None,
    recording_columns: str | None = None,
    recording_align: str = "cue",
    trust: Trust = False,
    design: Path | None = None,
    *,
    table: dict[str, Any],
) -> None:
    """From a trial table to a mechanism: fit, train networks that make the same errors, analyse them, report.

    trials trials: Trial table: .csv, .tsv, .parquet or .mat, or a folder of van den Berg et al. (2012) recordings.
        [default: a synthetic observer]
    subject: Use only this subject; repeatable. [default: all together]
    minutes: Time for everything together.
    cueing: feature (the network sees both features), index (it is told which item), or auto: feature where the table
        has a probe feature.
    objectives: What networks are trained by: diffusion, energy, or both as diffusion,energy.
        [default: both, or that of --start-from]
    networks: Networks to train by each objective; they share the time.
    set_size: Use trials with this number of items. [default: the smallest from 2 on]
    output: Folder for everything. [default: runs/discover-NAME]
    start_from: A run folder or shipped network to start from.
        [default: one that never swaps, of another seed for each network]
    seed: Seed of fit and networks.
    recording: An NWB file of the same task: the report says which of the networks it resembles. [default: none]
    recording_columns: Which columns of its trials hold what: dandi-000620, or a TOML file.
    recording_align: Event that its time bins are aligned to; stimulus,cue has delays on two clocks.
    design: A design file, for experiments other than delayed estimation. [default: none]
    """
    if design is not None:
        _with_design(trials, design, minutes, objectives, networks, output, seed)
        return
    from lapsus.pipeline.stages import discover
    from lapsus.pipeline.training import Interrupted

    try:
        discovery = discover(
            trials,
            subject=subject or None,
            set_size=set_size,
            cueing=cueing,
            minutes=minutes,
            objectives=None if objectives is None else [name.strip() for name in objectives.split(",")],
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
    for number, sentence in enumerate(discovery.sentences, 1):
        typer.echo(f"{number}. {sentence}")
    failed = [check for check in discovery.checks if check["status"] == "failed"]
    if failed:
        typer.echo("\nTo doubt:")
        for check in failed:
            typer.echo(f"- {check['name']}: {check['text']}")
    typer.echo(f"\n{discovery.facts['seconds']:.0f} s. The report is {discovery.report}")


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
