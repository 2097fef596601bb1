"""lapsus simulate."""

from pathlib import Path
from typing import Annotated

import typer

from lapsus.cli.evaluate import Delay, delays_of
from lapsus.cli.train import Engine, Trust


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
    delay: Delay = None,
    engine: Engine = "auto",
    trust: Trust = False,
    nwb: Annotated[
        Path | None, typer.Option(help="Write the trials as NWB instead: rates as Poisson spikes.", show_default=False)
    ] = None,
    gain: Annotated[float, typer.Option(help="NWB: spikes/s of a neuron at its mean activity.")] = 10.0,
    units: Annotated[
        int | None,
        typer.Option(help="NWB: neurons, each a random mixture of units.", show_default="the network's units", min=1),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Simulate trials of a trained network: trial table and activity, as netCDF with named dimensions.

    With --nwb, neurons fire Poisson spikes, as in a recording. With several delays, one file each, which has the delay
    at the end of its name.
    """
    from lapsus.errors import LapsusError
    from lapsus.evaluation import simulate
    from lapsus.files import check_file, is_netcdf, make_folder, write_netcdf
    from lapsus.recordings import spike_session, write_nwb
    from lapsus.zoo import load

    if nwb is not None:
        if output is not None:
            raise LapsusError("Give -o for netCDF or --nwb for NWB, not both.")
        output = nwb
    elif output is None:
        output = Path(run) / "activity.nc" if Path(run).is_dir() else Path(f"{run}.nc")
    delays = delays_of(delay)
    files: dict[int | None, Path] = {None: output}
    if len(delays) == 1:
        files = {delays[0]: output}
    elif delays:
        files = {steps: output.with_name(f"{output.stem}-delay-{steps}{output.suffix}") for steps in delays}
    for path in files.values():
        if path.is_dir():
            raise LapsusError(f"{path} is a folder; -o names a file.")
        if check_file(path, "netCDF" if nwb is None else "NWB", is_netcdf) and not force:
            raise LapsusError(f"{path} is there already; --force replaces it, -o names another file.")
    model = load(run, trust)
    for steps, path in files.items():
        here = model if steps is None else model.at(delay=steps)
        dataset = simulate(here, conditions, trials, seed, noise_scale, engine=engine)
        make_folder(path.parent)
        sizes = dataset.sizes
        if nwb is not None:
            spikes, table = spike_session(dataset, gain=gain, units=units, seed=seed)
            write_nwb(path, spikes, table, f"{run}, seed {seed}, gain {gain:g} spikes/s")
            typer.echo(f"{sizes['trial']:,} trials × {len(spikes)} neurons in {path}")
            continue
        write_netcdf(path, dataset, replace=force)
        typer.echo(f"{sizes['trial']:,} trials × {sizes['time']} times × {sizes['unit']} units in {path}")
