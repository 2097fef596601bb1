"""lapsus predict."""

import json as json_module
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapsus.cli.train import Trust

if TYPE_CHECKING:
    import pandas as pd

    from lapsus.evaluation.manipulations import Separation


def command(
    networks: Annotated[list[str], typer.Argument(help="Run folders, or names of shipped networks.")],
    vary: Annotated[
        list[str] | None,
        typer.Option(
            help="A manipulation and its levels, as in delay=5,20,40; repeatable.", show_default="a standard set"
        ),
    ] = None,
    conditions: Annotated[int, typer.Option(help="Conditions to draw.")] = 512,
    trials: Annotated[int, typer.Option(help="Trials per condition.")] = 16,
    seed: Annotated[int, typer.Option(help="Seed of conditions and noise.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="CSV file for the table.", show_default="none")
    ] = None,
    trust: Trust = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Predict swap rates under manipulations that networks were not trained on, and which of them would tell networks
    trained by diffusion from those trained by the energy score."""
    from lapsus.errors import LapsusError
    from lapsus.evaluation.manipulations import predict, separate
    from lapsus.files import write_text
    from lapsus.zoo import load

    if output is not None and output.is_dir():
        raise LapsusError(f"{output} is a folder; -o names a CSV file.")
    levels = dict(map(_levels, vary)) if vary else None
    table = predict({name: load(name, trust) for name in networks}, levels, conditions, trials, seed)
    separations = separate(table) if table["objective"].nunique() == 2 else []
    if output is not None:
        write_text(output, table.to_csv(index=False))
    if json:
        rows = json_module.loads(table.to_json(orient="records"))
        typer.echo(json_module.dumps({"predictions": rows, "separations": [vars(one) for one in separations]}))
        return
    typer.echo(_describe(table, conditions, trials))
    for line in _describe_separations(separations):
        typer.echo(line)


def _levels(text: str) -> tuple[str, list[float]]:
    from lapsus.errors import LapsusError

    name, equals, values = text.partition("=")
    try:
        levels = [float(value) for value in values.split(",")]
    except ValueError:
        levels = []
    if not equals or not levels or not all(math.isfinite(level) for level in levels):
        raise LapsusError(f"--vary takes a name and numbers, as in delay=5,20,40, not {text!r}.")
    return name.strip(), levels


def _describe(table: "pd.DataFrame", conditions: int, trials: int) -> str:
    from lapsus.evaluation.manipulations import VARIABLES

    names = list(dict.fromkeys(table["network"]))
    width = max(24, *(len(name) for name in names))
    lines = [
        f"Swap rates (%) with 95 % intervals; {conditions:,} conditions × {trials} trials at each level.",
        f"{'':58}" + "  ".join(f"{name:>{width}}" for name in names),
    ]
    for (manipulation, level), rows in table.groupby(["manipulation", "level"], sort=False, dropna=False):
        if manipulation == "baseline":
            title = "as trained"
        else:
            what, unit, _ = VARIABLES[str(manipulation)]
            title = f"{what} {level:g} {unit}"
        rates = {row["network"]: row for _, row in rows.iterrows()}
        cells = [f"{100 * r['swaps']:.1f} [{100 * r['low']:.1f}, {100 * r['high']:.1f}]" for r in rates.values()]
        lines.append(f"{title:<58}" + "  ".join(f"{cell:>{width}}" for cell in cells))
    return "\n".join(lines)


def _describe_separations(separations: "list[Separation]") -> list[str]:
    """The manipulation that separates the two objectives best, and how many trials it needs."""
    from lapsus.evaluation.manipulations import VARIABLES

    if not separations:
        return []
    best = separations[0]
    what, unit, _ = VARIABLES[best.manipulation]
    if best.trials is None:
        return ["", "No manipulation separates the two objectives: networks of one differ as much among themselves."]
    (first, a), (second, b) = best.effects.items()
    lines = [
        "",
        f"Best separation: {what} at {best.level:g} {unit}. Swaps change by {100 * a:+.1f} % under {first} and by"
        f" {100 * b:+.1f} % under {second}.",
        f"{best.trials:,} trials at each of the two levels tell these apart with a power of 80 %.",
    ]
    if math.isnan(best.spread):
        lines.append("With one network per objective, how far networks of one objective differ is unknown.")
    return lines
