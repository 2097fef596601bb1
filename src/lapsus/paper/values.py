"""Values of claims that were measured before: kept by the user as they come, and recorded in the package."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pandas as pd

from lapsus import __version__
from lapsus.errors import LapsusError
from lapsus.files import read_json, write_json
from lapsus.paper.roles import Networks
from lapsus.paper.verdicts import criteria
from lapsus.statistics.intervals import Interval
from lapsus.training.model import weights_digest

# claim → names of the networks of a unit, joined by " + " → value, low, high.
Recorded = dict[str, dict[str, Interval]]
COLUMNS = ("recipe", "claim", "networks", "value", "low", "high", "statistic")


def _digest(*parts: object, length: int) -> str:
    text = parts[0] if len(parts) == 1 else repr(parts)
    return hashlib.sha256(str(text).encode()).hexdigest()[:length]


def statistic_digest(id: str) -> str:
    """Identifies how a claim's statistic is defined: a row that was measured by another definition does not count."""
    return _digest(criteria()[id]["statistic"], length=8)


def recorded_values(recipe: str, path: str | Path | None = None) -> Recorded:
    """The rows of a recipe in a table of claims, by default the one that ships (collections paper and persistent, all
    seeds, also those whose weights do not ship); none where there is no table."""
    path = Path(path) if path is not None else Path(str(files("lapsus.paper") / "claims.csv"))
    if not path.is_file():
        return {}
    try:
        table = pd.read_csv(path)[list(COLUMNS)]
        table = table[table["recipe"] == recipe].astype({"value": float, "low": float, "high": float})
    except (KeyError, ValueError, pd.errors.ParserError) as error:
        raise LapsusError(f"{path} is not a table of claims ({error}).") from error
    recorded = Recorded()
    for row in table.itertuples():
        same = row.claim in criteria() and row.statistic == statistic_digest(row.claim)
        if same and math.isfinite(row.value):
            recorded.setdefault(row.claim, {})[row.networks] = (row.value, row.low, row.high)
    return recorded


@dataclass(frozen=True)
class KeptValue:
    """value: with its interval; made_of: a digest of all that determines it, except the code within a version."""

    value: Interval
    made_of: str


class KeptValues:
    """A JSON file of values by claim and networks; without a path nothing is kept.

    A value is taken from it only if nothing that determines it has changed: the weights of its networks, the definition
    of the statistic, how much is simulated, and the version of lapsus.
    """

    def __init__(self, path: str | Path | None):
        self.path = None if path is None else Path(path)
        self.known: dict[str, KeptValue] = {}
        if self.path is not None and self.path.exists():
            self.known = read_json(self.path, dict[str, KeptValue])

    def value(self, id: str, networks: Networks, roles: tuple[str, ...], compute: Callable[[], Interval]) -> Interval:
        """The value of a claim on the networks of these roles, computed where it is not known."""
        if self.path is None:
            return compute()
        delay = () if networks.delay is None else (networks.delay,)
        name = f"{id}: {' + '.join(networks.names(roles))}" + "".join(f" at a delay of {steps}" for steps in delay)
        weights = [weights_digest(networks.model(role)) for role in roles if role in networks]
        made_of = _digest(__version__, criteria()[id]["statistic"], networks.sizes, weights, *delay, length=16)
        if name not in self.known or self.known[name].made_of != made_of:
            self.known[name] = KeptValue(compute(), made_of)
            write_json(self.path, self.known)
        return self.known[name].value
