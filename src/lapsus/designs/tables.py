"""Trial tables as they are, for designs that say what their columns mean."""

from pathlib import Path

import pandas as pd

from lapsus.errors import LapsusError
from lapsus.files import short

__all__ = ["read_table"]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}


def read_table(path: str | Path) -> pd.DataFrame:
    """A CSV, TSV or Parquet file with a header."""
    path = Path(path)
    if not path.is_file():
        raise LapsusError(f"{short(path)}: there is no such file.")
    ending = path.suffix.lower()
    if ending not in (*_SEPARATORS, ".parquet"):
        raise LapsusError(f"{short(path)}: with a design, the table is a .csv, .tsv or .parquet file.")
    try:
        table = pd.read_parquet(path) if ending == ".parquet" else pd.read_csv(path, sep=_SEPARATORS[ending])
    except ImportError as error:
        raise LapsusError(f"{short(path)}: reading Parquet needs pyarrow (install lapsus[parquet]).") from error
    except (OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise LapsusError(f"{short(path)}: cannot be read as a table ({reason[:200]}).") from error
    if table.empty:
        raise LapsusError(f"{short(path)}: the table has no rows.")
    return table
