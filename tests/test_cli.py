"""Every command as a new user would type it, with right and with wrong input."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from command import lapsus
from typer.main import get_command

from lapsus.cli import app, words
from lapsus.cli.evaluate import delays_of
from lapsus.cli.words import OPTIONS
from lapsus.errors import LapsusError
from lapsus.files import to_toml

TINY = {
    "name": "tiny",
    "task": {"kind": "index-cued", "prestimulus": 1, "stimulus": 2, "delay": 1, "cue": 2, "denoise": 4},
    "network": {"kind": "dendritic", "units": 6, "branching": [3, 3]},
    "behaviour": {"kind": "bns", "swap": {"kind": "constant", "p": 0.2}},
    "stage": [{"updates": 30, "conditions": 8, "trials": 4}],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    (folder / "tiny.toml").write_text(to_toml(TINY))
    out = lapsus("train", "tiny.toml", "-o", "run", "--seed", 3, "--set", "task.delay=2", cwd=folder)
    assert "lapsus evaluate run" in out
    return folder


@pytest.mark.slow
def test_train_keeps_everything_that_made_the_run(folder):
    config = (folder / "run" / "config.toml").read_text()
    assert "seed = 3" in config and "delay = 2" in config and "torch" in config
    last = json.loads((folder / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["update"] == 30 and {"loss", "loss_ddpm", "trials_per_second"} <= set(last)


def test_evaluate(folder):
    result = json.loads(lapsus("evaluate", "run", "--json", "--conditions", 32, cwd=folder))
    assert {
        "excess",
        "swap_curve",
        "swap_curve_mad",
        "swap_curve_max",
        "median_error",
        "median_error_target",
        "away",
    } <= set(result)
    text = lapsus("evaluate", "run", "--conditions", 32, cwd=folder)
    assert "Excess over the Bayes denoiser" in text and "swap rate" in text


def test_evaluate_at_other_delays(folder):
    rows = json.loads(lapsus("evaluate", "run", "--json", "--conditions", 32, "--delay", "2,9", cwd=folder))
    assert [row["delay"] for row in rows["delays"]] == [2, 9] and rows["norm_ratio"] > 0
    assert {"swap_curve_mad", "swap_curve_max", "swap_likelihood_mad", "median_error", "away", "excess"} <= set(
        rows["delays"][0]
    )
    one = json.loads(lapsus("evaluate", "run", "--json", "--conditions", 32, "--delay", 9, cwd=folder))
    assert one["median_error"] == rows["delays"][1]["median_error"] != rows["delays"][0]["median_error"]
    assert "by likelihood" in lapsus("evaluate", "run", "--conditions", 32, "--delay", "2,9", cwd=folder)
    assert "as in 20 or 5,10,20" in lapsus("evaluate", "run", "--delay", "soon", cwd=folder, code=2)


def test_delays_are_whole_numbers_each_once():
    assert delays_of(None) == [] and delays_of("0") == [0] and delays_of("5, 20,5") == [5, 20]
    for text in ("", "-1", "soon", "5,", "3-7", "1.5", "9" * 5000):
        with pytest.raises(LapsusError, match="as in 20 or 5,10,20"):
            delays_of(text)


def test_simulate_at_other_delays(folder):
    import xarray as xr

    lapsus("simulate", "run", "--conditions", 3, "--trials", 2, "--delay", "2,9", "-o", "at.nc", cwd=folder)
    for steps in (2, 9):
        with xr.open_dataset(folder / f"at-delay-{steps}.nc", engine="h5netcdf") as data:
            assert int((data["epoch"] == "delay").sum()) == steps


def test_simulate(folder):
    import xarray as xr

    lapsus("simulate", "run", "--conditions", 5, "--trials", 2, cwd=folder)
    with xr.open_dataset(folder / "run" / "activity.nc", engine="h5netcdf") as data:
        assert data["activity"].dims == ("trial", "time", "unit") and data.sizes["trial"] == 10
        assert {"target", "cued", "report_1", "probe_2", "response"} <= set(data.variables)
    assert "--force" in lapsus("simulate", "run", cwd=folder, code=2)


def test_resume_of_a_finished_run_says_so(folder):
    assert "trained to its end" in lapsus("resume", "run", cwd=folder)


def test_steps_and_resume(folder):
    assert "lapsus resume part" in lapsus("train", "tiny.toml", "-o", "part", "--steps", 10, cwd=folder)
    assert "Trained" in lapsus("resume", "part", cwd=folder)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["train", "tiny.toml", "-o", "run"], "already holds a run"),
        (["train", "nothing.toml"], "There is no experiment file nothing.toml"),
        (["train", "tiny.toml", "-o", "x", "--set", "task.dellay=3"], "Did you mean delay"),
        (["train", "tiny.toml", "-o", "x", "--set", "task.items=9"], "impossible for 9 items"),
        (["train", "tiny.toml", "-o", "x", "--set", "task.delay=-3"], "task.delay has 0 to 10,000 steps"),
        (["train", "tiny.toml", "-o", "x", "--set", "nonsense"], "set by key=value"),
        (["train", "tiny.toml", "-o", "x", "--steps", "0"], "--steps must be positive"),
        (["train", "tiny.toml", "-o", "x", "--engine", "warp"], "engine must be one of"),
        (["train", ".", "-o", "x"], "is a folder"),
        (["train", "broken.toml", "-o", "x"], "is not a TOML file"),
        (["resume", "nowhere"], "nowhere does not exist"),
        (["resume", "."], "is not a run folder"),
        (["resume", "tiny.toml"], "tiny.toml is not a run folder"),
        (["resume", "run", "--engine", "z"], "engine must be one of"),
        (["resume", "run", "--minutes", "nan"], "--minutes must be"),
        (["simulate", "run", "-o", ".", "--force"], "is a folder; -o names a file"),
        (["zoo", "nope"], "nope is neither"),
        (["zoo", "--threads", "-1"], "threads"),
        (["evaluate", "feature-smoth-2"], "neither a run folder nor a network"),
        (["evaluate", "run", "--conditions", "1"], "evaluate needs 2 to 100,000,000 trials, of 2 conditions or more"),
        (["evaluate", "run", "--trials", "0"], "not 4,096 conditions × 0"),
        (["evaluate", "run", "--conditions", "999999999999"], "evaluate needs 2 to 100,000,000 trials"),
        (["simulate", "run", "-o", "z.nc", "--conditions", "0"], "simulate needs 1 to 100,000,000 trials"),
        (["simulate", "run", "-o", "z.nc", "--conditions", "1000000000"], "simulate needs 1 to 100,000,000 trials"),
        (["simulate", "run", "-o", "z.nc", "--trials", "9" * 30], "simulate needs 1 to 100,000,000 trials"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_two(folder, arguments, message):
    (folder / "broken.toml").write_text("name = [unclosed")
    error = lapsus(*arguments, cwd=folder, code=2)
    assert message in " ".join(error.split())
    assert not (folder / "x" / "metrics.jsonl").exists()


def test_zoo_shows_those_that_are_named(folder):
    assert [row["name"] for row in json.loads(lapsus("zoo", "--json", "index-swap-10", cwd=folder))] == [
        "index-swap-10"
    ]


@pytest.mark.parametrize("take", [np.empty, torch.empty])
def test_too_little_memory_is_one_sentence(folder, take, monkeypatch):
    """torch says it with a RuntimeError."""
    monkeypatch.setattr("lapsus.evaluation.evaluate", lambda *_, **__: take(2**50))
    assert "not enough memory" in lapsus("evaluate", "run", cwd=folder, code=2)


@pytest.mark.slow
def test_trying_each_stage_first_changes_nothing(folder, warm):
    """The slow engine is still told of, once; a stage that is switched off is not tried."""
    (folder / "slow.toml").write_text(
        to_toml(
            TINY
            | {
                "network": {"kind": "two-layer", "units": 6, "hidden": 8},
                "stage": [TINY["stage"][0] | {"updates": 0, "trials": 2}, TINY["stage"][0]],
            }
        )
    )
    done = warm.lapsus("train", "slow.toml", "-o", "slow", "--steps", 2, cwd=folder).wait()
    assert done.returncode == 0 and done.stderr.count("The torch reference runs") == 1, done.stderr


def test_folder_without_rights(folder):
    locked = folder / "locked"
    locked.mkdir(exist_ok=True)
    locked.chmod(0o555)
    if os.access(locked, os.W_OK):  # root may write anywhere: a file in the way gives the same kind of error
        (folder / "blocked").write_text("")
        assert "is a file, not a folder" in lapsus("train", "tiny.toml", "-o", "blocked/run", cwd=folder, code=2)
    else:
        assert "cannot be written" in lapsus("train", "tiny.toml", "-o", "locked/run", cwd=folder, code=2)


def test_every_command_has_help(tmp_path):
    out = lapsus("--help", cwd=tmp_path)
    commands = [
        line.split()[0]
        for line in out.split("Commands:")[1].splitlines()
        if line.strip() and line.startswith("  ") and line[2] != " "
    ]
    assert {"train", "resume", "evaluate", "simulate", "zoo"} <= set(commands)
    for command in commands:
        assert len(lapsus(command, "--help", cwd=tmp_path)) > 100


def test_help_is_instant(tmp_path):
    """Nothing that takes long to import is; processor time, so that a busy machine does not count."""
    command = [sys.executable, "-X", "importtime", "-m", "lapsus", "--help"]
    before = os.times()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    after = os.times()
    assert "Commands:" in done.stdout
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "typer" in imported
    assert not {"torch", "scipy", "numpy", "pandas", "matplotlib", "xarray", "pydantic"} & imported
    assert after.children_user + after.children_system - before.children_user - before.children_system < 1.0


def test_version(tmp_path):
    assert lapsus("--version", cwd=tmp_path).startswith("lapsus")


def test_opening_a_run_imports_nothing_that_its_config_names(folder):
    import shutil

    shutil.copytree(folder / "run", folder / "hostile")
    (folder / "hostile" / "activity.nc").unlink(missing_ok=True)
    config = folder / "hostile" / "config.toml"
    config.write_text(config.read_text().replace('kind = "index-cued"', 'kind = "os:system"\ncommand = "touch harmed"'))
    for command in ("evaluate", "simulate", "resume"):
        assert "--trust" in lapsus(command, "hostile", cwd=folder, code=2)
        if command != "resume":  # which has nothing to do there, and so makes no network
            assert "is not a class" in lapsus(command, "hostile", "--trust", cwd=folder, code=2)
    drawn = ("reproduce", "unimodal", "--claims-only", "--runs", "hostile")
    assert "--trust" in lapsus(*drawn, cwd=folder, code=2)
    # Such a task plays no part in the paper.
    assert "no network feature-sample-mse" in lapsus(*drawn, "--trust", cwd=folder)
    assert not (folder / "harmed").exists()


def test_a_run_whose_checkpoints_are_all_damaged_is_not_finished(folder):
    import shutil

    shutil.copytree(folder / "run", folder / "damaged")
    for path in (folder / "damaged").glob("*.safetensors"):
        path.write_bytes(b"")
    assert "Every checkpoint" in lapsus("resume", "damaged", cwd=folder, code=2)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["simulate", "run", "-o", "q.nc", "--noise-scale", "nan"], "noise scale must be a finite number"),
        (["simulate", "run", "-o", "q.nc", "--seed", "-1"], "seed must not be negative"),
        (["evaluate", "run", "--seed", "-1"], "seed must not be negative"),
        (["train", "tiny.toml", "-o", "y", "--set", "start_from=nowhere"], "nowhere is neither a run folder"),
        (
            ["train", "tiny.toml", "-o", "y", "--set", "start_from=run", "--set", "network.units=5"],
            "this network needs",
        ),
        (["train", "tiny.toml", "-o", "y", "--set", 'network={kind="two-layer"}', "--engine", "fused"], "fused"),
        (["train", "tiny.toml", "-o", "y", "--set", "stage.0.trials=2"], "needs at least three trials a condition"),
    ],
)
def test_more_mistakes(folder, arguments, message):
    assert message in " ".join(lapsus(*arguments, cwd=folder, code=2).split())
    assert not (folder / "y").exists() and not (folder / "q.nc").exists()


@pytest.mark.parametrize("arguments", [("-h",), ("evaluate", "-h"), ("reproduce", "-h")])
def test_h_is_help(arguments, tmp_path):
    assert lapsus(*arguments, cwd=tmp_path) == lapsus(*arguments[:-1], "--help", cwd=tmp_path) != ""


@pytest.mark.slow
def test_messages_of_the_api_name_parameters_and_those_of_the_command_line_options():
    """Whatever is turned into an option is one of some command, and no exception of the API speaks of one."""

    def options(command):
        return {param.name for param in command.params}.union(*map(options, getattr(command, "commands", {}).values()))

    assert set(OPTIONS) <= options(get_command(app))
    package = Path(words.__file__).parents[1]
    looked_at = 0
    for path in (path for path in package.rglob("*.py") if "cli" not in path.parts):
        for raised in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Raise)):
            texts = [node.value for node in ast.walk(raised) if isinstance(node, ast.Constant)]
            said = " ".join(text for text in texts if isinstance(text, str))
            assert not re.search(r"(?<![\w-])-(-[a-z]|[a-z]\b)", said), f"{path.name}: {said}"
            looked_at += 1
    assert looked_at > 200
