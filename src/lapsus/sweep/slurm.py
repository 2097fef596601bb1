"""Members on a cluster that SLURM runs: job arrays of our own, through `sbatch`.

A task works on a pack of members with a pool of its own. A minute before its time is over SLURM signals it; it then
saves and asks for itself to be queued again. Members that start from others are in arrays that wait for those. SLURM is
asked only what it has queued: how members stand is in their folders, so nothing rests on its accounting.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lapsus.errors import LapsusError
from lapsus.files import inside, read_json, subfolder, understood, write_json, write_text
from lapsus.sweep.folder import Sweep
from lapsus.sweep.pool import Pool, asked_by_signal
from lapsus.sweep.processes import environment

# About so many short trainings in a task: schedulers like tasks of many minutes better than many tasks.
PACK = 8
_SIGNAL = "B:USR1@60"
# Seconds that are needed to save and to ask for another turn.
_LEAST = 30


def _call(*command: str, env: dict[str, str] | None = None) -> str:
    """What the command prints; an error in its own words."""
    if shutil.which(command[0]) is None:
        raise LapsusError(f"There is no {command[0]} on this machine; this needs SLURM's own commands.")
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise LapsusError(f"{command[0]} refused: {lines[-1]}")
    return done.stdout


def _largest_array() -> int:
    """Tasks that one array may have."""
    match = re.search(r"MaxArraySize\s*=\s*(\d+)", _call("scontrol", "show", "config"))
    return max(1, int(match.group(1))) if match else 1001


class Submission:
    """A file in slurm/ that says which members the tasks of its arrays work on, and the arrays' job numbers."""

    def __init__(self, path: Path):
        self.path = path
        with understood(path):
            self.arrays: list[dict[str, Any]] = read_json(path)["arrays"]
            assert all(isinstance(names, list) for array in self.arrays for names in array["tasks"])

    @classmethod
    def all(cls, sweep: Sweep) -> list["Submission"]:
        """Submissions of a sweep, in their order."""
        return [cls(path) for path in sorted(inside(sweep.path, "slurm").glob("[0-9]*.json"))]

    @classmethod
    def new(cls, sweep: Sweep, arrays: list[dict]) -> "Submission":
        """The next submission, with its job arrays, written down."""
        folder = subfolder(sweep.path, "slurm")
        taken = [int(path.stem) for path in folder.glob("[0-9]*.json")]
        path = folder / f"{max(taken, default=0) + 1:04d}.json"
        write_json(path, {"arrays": arrays})
        return cls(path)

    def save(self) -> None:
        """Write it down as it is now."""
        write_json(self.path, {"arrays": self.arrays})


def _queued(sweep: Sweep) -> set[tuple[str, int]]:
    """(array's job number, task) of everything of this sweep that SLURM has waiting or running: what is ours are the
    numbers that the folder holds, since a plan that grows, or is in two folders, changes or shares its name."""
    ours = {array["job"] for submission in Submission.all(sweep) for array in submission.arrays}
    # Array elements one a line; job numbers and task indices as they are in SLURM_ARRAY_JOB_ID and _TASK_ID.
    printed = _call("squeue", "--noheader", "--array", "--format", "%F %K", "--me")
    fields = (line.split() for line in printed.splitlines())
    return {(job, int(task)) for job, task in fields if job in ours and task.isdigit()}


def queued_members(sweep: Sweep) -> dict[str, str]:
    """Members that a task waits or works for → the job number of its array."""
    queued = _queued(sweep)
    return {
        name: array["job"]
        for submission in Submission.all(sweep)
        for array in submission.arrays
        for index, names in enumerate(array["tasks"])
        if (array["job"], index) in queued
        for name in names
    }


def submit(sweep: Sweep, options: list[str], pack: int = PACK, at_once: int | None = None) -> list[str]:
    """Hand every member that is neither done nor given up nor queued already to SLURM; returns the job numbers.

    `options` go to sbatch as they are and win over ours.
    """
    limit, queued = _largest_array(), queued_members(sweep)
    states = sweep.states()
    todo = {name for name in (*states.ready, *states.waiting) if name not in queued}
    arrays: list[dict[str, Any]] = []
    before: dict[str, int] = {}
    for depth, names in _levels(sweep, todo).items():
        tasks = [names[i : i + pack] for i in range(0, len(names), pack)]
        for first in range(0, len(tasks), limit):
            arrays.append({"job": None, "depth": depth, "tasks": tasks[first : first + limit]})
    if not arrays:
        return []
    submission, jobs = Submission.new(sweep, arrays), []
    for number, array in enumerate(arrays):
        # Everything before this level, and queued starts of earlier submissions.
        after = {job for job, depth in before.items() if depth < array["depth"]}
        starts = {sweep.plan.start(name) for names in array["tasks"] for name in names}
        after |= {queued[start] for start in starts if start in queued}
        job = _sbatch(sweep, submission, number, len(array["tasks"]), sorted(after), options, at_once)
        submission.arrays[number]["job"] = job
        submission.save()
        before[job] = array["depth"]
        jobs.append(job)
    return jobs


