"""Every figure of the paper by name: drawn, saved as PDF and PNG, its numbers as CSV, and the claims that it bears
on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from lapsus.errors import LapsusError
from lapsus.files import check_file, is_figure, make_folder, write_figure, write_text
from lapsus.paper import appendix, architecture, cue_combination, fig2, fig3, fig4, memory, prediction, schematics
from lapsus.paper.claims import CLAIMS, evaluate_claims
from lapsus.paper.recorded import Recorded
from lapsus.paper.roles import Networks
from lapsus.paper.verdicts import Claim, criteria

__all__ = ["FIGURES", "reproduce"]


# For the time left, in proportion: rounded seconds of processor time, of claims as one run took with a set of networks,
# of figures estimated from the claims that rest on them (which then cost nothing for that set).
_FIGURES = {"fig2": 25, "fig3": 60, "fig4": 20, "windows": 45, "prediction": 12, "memory": 430, "cue-combination": 10}
_CLAIMS = {
    "feature-rise-only": 36,
    "windows-aligned": 45,
    "feature-rise-smooth": 12,
    "alignment-predicts-swaps": 12,
    "alignment-follows-swaps": 11,
    "distance-ablation": 10,
    "dice-after-cue": 7,
}
_OTHERS = 2


@dataclass(frozen=True)
class Named:
    """What a figure shows, how it is drawn and the tables behind it."""

    title: str
    draw: Callable[[Networks], Figure]
    tables: Callable[[Networks], dict[str, pd.DataFrame]]


def _one(name: str, make: Callable[[Networks], pd.DataFrame]) -> Callable[[Networks], dict[str, pd.DataFrame]]:
    def tables(networks: Networks) -> dict[str, pd.DataFrame]:
        try:
            return {name: make(networks)}
        except LapsusError:
            return {}

    return tables


def _cyclic_table(networks: Networks) -> pd.DataFrame:
    found = fig4.normals(networks)
    return (
        pd.DataFrame(appendix.cyclic_alignment(found.cued), index=found.colours, columns=found.colours)
        .rename_axis("colour")
        .reset_index()
    )


FIGURES: dict[str, Named] = {
    "task": Named("task and training", lambda _: schematics.task_figure(), lambda _: {}),
    "fig2": Named("swap errors reproduced; ablations", fig2.figure, fig2.tables),
    "fig3": Named("plane alignment over time", fig3.figure, fig3.tables),
    "fig4": Named("misselection and the two rings", fig4.figure, fig4.tables),
    "table1": Named("sigmoid against flat", appendix.sigmoid_figure, _one("table1", appendix.table_1)),
    "windows": Named(
        "alignment for other optimisation windows", appendix.windows_figure, _one("alignment", appendix.windows_table)
    ),
    "unimodal": Named(
        "squared error on samples", appendix.unimodal_figure, _one("averaging", appendix.averaging_by_condition)
    ),
    "cyclic": Named(
        "alignment of the rings' normals between fixed colours", appendix.cyclic_figure, _one("matrix", _cyclic_table)
    ),
    "schedule": Named(
        "noise schedule", lambda _: schematics.schedule_figure(), lambda _: {"schedule": schematics.schedule_table()}
    ),
    "architecture": Named("architecture and training", lambda _: architecture.architecture_figure(), lambda _: {}),
    "bns": Named("graphical model of BNS", lambda _: architecture.graphical_model_figure(), lambda _: {}),
    "prediction": Named("alignment on single trials predicts swaps?", prediction.figure, prediction.tables),
    "memory": Named("both sets of networks at other delays", memory.figure, memory.tables),
    "cue-combination": Named("causal inference in cue combination", cue_combination.figure, cue_combination.tables),
}


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

    further: other seeds of the networks, for the claims alone. values: where those of each network are kept; recorded:
    those of networks that are not there.
    output: a folder for NAME.pdf, NAME.png and NAME-*.csv; None draws nothing and only tests the claims.
    progress is called with what comes next and the share of the work that is done.
    """
    from matplotlib import pyplot as plt

    names = list(names) or list(FIGURES)
    for name in names:
        if name not in FIGURES:
            close = get_close_matches(name, FIGURES, 1)
            raise LapsusError(
                f"There is no figure {name!r}. "
                + (f"Did you mean {close[0]}?" if close else f"Figures: {', '.join(FIGURES)}.")
            )
    drawing = [] if output is None else names
    further = further or []
    sets = len(further) + (0.1 if drawing else 1)
    costs: dict[str, float] = {name: _FIGURES.get(name, _OTHERS) for name in drawing}
    costs |= {f"claim {id}": sets * _CLAIMS.get(id, _OTHERS) for id in criteria() if CLAIMS[id].figure in names}
    done, whole = 0.0, sum(costs.values())

    def begin(name: str) -> None:
        nonlocal done
        progress(name, done / whole)
        done += costs[name]

    if output is not None:
        pictures = {name: [Path(output) / f"{name}.{ending}" for ending in ("pdf", "png")] for name in drawing}
        before = {path for paths in pictures.values() for path in paths if check_file(path, "of ours", is_figure)}
        folder = make_folder(output)
        for name in drawing:
            begin(name)
            drawn = fig3.figure(networks, recording) if name == "fig3" else FIGURES[name].draw(networks)
            tables = {
                folder / f"{name}{'' if part == name else f'-{part}'}.csv": table
                for part, table in FIGURES[name].tables(networks).items()
            }
            if before.isdisjoint(pictures[name]):  # tables are written after their figure: one without it is not ours
                for path in tables:
                    check_file(path, "a table of ours", lambda _: False)
            for path in pictures[name]:
                write_figure(path, drawn, dpi=300)
            plt.close(drawn)
            for path, table in tables.items():
                write_text(path, table.to_csv(index=False, float_format="%.6g"))
    say = lambda id: begin(f"claim {id}")
    return evaluate_claims([networks, *further], set(names), values=values, recorded=recorded, progress=say)
