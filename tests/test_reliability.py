"""What attacks found, each as a test: nothing lost, nothing let in."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch
from command import lapsus
from safetensors.torch import load_file, save
from torture.child import run as fork, start
from torture.made import MADE, TINY, cli

from lapsus import files
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.evaluation import evaluate
from lapsus.files import writing
from lapsus.training import read_experiment, train
from lapsus.trials import read_trials
from lapsus.zoo import Run, load
from lapsus.zoo.checkpoints import Checkpoints

FOLDERS = Path(__file__).parent / "folders" / "v0.2"
PLAIN = "response,target,non_target_1\n" + "".join(f"{k},{k + 1},{k + 2}\n" for k in range(1, 60))


def trained(folder: Path, steps: int | None = None, text: str = TINY) -> Run:
    (folder / "tiny.toml").write_text(text)
    run = Run.create(folder / "run", read_experiment(folder / "tiny.toml"))
    train(run, steps=steps, progress=False, checkpoint_seconds=0)
    return run


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    return trained(tmp_path_factory.mktemp("finished")).path


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    import shutil

    return Path(shutil.copytree(finished, tmp_path / "run"))


def weights_of(path: Path) -> dict:
    return {name: tensor.clone() for name, tensor in Run(path).model().state_dict().items()}


# --- Checkpoints and side files ---


def test_a_damaged_newest_checkpoint_is_set_aside_and_made_again(copy, finished):
    newest = copy / "checkpoint-00000003.safetensors"
    newest.write_bytes(newest.read_bytes()[:-5])
    with pytest.warns(LapsusWarning, match="set aside"):
        outcome = train(Run(copy), progress=False)
    assert outcome.update == 3 and Run(copy).update == 3
    assert (copy / "checkpoint-00000003.safetensors.damaged").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = weights_of(copy)
    assert all(torch.equal(found[name], tensor) for name, tensor in weights_of(finished).items())


@pytest.mark.parametrize("text", ["[]", "3", '"x"', "{}", '{"update": "3"}', "[" * 9999])
def test_json_that_is_no_checkpoint_falls_back_to_the_one_before(copy, text):
    (copy / "checkpoint-00000003.json").write_text(text)
    with pytest.warns(LapsusWarning, match="trying the one before"):
        assert Run(copy).training().update == 2


def test_evaluate_says_which_update_it_measured(copy, tmp_path):
    from command import lapsus

    assert "update" not in lapsus("evaluate", copy, "--conditions", 32, cwd=tmp_path)
    (copy / "checkpoint-00000003.safetensors").write_bytes(b"damaged")
    assert "Measured at update 2 of 3" in lapsus("evaluate", copy, "--conditions", 32, cwd=tmp_path)
    assert json.loads(lapsus("evaluate", copy, "--conditions", 32, "--json", cwd=tmp_path))["update"] == 2


@pytest.mark.slow
def test_folders_of_a_later_format_are_refused(copy, activity, tmp_path):
    from lapsus import Discovery
    from lapsus.sweep import Sweep

    config = (copy / "config.toml").read_text()
    assert "format = 1\n" in config
    (copy / "config.toml").write_text("newthing = 3\n" + config.replace("format = 1\n", "format = 2\n"))
    for name in ("stages.json", "manifest.json"):
        (tmp_path / name).write_text(json.dumps({"format": 7}))
    with h5py.File(activity, "a") as file:
        file.attrs["format"] = 3
    for reading, path in ((Run, copy), (Discovery, tmp_path), (Sweep, tmp_path), (files.read_netcdf, activity)):
        with pytest.raises(LapsusError, match=r"has format \d, and this version reads 1: update lapsus"):
            reading(path)


def test_what_a_kill_left_in_a_finished_run_goes_when_it_goes_on(copy, finished, tmp_path):
    """Its lock, an unfinished file, checkpoints that were to be forgotten, tensors without their JSON."""
    from command import lapsus

    (tmp_path / "begun").mkdir()
    for old in trained(tmp_path / "begun", steps=1).path.glob("checkpoint-*"):
        old.rename(copy / old.name)
    (copy / "checkpoint-00000000.json").unlink()
    dead = fork(lambda: print(os.getpid())).text.strip()
    (copy / ".lock").write_text("")
    (copy / f".metrics.jsonl.{writing.host()}-{dead}-0123abcd.partial").write_text("half")
    assert "trained to its end" in lapsus("resume", copy, cwd=tmp_path)
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == {
        path.name: path.read_bytes() for path in finished.iterdir()
    }


def test_a_damaged_checkpoint_is_not_lost_between_its_two_files(copy, monkeypatch):
    """Killed when one of them was set aside, its tensors were removed as those of a checkpoint never finished."""
    (copy / "checkpoint-00000003.safetensors").write_bytes(b"damaged")

    class Killed(BaseException):
        pass

    def kill_at_second_rename(step, path, detail, seen=[]):  # noqa: B006
        seen += [step] if step == "rename" else []
        if len(seen) == 2:
            raise Killed

    monkeypatch.setattr(writing, "watcher", kill_at_second_rename)
    with pytest.warns(LapsusWarning, match="set aside"), pytest.raises(Killed):
        train(Run(copy), progress=False)
    monkeypatch.setattr(writing, "watcher", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(Run(copy), progress=False)
    assert (copy / "checkpoint-00000003.safetensors.damaged").read_bytes() == b"damaged"
    assert (copy / "checkpoint-00000003.json.damaged").exists()


def test_what_is_removed_stays_removed(tmp_path, monkeypatch):
    """Else a power cut brings back the JSON of an old checkpoint whose tensors are gone."""
    steps = []
    monkeypatch.setattr(writing, "watcher", lambda step, path, detail: steps.append((step, path)))
    (tmp_path / "old").write_text("")
    files.remove(tmp_path / "old")
    assert steps == [("remove", tmp_path / "old"), ("sync folder", tmp_path)]
    files.remove(tmp_path / "old")


def test_a_pipe_as_checkpoint_does_not_hang(copy):
    (copy / "checkpoint-00000003.json").unlink()
    os.mkfifo(copy / "checkpoint-00000003.json")
    signal.alarm(20)
    with pytest.warns(LapsusWarning, match="has no JSON beside it"):
        assert Run(copy).training().update == 2
    signal.alarm(0)


def test_an_unreadable_checkpoint_is_not_called_damaged(copy, monkeypatch):
    def refuse(path, *_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("lapsus.files.reading.Path.read_bytes", refuse)
    with pytest.raises(LapsusError, match=r"Cannot read .*Permission denied"):
        Run.training(_opened(copy, monkeypatch))
    monkeypatch.undo()
    assert (copy / "checkpoint-00000003.json").exists()


def _opened(path: Path, monkeypatch) -> Run:
    run = object.__new__(Run)
    import tomllib

    run.path, run.checkpoints = path, Checkpoints(path)
    run.experiment = read_experiment(tomllib.loads((path / "config.toml").read_text()))
    return run


@pytest.mark.parametrize("line", [b"\xff\xfe", b"[]", b"3", b'{"loss": 1', b"null"])
def test_damaged_metrics_block_nothing(copy, line):
    path = copy / "metrics.jsonl"
    before = Run(copy).metrics()
    path.write_bytes(line + b"\n" + path.read_bytes() + line)
    from lapsus.report.live import Watch

    assert before and Run(copy).metrics() == before and Watch(copy).state()["update"] == 3
    train(Run(copy), progress=False)


def test_weights_that_are_not_finite_are_refused_averaged_ones_too(copy):
    import hashlib

    path = copy / "checkpoint-00000003.safetensors"
    tensors = load_file(path)
    tensors["average"][3] = float("nan")
    path.write_bytes(save(tensors))
    facts = json.loads(path.with_suffix(".json").read_text())
    facts["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(facts))
    with pytest.raises(LapsusError, match="not finite numbers"):
        load(copy)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_responses_that_are_not_finite_are_refused(finished, engine):
    model = load(finished)
    model.network.leaf_weight.data.fill_(3e38)
    model.network.input_weight.data.fill_(3e38)
    with pytest.raises(LapsusError, match="not finite"):
        evaluate(model, 8, 4, engine=engine)


def test_two_trainers_in_one_folder_do_not_meet(copy):
    with Run(copy).writing(), pytest.raises(LapsusError, match="is being trained by another process"):
        train(Run(copy), progress=False)


@pytest.mark.slow
def test_eight_processes_in_one_folder_do_not_meet(tmp_path, finished):
    """Eight trainers of one run, eight simulators into one file: one does it, the others say who does or that it is
    done, and what comes out is what one alone would have made."""
    begun = trained(tmp_path, steps=1).path
    at_once = [start(cli("resume", begun)) for _ in range(8)]
    ends = [ended(300) for ended in at_once]
    assert all(end.code in (0, 2) and not end.traceback for end in ends), [end.text for end in ends]
    assert any(end.code == 0 for end in ends)
    assert all("by another process" in end.text for end in ends if end.code == 2), [end.text for end in ends]
    assert [line["update"] for line in Run(begun).metrics()] == [line["update"] for line in Run(finished).metrics()]
    assert all(torch.equal(weights_of(begun)[name], tensor) for name, tensor in weights_of(finished).items())
    at_once = [start(cli("simulate", begun, "--conditions", 2, "--trials", 2)) for _ in range(8)]
    ends = [ended(300) for ended in at_once]
    assert sorted(end.code for end in ends) == [0] + [2] * 7, [end.text for end in ends]
    assert not any(end.traceback for end in ends) and files.read_netcdf(begun / "activity.nc").sizes
    assert {path.name for path in begun.glob(".*")} <= {".lock"}


# --- Writing ---


@pytest.mark.slow
def test_nothing_is_written_through_a_link(tmp_path):
    """Where version 0.1 had its unfinished files, and where the files themselves will be."""
    from lapsus.evaluation.sample_sizes import QUICK
    from lapsus.pipeline.reports import write_report

    victim, run = tmp_path / "victim", trained(tmp_path, steps=1).path
    victim.write_text("mine")
    names = ("report.html", "activity.nc", "metrics.jsonl", "config.toml", "checkpoint-00000002.json")
    for name in names:
        (run / f"{name}.partial").symlink_to(victim)
    train(Run(run), progress=False)
    ended = fork(cli("simulate", run, "--conditions", 2, "--trials", 2))
    assert ended.code == 0, ended.text
    write_report([str(run)], sizes=QUICK)
    assert (run / "report.html").stat().st_size > 10_000 and victim.read_text() == "mine"
    for name in ("report.html", "metrics.jsonl"):
        (run / name).unlink()
        (run / name).symlink_to(victim)
    with pytest.raises(LapsusError, match=r"not a report of ours|is a link"):
        write_report([str(run)], sizes=QUICK)
    with pytest.raises(LapsusError, match="is a link; only ordinary files"):
        Run(run).log({"update": 4})
    with pytest.raises(LapsusError, match="is a link"):
        Run(run).cut_metrics(1)
    assert victim.read_text() == "mine"


def test_a_link_in_the_place_of_a_file_is_not_replaced(copy, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (copy / "activity.nc").symlink_to(victim)
    ended = fork(cli("simulate", copy, "--conditions", 2, "--trials", 2, "--force"))
    assert ended.code == 2 and "is a link" in ended.text and victim.read_text() == "mine"


def test_a_name_that_is_not_utf_8_is_written_and_said(copy, tmp_path):
    """Also to a terminal that takes nothing else."""
    output = tmp_path / os.fsdecode(b"a-\xff.nc")

    def work() -> None:
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")
        cli("simulate", copy, "--conditions", 2, "--trials", 2, "-o", output)()

    ended = fork(work)
    assert ended.code == 0 and "a-\\udcff.nc" in ended.text and output.is_file(), ended.text


def test_a_simulation_replaces_netcdf_alone(copy, tmp_path):
    table, config = tmp_path / "t.csv", (copy / "config.toml").read_text()
    table.write_text(PLAIN)
    few = ("simulate", "run", "--conditions", 2, "--trials", 2)
    for place in (table, copy / "config.toml"):
        for force in ([], ["--force"]):
            said = lapsus(*few, "-o", place, *force, cwd=tmp_path, code=2)
            assert "is not netCDF" in said and "--force" not in said
    assert table.read_text() == PLAIN and (copy / "config.toml").read_text() == config
    lapsus(*few, "-o", "a.nc", cwd=tmp_path)
    assert "--force replaces it" in lapsus(*few, "-o", "a.nc", cwd=tmp_path, code=2)
    lapsus(*few, "-o", "a.nc", "--force", cwd=tmp_path)


@pytest.mark.parametrize(
    "command, why",
    [
        (("simulate", "run", "-o", "t.csv/a.nc"), "is a file, not a folder"),
        (("simulate", "run", "-o", "sealed/a.nc"), "no permission"),
        (("zoo", "--gallery", "t.csv/x.html"), "is a file, not a folder"),
        (("zoo", "--gallery", "sealed/x.html"), "no permission"),
        (("report", "run", "-o", "t.csv/x.html"), "is a file, not a folder"),
        (("report", "run", "-o", "sealed/x.html"), "no permission"),
        (("analyse", "run", "t.csv", "-o", "an"), "t.csv"),
        (("analyse", "run", "-o", "sealed/an"), "no permission"),
        (("fit", "t.csv", "-o", "theirs", "--force"), "holds other files"),
    ],
)
def test_a_place_is_refused_before_the_work(copy, tmp_path, monkeypatch, command, why):
    """And nothing is made there."""
    (tmp_path / "t.csv").write_text(PLAIN)
    (tmp_path / "sealed").mkdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "summary.json").write_text("{}")
    access = os.access
    monkeypatch.setattr("os.access", lambda path, mode: access(path, mode) and Path(path).name != "sealed")
    for work in (
        "lapsus.evaluation.simulate",
        "lapsus.report.gallery.gallery_page",
        "lapsus.pipeline.reports.study_network",
        "lapsus.report.analyses.analyse",
        "lapsus.fitting.fit",
    ):
        monkeypatch.setattr(work, lambda *_, **__: pytest.fail("the work was begun"))
    before = sorted(tmp_path.rglob("*"))
    assert why in lapsus(*command, cwd=tmp_path, code=2)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["mechanism.csv", "run.json", "run-commitment.png"])
def test_answers_do_not_replace_what_is_not_ours(copy, tmp_path, monkeypatch, name):
    monkeypatch.setattr("lapsus.report.analyses.analyse", lambda *_, **__: pytest.fail("the work was begun"))
    (tmp_path / "an").mkdir()
    (tmp_path / "an" / name).write_text('{"mine": 1}')
    assert f"{name} is there already and is not" in lapsus("analyse", "run", "-o", "an", cwd=tmp_path, code=2)
    assert (tmp_path / "an" / name).read_text() == '{"mine": 1}'


@pytest.mark.parametrize("name", ["schedule.csv", "schedule.pdf"])
@pytest.mark.slow
def test_figures_do_not_replace_what_is_not_ours(tmp_path, name):
    (tmp_path / name).write_text("mine")
    said = lapsus("reproduce", "schedule", "-o", tmp_path, cwd=tmp_path, code=2)
    assert f"{name} is there already and is not" in said
    assert [path.name for path in tmp_path.iterdir()] == [name] and (tmp_path / name).read_text() == "mine"
    (tmp_path / name).unlink()
    for _ in range(2):
        lapsus("reproduce", "schedule", "-o", tmp_path, cwd=tmp_path)


@pytest.mark.slow
def test_figures_are_drawn_whatever_backend_is_set(tmp_path):
    """Which matplotlib looks at when it is imported: in a process of its own."""
    command = [sys.executable, "-m", "lapsus", "reproduce", "schedule", "-o", tmp_path]
    done = subprocess.run(command, env=os.environ | {"MPLBACKEND": "nonsense"}, capture_output=True, text=True)
    assert done.returncode == 0 and (tmp_path / "schedule.pdf").is_file(), done.stderr


def test_a_page_of_ours_is_replaced(tmp_path):
    from lapsus.report.page import page_place

    page = tmp_path / "report.html"
    page.write_text("<footer>Made by lapsus 0.1</footer>" + "<script>" + "x" * 7000 + "</script>")
    assert page_place(page) == page
    for other in ("<footer>Mine</footer>", "<p>Figure 2. Made by lapsus 0.2.</p>"):
        page.write_text(other)
        with pytest.raises(LapsusError, match="not a report of ours"):
            page_place(page)


@pytest.mark.slow
@pytest.mark.parametrize("code", ["ENOSPC", "EROFS"])
def test_a_write_that_fails_is_one_sentence(copy, tmp_path, code):
    import errno
    import shutil

    begun = tmp_path / "begun"
    begun.mkdir()
    begun = trained(begun, steps=1).path
    discovery = shutil.copytree(FOLDERS / "discovery", tmp_path / "found")

    def full(step, path, detail):
        raise OSError(getattr(errno, code), os.strerror(getattr(errno, code)))

    def work(command):
        writing.watcher = full
        command()

    for command in (
        cli("simulate", copy, "--conditions", 2, "--trials", 2),
        cli("reproduce", "schedule", "-o", copy / "f"),
        cli("resume", begun),
        cli("report", discovery),
        cli("discover", "-o", tmp_path / "new"),
        cli("train", tmp_path / "begun" / "tiny.toml", "-o", tmp_path / "another"),
    ):
        ended = fork(lambda command=command: work(command))
        assert ended.code == 2 and not ended.traceback, ended.text
        *before, last = ended.text.splitlines()
        assert last.startswith("lapsus: ") and os.strerror(getattr(errno, code)) in last, ended.text
        assert all(line.startswith(("Training ", "Resuming ")) for line in before), ended.text


@pytest.mark.slow
def test_a_fit_that_finds_the_disk_full_leaves_the_earlier_one_and_can_be_made_again(tmp_path):
    import errno

    from torture import jobs

    from lapsus.fitting.files import check_folder

    MADE.setdefault("table", _few_trials(tmp_path / "trials.csv"))
    folder = tmp_path / "place"
    folder.mkdir()
    jobs._earlier_fit(folder)
    before = sorted(path.name for path in folder.rglob("*"))

    def full(step, path, detail):
        if step == "sync":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def work():
        writing.watcher = full
        jobs._fit_force(folder)()

    ended = fork(work)
    assert ended.code == 2 and "No space left" in ended.text and not ended.traceback, ended.text
    assert sorted(path.name for path in folder.rglob("*")) == before
    assert (folder / "fit" / "summary.json").read_bytes() == b"{}"
    assert check_folder(folder / "fit")


def _few_trials(path: Path) -> Path:
    from lapsus.trials.observer import observer_path

    path.write_text("\n".join(observer_path().read_text().splitlines()[:81]) + "\n")
    return path


def test_a_terminal_that_is_gone_is_one_sentence():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this machine")

    def work():
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        cli("zoo")()

    ended = fork(work)
    assert ended.code == 2 and not ended.traceback, ended.text


def test_ctrl_c_outside_of_training_says_so(copy):
    def work():
        writing.watcher = lambda step, path, detail: os.kill(os.getpid(), signal.SIGINT) and None
        cli("simulate", copy, "--conditions", 2, "--trials", 2)()

    ended = fork(work)
    assert ended.code == 130 and "stopped" in ended.text and not (copy / "activity.nc").exists()


def test_ctrl_c_before_a_command_begins_says_so(monkeypatch, tmp_path):
    """While its options are put together, which takes a moment."""
    from command import lapsus

    def interrupted(**options):
        raise KeyboardInterrupt

    monkeypatch.setattr("lapsus.cli.app", interrupted)
    assert "stopped" in lapsus("zoo", cwd=tmp_path, code=130)


def test_answers_are_kept_when_their_pictures_are_there(copy, monkeypatch, tmp_path):
    """Else a disk that is full at a picture would have cost it for good: answers that are there are not asked again."""
    from lapsus.report import analyses

    asked = []
    found = SimpleNamespace(
        to_dict=lambda: asked.append("once more") or {}, row=lambda: {"rate": 0.1}, sentences=lambda: ["so"]
    )
    monkeypatch.setattr(analyses, "analyse", lambda *_, **__: found)
    monkeypatch.setattr(analyses, "process_time", lambda: 0.0)
    for draws in (False, True, True):

        def draw(*_, draws=draws):
            if not draws:
                raise LapsusError("Cannot write the picture.")

        monkeypatch.setattr(analyses, "_draw", draw)
        lapsus("analyse", copy, "-o", "answers", cwd=tmp_path, code=0 if draws else 2)
    assert len(asked) == 2
    kept = (tmp_path / "answers" / "run.json").read_bytes()
    for length in (20, 3, 0):
        os.truncate(tmp_path / "answers" / "run.json", length)
        lapsus("analyse", copy, "-o", "answers", cwd=tmp_path)  # damaged: asked again
        assert len(asked) == 3 and (tmp_path / "answers" / "run.json").read_bytes() == kept
        asked.pop()


# --- The files of a discovery ---

PARTS = sorted(str(path.relative_to(FOLDERS / "discovery")) for path in (FOLDERS / "discovery").rglob("*.*"))


@pytest.fixture(scope="module")
def whole_fit():
    return files.read_netcdf(FOLDERS / "discovery" / "fit" / "fit.nc")


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_a_discovery_with_a_damaged_file_is_read_or_refused(tmp_path, name, whole_fit, monkeypatch):
    """Every file of it, as another kind of JSON, cut short, and with bytes of something else."""
    import shutil

    from lapsus import Discovery

    if name != "fit/fit.nc":  # which is read in a fork, four times for each other file
        monkeypatch.setattr("lapsus.fitting.files.read_netcdf", lambda path: whole_fit.copy())
    found = shutil.copytree(FOLDERS / "discovery", tmp_path / "found")
    whole = (found / name).read_bytes()
    for content in (b"[]", b"{}", whole[: len(whole) // 2], b"\xff\x00" + whole):
        (found / name).write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                opened = Discovery(found)
                for part in ("plan", "fit", "fitted", "runs", "models", "evaluations", "matches", "mechanisms"):
                    getattr(opened, part)
                assert opened.sentences and opened.checks and opened.arrays() and opened.facts
            except LapsusError as error:
                assert len(str(error)) < 1000


def test_a_discovery_that_lost_its_stages_says_what_to_do(tmp_path):
    import shutil

    found = shutil.copytree(FOLDERS / "discovery", tmp_path / "found")
    os.truncate(found / "stages.json", 20)
    for command in (("report", "found"), ("discover", "-o", "found")):
        said = lapsus(*command, cwd=tmp_path, code=2)
        assert "damaged" in said and "begins anew in another folder" in said and "found/networks" in said


def test_a_start_that_is_none_is_said_before_a_discovery_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr("lapsus.pipeline.stages.fit_trials", lambda *_, **__: pytest.fail("it was fitted"))
    for name, why in (("nope", "neither a run folder nor"), ("feature-sample-mse", "cannot be the start")):
        said = lapsus("discover", "--start-from", name, "-o", "d1", cwd=tmp_path, code=2)
        assert why in said and not (tmp_path / "d1").exists()


@pytest.mark.parametrize("name", ["x" * 5000, "../../victim", "/etc", "\x00", "\ud83d", "é" * 200])
def test_a_discovery_names_its_networks_within_its_folder(tmp_path, name):
    import shutil

    from lapsus import Discovery

    found = shutil.copytree(FOLDERS / "discovery", tmp_path / "found")
    target = json.loads((found / "target.json").read_text())
    stages = json.loads((found / "stages.json").read_text())
    stages.pop("files", None)
    (found / "stages.json").write_text(json.dumps(stages))
    (found / "target.json").write_text(json.dumps(target | {"networks": [name]}))
    with pytest.raises(LapsusError) as raised:
        Discovery(found).runs
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("command", ["train", "resume", "evaluate", "simulate", "report", "fit", "discover", "watch"])
def test_names_that_no_file_can_have_are_sentences(tmp_path, command):
    ended = fork(cli(command, "x" * 5000))
    assert ended.code == 2 and not ended.traceback, ended.text[-500:]


def test_a_sweep_of_an_experiment_that_no_file_can_be_is_a_sentence(tmp_path):
    from lapsus.sweep import plan_sweep, read_sweep

    for fields in ({}, {"subjects": {"trials": "y" * 5000}}):
        with pytest.raises(LapsusError) as said:
            described = read_sweep({"name": "s", "experiment": "x" * 5000} | fields, tmp_path)
            plan_sweep(described, tmp_path / "out")
        assert len(str(said.value)) < 2000


def test_arrays_with_a_header_that_is_none_are_a_short_sentence(tmp_path):
    """A header that is no array is printed whole by numpy."""
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        header = b"\x01" * 9000  # each four letters when printed
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(LapsusError) as said:
        files.read_arrays(path)
    assert len(str(said.value)) < 1000


@pytest.fixture
def activity(tmp_path) -> Path:
    import xarray as xr

    path = tmp_path / "activity.nc"
    files.write_netcdf(path, xr.Dataset({"x": ("time", np.arange(1000.0))}))
    return path


# --- Trust ---


@pytest.mark.parametrize(
    "kind", ["lapsus.data.__main__:x", "lapsus.cli:main", "lapsus:discover", "lapsus.__main__:main"]
)
def test_only_the_kinds_of_lapsus_are_of_lapsus(tmp_path, kind):
    text = TINY.replace('kind = "index-cued"', f'kind = "{kind}"')
    (tmp_path / "x.toml").write_text(text)
    ended = fork(cli("train", tmp_path / "x.toml", "-o", tmp_path / "run"))
    assert ended.code == 2 and "is not known" in ended.text
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").write_text(text)
    with pytest.raises(LapsusError, match="trust=True"):
        Run(tmp_path / "run")
    with pytest.raises(LapsusError, match="is not known"):
        Run(tmp_path / "run", trust=True).training()


@pytest.mark.parametrize("kind", ["subprocess:Popen", "pathlib:Path", "ctypes:CDLL"])
def test_nothing_is_called_that_is_not_a_task(tmp_path, kind):
    text = TINY.replace('kind = "index-cued"', f'kind = "{kind}"\nargs = ["touch", "{tmp_path}/ran"]').split(
        "prestimulus"
    )[0]
    (tmp_path / "x.toml").write_text(text + "[[stage]]\nupdates = 1\n")
    ended = fork(cli("train", tmp_path / "x.toml", "-o", tmp_path / "run"))
    assert ended.code == 2 and "is not a task" in ended.text, ended.text
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("place", ["objective", "swap"])
def test_a_class_that_writes_files_when_it_is_called_is_not_called(tmp_path, place):
    """numpy.memmap makes or empties the file that it is called with; it is imported already, and every class can be
    called."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    evil = f'{place} = {{ kind = "numpy:memmap", filename = "{victim}", mode = "w+", shape = [10] }}'
    text = TINY.replace('swap = { kind = "constant", p = 0.3 }', evil) if place == "swap" else f"{TINY}{evil}\n"
    (tmp_path / "x.toml").write_text(text)
    ended = fork(cli("train", tmp_path / "x.toml", "-o", tmp_path / "run"))
    assert ended.code == 2 and "it has no __call__" in ended.text, ended.text
    assert victim.read_text() == "mine" and not (tmp_path / "run").exists()


