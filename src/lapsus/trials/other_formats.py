"""Layouts of other programs and studies: MemToolbox, van den Berg's orientation files, BIDS, R."""

import bz2
import gzip
import io
import lzma
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lapsus.errors import LapsusError
from lapsus.files import read_bytes, read_json

__all__ = ["bids_facts", "bids_files", "r_table", "unpack_structs", "van_den_berg_orientation"]


def unpack_structs(variables: dict) -> dict:
    """MATLAB variables with a struct of columns (MemToolbox: data.errors, data.distractors, data.n) laid open.

    Also where the fields were saved by themselves. Matrices with one column a trial, as MemToolbox has them, are
    turned; n is the set size.
    """
    structs = [v for v in variables.values() if getattr(getattr(v, "dtype", None), "names", None)]
    if len(structs) == 1 and "errors" in structs[0].dtype.names:
        variables = {name: np.asarray(structs[0][name].item()) for name in structs[0].dtype.names}
    elif "errors" not in variables:
        return variables
    count = np.size(variables["errors"])
    found = {}
    for name, values in variables.items():
        values = np.asarray(values)
        if values.ndim == 2 and values.shape[1] == count and values.shape[0] != count:
            values = values.T
        if values.dtype.kind in "fiub" and values.ndim >= 1:
            found["set_size" if name == "n" else name] = values
    return found


def van_den_berg_orientation(variables: dict, path: Path) -> pd.DataFrame:
    """block_one, …: gabor_angles [9, trials] (items from the top, −1 beyond), cued_gabor [3, trials] (number of the
    cued item first), gabor_locations [8, trials] (positions 1–8 on a ring), subject_responses; orientations in
    degrees."""
    blocks = [name for name in variables if name.startswith("block_")]
    needed = ("set_size", "subject_responses", "gabor_angles", "cued_gabor", "gabor_locations")
    subject = path.stem.rstrip("abcdefghij").rstrip("0123456789") or path.stem
    tables = []
    for number, name in enumerate(blocks, 1):
        fields = variables[name].dtype.names or ()
        lacking = [field for field in needed if field not in fields]
        if lacking:
            raise LapsusError(
                f"{path}: {name} has no {', '.join(lacking)}, as the orientation files of van den Berg et al. (2012)"
                " do."
            )
        block = {field: np.atleast_1d(variables[name][field].item()) for field in needed}
        size = block["set_size"].astype(int)
        places = block["gabor_locations"].astype(float)
        count = len(places)
        angles = block["gabor_angles"].astype(float)[:count]
        shown = np.arange(count)[:, None] < size
        cued = np.arange(count)[:, None] == block["cued_gabor"][0].astype(int) - 1
        order = np.argsort(np.where(cued, 0, np.where(shown, 1, 2)), axis=0, kind="stable")
        table: dict = {"subject": subject, "set_size": size, "response": block["subject_responses"]}
        for values, first, others in (
            (np.where(shown, angles, np.nan), "target", "non_target_"),
            (np.where(shown, (places - 1) * 360 / count, np.nan), "target_probe", "non_target_probe_"),
        ):
            sorted_ = np.take_along_axis(values, order, axis=0)
            table |= {first if i == 0 else f"{others}{i}": sorted_[i] for i in range(count)}
        tables.append(pd.DataFrame(table | {"session": path.stem, "block": number}, index=range(len(size))))
    return pd.concat(tables, ignore_index=True)


def bids_files(folder: Path) -> list[Path]:
    """The behavioural tables of a BIDS data set."""
    return sorted(folder.rglob("*_beh.tsv"))


def bids_facts(path: Path) -> dict[str, str]:
    """What a BIDS file's name and its JSON say: subject, session, unit and feature_name, where they do.

    The JSON beside the file counts, or one higher up whose name is contained in the file's (BIDS' inheritance)."""
    facts = {key: found[1] for key, found in _entities(path).items() if found}
    words = set(path.stem.split("_"))
    for place in (path.parent, *path.parent.parents[:3]):
        for side in sorted(place.glob("*_beh.json"), key=lambda p: -len(p.stem)):
            if set(side.stem.split("_")) <= words:
                return facts | _described(side)
    return facts


