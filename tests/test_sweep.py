"""Sweeps on this machine: what a file asks for, what a folder says, and that nothing is lost when anything dies."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import lapsus
from sweep_members import PACKAGE, QUICK, TINY, bits, write_sweep
from typer import Exit

from lapsus import LapsusError, Run, read_experiment, train
from lapsus.files.writing import host
from lapsus.sweep import Pool, Sweep, plan_sweep, read_sweep
from lapsus.sweep.collected import collect
from lapsus.sweep.holders import Busy, claim, live
from lapsus.sweep.member import run_member
from lapsus.sweep.plan import slug
from lapsus.sweep.rehearsal import try_settings
from lapsus.sweep.status import describe, summary
from lapsus.zoo.shipped import shipped_names


def made(folder: Path, **fields) -> Sweep:
    path = write_sweep(folder, **fields)
    return Sweep.make(folder / "out", plan_sweep(read_sweep(path), folder / "out"))


# --- The plan ---


def test_factorial_and_seeds(tmp_path):
    sweep = made(tmp_path, seeds=2, vary={"network.units": [6, 8], "stage.0.learning_rate": [0.001]})
    assert list(sweep.plan.members) == [
        f"tiny_units-{units}_learning-rate-0.001-{seed}" for units in (6, 8) for seed in (1, 2)
    ]
    experiment = sweep.plan.experiment("tiny_units-6_learning-rate-0.001-2")
    assert experiment.network["units"] == 6 and experiment.seed == 2 and experiment.stage[0].learning_rate == 0.001
    again = plan_sweep(read_sweep(tmp_path / "sweep.toml"), tmp_path / "elsewhere" / "out")
    assert again.hash == sweep.hash
    assert str(tmp_path) not in (sweep.path / "manifest.json").read_text()


def test_listed_members(tmp_path):
    members = [{"name": "wide", "set": {"network.units": 12}, "seeds": [3, 7]}, {"set": {"task.delay": 2}}]
    sweep = made(tmp_path, member=members)
    assert list(sweep.plan.members) == ["wide-3", "wide-7", "tiny_delay-2-1"]
    assert sweep.plan.experiment("wide-7").network["units"] == 12


def test_starts_come_first_once_and_with_the_same_network(tmp_path):
    vary = {"network.units": [6, 8], "stage.0.updates": [10, 20]}
    sweep = made(tmp_path, start={}, seeds=[1, 4], vary=vary)
    names = list(sweep.plan.members)
    assert len(names) == 2 * (2 + 4) and len({name for name in names if name.startswith("first")}) == 4
    for name in names:
        start = sweep.plan.start(name)
        if start is not None:
            assert names.index(start) < names.index(name)
            units = sweep.plan.experiment(name).network["units"]
            assert start == f"first_units-{units}-{sweep.plan.members[name].seed}"
            assert sweep.plan.experiment(start).network["units"] == units
            assert sweep.plan.experiment(start).updates == 40  # its own


def test_a_start_that_is_a_run_folder_is_found_from_a_moved_sweep(tmp_path):
    before = Run.create(tmp_path / "before", read_experiment(TINY | {"name": "before"}))
    train(before, steps=40)
    sweep = made(tmp_path, changes={"start_from": "before"})
    assert sweep.plan.experiment("tiny-1").start_from == "../../before"
    assert run_member(sweep, "tiny-1").kind == "done"


@pytest.mark.slow
def test_subjects_become_targets(tmp_path):
    """Two simulated subjects, one of whom swaps: each one's fit is what its members are trained on."""
    from lapsus.sweep.subjects import fitted_targets

    rng, rows = np.random.default_rng(0), ["subject,response,report_1,report_2,cued"]
    for subject, p in (("anna", 0.0), ("b/ö", 0.3)):
        for _ in range(150):
            report = rng.uniform(-np.pi, np.pi) + np.array([0, 1]) * rng.uniform(1, 2 * np.pi - 1)
            response = report[int(rng.random() < p)] + 0.1 * rng.normal()
            numbers = np.degrees(np.angle(np.exp(1j * np.array([response, *report]))))
            rows.append(f"{subject},{','.join(map(str, numbers))},1")
    (tmp_path / "trials.csv").write_text("\n".join(rows) + "\n")
    fields = {"subjects": {"trials": "trials.csv", "model": "constant", "unit": "degrees"}}
    described = read_sweep(write_sweep(tmp_path, **fields))
    told = []
    targets = fitted_targets(described, tmp_path / "out", told.append)
    sweep = Sweep.make(tmp_path / "out", plan_sweep(described, tmp_path / "out", targets))
    first, second = (sweep.plan.experiment(name).behaviour["swap"]["p"] for name in sweep.plan.members)
    assert len(told) == 2 and first < 0.05 and abs(second - 0.3) < 0.12
    assert [setting.subject for setting in sweep.plan.settings.values()] == ["anna", "b/ö"]
    assert fitted_targets(described, tmp_path / "out", told.append) == targets and len(told) == 2
    table = (tmp_path / fields["subjects"]["trials"]).read_text().replace("b/ö", "Anna")
    (tmp_path / "alike.csv").write_text(table)
    with pytest.raises(LapsusError, match="subjects 'anna' and 'Anna' would share the name of a folder"):
        alike = {"subjects": fields["subjects"] | {"trials": "alike.csv"}}
        fitted_targets(read_sweep(write_sweep(tmp_path, **alike)), tmp_path / "out")
    with pytest.raises(LapsusError, match="has no subject 'carl'; it has anna"):
        only = {"subjects": fields["subjects"] | {"only": ["carl"]}}
        fitted_targets(read_sweep(write_sweep(tmp_path, **only)), tmp_path / "out")


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"sedes": 3}, "sedes is not a known key. Did you mean seeds"),
        ({"seeds": 0}, r"toml: seeds = 0 is not right: input should be greater than or equal to 1\.$"),
        ({"seeds": [1, -1]}, r"seeds.1 = -1 is not right: input should be greater than or equal to 0\.$"),
        ({"seeds": []}, r"toml: seeds = \[\] is not right"),
        ({"vary": {"network.units": 16}}, r"vary.network.units must be a list"),
        ({"vary": {"network.units": [6]}, "member": [{"set": {}}]}, "either factorial or listed"),
        ({"vary": {"stage.7.updates": [6]}}, "stages are numbered 0 to 0"),
        ({"vary": {"nonsense": [6]}}, "^tiny_nonsense-6: nonsense is not a known key"),
        ({"vary": {"seed": [7, 8]}}, "does not vary seed: the key seeds says"),
        ({"member": [{"set": {"name": "x"}}]}, "does not vary name"),
        ({"seed": 3}, "toml: seed is not a known key. Did you mean seeds"),
        ({"seeds": True}, r"toml: seeds = True is not right: input should be a valid integer\.$"),
        ({"vary": {"start_from": ["nothere"]}}, "tiny starts from nothere, which is not an experiment file"),
        ({"measure": {"questions": ["when"]}}, "no question 'when'; there are commitment"),
        ({"experiment": "no-such"}, "There is no experiment file no-such"),
        ({"member": [{"name": "a", "set": {}}, {"name": "a", "set": {"task.delay": 2}}]}, "would be called a;"),
        ({"member": [{"name": "../a"}]}, "member.0.name = '../a' is not right: string should match"),
        (
            {"measure": {"evaluation": {"conditions": 1}}},
            r"toml: measure.evaluation.conditions = 1 is not right: [^.]*\.$",
        ),
        ({"measure": {"evaluation": {"conditions": 10**8, "trials": 4}}}, "measure.evaluation needs 2 to 100,000,000"),
        ({"measure": {"evaluation": {"conditons": 9}}}, "measure.evaluation.conditons is .* Did you mean conditions"),
    ],
)
def test_mistakes_in_a_sweep_file_are_one_sentence(tmp_path, fields, message):
    with pytest.raises(LapsusError, match=message):
        made(tmp_path, **fields)
    assert not (tmp_path / "out").exists()


