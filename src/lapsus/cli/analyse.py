"""lapsus analyse."""

import json as json_module
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from lapsus.cli.evaluate import Delay, delays_of
from lapsus.cli.train import Trust
from lapsus.cli.words import on_terminal


def command(
    source: Annotated[
        list[str] | None,
        typer.Argument(
            help="Networks (run folders, or names of shipped ones), or recordings: NWB files (A.nwb,B.nwb pools two"
            " sessions, TRIALS.nwb+UNITS.nwb is one), or netCDF in the activity form.",
            metavar="[NETWORK|SESSION.nwb|ACTIVITY.nc]...",
        ),
    ] = None,
    swapping: Annotated[
        bool, typer.Option("--swapping", help="Every shipped network whose target has swaps, of both sets.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for mechanism.csv, NAME.json and a picture of each answer."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Ask networks anew whose answers are in the folder already.")
    ] = False,
    delay: Delay = None,
    seed: Annotated[int, typer.Option(help="Seed of conditions and noise.", min=0)] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads of the kernel.", show_default="all cores", min=1)] = None,
    trust: Trust = False,
    against: Annotated[
        str | None,
        typer.Option(
            help="Compare a recording with kinds of networks: collections, networks, folders or types of error, as"
            " open,persistent; late=A+B is a kind of two networks."
        ),
    ] = None,
    bin: Annotated[str, typer.Option(help="NWB: length of a time bin.")] = "50ms",
    smooth: Annotated[str, typer.Option(help="NWB: s.d. of a Gaussian over time.")] = "0ms",
    align: Annotated[
        str, typer.Option(help="NWB: event that bins are aligned to; stimulus,cue has delays on two clocks.")
    ] = "cue",
    columns: Annotated[
        str | None, typer.Option(help="NWB: which columns of the trials hold what: dandi-000620, or a TOML file.")
    ] = None,
    where: Annotated[list[str] | None, typer.Option(help="NWB: trials that count, as correct=True.")] = None,
    units: Annotated[list[str] | None, typer.Option(help="NWB: units that count, as location=FEF.")] = None,
    min_rate: Annotated[float, typer.Option(help="NWB: least rate of a unit, spikes/s.", min=0)] = 0.0,
    min_presence: Annotated[
        float, typer.Option(help="NWB: least share of the session in which a unit fires.", min=0, max=1)
    ] = 0.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object (several sources: a list).")] = False,
) -> None:
    """How swaps are made: when they are decided, what carries them, along which axis, which kind, by what dynamics."""
    import pandas as pd

    from lapsus.errors import LapsusError
    from lapsus.files import make_folder, write_text
    from lapsus.mechanism.asking import swapping_networks
    from lapsus.report.analyses import RECORDINGS, TABLE, answers_of, check_asked

    names = [*(source or ()), *(swapping_networks() if swapping else ())]
    if not names:
        raise LapsusError("Name a network or a recording, or ask for all that swap with --swapping.")
    delays: list[int | None] = [*delays_of(delay)] or [None]
    if delays != [None] and any(name.endswith(RECORDINGS) for name in names):
        raise LapsusError("--delay is for networks; a recording has the delays that it was made with.")
    reading: dict[str, Any] = {"bin": bin, "smooth": smooth, "align": align, "columns": columns, "where": where or ()}
    reading |= {"units": units or (), "min_rate": min_rate, "min_presence": min_presence}
    check_asked(names, delays, output, trust, reading)
    folder = None if output is None else make_folder(output)
    results, rows = [], []
    for name, steps in [(name, steps) for name in names for steps in delays]:
        said = partial(on_terminal, name)
        result = answers_of(
            name,
            folder,
            delay=steps,
            seed=seed,
            threads=threads,
            trust=trust,
            again=again,
            reading=reading,
            against=against,
            progress=said,
        )
        results.append(result)
        rows.append({"network": name} | ({} if steps is None else {"delay": steps}) | result["row"])
        if not json:
            heading = f"{name}:" if steps is None else f"{name}, delay of {steps} steps:"
            typer.echo("\n".join([heading, *(f"  {line}" for line in result["said"]), ""]))
        if folder is not None:
            write_text(folder / TABLE, pd.DataFrame(rows).to_csv(index=False, float_format="%.4g"))
    if json:
        typer.echo(json_module.dumps(results[0] if len(results) == 1 else results))
