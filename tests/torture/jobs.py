"""Commands that write, small: how to begin, how to go on after a fault, and the bits that must come out.

Another command that writes belongs in `JOBS`.
"""

import hashlib
import importlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lapsus import files
from lapsus.errors import LapsusError
from torture.made import MADE, TINY, cli, make_sweep

# Says that a job is done whose own files do not.
DONE = "done"
# The folder in which members of a sweep say who works on them, which means nothing after a crash; it and that mark are
# written past lapsus.files.
CLAIMS = "working"
# The file of a lock, which the library filelock makes and leaves in its place.
LOCK = ".lock"
ELSEWHERE = {DONE, CLAIMS, LOCK}
# Fields that differ from one run to the next because they are times.
TIMES = {"seconds", "core_seconds", "trials_per_second", "stages", "minutes", "core_minutes"}


def prepare() -> None:
    """Import all that the jobs need, once, so that forks begin at once; and a checkpoint after every update."""
    import matplotlib
    import torch

    from lapsus.training import trainer

    for name in (
        "pipeline.reports",
        "cli.sweep",
        "sweep.measures",
        "sweep.rehearsal",
        "fitting",
        "paper.reproduce",
        "paper.roles",
        "plots.fits",
    ):
        importlib.import_module(f"lapsus.{name}")

    matplotlib.use("agg")
    torch.set_num_threads(1)
    trainer.train.__kwdefaults__["checkpoint_seconds"] = 0.0
    importlib.import_module("lapsus.cli.train")._JUDGED = (8, 4)
    importlib.import_module("lapsus.files.netcdf")._CPU_SECONDS = 5


def timeless(value: object) -> object:
    """A JSON value without its times."""
    if isinstance(value, dict):
        return {key: timeless(part) for key, part in value.items() if key not in TIMES}
    return [timeless(part) for part in value] if isinstance(value, list) else value


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


@dataclass(frozen=True)
class Job:
    """A command in a folder: `begin` puts there what it starts from, `command` is what to run now (None: it is done),
    `bits` what came out."""

    name: str
    begin: Callable[[Path], None]
    command: Callable[[Path], Callable[[], None] | None]
    bits: Callable[[Path], dict]


def _nothing(folder: Path) -> None:
    (folder / "tiny.toml").write_text(TINY)


def _train(folder: Path):
    if not (folder / "run" / "config.toml").exists():
        return cli("train", folder / "tiny.toml", "-o", folder / "run")
    return _resume(folder, RUN)


RUN = {"config.toml", "metrics.jsonl"}
RUN |= {f"checkpoint-0000000{update}.{ending}" for update in (2, 3) for ending in ("json", "safetensors")}


def _resume(folder: Path, names: set[str]):
    """Who sees what a kill left in a run goes on once more."""
    from lapsus.zoo import Run

    run = folder / "run"
    try:
        done = Run(run).update >= 3 and {path.name for path in run.iterdir()} - {LOCK} == names
    except LapsusError:
        done = False
    return None if done else cli("resume", run)


def _untidy(folder: Path) -> None:
    """A run whose newest checkpoint is damaged, with one that should be forgotten and tensors without their JSON."""
    _trained(folder)
    whole, newest = (folder / "run" / f"checkpoint-0000000{update}.json" for update in (2, 3))
    for update in (0, 1):
        older = whole.with_name(f"checkpoint-0000000{update}.json")
        older.write_text(json.dumps(json.loads(whole.read_text()) | {"update": update}))
        shutil.copy(whole.with_suffix(".safetensors"), older.with_suffix(".safetensors"))
    shutil.copy(whole.with_suffix(".safetensors"), whole.with_name("checkpoint-00000005.safetensors"))
    newest.with_suffix(".safetensors").write_bytes(b"damaged")


DAMAGED = {f"checkpoint-00000003.{ending}.damaged" for ending in ("json", "safetensors")}


