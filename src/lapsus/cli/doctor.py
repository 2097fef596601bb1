"""lapsus doctor."""

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from lapsus.cli.fit import pairs


def command(
    trials: Annotated[Path, typer.Argument(help="Trial table or folder, as for lapsus fit.")],
    unit: Annotated[
        str | None, typer.Option(help="degrees, degrees_180 or radians.", show_default="read off the values")
    ] = None,
    probe_unit: Annotated[str | None, typer.Option(help="Unit of the probe feature.", show_default="the same")] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(help="Which column is which: response=response_ori (again for more).", show_default="by name"),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Use only rows with a value: condition=dual (again for more).", show_default="all"),
    ] = None,
    probe_positions: Annotated[
        int | None,
        typer.Option(help="Probes are numbers of so many places on a ring.", show_default="probes are angles"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what was understood of a trial table: columns, unit, items, distances, swaps to expect, analyses."""
    from lapsus.inference.examine import examine
    from lapsus.trials import read_trials

    table = read_trials(
        trials,
        unit,
        probe_unit,
        columns=pairs(columns, "--columns response=response_ori"),
        where=pairs(where, "--where condition=dual"),
        probe_positions=probe_positions,
    )
    found = examine(table)
    typer.echo(json_module.dumps(found.to_dict()) if json else found.text())
