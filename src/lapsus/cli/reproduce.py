"""lapsus reproduce: the paper's figures and claims; further verbs are commands of the same group."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lapsus.cli import reproduce_cue_combination, reproduce_train
from lapsus.cli.options import Delay, Trust, default_verb, delays_of, described

if TYPE_CHECKING:
    import xarray as xr

# `lapsus reproduce fig2` means `lapsus reproduce figures fig2`: whatever names no verb belongs to the figures.
app = typer.Typer(
    cls=default_verb("figures", alone=True),
    rich_markup_mode=None,
    help="Make the paper's figures and test its claims, from the shipped networks or from your own runs.",
)

# A line on the terminal: what is being done, how much of the work is done, and how long the rest will take.
_BAR = "{desc}: {percentage:3.0f} % of the work, {elapsed}, about {remaining} left"

app.command("train")(described(reproduce_train.command))
app.command("cue-combination")(described(reproduce_cue_combination.command))


@app.command("figures")
@described
def figures(
    figure: list[str] | None = None,
    runs: Path | None = None,
    collection: str = "paper",
    seed: int | None = None,
    further: list[Path] | None = None,
    delay: Delay = None,
    output: Path = Path("figures"),
    recording: Path | None = None,
    claims_only: bool = False,
    values: Path | None = None,
    trust: Trust = False,
    json: bool = False,
) -> None:
    """The paper's figures (PDF, PNG, numbers as CSV) and a table of its claims: this is what `lapsus reproduce` does.

    Figures: task, architecture, bns, schedule, fig2, fig3, fig4, table1, windows, unimodal, cyclic, prediction,
    cue-combination.

    figure [FIGURE]...: Which figures; none means all.
    runs: Folder of run folders to use instead of the shipped networks.
    collection: Which of the shipped networks: paper, persistent (delays that vary) or open (energy score).
    seed: One seed of the networks that ship with several. [default: 1; claims: all]
    further: Folder of a sweep or of runs whose finished networks count in the claims as further seeds.
    output: Folder for PDF, PNG and CSV; with several delays, one in it for each.
    recording: A recording (netCDF in the activity form) to draw in Fig 3C.
    claims_only: Test the claims, draw nothing.
    values: Keep the claims' values of each network in this JSON file, so that a run can resume.
    json: Print the claims as a JSON list.
    """
    from tqdm import tqdm

    from lapsus.paper.reproduce import FIGURES, reproduce
    from lapsus.paper.roles import Networks
    from lapsus.paper.values import recorded_values
    from lapsus.paper.verdicts import describe
    from lapsus.zoo.shipped import check_collection

    check_collection(collection)
    ensemble = runs is None and seed is None  # all seeds, also those whose weights do not ship
    seeds = Networks.every_seed(collection if ensemble else None, further or (), trust)
    if runs is not None:
        seeds.insert(0, Networks.in_folder(runs, trust))
    elif seed is not None:
        seeds.insert(0, Networks.shipped(seed, collection))
    activity = None if recording is None else _open(recording)
    delays: list[int | None] = [*delays_of(delay)]
    printed: list[dict] = []
    for steps in delays or [None]:
        networks, *others = seeds if steps is None else [network.at_delay(steps) for network in seeds]
        folder = output / f"delay-{steps}" if len(delays) > 1 else output
        recorded = recorded_values(collection) if ensemble and steps is None else None
        begun: list[str] = []
        with tqdm(total=1.0, disable=None, leave=False, smoothing=0, bar_format=_BAR) as bar:

            def begin(name: str, share: float, bar: tqdm = bar, begun: list[str] = begun) -> None:
                begun.append(name)
                bar.set_description_str(f"lapsus: {name}", refresh=False)
                bar.update(share - bar.n)
                bar.refresh()

            try:
                claims = reproduce(
                    networks,
                    figure or (),
                    None if claims_only else folder,
                    recording=activity,
                    further=others,
                    values=values,
                    recorded=recorded,
                    progress=begin,
                )
            except KeyboardInterrupt:
                left = [name for name in figure or FIGURES if name not in begun[:-1]]
                rest = f"`lapsus reproduce {' '.join(left)}` makes the rest" if left else "the same command resumes"
                kept = [str(path) for path in (folder, values) if path is not None and path.exists()]
                state = f"what is in {' and '.join(kept)} is whole" if kept else "nothing was kept"
                typer.echo(f"lapsus: stopped; {state}, and {rest}.", err=True)
                raise typer.Exit(130) from None
        printed += [({} if steps is None else {"delay": steps}) | vars(claim) for claim in claims]
        if not json:
            if len(delays) > 1:
                typer.echo(f"Delay of {steps} steps")
            if not claims_only:
                typer.echo(f"Figures are in {folder}/\n")
            typer.echo(describe(claims))
    if json:
        typer.echo(json_module.dumps(printed, indent=1))


def _open(path: Path) -> "xr.Dataset":
    from lapsus.files import read_netcdf
    from lapsus.mechanism.activity import check_activity

    dataset = read_netcdf(path)
    check_activity(dataset)
    return dataset
