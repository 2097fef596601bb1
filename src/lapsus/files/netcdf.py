"""netCDF files of ours and of others, which may be damaged or crafted."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from lapsus.errors import LapsusError
from lapsus.files.reading import Damaged, begins, check_format, readable, reason_of, short

if TYPE_CHECKING:
    import h5py
    import xarray as xr


def is_netcdf(path: str | Path) -> bool:
    """Whether a file begins as those that `write_netcdf` writes; it may still be damaged."""
    return begins(path, b"\x89HDF\r\n\x1a\n")


def read_netcdf(path: str | Path) -> "xr.Dataset":
    """A netCDF file, all of it in memory. One that keeps data in other files, or that unpacks to very much more than it
    holds, is refused unread."""
    import h5py
    import xarray as xr

    with readable(path):
        size = os.path.getsize(path)
    try:
        with h5py.File(path, "r") as file:
            check_all_inside(file, short(path))
        with xr.open_dataset(path, engine="h5netcdf") as dataset:
            if dataset.nbytes > max(1 << 26, 100 * size):
                raise LapsusError(
                    f"{short(path)} would unpack its {size:,} bytes to {dataset.nbytes:,}; no file of lapsus does."
                )
            if "lapsus" in dataset.attrs:  # else it is a recording that somebody else wrote
                check_format(int(dataset.attrs["format"]), 1, path)
            return dataset.load()
    except LapsusError:
        raise
    except Exception as error:  # the libraries below raise whatever a broken file makes them stumble over
        raise Damaged(f"{short(path)} cannot be read as netCDF: {reason_of(error)}.") from error


def check_all_inside(group: "h5py.Group", path: str, soft_links: bool = False, seen: set[int] | None = None) -> None:
    """HDF5 can name other files as the place of data (links, external storage, virtual datasets): whoever made the
    file would choose which file of this machine is read. Soft links stay within a file; NWB has them."""
    import h5py

    seen = set() if seen is None else seen
    for name in group:
        link = group.get(name, getlink=True)
        if soft_links and isinstance(link, h5py.SoftLink):
            continue
        linked = not isinstance(link, h5py.HardLink)
        item = None if linked else group[name]
        if linked or (isinstance(item, h5py.Dataset) and (item.external or item.is_virtual)):
            raise LapsusError(f"{path}: {short(name, 80)} is kept outside of this file, and is not read.")
        if isinstance(item, h5py.Group) and (address := h5py.h5o.get_info(item.id).addr) not in seen:
            seen.add(address)
            check_all_inside(item, path, soft_links, seen)
