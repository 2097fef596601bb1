"""Folders of each kind as version 0.2 wrote them open in this one, with the numbers that it got from them."""

import importlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from lapsus import Discovery, evaluate, load
from lapsus.files import read_netcdf
from lapsus.fitting import Fit
from lapsus.sweep import Sweep
from lapsus.training import train
from lapsus.zoo import Run
from lapsus.zoo.shipped import Shipped

FOLDERS = Path(__file__).parent / "folders" / "v0.2"


def test_a_run_has_its_numbers_and_continues(tmp_path, monkeypatch):
    found = evaluate(load(FOLDERS / "run"), 64, 4, engine="reference")
    for name, value in json.loads((FOLDERS / "numbers.json").read_text()).items():
        assert found[name] == pytest.approx(value, rel=1e-3 if name == "median_error" else 1e-5)
    copy = shutil.copytree(FOLDERS / "run", tmp_path / "run")
    assert train(Run(copy), progress=False).reason == "done"
    # Trained on, it is the network that this version shipped.
    monkeypatch.setattr(importlib.import_module("lapsus.zoo.shipped"), "weights_folder", lambda: FOLDERS / "shipped")
    mine, theirs = load(copy).state_dict(), Shipped("tiny").model().state_dict()
    for name, tensor in theirs.items():
        torch.testing.assert_close(mine[name], tensor, rtol=1e-3, atol=1e-4)


def test_a_fit_says_the_same():
    fit = Fit.load(FOLDERS / "fit")
    written = json.loads((FOLDERS / "fit" / "summary.json").read_text())
    assert fit.name == written["model"] == "constant" and len(fit.trials) == 80
    for row, expected in zip(fit.to_dict()["rates"], written["rates"], strict=True):
        assert row == pytest.approx(expected, abs=1e-8)  # sums are rounded otherwise on another processor


def test_activity_is_that_of_its_run():
    stored = read_netcdf(FOLDERS / "activity.nc")
    readout = load(FOLDERS / "run").network.readout.numpy()
    np.testing.assert_allclose(stored["readout"], readout, atol=1e-6)
    assert dict(stored.sizes) == {"trial": 4, "time": 11, "unit": 6, "dim": 2}


def test_a_sweep_is_done():
    states = Sweep(FOLDERS / "sweep").states()
    assert states.done == ["tiny-1", "tiny-2"]


def test_a_discovery_opens_in_all_its_parts():
    found = Discovery(FOLDERS / "discovery")
    assert found.facts["model"] == found.fit.name
    for part in ("plan", "runs", "models", "evaluations", "matches", "mechanisms", "sentences", "checks"):
        assert getattr(found, part), part
    assert found.arrays()


@pytest.mark.slow
def test_the_page_of_a_discovery_can_be_made_again(tmp_path):
    copy = shutil.copytree(FOLDERS / "discovery", tmp_path / "found")
    assert "plane alignment" in Discovery(copy).write_report().read_text()
