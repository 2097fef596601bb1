"""netCDF files of ours and of others, which may be damaged or crafted."""

from pathlib import Path
from typing import TYPE_CHECKING

from lapsus.errors import LapsusError
from lapsus.files.reading import Damaged, begins, check_format, ordinary_size, short

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["is_netcdf", "read_netcdf"]


def is_netcdf(path: str | Path) -> bool:
    """Whether a file begins as those that `write_netcdf` writes; it may still be damaged."""
    return begins(path, b"\x89HDF\r\n\x1a\n")


def read_netcdf(path: str | Path) -> "xr.Dataset":
    """A netCDF file, all of it in memory. One that keeps data in other files, or that unpacks to very much more than it
    holds, is refused unread."""
    import xarray as xr

    path = Path(path)
    size = ordinary_size(path)
    try:
        _check_all_inside(path)
        with xr.open_dataset(path, engine="h5netcdf") as dataset:
            unpacked = sum(variable.nbytes for variable in dataset.variables.values())
            if unpacked > max(1 << 26, 100 * size):
                raise LapsusError(
                    f"{short(path)} would unpack its {size:,} bytes to {unpacked:,}; no file of lapsus does."
                )
            if "lapsus" in dataset.attrs:  # else it is a recording that somebody else wrote
                check_format(int(dataset.attrs["format"]), 1, path)
            return dataset.load()
    except LapsusError:
        raise
    except Exception as error:  # the libraries below raise whatever a broken file makes them stumble over
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise Damaged(f"{short(path)} cannot be read as netCDF: {reason[:300]}.") from error


def _check_all_inside(path: Path) -> None:
    """HDF5 can name other files as the place of data (links, external storage, virtual datasets): whoever made the
    file would choose which file of this machine is read."""
    import h5py

    with h5py.File(path, "r") as file:
        groups, seen = [file], set()
        while groups:
            group = groups.pop()
            for name in group:
                found = None
                if isinstance(group.get(name, getlink=True), h5py.HardLink):
                    found = group[name]
                    outside = isinstance(found, h5py.Dataset) and (found.external or found.is_virtual)
                    found = None if outside else found
                if found is None:
                    raise LapsusError(f"{short(path)}: {name[:80]} is kept outside of this file, and is not read.")
                address = h5py.h5o.get_info(found.id).addr
                if isinstance(found, h5py.Group) and address not in seen:
                    seen.add(address)
                    groups.append(found)
