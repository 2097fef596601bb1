"""The claims of the paper on networks: claims.toml says which statistic of which networks tests each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lapsus.errors import LapsusError
from lapsus.paper import claim_statistics
from lapsus.paper.roles import Networks
from lapsus.paper.values import KeptValues, Recorded
from lapsus.paper.verdicts import Claim, criteria, judge_networks, not_computed
from lapsus.statistics.intervals import Interval


@dataclass(frozen=True)
class Test:
    """figure: which one shows it. compute: from networks and the roles of a unit to value, low and high. units: roles
    whose networks have one value together, one tuple for every value."""

    figure: str
    compute: Callable[..., Interval]
    units: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, rule: dict) -> "Test":
        """The test that an entry of claims.toml describes."""
        measure, arguments = getattr(claim_statistics, rule["measure"]), rule.get("arguments", ())
        if "each" in rule:
            return cls(
                rule["figure"], lambda *given: measure(*given, *arguments), tuple((role,) for role in rule["each"])
            )
        return cls(rule["figure"], lambda networks, *_: measure(networks, *arguments), (tuple(rule["together"]),))


CLAIMS = {id: Test.of(rule) for id, rule in criteria().items()}


def evaluate_claims(
    networks: Networks | list[Networks],
    figures: set[str] | None = None,
    *,
    values: str | Path | None = None,
    recorded: Recorded | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> list[Claim]:
    """Every claim (of the named figures) in the order of claims.toml; one that lacks a network or trials is not
    tested, and its statistic says why.

    networks: those of one seed, or of several. No network counts twice: where a seed lacks a role, it adds no unit.
    values: a file in which values are kept as they come, so that an interrupted run can resume.
    recorded: values of networks that were measured before and are not there; none of these counts twice either.
    """
    seeds = networks if isinstance(networks, list) else [networks]
    kept = KeptValues(values)
    claims = []
    for id in criteria():
        test = CLAIMS[id]
        if figures is not None and test.figure not in figures:
            continue
        progress(id)
        found: dict[str, Interval] = {}
        reasons: list[str] = []
        used: set[str] = set()
        for seed in seeds:
            for roles in test.units:
                names = seed.names(roles)
                if used.intersection(names):
                    continue
                try:
                    found[" + ".join(names)] = kept.value(id, seed, roles, partial(test.compute, seed, *roles))
                    used.update(names)
                except LapsusError as reason:
                    reasons.append(str(reason))
        for unit, value in (recorded or {}).get(id, {}).items():
            if used.isdisjoint(unit.split(" + ")):
                found[unit] = value
        claims.append(judge_networks(id, found) if found else not_computed(id, (reasons or ["no network"])[0]))
    return claims
