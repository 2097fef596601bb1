"""One sentence on a trained network: does it answer as it was asked to, and if not, in which way it fails.

>>> from lapsus.evaluation.verdict import verdict
>>> curve = [{"rate": 0.5, "target": 0.1, "likelihood": 0.5, "responses": 16000}]
>>> found = {"conditions": 1000, "trials": 16, "swap_curve": curve, "swap_curve_mad": 0.4, "swap_curve_max": 0.4}
>>> verdict(found | {"median_error": 0.1, "away": 0.0, "away_target": 0.0}).kind
'no cue'
"""

import html
import math
from dataclasses import dataclass
from typing import Any, Literal

from lapsus.statistics.swaps import AWAY

# Within these a network is matched (docs/recipe.md says where they come from). The energy excess is what responses
# would have that are as scattered as the other limits allow: a median error of 0.15 rad instead of 0.05 rad gives
# 0.045, 2 % of responses at the wrong item give 0.001. The target of a task-optimal network has no swaps, so its curve
# is its swap rate.
_BEHAVIOUR = {"energy_excess": 0.05, "swap_curve_mad": 0.02, "swap_curve_max": 0.05, "median_error": 0.15, "away": 0.03}
LIMITS: dict[str, dict[str, float]] = {
    "diffusion": {"excess": 0.08} | _BEHAVIOUR,
    "energy": _BEHAVIOUR,
    "task-optimal": {"median_error": 0.10, "swap_curve_mad": 0.005},
}
# Where no item is reported, responses have a scale of their own: the energy excess may be this share of the target's
# energy score. Half as much scatter again as the target's, or a shift by 0.45 of its standard deviation, reaches it.
RELATIVE_EXCESS = 0.05
# The excess that a network of a discovery may have, which trains for minutes and is held to its subject's responses
# instead (match.py): after a third of its updates a network that ends below 0.08 has about 0.1 (docs/recipe.md).
DISCOVERY_EXCESS = 0.2
# Stray responses beyond the target's, as a share of all, from which on the network has no memory to speak of.
AWAY_OVER = 0.15
# How much of the way from the target's swap rate to that of a network that picks any item at random is too much; asked
# only where that way is at least as long as the second number.
TOWARDS_CHANCE, LEAST_WAY = 0.75, 0.1
# A network whose swaps (by likelihood) are rarer than this share of the target's has one mode; asked only where the
# target swaps at least in the second number's share of trials.
OF_TARGET_SWAPS, LEAST_SWAPS = 0.25, 0.02

_NAMES = {
    "energy_excess": "energy excess",
    "energy_excess_relative": "energy excess relative to the target's energy score",
    "excess": "excess over the Bayes denoiser",
    "swap_curve_mad": "mean deviation of the swap curve",
    "swap_curve_max": "largest deviation of the swap curve",
    "median_error": "median error",
    "away": "share of responses away from every item",
}

# Kind of failure → what is said of it, and what helps.
_FAILURES = {
    "away": (
        "Responses are away from every item: {1:.0f} % are further than {0:.0f}° from all of them, where {2:.0f} % are"
        " due.",
        "the memory does not last: start from a preamble (start_from), let delays grow in stages, or lower the"
        " objective's rate_penalty.",
    ),
    "no cue": (
        "The network does not use the cue: it reports another item in {0:.0f} % of trials, where {1:.0f} % are due and"
        " picking any item gives {2:.0f} %.",
        'start from a network that uses the cue (start_from = "feature-preamble" or "index-preamble"), and have swaps'
        " in less than half of the trials in every stage.",
    ),
    "one mode": (
        "The network has one mode only: it reports another item in {0:.1f} % of trials, where {1:.1f} % are due.",
        "make swaps more frequent in the first stages (a stage may have its own behaviour).",
    ),
}
# What is off most → what may help.
_ADVICE = {
    "energy_excess_relative": (
        "More updates may do. Where network.input_scale is below 20, stimuli of order one are weak beside the process"
        " noise and conditions are confused: set it to 20 or 30 and train again."
    ),
    "swap_curve, energy": (
        "More updates may do. Rare swaps are learned from a start whose swaps are frequent (start_from)."
    ),
    "swap_curve": (
        "More updates may do, or a last stage that weights the steps that decide (step_weight_exponent = 1.5,"
        " step_weight_floor = 0.035 in its objective)."
    ),
    "other": "More updates in the last stage, with a final_learning_rate, may do.",
}

