"""lapsus reproduce: the paper's figures and claims; further verbs are commands of the same group."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

import json as json_module
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from lapsus.cli import reproduce_cue_combination, reproduce_train
from lapsus.cli.evaluate import Delay, delays_of
from lapsus.cli.train import Trust


class _FiguresUnlessNamed(TyperGroup):
    """`lapsus reproduce fig2` means `lapsus reproduce figures fig2`: whatever names no verb belongs to the figures."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("-h", "--help")):
            args = ["figures", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_FiguresUnlessNamed,
    rich_markup_mode=None,
    help="Make the paper's figures and test its claims, from the shipped networks or from your own runs.",
)


app.command("train")(reproduce_train.command)
app.command("cue-combination")(reproduce_cue_combination.command)


@app.command("figures")
def figures(
    figure: Annotated[
        list[str] | None, typer.Argument(help="Which figures; none means all.", metavar="[FIGURE]...")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Folder of run folders to use instead of the shipped networks.")
    ] = None,
    collection: Annotated[
        str, typer.Option(help="Which of the shipped networks: paper, or persistent (delays that vary).")
    ] = "paper",
    seed: Annotated[
        int | None, typer.Option(help="One seed of the networks that ship with several.", show_default="1; claims: all")
    ] = None,
    further: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of a sweep or of runs whose finished networks count in the claims as further seeds."),
    ] = None,
    delay: Delay = None,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Folder for PDF, PNG and CSV; with several delays, one in it for each."),
    ] = Path("figures"),
    recording: Annotated[
        Path | None, typer.Option(help="A recording (netCDF in the activity form) to draw in Fig 3C.")
    ] = None,
    claims_only: Annotated[bool, typer.Option("--claims-only", help="Test the claims, draw nothing.")] = False,
    values: Annotated[
        Path | None,
        typer.Option(help="Keep the claims' values of each network in this JSON file, so that a run can resume."),
    ] = None,
    trust: Trust = False,
    json: Annotated[bool, typer.Option("--json", help="Print the claims as a JSON list.")] = False,
) -> None:
    """The paper's figures (PDF, PNG, numbers as CSV) and a table of its claims: this is what `lapsus reproduce` does.

    Figures: task, architecture, bns, schedule, fig2, fig3, fig4, table1, windows, unimodal, cyclic, prediction,
    cue-combination.
    """
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
    printed = []
    for steps in delays or [None]:
        networks, *others = [one if steps is None else one.at_delay(steps) for one in seeds]
        recorded = recorded_values(collection) if ensemble and steps is None else None
        own = output / f"delay-{steps}" if len(delays) > 1 else output
        folder = None if claims_only else own
        with TimeLeft() as bar:
            try:
                claims = reproduce(
                    networks,
                    figure or (),
                    folder,
                    recording=activity,
                    further=others,
                    values=values,
                    recorded=recorded,
                    progress=bar.at,
                )
            except KeyboardInterrupt:
                typer.echo(_stopped(bar.begun[:-1], figure or list(FIGURES), folder, values), err=True)
                raise typer.Exit(130) from None
        printed += [({} if steps is None else {"delay": steps}) | claim.as_dict() for claim in claims]
        if not json:
            if len(delays) > 1:
                typer.echo(f"Delay of {steps} steps")
            if not claims_only:
                typer.echo(f"Figures are in {own}/\n")
            typer.echo(describe(claims))
    if json:
        typer.echo(json_module.dumps(printed, indent=1))


class TimeLeft:
    """A line on the terminal: what is being done, how much of all is, for how long, and how long it will take."""

    def __init__(self) -> None:
        from tqdm import tqdm

        form = "{desc}: {percentage:3.0f} % of the work, {elapsed}, about {remaining} left"
        self._bar = tqdm(total=1.0, disable=None, leave=False, smoothing=0, bar_format=form)
        self.begun: list[str] = []

    def __enter__(self) -> "TimeLeft":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def at(self, name: str, share: float) -> None:
        """Something begins when a share of all is done."""
        self.begun.append(name)
        self._bar.set_description_str(f"lapsus: {name}", refresh=False)
        self._bar.update(share - self._bar.n)
        self._bar.refresh()


def _stopped(done: list[str], wanted: list[str], folder: Path | None, values: Path | None) -> str:
    """What an interrupt left, and what makes the rest."""
    drawn = [name for name in wanted if name in done]
    if values is not None and values.exists():
        return f"lapsus: stopped; the values computed so far are in {values}. The same command resumes."
    if folder is None or not drawn:
        return "lapsus: stopped; nothing was kept. The same command starts again."
    left = [name for name in wanted if name not in done]
    rest = f"`lapsus reproduce {' '.join(left)}` makes the rest" if left else "`--claims-only` tests the claims"
    return f"lapsus: stopped; {', '.join(drawn)} {'are' if len(drawn) > 1 else 'is'} whole in {folder}/. {rest}."


def _open(path: Path) -> "xr.Dataset":
    from lapsus.files import read_netcdf
    from lapsus.mechanism.activity import check_activity

    dataset = read_netcdf(path)
    check_activity(dataset)
    return dataset