def test_names_hold_what_files_and_links_take_and_numbers_keep_their_sign(tmp_path):
    sweep = made(tmp_path, changes={"name": "my net #1"}, vary={"stage.0.clip": [1.0, 0.5], "noise.first": [0.3]})
    assert list(sweep.plan.members) == ["my-net-1_clip-1.0_first-0.3-1", "my-net-1_clip-0.5_first-0.3-1"]
    assert slug(-6) == "-6" and slug("-a-") == "a" and slug(0.5) == "0.5"


def test_an_empty_file_and_a_file_in_the_place_of_a_folder_are_called_so(tmp_path):
    (tmp_path / "empty.toml").touch()
    with pytest.raises(LapsusError, match=r"empty\.toml is empty; docs/ensembles\.md shows"):
        read_sweep(tmp_path / "empty.toml")
    with pytest.raises(LapsusError, match="folder is not a known key"):
        read_sweep({"name": "x", "experiment": "index-swap-10", "folder": "/etc"})
    with pytest.raises(LapsusError, match=r"empty\.toml is not the folder of a sweep"):
        Sweep(tmp_path / "empty.toml")


@pytest.mark.parametrize("name", ["../../e", "/tmp/x", ".."])
def test_the_name_of_a_sweep_does_not_lead_out_of_runs(tmp_path, name):
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    write_sweep(here, name=name)
    lapsus("sweep", "plan", "sweep.toml", cwd=here)
    assert [path.parent.parent for path in tmp_path.rglob("manifest.json")] == [here / "runs"]