def _levels(sweep: Sweep, todo: set[str]) -> dict[int, list[str]]:
    """How many members of `todo` come before it → members, in the order of the plan."""
    depths: dict[str, int] = {}
    levels: dict[int, list[str]] = {}
    for name in sweep.plan.members:  # starts come first
        if name in todo:
            start = sweep.plan.start(name)
            depths[name] = depths[start] + 1 if start in depths and not sweep.trained(start) else 0
            levels.setdefault(depths[name], []).append(name)
    return dict(sorted(levels.items()))


def _sbatch(
    sweep: Sweep,
    submission: Submission,
    number: int,
    tasks: int,
    after: list[str],
    options: list[str],
    at_once: int | None,
) -> str:
    folder = sweep.path.resolve()
    script = submission.path.with_name(f"{submission.path.stem}-{number}.sh")
    run = [sys.executable, "-P", "-m", "lapsus", "sweep", "task", str(folder), submission.path.stem, str(number)]
    run += ["--trust"] * sweep.trust
    # exec: the signal that SLURM sends to the script reaches lapsus itself. Until that listens, it must not die of it;
    # if it comes so early, the time that is left says so.
    write_text(script, f"#!/bin/sh\ntrap '' USR1\nexec {shlex.join(run)} \"$SLURM_ARRAY_TASK_ID\"\n")
    ours = [
        f"--job-name=lapsus-{sweep.hash}",
        f"--array=0-{tasks - 1}" + (f"%{at_once}" if at_once else ""),
        f"--output={folder}/slurm/%A_%a.txt",
        "--open-mode=append",
        "--requeue",
        f"--signal={_SIGNAL}",
        "--ntasks=1",
        "--cpus-per-task=1",
    ]
    if after:
        ours.append("--dependency=afterany:" + ":".join(after))
    printed = _call("sbatch", "--parsable", *ours, *options, str(script), env=environment(1))
    return printed.strip().split(";")[0]


def cancel_jobs(sweep: Sweep) -> int:
    """Cancel everything of this sweep that SLURM has; how many tasks that were. A sweep that was never submitted has
    nothing there, and SLURM is not asked: its commands may be on a machine that belongs to no cluster."""
    if not Submission.all(sweep):
        return 0
    queued = _queued(sweep)
    if queued:
        _call("scancel", *sorted({job for job, _ in queued}))
    return len(queued)


def run_task(sweep: Sweep, submission: str, array: int, task: int, say: Callable[[str], None] = print) -> int:
    """Work on the pack of one array task; returns the exit code. Asks SLURM to queue it again when time is over."""
    names = Submission(inside(sweep.path, "slurm", f"{submission}.json")).arrays[array]["tasks"][task]
    before = {name: sweep.update(name) for name in names}
    pool = Pool(
        sweep,
        int(os.environ.get("SLURM_CPUS_PER_TASK", 1)),
        names=names,
        wait=False,
        shown=lambda pool, line: None if line is None else say(line),
    )
    with asked_by_signal(pool, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT) as came:
        end = os.environ.get("SLURM_JOB_END_TIME", "")
        if end.isdigit() and time.time() > int(end) - _LEAST:
            came.append(signal.SIGUSR1)  # it was sent before this listened
            pool.stop()
        pool.run()
    left = [name for name in names if name not in pool.done | pool.failed]
    if signal.SIGUSR1 in came and left and not sweep.stop_file.exists():
        moved = any(sweep.done(name) or sweep.update(name) > before[name] for name in names)
        if not moved:
            say("Time is over and not one checkpoint was made: this needs a longer --time.")
            return 1
        say(f"Time is over with {len(left)} of {len(names)} members left: queued again.")
        _call("scontrol", "requeue", f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}")
        return 0
    return 1 if any(name in pool.failed for name in names) else 0
