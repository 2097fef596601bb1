"""lapsus simulate."""

from pathlib import Path

import typer

from lapsus.cli.options import Delay, Engine, Trust, delays_of


def command(
    run: str,
    output: Path | None = None,
    conditions: int = 256,
    trials: int = 16,
    seed: int = 0,
    noise_scale: float = 1.0,
    delay: Delay = None,
    engine: Engine = "auto",
    trust: Trust = False,
    nwb: Path | None = None,
    gain: float = 10.0,
    units: int | None = None,
    force: bool = False,
) -> None:
    """Simulate trials of a trained network: trial table and activity, as netCDF with named dimensions.

    With --nwb, neurons fire Poisson spikes, as in a recording. With several delays, one file each, which has the delay
    at the end of its name.

    run: A run folder, or the name of a shipped network.
    output: netCDF file to write. [default: RUN/activity.nc, or NAME.nc]
    conditions: Conditions to draw.
    trials: Trials per condition.
    seed: Seed of conditions and noise.
    noise_scale: Process noise, relative to training (an ablation).
    nwb: Write the trials as NWB instead: rates as Poisson spikes.
    gain: NWB: spikes/s of a neuron at its mean activity.
    units: NWB: neurons, each a random mixture of units. [from 1] [default: the network's units]
    force: Replace the file if it is there.
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
