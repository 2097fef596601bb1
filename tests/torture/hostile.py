"""Hostile files for every reader: valid ones, mutated in their bytes and in their structure.

Whatever is read gives a result or a LapsusError; anything else (another exception, a crash, a hang, more than a
gigabyte, a file outside of the folder) is lost. Inputs are read in forks with a limit on memory and on time.
"""

import contextlib
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lapsus.errors import LapsusError
from torture.child import memory_limit, run
from torture.jobs import TINY

SECONDS, MEMORY, BATCH = 20, 1 << 30, 100
NASTY = (
    "", "nan", "inf", "-inf", "1e308", "1e-320", "-0", "9" * 400, "0x10", "1,5", "$\\frac{$", "\ud83d", "\x00",
    "\u202e", "../../x", "/etc/passwd", "=1+1", "None", "true", '"', "'", "\n", "\r", ";", "\t", "é" * 300, "12 345",
    "٣", "1_000",
)  # fmt: skip
NAMES = (
    "non_target_20260101",
    "non_target_0",
    "response",
    "target",
    "target.1",
    "cued",
    "report_1",
    "probe_99",
    "id",
    "",
)
VALUES = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e308, float("nan"), float("inf"), "", "x" * 5000,
    "lapsus.data.__main__:x", "subprocess:Popen", "os:system", "../../x", [], [[]], [1, 2], {}, {"kind": "none"},
)  # fmt: skip


# Values as TOML writes them that JSON has no words for, and keys that make depth without brackets.
TOML = (
    "1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "9" * 5000, "0x" + "f" * 400, "[" * 400 + "]" * 400, "nan",
    "-inf", '"""\n"""', "{}", "{a = {b = [{}]}}", "[[1], [2]]", "[[]]", '["x", "y"]', "[nan]", "[1e308, -1e308]",
)  # fmt: skip
DEEP = ".".join("a" * 3000)


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """A few of the usual accidents."""
    data = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(7)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[at : at + chance.choice((1, 2, 8, 100, len(data)))]
        elif kind == 2:
            data[at:at] = chance.randbytes(chance.choice((1, 4, 64)))
        elif kind == 3:
            data[at:at] = data[: chance.choice((1, 16, 200))]
        elif kind == 4:
            data[at : at + 4] = struct.pack("<i", chance.choice((0, -1, 1, 2**31 - 1, -(2**31), 255, 65536)))
        elif kind == 5:
            data[at : at + 8] = struct.pack("<q", chance.choice((0, -1, 2**63 - 1, 2**40, 1)))
        else:
            data[at:at] = chance.choice(NASTY).encode("utf-8", "surrogatepass")
    return bytes(data)


def mutate_cells(data: bytes, chance: random.Random) -> bytes:
    """A table of text with other names, cells, separators, fields too many and too few."""
    rows = [line.split(",") for line in data.decode().splitlines()]
    for _ in range(chance.choice((1, 1, 3, 10))):
        row = chance.randrange(len(rows))
        kind = chance.randrange(6)
        if kind == 0:
            rows[row][chance.randrange(len(rows[row]))] = chance.choice(NASTY)
        elif kind == 1:
            rows[0][chance.randrange(len(rows[0]))] = chance.choice(NAMES)
        elif kind == 2:
            rows[row] = rows[row][: chance.randrange(len(rows[row]) + 1)] or [""]
        elif kind == 3:
            rows[row] = [*rows[row], chance.choice(NASTY)]
        elif kind == 4:
            rows = (
                [[*cells, ""] for cells in rows] if chance.random() < 0.5 else [rows[0], *([*c, "1"] for c in rows[1:])]
            )
        else:
            rows.insert(row, [chance.choice(NASTY)] * chance.randrange(1, 8))
    text = "\n".join(chance.choice((",", ",", ",", ";", "\t")).join(row) for row in rows)
    return text.encode(chance.choice(("utf-8", "utf-8", "utf-16", "utf-8-sig")), "surrogatepass")


