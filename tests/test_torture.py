"""The campaign (docs/reliability.md), short: every kind of fault, every reader, a few times. And that it can lose: each
mistake in writing that it is there to find is made, and found."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from torture.campaign import Tally
from torture.jobs import Job, digest, guarded
from torture.walk import Walked, undisturbed

from lapsus import files
from lapsus.files.writing import beside, step, sync_folder


def _writes_in_place(path: Path, text: str) -> None:
    step("create", path)
    with open(path, "w") as file:
        for part in (text[:9], text[9:]):
            step("write", path, part.encode())
            file.write(part)
            file.flush()
        step("sync", path)
    sync_folder(path.parent)


def _does_not_flush(path: Path, text: str) -> None:
    temporary = beside(path)
    step("create", temporary)
    with open(temporary, "w") as file:
        step("write", temporary, text.encode())
        file.write(text)
    step("rename", temporary, path)
    os.replace(temporary, path)
    sync_folder(path.parent)


def _does_not_flush_the_folder(path: Path, text: str) -> None:
    temporary = beside(path)
    step("create", temporary)
    with open(temporary, "w") as file:
        step("write", temporary, text.encode())
        file.write(text)
        file.flush()
        step("sync", temporary)
    step("rename", temporary, path)
    os.replace(temporary, path)


def _removes_first(path: Path, text: str) -> None:
    files.remove(path)
    files.write_text(path, text)


def _lets_the_error_through(path: Path, text: str) -> None:
    step("create", path)
    files.write_text(path, text)


def _takes_a_short_write_for_a_whole_one(path: Path, text: str) -> None:
    temporary = beside(path)
    step("create", temporary)
    with open(temporary, "w") as file:
        most = step("write", temporary, text.encode())
        file.write(text[:most])
        file.flush()
        step("sync", temporary)
    step("rename", temporary, path)
    os.replace(temporary, path)
    sync_folder(path.parent)


def walked(write, folder: Path) -> Tally:
    """Every fault at every step of a job that writes its table anew and then says in another folder that it did."""
    old, new = "what was there before", "what is there in the end"

    def begin(folder: Path) -> None:
        (folder / "said").mkdir()
        (folder / "table").write_text(old)

    def command(folder: Path):
        assert (folder / "table").read_text() in (old, new), "what was there before is gone"
        if (folder / "said" / "done").exists():
            return None

        def say(what: str) -> None:
            files.write_text(folder / "said" / what, "")

        def work() -> None:
            guarded(lambda: (write(folder / "table", new), say("done"), say("all")))

        return work

    job = Job("toy", begin, command, lambda folder: {"table": digest((folder / "table").read_bytes())})
    (folder / "alone").mkdir()
    reference, tally = undisturbed(job, folder / "alone"), Tally()
    assert Walked(job, folder / "walked", reference, tally).walk(reference.pairs()) == []
    assert sum(tally.tried.values()) == len(reference.pairs())
    return tally


MISTAKES = {
    _writes_in_place: {"SIGKILL", "power cut"},
    _does_not_flush: {"power cut"},
    _does_not_flush_the_folder: {"power cut"},
    _removes_first: {"SIGKILL", "ENOSPC"},
    _lets_the_error_through: {"EIO", "EACCES", "full disk"},
    _takes_a_short_write_for_a_whole_one: {"short write"},
}


def test_writing_as_it_is_loses_nothing(tmp_path):
    tally = walked(files.write_text, tmp_path)
    assert tally.losses == 0 and tally.states > 3, tally.table()


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_each_mistake_is_found(tmp_path, mistake):
    lost = defaultdict(int)
    for (_, kind), why in walked(mistake, tmp_path).lost.items():
        lost[kind] += len(why)
    assert MISTAKES[mistake] <= {kind for kind, number in lost.items() if number}, dict(lost)


def test_what_is_written_past_the_one_place_is_found(tmp_path):
    with pytest.raises(AssertionError, match=r"past lapsus\.files"):
        walked(lambda path, text: path.with_name("other").write_text(text) and files.write_text(path, text), tmp_path)


@pytest.mark.slow
def test_a_short_campaign_loses_nothing():
    """In a process of its own, which forks before any thread is there."""
    folder = Path(__file__).parent
    script = (
        "from torture import campaign, hostile\n"
        "hostile.BATCH = 6\n"
        "least = campaign.Least(faults=12, kills=2, tables=20, inputs=1)\n"
        "found = campaign.campaign(0, 1, ('train', 'simulate --force', 'reproduce'), least)\n"
        "print(found.table())\n"
        "assert not found.losses and sum(found.tried.values()) > 100\n"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1", "LAPSUS_THREADS": "1"}
    paths = [str(folder), *filter(None, [environment.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
