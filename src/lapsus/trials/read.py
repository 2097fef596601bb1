"""Read a trial table from a file or a folder: our columns, those of other programs, and published layouts."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lapsus.errors import LapsusError
from lapsus.files import read_bytes, short
from lapsus.trials.columns import ITEM, NON_TARGET, NON_TARGET_PROBE, is_item, subject_column
from lapsus.trials.matlab import check_matlab
from lapsus.trials.other_formats import bids_facts, bids_files, r_table, unpack_structs, van_den_berg_orientation
from lapsus.trials.table import Trials

__all__ = ["read_trials"]

# Of a file, of a table, of its first line, of the numbers of items, of the letters of an error.
_MOST_BYTES, _MOST_CELLS, _LONGEST_LINE, _MOST_ITEMS, _LONGEST = 1 << 32, 10**8, 10**5, 99, 5000
ENDINGS = {".csv": ",", ".tsv": "\t", ".txt": None}
R_ENDINGS = (".rds", ".rda", ".rdata")


def read_trials(
    path: str | Path,
    unit: str | None = None,
    probe_unit: str | None = None,
    *,
    columns: dict[str, str] | None = None,
    where: dict[str, str] | None = None,
    probe_positions: int | None = None,
    feature_name: str | None = None,
    probe_name: str | None = None,
) -> Trials:
    """Trials from a CSV, TSV, Parquet, MATLAB or R file, or from a folder of van den Berg et al. (2012) recordings or
    of BIDS files.

    unit is "degrees", "degrees_180" (orientations) or "radians"; without it the values decide where they can.
    probe_unit is the probe feature's, where it differs. columns says which column of the file is which of ours
    ({"response": "response_ori"}), where which rows count ({"condition": "dual"}); probe_positions is the number of
    places on a ring where probes are their numbers. feature_name and probe_name are what texts and plots call the
    features. Raises one LapsusError that lists every problem.

    >>> lapsus.read_trials(lapsus.trials.observer_path())
    Trials(2400 trials, 1 subject, set sizes 2, with probe)
    """
    path = Path(path)
    table_options = {"columns": columns, "where": where, "probe_positions": probe_positions}
    try:
        return _read(path, unit, probe_unit, table_options).name_features(feature_name, probe_name)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LapsusError(f"{short(path)}: cannot be read ({reason}).") from error
    except LapsusError as error:
        if len(text := str(error)) <= _LONGEST:
            raise
        raise LapsusError(text[:_LONGEST] + " …") from error


def _read(path: Path, unit: str | None, probe_unit: str | None, options: dict[str, Any]) -> Trials:
    if not path.exists():
        raise LapsusError(f"{path}: there is no such file or folder.")
    if path.is_dir():
        return _folder(path, unit, probe_unit, options)
    ending = path.suffix.lower()
    if ending not in (*ENDINGS, ".parquet", ".mat", *R_ENDINGS):
        raise LapsusError(f"{path}: the ending must be .csv, .tsv, .txt, .parquet, .mat, .rds or .rda.")
    if not path.is_file():
        raise LapsusError(f"{path}: is not an ordinary file.")
    size = path.stat().st_size
    if not size:
        raise LapsusError(f"{path}: the file is empty.")
    if size > _MOST_BYTES:
        raise LapsusError(f"{path}: has {size:,} bytes; tables of up to {_MOST_BYTES:,} are read.")
    if ending == ".mat":
        return _matlab(path, unit, probe_unit, options)
    if path.name.endswith("_beh.tsv"):
        return _bids([path], unit, probe_unit, path, options)
    if ending in R_ENDINGS:
        table = r_table(path)
    else:
        table = _parquet(path) if ending == ".parquet" else _text(path, ENDINGS[ending], options["columns"])
    return _trials(table, unit, probe_unit, path, options)


def _bids(files: list[Path], unit: str | None, probe_unit: str | None, path: Path, options: dict[str, Any]) -> Trials:
    """Tables of one or several subjects; what the names and JSON files say fills in what is not said otherwise."""
    tables = []
    found: dict[str, str] = {}
    for file in files:
        if not file.is_file():
            raise LapsusError(f"{file}: is not an ordinary file.")
        facts = bids_facts(file)
        table = _text(file, "\t", options["columns"])
        known = {str(name).lower() for name in table.columns}
        if "subject" in facts and subject_column(table.columns) is None:
            table["subject"] = facts["subject"]
        if "session" in facts and not known & {"session", "session_id"}:
            table["session"] = facts["session"]
        tables.append(table)
        found = facts | found
    trials = _trials(pd.concat(tables, ignore_index=True), unit or found.get("unit"), probe_unit, path, options)
    return trials.name_features(found.get("feature_name"))


def _trials(
    table: pd.DataFrame, unit: str | None, probe_unit: str | None, path: Path, options: dict[str, Any]
) -> Trials:
    """The table as Trials. Columns of items are numbered from 1 on, so a date at the end of a name is a slip."""
    for name in table.columns:
        plain = str(name)[:200].strip().lower().replace(" ", "_").replace("-", "_").replace(".", "_")
        found = NON_TARGET.match(plain) or NON_TARGET_PROBE.match(plain) or ITEM.match(plain)
        number = next((group for group in reversed(found.groups()) if group), "") if found else ""
        if len(number) > 4 or int(number or 0) > _MOST_ITEMS:
            raise LapsusError(f"{path}: column {plain[:80]}: items are numbered up to {_MOST_ITEMS}.")
    with _parsing(path, "trial table"):
        return Trials.from_table(table, unit, probe_unit, str(path), **options)


def _folder(path: Path, unit: str | None, probe_unit: str | None, options: dict[str, Any]) -> Trials:
    if found := bids_files(path):
        return _bids(found, unit, probe_unit, path, options)
    files = sorted(file for file in path.iterdir() if file.suffix.lower() == ".mat")
    if not files:
        raise LapsusError(
            f"{path}: the folder holds no .mat files and no _beh.tsv; give a CSV, TSV, Parquet, MATLAB or R file."
        )
    tables, problems, own = [], [], "degrees"
    for file in files:
        try:
            variables = _load(file)
            with _parsing(file, "file of van den Berg et al. (2012)"):
                if any(name.startswith("block_") for name in variables):
                    tables.append(van_den_berg_orientation(variables, file))
                    own = "degrees_180"
                else:
                    tables.append(_van_den_berg(variables, file))
        except LapsusError as error:
            problems.append(str(error))
    if problems:
        more = [f"… and {len(problems) - 20} more."] if len(problems) > 20 else []
        raise LapsusError("\n  ".join([*problems[:20], *more]))
    _check_unit(path, (unit, probe_unit), own, "van den Berg et al. (2012)")
    return _named(_trials(pd.concat(tables, ignore_index=True), own, "degrees", path, options))


def _named(trials: Trials) -> Trials:
    """What the features of van den Berg et al. (2012) are."""
    return trials.name_features("orientation" if trials.unit == "degrees_180" else "colour", "position")


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


def _text(path: Path, separator: str | None, columns: dict[str, str] | None) -> pd.DataFrame:
    with path.open("rb") as file:
        first = file.readline(_LONGEST_LINE + 1)
        if b"\0" in first[:4096] or b"\0" in file.read(4096):
            raise LapsusError(f"{path}: is not a text file in UTF-8; save the table as CSV (UTF-8).")
        if len(first) > _LONGEST_LINE:
            raise LapsusError(f"{path}: its first line has more than {_LONGEST_LINE:,} characters; is it a table?")
    options = {"sep": separator, "engine": "python" if separator is None else "c"}
    with _parsing(path, "table"):
        try:
            header = pd.read_csv(path, nrows=0, **options).columns
            if separator == "," and len(header) == 1 and ";" in header[0]:
                # What Excel calls CSV where a comma is the decimal point.
                return _read_csv(path, columns, sep=";", decimal=",")
            if separator == "," and len(header) == 1 and "\t" in header[0]:
                return _read_csv(path, columns, sep="\t")
            return _read_csv(path, columns, **options)
        except UnicodeDecodeError as error:
            raise LapsusError(f"{path}: is not a text file in UTF-8; save the table as CSV (UTF-8).") from error


def _read_csv(path: Path, columns: dict[str, str] | None, **options: Any) -> pd.DataFrame:
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
    subject = subject_column(pd.read_csv(path, nrows=0, **options).columns, columns)
    table = pd.read_csv(path, dtype=None if subject is None else {subject: str}, **options)
    if subject is not None:
        table[subject] = table[subject].str.strip().replace("", np.nan)
    return table


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


def _matlab(path: Path, unit: str | None, probe_unit: str | None, options: dict[str, Any]) -> Trials:
    variables = unpack_structs(_load(path))
    if any(name.startswith("block_") for name in variables):
        _check_unit(path, (unit, probe_unit), "degrees_180", "van den Berg et al. (2012)")
        with _parsing(path, "file of van den Berg et al. (2012)"):
            table = van_den_berg_orientation(variables, path)
        return _named(_trials(table, "degrees_180", "degrees", path, options))
    if any(name.startswith("recording") for name in variables):
        _check_unit(path, (unit, probe_unit), "degrees", "van den Berg et al. (2012)")
        with _parsing(path, "file of van den Berg et al. (2012)"):
            table = _van_den_berg(variables, path)
        return _named(_trials(table, "degrees", "degrees", path, options))
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
        elif np.ndim(values) >= 1 and is_item(name):
            shape = " × ".join(map(str, np.shape(values)))
            raise LapsusError(f"{path}: {name} is {shape}, but there are {trials} trials; give it one row a trial.")
    if bays:
        _check_unit(path, (unit, probe_unit), "radians", "Bays et al. (2009)")
        with _parsing(path, "file of Bays et al. (2009)"):
            columns = _bays(variables, columns, trials)
        unit = probe_unit = "radians"
    trials_found = _trials(pd.DataFrame(columns), unit, probe_unit, path, options)
    return trials_found.name_features("colour", "position") if bays else trials_found


def _bays(variables: dict[str, Any], columns: dict[str, np.ndarray], trials: int) -> dict[str, np.ndarray]:
    """The columns of Bays et al. (2009), with positions as they were meant."""
    columns["exposure"] = columns.pop("delay") if "delay" in columns else np.full(trials, np.nan)
    # The published positions were multiplied by pi/180 once too often: eight steps of 45° end at 0.096.
    if np.nanmax(np.abs(variables["target_pos"])) < 0.12:
        for name in columns:
            if "_pos" in name:
                columns[name] = columns[name] * 180 / np.pi
    return columns | {name: np.mod(values, 2 * np.pi) for name, values in columns.items() if "_pos" in name}


def _check_unit(path: Path, given: tuple[str | None, str | None], own: str, authors: str) -> None:
    """A published layout has a unit of its own; another one is a misunderstanding."""
    for option, unit in zip(("unit", "probe_unit"), given, strict=True):
        if unit not in (None, own if option == "unit" or own != "degrees_180" else "degrees"):
            raise LapsusError(
                f"{path}: has the layout of {authors}, which is read as {own}; leave `{option}={unit!r}` out."
            )


def _van_den_berg(variables: dict[str, Any], path: Path) -> pd.DataFrame:
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