def _run_bits(folder: Path) -> dict:
    run = folder / "run"
    facts = timeless(json.loads((run / "checkpoint-00000003.json").read_text()))
    metrics = [timeless(json.loads(line)) for line in (run / "metrics.jsonl").read_text().splitlines()]
    weights = digest((run / "checkpoint-00000003.safetensors").read_bytes())
    return {"facts": facts, "weights": weights, "metrics": metrics, "names": _names(run)}


def _trained(folder: Path) -> None:
    shutil.copytree(MADE["run"], folder / "run")


def _simulate(folder: Path):
    out = folder / "new" / "activity.nc"
    return None if out.exists() else cli("simulate", folder / "run", "-o", out, "--conditions", 3, "--trials", 2)


def _bytes(*names: str) -> Callable[[Path], dict]:
    return lambda folder: {name: digest((folder / name).read_bytes()) for name in names}


def _placeless(found: Path, folder: Path) -> dict:
    """Of every file that was made, without the name of the folder in which it was, and without times."""
    import pandas as pd

    bits = {}
    for path in found.iterdir():
        data = path.read_bytes().replace(bytes(folder), b"")
        if path.suffix == ".json":
            data = json.dumps(timeless(json.loads(data))).encode()
        elif path.suffix == ".csv":
            data = pd.read_csv(path).drop(columns=list(TIMES), errors="ignore").to_csv().encode()
            data = data.replace(bytes(folder), b"")
        bits[path.name] = digest(data)
    return bits


# What `simulate --force` may replace begins like netCDF.
EARLIER = b"\x89HDF\r\n\x1a\nan earlier simulation"


def _again(folder: Path) -> None:
    _trained(folder)
    (folder / "activity.nc").write_bytes(EARLIER)


def _force(folder: Path):
    out = folder / "activity.nc"
    done = out.exists() and out.read_bytes() != EARLIER
    if not out.exists():
        raise AssertionError("what was there before is gone")
    return None if done else cli("simulate", folder / "run", "-o", out, "--conditions", 3, "--trials", 2, "--force")


def _table(folder: Path) -> None:
    shutil.copy(MADE["table"], folder / "trials.csv")


def _two_conditions(folder: Path) -> None:
    first, *rows = MADE["table"].read_text().splitlines()
    rows = [f"{row},{'ab'[k % 2]}" for k, row in enumerate(rows)]
    (folder / "trials.csv").write_text("\n".join([f"{first},condition", *rows]))


def _fit(folder: Path):
    if _whole_fit(folder / "fit"):
        return None
    options = ("--model", "constant", "--by", "condition", "--seed", 1)
    return cli("fit", folder / "trials.csv", *options, "-o", folder / "fit")


def _whole_fit(folder: Path) -> bool:
    """Whether all files of a fit are in their places."""
    listed = folder / "files.json"
    return listed.exists() and "before" not in json.loads(listed.read_text())


def _two_subjects(folder: Path) -> None:
    first, *rows = MADE["table"].read_text().splitlines()
    rows = [row.replace("observer", f"observer {k % 2}") for k, row in enumerate(rows)]
    (folder / "trials.csv").write_text("\n".join([first, *rows]))


def _earlier_fit(folder: Path) -> None:
    _two_subjects(folder)
    with files.own_files(folder / "fit") as place:
        for name in ("fit.nc", "summary.json"):
            (place / name).write_bytes(b"{}")


def _fit_force(folder: Path):
    summary = folder / "fit" / "summary.json"
    if not summary.exists():
        raise AssertionError("the earlier fit is gone")
    if summary.read_bytes() != b"{}" and _whole_fit(folder / "fit"):
        return None
    options = ("--model", "constant", "--by", "subject", "--seed", 1, "--force")
    return cli("fit", folder / "trials.csv", *options, "-o", folder / "fit")


