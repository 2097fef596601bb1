"""What a stranger's file must not do, and what must not be lost: each test failed before its cause was mended."""

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import chdir
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from command import lapsus
from sweep_members import write_sweep
from tiny_experiment import TINY

from lapsus import Discovery, files, read_experiment
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.sweep import Pool, Sweep
from lapsus.sweep.processes import Processes
from lapsus.training import train
from lapsus.training.kinds import _trusted, digest
from lapsus.zoo import Run
from lapsus.zoo.runs import first_model

OWN_TASK = """
from pathlib import Path
from lapsus.tasks.delayed_estimation import IndexCued
Path(__file__).with_name("was-run").write_text("")
class Own(IndexCued):
    pass
"""


@pytest.fixture
def fresh(monkeypatch):
    """Nothing is trusted yet, and modules that a test imports are forgotten."""
    before = set(sys.modules)
    _trusted.clear()
    yield
    _trusted.clear()
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("own_module", "stranger"):
            del sys.modules[name]


@pytest.fixture
def stranger(tmp_path, fresh):
    """A run folder from elsewhere whose config names a class that lies in it."""
    train(Run.create(tmp_path / "stranger", read_experiment(TINY)), steps=1, progress=False)
    config = tmp_path / "stranger" / "config.toml"
    config.write_text(config.read_text().replace('kind = "index-cued"', 'kind = "stranger.evil:Own"', 1))
    facts = next((tmp_path / "stranger").glob("checkpoint-00000001.json"))
    told = json.loads(facts.read_text())
    facts.write_text(json.dumps(told | {"config": digest(files.read_toml(config))}))
    (tmp_path / "stranger" / "evil.py").write_text(OWN_TASK)
    return tmp_path / "stranger"


def test_a_start_brings_its_weights_and_runs_nothing(stranger, tmp_path):
    mine = read_experiment(TINY | {"name": "mine", "start_from": "stranger"})
    with chdir(tmp_path):
        model = first_model(mine, tmp_path)
        train(Run.create("mine", mine), steps=1, progress=False)
        for command in (["evaluate", "stranger"], ["train", "stranger/config.toml"], ["resume", "stranger"]):
            assert "--trust" in lapsus(*command, cwd=tmp_path, code=2)
    assert not (stranger / "was-run").exists()
    weights = files.read_bytes(stranger / "checkpoint-00000001.safetensors")
    assert len(weights) and all(torch.isfinite(p).all() for p in model.parameters())


def test_a_sweep_runs_nothing_of_a_start(stranger, tmp_path):
    file = write_sweep(tmp_path, TINY | {"start_from": "stranger"})
    lapsus("sweep", "plan", file, "-o", "out", cwd=tmp_path)
    assert not (stranger / "was-run").exists()


def test_the_config_of_a_run_folder_is_nobodys_experiment(stranger, tmp_path):
    (tmp_path / "sweep.toml").write_text('name = "study"\nexperiment = "stranger/config.toml"\n')
    (tmp_path / "mine.toml").write_text(files.to_toml(TINY | {"name": "mine", "start_from": "theirs.toml"}))
    shutil.copy(stranger / "config.toml", tmp_path / "theirs.toml")
    for command in (["sweep", "plan", "sweep.toml", "-o", "out"], ["reproduce", "train", "mine.toml"]):
        assert "names classes outside of lapsus" in lapsus(*command, cwd=tmp_path, code=2)
        assert not (stranger / "was-run").exists()
    lapsus("sweep", "plan", "sweep.toml", "-o", "out", "--trust", cwd=tmp_path)
    assert (stranger / "was-run").exists()


def test_a_sweep_of_a_stranger_runs_nothing(tmp_path, fresh):
    (tmp_path / "own_module.py").write_text(OWN_TASK)
    with chdir(tmp_path):
        lapsus("sweep", "plan", write_sweep(tmp_path, {"task": {"kind": "own_module:Own"}}), "-o", "out", cwd=tmp_path)
        (tmp_path / "was-run").unlink()
        _trusted.clear()
        with pytest.raises(LapsusError, match="trust=True"):
            Sweep("out").run("tiny-1")
        assert not (tmp_path / "was-run").exists()
        assert Sweep("out", trust=True).run("tiny-1").experiment.task["kind"] == "own_module:Own"