# --- Tables ---


def test_rows_with_a_field_too_many_are_no_row_names(tmp_path):
    path = tmp_path / "t.csv"
    lines = PLAIN.splitlines()
    for text in ([lines[0], *(line + "," for line in lines[1:])], [lines[0], *(line + ",9" for line in lines[1:])]):
        path.write_text("\n".join(text))
        with pytest.raises(LapsusError, match="row 1 has 4 fields, the header has 3"):
            read_trials(path, "degrees")
    path.write_text("\n".join(["," + lines[0], *(f"{k},{line}" for k, line in enumerate(lines[1:]))]))
    assert np.allclose(np.degrees(read_trials(path, "degrees").response), np.arange(1, 60))


def test_a_date_at_the_end_of_a_name_is_refused_in_few_words(tmp_path):
    path = tmp_path / "t.csv"
    for name in ("non_target_20260101", "non_target_probe_20260101", "report_20260101", "non_target_" + "9" * 5000):
        path.write_text(PLAIN.replace("non_target_1", name))
        with pytest.raises(LapsusError) as raised:
            read_trials(path, "degrees")
        assert len(str(raised.value)) < 500 and "numbered up to" in str(raised.value)


def test_malformed_matlab_files_are_sentences(tmp_path):
    from scipy.io import savemat

    wrong = {
        "bays": {
            "n_items": 3,
            "nontarget": "x",
            "target_pos": np.array([["a"]]),
            "nontarget_pos": 1.0,
            "response": [1, 2],
        },
        "berg": {"recording1": 3.0},
        "shape": {"recording1": {f: np.ones(2) for f in ("set_size", "c_array", "test", "sub_picked", "RT")}},
        "objects": {"response": np.array([1, "x", "y"], object), "target": np.ones(3)},
    }
    for name, content in wrong.items():
        savemat(tmp_path / f"{name}.mat", content)
        with pytest.raises(LapsusError, match=name):
            read_trials(tmp_path / f"{name}.mat")


