"""lapsus analyse."""

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapsus.cli.train import Trust

if TYPE_CHECKING:
    from lapsus.study.mechanism import Mechanism


def command(
    source: Annotated[
        list[str] | None,
        typer.Argument(
            help="Networks (run folders, or names of shipped ones), or a recording (netCDF in the activity form).",
            metavar="[NETWORK|ACTIVITY.nc]...",
        ),
    ] = None,
    swapping: Annotated[bool, typer.Option("--swapping", help="Every shipped network whose target has swaps.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for mechanism.csv, NAME.json and the five pictures of each."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of conditions and noise.", min=0)] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads of the kernel.", show_default="all cores", min=1)] = None,
    trust: Trust = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object (several sources: a list).")] = False,
) -> None:
    """How swaps are made: when they are decided, what carries them, along which axis, which kind, by what dynamics."""
    import pandas as pd

    from lapsus.errors import LapsusError
    from lapsus.files import make_folder, write_text
    from lapsus.report.mechanism import answers
    from lapsus.study.mechanism import swapping_networks, table_row

    names = [*(source or ()), *(swapping_networks() if swapping else ())]
    if not names:
        raise LapsusError("Name a network or a recording, or ask for all that swap with --swapping.")
    folder = None if output is None else make_folder(output)
    results, rows = [], []
    for name in names:
        found = _analyse(name, seed, threads, trust)
        results.append({"source": name} | found.to_dict())
        rows.append({"network": name} | table_row(found))
        if not json:
            typer.echo("\n".join([f"{name}:", *(f"  {line}" for line in answers(found)), ""]))
        if folder is not None:
            stem = Path(name).stem if name.endswith(".nc") else Path(name).name
            write_text(folder / f"{stem}.json", json_module.dumps(results[-1], indent=1) + "\n")
            _draw(found, folder, stem)
            write_text(folder / "mechanism.csv", pd.DataFrame(rows).to_csv(index=False, float_format="%.4g"))
    if json:
        typer.echo(json_module.dumps(results[0] if len(results) == 1 else results))


def _analyse(name: str, seed: int, threads: int | None, trust: bool) -> "Mechanism":
    from lapsus.analysis.activity import items
    from lapsus.files import read_netcdf
    from lapsus.library import open_network
    from lapsus.study.mechanism import analyse

    if name.endswith(".nc"):
        dataset = read_netcdf(Path(name))
        items(dataset)
        return analyse(dataset, seed=seed)
    say = (
        (lambda part: print(f"lapsus: {name}, {part} …", file=sys.stderr)) if sys.stderr.isatty() else (lambda _: None)
    )
    return analyse(open_network(name, trust).model(), seed=seed, threads=threads, progress=say)


def _draw(found: "Mechanism", folder: Path, stem: str) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    from lapsus.files import write_figure
    from lapsus.plots.mechanism import FIGURES

    for part, draw in FIGURES.items():
        figure = draw(found)
        write_figure(folder / f"{stem}-{part}.png", figure, dpi=150)
        plt.close(figure)
