"""From the names of NWB files to one recording."""

from collections.abc import Sequence
from pathlib import Path

import xarray as xr

from lapsus.errors import LapsusError
from lapsus.files import short
from lapsus.recordings.counts import count_spikes, pseudo_population
from lapsus.recordings.layout import Layout
from lapsus.recordings.nwb import names_of_files, read_nwb

__all__ = ["read_recording", "read_sessions"]


def read_sessions(
    source: str | Path,
    *,
    bin: str | float = 0.05,
    align: str = "cue",
    smooth: str | float = 0.0,
    columns: Layout | str | None = None,
    where: Sequence[str] = (),
    units: Sequence[str] = (),
    min_rate: float = 0.0,
    min_presence: float = 0.0,
) -> list[xr.Dataset]:
    """Spike counts of each session named in `source`: NWB files with commas between sessions, and "+" between two files
    of one session. Options: see `read_nwb`, `Session.select` and `count_spikes`."""
    found, names = [], names_of_files(source, ",")
    for k, name in enumerate(names):
        if name in names[:k]:
            raise LapsusError(f"The session {short(name)} is named twice; sessions are pooled as independent ones.")
        session = read_nwb(name, columns, where=where).select(units, min_rate, min_presence)
        found.append(count_spikes(session, bin, align=align, smooth=smooth))
    return found


def read_recording(source: str | Path, *, seed: int = 0, **options: object) -> xr.Dataset:
    """A recording in the activity form: one session, or the pseudo-population of several (`read_sessions`)."""
    return pseudo_population(read_sessions(source, **options), seed)  # type: ignore[arg-type]
