"""Sweeps through a real Dask cluster: a scheduler and workers in processes of their own, some of which are killed."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sweep_members import PACKAGE, TINY, bits, write_sweep

from lapsus import LapsusError
from lapsus.sweep import Sweep, plan_sweep, read_sweep
from lapsus.sweep.dask_cluster import DaskCalls, dask_pool
from lapsus.sweep.member import run_member

pytest.importorskip("distributed", reason="distributed is not installed: lapsus[dask]")


def made(folder: Path, name: str, **fields) -> Sweep:
    path = write_sweep(folder, **fields)
    return Sweep.make(folder / name, plan_sweep(read_sweep(path), folder / name))


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler with two workers, each with a nanny that starts it again when it dies."""
    environment = os.environ | {"PYTHONPATH": str(PACKAGE), "OMP_NUM_THREADS": "1"}
    where, processes = tmp_path / "scheduler.json", []

    def start(*command: str) -> None:
        log = open(tmp_path / "dask.log", "ab")  # noqa: SIM115
        options = {"env": environment, "cwd": tmp_path, "stdout": log, "stderr": log}
        processes.append(subprocess.Popen([sys.executable, "-m", *command], **options))
        log.close()

    start(
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--no-dashboard",
        "--scheduler-file",
        str(where),
    )
    start(
        "distributed.cli.dask_worker",
        "--scheduler-file",
        str(where),
        "--nworkers",
        "2",
        "--nthreads",
        "1",
        "--no-dashboard",
        "--local-directory",
        str(tmp_path),
        "--death-timeout",
        "120",
    )
    deadline = time.monotonic() + 120
    while not where.exists():
        assert time.monotonic() < deadline, (tmp_path / "dask.log").read_text()
        time.sleep(0.2)
    yield str(where)
    for process in reversed(processes):
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of distributed and its event loop, which are not ours
def test_members_whose_workers_are_killed_end_with_the_same_bits(tmp_path, scheduler):
    import json

    stage = TINY["stage"][0] | {"updates": 300}
    vary = {"stage.0.learning_rate": [1e-3, 2e-3]}
    sweep = made(tmp_path, "out", changes={"stage": [stage]}, start={}, vary=vary)
    killed, over = [], threading.Event()

    def kill() -> None:
        """Whoever works on a member of some progress, twice."""
        while len(killed) < 2 and not over.wait(0.3):
            for path in sorted((sweep.path / "working").glob("*.json")):
                with contextlib.suppress(OSError, ValueError, KeyError):
                    pid = json.loads(path.read_text())["pid"]
                    if path.stem.startswith("tiny") and pid not in killed and len(killed) < 2:
                        os.kill(pid, signal.SIGKILL)
                        killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    address = json.loads(Path(scheduler).read_text())["address"]
    try:
        dask_pool(sweep, address).run()
    finally:
        over.set()
        thread.join()
    assert len(killed) == 2 and len(sweep.states().done) == len(sweep.plan.members) == 3
    local = Sweep.make(tmp_path / "local", sweep.plan)
    assert [run_member(local, name).kind for name in local.plan.members] == ["done"] * 3
    assert bits(sweep) == bits(local)


@pytest.mark.filterwarnings("ignore")
def test_no_scheduler_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("lapsus.sweep.dask_cluster._CONNECT", 0.5)
    with pytest.raises(LapsusError, match=r"no Dask scheduler at tcp://127"):
        dask_pool(made(tmp_path, "out"), "tcp://127.0.0.1:1")


def test_a_scheduler_that_is_gone_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("distributed.as_completed", lambda **_: None)
    closed = type("Client", (), {"status": "closed"})()
    with pytest.raises(LapsusError, match=r"The Dask scheduler is gone; .* the same command continues"):
        DaskCalls(made(tmp_path, "out"), closed).ended(0.1)