def test_a_sweep_may_grow_but_not_change(tmp_path):
    before = made(tmp_path)
    after = made(tmp_path, seeds=3)
    assert list(after.plan.members) == ["tiny-1", "tiny-2", "tiny-3"] and after.hash != before.hash
    with pytest.raises(LapsusError, match=r"2 members that this file does not have, such as tiny-2"):
        made(tmp_path, seeds=1)
    with pytest.raises(LapsusError, match=r"another description of tiny \(it differs in stage\)"):
        made(tmp_path, changes={"stage": [{"updates": 9}]}, seeds=3)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    with pytest.raises(LapsusError, match=r"holds other files \(thesis.tex\) and is not a sweep"):
        Sweep.make(tmp_path / "other", after.plan)
    (tmp_path / "other" / "thesis.tex").unlink()
    (tmp_path / "other" / "targets").mkdir()  # fits of subjects come before the plan
    assert Sweep.make(tmp_path / "other", after.plan).hash == after.hash


def test_a_damaged_manifest_says_so_and_is_made_again(tmp_path):
    sweep = made(tmp_path)
    (sweep.path / "manifest.json").write_text('{"format": "lapsus sweep 1", "memb')
    with pytest.raises(LapsusError, match=r"is damaged \(.*\); the command that made it makes it again"):
        Sweep(sweep.path)
    assert made(tmp_path).hash == sweep.hash
    with pytest.raises(LapsusError, match="does not exist"):
        Sweep(tmp_path / "nowhere")
    # Networks that are there do not become those of another file because nothing says what they are.
    run_member(sweep, "tiny-1")
    (sweep.path / "manifest.json").write_text("{")
    with pytest.raises(LapsusError, match="tiny-1"):
        made(tmp_path, changes={"behaviour": {"kind": "bns", "swap": {"kind": "constant", "p": 0.45}}})
    assert made(tmp_path).states().done == ["tiny-1"]


# --- Claims ---


def test_one_holder_at_a_time_and_the_dead_hold_nothing(tmp_path):
    path = tmp_path / "claims" / "a.json"
    with claim(path):
        assert live(path)
        with pytest.raises(Busy), claim(path):
            pass
    assert not path.exists() and list(path.parent.iterdir()) == []
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    path.write_text(json.dumps({"host": os.uname().nodename, "pid": gone.pid, "began": None, "token": "x"}))
    assert not live(path)
    with claim(path):
        assert live(path)


def test_a_holder_on_another_machine_lives_by_its_age(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "began": None, "token": "x"}))
    assert live(path)
    os.utime(path, (time.time() - 3600,) * 2)
    assert not live(path)


# --- One member ---


