"""A whole discovery in seconds, for tests: a small network, few trials, and a subject with a hostile name.

Every stage is the real one; only the sizes of the analyses are cut.
"""

import tempfile
from functools import cache
from pathlib import Path

import pandas as pd

from lapsus.evaluation.sample_sizes import QUICK
from lapsus.trials.observer import observer_path

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>/../../etc & \N{OCTOPUS} ' + "long" * 2500
MINUTES = 0.02  # of training no more than the least, a second
TINY = {"kind": "dendritic", "units": 6, "branching": [3]}


def tiny_start(folder: Path, task: str = "feature-cued") -> Path:
    """A run folder with a small network that has hardly been trained."""
    from lapsus.training import Experiment, train
    from lapsus.zoo import Run

    described = Experiment.model_validate(
        {
            "name": "tiny",
            "task": {"kind": task},
            "network": TINY,
            "behaviour": {"kind": "bns", "swap": {"kind": "smooth"}},
            "stage": [{"updates": 4, "conditions": 8, "trials": 4}],
        }
    )
    run = Run.create(folder / "tiny", described)
    train(run, progress=False)
    return run.path


def table(trials: int = 200, subject: str = HOSTILE) -> pd.DataFrame:
    """The first trials of the synthetic observer, under another name."""
    rows = pd.read_csv(observer_path()).head(trials)
    return rows.assign(subject=subject, **{"<b>column</b>": "x"})


@cache
def made() -> Path:
    """The folder of a finished discovery; made once a session."""
    from lapsus import discover

    folder = Path(tempfile.mkdtemp(prefix="lapsus-test-"))
    start = str(tiny_start(folder))
    discover(table(), minutes=MINUTES, output=folder / "found", start_from=start, say=lambda text: None, sizes=QUICK)
    return folder / "found"