def mutate_tree(value: object, chance: random.Random) -> object:
    """The same JSON with one part that is something else."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        changed = dict(value)
        kind = chance.randrange(8)
        if kind == 0:
            del changed[key]
        elif kind == 1:
            changed[chance.choice(("kind", "x" * 300, "", "update", "stage"))] = chance.choice(VALUES)
        else:
            changed[key] = mutate_tree(value[key], chance)
        return changed
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        return [*value[:at], mutate_tree(value[at], chance), *value[at + 1 :]]
    return chance.choice(VALUES)


def mutate_json(data: bytes, chance: random.Random) -> bytes:
    tree = json.loads(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        tree = mutate_tree(tree, chance)
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def mutate_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines()
    at = chance.randrange(len(lines))
    lines[at] = mutate_json(lines[at], chance) if chance.random() < 0.7 else mutate_bytes(lines[at], chance)
    return b"\n".join(lines)


def mutate_toml(data: bytes, chance: random.Random) -> bytes:
    import tomllib

    from lapsus.training.experiment import to_toml

    tree = tomllib.loads(data.decode())
    for _ in range(chance.choice((1, 1, 2, 4))):
        tree = mutate_tree(tree, chance)
    try:
        return to_toml(tree).encode("utf-8", "replace")
    except (AttributeError, TypeError):
        return mutate_bytes(data, chance)


def mutate_assignments(data: bytes, chance: random.Random) -> bytes:
    """TOML with other values and keys, as they are written."""
    lines = data.decode().splitlines()
    places = [at for at, line in enumerate(lines) if " = " in line]
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.choice(places)
        key, _, value = lines[at].partition(" = ")
        if chance.random() < 0.2:
            lines[at] = f"{key}.{DEEP} = {value}" if chance.random() < 0.5 else f"{DEEP} = {value}"
        else:
            lines[at] = f"{key} = {chance.choice(TOML)}"
    return "\n".join(lines).encode()


def mutate_changes(data: bytes, chance: random.Random) -> bytes:
    """Changes as --set takes them, one to a line: other paths, other values."""
    lines = data.decode().splitlines()
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(lines))
        key, _, value = lines[at].partition("=")
        parts = key.split(".")
        if chance.random() < 0.5:
            place = chance.randrange(len(parts) + 1)
            parts[place : place + chance.randrange(2)] = [
                chance.choice(("*", "-1", "0", "²", "9" * 5000, "", "kind", "task", "stage", "branching", DEEP))
            ]
        if chance.random() < 0.7:
            value = chance.choice((*TOML, *NASTY, json.dumps(chance.choice(VALUES))))
        lines[at] = f"{'.'.join(parts)}={value}"
    return "\n".join(lines).encode("utf-8", "replace")


def mutate_tensors(data: bytes, chance: random.Random) -> bytes:
    """Safetensors with another header."""
    size = int.from_bytes(data[:8], "little")
    header = mutate_json(data[8 : 8 + size], chance)
    size = len(header) if chance.random() < 0.9 else chance.choice((0, 1, 2**62, len(header) * 2))
    return size.to_bytes(8, "little") + header + data[8 + int.from_bytes(data[:8], "little") :]


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

    unit = None if name.startswith(("bays", "berg")) else "radians" if name.endswith(("mat", "parquet")) else "degrees"
    return read_trials(folder / name, unit)


def _experiment(folder: Path) -> object:
    from lapsus.training import read_experiment
    from lapsus.training.kinds import check_trust
    from lapsus.training.model import Model

    changes = (folder / "changes.txt").read_bytes().decode("utf-8", "surrogateescape").split("\n")
    described = read_experiment(folder / "tiny.toml", [line for line in changes if line])
    check_trust(described.model_dump(), "tiny.toml", own=True)
    model = Model.of(described)
    return [model.at_stage(stage) for stage in described.stage]


def _sweep(folder: Path) -> object:
    from lapsus.sweep.plan import plan_sweep
    from lapsus.sweep.sweep_file import read_sweep

    return plan_sweep(read_sweep(folder / "sweep.toml"), folder / "members")


def _run(folder: Path) -> object:
    from lapsus.library import Run

    opened = Run(folder)
    return opened.update, opened.metrics(), opened.training(), opened.model()


def _fix_hash(folder: Path) -> None:
    """A hostile checkpoint has the right hash."""
    path = folder / "checkpoint-00000003.json"
    facts = json.loads(path.read_text())
    facts["sha256"] = hashlib.sha256((folder / "checkpoint-00000003.safetensors").read_bytes()).hexdigest()
    path.write_text(json.dumps(facts))


def _fit(folder: Path) -> object:
    from lapsus.inference import Fit

    return Fit.load(folder)


def _discovery(folder: Path) -> object:
    from lapsus import Discovery

    found = Discovery(folder)
    return found.plan, found.runs, found.models, found.evaluations, found.matches, found.mechanisms, found.arrays()


def _discovery_and_fit(folder: Path) -> object:
    from lapsus import Discovery

    return _discovery(folder), Discovery(folder).fit


def _no_hashes(folder: Path) -> None:
    """A hostile discovery has no hashes, as those of version 0.1."""
    path = folder / "stages.json"
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        table = json.loads(path.read_text())
        table.pop("files", None)
        path.write_text(json.dumps(table))


def _activity(folder: Path) -> object:
    from lapsus.analysis.activity import items
    from lapsus.files import read_netcdf

    dataset = read_netcdf(folder / "activity.nc")
    items(dataset)
    return dataset


def _json(folder: Path) -> object:
    from lapsus.files import read_json
    from lapsus.library.runs import Checkpoint

    return read_json(folder / "checkpoint-00000003.json", Checkpoint)


RICH = (
    TINY
    + """
