"""The claims of the paper: which statistic of which networks each is, judged by claims.toml."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lapsus.errors import LapsusError
from lapsus.paper import appendix, claim_statistics as measure, cue_combination, fig3, fig4
from lapsus.paper.kept import Kept
from lapsus.paper.recorded import Recorded
from lapsus.paper.roles import Networks
from lapsus.paper.verdicts import Claim, criteria, judge_networks, not_computed
from lapsus.statistics.intervals import Interval

__all__ = ["CLAIMS", "evaluate_claims"]


@dataclass(frozen=True)
class Test:
    """figure: which one shows it. units: the roles whose networks make one unit, or several such tuples where networks
    of several roles are units each. compute: from the networks and the roles of a unit to value, low and high."""

    figure: str
    compute: Callable[..., Interval]
    units: tuple[tuple[str, ...], ...]


def _of(figure: str, compute: Callable[..., Interval], *roles: str) -> Test:
    """One unit: all of these roles together, which `compute` looks up itself."""
    return Test(figure, lambda networks, *_: compute(networks), (roles,))


def _each(figure: str, compute: Callable[..., Interval], *roles: str) -> Test:
    """Every network of one of these roles is a unit."""
    return Test(figure, compute, tuple((role,) for role in roles))


SMOOTH = ("feature-smooth-0", "feature-smooth-1", "feature-smooth-2")
SWAPPING = ("feature-constant-05", "feature-constant-30", *SMOOTH, "index-constant-05", "index-constant-10")
WINDOWS = tuple(role for role, window in appendix.WINDOWS.items() if window < 40)

CLAIMS: dict[str, Test] = {
    "swap-function-none": _each("fig2", measure.swap_deviation, "feature-none"),
    "swap-function-constant-05": _each("fig2", measure.swap_deviation, "feature-constant-05"),
    "swap-function-constant-30": _each("fig2", measure.swap_deviation, "feature-constant-30"),
    "swap-function-smooth-0": _each("fig2", measure.swap_deviation, "feature-smooth-0"),
    "swap-function-smooth-1": _each("fig2", measure.swap_deviation, "feature-smooth-1"),
    "swap-function-smooth-2": _each("fig2", measure.swap_deviation, "feature-smooth-2"),
    "optimal-unimodal": _of("fig2", measure.optimal_swaps, "feature-optimal", "index-optimal"),
    "distance-ablation": _of("fig2", lambda n: measure.ablation(n, "distance"), "feature-optimal"),
    "noise-ablation": _of("fig2", lambda n: measure.ablation(n, "noise"), "feature-optimal"),
    "noise-removal": _of("fig2", measure.swaps_without_noise, "feature-smooth-0"),
    "mse-one-mode": _of("unimodal", measure.one_mode, "feature-sample-mse"),
    "mse-averages": _of("unimodal", measure.averaging_slope, "feature-sample-mse"),
    "index-rise-05": _each("fig3", measure.index_rise, "index-constant-05"),
    "index-rise-10": _each("fig3", measure.index_rise, "index-constant-10"),
    "index-rise-only": _of("fig3", measure.index_rise_only, *fig3.INDEX_NETWORKS),
    "index-stays-high": _of("fig3", measure.index_stays_high, "index-constant-05", "index-constant-10"),
    "feature-rise-smooth": _each("table1", measure.feature_rise, "feature-smooth-2"),
    "feature-rise-only": _of("table1", measure.feature_rise_only, *fig3.FEATURE_NETWORKS),
    "close-more-aligned": _of("fig3", measure.close_more_aligned, "feature-smooth-2"),
    "not-misbinding": _of("fig4", measure.misbinding, fig4.DECODED),
    "after-cue": _of("fig4", measure.after_cue, fig4.DECODED),
    "two-rings": _of("fig4", measure.two_rings, fig4.RINGS),
    "rings-apart": _of("fig4", measure.rings_apart, fig4.RINGS),
    "normal-shared": _of("fig4", measure.normal_shared, fig4.RINGS),
    "normal-above-random": _of("fig4", measure.above_random, fig4.RINGS),
    "normal-either-role": _of("fig4", measure.either_role, fig4.RINGS),
    "components-shared": _of("fig4", measure.components_shared, fig4.RINGS),
    "normal-separates": _of("fig4", measure.normal_separates, fig4.RINGS),
    "axis-separates": _of("fig4", measure.axis_separates, fig4.RINGS),
    "cyclic": _of("cyclic", measure.cyclic, fig4.RINGS),
    "windows-aligned": _each("windows", measure.inside_window, *WINDOWS),
    "windows-no-rise": _of("windows", measure.windows_rise, *appendix.WINDOWS),
    "architecture-point": _each("fig2", measure.both_modes, "feature-point-constant-30"),
    "architecture-two-layer": _each("fig2", measure.both_modes, "feature-two-layer-constant-30"),
    "alignment-follows-swaps": _each("fig3", measure.alignment_follows_swaps, *SMOOTH),
    "alignment-predicts-swaps": _each("prediction", measure.prediction_ratio, "feature-smooth-2"),
    "alignment-push": _each("prediction", measure.alignment_push, *SMOOTH),
    "dice-after-cue": _each("prediction", lambda n, role: measure.fixed_at(n, role, "cue"), *SWAPPING),
    "latent-before-cue": _each("prediction", lambda n, role: measure.fixed_at(n, role, "delay"), "index-attended"),
    "cue-combination-median": _of("cue-combination", lambda n: cue_combination.ks_interval(n, 0.5), "cue-combination"),
    "cue-combination-p95": _of("cue-combination", lambda n: cue_combination.ks_interval(n, 0.95), "cue-combination"),
    "cue-combination-modes": _of("cue-combination", cue_combination.modes_interval, "cue-combination"),
}


def evaluate_claims(
    networks: Networks | list[Networks],
    figures: set[str] | None = None,
    *,
    values: str | Path | None = None,
    recorded: Recorded | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> list[Claim]:
    """Every claim (of the named figures) in the order of claims.toml; one that lacks a network or trials is not
    tested and says why.

    networks: one set, or several (seeds). No network counts twice: where a seed lacks a role, it adds no unit.
    values: a file in which the values of networks are kept as they come, so that a run that was cut goes on from it.
    recorded: values of networks that were measured before and are not there; of these, too, none counts twice.
    """
    sets = networks if isinstance(networks, list) else [networks]
    kept = Kept(values)
    found = []
    for id in criteria():
        test = CLAIMS[id]
        if figures is not None and test.figure not in figures:
            continue
        progress(id)
        each: dict[str, Interval] = {}
        reasons: list[str] = []
        used: set[str] = set()
        for one in sets:
            for roles in test.units:
                there = one.names(roles)
                if used.intersection(there):
                    continue
                compute = partial(test.compute, one, *roles)
                try:
                    each[" + ".join(there)] = kept.value(id, one, roles, compute)
                    used.update(there)
                except LapsusError as reason:
                    reasons.append(str(reason))
        for name, value in (recorded or {}).get(id, {}).items():
            if not used & set(name.split(" + ")):
                each[name] = value
        found.append(judge_networks(id, each) if each else not_computed(id, reasons[0] if reasons else "no network"))
    return found
