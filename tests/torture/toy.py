"""A job that writes one file, rightly or with a mistake, walked through every fault at every step of it.

`python -m torture.toy FOLDER` prints what was lost by each way of writing. In a process without torch, whose hundreds
of forks cost little."""

import json
import os
import sys
from pathlib import Path

from lapsus import files
from lapsus.files.writing import beside, step, sync_folder
from torture.campaign import Tally
from torture.jobs import Job, digest, guarded
from torture.walk import Walked, undisturbed


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


def _writes_past_the_one_place(path: Path, text: str) -> None:
    path.with_name("other").write_text(text)
    files.write_text(path, text)


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

        def go() -> None:
            write(folder / "table", new)
            files.write_text(folder / "said" / "done", "")
            files.remove(folder / "said" / "nothing")  # a step more, at which the power is cut when all is said

        def work() -> None:
            guarded(go)

        return work

    job = Job("toy", begin, command, lambda folder: {"table": digest((folder / "table").read_bytes())})
    (folder / "alone").mkdir()
    reference, tally = undisturbed(job, folder / "alone"), Tally()
    assert Walked(job, folder / "walked", reference, tally).walk(reference.pairs()) == []
    assert sum(tally.tried.values()) == len(reference.pairs())
    return tally


WAYS = (
    files.write_text,
    _writes_in_place,
    _does_not_flush,
    _does_not_flush_the_folder,
    _removes_first,
    _lets_the_error_through,
    _takes_a_short_write_for_a_whole_one,
    _writes_past_the_one_place,
)


def main(folder: Path) -> None:
    found = {}
    for write in WAYS:
        (folder / write.__name__).mkdir()
        try:
            tally = walked(write, folder / write.__name__)
        except AssertionError as error:
            found[write.__name__] = {"refused": str(error)}
        else:
            lost = [kind for (_, kind), why in tally.lost.items() if why]
            found[write.__name__] = {"lost": lost, "losses": tally.losses, "states": sum(tally.states.values())}
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