def test_what_train_accepted_here_other_commands_accept_here(tmp_path, fresh):
    (tmp_path / "own_module.py").write_text(OWN_TASK)
    (tmp_path / "own.toml").write_text(files.to_toml(TINY | {"task": {"kind": "own_module:Own"}}))
    lapsus("train", "own.toml", "-o", "run", "--steps", 1, cwd=tmp_path)
    for command in ("evaluate", "simulate"):
        _trusted.clear()
        lapsus(command, "run", "--conditions", 8, cwd=tmp_path)
    _trusted.clear()
    # In another working folder the name would stand for another class.
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "run", other / "run")
    assert "--trust" in lapsus("evaluate", "run", cwd=other, code=2)
    # So does another config, which nobody accepted.
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace('name = "tiny"', 'name = "else"', 1))
    assert "--trust" in lapsus("evaluate", "run", cwd=tmp_path, code=2)


def test_a_misspelt_class_is_called_so(tmp_path, fresh):
    (tmp_path / "own_module.py").write_text(OWN_TASK)
    (tmp_path / "own.toml").write_text(files.to_toml(TINY | {"task": {"kind": "own_module:Owm"}}))
    assert "has no class Owm. Did you mean Own?" in lapsus("train", "own.toml", cwd=tmp_path, code=2)


def test_workers_import_nothing_from_the_working_folder(tmp_path):
    folder = tmp_path / "here"
    (folder / "lapsus").mkdir(parents=True)
    for name in ("queue.py", "lapsus/__init__.py"):
        (folder / name).write_text(f"open({str(tmp_path / 'was-run')!r}, 'w')\nraise SystemExit(3)\n")
    lapsus("sweep", "plan", write_sweep(tmp_path), "-o", "out", cwd=tmp_path)
    with chdir(folder):
        crew = Processes(Sweep(tmp_path / "out"), 1, 1)
        crew._start()
        _, answer = crew._answers.get(timeout=120)
        crew.close()
    assert answer == {"ready": True} and not (tmp_path / "was-run").exists()


@pytest.mark.parametrize("how", ["external", "virtual", "link"])
def test_a_netcdf_file_that_reads_other_files_is_refused(tmp_path, how):
    secret = tmp_path / "secret"
    np.arange(4.0).tofile(secret)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.arange(4.0)
    with h5py.File(tmp_path / "x.nc", "w") as file:
        if how == "external":
            os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
            file.create_dataset("x", (4,), "f8", external=[(str(tmp_path / "pipe"), 0, 32)])
        elif how == "virtual":
            layout = h5py.VirtualLayout((4,), "f8")
            layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "x", (4,))
            file.create_virtual_dataset("x", layout)
        else:
            file["x"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "x")
    with pytest.raises(LapsusError, match="x is kept outside of this file"):
        files.read_netcdf(tmp_path / "x.nc")


# --- Files lost ---


def _written(folder: Path, **content: str) -> None:
    with files.own_files(folder) as place:
        for name, text in content.items():
            files.make_folder((place / name.replace("__", "/")).parent)
            (place / name.replace("__", "/")).write_text(text)


def test_only_files_that_were_written_before_are_replaced(tmp_path):
    folder = tmp_path / "fit"
    _written(folder, summary="1", subject__fit="1", gone="1")
    for name in ("subjects.xlsx", "parameters.m", "subject/notes.txt", "mine/fit.nc"):
        files.make_folder((folder / name).parent)
        (folder / name).write_text("mine")
    assert files.check_own_files(folder, "fit")
    with files.own_files(folder) as place:
        (place / "summary").write_text("2")
        (folder / "meanwhile.txt").write_text("mine")
    assert (folder / "summary").read_text() == "2" and not (folder / "gone").exists()
    assert not (folder / "subject" / "fit").exists() and (folder / "subject" / "notes.txt").read_text() == "mine"
    for name in ("subjects.xlsx", "parameters.m", "mine/fit.nc", "meanwhile.txt"):
        assert (folder / name).read_text() == "mine"
    # A file that was never ours stays, also where one of ours would go.
    (folder / "more").write_text("mine")
    with pytest.raises(LapsusError, match="was not written by lapsus"):
        _written(folder, more="3")
    assert (folder / "more").read_text() == "mine" and not list(folder.glob("*.partial"))
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "summary.json").write_text("{}")
    with pytest.raises(LapsusError, match="holds other files"):
        files.check_own_files(tmp_path / "theirs", "fit")