Kind = Literal["matched", "still learning", "no cue", "one mode", "away", "not judged"]


@dataclass(frozen=True)
class Verdict:
    """What a network does (`kind`), in a sentence with numbers, and what to try where it is not matched.

    >>> found = lapsus.evaluate("index-swap-10", conditions=512)
    >>> lapsus.verdict(found).kind
    'matched'
    """

    kind: Kind
    sentence: str
    advice: str = ""

    @property
    def matched(self) -> bool:
        """Within all limits."""
        return self.kind == "matched"

    def __str__(self) -> str:
        return f"{self.sentence} {self.advice}".strip()

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(str(self))}</p>"


def limits_of(objective: str) -> dict[str, float]:
    """What a network of this objective may measure at most; an objective of your own has those of diffusion."""
    return LIMITS.get(objective, LIMITS["diffusion"])


def verdict(found: dict[str, Any], objective: str = "diffusion", unfinished: bool = False) -> Verdict:
    """The verdict on what `lapsus.evaluate` found; `objective` is the kind of the last stage, `unfinished` says that
    updates are left.

    >>> curve = [{"rate": 0.5, "target": 0.1, "likelihood": 0.5, "responses": 16000}]
    >>> found = {"conditions": 1000, "trials": 16, "swap_curve": curve, "swap_curve_mad": 0.4, "swap_curve_max": 0.4}
    >>> lapsus.verdict(found | {"median_error": 0.1, "away": 0.0, "away_target": 0.0}).kind
    'no cue'
    """
    go_on = "Training is not at its end: resume it. " if unfinished else ""
    away, allowed = found.get("away", 0.0), found.get("away_target", 0.0)
    if away - allowed > AWAY_OVER:
        return _failure("away", go_on, math.degrees(AWAY), 100 * away, 100 * allowed)
    curve = found.get("swap_curve") or []
    if curve and objective in ("diffusion", "energy"):
        failed = _failed(curve, found["conditions"] * found["trials"], go_on)
        if failed:
            return failed
    limits = limits_of(objective)
    if not curve:
        limits = {name: limit for name, limit in limits.items() if name != "energy_excess"}
        limits["energy_excess_relative"] = RELATIVE_EXCESS
    limits = {name: limit for name, limit in limits.items() if name in found}
    if not limits:
        return Verdict("not judged", "No verdict: nothing that was measured has a limit.")
    over = {name: found[name] / limit for name, limit in limits.items() if found[name] > limit}
    measured = {name: f"{_NAMES[name]} {_number(name, found[name])}" for name in limits}
    if not over:
        return Verdict("matched", f"Matched: {', '.join(measured.values())}.")
    worst = sorted(over, key=lambda name: -over[name])
    off = ", ".join(f"{measured[name]} (limit {_number(name, limits[name])})" for name in worst)
    kind = worst[0]
    if kind.startswith("swap_curve"):
        kind = "swap_curve, energy" if objective == "energy" else "swap_curve"
    advice = go_on.strip() or _ADVICE.get(kind, _ADVICE["other"])
    return Verdict("still learning", f"Still learning, or stuck: {off}.", advice)


def _number(name: str, value: float) -> str:
    """As it is said: angles in degrees."""
    return f"{math.degrees(value):.1f}°" if name == "median_error" else f"{value:.3f}"


def _failure(kind: Kind, go_on: str, *numbers: float) -> Verdict:
    sentence, advice = _FAILURES[kind]
    return Verdict(kind, sentence.format(*numbers), f"{go_on}If it stays so, {advice}")


def _failed(curve: list[dict[str, Any]], responses: int, go_on: str) -> Verdict | None:
    """What is wrong with which item is reported, if it is wrong altogether."""

    def share(of: str) -> float:
        return sum(point[of] * point["responses"] for point in curve) / responses

    swapped, due, likely = share("rate"), share("target"), share("likelihood")
    distractors = sum(point["responses"] for point in curve) / responses
    chance = distractors / (distractors + 1)
    if chance - due > LEAST_WAY and swapped > due + TOWARDS_CHANCE * (chance - due):
        return _failure("no cue", go_on, 100 * swapped, 100 * due, 100 * chance)
    if due >= LEAST_SWAPS and likely < OF_TARGET_SWAPS * due:
        return _failure("one mode", go_on, 100 * likely, 100 * due)
    return None
