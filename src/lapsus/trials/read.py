"""Read a trial table from a file or a folder: our columns, those of other programs, and published layouts."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lapsus.errors import LapsusError
from lapsus.files import read_bytes, short
from lapsus.trials.bids import bids_files, bids_table
from lapsus.trials.columns import role_of, subject_column
from lapsus.trials.matlab import check_matlab
from lapsus.trials.options import TableOptions
from lapsus.trials.other_formats import r_table, unpack_structs, van_den_berg_colour, van_den_berg_orientation
from lapsus.trials.table import Trials

__all__ = ["read_trials"]

# The largest file, table, first line and error message.
_MOST_BYTES, _MOST_CELLS, _LONGEST_LINE, _LONGEST = 1 << 32, 10**8, 10**5, 5000
ENDINGS = {".csv": ",", ".tsv": "\t", ".txt": None}
R_ENDINGS = (".rds", ".rda", ".rdata")


def read_trials(
    path: str | Path,
    unit: str | None = None,
    probe_unit: str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    where: Mapping[str, object] | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None,
    probe_positions: int | None = None,
    non_targets: str | None = None,
    items_beyond_set_size: str | None = None,
    feature_name: str | None = None,
    probe_name: str | None = None,
) -> Trials:
    """Trials from a CSV, TSV, Parquet, MATLAB or R file, or from a folder of van den Berg et al. (2012) recordings or
    of BIDS files.

    unit, probe_unit        "degrees", "degrees_180" (orientations) or "radians", of the reported and of the probe
                            feature; without them the values decide where they can
    columns                 which column of the file is which of ours: {"response": "response_ori"}; in a file without
                            a header by position: {"response": "1"}
    where                   which rows count: {"condition": "dual"}, or ["condition=dual", "block!=1"]
    drop                    rows to leave out and to count: any of "missing", "outside", "equal", "repeated"
    probe_positions         number of places on a ring, where probes are their numbers
    non_targets             "absolute" like the target, "relative_to_response" or "relative_to_target"
    items_beyond_set_size   "drop" leaves out values of items beyond the set size, which are else an error
    feature_name, probe_name  what texts and plots call the features

    Raises one LapsusError that lists every problem.

    >>> lapsus.read_trials(lapsus.trials.observer_path())
    Trials(2400 trials, 1 subject, set sizes 2, with probe)
    """
    path = Path(path)
    options = TableOptions(
        unit,
        probe_unit,
        columns=columns,
        where=where,
        drop=drop,
        probe_positions=probe_positions,
        non_targets=non_targets,
        items_beyond_set_size=items_beyond_set_size,
        feature_name=feature_name,
        probe_name=probe_name,
    )
    try:
        return _read(path, options)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LapsusError(f"{short(path)}: cannot be read ({reason}).") from error
    except LapsusError as error:
        if len(text := str(error)) <= _LONGEST:
            raise
        raise LapsusError(text[:_LONGEST] + " …") from error


def _read(path: Path, options: TableOptions) -> Trials:
    if not path.exists():
        raise LapsusError(f"{path}: there is no such file or folder.")
    if path.is_dir():
        return _folder(path, options)
    ending = path.suffix.lower()
    if ending not in (*ENDINGS, ".parquet", ".mat", *R_ENDINGS):
        raise LapsusError(f"{path}: the ending must be .csv, .tsv, .txt, .parquet, .mat, .rds or .rda.")
    _check_file(path)
    if ending == ".mat":
        return _matlab(path, options)
    if path.name.endswith("_beh.tsv"):
        return _bids([path], path, options)
    if ending in R_ENDINGS:
        table = r_table(path)
    else:
        table = _parquet(path) if ending == ".parquet" else _text(path, ENDINGS[ending], options)
    return _trials(table, path, options)


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise LapsusError(f"{path}: is not an ordinary file.")
    size = path.stat().st_size
    if not size:
        raise LapsusError(f"{path}: the file is empty.")
    if size > _MOST_BYTES:
        raise LapsusError(f"{path}: has {size:,} bytes; tables of up to {_MOST_BYTES:,} are read.")


def _trials(table: pd.DataFrame, path: Path, options: TableOptions) -> Trials:
    with _parsing(path, "trial table"):
        try:
            return Trials._from_options(table, options, str(path))
        except LapsusError as error:
            text = str(error)
            raise LapsusError(text if text.startswith(str(path)) else f"{path}: {text}") from error


def _bids(files: list[Path], path: Path, options: TableOptions) -> Trials:
    """Tables of one or several subjects; what their names and JSON files say fills in what is not said otherwise."""
    tables = {}
    for file in files:
        _check_file(file)
        tables[file] = _text(file, "\t", options)
    table, options = bids_table(tables, path, options)
    return _trials(table, path, options)


def _folder(path: Path, options: TableOptions) -> Trials:
    if found := bids_files(path):
        return _bids(found, path, options)
    files = sorted(file for file in path.iterdir() if file.suffix.lower() == ".mat")
    if not files:
        raise LapsusError(
            f"{path}: the folder holds no .mat files and no _beh.tsv; give a CSV, TSV, Parquet, MATLAB or R file."
        )
    tables, problems = [], []
    for file in files:
        try:
            table, unit = _van_den_berg(_load(file), file, options)
            tables.append(table)
        except LapsusError as error:
            problems.append(str(error))
    if problems:
        more = [f"… and {len(problems) - 20} more."] if len(problems) > 20 else []
        raise LapsusError("\n  ".join([*problems[:20], *more]))
    return _published(pd.concat(tables, ignore_index=True), path, options, unit)


def _van_den_berg(variables: dict[str, Any], path: Path, options: TableOptions) -> tuple[pd.DataFrame, str]:
    """A file of van den Berg et al. (2012), colours or orientations, and its unit."""
    unit, read = "degrees", van_den_berg_colour
    if any(name.startswith("block_") for name in variables):
        unit, read = "degrees_180", van_den_berg_orientation
    _with_own_unit(options, path, unit, "degrees", "van den Berg et al. (2012)")
    with _parsing(path, "file of van den Berg et al. (2012)"):
        return read(variables, path), unit


def _published(table: pd.DataFrame, path: Path, options: TableOptions, unit: str) -> Trials:
    """A table of van den Berg et al. (2012)."""
    feature = options.feature_name or ("orientation" if unit == "degrees_180" else "colour")
    probe = options.probe_name or "position"
    return _trials(
        table, path, replace(options, unit=unit, probe_unit="degrees", feature_name=feature, probe_name=probe)
    )


def _with_own_unit(options: TableOptions, path: Path, unit: str, probe_unit: str, authors: str) -> TableOptions:
    """A published layout has units of its own; another one is a misunderstanding."""
    for name, own in (("unit", unit), ("probe_unit", probe_unit)):
        if getattr(options, name) not in (None, own):
            raise LapsusError(
                f"{path}: has the layout of {authors}, which is read as {own}; leave"
                f" `{name}={getattr(options, name)!r}` out."
            )
    return replace(options, unit=unit, probe_unit=probe_unit)


@contextmanager
def _parsing(path: Path, kind: str) -> Iterator[None]:
    """What a parser says of a broken file, in our words; what the system says of the file itself passes."""
    try:
        yield
    except (OSError, LapsusError):
        raise
    except Exception as error:
        reason = str(error).strip().rstrip(".")[:500] or type(error).__name__
        raise LapsusError(f"{path}: cannot be read as a {kind}: {reason}.") from error


def _parquet(path: Path) -> pd.DataFrame:
    with _parsing(path, "Parquet file"):
        try:
            from pyarrow.parquet import read_metadata
        except ImportError as error:
            raise LapsusError(f"{path}: reading Parquet needs pyarrow (install lapsus[parquet]).") from error
        facts = read_metadata(path)
        if facts.num_rows * facts.num_columns > _MOST_CELLS:
            raise LapsusError(f"{path}: says that it has {facts.num_rows:,} rows of {facts.num_columns:,} columns.")
        return pd.read_parquet(path)


def _text(path: Path, separator: str | None, options: TableOptions) -> pd.DataFrame:
    with path.open("rb") as file:
        first = file.readline(_LONGEST_LINE + 1)
        if b"\0" in first[:4096] or b"\0" in file.read(4096):
            raise LapsusError(f"{path}: is not a text file in UTF-8; save the table as CSV (UTF-8).")
        if len(first) > _LONGEST_LINE:
            raise LapsusError(f"{path}: its first line has more than {_LONGEST_LINE:,} characters; is it a table?")
    with _parsing(path, "table"):
        try:
            return _read_csv(path, options.columns, **_format(path, separator))
        except UnicodeDecodeError as error:
            raise LapsusError(f"{path}: is not a text file in UTF-8; save the table as CSV (UTF-8).") from error


def _format(path: Path, separator: str | None) -> dict[str, Any]:
    """How pandas is to read a text table whose ending says `separator`."""
    options: dict[str, Any] = {"sep": separator, "engine": "python" if separator is None else "c"}
    header = pd.read_csv(path, nrows=0, **options).columns
    if separator == "," and len(header) == 1 and ";" in header[0]:
        return {"sep": ";", "decimal": ","}  # what Excel calls CSV where a comma is the decimal point
    if separator == "," and len(header) == 1 and "\t" in header[0]:
        return {"sep": "\t"}
    return options


def _read_csv(path: Path, columns: dict[str, str], **options: Any) -> pd.DataFrame:
    """A text table, subjects as text: 01 and 1 are two. Where the first row has more fields than the header, pandas
    would take the first ones for row names and move every column."""
    try:
        pd.read_csv(path, header=None, nrows=2, dtype=str, **options)
    except pd.errors.ParserError as error:
        if found := re.search(r"Expected (\d+) fields in line \d+, saw (\d+)", str(error)):
            raise LapsusError(
                f"{path}: row 1 has {found[2]} fields, the header has {found[1]}. Name every column, also one of row"
                " names, or leave out what ends the rows."
            ) from error
    header = list(pd.read_csv(path, nrows=0, **options).columns)
    named = [name for name in header if not name.startswith("Unnamed: ")]  # empty fields, as of absent items
    numbers = sum(_is_number(name) for name in named)
    if numbers > 1 and 2 * numbers >= len(named) and not any(role_of(name) for name in named):
        header = _positions(path, columns, len(header))
        options |= {"header": None, "names": header}
    subject = subject_column(header, columns)
    table = pd.read_csv(path, dtype=None if subject is None else {subject: str}, **options)
    if subject is not None:
        table[subject] = table[subject].str.strip().replace("", np.nan)
    return table


def _is_number(name: str) -> bool:
    """Whether a column's name is a number; pandas marks the second of two equal names by .1."""
    try:
        float(re.sub(r"(\.\d+)\.\d+$", r"\1", name.replace(",", ".")))
    except ValueError:
        return False
    return True


