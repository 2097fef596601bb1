"""Tiny members for the tests of sweeps, and what makes two sweeps the same."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import lapsus as lapsus_package
from lapsus.files import to_toml

# The lapsus that this process imports, with its kernel: a source tree beside it may have none, and other bits.
PACKAGE = Path(lapsus_package.__file__).resolve().parents[1]
TINY = {
    "name": "tiny",
    "task": {"kind": "index-cued", "prestimulus": 1, "stimulus": 2, "delay": 1, "cue": 2, "denoise": 4},
    "network": {"kind": "dendritic", "units": 8, "branching": [2]},
    "stage": [{"updates": 40, "conditions": 4, "trials": 4}],
}
QUICK = {"evaluation": {"conditions": 16, "trials": 2}}


def write_sweep(folder: Path, changes: dict | None = None, start: dict | None = None, **fields) -> Path:
    """A sweep file of tiny members in the folder, with its experiment beside it; `changes` are
    of the experiment, `start` those of one that it starts from."""
    experiment = TINY | (changes or {})
    if start is not None:
        (folder / "first.toml").write_text(to_toml(TINY | {"name": "first"} | start))
        experiment["start_from"] = "first.toml"
    (folder / "tiny.toml").write_text(to_toml(experiment))
    path = folder / "sweep.toml"
    path.write_text(to_toml({"name": "study", "experiment": "tiny.toml", "measure": QUICK} | fields))
    return path


def lapsus(*arguments, cwd: Path, **options) -> subprocess.CompletedProcess:
    """The command line in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "lapsus", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, **options)


def bits(sweep) -> dict[str, tuple[str, str]]:
    """member → hash of its newest checkpoint's tensors, and of what was measured of it."""
    found = {}
    for name in sweep.plan.members:
        run = sweep.run_folder(name)
        newest = max(run.glob("checkpoint-*.json"))
        measured = hashlib.sha256(sweep.measures_file(name).read_bytes()).hexdigest()
        found[name] = json.loads(newest.read_text())["sha256"], measured
    return found
