"""lapsus power."""

import json as json_module
from typing import Annotated

import typer


def command(
    difference: Annotated[float, typer.Option(help="Difference in the swap rate between the conditions.")] = 0.1,
    swap: Annotated[float, typer.Option(help="Swap rate in the first condition.")] = 0.1,
    subjects: Annotated[
        list[int] | None, typer.Option(help="Number of subjects (again for more).", show_default="10, 20")
    ] = None,
    trials: Annotated[
        list[int] | None,
        typer.Option(help="Trials of a subject in a condition (again for more).", show_default="50, 150"),
    ] = None,
    set_size: Annotated[int, typer.Option(help="Items a trial.")] = 4,
    guess: Annotated[float, typer.Option(help="Share of guesses.")] = 0.05,
    scatter: Annotated[float, typer.Option(help="Circular s.d. of responses, in degrees of a full circle.")] = 15.0,
    spread: Annotated[float, typer.Option(help="S.d. of subjects in the log odds of a swap.")] = 0.6,
    within: Annotated[
        bool, typer.Option("--within/--between", help="Every subject in both conditions, or half in each.")
    ] = True,
    repeats: Annotated[int, typer.Option(help="Simulated experiments for each number.")] = 40,
    seed: Annotated[int, typer.Option(help="Seed of the simulations.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """How many subjects and trials a difference in swaps between two conditions needs, by simulation."""
    from lapsus.fitting.power import power

    say = None if json else lambda text: typer.echo(f"simulating {text} …", err=True)
    table = power(
        subjects or [10, 20],
        trials or [50, 150],
        swap,
        difference,
        repeats,
        seed,
        say,
        set_size=set_size,
        guess=guess,
        scatter=scatter,
        within=within,
        spread=spread,
    )
    if json:
        typer.echo(json_module.dumps({"power": table.to_dict(orient="records")}))
        return
    kind = "within subjects" if within else "between subjects"
    typer.echo(
        f"A difference of {100 * difference:+.1f} percentage points from {100 * swap:.1f} % swaps, {kind},"
        f" {set_size} items; {repeats} simulated experiments each."
    )
    typer.echo("subjects   trials   detected [95 %]          without a difference")
    for row in table.itertuples():
        found = f"{100 * row.power:>4.0f} % [{100 * row.low:.0f}, {100 * row.high:.0f}]"
        typer.echo(f"{row.subjects:>8}   {row.trials:>6}   {found:<24} {100 * row.false_positives:>4.0f} %")
    enough = table[table["power"] >= 0.8]
    if len(enough):
        best = enough.loc[(enough["subjects"] * enough["trials"]).idxmin()]
        who = f"{int(best['subjects'])} subjects{'' if within else ', half of them in each condition,'}"
        each = " in each condition" if within else ""
        sure = f" ({repeats} experiments leave {100 * best['low']:.0f} to {100 * best['high']:.0f} %: raise --repeats)"
        doubt = sure if best["low"] < 0.8 else ""
        typer.echo(f"80 % are reached with {who} and {int(best['trials'])} trials of each{each}{doubt}.")
    else:
        typer.echo("None of these reaches 80 %: ask for more --subjects or --trials.")
