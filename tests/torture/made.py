"""What commands are tried on: a small trained run, a table, a sweep."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from torture.child import run

TINY = """
name = "tiny"
[task]
kind = "index-cued"
prestimulus = 1
stimulus = 1
delay = 1
cue = 1
denoise = 3
[network]
kind = "dendritic"
units = 6
branching = [2]
[behaviour]
kind = "bns"
swap = { kind = "constant", p = 0.3 }
[[stage]]
updates = 3
conditions = 4
trials = 4
average = 0.9
hard_example_fraction = 0.25
"""
# Made once, before the campaign: a trained run and a trial table that several jobs start from.
MADE: dict[str, Path] = {}


def cli(*arguments: str | Path) -> Callable[[], None]:
    """A command line, to be run in a fork."""

    def work() -> None:
        from lapsus.cli import main

        sys.argv = ["lapsus", *map(str, arguments)]
        main()

    return work


def make(folder: Path) -> None:
    """The run and the table."""
    from lapsus.trials.observer import observer_path

    (folder / "tiny.toml").write_text(TINY)
    ended = run(cli("train", folder / "tiny.toml", "-o", folder / "run"))
    assert ended.code == 0, ended.text
    lines = observer_path().read_text().splitlines()
    (folder / "trials.csv").write_text("\n".join(lines[:81]) + "\n")
    MADE.update(run=folder / "run", table=folder / "trials.csv")


def make_sweep(folder: Path) -> None:
    """Two members, of which one is done and one has failed."""
    from lapsus.files import write_json
    from lapsus.sweep import Sweep, plan_sweep, read_sweep

    described = read_sweep({"name": "small", "experiment": str(MADE["run"].parent / "tiny.toml"), "seeds": 2})
    sweep = Sweep.make(folder, plan_sweep(described, folder))
    shutil.copytree(MADE["run"], sweep.run_folder("tiny-1"))
    curve = [{"distance": 0.1 * k, "rate": 0.1, "low": 0.05, "high": 0.2, "target": 0.1} for k in range(3)]
    evaluation = {"excess": 0.05, "excess_interval": [0.04, 0.06], "swap_curve": curve, "away": None, "word": "x"}
    write_json(sweep.measures_file("tiny-1"), {"evaluation": evaluation})
    sweep.note_failure("tiny-2", "it diverged", ["Traceback", "ValueError"])
