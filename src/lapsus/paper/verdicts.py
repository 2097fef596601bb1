"""The paper's claims and the rule that decides them; thresholds and their reasons are in claims.toml."""

import math
import tomllib
from dataclasses import asdict, dataclass
from importlib.resources import files

from lapsus.errors import LapsusError

__all__ = ["Claim", "criteria", "judge", "not_computed"]


@dataclass(frozen=True)
class Claim:
    """One line of the table: what is claimed, the statistic with its 95 % interval, the paper's value, the verdict."""

    id: str
    claim: str
    statistic: str
    value: float | None
    low: float | None
    high: float | None
    paper: float | None
    verdict: str

    def as_dict(self) -> dict:
        return asdict(self)


def criteria() -> dict[str, dict]:
    """id → claim, statistic, `above` or `below`, reason and, where the paper gives it, `paper`."""
    return tomllib.loads((files("lapsus.paper") / "claims.toml").read_text(encoding="utf-8"))


def judge(id: str, value: float, low: float, high: float) -> Claim:
    """The verdict on a value with its interval: holds or does not hold if all of the interval is on one side of the
    threshold."""
    if id not in (known := criteria()):
        raise LapsusError(f"There is no claim {id!r} in claims.toml.")
    rule = known[id]
    if not all(math.isfinite(number) for number in (value, low, high)):
        verdict = "undecided"
    elif "above" in rule:
        verdict = "holds" if low > rule["above"] else "does not hold" if high <= rule["above"] else "undecided"
    else:
        verdict = "holds" if high < rule["below"] else "does not hold" if low >= rule["below"] else "undecided"
    finite = [number if math.isfinite(number) else None for number in (float(value), float(low), float(high))]
    return Claim(id, rule["claim"], rule["statistic"], *finite, rule.get("paper"), verdict)


def not_computed(id: str, reason: str) -> Claim:
    """A claim that could not be tested: undecided, and the statistic says why."""
    rule = criteria()[id]
    return Claim(id, rule["claim"], f"not computed: {reason}", None, None, None, rule.get("paper"), "undecided")