@pytest.mark.parametrize("stop", range(1, 30))
def test_a_replacement_that_is_cut_off_can_be_made_again(tmp_path, monkeypatch, stop):
    folder, steps = tmp_path / "fit", iter(range(1, 1000))
    _written(folder, a="1", b="1")

    class Cut(BaseException):
        pass

    def cut(*_):
        if next(steps) == stop:
            raise Cut

    with monkeypatch.context() as patch:
        patch.setattr("lapsus.files.writing.watcher", cut)
        try:
            _written(folder, a="2", c="2")
            pytest.skip("it has fewer steps")
        except Cut:
            pass
    assert {(folder / name).read_text() for name in ("a", "b") if (folder / name).exists()} <= {"1", "2"}
    _written(folder, a="3", c="3")
    assert sorted(path.name for path in folder.iterdir()) == ["a", "c", "files.json"]


# --- Wrong answers in silence ---


def test_a_checkpoint_that_lost_its_json_is_not_the_untrained_network(tmp_path):
    run = Run.create(tmp_path / "run", read_experiment(TINY))
    train(run, steps=2, progress=False)
    (tmp_path / "run" / "checkpoint-00000002.json").unlink()
    with pytest.warns(LapsusWarning, match="no JSON"), pytest.raises(LapsusError, match="only the untrained network"):
        run.model()
    assert run.behind and not run.lost
    train(run, steps=2, progress=False)
    assert run.model() and not run.behind


@pytest.mark.parametrize("change", [("cue = 2", "cue = 3"), ("p = 0.2", "p = 0.3")])
def test_a_config_that_was_changed_after_training_is_refused(tmp_path, change):
    swap = {"behaviour": {"kind": "bns", "swap": {"kind": "constant", "p": 0.2}}}
    run = Run.create(tmp_path / "run", read_experiment(TINY | swap))
    train(run, steps=1, progress=False)
    config = tmp_path / "run" / "config.toml"
    text = config.read_text()
    config.write_text("# a comment changes nothing\n" + text)
    assert Run(run.path).model()
    config.write_text(text.replace(*change))
    assert config.read_text() != text
    for use in (Run(run.path).model, Run(run.path).training, lambda: train(Run(run.path), progress=False)):
        with pytest.raises(LapsusError, match="changed after this network was trained"):
            use()


def test_a_finished_run_whose_config_was_changed_is_not_called_trained(tmp_path):
    run = Run.create(tmp_path / "run", read_experiment(TINY, ["stage.0.updates=1", "stage.1.updates=0"]))
    train(run, progress=False)
    assert "trained to its end" in lapsus("resume", "run", cwd=tmp_path)
    config = tmp_path / "run" / "config.toml"
    config.write_text(config.read_text().replace("cue = 2", "cue = 3"))
    assert "changed after this network was trained" in lapsus("resume", "run", cwd=tmp_path, code=2)


def test_a_last_step_that_overflows_is_not_saved(tmp_path, monkeypatch):
    run = Run.create(tmp_path / "run", read_experiment(TINY))
    train(run, steps=1, progress=False)
    from lapsus.training.loop import Training

    monkeypatch.setattr(Training, "_step", lambda self, *_: self.flat.fill_(float("inf")))
    with pytest.raises(LapsusError, match="no longer finite numbers after update 2"):
        train(run, steps=1, progress=False)
    assert run.update == 1


def test_of_two_that_create_one_run_one_gets_a_sentence(tmp_path):
    for number in range(20):
        made, refused = [], []
        barrier = threading.Barrier(2)

        def create(seed, folder=tmp_path / str(number), made=made, refused=refused, barrier=barrier):
            barrier.wait()
            try:
                made.append(Run.create(folder, read_experiment(TINY | {"seed": seed})))
            except LapsusError as error:
                refused.append(str(error))

        threads = [threading.Thread(target=create, args=(seed,)) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == len(refused) == 1, (made, refused)
        assert Run(tmp_path / str(number)).experiment == made[0].experiment


# --- Output that nobody reads ---


def _closed(command: str, cwd: Path) -> subprocess.CompletedProcess:
    line = f"exec {sys.executable} -m lapsus {command}"
    return subprocess.run(["bash", "-c", line], cwd=cwd, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "> >(exit)", "2> >(exit)", "> /dev/full"]
)
def test_work_goes_on_when_nobody_reads_what_it_prints(tmp_path, closed):
    ended = _closed(f"simulate index-swap-10 --conditions 4 --trials 2 -o out.nc {closed}", tmp_path)
    assert files.read_netcdf(tmp_path / "out.nc").sizes["trial"] == 8
    assert "Traceback" not in ended.stderr
    assert ended.returncode == (2 if "full" in closed else 0), ended.stderr