def _fit_bits(folder: Path) -> dict:
    """Of one fit, or of one a subject."""
    from lapsus.files import read_netcdf

    fit = folder / "fit"
    found: dict = {"names": sorted(str(path.relative_to(fit)) for path in fit.rglob("*"))}
    for path in fit.rglob("fit.nc"):
        stored = read_netcdf(path)
        arrays = {name: digest(np.ascontiguousarray(v.to_numpy().astype(str)).tobytes()) for name, v in stored.items()}
        found[f"arrays of {path.parent.name}"] = arrays
    for path in fit.rglob("summary.json"):  # the summary ends with the seconds it took
        text = re.sub(r"[\d.,]+ s\b", "", json.dumps(timeless(json.loads(path.read_text()))))
        found[f"summary of {path.parent.name}"] = digest(text.encode())
    return found


SWEEP = """
name = "small"
experiment = "second.toml"
tries = 3
measure = { evaluation = { conditions = 8, trials = 2 } }
"""


def _sweep_file(folder: Path) -> None:
    (folder / "tiny.toml").write_text(TINY)
    (folder / "second.toml").write_text(TINY.replace('"tiny"', '"second"\nstart_from = "tiny.toml"'))
    (folder / "sweep.toml").write_text(SWEEP)


def _sweep(folder: Path):
    """A network and one that starts from it. The pool's processes are left out (tests/test_sweep.py kills those):
    members are worked on here, where the fault is."""
    members = folder / "sweep" / "members"
    return None if len(list(members.glob("*/measures-*.json"))) == 2 else _swept_here(folder)


def _swept_here(folder: Path) -> Callable[[], None]:
    def work() -> None:
        from lapsus.cli import sweep as command
        from lapsus.sweep.member import run_member

        def here(sweep, workers) -> bool:
            while ready := sweep.states().ready:
                if run_member(sweep, ready[0]).kind == "interrupted":
                    return True
            return False

        command._here = here
        cli("sweep", folder / "sweep.toml", "-o", folder / "sweep")()

    return work


def _sweep_bits(folder: Path) -> dict:
    found: dict = {"manifest": digest((folder / "sweep" / "manifest.json").read_bytes().replace(bytes(folder), b""))}
    for run in sorted((folder / "sweep" / "members").iterdir()):
        found[f"{run.name}: weights"] = digest((run / "checkpoint-00000003.safetensors").read_bytes())
        found |= {f"{run.name}: measures": timeless(json.loads(p.read_text())) for p in run.glob("measures-*.json")}
    return found | {"names": _names(folder / "sweep")}


def _names(folder: Path) -> list[str]:
    """Of all that is in a folder, but for who works there."""
    paths = [path for path in folder.rglob("*") if CLAIMS not in path.parts and path.name != LOCK]
    return sorted(str(path.relative_to(folder)) for path in paths)


# The first member diverges, so that it is given up and the second never begins.
FAILS = "learning_rate = 1e30\nclip = 1e30\nwarmup = 0\n"


def _failing_sweep(folder: Path) -> None:
    _sweep_file(folder)
    (folder / "tiny.toml").write_text(TINY + FAILS)


def _fails(folder: Path):
    done = (folder / "sweep" / "manifest.json").exists() and not _given_up(folder)["ready"]
    return None if done else _swept_here(folder)


def _given_up(folder: Path) -> dict:
    """Who is; for which reasons is left out, since a disk that is full is one too."""
    from lapsus.sweep import Sweep

    sweep = Sweep(folder / "sweep")
    states = sweep.states()
    tries = {name: len(sweep.failures(name)) for name in sweep.plan.members}
    return {"ready": states.ready, "failed": states.failed, "blocked": states.blocked, "tries": tries}


SUBJECTS = """
name = "subjects"
experiment = "tiny.toml"
subjects = { trials = "trials.csv", model = "constant", unit = "degrees" }
"""


def _subjects(folder: Path) -> None:
    _two_subjects(folder)
    (folder / "tiny.toml").write_text(TINY)
    (folder / "sweep.toml").write_text(SUBJECTS)


def _plan(folder: Path):
    done = (folder / "sweep" / "manifest.json").exists()
    return None if done else cli("sweep", "plan", folder / "sweep.toml", "-o", folder / "sweep")


def _plan_bits(folder: Path) -> dict:
    return {
        str(path.relative_to(folder)): digest(path.read_bytes().replace(bytes(folder), b""))
        for path in (folder / "sweep").rglob("*.json")
    }


