"""lapsus design."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    table: Annotated[Path, typer.Argument(help="Trial table: .csv, .tsv or .parquet, one row per trial.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write.", show_default="TABLE.design.toml")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write a design file for a table of any experiment, guessed from its columns; edit it, then fit or discover."""
    from lapsus.designs import guess_design, read_table
    from lapsus.errors import LapsusError
    from lapsus.files import short, write_text

    place = output or table.with_suffix(".design.toml")
    if place.exists() and not force:
        raise LapsusError(f"{short(place)} is there already; name another file, or replace it with `force=True`.")
    found = guess_design(read_table(table), short(table))
    write_text(place, found.text())
    typer.echo(f"{found.text()}\nWritten to {place}. Check kinds, periods and epochs, then:")
    typer.echo(f"  lapsus fit {table} --design {place}\n  lapsus discover {table} --design {place}")
