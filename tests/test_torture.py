"""The campaign (docs/reliability.md), short: every kind of fault, every reader, a few times. And that it can lose: each
mistake in writing that it is there to find is made, and found."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from torture.campaign import in_memory
from torture.faults import Disk

FOLDER = Path(__file__).parent


def python(*arguments: object) -> subprocess.CompletedProcess:
    """In a process of its own, which forks before any thread is there."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "LAPSUS_THREADS": "1"}
    paths = [str(FOLDER), *filter(None, [environment.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=1800,
    )


@pytest.fixture(scope="module")
def walked():
    """Way of writing → what was lost at every fault at every step of it."""
    with tempfile.TemporaryDirectory(dir=in_memory()) as folder:
        done = python("-m", "torture.toy", folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


MISTAKES = {
    "_writes_in_place": {"SIGKILL", "power cut"},
    "_does_not_flush": {"power cut"},
    "_does_not_flush_the_folder": {"power cut"},
    "_removes_first": {"SIGKILL", "ENOSPC"},
    "_lets_the_error_through": {"EIO", "EACCES", "full disk"},
    "_takes_a_short_write_for_a_whole_one": {"short write"},
}


@pytest.mark.slow
def test_writing_as_it_is_loses_nothing(walked):
    assert walked["write_text"]["losses"] == 0 and walked["write_text"]["states"] > 3, walked["write_text"]


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_found(walked, mistake):
    assert MISTAKES[mistake] <= set(walked[mistake]["lost"]), walked[mistake]


@pytest.mark.slow
def test_what_is_written_past_the_one_place_is_found(walked):
    assert "past lapsus.files" in walked["_writes_past_the_one_place"]["refused"]


def test_a_file_that_was_on_disk_is_there_again_when_its_new_name_was_not_flushed(tmp_path):
    disk, old, new = Disk(), tmp_path / "old", tmp_path / "new"
    old.write_text("what was there")
    disk.remember("rename", old, new)
    old.rename(new)
    disk.cut(0)
    assert old.read_text() == "what was there" and not new.exists()


@pytest.mark.slow
def test_a_short_campaign_loses_nothing():
    script = (
        "from torture import campaign, hostile\n"
        "hostile.BATCH = 6\n"
        "least = campaign.Least(faults=12, signals=3, tables=20, inputs=1)\n"
        "found = campaign.campaign(0, 1, ('train', 'simulate --force', 'sweep collect'), least)\n"
        "print(found.table())\n"
        "assert not found.losses and sum(found.tried.values()) > 100\n"
    )
    done = python("-c", script)
    assert done.returncode == 0, done.stdout + done.stderr
