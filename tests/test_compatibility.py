"""Folders that earlier versions wrote open in this one, with the numbers that version 0.1 got from them."""

import importlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from lapsus import Discovery, evaluate, load
from lapsus.errors import LapsusError
from lapsus.files import read_netcdf
from lapsus.pipeline.folder import FORMAT
from lapsus.study.mechanism import QUESTIONS
from lapsus.training import train
from lapsus.zoo import Run
from lapsus.zoo.shipped import load_shipped

FOLDERS = Path(__file__).parent / "folders" / "v0.1"
# Printed by version 0.1: evaluate(model, 64, 4, engine="reference").
LOSS, MEDIAN_ERROR = 2.3603782281279564, 0.7807192802429199


def test_a_run_of_0_1_has_its_numbers_and_goes_on(tmp_path):
    found = evaluate(load(FOLDERS / "run"), 64, 4, engine="reference")
    assert found["loss"] == pytest.approx(LOSS, rel=1e-5)
    assert found["median_error"] == pytest.approx(MEDIAN_ERROR, rel=1e-3)
    copy = shutil.copytree(FOLDERS / "run", tmp_path / "run")
    assert train(Run(copy), progress=False).reason == "done" and len(Run(copy).metrics()) == 2


def test_a_network_that_0_1_shipped_is_that_of_its_run(monkeypatch):
    module = importlib.import_module("lapsus.zoo.shipped")
    monkeypatch.setattr(module, "weights_folder", lambda: FOLDERS / "shipped")
    mine, theirs = load(FOLDERS / "run").state_dict(), load_shipped("tiny").state_dict()
    assert all(torch.equal(mine[name], tensor) for name, tensor in theirs.items())


def test_activity_of_0_1_is_that_of_its_run():
    stored = read_netcdf(FOLDERS / "activity.nc")
    readout = load(FOLDERS / "run").network.readout.numpy()
    np.testing.assert_allclose(stored["readout"], readout, atol=1e-6)
    assert dict(stored.sizes) == {"trial": 4, "time": 69, "unit": 6, "dim": 2}


DISCOVERIES = ("v0.2.dev",)


@pytest.mark.parametrize("version", DISCOVERIES)
def test_an_earlier_discovery_opens_in_all_its_parts(version):
    found = Discovery(FOLDERS.parent / version / "discovery")
    assert found.facts["model"] == found.fit.name
    for part in ("plan", "runs", "models", "evaluations", "matches", "mechanisms", "sentences", "checks"):
        assert getattr(found, part), part
    assert found.arrays()


@pytest.mark.slow
@pytest.mark.parametrize("version", DISCOVERIES)
def test_the_page_of_an_earlier_discovery_says_what_it_lacks(version, tmp_path):
    copy = shutil.copytree(FOLDERS.parent / version / "discovery", tmp_path / "found")
    found = Discovery(copy)
    (mechanism,) = found.mechanisms
    assert set(mechanism.left_out) >= set(QUESTIONS) and mechanism.alignment.mean_before > 0
    page = found.write_report().read_text()
    assert "Without an answer: when is a swap decided; what carries it" in page and "earlier version" in page
    # What that version said of swaps is not said any more: its statistics were no good.
    assert "separate rings" not in page and "third component" not in page and "plane alignment" in page


def test_a_discovery_of_the_future_is_refused(tmp_path):
    copy = shutil.copytree(FOLDERS / "discovery", tmp_path / "found")
    stages = json.loads((copy / "stages.json").read_text())
    assert stages["format"] == FORMAT
    (copy / "stages.json").write_text(json.dumps(stages | {"format": "lapsus discovery 99"}))
    with pytest.raises(LapsusError, match=r"lapsus discovery 99.*newer version"):
        Discovery(copy)
