"""Hostile files for every reader: valid ones, mutated in their bytes and in their structure.

Whatever is read gives a result or a LapsusError; anything else (another exception, a crash, a hang, more than a
gigabyte, a file outside of the folder) is lost. Inputs are read in forks with a limit on memory and on time.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lapsus.errors import LapsusError
from torture import valid
from torture.child import memory_limit, run
from torture.mutations import (
    mutate_assignments,
    mutate_bytes,
    mutate_cells,
    mutate_changes,
    mutate_json,
    mutate_lines,
    mutate_packed,
    mutate_tensors,
    mutate_toml,
    mutate_tsv,
    mutate_variables,
)

SECONDS, MEMORY, BATCH = 20, 1 << 30, 100


@dataclass(frozen=True)
class Reader:
    """A kind of file: a folder with a valid one, its name there, how to mutate it, and what reads it. `slow` readers
    get an eighth of the inputs."""

    name: str
    folder: str
    file: str
    mutations: tuple[Callable[[bytes, random.Random], bytes], ...]
    read: Callable[[Path], object]
    mend: Callable[[Path], None] = lambda folder: None
    slow: bool = False

    @property
    def batch(self) -> int:
        return max(1, BATCH // 8) if self.slow else BATCH


def _trials(folder: Path, name: str) -> object:
    from lapsus.trials import read_trials

    unit = (
        None
        if name.startswith(("bays", "berg"))
        else "radians"
        if name.endswith(("mat", "parquet", "rds", "rda"))
        else "degrees"
    )
    return read_trials(folder / name, unit)


def _bids(folder: Path) -> object:
    from lapsus.trials import read_trials

    return read_trials(folder).name_features(None)


def _experiment(folder: Path) -> object:
    from lapsus.training import read_experiment
    from lapsus.training.kinds import check_trust
    from lapsus.training.model import Model

    changes = (folder / "changes.txt").read_bytes().decode("utf-8", "surrogateescape").split("\n")
    described = read_experiment(folder / "tiny.toml", [line for line in changes if line])
    check_trust(described.model_dump(), "tiny.toml")
    model = Model.of(described)
    return [model.at_stage(stage) for stage in described.stage]


def _sweep(folder: Path) -> object:
    from lapsus.sweep.plan import plan_sweep
    from lapsus.sweep.sweep_file import read_sweep

    return plan_sweep(read_sweep(folder / "sweep.toml"), folder / "members")


def _run(folder: Path) -> object:
    from lapsus.zoo import Run

    opened = Run(folder)
    return opened.update, opened.metrics(), opened.training(), opened.model()


def _fix_hash(folder: Path) -> None:
    """A hostile checkpoint has the right hash."""
    path = folder / "checkpoint-00000003.json"
    facts = json.loads(path.read_text())
    facts["sha256"] = hashlib.sha256((folder / "checkpoint-00000003.safetensors").read_bytes()).hexdigest()
    path.write_text(json.dumps(facts))


def _fit(folder: Path) -> object:
    from lapsus.fitting import Fit

    return Fit.load(folder)


def _discovery(folder: Path) -> object:
    from lapsus import Discovery

    found = Discovery(folder)
    return found.plan, found.runs, found.models, found.evaluations, found.matches, found.mechanisms, found.arrays()


def _discovery_and_fit(folder: Path) -> object:
    from lapsus import Discovery

    return _discovery(folder), Discovery(folder).fit


def _no_hashes(folder: Path) -> None:
    """A hostile discovery has no hashes."""
    path = folder / "stages.json"
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        table = json.loads(path.read_text())
        table["files"] = {}
        path.write_text(json.dumps(table))


def _activity(folder: Path) -> object:
    from lapsus.files import read_netcdf
    from lapsus.mechanism.activity import items

    dataset = read_netcdf(folder / "activity.nc")
    items(dataset)
    return dataset


def _analysed(folder: Path) -> object:
    from lapsus.evaluation.sample_sizes import QUICK
    from lapsus.report.analyses import answers_of

    return answers_of(str(folder / "activity.nc"), threads=1, sizes=QUICK)


def _values(folder: Path) -> object:
    from lapsus.paper.values import KeptValues
    from lapsus.paper.verdicts import judge_networks

    known = KeptValues(folder / "values.json").known
    return [judge_networks("index-rise-only", {name: one.value}) for name, one in known.items()]


def _swept(folder: Path) -> object:
    from lapsus.sweep import Sweep
    from lapsus.sweep.collected import collect
    from lapsus.sweep.status import describe, summary

    sweep = Sweep(folder)
    return json.dumps(summary(sweep)), describe(sweep), collect(sweep)


def _collected(folder: Path) -> object:
    from lapsus.report.ensemble import ensemble_page

    found = _swept(folder)[2]
    links = dict.fromkeys(found.members["member"], "")
    return found.write(folder / "collected"), ensemble_page("x", "", found.members, found.statistics, links)


def _fix_manifest(folder: Path) -> None:
    """A hostile manifest has the right hash."""
    path = folder / "manifest.json"
    with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError):
        table = json.loads(path.read_text())
        plan = {key: value for key, value in table.items() if key not in ("format", "hash")}
        table["hash"] = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:12]
        path.write_text(json.dumps(table))


def _json(folder: Path) -> object:
    from lapsus.files import read_json
    from lapsus.zoo.checkpoints import Checkpoint

    return read_json(folder / "checkpoint-00000003.json", Checkpoint)


TEXT = (mutate_cells, mutate_cells, mutate_bytes)
READERS = (
    Reader("CSV", "tables", "t.csv", TEXT, lambda f: _trials(f, "t.csv")),
    Reader("TSV", "tables", "t.tsv", (mutate_bytes,), lambda f: _trials(f, "t.tsv")),
    Reader("text", "tables", "t.txt", TEXT, lambda f: _trials(f, "t.txt")),
    Reader("Parquet", "tables", "t.parquet", (mutate_bytes,), lambda f: _trials(f, "t.parquet")),
    Reader("MATLAB", "tables", "t.mat", (mutate_bytes,), lambda f: _trials(f, "t.mat")),
    Reader("MATLAB, Bays et al.", "tables", "bays.mat", (mutate_bytes,), lambda f: _trials(f, "bays.mat")),
    Reader("MATLAB, van den Berg et al.", "tables", "berg.mat", (mutate_bytes,), lambda f: _trials(f, "berg.mat")),
    Reader("TOML", "tables", "tiny.toml", (mutate_toml, mutate_assignments, mutate_bytes), _experiment),
    Reader("TOML, --set", "tables", "changes.txt", (mutate_changes, mutate_bytes), _experiment),
    Reader("TOML of a sweep", "tables", "sweep.toml", (mutate_toml, mutate_assignments, mutate_bytes), _sweep),
    Reader("JSON", "run", "checkpoint-00000003.json", (mutate_json, mutate_bytes), _json),
    Reader("run: config", "run", "config.toml", (mutate_toml, mutate_assignments, mutate_bytes), _run),
    Reader("run: checkpoint", "run", "checkpoint-00000003.json", (mutate_json, mutate_bytes), _run),
    Reader(
        "run: safetensors", "run", "checkpoint-00000003.safetensors", (mutate_tensors, mutate_bytes), _run, _fix_hash
    ),
    Reader("run: JSONL", "run", "metrics.jsonl", (mutate_lines, mutate_bytes), _run),
    Reader("fit: netCDF", "fit", "fit.nc", (mutate_bytes,), _fit, slow=True),
    Reader("activity: netCDF", "tables", "activity.nc", (mutate_bytes,), _activity, slow=True),
    Reader("activity: analyse", "activity", "activity.nc", (mutate_variables,), _analysed, slow=True),
    Reader("values of claims", "tables", "values.json", (mutate_json, mutate_bytes), _values),
    Reader("sweep: manifest", "sweep", "manifest.json", (mutate_json, mutate_bytes), _swept, _fix_manifest),
    Reader("sweep: measures", "sweep", valid.MEASURES, (mutate_json, mutate_bytes), _collected, slow=True),
    Reader("sweep: failures", "sweep", "failures/tiny-2.jsonl", (mutate_lines, mutate_bytes), _swept),
    Reader("sweep: who works", "sweep", "working/tiny-2.json", (mutate_json, mutate_bytes), _swept),
    Reader("BIDS: table", "bids", valid.BIDS, (mutate_tsv, mutate_bytes), _bids),
    Reader("BIDS: JSON", "bids", "task-x_beh.json", (mutate_json, mutate_bytes), _bids),
    Reader("R data, .rds", "R", "t.rds", (mutate_packed, mutate_bytes), lambda f: _trials(f, "t.rds")),
    Reader("R data, .rda", "R", "t.rda", (mutate_packed, mutate_bytes), lambda f: _trials(f, "t.rda")),
    Reader("discovery: stages", "found", "stages.json", (mutate_json, mutate_bytes), _discovery_and_fit, slow=True),
    Reader("discovery: target", "found", "target.json", (mutate_json, mutate_bytes), _discovery, _no_hashes),
    Reader("discovery: evaluation", "found", "evaluation.json", (mutate_json, mutate_bytes), _discovery, _no_hashes),
    Reader("discovery: analysis", "found", "analysis.json", (mutate_json, mutate_bytes), _discovery, _no_hashes),
    Reader("discovery: arrays", "found", "analysis/network-1.npz", (mutate_bytes,), _discovery, _no_hashes),
)


def make(folder: Path, run_folder: Path, found: Path | None) -> None:
    """Valid files of every kind below `folder`; as they are, all of them are read."""
    valid.make(folder, run_folder, found)
    for reader in READERS:
        if (folder / reader.folder).is_dir():
            reader.read(folder / reader.folder)


def _attempt(reader: Reader, source: Path, work: Path, seed: str) -> tuple[str, str]:
    """Read one mutated file: ("read" | "refused" | "lost", why)."""
    chance = random.Random(seed)
    target = work / reader.file
    original = (source / reader.file).read_bytes()
    try:
        target.write_bytes(chance.choice(reader.mutations)(original, chance))
        if reader.mend is not None:
            reader.mend(work)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(work)
        return "read", ""
    except LapsusError as error:
        return ("refused", "") if len(str(error)) < 20_000 else ("lost", "an error of too many letters")
    except BaseException as error:  # a traceback for the user: that is what is looked for
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
        return "lost", f"{type(error).__name__}: {str(error)[:80]} ({where})"
    finally:
        for name in (reader.file, "checkpoint-00000003.json", "stages.json"):
            if (source / name).is_file():
                shutil.copy(source / name, work / name)


def _outside(work: Path) -> dict[Path, tuple[int, int]]:
    """Size and time of whatever lies around the folder in which hostile files are read."""
    near = [path for path in work.parent.iterdir() if path not in (work, work.parent / "outcomes.jsonl")]
    paths = [*near, *(inner for path in near if path.name == "valid" for inner in path.rglob("*"))]
    return {path: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in paths}


def batch(reader: Reader, source: Path, work: Path, seeds: list[str]) -> list[tuple[str, str]]:
    """The outcome of each seed; a fork reads them one after another and is replaced when it dies. Where anything was
    written outside of their folder, the last of them is lost."""
    before = _outside(work)
    outcomes = _outcomes(reader, source, work, seeds)
    if touched := [str(path) for path, facts in (_outside(work).items() ^ before.items())]:
        outcomes[-1] = "lost", f"{', '.join(touched)[:200]} was written by one of {seeds[0]} … {seeds[-1]}"
    return outcomes


def _outcomes(reader: Reader, source: Path, work: Path, seeds: list[str]) -> list[tuple[str, str]]:
    outcomes: list[tuple[str, str]] = []
    while len(outcomes) < len(seeds):
        log = work.parent / "outcomes.jsonl"
        log.unlink(missing_ok=True)
        left = seeds[len(outcomes) :]

        def read_all(left: list[str] = left, log: Path = log) -> None:
            memory_limit(MEMORY)
            os.chdir(work)
            with open(log, "a", buffering=1) as lines:
                for seed in left:
                    # Of processor time; who waits for ever without any is caught with the batch.
                    signal.setitimer(signal.ITIMER_PROF, SECONDS)
                    lines.write(json.dumps(_attempt(reader, source, work, seed)) + "\n")
                    signal.setitimer(signal.ITIMER_PROF, 0)

        if work.exists():
            shutil.rmtree(work)
        shutil.copytree(source, work)
        ended = run(read_all, seconds=SECONDS * len(left))
        outcomes += [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
        if ended.code != 0:
            why = (
                "hang"
                if ended.code == -signal.SIGPROF or ended.hung
                else f"died with {ended.code}: {ended.text[-200:]}"
            )
            outcomes.append(("lost", why))
    return outcomes[: len(seeds)]
