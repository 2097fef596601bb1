"""Every figure of the paper by name: drawn, saved as PDF and PNG, its numbers as CSV, and the claims that it bears
on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path

import pandas as pd
import xarray as xr
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from lapsus.errors import LapsusError
from lapsus.files import check_file, is_figure, make_folder, write_figure, write_text
from lapsus.paper import cue_combination, cyclic, fig2, fig3, fig4, prediction, schematics, table1, unimodal, windows
from lapsus.paper.claims import CLAIMS, evaluate_claims
from lapsus.paper.roles import Networks
from lapsus.paper.values import Recorded
from lapsus.paper.verdicts import Claim

__all__ = ["FIGURES", "reproduce"]


@dataclass(frozen=True)
class Named:
    """How a figure is drawn, and the tables behind it by the name of their file."""

    draw: Callable[[Networks], Figure]
    tables: Callable[[Networks], dict[str, pd.DataFrame]] = lambda networks: {}


FIGURES = {
    "task": Named(lambda _: schematics.task_figure()),
    "fig2": Named(fig2.figure, fig2.tables),
    "fig3": Named(fig3.figure, fig3.tables),
    "fig4": Named(fig4.figure, fig4.tables),
    "table1": Named(table1.figure, table1.tables),
    "windows": Named(windows.figure, windows.tables),
    "unimodal": Named(unimodal.figure, unimodal.tables),
    "cyclic": Named(cyclic.figure, cyclic.tables),
    "schedule": Named(lambda _: schematics.schedule_figure(), lambda _: {"schedule": schematics.schedule_table()}),
    "architecture": Named(lambda _: schematics.architecture_figure()),
    "bns": Named(lambda _: schematics.bns_figure()),
    "prediction": Named(prediction.figure, prediction.tables),
    "cue-combination": Named(cue_combination.figure, cue_combination.tables),
}

# For the time left: rounded seconds of processor time, of claims for one seed of the networks; others take about 2.
_FIGURE_COSTS = {"fig2": 25, "fig3": 60, "fig4": 20, "windows": 45, "prediction": 12, "cue-combination": 10}
_CLAIM_COSTS = {
    "feature-rise-only": 36,
    "windows-aligned": 45,
    "feature-rise-smooth": 12,
    "alignment-predicts-swaps": 12,
    "alignment-follows-swaps": 11,
    "distance-ablation": 10,
    "dice-after-cue": 7,
}
_OTHER_COST = 2
# Of the claims of networks whose figures were drawn, which leaves little to compute.
_AFTER_FIGURE = 0.1


def reproduce(
    networks: Networks,
    names: Iterable[str] = (),
    output: str | Path | None = None,
    *,
    recording: xr.Dataset | None = None,
    further: list[Networks] | None = None,
    values: str | Path | None = None,
    recorded: Recorded | None = None,
    progress: Callable[[str, float], None] = lambda name, share: None,
) -> list[Claim]:
    """Draw the named figures (none named: all) into `output` and return the claims they bear on.

    output: a folder for NAME.pdf, NAME.png and NAME-*.csv; None draws nothing and only tests the claims.
    recording: drawn in Figure 3. further: other seeds of the networks, for the claims alone.
    values: where the claims' values of each network are kept; recorded: those of networks that are not there.
    progress is called with what comes next and the share of the work that is done.
    """
    names = list(names) or list(FIGURES)
    for name in names:
        _check_name(name)
    further = further or []
    drawing = [] if output is None else names
    seeds = len(further) + (_AFTER_FIGURE if drawing else 1)
    costs = {name: float(_FIGURE_COSTS.get(name, _OTHER_COST)) for name in drawing}
    claimed = [id for id, test in CLAIMS.items() if test.figure in names]
    costs |= {f"claim {id}": seeds * _CLAIM_COSTS.get(id, _OTHER_COST) for id in claimed}
    done: list[str] = []

    def begin(name: str) -> None:
        progress(name, sum(costs[one] for one in done) / sum(costs.values()))
        done.append(name)

    if output is not None:
        before = {
            name for name in names for path in _pictures(Path(output), name) if check_file(path, "of ours", is_figure)
        }
        folder = make_folder(output)
        for name in names:
            begin(name)
            draw = partial(fig3.figure, recording=recording) if name == "fig3" else FIGURES[name].draw
            _save(folder, name, draw, networks, again=name in before)
    say = lambda id: begin(f"claim {id}")
    return evaluate_claims([networks, *further], set(names), values=values, recorded=recorded, progress=say)


def _check_name(name: str) -> None:
    if name not in FIGURES:
        close = get_close_matches(name, FIGURES, 1)
        hint = f"Did you mean {close[0]}?" if close else f"Figures: {', '.join(FIGURES)}."
        raise LapsusError(f"There is no figure {name!r}. {hint}")


def _pictures(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.{ending}" for ending in ("pdf", "png")]


def _save(folder: Path, name: str, draw: Callable[[Networks], Figure], networks: Networks, again: bool) -> None:
    """Draw a figure and write it with its tables; again: it was there before."""
    drawn = draw(networks)
    try:
        tables = FIGURES[name].tables(networks)
    except LapsusError:  # a network is missing; the panel says so
        tables = {}
    files = {folder / (f"{name}.csv" if part == name else f"{name}-{part}.csv"): tables[part] for part in tables}
    if not again:  # tables are written after their figure: one without it is not ours
        for path in files:
            check_file(path, "a table of ours", lambda _: False)
    for path in _pictures(folder, name):
        write_figure(path, drawn, dpi=300)
    plt.close(drawn)
    for path, table in files.items():
        write_text(path, table.to_csv(index=False, float_format="%.6g"))
