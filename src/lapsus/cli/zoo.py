"""lapsus zoo."""

import json as json_module
import math
from pathlib import Path

import typer

from lapsus.cli.options import Threads

_MEASURES = ("energy_excess", "excess", "swap_curve_mad", "swap_curve_max", "median_error", "away")
_LINE = (
    "{name:30} {seed:4}  {energy_excess:>13}  {excess:>9} {swap_curve_mad:>12} {swap_curve_max:>8} {median_error:>13}"
    "  {away:7} {core_minutes:8.1f}"
)


def command(
    names: list[str] | None = None, json: bool = False, gallery: Path | None = None, threads: Threads = None
) -> None:
    """List the trained networks that ship with lapsus, with their measured numbers; --gallery makes a page of them.

    names [NAME]...: Networks of the gallery. [default: all]
    json: Print a JSON list.
    gallery: Write a page with a row for each network: swap curve, planes, commitment (HTML).
    """
    from lapsus.engine.threads import resolve
    from lapsus.zoo.shipped import Shipped, halfway, shipped, summary

    threads = resolve(threads)
    for name in names or ():
        Shipped(name)  # says which there are
    if gallery is not None:
        _gallery(gallery, names or [], threads)
        return
    rows = summary(names or None)
    if json:
        typer.echo(json_module.dumps(rows))
        return
    typer.echo(f"{'network':30} seed  energy excess  denoising  swap curve: mean, max  median error  away    core-min")
    for row in rows:
        cell = {key: "-" if value is None else f"{value:.4f}" for key, value in row.items() if key in _MEASURES}
        if row["median_error"] is not None:
            cell["median_error"] = f"{math.degrees(row['median_error']):.1f}°"
        typer.echo(_LINE.format(**row | cell))
    held = [row for row in rows if "delays" in row]
    if held:
        typer.echo("\nMedian error (°) at other delays, and what is left of the norm of the rates after 40 steps:")
        delays = "  ".join(f"{at['delay']:>6}" for at in held[0]["delays"])
        typer.echo(f"{'network':30} seed  {delays}    norm")
        for row in held:
            errors = "  ".join(f"{math.degrees(at['median_error']):6.1f}" for at in row["delays"])
            typer.echo(f"{row['name']:30} {row['seed']:4}  {errors}  {row['norm_ratio']:6.2f}")
    if names:
        return
    typer.echo(f"\nOnly to start from, not trained to their end: {', '.join(filter(halfway, shipped()))}.")
    typer.echo("`lapsus evaluate NAME` measures one again; lapsus.load(NAME) opens it in Python.")


def _gallery(path: Path, names: list[str], threads: int) -> None:
    from tqdm import tqdm

    from lapsus.files import write_text
    from lapsus.report.gallery import gallery_page
    from lapsus.report.page import page_place
    from lapsus.zoo.shipped import shipped

    page_place(path)
    wanted = names or [name for name, facts in shipped().items() if "swap_curve" in facts["evaluation"]]
    with tqdm(total=len(wanted), unit="network", disable=None) as bar:

        def say(name: str) -> None:
            bar.set_description(name)
            bar.update()

        page = gallery_page(wanted, threads=threads, say=say)
    write_text(path, page)
    typer.echo(f"Written to {path}.")