# --- A machine with little ---


def test_a_sweep_whose_workers_cannot_start_says_so(tmp_path, monkeypatch):
    lapsus("sweep", "plan", write_sweep(tmp_path), "-o", "out", cwd=tmp_path)
    limit = "import resource, os, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 27,) * 2); os.abort()"
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{limit}"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(wrapper))
    with pytest.raises(LapsusError, match="could not start: its process was killed by SIGABRT"):
        Pool(Sweep(tmp_path / "out"), 1).run()


def test_a_sweep_without_room_for_a_thread_says_so(tmp_path, monkeypatch):
    sweep = write_sweep(tmp_path)
    lapsus("sweep", "plan", sweep, "-o", "out", cwd=tmp_path)

    def start(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("lapsus.sweep.processes.threading.Thread.start", start)
    assert "not enough memory" in lapsus("sweep", sweep, "-o", "out", "--workers", 1, cwd=tmp_path, code=2)


def test_a_library_that_finds_no_room_is_one_sentence(tmp_path, monkeypatch):
    def load(*_):
        raise ImportError("libopenblas.so: failed to map segment from shared object")

    monkeypatch.setattr("lapsus.zoo.shipped.summary", load)
    assert "not enough memory" in lapsus("zoo", cwd=tmp_path, code=2)


def test_quotas_of_both_kinds_of_control_groups_are_found(tmp_path, monkeypatch):
    from lapsus.engine.threads import _quotas, available

    own = tmp_path / "cgroup"
    own.write_text("4:cpu,cpuacct:/docker/one\n0::/user.slice/a.scope\n")
    for name, text in (
        ("cpu.max", "max 100000"),
        ("user.slice/cpu.max", "250000 100000"),
        ("user.slice/a.scope/cpu.max", "150000 100000"),
        ("cpu/docker/one/cpu.cfs_quota_us", "300000"),
        ("cpu/docker/one/cpu.cfs_period_us", "100000"),
        ("cpu/docker/cpu.cfs_quota_us", "-1"),
        ("cpu/docker/cpu.cfs_period_us", "100000"),
    ):
        files.make_folder((tmp_path / "root" / name).parent)
        (tmp_path / "root" / name).write_text(text)
    assert sorted(_quotas(tmp_path / "root", own)) == [1.5, 2.5, 3.0]
    assert not list(_quotas(tmp_path / "none", tmp_path / "none"))
    monkeypatch.setattr("lapsus.engine.threads._quotas", lambda: [0.5, 3.0])
    assert available() == 1


def test_a_sweep_has_as_many_workers_as_the_container_allows(tmp_path, monkeypatch):
    lapsus("sweep", "plan", write_sweep(tmp_path, seeds=8), "-o", "out", cwd=tmp_path)
    monkeypatch.setattr("lapsus.sweep.pool.available", lambda: 3)
    assert Pool(Sweep(tmp_path / "out")).count == 3


# --- In the way ---


def test_a_recording_in_another_form_is_told_what_it_must_be(tmp_path):
    for name in ("made.npy", "made.csv"):
        (tmp_path / name).write_text("")
        assert "A recording must be an NWB file" in lapsus("analyse", name, cwd=tmp_path, code=2)


def test_a_sweep_trains_no_start_that_ships(tmp_path):
    plain = {"name": "s", "experiment": "index-swap-10", "seeds": 4}
    from lapsus.sweep import plan_sweep, read_sweep
    from lapsus.sweep.plan import Plan, plan_networks

    plan = plan_sweep(read_sweep(plain, tmp_path), tmp_path / "out")
    assert list(plan.members) == [f"index-swap-10-{seed}" for seed in (1, 2, 3)] + [
        "index-preamble-4",
        "index-swap-10-4",
    ]
    assert plan.start("index-swap-10-1") is None and plan.start("index-swap-10-4") == "index-preamble-4"
    again = Plan.of_dict(json.loads(json.dumps(plan.as_dict())))
    assert again.members == plan.members and again.start("index-swap-10-4") == "index-preamble-4"
    changed = plan_sweep(read_sweep(plain | {"vary": {"network.units": [32]}}, tmp_path), tmp_path / "out")
    assert changed.start("index-swap-10_units-32-1") == "index-preamble_units-32-1"
    assert "index-preamble-1" in plan_networks(["index-swap-10"], 1, tmp_path).members


def test_durations_that_vary_are_said_to_be_in_the_middle(tmp_path):
    varying = TINY | {"task": TINY["task"] | {"delay": {"from": 1, "to": 5}}}
    train(Run.create(tmp_path / "varying", read_experiment(varying)), steps=1, progress=False)
    few = ("evaluate", "varying", "--conditions", 8, "--trials", 2)
    assert "Steps in the middle of their ranges: delay 3 (trained on 1 to 5)." in lapsus(*few, cwd=tmp_path)
    assert "middle" not in lapsus(*few, "--delay", 2, cwd=tmp_path)


def test_a_mechanism_of_four_items_is_a_sentence_on_its_page(tmp_path):
    run = Run.create(tmp_path / "four", read_experiment(TINY, ["task.items=4"]))
    train(run, steps=1, progress=False)
    lapsus("report", "four", cwd=tmp_path)
    page = (tmp_path / "four" / "report.html").read_text()
    assert "the mechanism of swaps is studied in delayed estimation with two items" in page
    assert "Network against target" in page and "Traceback" not in page


def test_arviz_of_both_kinds_gets_the_draws(monkeypatch):
    from types import SimpleNamespace

    from lapsus.fitting import Fit

    fit = Fit.load(Path(__file__).parent / "folders" / "v0.2" / "fit")

    def before(*, posterior, log_likelihood, observed_data, coords, dims):
        return {"posterior": posterior, "log_likelihood": log_likelihood, "observed_data": observed_data}

    def since(data, *, coords, dims):
        return data

    for version, from_dict in (("0.23.4", before), ("1.0.0", since)):
        monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(__version__=version, from_dict=from_dict))
        found = fit.to_arviz()
        assert set(found) == {"posterior", "log_likelihood", "observed_data"} and "swap" in found["posterior"]


