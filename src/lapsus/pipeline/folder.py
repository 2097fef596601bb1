"""The folder of a discovery: which stages are done, and whose it is.

Every stage writes its own files and is entered in discovery's stages.json last, so that a stage either is done or is
done again; nothing that is done is repeated, and a folder that holds anything else is never touched.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from lapsus import __version__
from lapsus.errors import LapsusError
from lapsus.files import (
    Damaged,
    check_place,
    check_version,
    make_folder,
    read_bytes,
    read_json,
    short,
    sweep,
    write_json,
)
from lapsus.trials import Trials

__all__ = ["STAGES", "Folder", "fingerprint"]

FORMAT = "lapsus discovery 1"
# name → what the user reads while it runs.
STAGES = {
    "trials": "reading the trials",
    "fit": "fitting and comparing behaviour models",
    "target": "choosing the target and where to start",
    "train": "training",
    "evaluate": "comparing the network with the fit and the data",
    "analyse": "looking for the mechanism",
    "report": "writing the report",
}


# First part of the name of a file → the stage that writes it.
FILES = {
    "trials.csv": "trials",
    "notes.json": "trials",
    "fit": "fit",
    "target.json": "target",
    "evaluation.json": "evaluate",
    "analysis.json": "analyse",
    "analysis": "analyse",
}
_SETTINGS = {"source", "example", "set_size", "cueing", "minutes", "objectives", "networks", "start_from", "seed"}


def fingerprint(trials: Trials, settings: dict) -> str:
    """Of the trials that are used and all settings: the same in a resumed discovery."""
    digest = hashlib.blake2b(digest_size=12)
    for values in (trials.response, trials.report, trials.probe):
        digest.update(b"none" if values is None else np.ascontiguousarray(values).tobytes())
    digest.update("\0".join(map(str, trials.subject)).encode("utf-8", "replace"))
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    return digest.hexdigest()


class Folder:
    """A discovery's folder: `Folder.open` makes it or goes on with it."""

    def __init__(self, path: Path, table: dict):
        self.path, self._table = path, table

    @classmethod
    def open(cls, path: str | Path, identity: str, settings: dict) -> "Folder":
        """The folder of a discovery of these trials and settings (`identity`); one of others is an error."""
        path = Path(path)
        if check_place(path, "discovery"):
            table = cls.read(path)
            if table is None:
                raise LapsusError(f"{short(path)} is there already and is not a discovery; name another folder.")
            if table["identity"] != identity:
                changed = [k for k, v in settings.items() if str(table["settings"].get(k)) != str(v)]
                what = f"other settings ({', '.join(changed)})" if changed else "other trials"
                raise LapsusError(f"{short(path)} holds a discovery with {what}; name another folder.")
            sweep(path)
            return cls(path, table)
        make_folder(path)
        sweep(path)
        table = {"format": FORMAT, "lapsus": __version__, "identity": identity, "settings": settings}
        folder = cls(path, table | {"done": {}, "files": {}})
        folder._write()
        return folder

    @staticmethod
    def read(path: Path) -> dict | None:
        """stages.json of a discovery, or None if the folder is not one; Damaged if it is one that cannot be read."""
        file = Path(path) / "stages.json"
        if not file.is_file():
            return None
        lost = (
            f"`lapsus discover` begins anew in another folder; networks that it trained are in {short(path)}/networks."
        )
        try:
            table = read_json(file)
        except Damaged as error:
            raise Damaged(f"{error} {lost}") from error
        if str(table.get("format", "")).startswith("lapsus discovery"):
            check_version(table.get("lapsus"), file)
        if table.get("format") != FORMAT:
            if str(table.get("format", "")).startswith(FORMAT[:-1]):
                raise LapsusError(
                    f"{short(file)} is of the form “{table['format'][:40]}”: a newer version of lapsus opens it."
                )
            return None
        right = (
            isinstance(table.get("identity"), str)
            and isinstance(table.get("settings"), dict)
            and set(table["settings"]) >= _SETTINGS
            and isinstance(table.get("done"), dict)
            and all(type(seconds) in (int, float) for seconds in table["done"].values())
            and isinstance(table.setdefault("files", {}), dict)
        )
        if not right:
            raise Damaged(f"{short(file)} is damaged: it does not say what a discovery's does. {lost}")
        return table

    def _write(self) -> None:
        write_json(self.path / "stages.json", self._table)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @property
    def settings(self) -> dict:
        """What the discovery was asked for."""
        return self._table["settings"]

    @property
    def done(self) -> dict[str, float]:
        """Seconds that each finished stage took."""
        return self._table["done"]

    def finish(self, stage: str, seconds: float, names: Iterable[str] = ()) -> None:
        """Enter a stage as done, with the hashes of the files that later stages read."""
        self._table["files"] |= {name: self._hash(name) for name in names}
        self.done[stage] = round(seconds, 2)
        self._write()

    def _hash(self, name: str) -> str:
        return hashlib.sha256(read_bytes(self.path / name)).hexdigest()

    def check(self, name: str) -> Path:
        """The path of a file of a stage that is done, after a look at its hash (version 0.1 wrote none)."""
        known = self._table["files"].get(name)
        if known is not None and self._hash(name) != known:
            raise Damaged(f"{short(self.path / name)} is damaged: its contents do not match its hash.")
        return self.path / name

    def mend(self) -> list[str]:
        """Stages to be done again, because a file of theirs is gone or damaged; entered as not done, with all that
        comes after them."""
        broken = set()
        for name in self._table["files"]:
            try:
                self.check(name)
            except LapsusError:
                broken.add(FILES.get(name.split("/")[0], "trials"))
        order = list(STAGES)
        first = min((order.index(stage) for stage in broken), default=len(order))
        return self.undo([stage for stage in order[first:] if stage != "train"])

    def undo(self, stages: Iterable[str]) -> list[str]:
        """Enter stages as not done, on disk too; returns those that were."""
        again = [stage for stage in stages if stage in self.done]
        for stage in again:
            del self.done[stage]
        if again:
            self._write()
        return again

    def json(self, name: str, kind: type = dict) -> Any:
        """A JSON file of the folder."""
        return read_json(self.check(name), kind)
