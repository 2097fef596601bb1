"""Folders of strangers: sweeps, BIDS, R data and recordings that lead elsewhere, do not end, or are something else."""

import hashlib
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from sweep_members import write_sweep
from torture.child import run as fork
from torture.made import cli

from lapsus.errors import LapsusError
from lapsus.files import write_json
from lapsus.mechanism.activity import activity_dataset
from lapsus.sweep import Sweep, plan_sweep, read_sweep
from lapsus.sweep.collected import collect
from lapsus.sweep.holders import live
from lapsus.sweep.member import run_member
from lapsus.sweep.status import describe
from lapsus.sweep.worker import _log_to
from lapsus.trials import read_trials

TABLE = "response\ttarget\tnon_target_1\n" + "".join(f"{k}\t{k + 1}\t{k + 90}\n" for k in range(1, 60))
DEEP = "[" * 5000 + "]" * 5000


@pytest.fixture(autouse=True)
def _no_hang():
    def late(number, frame):
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def sweep(tmp_path) -> Sweep:
    return Sweep.make(tmp_path / "out", plan_sweep(read_sweep(write_sweep(tmp_path, seeds=2)), tmp_path / "out"))


# --- Sweeps ---


def _cancel(sweep: Sweep) -> None:
    ended = fork(cli("sweep", "cancel", sweep.path))
    assert not ended.traceback
    if ended.code == 2:
        raise LapsusError(ended.text)


def _collect(sweep: Sweep) -> None:
    ended = fork(cli("sweep", "collect", sweep.path))
    assert not ended.traceback
    if ended.code == 2:
        raise LapsusError(ended.text)


@pytest.mark.parametrize(
    "name, work",
    [
        ("stop", _cancel),
        ("collected", _collect),
        ("logs", lambda sweep: _log_to(sweep, "tiny-1")),
        ("logs/tiny-1.txt", lambda sweep: _log_to(sweep, "tiny-1")),
        ("failures", lambda sweep: sweep.note_failure("tiny-1", "why")),
        ("working", lambda sweep: print(run_member(sweep, "tiny-1").reason)),
        ("members", lambda sweep: sweep.run("tiny-1")),
        ("members/tiny-1", lambda sweep: sweep.run("tiny-1")),
    ],
)
def test_nothing_is_written_through_a_link_in_a_sweep(sweep, tmp_path, name, work):
    victim = tmp_path / "victim"
    victim.mkdir()
    (sweep.path / name).parent.mkdir(exist_ok=True)
    (sweep.path / name).symlink_to(victim / "new" if name in ("stop", "logs/tiny-1.txt") else victim)

    def inside_of_a_fork():
        try:
            work(sweep)
        except LapsusError as error:
            print(f"refused: {error}")

    ended = fork(inside_of_a_fork)
    assert "is a link" in ended.text and not ended.traceback, ended.text
    assert not list(victim.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.update(settings={"../../x": table["settings"]["tiny"]}, members=[["../../x", 1]]),
        lambda table: table["settings"]["tiny"].update(table={}),
        lambda table: table["settings"]["tiny"].update(table=3),
        lambda table: table.update(members=[["tiny", "1"]]),
        lambda table: table.update(members=3),
        lambda table: table.update(tries="x"),
        lambda table: table.update(name=[]),
    ],
)
def test_a_manifest_with_the_right_hash_is_not_believed(sweep, change):
    path = sweep.path / "manifest.json"
    table = json.loads(path.read_text())
    change(table)
    plan = {key: value for key, value in table.items() if key not in ("format", "hash")}
    table["hash"] = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:12]
    path.write_text(json.dumps(table))
    with pytest.raises(LapsusError, match=r"damaged|names a file that cannot be in it") as raised:
        describe(Sweep(sweep.path))
    assert len(str(raised.value)) < 1000 and "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["", "[]", "3", DEEP, '{"host": 1}', '{"host": "HOST", "pid": %s, "began": null}'])
def test_a_damaged_claim_is_nobodys(sweep, text):
    import socket

    path = sweep.claim_file("tiny-1")
    path.parent.mkdir()
    path.write_text(text.replace("HOST", socket.gethostname()).replace("%s", "9" * 30))
    os.utime(path, (0, 0))
    assert not live(path) and "ready" in describe(sweep)