# --- A finished discovery ---


@pytest.fixture
def found(tmp_path) -> Path:
    return shutil.copytree(Path(__file__).parent / "folders" / "v0.2" / "discovery", tmp_path / "found")


@pytest.mark.parametrize("lost", [".json", ".*"])
def test_a_discovery_whose_last_checkpoint_is_lost_does_not_report_the_untrained_network(found, lost):
    (place,) = Discovery(found).places
    last = max(place.glob("checkpoint-*.json")).stem
    assert last != "checkpoint-00000000"
    for path in place.glob(last + lost):
        path.unlink()
    with pytest.raises(LapsusError, match="network is damaged or gone; the same `lapsus discover` trains it again"):
        Discovery(found).models
    opened = Discovery(found)
    assert opened.repair_networks() == [place]
    assert list(opened.done) == ["trials", "fit", "target"] and opened.repair_networks() == []
    assert opened.round_checks(opened.runs[0]) == [] and Run(place).update < int(last[-8:])


def test_the_trials_of_a_discovery_can_be_lost_or_saved_by_a_spreadsheet(found):
    for change in ((found / "trials.csv").unlink, lambda: (found / "trials.csv").write_text("a;b\n")):
        change()
        opened = Discovery(found)
        assert opened.repair() == [] == opened.repair_networks() and len(opened.done) == 7


def test_only_stages_that_need_a_lost_file_are_done_again(found):
    (found / "notes.json").unlink()
    assert Discovery(found).repair() == ["trials", "report"]
    (found / "evaluation.json").write_text("{}")
    assert Discovery(found).repair() == ["evaluate", "analyse"]
    assert (found / "evaluation.json.damaged").read_text() == "{}" and not (found / "evaluation.json").exists()
    assert "fit" in Discovery(found).done