@pytest.mark.slow
def test_names_of_subjects_lose_no_fit(tmp_path):
    from lapsus.fitting import fit
    from lapsus.plots.fits import save_all
    from lapsus.trials.observer import observer_path

    lines = observer_path().read_text().splitlines()
    place = lines[0].split(",").index("subject")
    rows = [line.split(",") for line in lines[1:81]]
    for k, row in enumerate(rows):
        row[place] = ("x" * 400, r"$\frac{$")[k % 2]
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *(",".join(row) for row in rows)]))
    named = read_trials(tmp_path / "t.csv", feature_name=r"$\frac{$\x00", probe_name="\ud83d" + "x" * 5000)
    found = fit(named, "constant", by="subject")
    save_all(found, found.save(tmp_path / "fit"))
    assert len(list((tmp_path / "fit").glob("subject-*"))) == 2 and (tmp_path / "fit" / "subjects.pdf").exists()


# --- Limits ---


@pytest.mark.parametrize(
    "line, message",
    [
        ("stage.0.learning_rate=inf", "finite"),
        ("stage.0.clip=nan", "finite"),
        ("stage.0.task={denoise = []}", "at least 1"),
        ("behaviour.pi_correct=-1.0", "means nothing"),
        ("behaviour={kind = 'bns', pi_correct = -1.0, swap = {kind = 'smooth'}}", "cannot be negative"),
        ("network.units=1000000000", "at most"),
        ("network.branching=[100000, 100000]", "weights; at most"),
        ("task.denoise=1000000000", "1 to 10,000 steps"),
        ("task.items=100000", "from 1 to 64"),
        (f"name={'x' * 5000}", "200"),
        ("stage.0.conditions=1000000000000", "less than or equal"),
    ],
)
def test_what_makes_no_network_is_refused(tmp_path, line, message):
    from lapsus.training.model import Model

    (tmp_path / "tiny.toml").write_text(TINY)
    with pytest.raises(LapsusError, match=message) as raised:
        Model.of(read_experiment(tmp_path / "tiny.toml", [line]))
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("task", ["3", '"x"', "1e308", "1979-05-27", "9" * 5000, "[" * 400 + "]" * 400])
def test_a_stage_whose_task_is_no_table_is_one_sentence(tmp_path, task):
    (tmp_path / "tiny.toml").write_text(f"{TINY}task = {task}\n")
    with pytest.raises(LapsusError, match=r"stage\.0\.task|not a TOML file|levels deep") as raised:
        read_experiment(tmp_path / "tiny.toml")
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    "change",
    (
        ".".join("a" * 3000) + "=1",
        "stage.²=1",
        "stage." + "9" * 5000 + ".x=1",
        "network.branching.0.x=1",
        "x=[" * 999,
        "stage.0.task=1979-05-27",
        "name=" + "9" * 5000,
    ),
)
def test_changes_that_cannot_be_are_sentences(tmp_path, change):
    (tmp_path / "tiny.toml").write_text(TINY)
    with pytest.raises(LapsusError) as raised:
        read_experiment(tmp_path / "tiny.toml", [change])
    assert len(str(raised.value)) < 1000


