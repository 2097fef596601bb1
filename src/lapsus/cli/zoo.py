"""lapsus zoo."""

import json as json_module
from typing import Annotated

import typer


def command(json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False) -> None:
    """List the trained networks that ship with lapsus, with their measured numbers."""
    from lapsus.library.shipped import summary

    rows = summary()
    if json:
        typer.echo(json_module.dumps(rows))
        return
    typer.echo(f"{'network':28} seed  excess  swap curve: mean, max  median error  away    trials seen  core-min")
    for row in rows:
        values = [
            ("-" if row[key] is None else f"{row[key]:.4f}")
            for key in ("excess", "swap_curve_mad", "swap_curve_max", "median_error", "away")
        ]
        typer.echo(
            f"{row['name']:28} {row['seed']:4}  {values[0]:7} {values[1]:>12} {values[2]:>8} {values[3]:>13} "
            f" {values[4]:7} {row['trials_seen']:11,}  {row['core_minutes']:7.1f}"
        )
    held = [row for row in rows if "delays" in row]
    if held:
        delays = [found["delay"] for found in held[0]["delays"]]
        typer.echo("\nMedian error (rad) at other delays, and what is left of the norm of the rates after 40 steps:")
        typer.echo(f"{'network':28} seed  " + "  ".join(f"{delay:>6}" for delay in delays) + "    norm")
        for row in held:
            errors = "  ".join(f"{found['median_error']:6.3f}" for found in row["delays"])
            typer.echo(f"{row['name']:28} {row['seed']:4}  {errors}  {row['norm_ratio']:6.2f}")
    typer.echo("\n`lapsus evaluate NAME` measures one again; lapsus.load(NAME) opens it in Python.")
