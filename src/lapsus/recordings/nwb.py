"""NWB files: reading a session (units and trials, in one file or two), and writing one."""

import io
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lapsus.errors import LapsusError
from lapsus.files import begins, check_all_inside, short, write_bytes
from lapsus.recordings.layout import Layout
from lapsus.recordings.session import Session, SpikeTrains

__all__ = ["is_nwb", "names_of_files", "read_nwb", "write_nwb"]


def names_of_files(source: str | Path, separators: str = "+,") -> list[str]:
    """The names that are put together with these separators. A name itself may have them, as DANDI's do
    ("behavior+ecephys.nwb"), so that they count after the ending alone."""
    return re.split(rf"(?<=\.nwb)[{separators}]", str(source))


def is_nwb(path: str | Path) -> bool:
    """Whether a file begins as HDF5 does."""
    return begins(path, b"\x89HDF\r\n\x1a\n")


def _pynwb() -> Any:
    try:
        import pynwb
    except ImportError:
        raise LapsusError("NWB files need pynwb: pip install 'lapsus[nwb]'.") from None
    return pynwb


def read_nwb(
    path: str | Path, columns: Layout | str | None = None, *, where: str | Sequence[str] | None = None
) -> Session:
    """The session in an NWB file; "TRIALS.nwb+UNITS.nwb" where its units are in another file.

    columns: which columns of the trials hold what: a preset, a TOML file or a `Layout`. where: trials that count, as
    "correct=True".
    """
    pynwb, spikes, units, trials = _pynwb(), None, None, None
    import h5py  # which pynwb brings along

    for part in names_of_files(path, "+"):
        if not part.strip():
            raise LapsusError(f"The name of a file is missing in {str(path)!r}; write TRIALS.nwb+UNITS.nwb.")
        if Path(part).is_dir():
            raise LapsusError(f"{short(part)} is a folder; NWB is read from HDF5 files.")
        if not Path(part).exists():
            raise LapsusError(f"There is no file {short(part)}.")
        if not is_nwb(part):
            raise LapsusError(f"{short(part)} is not an NWB file: it does not begin as HDF5 does.")
        try:
            with h5py.File(part, "r") as inside:
                check_all_inside(inside, short(part), soft_links=True)
            with pynwb.NWBHDF5IO(part, mode="r", load_namespaces=True) as file:
                content = file.read()
                if content.units is not None and spikes is None:
                    spikes, units = _units(content.units, part)
                if content.trials is not None and trials is None:
                    trials = content.trials.to_dataframe().reset_index()
        except LapsusError:
            raise
        except Exception as error:  # pynwb, hdmf and h5py raise whatever a broken file makes them stumble over
            what = str(error.args[-1] if error.args else "")  # hdmf puts what it was building before it
            reason = (what.splitlines() or [type(error).__name__])[0].rstrip(".")
            raise LapsusError(f"{short(part)} cannot be read as NWB: {reason[:200]}.") from error
    if trials is None:
        raise LapsusError(
            f"{short(path)} has no table of trials; name the file that has it as well: TRIALS.nwb+UNITS.nwb."
        )
    if spikes is None:
        raise LapsusError(
            f"{short(path)} has no units with spike times; name the file that has them: TRIALS.nwb+UNITS.nwb."
        )
    return Session.of(spikes, trials, columns, units=units, where=where, name=short(path))


def _units(table: Any, path: str) -> tuple[SpikeTrains | None, pd.DataFrame]:
    """Spike times, which stay in the file, and the columns that have one value per unit."""
    if "spike_times" not in table.colnames:
        return None, pd.DataFrame()
    ends, times = np.asarray(table["spike_times"].data[:], dtype=int), table["spike_times"].target.data
    if np.ndim(times) != 1 or (np.diff(ends, prepend=0) < 0).any() or ends.max(initial=0) > len(times):
        raise LapsusError(f"{short(path)}: the spike times of its units are not one list after the other.")
    spikes = SpikeTrains(partial(_spike_times, path, np.append(0, ends)), range(len(ends)))
    plain: dict[str, Any] = {}
    for name in table.colnames:
        values = table[name]
        if hasattr(values, "data") and not hasattr(values, "target") and np.ndim(values.data) == 1:
            plain[name] = np.asarray(values.data[:])
    if "electrodes" in table.colnames and "location" not in plain and len(table):
        plain["location"] = [_location(table["electrodes"][row]) for row in range(len(table))]
    return spikes, pd.DataFrame(plain, index=range(len(table)))


def _spike_times(path: str, edges: np.ndarray, row: int) -> np.ndarray:
    import h5py

    with h5py.File(path, "r") as file:
        return file["units/spike_times"][edges[row] : edges[row + 1]]


def _location(electrodes: pd.DataFrame) -> str:
    return str(electrodes["location"].iloc[0]) if len(electrodes) and "location" in electrodes else ""


def write_nwb(path: str | Path, spikes: Sequence[np.ndarray], trials: pd.DataFrame, description: str) -> None:
    """A session as NWB: spike times in seconds of each unit, and trials with `start_time`, `stop_time` and any further
    columns. The same session gives the same numbers in the file; NWB gives every object an identifier of its own."""
    pynwb = _pynwb()
    import h5py

    began = datetime(2000, 1, 1, tzinfo=UTC)  # simulated: there is no day on which it was recorded
    file = pynwb.NWBFile(session_description=description, identifier=description, session_start_time=began)
    # Column by column: adding trials or units one by one takes a hundred times as long.
    columns = []
    for name, values in trials.items():
        data = values.tolist() if len(values) else np.empty(0)
        columns.append(pynwb.core.VectorData(name=str(name), description=f"{name} of the trial", data=data))
    file.trials = pynwb.epoch.TimeIntervals(name="trials", description="trials", columns=columns)
    if spikes:
        times = pynwb.core.VectorData(name="spike_times", description="seconds", data=np.concatenate(spikes))
        ends = np.cumsum([len(train) for train in spikes])
        index = pynwb.core.VectorIndex(name="spike_times_index", data=ends, target=times)
        file.units = pynwb.misc.Units(name="units", description="neurons", columns=[times, index])
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as target, pynwb.NWBHDF5IO(file=target, mode="w") as output:
        output.write(file)
    write_bytes(path, buffer.getvalue())