def test_options_that_cannot_be_are_sentences(finished):
    for arguments in (
        ("power", "--seed", -1),
        ("power", "--scatter", 0),
        ("power", "--scatter", "nan"),
        ("power", "--spread", "inf"),
        ("power", "--set-size", 10**9),
        ("zoo", "--gallery", finished.parent / "g.html", "index-swap-10", "--threads", 100000),
        ("resume", finished, "--threads", 100000),
        ("train", "index-no-swap", "--threads", 100000),
        ("discover", "--seed", -1),
        ("report", finished, "--seed", -1),
    ):
        ended = fork(cli(*arguments))
        assert ended.code == (0 if arguments[0] == "resume" else 2) and not ended.traceback, ended.text


# --- The live page ---


@pytest.fixture
def served(finished):
    from lapsus.report.live import Watch, _handler, _Server

    server = _Server(("127.0.0.1", 0), _handler(Watch(finished)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_idle_connections_are_dropped_and_watchers_served(served):
    import urllib.request

    address = served.server_address
    idle = [socket.create_connection(address) for _ in range(400)]
    began = time.monotonic()

    def watch(number: int) -> list[int]:
        """As the page does: again and again."""
        found = []
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{address[1]}/state.json", timeout=30) as answer:
                found.append(json.load(answer)["update"])
        return found

    with ThreadPoolExecutor(50) as watchers:
        assert list(watchers.map(watch, range(50))) == [[3, 3, 3]] * 50
    for connection in idle:
        connection.settimeout(30)
        assert connection.recv(1) == b""
        connection.close()
    assert time.monotonic() - began < 20  # dropped within ten seconds of their coming


@pytest.mark.slow
def test_a_measurement_under_way_is_waited_for_when_watching_ends(finished, tmp_path):
    """An interpreter that ends below the threads of the kernel aborts."""

    def work():
        from lapsus.report import live

        def measure(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
            (tmp_path / "measured").write_text("")

        live.Watch.measure = measure
        live.serve(finished)
        os._exit(0 if (tmp_path / "measured").exists() else 3)

    ended = fork(work)
    assert ended.code == 0, ended.text


def test_clients_that_leave_print_nothing(served, capfd):
    for _ in range(20):
        client = socket.create_connection(served.server_address)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        client.sendall(b"GET /state.json HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n" % served.server_address[1])
        client.close()
    time.sleep(0.3)
    assert capfd.readouterr().err == ""
