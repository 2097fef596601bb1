"""lapsus sweep: many trainings from one file; further verbs are commands of the same group."""

import json as json_module
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapsus.cli.options import Trust, default_verb, described
from lapsus.errors import LapsusError

if TYPE_CHECKING:
    from lapsus.sweep import Pool, Sweep

# `lapsus sweep study.toml` means `lapsus sweep run study.toml`.
app = typer.Typer(
    cls=default_verb("run"),
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Train many networks from one file, on this machine or on a cluster: `lapsus sweep FILE -o DIR` starts or"
    " continues.",
)

File = Annotated[Path, typer.Argument(help="A sweep file (.toml): experiments, seeds, what varies.")]
Folder = Annotated[Path, typer.Argument(help="The folder of a sweep.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Folder of the sweep.", show_default="runs/NAME")]


@app.command("run", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
@described
def run(
    context: typer.Context,
    file: File,
    output: Output = None,
    workers: int | None = None,
    slurm: bool = False,
    pack: int | None = None,
    at_once: int | None = None,
    dask: str | None = None,
    again: bool = False,
    trust: Trust = False,
) -> None:
    """Train every member of a sweep and measure it; what is done is skipped, what was cut off continues.

    workers: Members at a time on this machine. [default: one a core]
    slurm: Through SLURM; options that lapsus does not know go to sbatch.
    pack: With --slurm: members in one task. [default: 8]
    at_once: With --slurm: tasks at a time. [default: no limit]
    dask: Address of a Dask scheduler, as in tcp://host:8786.
    again: Try members that were given up once more.
    """
    from lapsus.files import remove

    if context.args and not slurm:
        raise LapsusError(
            f"lapsus sweep has no option {context.args[0]}; other options are passed to sbatch only with --slurm."
        )
    if slurm and dask:
        raise LapsusError("A sweep goes to --slurm or to --dask, not to both.")
    for name, value in (("workers", workers), ("pack", pack), ("at-once", at_once)):
        if value is not None and value < 1:
            raise LapsusError(f"--{name} must be at least 1, not {value}.")
        if value is not None and (name == "workers" if slurm or dask else name != "workers"):
            where = "of this machine; leave it out" if name == "workers" else "for --slurm"
            raise LapsusError(f"--{name} is {where}.")
    sweep = _made(file, output, trust)
    if again and (count := sweep.forget_failures()):
        typer.echo(f"{count} members that were given up are tried again.", err=True)
    remove(sweep.stop_file)
    if slurm:
        from lapsus.sweep.slurm import PACK, submit

        jobs = submit(sweep, context.args, pack or PACK, at_once)
        if jobs:
            typer.echo(f"Submitted: {', '.join(jobs)}. `lapsus sweep status {sweep.path}` says how they stand.")
        else:
            typer.echo("Nothing to submit: all members are done, given up, running or queued.")
        return
    if dask:
        from lapsus.sweep.dask_cluster import dask_pool

        _tell(sweep, _run(dask_pool(sweep, dask, lambda line: typer.echo(line, err=True))))
    else:
        from lapsus.sweep import Pool
        from lapsus.sweep.status import ProgressBar

        with closing(ProgressBar()) as bar:
            interrupted = _run(Pool(sweep, workers, shown=bar))
        _tell(sweep, interrupted)


def _made(file: Path, output: Path | None, trust: bool) -> "Sweep":
    """The sweep's folder; what cannot be trained is said before it is made."""
    from lapsus.files import check_place, file_name
    from lapsus.sweep import Sweep, plan_sweep, read_sweep
    from lapsus.sweep.rehearsal import try_settings
    from lapsus.sweep.subjects import fitted_targets

    described = read_sweep(file)
    output = output or Path("runs") / file_name(described.name)
    there = check_place(output, "sweep")
    targets = fitted_targets(described, output, lambda line: typer.echo(line, err=True))
    plan = plan_sweep(described, output, targets, trust)
    try_settings(plan, output / "members", _known_settings(output) if there else ())
    sweep = Sweep.make(output, plan)
    starts = len({plan.start(name) for name in plan.members} - {None})
    extra = f", {starts} of them as starts of others" if starts else ""
    typer.echo(f"{plan.name}: {len(plan.members)} members{extra}; plan {sweep.hash} in {output}", err=True)
    return sweep


def _known_settings(output: Path) -> list[str]:
    """Settings of the sweep that is there; none where its manifest is damaged and will be made again."""
    from lapsus.sweep import Sweep

    try:
        return list(Sweep(output).plan.settings)
    except LapsusError:
        return []


def _run(pool: "Pool") -> bool:
    """Whether it was interrupted."""
    import signal

    from lapsus.sweep.pool import asked_by_signal

    with asked_by_signal(pool, signal.SIGINT, signal.SIGTERM):
        pool.run()
    return pool.stopping


def _tell(sweep: "Sweep", interrupted: bool) -> None:
    """What came of it, and what to do next."""
    from lapsus.sweep.status import describe

    typer.echo(describe(sweep))
    if interrupted:
        typer.echo("Stopped; all is saved. The same command continues.")
        raise typer.Exit(130)
    typer.echo(f"`lapsus sweep collect {sweep.path}` makes one table and one page of it.")
    states = sweep.states()
    if states.failed or states.blocked:
        raise typer.Exit(1)


@app.command("plan")
@described
def plan(file: File, output: Output = None, json: bool = False, trust: Trust = False) -> None:
    """Make the folder and its manifest, and train nothing.

    json: Print the manifest.
    """
    sweep = _made(file, output, trust)
    if json:
        typer.echo((sweep.path / "manifest.json").read_text())
        return
    for name in sweep.plan.members:
        start = sweep.plan.start(name)
        typer.echo(name + (f"  (after {start})" if start else ""))


@app.command("status")
@described
def status(folder: Folder, json: bool = False) -> None:
    """How many members are done, running, given up; progress of those that run, last lines of those that failed.

    json: Print one JSON object.
    """
    from lapsus.sweep import Sweep
    from lapsus.sweep.status import describe, summary

    sweep = Sweep(folder)
    typer.echo(json_module.dumps(summary(sweep)) if json else describe(sweep))


@app.command("cancel")
def cancel(folder: Folder) -> None:
    """Have everyone who works on the sweep save and stop, here and in the queue."""
    from lapsus.files import write_text
    from lapsus.sweep import Sweep
    from lapsus.sweep.slurm import cancel_jobs

    sweep = Sweep(folder)
    write_text(sweep.stop_file, "")
    count = cancel_jobs(sweep)
    typer.echo(
        "Whoever works on it saves and stops."
        + (f" {count} tasks of SLURM are cancelled." if count else "")
        + " The command that began the sweep continues it."
    )


@app.command("collect")
@described
def collect(folder: Folder, reports: bool = False, trust: Trust = False) -> None:
    """One table of all members (CSV, Parquet) and one page: every statistic over members, and who stands apart.

    reports: Make the report of every network that stands apart; a minute for each.
    """
    from lapsus.files import subfolder, write_text
    from lapsus.report.ensemble import ensemble_page
    from lapsus.sweep import Sweep
    from lapsus.sweep.collected import collect as collect_members

    sweep = Sweep(folder)
    collected = collect_members(sweep)
    output = subfolder(sweep.path, "collected")
    written = collected.write(output)
    if reports:
        asked = collected.statistics[~collected.statistics["setting"].isin(sweep.plan.starts)]
        _make_reports(sweep, dict.fromkeys(" ".join(asked["outliers"]).split()), trust)
    count = sum(member.setting not in sweep.plan.starts for member in sweep.plan.members.values())
    page = ensemble_page(
        f"{sweep.plan.name}: {count} networks",
        sweep.plan.description,
        collected.members,
        collected.statistics,
        links={name: _link(sweep, name) for name in sweep.plan.members},
        given_up={name: sweep.failures(name)[-1]["reason"] for name in sweep.states().failed},
        differences=collected.differences,
    )
    write_text(output / "index.html", page)
    done = int(collected.members["done"].sum())
    typer.echo(f"{done} of {len(collected.members)} members, {len(collected.measured)} numbers of each.")
    typer.echo(f"Written in {output}: {', '.join([*written, 'index.html'])}")


def _make_reports(sweep: "Sweep", names: Iterable[str], trust: bool) -> None:
    """Reports of these members that have none."""
    from lapsus.cli.words import on_terminal
    from lapsus.pipeline.reports import write_report

    for name in names:
        folder = sweep.run_folder(name)
        if not (folder / "report.html").is_file():
            typer.echo(f"report of {name}", err=True)
            write_report([str(folder)], None, None, trust=trust, progress=on_terminal)


def _link(sweep: "Sweep", name: str) -> str:
    """From the page to a member's report, or to its folder where it has none yet."""
    report = sweep.run_folder(name) / "report.html"
    return f"../members/{name}/" + ("report.html" if report.is_file() else "")


@app.command("task", hidden=True)
def task(folder: Path, submission: str, array: int, index: int, trust: Trust = False) -> None:
    """One task of a SLURM array: what the script runs that `--slurm` submits."""
    from lapsus.sweep import Sweep
    from lapsus.sweep.slurm import run_task

    raise typer.Exit(run_task(Sweep(folder, trust), submission, array, index, lambda line: typer.echo(line, err=True)))