def _cancel(folder: Path):
    return None if (folder / "sweep" / "stop").exists() else cli("sweep", "cancel", folder / "sweep")


# Stand-ins of SLURM's commands: one array of one task a call, and nothing is ever begun.
SLURM = {
    "scontrol": "echo MaxArraySize = 10",
    "sbatch": 'echo "$(($(wc -l < {queue}) + 1)) 0" >> {queue}; tail -n 1 {queue} | cut -d " " -f 1',
    "squeue": "cat {queue}",
}


def _cluster(folder: Path) -> None:
    _sweep_file(folder)
    (folder / "bin").mkdir()
    (folder / "bin" / "queue").write_text("")
    for name, line in SLURM.items():
        (folder / "bin" / name).write_text("#!/bin/sh\n" + line.format(queue=shlex.quote(f"{folder}/bin/queue")) + "\n")
        (folder / "bin" / name).chmod(0o755)


def _slurm(folder: Path):
    if (folder / DONE).exists():
        return None

    def work() -> None:
        os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
        succeeds(cli("sweep", folder / "sweep.toml", "-o", folder / "sweep", "--slurm"), folder)

    return work


def _submitted(folder: Path) -> dict:
    """Members that have a task in the queue. Struck between SLURM's answer and its record, one is handed in twice."""
    from lapsus.sweep import Sweep
    from lapsus.sweep.slurm import Submission

    queued = set((folder / "bin" / "queue").read_text().splitlines())
    arrays = [array for one in Submission.all(Sweep(folder / "sweep")) for array in one.arrays if array["job"]]
    assert {f"{array['job']} 0" for array in arrays} <= queued
    return {"members": sorted({name for array in arrays for names in array["tasks"] for name in names})}


def _swept(folder: Path) -> None:
    make_sweep(folder / "sweep")


def _collect(folder: Path):
    done = (folder / "sweep" / "collected" / "index.html").exists()
    return None if done else cli("sweep", "collect", folder / "sweep")


def _collected_bits(folder: Path) -> dict:
    return _placeless(folder / "sweep" / "collected", folder)


def _analyse(folder: Path):
    if (folder / "answers" / "mechanism.csv").exists():
        return None

    def work() -> None:
        from unittest import mock

        from lapsus.evaluation.sample_sizes import QUICK
        from lapsus.mechanism import asking

        quick = asking.analyse.__kwdefaults__ | {"sizes": QUICK}
        with mock.patch.object(asking.analyse, "__kwdefaults__", quick):
            cli("analyse", folder / "run", "-o", folder / "answers")()

    return work


def _answers(folder: Path) -> dict:
    return _placeless(folder / "answers", folder)


def _figures(folder: Path):
    if all((folder / "figures" / name).exists() for name in FIGURES):
        return None
    return cli("reproduce", "schedule", "-o", folder / "figures")


FIGURES = ("schedule.pdf", "schedule.png", "schedule.csv")


def _earlier_network(folder: Path) -> None:
    """One of another description, shipped under the same name."""
    (folder / "shipped").mkdir()
    (folder / "shipped" / "tiny.json").write_text(json.dumps({"config": {"name": "tiny"}}))
    (folder / "shipped" / "tiny.safetensors").write_bytes(b"earlier")


def _ship(folder: Path):
    if (folder / DONE).exists():
        return None

    def work() -> None:
        from unittest import mock

        from lapsus.evaluation import ship
        from lapsus.sweep.one_by_one import Job as Training
        from lapsus.training import read_experiment

        job = Training(read_experiment(MADE["run"].parent / "tiny.toml"), folder / "runs" / "tiny")
        with (
            mock.patch("lapsus.sweep.one_by_one.jobs_of", lambda *_: [job]),
            mock.patch.object(ship.ship, "__defaults__", (None, 8)),
        ):
            succeeds(cli("reproduce", "train", "tiny", "--ship", folder / "shipped"), folder)

    return work


