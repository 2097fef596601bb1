"""lapsus power."""

import json as json_module
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    import pandas as pd


def command(
    difference: float = 0.1,
    swap: float = 0.1,
    subjects: list[int] | None = None,
    trials: list[int] | None = None,
    set_size: int = 4,
    guess: float = 0.05,
    scatter: float = 15.0,
    spread: float = 0.6,
    within: bool = True,
    repeats: int = 40,
    seed: int = 0,
    json: bool = False,
) -> None:
    """How many subjects and trials a difference in swaps between two conditions needs, by simulation.

    difference: Difference in the swap rate between the conditions.
    swap: Swap rate in the first condition.
    subjects: Number of subjects (again for more). [default: 10, 20]
    trials: Trials of a subject in a condition (again for more). [default: 50, 150]
    set_size: Items a trial.
    guess: Share of guesses.
    scatter: Circular s.d. of responses, in degrees of a full circle.
    spread: S.d. of subjects in the log odds of a swap.
    within/between: Every subject in both conditions, or half in each.
    repeats: Simulated experiments for each number.
    seed: Seed of the simulations.
    json: Print one JSON object.
    """
    from lapsus.fitting.power import power

    say = None if json else lambda text: typer.echo(f"simulating {text} …", err=True)
    observer = {"set_size": set_size, "guess": guess, "scatter": scatter, "within": within, "spread": spread}
    table = power(subjects or [10, 20], trials or [50, 150], swap, difference, repeats, seed, say, **observer)
    if json:
        typer.echo(json_module.dumps({"power": table.to_dict(orient="records")}))
        return
    typer.echo(
        f"A difference of {100 * difference:+.1f} percentage points from {100 * swap:.1f} % swaps,"
        f" {'within' if within else 'between'} subjects, {set_size} items; {repeats} simulated experiments each."
    )
    typer.echo("subjects   trials   detected [95 %]          without a difference")
    percent = table.assign(**100 * table[["power", "low", "high", "false_positives"]])
    for row in percent.itertuples():
        detected = f"{row.power:>4.0f} % [{row.low:.0f}, {row.high:.0f}]"
        typer.echo(f"{row.subjects:>8}   {row.trials:>6}   {detected:<24} {row.false_positives:>4.0f} %")
    typer.echo(_enough(percent, within, repeats))


def _enough(table: "pd.DataFrame", within: bool, repeats: int) -> str:
    """The smallest design that detects the difference in 80 % of experiments."""
    enough = table[table["power"] >= 80]
    if enough.empty:
        return "None of these reaches 80 %: ask for more --subjects or --trials."
    best = enough.loc[(enough["subjects"] * enough["trials"]).idxmin()]
    half, each = ("", " in each condition") if within else (", half of them in each condition,", "")
    doubt = ""
    if best["low"] < 80:
        doubt = f" ({repeats} experiments leave {best['low']:.0f} to {best['high']:.0f} %: raise --repeats)"
    subjects, trials = int(best["subjects"]), int(best["trials"])
    return f"80 % are reached with {subjects} subjects{half} and {trials} trials of each{each}{doubt}."