def test_damaged_lines_of_a_member_at_work_are_passed_over(sweep):
    """Its failures and its metrics are for people alone."""
    write_json(_made(sweep.claim_file("tiny-1")), {"host": "another", "pid": 1, "began": None, "token": "x"})
    for line in ('["a"]', "3", '{"update": 1', '{"seconds": NaN}'):
        _made(sweep.run_folder("tiny-1") / "metrics.jsonl").write_text(line + "\n")
        assert "tiny-1 " in describe(sweep)
    _made(sweep.failures_file("tiny-2")).write_text('{"when": 1}\n' * 3 + DEEP)
    assert sweep.failures("tiny-2") == []


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_an_interval_that_is_none_is_left_out(sweep):
    measures = {"evaluation": {"excess": 1.0, "excess_interval": ["x", 2.0]}}
    _made(sweep.measures_file("tiny-1")).write_text(json.dumps(measures))
    assert list(collect(sweep).statistics["mean"]) == [1.0]


# --- BIDS ---


def test_pipes_and_depth_in_bids_are_sentences(tmp_path):
    table = tmp_path / "sub-1_task-x_beh.tsv"
    table.write_text(TABLE)
    about = tmp_path / "task-x_beh.json"
    about.write_text(DEEP)
    with pytest.raises(LapsusError, match="not a JSON file"):
        read_trials(tmp_path)
    about.unlink()
    os.mkfifo(about)
    with pytest.raises(LapsusError, match="not a JSON file"):
        read_trials(tmp_path)
    about.unlink()
    os.mkfifo(tmp_path / "sub-2_task-x_beh.tsv")
    with pytest.raises(LapsusError, match="not an ordinary file"):
        read_trials(tmp_path, "degrees")


def test_what_bids_calls_a_feature_can_be_printed(tmp_path):
    (tmp_path / "sub-1_task-x_beh.tsv").write_text(TABLE)
    about = {"target": {"Units": "deg", "LongName": "a\ud83d\n" + "x" * 5000}}
    (tmp_path / "task-x_beh.json").write_text(json.dumps(about))
    assert read_trials(tmp_path).feature_name == "a  " + "x" * 57


# --- Recordings ---


@pytest.fixture
def recording():
    import pandas as pd

    rng, count = np.random.default_rng(0), 30
    table = pd.DataFrame({"cued": 1, "report_1": rng.uniform(-3, 3, count), "report_2": rng.uniform(-3, 3, count)})
    epoch = ["stimulus", "delay", "cue", "response"]
    return activity_dataset(
        rng.normal(size=(count, 4, 5)), table, time=np.arange(-2, 2), epoch=epoch, response=table["report_1"].to_numpy()
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.drop_vars("activity"),
        lambda d: d.drop_vars("epoch"),
        lambda d: d.isel(trial=slice(0, 0)),
        lambda d: d.assign(activity=(("trial", "time"), np.zeros((30, 4)))),
        lambda d: d.assign(activity=(d.activity.dims, np.full(d.activity.shape, np.nan))),
        lambda d: d.assign(activity=(d.activity.dims, np.full(d.activity.shape, "x", object))),
        lambda d: d.assign_coords(time=[3, 2, 1, 0]),
        lambda d: d.assign(report_1=("trial", np.full(30, "x", object))),
        lambda d: d.assign(response=(("trial", "x"), np.zeros((30, 1)))),
        lambda d: d.assign(readout=(("dim", "unit"), np.zeros((2, 5)))),
        lambda d: d.assign(readout=("dim", np.zeros(2))),
    ],
)
def test_a_recording_that_is_none_is_a_sentence(recording, tmp_path, change):
    from lapsus.files import write_netcdf
    from lapsus.mechanism.activity import check_activity

    check_activity(recording)
    write_netcdf(tmp_path / "a.nc", change(recording))
    ended = fork(cli("analyse", tmp_path / "a.nc"))
    assert ended.code == 2 and not ended.traceback and len(ended.text) < 1000, ended.text


@pytest.mark.parametrize("name", ["a.nc", "a.nwb"])
def test_a_pipe_in_the_place_of_a_recording_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    ended = fork(cli("analyse", tmp_path / name))
    assert ended.code == 2 and "is not an ordinary file" in ended.text, ended.text
