"""Subjects of a trial table as what varies: the behaviour that is fitted to each becomes a target.

Fits are kept in the sweep's folder, so that a sweep that goes on does not fit again.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lapsus.errors import LapsusError
from lapsus.files import file_name, inside, make_folder, read_json, write_json
from lapsus.fitting import fit
from lapsus.fitting.network_target import fitted_behaviour
from lapsus.sweep.plan import slug
from lapsus.sweep.sweep_file import SweepFile
from lapsus.training.build import describe
from lapsus.training.experiment import experiment_table
from lapsus.training.kinds import check_trust
from lapsus.trials import Trials, read_trials


def fitted_targets(
    sweep: SweepFile, output: Path, told: Callable[[str], None] = lambda line: None
) -> dict[str, dict] | None:
    """Subject → the table of its fitted behaviour; None where the sweep has no subjects."""
    wanted = sweep.subjects
    if wanted is None:
        return None
    path = sweep.folder / wanted.trials
    trials = read_trials(path if os.path.exists(path) else wanted.trials, **wanted.table_options())
    subjects = list(dict.fromkeys(map(str, trials.subject)))
    unknown = [name for name in wanted.only or [] if name not in subjects]
    if unknown:
        raise LapsusError(f"{wanted.trials} has no subject {unknown[0]!r}; it has {', '.join(subjects[:20])}.")
    cueing = _cueing(sweep)
    called: dict[str, str] = {}
    for name in wanted.only or subjects:
        other = called.setdefault(slug(name).lower(), name)
        if other != name:
            raise LapsusError(
                f"{wanted.trials}: subjects {other!r} and {name!r} would share the name of a folder; give one of them"
                " another name in the table."
            )
    return {
        name: _target(trials[trials.subject.astype(str) == name], name, cueing, sweep, output, told)
        for name in wanted.only or subjects
    }


def _cueing(sweep: SweepFile) -> str:
    """Whether the networks are told which item (index) or see a feature of it; all must be of one kind."""
    sources = sweep.experiments or [member.experiment for member in sweep.member if member.experiment]
    kinds = set()
    for source in sources:
        path = sweep.folder / source
        task = experiment_table(path if os.path.isfile(path) else source).get("task", {})
        kinds.add("index" if str(task.get("kind", "")).startswith("index-cued") else "feature")
    if len(kinds) != 1:
        raise LapsusError("Subjects need experiments of one kind: all index-cued, or all feature-cued.")
    return kinds.pop()


def _target(
    trials: Trials, name: str, cueing: str, sweep: SweepFile, output: Path, told: Callable[[str], None]
) -> dict:
    wanted = sweep.subjects
    assert wanted is not None
    sizes = sorted(size for size in np.unique(trials.set_size) if size >= 2)
    size = wanted.set_size or (int(sizes[0]) if sizes else 0)
    if size not in sizes:
        raise LapsusError(f"{wanted.trials}: subject {name} has no trials with {size or 'two or more'} items.")
    used = trials[trials.set_size == size]
    digest = hashlib.sha256(f"{wanted.model} {size} {cueing}".encode())
    for values in (used.response, used.report, used.probe):
        digest.update(b"none" if values is None else np.ascontiguousarray(values).tobytes())
    file = inside(output, "targets") / f"{file_name(name)}-{digest.hexdigest()[:8]}.json"
    if not file.is_file():
        told(f"fitting subject {name}, {len(used)} trials")
        fitted = fit(used, wanted.model, progress=False)
        make_folder(file.parent)
        write_json(file, describe("behaviour", fitted_behaviour(fitted, size, cueing)))
    table = read_json(file)
    check_trust(table, file)  # a fit names no class outside of lapsus
    return table