def succeeds(command: Callable[[], None], folder: Path) -> None:
    """Run it, and if it ends well, say so."""
    try:
        command()
    except SystemExit as leaving:
        if leaving.code:
            raise
    (folder / DONE).write_text("")


def _tables(folder: Path):
    if (folder / "again.csv").exists():
        return None

    def work() -> None:
        from lapsus.trials import read_trials
        from lapsus.trials.observer import make_observer

        guarded(lambda: read_trials(make_observer(folder / "observer.csv")).to_csv(folder / "again.csv"))

    return work


def _gallery(folder: Path):
    page = folder / "page.html"
    return None if page.exists() else cli("zoo", "--gallery", page, "index-swap-10")


def _report(folder: Path):
    if (folder / "page.html").exists():
        return None

    def work() -> None:
        from lapsus.evaluation.sample_sizes import QUICK
        from lapsus.pipeline.reports import write_report

        guarded(lambda: write_report([str(folder / "run")], folder / "page.html", sizes=QUICK))

    return work


def _page(folder: Path) -> dict:
    return {"size": (folder / "page.html").stat().st_size > 10_000}


def _discover(folder: Path):
    if (folder / DONE).exists():
        return None

    def work() -> None:
        from unittest import mock

        from lapsus import discover
        from lapsus.evaluation.sample_sizes import QUICK

        def go() -> None:
            with mock.patch("lapsus.pipeline.stages.updates_within", lambda *_: 4):
                discover(
                    folder / "trials.csv",
                    minutes=5,
                    output=folder / "found",
                    start_from=str(MADE["run"]),
                    cueing="index",
                    say=lambda text: None,
                    sizes=QUICK,
                )

        guarded(go)
        (folder / DONE).write_text("")

    return work


def guarded(work: Callable[[], object]) -> None:
    """As the command line ends: the user's error in one sentence, exit code 2."""
    try:
        work()
    except LapsusError as error:
        print(f"lapsus: {error}")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("lapsus: stopped.")
        raise SystemExit(130) from None


def _discovery_bits(folder: Path) -> dict:
    from lapsus.zoo import Run

    found = folder / "found"
    parts = {
        name: timeless(json.loads((found / name).read_text()))
        for name in ("target.json", "evaluation.json", "analysis.json")
    }
    run = Run(found / "networks" / "network-1")
    weights = {name: digest(tensor.numpy().tobytes()) for name, tensor in run.model().state_dict().items()}
    arrays = digest((found / "analysis" / "network-1.npz").read_bytes())
    return parts | {"weights": weights, "arrays": arrays, "update": run.update, "names": _names(found)}


JOBS = (
    Job("train", _nothing, _train, _run_bits),
    Job("resume", _untidy, lambda folder: _resume(folder, RUN | DAMAGED), _run_bits),
    Job("simulate", _trained, _simulate, _bytes("new/activity.nc")),
    Job("simulate --force", _again, _force, _bytes("activity.nc")),
    Job("reproduce", lambda folder: None, _figures, lambda f: _bytes(*FIGURES)(f / "figures")),
    Job("reproduce train", _earlier_network, _ship, lambda f: _placeless(f / "shipped", f)),
    Job("sweep", _sweep_file, _sweep, _sweep_bits),
    Job("sweep, a member fails", _failing_sweep, _fails, _given_up),
    Job("sweep plan", _subjects, _plan, _plan_bits),
    Job("sweep --slurm", _cluster, _slurm, _submitted),
    Job("sweep cancel", _swept, _cancel, _bytes("sweep/stop")),
    Job("fit", _two_conditions, _fit, _fit_bits),
    Job("fit --force", _earlier_fit, _fit_force, _fit_bits),
    Job("zoo --gallery", lambda folder: None, _gallery, _page),
    Job("tables", lambda folder: None, _tables, _bytes("observer.csv", "again.csv")),
    Job("report", _trained, _report, _page),
    Job("analyse", _trained, _analyse, _answers),
    Job("sweep collect", _swept, _collect, _collected_bits),
    Job("discover", _table, _discover, _discovery_bits),
)
