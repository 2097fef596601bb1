"""Everything that lapsus puts on disk goes through here, and whatever it reads of its own comes back through here.

A file is written beside its place under a name of its own, flushed to disk and renamed, and the folder is flushed too:
after a kill, a full disk or a power cut there is the old file or the new one, never half of one. No link is
followed, and only ordinary files are replaced.
"""

from lapsus.files.folders import (
    check_file,
    check_own_files,
    check_place,
    file_name,
    holds,
    inside,
    locked,
    make_folder,
    own_files,
    subfolder,
)
from lapsus.files.netcdf import is_netcdf, read_netcdf
from lapsus.files.plain import from_plain, to_plain
from lapsus.files.reading import (
    Damaged,
    begins,
    check_format,
    read_arrays,
    read_bytes,
    read_end,
    read_json,
    read_text,
    read_toml,
    short,
    shown,
    understood,
)
from lapsus.files.writing import (
    append_line,
    clean_up,
    is_figure,
    remove,
    set_aside,
    to_toml,
    write_arrays,
    write_bytes,
    write_figure,
    write_json,
    write_netcdf,
    write_text,
    write_toml,
)

__all__ = [
    "Damaged",
    "append_line",
    "begins",
    "check_file",
    "check_format",
    "check_own_files",
    "check_place",
    "clean_up",
    "file_name",
    "from_plain",
    "holds",
    "inside",
    "is_figure",
    "is_netcdf",
    "locked",
    "make_folder",
    "own_files",
    "read_arrays",
    "read_bytes",
    "read_end",
    "read_json",
    "read_netcdf",
    "read_text",
    "read_toml",
    "remove",
    "set_aside",
    "short",
    "shown",
    "subfolder",
    "to_plain",
    "to_toml",
    "understood",
    "write_arrays",
    "write_bytes",
    "write_figure",
    "write_json",
    "write_netcdf",
    "write_text",
    "write_toml",
]