@pytest.mark.slow
def test_a_member_is_a_run_and_goes_on_with_the_same_bits(tmp_path):
    sweep = made(tmp_path, seeds=2)
    asked = iter([False, True])
    # Asked before it begins, then at update 20.
    first = run_member(sweep, "tiny-1", stop=lambda: next(asked, True))
    assert first.kind == "interrupted" and 0 < sweep.update("tiny-1") < 40
    assert sweep.states().ready == ["tiny-1", "tiny-2"] and not sweep.claim_file("tiny-1").exists()
    for name in ("tiny-1", "tiny-2"):
        assert run_member(sweep, name).kind == "done"
    straight = Sweep.make(tmp_path / "straight", sweep.plan)
    for name in ("tiny-1", "tiny-2"):
        assert run_member(straight, name, threads=2).kind == "done"
    assert bits(sweep) == bits(straight)
    own = Run.create(tmp_path / "own", read_experiment(TINY, ["seed=2"]))
    train(own)
    newest = json.loads(max(own.path.glob("checkpoint-*.json")).read_text())["sha256"]
    assert bits(sweep)["tiny-2"][0] == newest


def test_networks_that_were_never_asked_to_denoise_have_no_excess(tmp_path):
    optimal = TINY["stage"][0] | {"updates": 2, "objective": {"kind": "task-optimal"}}
    sweep = made(tmp_path, member=[{"name": "a", "set": {"stage": [optimal]}}, {"name": "b"}])
    assert [run_member(sweep, name).kind for name in ("a-1", "b-1")] == ["done", "done"]
    found = [json.loads(sweep.measures_file(name).read_text())["evaluation"] for name in ("a-1", "b-1")]
    assert "excess" not in found[0] and "excess" in found[1] and found[0].keys() < found[1].keys()


def test_a_folder_whose_maker_died_at_once_is_used(tmp_path):
    sweep = made(tmp_path)
    sweep.run_folder("tiny-1").mkdir(parents=True)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (sweep.run_folder("tiny-1") / f".config.toml.{host()}-{gone.pid}-0.partial").write_text("name =")
    assert run_member(sweep, "tiny-1").kind == "done"


def test_failures_are_entered_counted_and_forgotten_on_request(tmp_path):
    sweep = made(tmp_path, start={"stage": [{"updates": 5, "learning_rate": 1e30, "clip": 1e30, "warmup": 0}]}, tries=2)
    for count in (1, 2):
        outcome = run_member(sweep, "first-1")
        assert outcome.kind == "failed" and "no longer a finite number" in outcome.reason
        assert len(sweep.failures("first-1")) == count
    states = sweep.states()
    assert states.failed == ["first-1"] and states.blocked == ["tiny-1"]
    assert {"members": 2, "done": 0, "failed": 1, "running": 0}.items() <= summary(sweep).items()
    assert "first-1 was given up after 2 tries" in describe(sweep) and "finite number" in describe(sweep)
    assert sweep.forget_failures() == 1 and sweep.states().ready == ["first-1"]


def test_a_start_that_cannot_be_measured_keeps_nobody_from_starting(tmp_path, monkeypatch):
    """Its weights are there, and that is all that others need."""
    sweep = made(tmp_path, start={}, tries=1)

    def measure(model, wanted, threads):
        if wanted is sweep.plan.start_measure:
            raise LapsusError("It cannot be measured.")
        return {}

    monkeypatch.setattr("lapsus.sweep.member.measure", measure)
    assert sweep.plan.starts == {"first"} and sweep.states().waiting == ["tiny-1"]
    pool = Pool(sweep, 1)
    assert run_member(sweep, "first-1").kind == "failed" and sweep.trained("first-1")
    pool._ended("first-1", "failed", "")
    assert list(pool.ready) == ["first-1", "tiny-1"] and not pool.blocked
    states = sweep.states()
    assert (states.failed, states.ready, states.blocked) == (["first-1"], ["tiny-1"], [])
    assert run_member(sweep, "tiny-1").kind == "done"


