"""Everything that lapsus puts on disk goes through here, and whatever it reads of its own comes back through here.

A file is written beside its place under a name of its own, flushed to disk and renamed, and the folder is flushed too:
after a kill, a full disk or a power cut there is the old file or the new one, never half of one. No link is
followed, and only ordinary files are replaced.
"""

from lapsus.files.folders import (
    check_file as check_file,
    check_own_files as check_own_files,
    check_place as check_place,
    file_name as file_name,
    holds as holds,
    inside as inside,
    locked as locked,
    make_folder as make_folder,
    own_files as own_files,
    subfolder as subfolder,
)
from lapsus.files.netcdf import check_all_inside as check_all_inside, is_netcdf as is_netcdf, read_netcdf as read_netcdf
from lapsus.files.plain import from_plain as from_plain, to_plain as to_plain
from lapsus.files.reading import (
    Damaged as Damaged,
    begins as begins,
    check_format as check_format,
    read_arrays as read_arrays,
    read_bytes as read_bytes,
    read_end as read_end,
    read_json as read_json,
    read_text as read_text,
    read_toml as read_toml,
    readable as readable,
    reason_of as reason_of,
    short as short,
    shown as shown,
    understood as understood,
)
from lapsus.files.writing import (
    append_line as append_line,
    clean_up as clean_up,
    is_figure as is_figure,
    remove as remove,
    set_aside as set_aside,
    to_toml as to_toml,
    write_arrays as write_arrays,
    write_bytes as write_bytes,
    write_figure as write_figure,
    write_json as write_json,
    write_netcdf as write_netcdf,
    write_text as write_text,
    write_toml as write_toml,
)
