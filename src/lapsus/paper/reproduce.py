"""Every figure of the paper by name: drawn, saved as PDF and PNG, its numbers as CSV, and the claims that it bears
on."""

import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from lapsus.errors import LapsusError, LapsusWarning
from lapsus.files import check_file, is_figure, make_folder, write_figure, write_text
from lapsus.paper import (
    cue_combination,
    cyclic,
    fig2,
    fig3,
    fig4,
    prediction,
    schedule,
    schematics,
    table1,
    unimodal,
    windows,
)
from lapsus.paper.claims import CLAIMS, evaluate_claims
from lapsus.paper.roles import Networks
from lapsus.paper.values import Recorded
from lapsus.paper.verdicts import Claim
from lapsus.plots.numbers import numbers_of
from lapsus.plots.style import NOTE

DRAWINGS: dict[str, Callable[[], Figure]] = {
    "task": schematics.task_figure,
    "architecture": schematics.architecture_figure,
    "bns": schematics.bns_figure,
}
# Each has figure(networks) and, where its numbers are not those that are drawn, table(networks).
MODULES: dict[str, Any] = {
    "schedule": schedule,
    "fig2": fig2,
    "fig3": fig3,
    "fig4": fig4,
    "table1": table1,
    "windows": windows,
    "unimodal": unimodal,
    "cyclic": cyclic,
    "prediction": prediction,
    "cue-combination": cue_combination,
}
FIGURES = (*DRAWINGS, *MODULES)


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

    output: a folder for NAME.pdf, NAME.png and NAME.csv; None draws nothing and only tests the claims. A figure without
    any of its networks is left out, with a warning.
    recording: drawn in Figure 3. further: other seeds of the networks, for the claims alone.
    values: where the claims' values of each network are kept; recorded: those of networks that are not there.
    progress is called with what comes next and the share of the work that is done.
    """
    names = list(names) or list(FIGURES)
    for name in names:
        _check_name(name)
    further = further or []
    steps = [] if output is None else list(names)
    steps += [f"claim {id}" for id, test in CLAIMS.items() if test.figure in names]

    def begin(name: str) -> None:
        progress(name, steps.index(name) / len(steps))

    if output is not None:
        for name in names:
            for path in (Path(output) / f"{name}.{ending}" for ending in ("pdf", "png", "csv")):
                check_file(path, "of ours", _is_ours)
        folder = make_folder(output)
        for name in names:
            begin(name)
            options = {"recording": recording} if name == "fig3" else {}
            drawn = DRAWINGS[name]() if name in DRAWINGS else MODULES[name].figure(networks, **options)
            if (missing := _why_empty(drawn)) is None:
                _save(folder / name, drawn, networks)
            else:
                warnings.warn(f"{name} is not drawn, as it would be empty: {missing}.", LapsusWarning, stacklevel=2)
            plt.close(drawn)
    say = lambda id: begin(f"claim {id}")
    return evaluate_claims([networks, *further], set(names), values=values, recorded=recorded, progress=say)


def _why_empty(drawn: Figure) -> str | None:
    """What the first panel lacks, where no panel shows anything but what it lacks."""
    notes = [ax.texts[0].get_text() for ax in drawn.axes if ax.get_gid() == NOTE]
    if not notes or any(ax.has_data() or ax.tables for ax in drawn.axes):
        return None
    return notes[0].replace("-\n", "-").replace("\n", " ")


def _check_name(name: str) -> None:
    if name not in FIGURES:
        close = get_close_matches(name, FIGURES, 1)
        hint = f"Did you mean {close[0]}?" if close else f"Figures: {', '.join(FIGURES)}."
        raise LapsusError(f"There is no figure {name!r}. {hint}")


def _is_ours(path: Path) -> bool:
    """Whether a file is a figure, or the table of one: a table is written after its figure."""
    return is_figure(path) if path.suffix != ".csv" else path.with_suffix(".png").exists()


def _save(place: Path, drawn: Figure, networks: Networks) -> None:
    """Write NAME.pdf, NAME.png and, of what is computed, NAME.csv: its own table or the numbers that are drawn."""
    for ending in ("pdf", "png"):
        write_figure(place.with_suffix(f".{ending}"), drawn, dpi=300)
    if place.name in DRAWINGS:
        return
    text = numbers_of(drawn)
    if hasattr(MODULES[place.name], "table"):
        with suppress(LapsusError):  # a network is missing; the panel says so
            text = MODULES[place.name].table(networks).to_csv(index=False, float_format="%.6g")
    write_text(place.with_suffix(".csv"), text)