def test_a_full_disk_is_no_failure_of_a_member(tmp_path, monkeypatch):
    """Every member would meet it: the sweep stops, nothing is given up, and with room the same command goes on."""
    sweep = made(tmp_path, seeds=2)

    def full(step, path, detail):
        if step == "write":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("lapsus.files.writing.watcher", full)
    outcome = run_member(sweep, "tiny-1")
    assert outcome.kind == "no room" and "No space left" in outcome.reason and not sweep.failures("tiny-1")
    monkeypatch.setattr("lapsus.files.writing.watcher", None)
    pool = Pool(sweep, 1)
    pool._ended("tiny-1", outcome.kind, outcome.reason)
    with pytest.raises(LapsusError, match=r"No space left.* With room on the disk, the same command continues"):
        pool.run()
    assert sweep.states().ready == ["tiny-1", "tiny-2"] and run_member(sweep, "tiny-1").kind == "done"


def test_weights_of_a_start_that_do_not_fit_are_said_before_the_sweep_is_made(tmp_path):
    run_of = lambda units: {"network": TINY["network"] | {"units": units}}
    run = Run.create(tmp_path / "small", read_experiment(TINY | run_of(6)))
    train(run, steps=1, progress=False)
    write_sweep(tmp_path, changes={"start_from": "small"})
    said = lapsus("sweep", "sweep.toml", "-o", "out", cwd=tmp_path, code=2)
    assert "tiny" in said and "has shape" in said and not (tmp_path / "out").exists()
    # One that fits is found from a folder that is not there yet.
    plan = plan_sweep(read_sweep(write_sweep(tmp_path, changes={"start_from": "small", **run_of(6)})), tmp_path / "new")
    try_settings(plan, tmp_path / "new" / "members")


def test_measuring_more_does_not_train_again(tmp_path):
    sweep = made(tmp_path)
    run_member(sweep, "tiny-1")
    checkpoints = {p.name: p.stat().st_mtime_ns for p in sweep.run_folder("tiny-1").glob("checkpoint-*")}
    more = made(tmp_path, measure={"evaluation": {"conditions": 8, "trials": 2}})
    assert more.states().ready == ["tiny-1"] and run_member(more, "tiny-1").kind == "done"
    assert checkpoints == {p.name: p.stat().st_mtime_ns for p in more.run_folder("tiny-1").glob("checkpoint-*")}


def test_classes_of_the_users_own_are_imported_by_members(tmp_path, monkeypatch):
    (tmp_path / "mine_of_sweeps.py").write_text(
        "from lapsus.tasks import IndexCued\nclass Mine(IndexCued):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    sweep = made(tmp_path, changes={"task": TINY["task"] | {"kind": "mine_of_sweeps:Mine"}})
    assert run_member(sweep, "tiny-1").kind == "done"
    Run(sweep.run_folder("tiny-1"))  # accepted here; elsewhere it is not
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LapsusError, match="`trust=True`"):
        Run(sweep.run_folder("tiny-1"))


# --- Many ---


@pytest.mark.slow
def test_a_pool_works_through_starts_failures_and_lost_processes(tmp_path, monkeypatch):
    """Two settings of which one cannot be learned, each after a start; the process of one member is killed once."""
    # Looked at ten times a second, and long enough to be killed while it trains, on a quiet machine too.
    monkeypatch.setattr("lapsus.sweep.pool._TICK", 0.1)
    start = {"stage": [TINY["stage"][0] | {"updates": 400}]}
    sweep = made(tmp_path, start=start, tries=2, vary={"stage.0.learning_rate": [1e-3, 1e30], "stage.0.clip": [1e30]})
    killed, lines = [], []

    def shown(pool, line):
        lines.append(line)
        for worker in pool.crew._workers:
            if worker.member == "first-1" and not killed:
                killed.append(worker.process.pid)
                worker.process.kill()

    Pool(sweep, 2, shown=shown).run()
    good, bad = (name for name in sweep.plan.members if name != "first-1")
    states = sweep.states()
    assert killed and states.done == ["first-1", good] and states.failed == [bad]
    assert "killed by SIGKILL" in sweep.failures("first-1")[0]["reason"] and len(sweep.failures(bad)) == 2
    assert any("given up" in line for line in lines if line)


