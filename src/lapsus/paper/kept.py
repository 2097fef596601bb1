"""Values of claims kept in a file as they come: all claims over all seeds take longer than one likes to lose."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lapsus import __version__
from lapsus.files import read_json, write_json
from lapsus.paper.roles import Networks
from lapsus.paper.verdicts import criteria
from lapsus.statistics.intervals import Interval
from lapsus.training.model import weights_digest

__all__ = ["Kept", "forget"]


@dataclass(frozen=True)
class Value:
    """value: with its interval; made_of: a digest of all that makes it, except the code between versions."""

    value: Interval
    made_of: str


class Kept:
    """A JSON file of values by claim and networks; without a path nothing is kept.

    A value is taken from it only where nothing that made it has changed: the weights of its networks, what the claim's
    statistic is said to be, how much is simulated, and the version of lapsus.
    """

    def __init__(self, path: str | Path | None):
        self.path = None if path is None else Path(path)
        self.known: dict[str, Value] = {}
        if self.path is not None and self.path.exists():
            self.known = read_json(self.path, dict[str, Value])

    def value(self, id: str, networks: Networks, roles: tuple[str, ...], compute: Callable[[], Interval]) -> Interval:
        """That of a claim on the networks of these roles, computed where it is not known."""
        if self.path is None:
            return compute()
        at = "" if networks.delay is None else f" at a delay of {networks.delay}"
        name = f"{id}: {' + '.join(networks.names(roles))}{at}"
        made_of = _digest(id, networks, roles)
        if name not in self.known or self.known[name].made_of != made_of:
            self.known[name] = Value(compute(), made_of)
            write_json(self.path, self.known)
        return self.known[name].value


def forget(path: str | Path, there: set[str], valued: dict[str, set[str]]) -> None:
    """Take out of a file what stands for no unit any more: values of networks that are not there, and those of units
    that share a network with another one that the same claim was valued on now (claim → units)."""
    kept = Kept(path).known
    left = dict(kept)
    for key in kept:
        claim, _, unit = key.partition(": ")
        own, units = set(unit.split(" + ")), valued.get(claim, set())
        if not own <= there or (unit not in units and any(own & set(other.split(" + ")) for other in units)):
            del left[key]
    if left != kept:
        write_json(path, left)


def _digest(id: str, networks: Networks, roles: tuple[str, ...]) -> str:
    weights = [weights_digest(networks.model(role)) for role in roles if role in networks]
    delay = () if networks.delay is None else (networks.delay,)
    said = repr((__version__, criteria()[id]["statistic"], networks.sizes, weights, *delay))
    return hashlib.sha256(said.encode()).hexdigest()[:16]