def _positions(path: Path, columns: dict[str, str], count: int) -> list[str]:
    """Names of the columns of a file without a header: their positions from 1, which `columns` must use."""
    names = [str(i) for i in range(1, count + 1)]
    if not columns or not set(columns.values()) <= set(names):
        raise LapsusError(
            f"{path}: has no header: its first row holds numbers, not names. Give its {count} columns by position with"
            " `columns` (response=1, target=2, non_target_1=3, …), or add a row of names."
        )
    return names


def _load(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat, whosmat

    try:
        check_matlab(read_bytes(path))
        cells = sum(math.prod(shape) for _, shape, _ in whosmat(path))
        if cells > _MOST_CELLS:
            raise LapsusError(f"it says that it holds {cells:,} numbers")
        return {k: v for k, v in loadmat(path, squeeze_me=True).items() if not k.startswith("__")}
    except LapsusError as error:
        raise LapsusError(f"{path}: cannot be read as a MATLAB file: {error}.") from error
    except NotImplementedError as error:
        raise LapsusError(f"{path}: a MATLAB 7.3 file; save it again with save(..., '-v7').") from error
    except Exception as error:
        raise LapsusError(f"{path}: cannot be read as a MATLAB file: {str(error)[:500]}.") from error


def _matlab(path: Path, options: TableOptions) -> Trials:
    variables = unpack_structs(_load(path))
    if any(name.startswith(("block_", "recording")) for name in variables):
        table, unit = _van_den_berg(variables, path, options)
        return _published(table, path, options, unit)
    bays = {"n_items", "nontarget", "nontarget_pos", "target_pos"} <= set(variables)
    lengths = [len(v) for v in variables.values() if np.ndim(v) >= 1]
    if not lengths:
        raise LapsusError(
            f"{path}: holds no columns; save response, target, non_target, … as arrays of one row a trial."
        )
    trials = max(set(lengths), key=lengths.count)
    columns: dict[str, np.ndarray] = {}
    for name, values in variables.items():
        if np.ndim(values) == 1 and len(values) == trials:
            columns[name] = values
        elif np.ndim(values) == 2 and len(values) == trials:
            columns |= {f"{name}_{i + 1}": values[:, i] for i in range(values.shape[1])}
        elif np.ndim(values) >= 1 and (role_of(name) or role_of(f"{name}_1")):
            # Left out, the rest would be wrong.
            shape = " × ".join(map(str, np.shape(values)))
            raise LapsusError(f"{path}: {name} is {shape}, but there are {trials} trials; give it one row a trial.")
    if bays:
        options = _with_own_unit(options, path, "radians", "radians", "Bays et al. (2009)")
        options = replace(
            options, feature_name=options.feature_name or "colour", probe_name=options.probe_name or "position"
        )
        with _parsing(path, "file of Bays et al. (2009)"):
            columns = _bays(variables, columns, trials)
    return _trials(pd.DataFrame(columns), path, options)


def _bays(variables: dict[str, Any], columns: dict[str, np.ndarray], trials: int) -> dict[str, np.ndarray]:
    """The columns of Bays et al. (2009), with positions as they were meant."""
    columns["exposure"] = columns.pop("delay") if "delay" in columns else np.full(trials, np.nan)
    # The published positions were multiplied by pi/180 once too often: eight steps of 45° end at 0.096.
    factor = 180 / np.pi if np.nanmax(np.abs(variables["target_pos"])) < 0.12 else 1.0
    return {n: np.mod(v * factor, 2 * np.pi) if "_pos" in n else v for n, v in columns.items()}
