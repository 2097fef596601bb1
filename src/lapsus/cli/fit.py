"""lapsus fit."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapsus.cli.words import as_typed

if TYPE_CHECKING:
    from lapsus.trials import Trials

Unit = Annotated[str | None, typer.Option(help="degrees, degrees_180 or radians.", show_default="read off the values")]
ProbeUnit = Annotated[str | None, typer.Option(help="Unit of the probe feature.", show_default="the same")]
Columns = Annotated[
    list[str] | None,
    typer.Option(help="Which column is which: response=response_ori (again for more).", show_default="by name"),
]
Where = Annotated[
    list[str] | None,
    typer.Option(help="Use only rows with a value: condition=dual (again for more).", show_default="all"),
]
ProbePositions = Annotated[
    int | None, typer.Option(help="Probes are numbers of so many places on a ring.", show_default="probes are angles")
]


def table_of(
    path: Path,
    unit: str | None,
    probe_unit: str | None,
    columns: list[str] | None,
    where: list[str] | None,
    probe_positions: int | None,
) -> "Trials":
    """The trials that the options above describe."""
    from lapsus.trials import read_trials

    named = _pairs(columns, "--columns response=response_ori")
    kept = _pairs(where, "--where condition=dual")
    return read_trials(path, unit, probe_unit, columns=named, where=kept, probe_positions=probe_positions)


def command(
    trials: Annotated[
        Path,
        typer.Argument(
            help="Trial table: .csv, .tsv, .parquet, .mat, .rds or .rda; a folder of BIDS _beh.tsv files or of van den"
            " Berg et al. (2012) recordings."
        ),
    ],
    model: Annotated[
        str, typer.Option(help="none, constant, probe, report, both, or auto: compare them all.")
    ] = "auto",
    by: Annotated[
        str | None,
        typer.Option(
            help="subject (a fit each), hierarchical (subjects around a population), or a column of the table whose"
            " values are compared (condition, group).",
            show_default="all together",
        ),
    ] = None,
    unit: Unit = None,
    probe_unit: ProbeUnit = None,
    set_size: Annotated[
        int | None, typer.Option(help="Use only trials with so many items.", show_default="all")
    ] = None,
    columns: Columns = None,
    where: Where = None,
    probe_positions: ProbePositions = None,
    feature_name: Annotated[
        str | None, typer.Option(help="What to call the reported feature: orientation, …", show_default="report")
    ] = None,
    probe_name: Annotated[
        str | None, typer.Option(help="What to call the probe feature: position, …", show_default="probe")
    ] = None,
    emission: Annotated[
        str | None,
        typer.Option(
            help="von_mises, variable_precision, wrapped_stable, plane, or auto: compare the first three.",
            show_default="auto with model auto, else von_mises",
        ),
    ] = None,
    sets: Annotated[
        str, typer.Option(help="How f differs between set sizes: shared, offsets, shapes, or auto: compare them.")
    ] = "auto",
    bias: Annotated[
        bool | None,
        typer.Option(
            "--bias/--no-bias", help="A constant shift of all responses.", show_default="where it predicts better"
        ),
    ] = None,
    apart: Annotated[
        float | None,
        typer.Option(
            help="Non-targets further than this from the target (degrees of the feature) can be told apart from it.",
            show_default="two circular s.d.",
        ),
    ] = None,
    uniform: Annotated[bool, typer.Option("--uniform/--no-uniform", help="Allow uniform guesses.")] = True,
    even: Annotated[bool, typer.Option("--even/--signed", help="f of the distance alone, or of its sign too.")] = True,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for results and plots.", show_default="none")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the posterior draws.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier fit in the folder.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Fit swap models to a trial table: swap rates, the swap function with its uncertainty, plots, a summary."""
    import numpy as np

    from lapsus.errors import LapsusError
    from lapsus.fitting import fit
    from lapsus.fitting.files import check_folder
    from lapsus.fitting.progress import Bar

    if output is not None and check_folder(output) and not force:
        raise LapsusError(f"{output}: holds an earlier fit; --force replaces it, -o names another folder.")
    if seed < 0:
        raise LapsusError(f"--seed must not be negative (it is {seed}).")
    if apart is not None and not apart > 0:
        raise LapsusError(f"--apart is an angle above 0 (it is {apart:g}).")
    table = table_of(trials, unit, probe_unit, columns, where, probe_positions)
    table.name_features(feature_name, probe_name)
    if set_size is not None:
        if not (table.set_size == set_size).any():
            sizes = ", ".join(map(str, np.unique(table.set_size)))
            raise LapsusError(f"{trials}: no trial has set size {set_size}; the table has {sizes}.")
        table = table[table.set_size == set_size]
    try:
        result = fit(
            table,
            model,
            emission,
            uniform,
            even,
            by,
            seed,
            sets=sets,
            bias=bias,
            apart=None if apart is None else apart / table.degrees,
        )
        with Bar(not json) as bar:
            bar.stage("predictive checks")
            shown = json_module.dumps(result.to_dict()) if json else as_typed(result.summary())
            if output is not None:
                from lapsus.plots.fits import save_all

                bar.stage(f"plots and results for {output}")
                result.save(output, also=lambda place: save_all(result, place))
    except KeyboardInterrupt:
        kept = output is not None and (Path(output) / "fit.nc").exists()
        said = f"the earlier fit in {output} is as it was" if kept else "nothing was kept"
        typer.echo(f"lapsus: stopped; {said}.", err=True)
        raise typer.Exit(130) from None
    typer.echo(shown)
    if output is not None and not json:
        typer.echo(f"\nWritten to {output}.")


def _pairs(given: list[str] | None, example: str) -> dict[str, str] | None:
    """a=b, c=d (also separated by commas) as a dictionary."""
    from lapsus.errors import LapsusError

    pairs = {}
    for one in (part for text in given or [] for part in text.split(",")):
        name, equals, value = one.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise LapsusError(f"'{one}' is not of the form name=value; write {example}.")
        if name.strip() in pairs:
            raise LapsusError(f"'{name.strip()}' is given twice in '{', '.join(given or [])}'; give it once.")
        pairs[name.strip()] = value.strip()
    return pairs or None
