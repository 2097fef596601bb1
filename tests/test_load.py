"""Much at once: many rows, many trials, many subjects, many processes in one folder."""

import os
import resource
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lapsus import files
from lapsus.errors import LapsusError
from lapsus.trials import read_trials


def made(path: Path, rows: int, items: int = 2, subjects: int = 1) -> Path:
    """A table of random trials in degrees, of an observer who errs by about ten degrees and sometimes swaps."""
    rng = np.random.default_rng(rows)
    report = rng.integers(0, 360, (rows, items))
    # In places of their own: two items at one place cannot be told apart.
    probe = (rng.integers(0, 360, (rows, 1)) + rng.permuted(np.tile(np.arange(items), (rows, 1)), axis=1) * 40) % 360
    chosen = np.where(rng.random(rows) < 0.1, items - 1, 0)
    response = (report[np.arange(rows), chosen] + rng.normal(0, 10, rows)).round(1) % 360
    columns = {"subject": np.arange(rows) % subjects, "response": response, "target": report[:, 0]}
    columns |= {f"non_target_{k}": report[:, k] for k in range(1, items)} | {"target_probe": probe[:, 0]}
    columns |= {f"non_target_probe_{k}": probe[:, k] for k in range(1, items)}
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def _compete(path: Path, number: int, start, results) -> None:
    start.wait()
    try:
        files.write_bytes(path, bytes([number]) * 1_000_000, replace=False)
        results.put(number)
    except LapsusError:
        results.put(None)


def test_eight_writers_of_one_file_leave_one_whole_file(tmp_path):
    context = get_context("fork")
    start, results = context.Event(), context.Queue()
    writers = [context.Process(target=_compete, args=(tmp_path / "x", k, start, results)) for k in range(8)]
    for writer in writers:
        writer.start()
    start.set()
    won = [number for number in (results.get(timeout=60) for _ in writers) if number is not None]
    for writer in writers:
        writer.join()
    assert len(won) == 1 and (tmp_path / "x").read_bytes() == bytes(won) * 1_000_000
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def told(what: str, seconds: float, memory: float | None = None) -> None:
    """For docs/reliability.md: `pytest -m long -rP tests/test_load.py` prints it."""
    print(f"{what}: {seconds:.0f} s of processor time" + (f", {memory:.2f} GB" if memory is not None else ""))


@pytest.mark.long
def test_a_million_rows_are_read(tmp_path):
    path, began = made(tmp_path / "t.csv", 1_000_000), time.process_time()
    trials = read_trials(path, "degrees")
    seconds = time.process_time() - began
    told("1,000,000 rows read", seconds)
    assert len(trials) == 1_000_000 and seconds < 60


def fitted(path: Path, *options: str) -> tuple[float, float, float]:
    """Seconds of the clock, of processor time (of all threads together), and largest memory (GB) of `lapsus fit` in a
    process of its own."""
    began = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "lapsus", "fit", str(path), "--unit", "degrees", *options]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - began, processor, after.ru_maxrss / 1e6


@pytest.mark.long
def test_two_hundred_thousand_trials_of_four_items(tmp_path):
    """On a machine that has nothing else to do."""
    seconds, processor, memory = fitted(made(tmp_path / "t.csv", 200_000, items=4))
    told(f"200,000 trials of 4 items fitted in {seconds:.0f} s", processor, memory)
    assert memory < 1.5 and seconds < 150


@pytest.mark.long
def test_three_hundred_subjects(tmp_path):
    path = made(tmp_path / "t.csv", 300 * 40, subjects=300)
    _, seconds, memory = fitted(path, "--by", "subject", "--model", "constant", "-o", str(tmp_path / "fit"))
    told("300 subjects fitted", seconds, memory)
    assert len(list((tmp_path / "fit").glob("subject-*"))) == 300
