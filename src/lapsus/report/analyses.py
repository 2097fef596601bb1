"""Answers of a network or a recording in words and as a row of a table, kept in a file: what was answered is not asked
again."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import xarray as xr

from lapsus import __version__
from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import FULL, SampleSizes
from lapsus.files import (
    Damaged,
    begins,
    check_file,
    from_plain,
    is_figure,
    read_json,
    read_netcdf,
    to_plain,
    understood,
    write_figure,
    write_json,
)
from lapsus.mechanism.activity import check_activity
from lapsus.mechanism.asking import analyse, over_sessions
from lapsus.mechanism.drawing import figure_of
from lapsus.mechanism.recorded import analysable, complete, describe
from lapsus.mechanism.registry import QUESTIONS, Mechanism
from lapsus.mechanism.resemblance import Resemblance, recorded_windows, resemblance, resemblance_figure
from lapsus.plots.style import style
from lapsus.recordings import pseudo_population, read_sessions
from lapsus.training.model import Model, weights_digest
from lapsus.zoo import load

# The table of all answers in a folder, and how it and the answers themselves begin.
TABLE = "mechanism.csv"
# The picture of a comparison with kinds of networks: NAME-comparison.png.
COMPARISON = "comparison"
# Endings of recordings.
RECORDINGS = (".nc", ".nwb")
_TABLE_BEGINS, _ANSWERS_BEGIN = b"network,", b'{\n "source"'


def check_asked(
    sources: Sequence[str],
    delays: Sequence[int | None],
    folder: Path | None,
    trust: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> None:
    """Before the first source is asked: an error where another one cannot be opened, or where what is not ours is in
    the place of the answers."""
    if folder is not None:
        check_file(folder / TABLE, "a table of ours", lambda path: begins(path, _TABLE_BEGINS))
        for source in sources:
            for delay in delays:
                _check_place(_place(source, folder, delay))
    for source in sources[1:]:  # the first is opened at once
        _opened(source, trust, reading)


def _place(source: str, folder: Path, delay: int | None) -> Path:
    stem = Path(source).stem if source.endswith(RECORDINGS) else Path(source).name
    return folder / f"{stem}{'' if delay is None else f'-delay-{delay}'}.json"


def _check_place(path: Path) -> None:
    check_file(path, "a file of answers", lambda file: begins(file, _ANSWERS_BEGIN))
    for part in (*QUESTIONS, COMPARISON):
        check_file(_picture(path, part), "a picture of ours", is_figure)


def _picture(path: Path, part: str) -> Path:
    return path.with_name(f"{path.stem}-{part}.png")


def answers_of(
    source: str,
    folder: Path | None = None,
    *,
    delay: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    trust: bool = False,
    again: bool = False,
    sizes: SampleSizes = FULL,
    reading: Mapping[str, Any] | None = None,
    against: str | None = None,
    progress: Callable[[str], None] = lambda part: None,
) -> dict[str, Any]:
    """Answers of a network (a run folder, a shipped name) or a recording (.nc, .nwb) as plain numbers, with what they
    say (`said`), their row of the table (`row`, with the processor seconds) and what was asked (`source`, `delay` in
    steps). reading: how NWB files are read (`read_sessions`). against: kinds that a recording is compared with.

    In `folder` they are kept as NAME.json with their pictures, and taken from there where they are about the same
    weights, unless they are asked for `again`. progress: called with the name of each part as it begins.
    """
    asked: dict[str, Any] = {"source": source} | ({} if delay is None else {"delay": delay})
    path = None if folder is None else _place(source, folder, delay)
    if path is not None:
        _check_place(path)
    opened = _opened(source, trust, reading)
    made_of = _identity(opened, delay, seed)
    kept = None if path is None or again else _kept(path, made_of)
    if kept is not None:
        return kept | asked
    begun = process_time()
    more: dict[str, Any] = {}
    sentences: list[str] = []
    compared: Resemblance | None = None
    if isinstance(opened, Model):
        if against is not None:
            raise LapsusError("`against` is for recordings; networks are compared by `lapsus predict`.")
        model = opened if delay is None else opened.at(delay=delay)
        mechanism = analyse(model, seed=seed, threads=threads, sizes=sizes, progress=progress)
    else:
        sessions, opened = opened, pseudo_population(opened, seed)
        analysed = analysable(opened)
        sentences, more = describe(opened, analysed)
        if against is not None:  # first: what is wrong with the names is said at once
            windows = recorded_windows(complete(opened))  # few numbers: the copy of all counts is freed
            compared = resemblance(windows, against, seed=seed, progress=progress)
            more |= to_plain(compared)
            sentences.append(compared.sentence())
        mechanism = analyse(analysed, seed=seed, sizes=sizes, progress=progress)
        if len(sessions) > 1:
            more["over_sessions"] = over_sessions(sessions, mechanism, sizes, seed, progress)
    row = to_plain(mechanism.row() | {"seconds": process_time() - begun})
    result = mechanism.to_dict() | more | {"said": [*sentences, *mechanism.sentences()], "row": row, "made_of": made_of}
    if path is not None:
        _draw(mechanism, path, compared)  # first: with the answers there, nothing is made again
        write_json(path, asked | result)
    return result | asked


def _opened(source: str, trust: bool, reading: Mapping[str, Any] | None = None) -> Model | list[xr.Dataset]:
    if ".nwb" in Path(source).suffix:
        return read_sessions(source, **(reading or {}))
    if not source.endswith(".nc"):
        return load(source, trust)
    dataset = read_netcdf(Path(source))
    check_activity(dataset)
    return [dataset]


def _identity(opened: Model | list[xr.Dataset], delay: int | None, seed: int) -> dict[str, Any] | None:
    """Of a network: answers that were computed from the same need not be computed again; recordings are quick."""
    if not isinstance(opened, Model):
        return None
    made_of = {"weights": weights_digest(opened), "seed": seed, "lapsus": __version__}
    return made_of if delay is None else made_of | {"delay": delay}


def _kept(path: Path, made_of: dict[str, Any] | None) -> dict[str, Any] | None:
    """Answers of an earlier call, cut or not, where they are about the same network."""
    if not path.exists() or made_of is None:
        return None
    try:
        earlier = read_json(path)
        if earlier.get("made_of") != made_of:
            return None
        with understood(path):  # what callers take of it
            from_plain(list[str], earlier["said"])
            from_plain(dict[str, float | str | bool | None], earlier["row"])
    except Damaged:
        return None  # asked again, and written anew
    return earlier


def _draw(found: Mechanism, path: Path, compared: Resemblance | None) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figures = {name: partial(figure_of, name, found) for name in found.answers}
    if compared is not None and compared.features:
        figures[COMPARISON] = partial(resemblance_figure, compared)
    for name, drawn in figures.items():
        with style():
            figure = drawn()
        write_figure(_picture(path, name), figure, dpi=150)
        plt.close(figure)
