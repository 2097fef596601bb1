"""lapsus analyse."""

import json as json_module
from functools import partial
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Annotated

import typer

from lapsus.cli.evaluate import Delay, delays_of
from lapsus.cli.train import Trust
from lapsus.cli.words import on_terminal

if TYPE_CHECKING:
    import xarray as xr

    from lapsus.study.mechanism import Mechanism
    from lapsus.training.model import Model


def command(
    source: Annotated[
        list[str] | None,
        typer.Argument(
            help="Networks (run folders, or names of shipped ones), or a recording (netCDF in the activity form).",
            metavar="[NETWORK|ACTIVITY.nc]...",
        ),
    ] = None,
    swapping: Annotated[
        bool, typer.Option("--swapping", help="Every shipped network whose target has swaps, of both sets.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for mechanism.csv, NAME.json and the five pictures of each."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Ask networks anew whose answers are in the folder already.")
    ] = False,
    delay: Delay = None,
    seed: Annotated[int, typer.Option(help="Seed of conditions and noise.", min=0)] = 0,
    threads: Annotated[int | None, typer.Option(help="Threads of the kernel.", show_default="all cores", min=1)] = None,
    trust: Trust = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object (several sources: a list).")] = False,
) -> None:
    """How swaps are made: when they are decided, what carries them, along which axis, which kind, by what dynamics."""
    import pandas as pd

    from lapsus.errors import LapsusError
    from lapsus.files import make_folder, write_json, write_text
    from lapsus.study.mechanism import swapping_networks

    names = [*(source or ()), *(swapping_networks() if swapping else ())]
    if not names:
        raise LapsusError("Name a network or a recording, or ask for all that swap with --swapping.")
    delays: list[int | None] = [*delays_of(delay)]
    if delays and any(name.endswith(".nc") for name in names):
        raise LapsusError("--delay is for networks; a recording has the delays that it was made with.")
    folder = None if output is None else make_folder(output)
    results = []
    for name, steps in [(name, steps) for name in names for steps in delays or [None]]:
        asked = {"source": name} | ({} if steps is None else {"delay": steps})
        at = "" if steps is None else f"-delay-{steps}"
        path = None if folder is None else folder / f"{_stem(name)}{at}.json"
        opened = _open(name, trust)
        made_of = _identity(opened, steps, seed)
        result = None if path is None or again else _kept(path, made_of)
        if result is None:
            begun = process_time()
            found = _analyse(name, opened, steps, seed, threads)
            result = found.to_dict() | _beside(found, process_time() - begun) | {"made_of": made_of}
            if path is not None:
                _draw(found, path)  # first: with the answers there, nothing is made again
                write_json(path, asked | result)
        result = result | asked
        results.append(result)
        if not json:
            heading = f"{name}:" if steps is None else f"{name}, delay of {steps} steps:"
            typer.echo("\n".join([heading, *(f"  {line}" for line in result["said"]), ""]))
        if folder is not None:
            rows = [{key: one[key] for key in asked} | one["row"] for one in results]
            rows = [{"network": row.pop("source")} | row for row in rows]
            write_text(folder / "mechanism.csv", pd.DataFrame(rows).to_csv(index=False, float_format="%.4g"))
    if json:
        typer.echo(json_module.dumps(results[0] if len(results) == 1 else results))


def _stem(name: str) -> str:
    return Path(name).stem if name.endswith(".nc") else Path(name).name


def _beside(found: "Mechanism", seconds: float) -> dict:
    """What is kept beside the answers: in words, and as a row of the table, with the processor time that they took."""
    from lapsus.files import to_plain
    from lapsus.report.mechanism import answers, planes, predicted
    from lapsus.study.mechanism import table_row

    besides = [("alignment", planes), ("prediction", predicted)]
    asked = [say for name, say in besides if getattr(found, name) is not None or name in found.left_out]
    return {
        "said": answers(found) + [say(found) for say in asked],
        "row": to_plain(table_row(found) | {"seconds": seconds}),
    }


def _open(name: str, trust: bool) -> "Model | xr.Dataset":
    from lapsus.analysis.activity import check_activity
    from lapsus.files import read_netcdf
    from lapsus.library import load

    if not name.endswith(".nc"):
        return load(name, trust)
    dataset = read_netcdf(Path(name))
    check_activity(dataset)
    return dataset


def _identity(opened: "Model | xr.Dataset", steps: int | None, seed: int) -> dict | None:
    """Of a network: answers that were computed from the same need not be computed again; recordings are quick."""
    from lapsus import __version__
    from lapsus.training.model import Model, weights_digest

    if not isinstance(opened, Model):
        return None
    made_of = {"weights": weights_digest(opened), "seed": seed, "lapsus": __version__}
    return made_of if steps is None else made_of | {"delay": steps}


def _kept(path: Path, made_of: dict | None) -> dict | None:
    """Answers of an earlier call, cut or not, where they are about the same network."""
    from lapsus.files import from_plain, read_json, understood

    if not path.exists() or made_of is None:
        return None
    found = read_json(path)
    if found.get("made_of") != made_of:
        return None
    with understood(path):  # what is taken of it below
        from_plain(list[str], found["said"])
        from_plain(dict[str, float | str | bool | None], found["row"])
    return found


def _analyse(name: str, opened: "Model | xr.Dataset", steps: int | None, seed: int, threads: int | None) -> "Mechanism":
    from lapsus.study.mechanism import analyse
    from lapsus.training.model import Model

    if not isinstance(opened, Model):
        return analyse(opened, seed=seed)
    model = opened if steps is None else opened.at(delay=steps)
    return analyse(model, seed=seed, threads=threads, progress=partial(on_terminal, name))


def _draw(found: "Mechanism", path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    from lapsus.files import write_figure
    from lapsus.plots.mechanism import FIGURES

    for part, draw in FIGURES.items():
        figure = draw(found)
        write_figure(path.with_name(f"{path.stem}-{part}.png"), figure, dpi=150)
        plt.close(figure)
