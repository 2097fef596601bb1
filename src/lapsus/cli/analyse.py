"""lapsus analyse."""

import json as json_module
from functools import partial
from pathlib import Path
from typing import Any

import typer

from lapsus.cli.options import Delay, Threads, Trust, delays_of
from lapsus.cli.words import on_terminal


def command(
    source: list[str] | None = None,
    swapping: bool = False,
    output: Path | None = None,
    again: bool = False,
    delay: Delay = None,
    seed: int = 0,
    threads: Threads = None,
    trust: Trust = False,
    against: str | None = None,
    bin: str = "50ms",
    smooth: str = "0ms",
    align: str = "cue",
    columns: str | None = None,
    where: list[str] | None = None,
    units: list[str] | None = None,
    min_rate: float = 0.0,
    min_presence: float = 0.0,
    json: bool = False,
) -> None:
    """How swaps are made: when they are decided, what carries them, along which axis, which kind, by what dynamics.

    source [NETWORK|SESSION.nwb|ACTIVITY.nc]...: Networks (run folders, or names of shipped ones), or recordings: NWB
        files (A.nwb,B.nwb pools two sessions, TRIALS.nwb+UNITS.nwb is one), or netCDF in the activity form.
    swapping: Every shipped network whose target has swaps.
    output: Folder for mechanism.csv, NAME.json and a picture of each answer. [default: none]
    again: Ask networks anew whose answers are in the folder already.
    seed: Seed of conditions and noise. [from 0]
    against: Compare a recording with kinds of networks: collections, networks, folders or types of error, as
        open,persistent; late=A+B is a kind of two networks.
    bin: NWB: length of a time bin.
    smooth: NWB: s.d. of a Gaussian over time.
    align: NWB: event that bins are aligned to; stimulus,cue has delays on two clocks.
    columns: NWB: which columns of the trials hold what: dandi-000620, or a TOML file.
    where: NWB: trials that count, as correct=True.
    units: NWB: units that count, as location=FEF.
    min_rate: NWB: least rate of a unit, spikes/s. [from 0]
    min_presence: NWB: least share of the session in which a unit fires. [from 0 to 1]
    json: Print one JSON object (several sources: a list).
    """
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
        progress = partial(on_terminal, name)
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
            progress=progress,
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