[[stage]]
name = "second"
updates = 2
task = { denoise = [2, 3], delay = 2 }
behaviour = { kind = "bns", swap = { kind = "smooth" } }
objective = { kind = "task-optimal" }
[noise]
first = 0.3
"""
)
CHANGES = "stage.0.updates=4\nnetwork.units=5\nstage.*.trials=8\nnetwork.branching=[2, 2]\nnoise.last=0.02\n"
SWEEP = """
name = "small"
experiment = "tiny.toml"
seeds = 2
tries = 2
[vary]
"network.units" = [4, 6]
stage.0.updates = [2, 3]
[measure]
mechanism = false
"""
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
    Reader("discovery: stages", "found", "stages.json", (mutate_json, mutate_bytes), _discovery_and_fit, slow=True),
    Reader("discovery: target", "found", "target.json", (mutate_json, mutate_bytes), _discovery, _no_hashes),
    Reader("discovery: evaluation", "found", "evaluation.json", (mutate_json, mutate_bytes), _discovery, _no_hashes),
    Reader("discovery: analysis", "found", "analysis.json", (mutate_json, mutate_bytes), _discovery, _no_hashes),
    Reader("discovery: arrays", "found", "analysis/network-1.npz", (mutate_bytes,), _discovery, _no_hashes),
)


def make(folder: Path, run_folder: Path, found: Path | None) -> None:
    """Valid files of every kind below `folder`."""
    from scipy.io import savemat

    from lapsus.inference import fit
    from lapsus.library import load
    from lapsus.study import simulate
    from lapsus.trials import read_trials
    from torture.jobs import MADE

    tables = folder / "tables"
    tables.mkdir()
    trials = read_trials(MADE["table"])
    text = "\n".join(MADE["table"].read_text().splitlines()[:13]) + "\n"
    (tables / "t.csv").write_text(text)
    (tables / "t.txt").write_text(text)
    (tables / "t.tsv").write_text(text.replace(",", "\t"))
    (tables / "tiny.toml").write_text(RICH)
    (tables / "changes.txt").write_text(CHANGES)
    (tables / "sweep.toml").write_text(SWEEP)
    trials.table.head(12).to_parquet(tables / "t.parquet")
    numbers = trials.table.head(12).select_dtypes("number")
    savemat(tables / "t.mat", {name: values.to_numpy() for name, values in numbers.items()})
    rng = np.random.default_rng(0)
    angles = lambda *shape: rng.uniform(-3, 3, shape)  # noqa: E731
    bays = {"n_items": np.full(6, 3), "target": angles(6), "response": angles(6), "nontarget": angles(6, 2)}
    bays |= {"target_pos": angles(6), "nontarget_pos": angles(6, 2), "delay": np.ones(6)}
    savemat(tables / "bays.mat", bays)
    colours = np.zeros((8, 5))
    colours[:2] = rng.integers(1, 181, (2, 5))
    recording = {"set_size": np.full(5, 2), "c_array": colours, "test": np.ones(5), "RT": np.ones(5)}
    savemat(tables / "berg.mat", {"recording1": recording | {"sub_picked": rng.integers(1, 181, 5)}})
    with contextlib.redirect_stderr(io.StringIO()):
        simulate(load(run_folder), 2, 2).to_netcdf(tables / "activity.nc", engine="h5netcdf")
        fit(trials, "constant", seed=1).save(folder / "fit")
    shutil.copytree(run_folder, folder / "run")
    _without_place(folder / "run")
    if found is not None:
        shutil.copytree(found, folder / "found")
    # The control: as they are, all of them are read.
    for reader in READERS:
        if (folder / reader.folder).is_dir():
            reader.read(folder / reader.folder)


def _without_place(folder: Path) -> None:
    """Versions and times of a run made the same everywhere, so that a seed makes the same input on every machine."""
    config, facts = folder / "config.toml", folder / "checkpoint-00000003.json"
    config.write_text(re.sub(r"(?s)\[versions\].*?(?=\n\[|\Z)", '[versions]\nlapsus = "0.0.0"\n', config.read_text()))
    facts.write_text(re.sub(r'("\w*seconds": )[\d.e+-]+', r"\g<1>1.0", facts.read_text()))
    metrics = folder / "metrics.jsonl"
    metrics.write_text(re.sub(r'("\w*seconds?": )[\d.e+-]+', r"\g<1>1.0", metrics.read_text()))


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