@pytest.mark.slow
def test_the_command_interrupted_goes_on_and_says_how_it_stands(tmp_path, warm):
    path = write_sweep(tmp_path, changes={"stage": [TINY["stage"][0] | {"updates": 400_000}]}, seeds=2)
    with warm.lapsus("sweep", path, "-o", tmp_path / "out", "--workers", "2", cwd=tmp_path) as process:
        _until(lambda: (tmp_path / "out").exists() and _moving(tmp_path / "out"), 300)
        status = json.loads(lapsus("sweep", "status", "out", "--json", cwd=tmp_path))
        assert status["members"] == 2 and status["running"] == 2 and status["done"] == 0
        process.send_signal(signal.SIGINT)
        done = process.wait()
    assert done.returncode == 130 and "The same command continues" in done.stdout and "Traceback" not in done.stderr
    sweep = Sweep(tmp_path / "out")
    assert all(sweep.update(name) > 0 for name in sweep.plan.members) and sweep.states().running == []


def _moving(folder: Path) -> bool:
    return len(list(folder.glob("members/*/metrics.jsonl"))) == 2 and all(
        path.stat().st_size for path in folder.glob("members/*/metrics.jsonl")
    )


def _until(condition, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.2)


def test_mistakes_on_the_command_line(tmp_path, capsys, monkeypatch):
    from lapsus.cli import app

    monkeypatch.chdir(tmp_path)
    write_sweep(tmp_path, measure=QUICK)
    for arguments, message in (
        (["nowhere.toml"], "There is no sweep file nowhere.toml"),
        (["sweep.toml", "--partition", "short"], "no option --partition"),
        (["sweep.toml", "--workers", "0"], "--workers must be at least 1"),
        (["sweep.toml", "--slurm", "--dask", "tcp://x:1"], "not to both"),
        (["sweep.toml", "--slurm", "--workers", "2"], "--workers is of this machine; leave it out"),
        (["sweep.toml", "--pack", "2"], "--pack is for --slurm"),
        (["status", "nowhere"], "nowhere does not exist"),
        (["cancel", "."], "is not the folder of a sweep"),
    ):
        with pytest.raises(SystemExit, match="2"):
            app(["sweep", *arguments], standalone_mode=False)
        assert message in capsys.readouterr().err


