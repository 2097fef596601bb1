"""Layouts of other programs and studies: MemToolbox, van den Berg et al. (2012), R."""

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lapsus.errors import LapsusError
from lapsus.files import read_bytes

__all__ = ["r_table", "unpack_structs", "van_den_berg_colour", "van_den_berg_orientation"]


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


def van_den_berg_colour(variables: dict[str, Any], path: Path) -> pd.DataFrame:
    """recording1, …: c_array [8 positions, trials] (0 empty, else colour 1–180), test (probed position), sub_picked."""
    recordings = sorted(name for name in variables if name.startswith("recording"))
    if not recordings:
        raise LapsusError(f"{path}: holds no recording1, …, which the files of van den Berg et al. (2012) do.")
    subject = path.stem.rstrip("abcdefghij").rstrip("0123456789") or path.stem
    tables = []
    for number, name in enumerate(recordings, 1):
        fields = variables[name].dtype.names or ()
        lacking = [field for field in ("set_size", "c_array", "test", "sub_picked", "RT") if field not in fields]
        if lacking:
            raise LapsusError(
                f"{path}: {name} has no {', '.join(lacking)}, as the files of van den Berg et al. (2012) do."
            )
        recording = {field: np.atleast_1d(variables[name][field].item()) for field in fields}
        colours, test = recording["c_array"].astype(float), recording["test"].astype(int) - 1
        positions, trials = colours.shape
        shown = colours > 0
        cued = np.arange(positions)[:, None] == test[None]
        order = np.argsort(np.where(cued, 0, np.where(shown, 1, 2)), axis=0, kind="stable")
        colours = np.where(colours > 0, 2 * colours, np.nan)
        angles = np.where(shown, np.arange(positions)[:, None] * 360 / positions, np.nan)
        table: dict[str, Any] = {
            "subject": subject,
            "set_size": recording["set_size"],
            "response": 2.0 * recording["sub_picked"],
        }
        for values, first, others in (
            (colours, "target", "non_target_"),
            (angles, "target_probe", "non_target_probe_"),
        ):
            values = np.take_along_axis(values, order, axis=0)
            table |= {first if i == 0 else f"{others}{i}": values[i] for i in range(positions)}
        table |= {"session": path.stem, "recording": number, "rt": recording["RT"]}
        tables.append(pd.DataFrame(table, index=range(trials)))
    return pd.concat(tables, ignore_index=True)


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
            found = read(io.BytesIO(read_bytes(path)))
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
