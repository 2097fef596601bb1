"""The paper's claims and the rule that decides them; thresholds and their reasons are in claims.toml."""

import math
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files

import numpy as np

from lapsus.errors import LapsusError
from lapsus.statistics.intervals import Interval
from lapsus.statistics.random_effects import ensemble_mean
from lapsus.zoo.shipped import seed_of


@dataclass(frozen=True)
class Claim:
    """One line of the table: what is claimed, the statistic with its 95 % interval, the paper's value, the verdict.

    networks: on how many networks it rests, and of how many seeds these are; with several seeds, value and interval are
    those of the mean over them. holding: the share of networks whose own interval is beyond the threshold; each: their
    own values and intervals, by name.
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
    seeds: int = 1
    holding: float | None = None
    each: dict[str, Interval] = field(default_factory=dict)


@cache
def criteria() -> dict[str, dict]:
    """id → claim, statistic, `above` or `below`, reason, where the paper gives it `paper`, and what claims.py needs."""
    return tomllib.loads((files("lapsus.paper") / "claims.toml").read_text(encoding="utf-8"))


def judge(id: str, value: float, low: float, high: float) -> Claim:
    """The verdict on a value with its interval: holds or does not hold if all of the interval is on one side of the
    threshold."""
    rule = criteria().get(id)
    if rule is None:
        raise LapsusError(f"There is no claim {id!r} in claims.toml.")
    above = "above" in rule
    threshold = rule["above" if above else "below"]
    verdict = "undecided"
    if all(map(math.isfinite, (value, low, high))):
        if low > threshold if above else high < threshold:
            verdict = "holds"
        elif high <= threshold if above else low >= threshold:
            verdict = "does not hold"
    finite = lambda number: float(number) if math.isfinite(number) else None
    numbers = finite(value), finite(low), finite(high)
    return Claim(id, rule["claim"], rule["statistic"], *numbers, rule.get("paper"), verdict)


def by_seed(found: dict[str, Interval]) -> dict[str, list[Interval]]:
    """The values of the networks of each seed; a name ends with its seed (NAME@2), or is of seed 1."""
    seeds: dict[str, list[Interval]] = {}
    for names, one in found.items():
        own = {str(seed_of(name)) for name in names.split(" + ")}
        seeds.setdefault(" and ".join(sorted(own)), []).append(one)
    return seeds


def judge_networks(id: str, found: dict[str, Interval]) -> Claim:
    """The verdict on several networks, by name. Networks of one seed share their start and are alike, so they count
    once, by their mean, and the interval is Student's over seeds. Where there is one seed it holds the intervals of all
    its networks."""
    holding = float(np.mean([judge(id, *one).verdict == "holds" for one in found.values()]))
    seeds = [np.array(own) for own in by_seed(found).values()]
    if len(seeds) == 1:
        value, low, high = seeds[0][:, 0].mean(), seeds[0][:, 1].min(), seeds[0][:, 2].max()
    else:
        over = ensemble_mean(np.array([own[:, 0].mean() for own in seeds]))
        value, low, high = over.mean, over.low, over.high
    return replace(judge(id, value, low, high), networks=len(found), seeds=len(seeds), holding=holding, each=found)


def not_computed(id: str, reason: str) -> Claim:
    """A claim that could not be tested; the statistic says why."""
    rule = criteria()[id]
    said = f"not computed: {reason}"
    return Claim(id, rule["claim"], said, None, None, None, rule.get("paper"), "not tested", networks=0, seeds=0)


def describe(claims: list[Claim]) -> str:
    """The claims as a table, one line each, and a count of the verdicts."""
    if not claims:
        return "No claim of the paper rests on these figures."
    lines = [f"{'claim':<26} {'value [95 %]':<28} {'paper':>9}  verdict"]
    for claim in claims:
        value = "-" if claim.value is None else f"{claim.value:.4g} [{claim.low:.4g}, {claim.high:.4g}]"
        paper = "" if claim.paper is None else f"{claim.paper:.4g}"
        basis = [f"{claim.holding:.0%} of {claim.networks} networks"] if claim.networks > 1 else []
        basis += ["one seed"] if claim.seeds == 1 else []
        meaning = f"{claim.claim}; {claim.statistic}" + (f" ({', '.join(basis)})" if basis else "")
        lines.append(f"{claim.id:<26} {value:<28} {paper:>9}  {claim.verdict:<14} {meaning}")
    return "\n".join([*lines, "", count(claims)])


def count(claims: list[Claim]) -> str:
    """How many claims have which verdict: over several seeds, and in networks of a single seed."""
    parts = [f"{len(claims)} claims."]
    tested = {
        "Over several seeds": [claim.verdict for claim in claims if claim.seeds > 1],
        "In a single seed": [claim.verdict for claim in claims if claim.seeds == 1],
    }
    for basis, verdicts in tested.items():
        holds, fails, undecided = map(verdicts.count, ("holds", "does not hold", "undecided"))
        parts += [f"{basis}: {holds} hold, {fails} do not, {undecided} undecided."] if verdicts else []
    untested = sum(claim.seeds == 0 for claim in claims)
    return " ".join([*parts, f"Not tested: {untested}."] if untested else parts)
