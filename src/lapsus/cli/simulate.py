"""lapsus simulate."""

from pathlib import Path
from typing import Annotated

import typer

from lapsus.cli.train import Trust


def command(
    run: Annotated[str, typer.Argument(help="A run folder, or the name of a shipped network.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="netCDF file to write.", show_default="RUN/activity.nc, or NAME.nc"),
    ] = None,
    conditions: Annotated[int, typer.Option(help="Conditions to draw.")] = 256,
    trials: Annotated[int, typer.Option(help="Trials a condition.")] = 16,
    seed: Annotated[int, typer.Option(help="Seed of conditions and noise.")] = 0,
    noise_scale: Annotated[float, typer.Option(help="Process noise, relative to training (an ablation).")] = 1.0,
    engine: Annotated[str, typer.Option(help="auto, fused or reference.")] = "auto",
    trust: Trust = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
):
    """Simulate trials of a trained network: trial table and activity, as netCDF with named dimensions."""
    from lapsus.errors import LapsusError
    from lapsus.files import make_folder, write_netcdf
    from lapsus.library import load
    from lapsus.study import simulate

    if output is None:
        output = Path(run) / "activity.nc" if Path(run).is_dir() else Path(f"{run}.nc")
    if output.exists() and not force:
        raise LapsusError(f"{output} is there already; --force replaces it, -o names another file.")
    dataset = simulate(load(run, trust), conditions, trials, seed, noise_scale, engine=engine)
    make_folder(output.parent)
    write_netcdf(output, dataset, replace=force)
    sizes = dataset.sizes
    typer.echo(f"{sizes['trial']:,} trials × {sizes['time']} times × {sizes['unit']} units in {output}")
