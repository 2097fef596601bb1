"""The one way in which anything is written: whole or not at all, through no link, over nothing but ordinary files."""

import dataclasses
import errno
import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from lapsus import files
from lapsus.errors import LapsusError
from lapsus.files import writing


@pytest.fixture
def watched(monkeypatch):
    """Install a watcher of the steps for the time of a test."""
    return lambda watcher: monkeypatch.setattr(writing, "watcher", watcher)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("at", range(5))
def test_an_error_at_any_step_keeps_the_old_file(tmp_path, watched, code, at):
    path = tmp_path / "file"
    files.write_text(path, "old")
    steps = []

    def fail(step, where, detail):
        steps.append(step)
        if len(steps) == at + 1:
            raise OSError(code, os.strerror(code))

    watched(fail)
    with pytest.raises(LapsusError, match=f"Cannot write .*file: {os.strerror(code)}"):
        files.write_text(path, "new")
    assert steps == ["create", "write", "sync", "rename", "sync folder"][: at + 1]
    # After the rename the new file is there; what failed is only the promise that it lasts.
    assert path.read_text() == ("new" if at == 4 else "old") and names(tmp_path) == ["file"]


def test_short_writes_are_gone_on_with(tmp_path, watched):
    watched(lambda step, path, detail: 3 if step == "write" else None)
    files.write_bytes(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_a_full_disk_is_a_sentence():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this machine")
    handle = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OSError, match="No space left"):
        writing._put(handle, Path("/dev/full"), b"x" * 10_000)
    os.close(handle)


def test_no_link_is_followed_and_only_ordinary_files_are_replaced(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "link").symlink_to(victim)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, what in (("link", "a link"), ("folder", "a folder"), ("pipe", "not an ordinary file")):
        with pytest.raises(LapsusError, match=what):
            files.write_text(tmp_path / name, "theirs")
        with pytest.raises(LapsusError, match=what):
            files.append_line(tmp_path / name, "theirs")
    assert victim.read_text() == "mine"
    (tmp_path / "away").symlink_to(tmp_path / "folder")
    with pytest.raises(LapsusError, match="is a link"):
        files.subfolder(tmp_path, "away", "deep")


def test_lines_after_a_torn_one_stand_on_their_own(tmp_path):
    (tmp_path / "lines").write_bytes(b'{"a": 1}\n{"a": ')
    files.append_line(tmp_path / "lines", "last")
    assert (tmp_path / "lines").read_bytes() == b'{"a": 1}\n{"a": \nlast\n'


def test_a_place_for_a_file_is_checked_before_there_is_one(tmp_path, monkeypatch):
    def asked(name):
        return files.check_file(tmp_path / name, "of ours", lambda path: files.begins(path, b"ours:"))

    for name, text in (("mine", "mine"), ("ours", "ours: 1"), ("torn", "ou"), ("empty", "")):
        (tmp_path / name).write_text(text)
    (tmp_path / "link").symlink_to(tmp_path / "ours")
    before = names(tmp_path)
    assert [asked(name) for name in ("ours", "torn", "empty", "new", "new/er/file")] == [True, True, True, False, False]
    for name, why in (
        ("mine", "is not of ours"),
        ("link", "is a link"),
        (".", "is a folder"),
        ("mine/file", "is a file, not a folder"),
        ("x" * 300, "cannot be a file here"),
        ("a\0b", "cannot be a file here"),
    ):
        with pytest.raises(LapsusError, match=why):
            asked(name)
    monkeypatch.setattr("os.access", lambda _, mode: not mode & os.W_OK)
    with pytest.raises(LapsusError, match="no permission"):
        asked("new")
    assert names(tmp_path) == before


def _die_while_writing(path):
    writing.watcher = lambda step, where, detail: os.kill(os.getpid(), signal.SIGKILL) if step == "rename" else None
    files.write_text(path, "new")


def test_what_the_dead_left_is_swept_and_what_the_living_write_is_not(tmp_path):
    process = multiprocessing.get_context("fork").Process(target=_die_while_writing, args=(tmp_path / "file",))
    process.start()
    process.join()
    assert len(names(tmp_path)) == 1
    mine = writing.beside(tmp_path / "file")
    mine.write_text("being written")
    (tmp_path / "user.partial").write_text("not ours")
    files.clean_up(tmp_path)
    assert names(tmp_path) == sorted([mine.name, "user.partial"])


def test_who_writes_a_file_again_removes_what_dead_writers_left_of_it(tmp_path):
    process = multiprocessing.get_context("fork").Process(target=_die_while_writing, args=(tmp_path / "file",))
    process.start()
    process.join()
    assert len(names(tmp_path)) == 1
    files.write_text(tmp_path / "another", "")
    assert len(names(tmp_path)) == 2
    files.write_text(tmp_path / "file", "")
    assert names(tmp_path) == ["another", "file"]


