"""Values of claims in networks whose weights do not ship: measured once, and kept as rows of studies/claims.csv."""

import hashlib
import math
from importlib.resources import files
from pathlib import Path

import pandas as pd

from lapsus.errors import LapsusError
from lapsus.paper.verdicts import criteria
from lapsus.statistics.intervals import Interval

__all__ = ["COLUMNS", "Recorded", "recorded", "statistic_digest"]

# claim → names of the networks of a unit, joined by " + " → value, low, high.
Recorded = dict[str, dict[str, Interval]]
COLUMNS = ("recipe", "claim", "networks", "value", "low", "high", "statistic")


def statistic_digest(id: str) -> str:
    """Of what a claim's statistic is said to be: a row that was measured as something else does not count."""
    return hashlib.sha256(criteria()[id]["statistic"].encode()).hexdigest()[:8]


def recorded(recipe: str, path: str | Path | None = None) -> Recorded:
    """The rows of a recipe in a table of claims, by default the one that ships; none where there is no table."""
    path = Path(path) if path is not None else Path(str(files("lapsus.paper") / "studies" / "claims.csv"))
    if not path.is_file():
        return {}
    try:
        table = pd.read_csv(path)[list(COLUMNS)]
        table = table[table["recipe"] == recipe]
        numbers = table[["value", "low", "high"]].astype(float).to_numpy()
    except (KeyError, ValueError, pd.errors.ParserError) as error:
        raise LapsusError(f"{path} is no table of claims ({error}); benchmarks/study.py makes one.") from error
    known, found = criteria(), Recorded()
    for row, (value, low, high) in zip(table.itertuples(), numbers):
        if row.claim in known and row.statistic == statistic_digest(row.claim) and math.isfinite(value):
            found.setdefault(row.claim, {})[row.networks] = (float(value), float(low), float(high))
    return found
