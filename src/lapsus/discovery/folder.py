"""The folder of a discovery: which stages are done, and whose it is.

Every stage writes its own files and is entered in discovery's stages.json last, so that a stage either is done or is
done again; nothing that is done is repeated, and a folder that holds anything else is never touched.
"""

import hashlib
import json
from pathlib import Path

import numpy as np

from lapsus.errors import LapsusError
from lapsus.files import check_place, make_folder, short, sweep, write_json

__all__ = ["STAGES", "Folder", "fingerprint"]

FORMAT = "lapsus discovery 1"
# name → what the user reads while it runs, and its usual share of the time that is not training.
STAGES = {
    "trials": "reading the trials",
    "fit": "fitting and comparing behaviour models",
    "target": "choosing the target and where to start",
    "train": "training",
    "evaluate": "comparing the network with the fit and the data",
    "analyse": "looking for the mechanism",
    "report": "writing the report",
}


def fingerprint(trials, settings: dict) -> str:
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
        path = Path(path)
        if check_place(path, "discovery"):
            table = cls.read(path)
            if table is None:
                raise LapsusError(f"{short(path)} is there already and is not a discovery; -o names another folder.")
            if table["identity"] != identity:
                changed = [k for k, v in settings.items() if str(table["settings"].get(k)) != str(v)]
                what = f"other settings ({', '.join(changed)})" if changed else "other trials"
                raise LapsusError(f"{short(path)} holds a discovery with {what}; -o names another folder.")
            sweep(path)
            return cls(path, table)
        make_folder(path)
        sweep(path)
        folder = cls(path, {"format": FORMAT, "identity": identity, "settings": settings, "done": {}})
        folder._write()
        return folder

    @staticmethod
    def read(path: Path) -> dict | None:
        """stages.json of a discovery, or None if the folder is not one."""
        try:
            table = json.loads((Path(path) / "stages.json").read_text())
        except (OSError, ValueError):
            return None
        return table if isinstance(table, dict) and table.get("format") == FORMAT else None

    def _write(self) -> None:
        write_json(self.path / "stages.json", self._table)

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    @property
    def settings(self) -> dict:
        return self._table["settings"]

    @property
    def done(self) -> dict[str, float]:
        """Seconds that each finished stage took."""
        return self._table["done"]

    def finish(self, stage: str, seconds: float) -> None:
        self.done[stage] = round(seconds, 2)
        self._write()

    def json(self, name: str) -> dict:
        return json.loads((self.path / name).read_text())
