"""lapsus fit."""

import json as json_module
from pathlib import Path
from typing import Annotated

import typer


def command(
    trials: Annotated[
        Path,
        typer.Argument(
            help="Trial table: .csv, .tsv, .parquet or .mat, or a folder of van den Berg et al. (2012) recordings."
        ),
    ],
    model: Annotated[
        str, typer.Option(help="none, constant, probe, report, both, or auto: compare them all.")
    ] = "auto",
    by: Annotated[
        str | None,
        typer.Option(
            help="subject (a fit each) or hierarchical (one swap function, own emissions).", show_default="all together"
        ),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="degrees, degrees_180 or radians.", show_default="read off the values")
    ] = None,
    probe_unit: Annotated[str | None, typer.Option(help="Unit of the probe feature.", show_default="the same")] = None,
    set_size: Annotated[
        int | None, typer.Option(help="Use only trials with so many items.", show_default="all")
    ] = None,
    emission: Annotated[str, typer.Option(help="von_mises, wrapped_stable or plane.")] = "von_mises",
    uniform: Annotated[bool, typer.Option("--uniform/--no-uniform", help="Allow uniform guesses.")] = True,
    even: Annotated[bool, typer.Option("--even/--signed", help="f of the distance alone, or of its sign too.")] = True,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for results and plots.", show_default="none")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the posterior draws.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier fit in the folder.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
):
    """Fit swap models to a trial table: swap rates, the swap function with its uncertainty, plots, a summary."""
    import numpy as np

    from lapsus.errors import LapsusError
    from lapsus.inference import fit
    from lapsus.inference.files import check_folder
    from lapsus.trials import read_trials

    if output is not None and check_folder(output) and not force:
        raise LapsusError(f"{output}: holds an earlier fit; --force replaces it, -o names another folder.")
    if seed < 0:
        raise LapsusError(f"--seed must not be negative (it is {seed}).")
    table = read_trials(trials, unit, probe_unit)
    if set_size is not None:
        if not (table.set_size == set_size).any():
            sizes = ", ".join(map(str, np.unique(table.set_size)))
            raise LapsusError(f"{trials}: no trial has set size {set_size}; the table has {sizes}.")
        table = table[table.set_size == set_size]
    result = fit(table, model, emission, uniform, even, by, seed)
    if output is not None:
        from lapsus.plots.fits import save_all

        save_all(result, result.save(output))
    typer.echo(json_module.dumps(result.to_dict()) if json else result.summary())
    if output is not None and not json:
        typer.echo(f"\nWritten to {output}.")