def _entities(path: Path) -> dict[str, re.Match[str] | None]:
    return {
        "subject": re.search(r"(?:^|_)sub-([A-Za-z0-9]+)", path.stem),
        "session": re.search(r"(?:^|_)ses-([A-Za-z0-9]+)", path.stem),
    }


def _described(side: Path) -> dict[str, str]:
    try:
        columns = read_json(side, Any, most=1 << 22)
    except LapsusError as error:
        raise LapsusError(f"{side}: is not a JSON file that can be read.") from error
    found: dict[str, str] = {}
    for name in ("target", "response"):
        about = columns.get(name) if isinstance(columns, dict) else None
        if not isinstance(about, dict):
            continue
        unit = str(about.get("Units", "")).lower()
        if "unit" not in found and unit.startswith(("deg", "°")):
            found["unit"] = "degrees_180" if "180" in unit or "orient" in unit else "degrees"
        if "unit" not in found and unit.startswith("rad"):
            found["unit"] = "radians"
        if "feature_name" not in found and about.get("LongName"):
            found["feature_name"] = str(about["LongName"])
    return found


# How R packs what it saves; and how many numbers the sequences in a file may have that it describes by their ends.
_PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_MOST_IN_SEQUENCES = 5 * 10**7


def _unpacked(data: bytes) -> bytes:
    """R data as R would unpack it, unless that is very much more than the file holds."""
    opened = next((opened for magic, opened in _PACKED.items() if data.startswith(magic)), None)
    if opened is None:
        return data
    most = max(1 << 24, 50 * len(data))
    with opened(io.BytesIO(data)) as stream:
        inner = stream.read(most + 1)
    if len(inner) > most or inner.startswith(tuple(_PACKED)):
        raise LapsusError(f"its {len(data):,} bytes unpack to more than {most:,}, or to something packed again")
    return inner


def _sequences(rdata: Any) -> dict:
    """How sequences are made of their ends, with a limit on all of a file."""
    made, left = dict(rdata.parser.DEFAULT_ALTREP_MAP), _MOST_IN_SEQUENCES

    def limited(name: bytes) -> Callable[[Any], Any]:
        def make(state: Any) -> Any:
            nonlocal left
            left -= abs(int(state.value[0]))
            if left < 0:
                raise LapsusError(f"it has sequences of more than {_MOST_IN_SEQUENCES:,} numbers")
            return rdata.parser.DEFAULT_ALTREP_MAP[name](state)

        return make

    return made | {name: limited(name) for name in (b"compact_intseq", b"compact_realseq")}


def r_table(path: Path) -> pd.DataFrame:
    """The data frame in an .rds, .rda or .RData file."""
    try:
        import rdata
    except ImportError as error:
        raise LapsusError(f"{path}: reading R data needs the package rdata (install lapsus[r]).") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes that it does not know: tibbles are data frames all the same
            read = rdata.read_rds if path.suffix.lower() == ".rds" else rdata.read_rda
            found = read(io.BytesIO(_unpacked(read_bytes(path))), altrep_constructor_dict=_sequences(rdata))
    except Exception as error:
        raise LapsusError(f"{path}: cannot be read as R data: {str(error)[:300]}.") from error
    tables = {"": found} if isinstance(found, pd.DataFrame) else {}
    if isinstance(found, dict):
        tables = {name: value for name, value in found.items() if isinstance(value, pd.DataFrame)}
    if len(tables) != 1:
        there = f"has the data frames {', '.join(tables)}" if tables else "has no data frame"
        raise LapsusError(f"{path}: {there}; save one with saveRDS(table, 'trials.rds').")
    table = next(iter(tables.values())).reset_index(drop=True)
    for name in table:
        if isinstance(table[name].dtype, pd.CategoricalDtype):  # R's factors
            table[name] = table[name].astype(object)
    return table
