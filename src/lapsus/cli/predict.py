"""lapsus predict."""

import json as json_module
import math
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lapsus.cli.options import Trust
from lapsus.errors import LapsusError

if TYPE_CHECKING:
    import pandas as pd

    from lapsus.evaluation.manipulations import Separation


def command(
    networks: list[str],
    vary: list[str] | None = None,
    conditions: int = 512,
    trials: int = 16,
    seed: int = 0,
    output: Path | None = None,
    trust: Trust = False,
    json: bool = False,
) -> None:
    """Predict swap rates under manipulations that networks were not trained on, and which of them would tell networks
    trained by diffusion from those trained by the energy score.

    networks: Run folders, or names of shipped networks.
    vary: A manipulation and its levels, as in delay=5,20,40; repeatable. [default: a standard set]
    conditions: Conditions to draw.
    trials: Trials per condition.
    seed: Seed of conditions and noise.
    output: CSV file for the table. [default: none]
    json: Print one JSON object.
    """
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
        typer.echo(
            json_module.dumps({"predictions": rows, "separations": [vars(separation) for separation in separations]})
        )
        return
    typer.echo(f"Swap rates (%) with 95 % intervals; {conditions:,} conditions × {trials} trials at each level.")
    typer.echo("\n".join(_table(table) + _best(separations)))


def _levels(text: str) -> tuple[str, list[float]]:
    name, _, values = text.partition("=")
    try:
        levels = [float(value) for value in values.split(",")]
    except ValueError:
        levels = [math.nan]
    if not all(map(math.isfinite, levels)):
        raise LapsusError(f"--vary takes a name and numbers, as in delay=5,20,40, not {text!r}.")
    return name.strip(), levels


def _table(table: "pd.DataFrame") -> list[str]:
    """A line per manipulation and level, a column per network."""
    from lapsus.evaluation.manipulations import title_of

    names = list(dict.fromkeys(table["network"]))
    width = max(24, *map(len, names))
    lines = [f"{'':58}" + "  ".join(f"{name:>{width}}" for name in names)]
    for (manipulation, level), rows in table.groupby(["manipulation", "level"], sort=False, dropna=False):
        title = "as trained" if manipulation == "baseline" else title_of(manipulation, level)
        percent = 100 * rows[["swaps", "low", "high"]].to_numpy()
        cells = [f"{rate:.1f} [{low:.1f}, {high:.1f}]" for rate, low, high in percent]
        lines.append(f"{title:<58}" + "  ".join(f"{cell:>{width}}" for cell in cells))
    return lines


def _best(separations: "list[Separation]") -> list[str]:
    """The manipulation that separates the two objectives best, and how many trials it needs."""
    from lapsus.evaluation.manipulations import title_of

    if not separations:
        return []
    best = separations[0]
    if best.trials is None:
        return ["", "No manipulation separates the two objectives: networks of one differ as much among themselves."]
    effects = " and by ".join(f"{100 * effect:+.1f} % under {kind}" for kind, effect in best.effects.items())
    lines = [
        "",
        f"Best separation: {title_of(best.manipulation, best.level, ' at')}. Swaps change by {effects}.",
        f"{best.trials:,} trials at each of the two levels tell these apart with a power of 80 %.",
    ]
    if math.isnan(best.spread):
        lines.append("With one network per objective, how far networks of one objective differ is unknown.")
    return lines