def test_names_that_are_not_utf_8_are_written(tmp_path):
    name = os.fsdecode(b"a-\xff" + b"x" * 200)
    process = multiprocessing.get_context("fork").Process(target=_die_while_writing, args=(tmp_path / name,))
    process.start()
    process.join()
    assert len(names(tmp_path)) == 1
    files.write_text(tmp_path / name, "whole")
    assert names(tmp_path) == [name]
    with files.own_files(tmp_path / os.fsdecode(b"f-\xff")) as folder:
        files.write_text(folder / "a", "whole")
    assert sorted(os.listdir(os.fsencode(tmp_path))) == [os.fsencode(name), b"f-\xff"]


def test_leftovers_do_not_occupy_a_folder(tmp_path):
    for name in ("config.toml.partial", "stages.json.partial", ".lock"):
        (tmp_path / name).write_text("")
    assert files.check_place(tmp_path, "run") is False and files.check_place(tmp_path, "discovery") is False
    (tmp_path / "config.toml").write_text("")
    assert files.check_place(tmp_path, "run") is True
    with pytest.raises(LapsusError, match="holds a run and is not a discovery"):
        files.check_place(tmp_path, "discovery")
    assert files.holds(tmp_path, "run") and not files.holds(tmp_path, "sweep")
    assert not files.holds("no\0folder", "run") and not files.holds("x" * 5000, "run")


def _hold(folder, held, leave):
    with files.locked(folder, "is trained"):
        held.set()
        leave.wait()


def test_a_lock_does_not_outlive_its_owner(tmp_path):
    context = multiprocessing.get_context("fork")
    held, leave = context.Event(), context.Event()
    owner = context.Process(target=_hold, args=(tmp_path, held, leave))
    owner.start()
    held.wait()
    with (
        pytest.raises(LapsusError, match="is trained by another process just now"),
        files.locked(tmp_path, "is trained"),
    ):
        pass
    owner.kill()
    owner.join()
    with files.locked(tmp_path, "is trained"):
        assert names(tmp_path) == [".lock"]


def _take_turns(folder, count):
    done = 0
    while done < count:
        try:
            with files.locked(folder):
                number = int((folder / "number").read_text())
                time.sleep(0.0005)
                (folder / "number").write_text(str(number + 1))
                done += 1
        except LapsusError:
            time.sleep(0.0005)


def test_only_one_process_at_a_time_has_the_lock(tmp_path):
    (tmp_path / "number").write_text("0")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_take_turns, args=(tmp_path, 20)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (tmp_path / "number").read_text() == "80"


@dataclasses.dataclass
class Inner:
    values: np.ndarray
    note: str | None = None


@dataclasses.dataclass
class Outer:
    number: float
    parts: list[Inner]
    table: dict[str, tuple[int, ...]]
    place: Path = Path("here")


def test_dataclasses_go_to_json_and_back(tmp_path):
    value = Outer(float("nan"), [Inner(np.array([1.0, np.inf])), Inner(np.arange(2), "two")], {"a": (1, 2)})
    files.write_json(tmp_path / "x.json", value)
    assert "NaN" not in (tmp_path / "x.json").read_text()
    back = files.read_json(tmp_path / "x.json", Outer)
    assert np.isnan(back.number) and back.table == {"a": (1, 2)} and back.place == Path("here")
    assert back.parts[0].values[0] == 1 and np.isnan(back.parts[0].values[1]) and back.parts[1].note == "two"
    assert np.isnan(files.from_plain(float, files.to_plain(np.float32("nan"))))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        "null",
        '"text"',
        "{",
        '{"a": ',
        '{"number": "x", "parts": [], "table": {}}',
        "[" * 100_000,
        '{"number": 1, "parts": [3], "table": {}}',
        '{"number": 1, "parts": [], "table": {}, "more": 1}',
        "\xff",
    ],
)
def test_damaged_json_is_a_sentence(tmp_path, text):
    (tmp_path / "x.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(files.Damaged, match=r"x\.json is damaged"):
        files.read_json(tmp_path / "x.json", Outer)


def test_a_netcdf_bomb_is_refused_unread(tmp_path):
    import h5netcdf

    with h5netcdf.File(tmp_path / "bomb.nc", "w") as file:
        file.dimensions = {"a": 10**6, "b": 10**6}
        file.create_variable("x", ("a", "b"), "f4", chunks=(1000, 1000), compression="gzip")
    with pytest.raises(LapsusError, match="would unpack"):
        files.read_netcdf(tmp_path / "bomb.nc")


def test_names_of_any_length_and_letters_make_file_names():
    assert files.file_name("s 1/a") == "s-1-a" and files.file_name("..") == "-"
    long = [files.file_name("é" * 400 + str(k)) for k in range(2)]
    assert long[0] != long[1] and all(len(name.encode()) <= 80 for name in long)
