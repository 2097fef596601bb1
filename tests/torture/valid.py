"""Valid files of every kind that is read, small."""

import contextlib
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np

from torture.made import MADE, TINY, make_sweep

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
# What a sweep measures of a member is in a file whose name says how.
MEASURES = "members/tiny-1/measures-6c028167.json"
BIDS = "sub-01/beh/sub-01_task-x_beh.tsv"


def make(folder: Path, run_folder: Path, found: Path | None) -> None:
    """Valid files of every kind below `folder`."""
    from scipy.io import savemat

    from lapsus.evaluation import simulate
    from lapsus.fitting import fit
    from lapsus.trials import read_trials
    from lapsus.zoo import load

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
    known = {f"index-rise-only: {name}": {"value": [0.1, None, 0.2], "made_of": "ab"} for name in ("one", "two")}
    (tables / "values.json").write_text(json.dumps(known))
    trials.table.head(12).to_parquet(tables / "t.parquet")
    numbers = trials.table.head(12).select_dtypes("number")
    savemat(tables / "t.mat", {name: values.to_numpy() for name, values in numbers.items()})
    rng = np.random.default_rng(0)
    angles = lambda *shape: rng.uniform(-3, 3, shape)
    bays = {"n_items": np.full(6, 3), "target": angles(6), "response": angles(6), "nontarget": angles(6, 2)}
    bays |= {"target_pos": angles(6), "nontarget_pos": angles(6, 2), "delay": np.ones(6)}
    savemat(tables / "bays.mat", bays)
    colours = np.zeros((8, 5))
    colours[:2] = rng.integers(1, 181, (2, 5))
    recording = {"set_size": np.full(5, 2), "c_array": colours, "test": np.ones(5), "RT": np.ones(5)}
    savemat(tables / "berg.mat", {"recording1": recording | {"sub_picked": rng.integers(1, 181, 5)}})
    with contextlib.redirect_stderr(io.StringIO()):
        simulate(load(run_folder), 2, 2).to_netcdf(tables / "activity.nc", engine="h5netcdf")
        (folder / "activity").mkdir()
        simulate(load(run_folder), 8, 4).to_netcdf(folder / "activity" / "activity.nc", engine="h5netcdf")
        fit(trials, "constant", seed=1).save(folder / "fit")
    _make_sweep(folder / "sweep")
    _make_bids(folder / "bids", text)
    _make_r(folder / "R", numbers.reset_index(drop=True))
    shutil.copytree(run_folder, folder / "run")
    _without_place(folder / "run")
    if found is not None:
        shutil.copytree(found, folder / "found")


def _make_sweep(folder: Path) -> None:
    """With one that works on the member that failed."""
    from lapsus.files import write_json

    make_sweep(folder)
    _without_place(folder / "members" / "tiny-1")
    assert (folder / MEASURES).is_file(), [*folder.rglob("measures*")]
    (folder / "working").mkdir()
    write_json(folder / "working" / "tiny-2.json", {"host": "elsewhere", "pid": 7, "began": "5", "token": "ab"})


def _make_bids(folder: Path, text: str) -> None:
    (folder / BIDS).parent.mkdir(parents=True)
    (folder / BIDS).write_text(text.replace(",", "\t"))
    about = {"target": {"Units": "degrees", "LongName": "colour"}, "response": {"Units": "degrees"}}
    (folder / "task-x_beh.json").write_text(json.dumps(about))


def _make_r(folder: Path, table: object) -> None:
    """Where rdata is installed (lapsus[r])."""
    try:
        import rdata
    except ImportError:
        return
    folder.mkdir()
    rdata.write_rds(folder / "t.rds", table)
    rdata.write_rda(folder / "t.rda", {"trials": table})


def _without_place(folder: Path) -> None:
    """Versions and times of a run made the same everywhere, so that a seed makes the same input on every machine."""
    config, facts = folder / "config.toml", folder / "checkpoint-00000003.json"
    config.write_text(re.sub(r"(?s)\[versions\].*?(?=\n\[|\Z)", '[versions]\nlapsus = "0.0.0"\n', config.read_text()))
    facts.write_text(re.sub(r'("\w*seconds": )[\d.e+-]+', r"\g<1>1.0", facts.read_text()))
    metrics = folder / "metrics.jsonl"
    metrics.write_text(re.sub(r'("\w*seconds?": )[\d.e+-]+', r"\g<1>1.0", metrics.read_text()))
