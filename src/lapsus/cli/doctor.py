"""lapsus doctor."""

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from lapsus.cli.fit import Columns, ProbePositions, ProbeUnit, Unit, Where, table_of
from lapsus.cli.words import as_typed


def command(
    trials: Annotated[Path, typer.Argument(help="Trial table or folder, as for lapsus fit.")],
    unit: Unit = None,
    probe_unit: ProbeUnit = None,
    columns: Columns = None,
    where: Where = None,
    probe_positions: ProbePositions = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what was understood of a trial table: columns, unit, items, distances, swaps to expect, analyses."""
    from lapsus.fitting.examine import examine

    found = examine(table_of(trials, unit, probe_unit, columns, where, probe_positions))
    typer.echo(json_module.dumps(found.to_dict()) if json else as_typed(found.text()))