def test_a_foreign_folder_is_refused_before_subjects_are_fitted_into_it(tmp_path, capsys, monkeypatch):
    from lapsus.cli import app
    from lapsus.sweep import subjects

    monkeypatch.setattr(subjects, "fit", lambda *_, **__: pytest.fail("it was fitted"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").touch()
    path = write_sweep(tmp_path, subjects={"trials": "trials.csv"})
    with pytest.raises(SystemExit, match="2"):
        app(["sweep", "plan", str(path), "-o", str(tmp_path / "other")], standalone_mode=False)
    assert "holds other files (thesis.tex)" in capsys.readouterr().err
    assert [one.name for one in (tmp_path / "other").iterdir()] == ["thesis.tex"]


def test_what_was_given_up_ends_with_an_error_and_says_how_to_try_again(tmp_path, capsys):
    """And failures of a measure are forgotten when it is asked for no more."""
    from lapsus.cli.sweep import _tell

    sweep = made(tmp_path, tries=1)
    sweep.note_failure("tiny-1", "it broke")
    with pytest.raises(Exit) as left:
        _tell(sweep, False)
    assert left.value.exit_code == 1 and "With --again" in capsys.readouterr().out
    assert made(tmp_path, tries=1, measure={"evaluation": False}).states().ready == ["tiny-1"]
    assert "--again" not in describe(Sweep(sweep.path))


def test_a_sweep_that_grows_knows_its_jobs_and_leaves_those_of_another_folder(tmp_path, monkeypatch):
    """The same plan in two folders, with a SLURM that runs nothing."""
    from lapsus.sweep import slurm

    queue: list[str] = []

    def call(*command, **_):
        if command[0] == "sbatch":
            queue.append(str(100 + len(queue)))
            return queue[-1]
        if command[0] == "scancel":
            queue[:] = [job for job in queue if job not in command]
        return {"scontrol": "MaxArraySize = 10", "squeue": "\n".join(f"{job} 0" for job in queue)}.get(command[0], "")

    monkeypatch.setattr(slurm, "_call", call)
    first = made(tmp_path, seeds=2)
    other = Sweep.make(tmp_path / "other", first.plan)
    assert slurm.submit(first, []) == ["100"] and slurm.submit(other, []) == ["101"]
    grown = made(tmp_path, seeds=3)
    assert slurm.submit(grown, []) == ["102"]
    assert [array["tasks"] for array in slurm.Submission.all(grown)[1].arrays] == [[["tiny-3"]]]
    assert slurm.cancel_jobs(grown) == 2 and queue == ["101"]


def test_a_sweep_that_slurm_never_had_is_cancelled_without_asking_it(tmp_path, monkeypatch):
    """Its commands may be installed on a machine that belongs to no cluster, and refuse."""
    from lapsus.sweep import slurm

    def refuse(*command, **_):
        raise LapsusError(f"{command[0]} refused: no configuration")

    monkeypatch.setattr(slurm, "_call", refuse)
    assert slurm.cancel_jobs(made(tmp_path)) == 0


@pytest.mark.long
def test_forty_members_interrupted_ten_times_give_the_same_table(tmp_path):
    """Interrupted politely and by SIGKILL of the whole command, in turn, at random moments."""
    import pandas as pd

    # Long enough not to be done before it was interrupted ten times, on a quiet machine either.
    changes = {"stage": [TINY["stage"][0] | {"updates": 3000}]}
    path = write_sweep(tmp_path, changes=changes, start={}, seeds=10, vary={"network.units": [6, 8]})
    environment = os.environ | {"PYTHONPATH": str(PACKAGE)}
    command = [sys.executable, "-m", "lapsus", "sweep", str(path), "-o", str(tmp_path / "out")]
    rng, count = random.Random(0), 0
    while count < 10:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = _checkpoints(tmp_path / "out")
        _until(lambda p=process, b=before: p.poll() is not None or _checkpoints(tmp_path / "out") != b, 300)
        time.sleep(rng.uniform(0, 2))
        if process.poll() is None:
            process.send_signal(signal.SIGINT if count % 2 else signal.SIGKILL)
            count += 1
        process.wait(300)
        assert process.returncode in (0, 130, -signal.SIGKILL)
        if process.returncode == 0:
            break
    assert count == 10, "it was done before it could be interrupted ten times"
    assert subprocess.run(command, env=environment, capture_output=True).returncode == 0
    sweep = Sweep(tmp_path / "out")
    assert len(sweep.plan.members) == 40 and len(sweep.states().done) == 40
    straight = Sweep.make(tmp_path / "straight", sweep.plan)
    Pool(straight).run()
    assert bits(sweep) == bits(straight)
    for one in (sweep, straight):
        collect(one).write(one.path / "collected")
    tables = [(one.path / "collected" / "members.csv").read_bytes() for one in (sweep, straight)]
    assert tables[0] == tables[1]
    frames = [pd.read_parquet(one.path / "collected" / "members.parquet") for one in (sweep, straight)]
    pd.testing.assert_frame_equal(*frames)


def _checkpoints(folder: Path) -> set[str]:
    return {f"{path.parent.name}/{path.name}" for path in folder.glob("members/*/checkpoint-*.json")}


STUDIES = sorted((Path(__file__).resolve().parents[1] / "studies" / "ensembles" / "sweeps").glob("*.toml"))


@pytest.mark.parametrize("path", [p for p in STUDIES if not p.stem.startswith("published")], ids=lambda p: p.stem)
def test_the_studies_can_be_planned_and_their_networks_built(path):
    from lapsus.training.model import Model

    plan = plan_sweep(read_sweep(path), Path("out"))
    assert {"matched": 40, "one-factor": 15, "as-published": 8}[path.stem] <= len(plan.members)
    for name, setting in plan.settings.items():
        assert setting.start is None or setting.start in plan.settings
        members = [n for n, member in plan.members.items() if member.setting == name]
        if members:
            experiment = plan.experiment(members[0])
            Model.of(experiment)
            assert experiment.name == name
        else:
            assert name in shipped_names()  # a start that is not trained again
    if path.stem == "one-factor":
        normal = plan.settings["smooth-2_normal"]
        assert normal.start == "feature-preamble_first-weights-normal"
        assert plan.settings[normal.start].table["task"]["first_weights"] == "normal"
