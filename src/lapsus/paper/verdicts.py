"""The paper's claims and the rule that decides them; thresholds and their reasons are in claims.toml."""

import math
import tomllib
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files

import numpy as np

from lapsus.errors import LapsusError
from lapsus.statistics.intervals import Interval
from lapsus.statistics.random_effects import ensemble_mean

__all__ = ["Claim", "criteria", "describe", "judge", "judge_networks", "not_computed"]


@dataclass(frozen=True)
class Claim:
    """One line of the table: what is claimed, the statistic with its 95 % interval, the paper's value, the verdict.

    networks: on how many networks it rests; with several, value and interval are those of the mean over them, and
    holding is the share of networks whose own interval is beyond the threshold; each: their own values and intervals,
    by name.
    """

    id: str
    claim: str
    statistic: str
    value: float | None
    low: float | None
    high: float | None
    paper: float | None
    verdict: str
    networks: int = 1
    holding: float | None = None
    each: dict[str, Interval] = field(default_factory=dict)

    def as_dict(self) -> dict:
        """Its fields as a dictionary."""
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
    finite = lambda number: float(number) if math.isfinite(number) else None
    return Claim(
        id, rule["claim"], rule["statistic"], finite(value), finite(low), finite(high), rule.get("paper"), verdict
    )


def judge_networks(id: str, found: dict[str, Interval]) -> Claim:
    """The verdict on several networks, by name: the network is the unit, so the interval is Student's of the mean over
    them."""
    single = [judge(id, *one) for one in found.values()]
    if len(single) == 1:
        return replace(single[0], holding=float(single[0].verdict == "holds"), each=found)
    over = ensemble_mean(np.array([value for value, _, _ in found.values()]))
    holding = float(np.mean([one.verdict == "holds" for one in single]))
    return replace(judge(id, over.mean, over.low, over.high), networks=len(found), holding=holding, each=found)


def not_computed(id: str, reason: str) -> Claim:
    """A claim that could not be tested: undecided, and the statistic says why."""
    rule = criteria()[id]
    return Claim(id, rule["claim"], f"not computed: {reason}", None, None, None, rule.get("paper"), "undecided")


def describe(claims: list[Claim]) -> str:
    """The claims as a table, one line each, and a count of the verdicts."""
    if not claims:
        return "No claim of the paper rests on these figures."
    lines = [f"{'claim':<26} {'value [95 %]':<28} {'paper':>9}  verdict"]
    for claim in claims:
        value = "-" if claim.value is None else f"{claim.value:.4g} [{claim.low:.4g}, {claim.high:.4g}]"
        paper = "" if claim.paper is None else f"{claim.paper:.4g}"
        over = f" ({claim.holding:.0%} of {claim.networks} networks)" if claim.networks > 1 else ""
        lines.append(
            f"{claim.id:<26} {value:<28} {paper:>9}  {claim.verdict:<14} {claim.claim}; {claim.statistic}{over}"
        )
    count = {
        verdict: sum(claim.verdict == verdict for claim in claims)
        for verdict in ("holds", "does not hold", "undecided")
    }
    lines += ["", ", ".join(f"{number} {verdict}" for verdict, number in count.items()) + f" of {len(claims)} claims."]
    return "\n".join(lines)
