"""lapsus doctor."""

import json as json_module
from pathlib import Path
from typing import Any

import typer

from lapsus.cli.table_options import reads_table
from lapsus.cli.words import as_typed


@reads_table
def command(trials: Path, json: bool = False, *, table: dict[str, Any]) -> None:
    """Say what was understood of a trial table: columns, unit, items, distances, swaps to expect, analyses.

    trials: Trial table or folder, as for lapsus fit.
    json: Print one JSON object.
    """
    from lapsus.fitting.examine import examine
    from lapsus.trials import read_trials

    examination = examine(read_trials(trials, **table))
    typer.echo(json_module.dumps(examination.to_dict()) if json else as_typed(examination.text()))
