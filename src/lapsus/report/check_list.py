"""What was checked of a fit and of networks: each verdict is computed here, with its threshold beside it; those of a
match are its own."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lapsus.evaluation.match import SCATTER_RATIO, TOLERANCE, Match
from lapsus.evaluation.verdict import DISCOVERY_EXCESS, limits_of
from lapsus.fitting.examine import FEW_SWAPS
from lapsus.mechanism.activity import without_swaps
from lapsus.mechanism.registry import QUESTIONS
from lapsus.report.determined import objective_of
from lapsus.report.findings import Check, NetworkFindings

__all__ = ["EARLIER_VERSION", "Truth", "fit_checks", "in_order", "match_checks", "network_checks"]

LEAST_TRAINED = 0.8
LEAST_COVERED = 0.9
# Standard errors by which a model must predict better to be needed, and the Pareto k that a trial may have at most.
NEEDED, LARGEST_K = 2, 0.7
# Why a discovery of version 0.1 has no answer.
EARLIER_VERSION = (
    "this discovery was made by an earlier version, which did not ask it; `lapsus analyse` asks its network"
)
# Worst first.
STATES = ("failed", "not checked", "nearly", "passed")
# Models that have all that a model has, itself among them.
CONTAIN = {
    "none": ("none", "constant", "probe", "report", "both"),
    "constant": ("constant", "probe", "report", "both"),
    "probe": ("probe", "both"),
    "report": ("report", "both"),
    "both": ("both",),
}


@dataclass(frozen=True)
class Truth:
    """Of a synthetic observer: at what share of distances the band covers the true swap function, and how far the mean
    is from it."""

    covered: float
    mad: float


def _check(name: str, passed: bool | None, text: str) -> Check:
    return Check(name, "not checked" if passed is None else "passed" if passed else "failed", text)


def in_order(checks: list[Check]) -> list[Check]:
    """Failures first, then what was not checked."""
    return sorted(checks, key=lambda check: STATES.index(check.status))


def _which(number: int, networks: list[NetworkFindings]) -> str:
    return f" (network {number})" if len(networks) > 1 else ""


def network_checks(networks: list[NetworkFindings]) -> list[Check]:
    """What holds for any trained network."""
    found = []
    for number, network in enumerate(networks, 1):
        which, done, of = _which(number, networks), network.update, network.updates
        early = "" if done >= of else " The time was up first, before the learning rate had fallen to its last value."
        state = "passed" if done >= of else "nearly" if done >= LEAST_TRAINED * of else "failed"
        if network.settled:
            state, early = ("passed", " It was matched with a margin, so the rest was spared.")
        found.append(Check("Training reached its end", state, f"{done:,} of {of:,} updates{which}.{early}"))
        found += _excess_check(network, which)
        found += _mechanism_checks(network, which)
    # Networks of different objectives need not agree: where they differ is a result, and not a doubt.
    groups: dict[str, list[NetworkFindings]] = {}
    for network in networks:
        groups.setdefault(objective_of(network), []).append(network)
    several = [group for group in groups.values() if len(group) > 1]
    for group in several or [networks[:1]]:
        found += _agreement(group)
    return found


def _excess_check(network: NetworkFindings, which: str) -> list[Check]:
    """Whether it denoises well enough; one that was never asked to has no limit."""
    excess = network.evaluation.get("excess")
    if excess is None:
        return []
    own = limits_of(network.experiment.stage[-1].objective["kind"]).get("excess")
    limit = own if network.match is None else DISCOVERY_EXCESS
    if limit is None:
        return []
    text = f"Excess loss over the exact Bayes denoiser {excess:.3f}{which} (0 is perfect; at most {limit} passes)."
    return [_check("Denoising", excess <= limit, text)]


def _mechanism_checks(network: NetworkFindings, which: str) -> list[Check]:
    """What could not be asked of a network, and whether a held-out decoder of the same trials agrees with the rest."""
    mechanism = network.mechanism
    reasons: dict[str, list[str]] = {}
    for part, why in mechanism.left_out.items():
        reasons.setdefault(why, []).append(part)
    # No swaps, or an earlier version, is no failure of an analysis.
    found = [
        _check(
            f"Analysis: {', '.join(parts)}",
            None if without_swaps(why) or why == EARLIER_VERSION else False,
            f"It could not be made{which}: {why}.",
        )
        for why, parts in reasons.items()
    ]
    for name, answer in mechanism.answered:
        if (check := QUESTIONS[name].check) is not None:
            title, passed, text = check(answer, mechanism)
            found.append(_check(title, passed, f"{text.removesuffix('.')}{which}."))
    return found


def _agreement(networks: list[NetworkFindings]) -> list[Check]:
    """Whether networks give the same answers. Undecided ones do not agree: they say nothing."""
    if len(networks) == 1:
        text = "One network was trained by an objective, so nothing is known of how much such networks differ."
        return [_check("Networks agree", None, text)]
    found = []
    mechanisms = [network.mechanism for network in networks]
    for verdict in (question.verdict for question in QUESTIONS.values() if question.verdict is not None):
        given = [verdict.of(mechanism) for mechanism in mechanisms]
        known = [answer for answer in given if answer is not None]
        passed = False if len(set(known)) > 1 else True if len(known) == len(given) else None
        text = f"Networks say: {', '.join(verdict.words(mechanisms))}."
        found.append(_check(f"Networks agree on {verdict.about}", passed, text))
    return found


def fit_checks(fit: dict[str, Any], truth: Truth | None = None) -> list[Check]:
    """What holds for the behaviour fit (Fit.to_dict())."""
    found = []
    if truth is not None:
        text = f"The true swap function of the synthetic observer lies in the 95 % band at {100 * truth.covered:.0f} %"
        text += f" of distances (mean deviation {truth.mad:.3f})."
        found.append(_check("Truth recovered", truth.covered >= LEAST_COVERED, text))
    found.append(
        _check("Fit converged", fit["converged"], f"R-hat of the posterior draws is at most {fit['rhat']:.3f}.")
    )
    swaps = sum(row["trials"] * row["non_target"] for row in fit["weights"])
    if fit["model"] == "none":
        text = "No model with swaps is clearly better: there are too few swaps, if any, to say what they depend on."
    elif swaps < FEW_SWAPS:
        text = f"About {swaps:.0f} swap trials in the data: too few (below {FEW_SWAPS}) to say what swaps depend on."
        text += " The shape of the swap function rests on its prior."
    else:
        text = f"About {swaps:.0f} swap trials in the data."
    found.append(_check("Enough swaps", swaps >= FEW_SWAPS, text))
    table = fit["comparison"]
    if table and len(table) > 1:
        found += _comparison_checks(fit["model"], table)
    if fit["subjects"] > 1:
        text = f"{fit['subjects']} subjects were fitted together, as if they were one; `lapsus fit --by subject` looks"
        found.append(_check("Subjects alike", None, f"{text} at each."))
    return found


def _comparison_checks(model: str, table: list[dict[str, Any]]) -> list[Check]:
    chosen = next(row for row in table if row["model"] == model)
    # A richer model that contains the chosen one cannot be ruled out by prediction; those that lack what it has can.
    rivals = [row for row in table if row["model"] not in CONTAIN[model]]
    if rivals:
        rival = max(rivals, key=lambda row: row["elpd"])
        gap, error = chosen["elpd"] - rival["elpd"], max(rival["difference_se"], chosen["difference_se"])
        needed = gap > NEEDED * error
        text = f"{model} predicts {gap:.1f} ± {error:.1f} nats better than the best model without what it adds"
        text += f" ({rival['model']})" + ("." if needed else ": the data do not tell them apart.")
        first = _check("The model is needed", needed, text)
    else:
        best = table[0]
        text = f"No model with swaps predicts better by more than one standard error (best: {best['model']},"
        text += f" {best['elpd'] - chosen['elpd']:.1f} ± {chosen['difference_se']:.1f} nats above)."
        first = _check("Swaps were looked for", True, text)
    rough = int(chosen[f"pareto_k_above_{LARGEST_K}"])
    text = f"{rough} trial{'s' * (rough != 1)} with Pareto k above {LARGEST_K}."
    return [first, _check("Predictive density is reliable", rough == 0, text)]


def _at(match: Match, outside: np.ndarray) -> str:
    return ", ".join(f"{match.shown_distance[k]:.0f}°" for k in np.flatnonzero(outside))


def match_checks(networks: list[NetworkFindings], set_size: int, averaged: bool) -> list[Check]:
    """Each network against the fit and the data. averaged: an index-cued network whose fitted swap function depends on
    distance, which it is not told."""
    found = []
    for number, network in enumerate(networks, 1):
        which, match = _which(number, networks), network.match
        if match is None:
            continue
        if match.predictive_fit is not None and match.predictive_network is not None:
            if number == 1:
                found.append(_fit_explains(match, averaged))
            lost = match.predictive_network.outside
            where = f"lies outside the network's predictive interval{which} at {_at(match, lost)}."
            text = f"The subject's swap rates lie within the network's predictive intervals at every distance{which}."
            found.append(
                _check(
                    "Network matches the data",
                    not lost.any(),
                    f"The subject's swap rate {where}" if lost.any() else text,
                )
            )
        elif number == 1:
            text = f"The trials have {set_size} items and the network holds two, so it was compared with the fitted"
            found.append(_check("Network matches the data", None, f"{text} model's prediction for two items only."))
        failing, (low, high) = match.failing, SCATTER_RATIO
        mad, ratio = match.swap_curve_mad_fit, match.scatter.ratio
        text = f"Mean deviation of the swap curve {mad:.3f}{which} (at most {match.tolerance:.3f} passes), largest"
        text += f" {match.swap_curve_max_fit:.3f}."
        found.append(_check("Network matches the fit: swaps", "swaps" not in failing, text))
        text = f"Responses scatter {ratio:.2f} times as much as the fitted model's{which} ({low} to {high} passes)."
        found.append(_check("Network matches the fit: precision", "precision" not in failing, text))
        its, fits = (100 * share for share in (match.stray.network, match.stray.fit))
        text = f"{its:.1f} % of responses are far from both items{which}, where the fitted model has {fits:.1f} %"
        text += f" (at most {100 * TOLERANCE:.0f} % apart passes)."
        found.append(_check("Network matches the fit: far from items", "stray" not in failing, text))
    return found


def _fit_explains(match: Match, averaged: bool) -> Check:
    name = "Fit explains the data"
    if averaged:
        text = "An index-cued network is not told where items are, so the fitted swap function was averaged over"
        return _check(name, None, f"{text} distances: it cannot follow the data by distance.")
    assert match.predictive_fit is not None
    outside = match.predictive_fit.outside
    if outside.any():
        where = _at(match, outside)
        return _check(name, False, f"The subject's swap rate lies outside the fit's predictive interval at {where}.")
    return _check(name, True, "The subject's swap rates lie within the fit's predictive intervals at every distance.")
