"""Sweeps through a real SLURM: the daemons of Debian's packages on this machine."""

import os
import random
import re
import signal
import time
from pathlib import Path

import pytest
from slurm_cluster import Cluster, why_not
from sweep_members import TINY, bits, write_sweep

from lapsus.sweep import Pool, Sweep, plan_sweep, read_sweep
from lapsus.sweep.slurm import Submission, cancel_jobs, queued_members, submit
from lapsus.sweep.status import summary

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    with Cluster(tmp_path / "slurm", cpus=2, largest=3) as running:
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, running.environment[name])
        yield running


def made(folder: Path, name: str, **fields) -> Sweep:
    path = write_sweep(folder, **fields)
    return Sweep.make(folder / name, plan_sweep(read_sweep(path), folder / name))


def until(condition, seconds: float, every: float = 0.5) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(every)


def logs(sweep: Sweep) -> str:
    return "\n".join(path.read_text() for path in sorted((sweep.path / "slurm").glob("*.txt")))


@pytest.mark.slow
def test_members_and_their_start_through_slurm(tmp_path, cluster):
    """Five members in two arrays, the second waiting for the first; SLURM's own words where it refuses."""
    sweep = made(tmp_path, "out", start={}, seeds=1, vary={"stage.0.learning_rate": [1e-3, 2e-3, 3e-3, 4e-3]})
    jobs = submit(sweep, ["--time", "00:10:00", "--comment", "of mine"], pack=2)
    assert len(jobs) == 2 and "of mine" in cluster.call("scontrol", "show", "job", jobs[0])
    assert set(queued_members(sweep)) == set(sweep.plan.members)
    assert submit(sweep, [], pack=2) == []  # all of them are queued
    until(lambda: summary(sweep)["done"] == 5, 300)
    local = Sweep.make(tmp_path / "local", sweep.plan)
    Pool(local, 1).run()
    assert bits(sweep) == bits(local)


@pytest.mark.slow
def test_what_slurm_refuses_is_said_in_its_words(tmp_path, cluster):
    from lapsus import LapsusError

    sweep = made(tmp_path, "out")
    with pytest.raises(LapsusError, match=r"sbatch refused: .*[Pp]artition"):
        submit(sweep, ["--partition", "no-such"])
    assert sweep.states().ready == ["tiny-1"]


@pytest.mark.slow
def test_no_array_is_larger_than_allowed_and_cancelled_ones_leave_the_queue(tmp_path, cluster):
    sweep = made(tmp_path, "out", seeds=16)
    jobs = submit(sweep, ["--hold"], pack=2)  # eight tasks, at most three in an array
    tasks = [array["tasks"] for array in Submission.all(sweep)[0].arrays]
    assert [len(one) for one in tasks] == [3, 3, 2] and len(jobs) == 3
    assert [name for array in tasks for names in array for name in names] == list(sweep.plan.members)
    assert cancel_jobs(sweep) == 8
    until(lambda: not queued_members(sweep), 60)


@pytest.mark.long
def test_killed_drained_and_out_of_time_members_end_with_the_same_bits(tmp_path, cluster):
    """24 members: tasks are killed at random, the node is drained and brought back, a task's time is over once."""
    stage = TINY["stage"][0] | {"updates": 3000}
    vary = {"network.units": [6, 8, 10]}
    sweep = made(tmp_path, "out", changes={"stage": [stage]}, seeds=8, vary=vary)
    assert len(sweep.plan.members) == 24
    rng, killed, drained = random.Random(1), 0, False
    began = time.monotonic()
    while summary(sweep)["done"] < 24:
        assert time.monotonic() - began < 3000, summary(sweep)
        submit(sweep, ["--time", "00:10:00"], pack=3)
        time.sleep(rng.uniform(3, 8))
        running = _task_processes(sweep)
        if killed < 6 and running:
            os.kill(rng.choice(running), signal.SIGKILL)
            killed += 1
        if killed == 3 and not drained:
            cluster.call("scontrol", "update", f"NodeName={cluster.host}", "State=DRAIN", "Reason=test")
            time.sleep(5)
            cluster.call("scontrol", "update", f"NodeName={cluster.host}", "State=RESUME")
            drained = True
    assert killed == 6 and drained and summary(sweep)["failed"] == 0
    local = Sweep.make(tmp_path / "local", sweep.plan)
    Pool(local).run()
    assert bits(sweep) == bits(local)


@pytest.mark.long
def test_a_task_whose_time_is_over_saves_and_is_queued_again(tmp_path, cluster):
    stage = TINY["stage"][0] | {"updates": 60_000}
    sweep = made(tmp_path, "out", changes={"stage": [stage]})
    (job,) = submit(sweep, ["--time", "01:00:00"])
    metrics = sweep.run_folder("tiny-1") / "metrics.jsonl"
    until(lambda: metrics.is_file() and metrics.stat().st_size > 0, 900)
    # However slow this machine is, its time is over soon from now on: SLURM counts minutes and looks twice a minute.
    elapsed = re.search(r"RunTime=(\d+):(\d+):(\d+)", cluster.call("scontrol", "show", "job", job))
    hours, minutes, seconds = map(int, elapsed.groups())
    limit = 60 * hours + minutes + (1 if seconds < 15 else 2)
    cluster.call("scontrol", "update", f"JobId={job}_0", f"TimeLimit={limit}")
    until(lambda: "queued again" in logs(sweep), 240)
    first = sweep.update("tiny-1")
    assert 0 < first < 60_000
    until(lambda: "PENDING" in cluster.call("scontrol", "show", "job", job), 60)
    until(lambda: "Restarts=1" in cluster.call("scontrol", "show", "job", job), 60)
    # It would start after two minutes; now will do, and without a limit.
    cluster.call("scontrol", "update", f"JobId={job}", "StartTime=now", "TimeLimit=02:00:00")
    until(lambda: sweep.done("tiny-1"), 2000)
    straight = Sweep.make(tmp_path / "straight", sweep.plan)
    Pool(straight, 1).run()
    assert bits(sweep) == bits(straight)


def _task_processes(sweep: Sweep) -> list[int]:
    """Processes of SLURM tasks of this sweep: the ones that the scripts became."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"task" in words and str(sweep.path.resolve()).encode() in words and not re.search(rb"slurmstepd", words[0]):
            found.append(int(path.parent.name))
    return found
