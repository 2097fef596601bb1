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
from lapsus.report.determined import by_objective, objective_of, verdicts
from lapsus.report.findings import Check, NetworkFindings

LEAST_TRAINED = 0.8
LEAST_COVERED = 0.9
# Standard errors by which a model must predict better to be needed, and the Pareto k that a trial may have at most.
NEEDED, LARGEST_K = 2, 0.7
# Worst first.
STATES = ("failed", "not checked", "nearly", "passed")
# Models that lack what a model has, and so could show that it is not needed.
RIVALS = {
    "none": (),
    "constant": ("none",),
    "probe": ("none", "constant", "report"),
    "report": ("none", "constant", "probe"),
    "both": ("none", "constant", "probe", "report"),
}

# --- What is said of a check; {network} is " (network 2)" where there are several ---

TRUTH = (
    "The true swap function of the synthetic observer lies in the 95 % band at {percent:.0f} % of distances (mean"
    " deviation {truth.mad:.3f})."
)
NO_SWAPS = "No model with swaps is clearly better: there are too few swaps, if any, to say what they depend on."
FEW = (
    "About {:.0f} swap trials in the data: too few (below {few}) to say what swaps depend on. The shape of the"
    " swap function rests on its prior."
)
ENOUGH = "About {:.0f} swap trials in the data."
SUBJECTS = "{subjects} subjects were fitted together, as if they were one; `lapsus fit --by subject` fits each."
BETTER = "{} predicts {:.1f} ± {:.1f} nats better than the best model that does not contain it ({}){}"
NOT_BETTER = (
    "No model with swaps predicts better by more than one standard error (best: {}, {:.1f} ± {:.1f} nats above)."
)
EXCESS = "Excess loss over the exact Bayes denoiser {:.3f}{} (0 is perfect; at most {} passes)."
ONE_NETWORK = "Only one network was trained with each objective, so it is not known how much such networks differ."
TWO_ITEMS = (
    "The trials have {} items and the network holds two, so it was compared with the fitted model's prediction for two"
    " items only."
)
AVERAGED = (
    "An index-cued network is not told where items are, so the fitted swap function was averaged over distances: it"
    " cannot reproduce how swaps depend on distance in the data."
)
INSIDE = "The subject's swap rates lie within {whose} predictive intervals at every distance{network}."
OUTSIDE = "The subject's swap rate lies outside {whose} predictive interval{network} at {where}."
# Criterion of a match with the fit → what it is called, and what is said of it.
CRITERIA = {
    "swaps": (
        "swaps",
        "Mean deviation of the swap curve {match.swap_curve_mad_fit:.3f}{network} (at most {match.tolerance:.3f}"
        " passes), largest {match.swap_curve_max_fit:.3f}.",
    ),
    "precision": (
        "precision",
        "Responses scatter {match.scatter.ratio:.2f} times as much as the fitted model's{network} ({low} to {high}"
        " passes).",
    ),
    "stray": (
        "far from items",
        "{its:.1f} % of responses are far from both items{network}, where the fitted model has {fits:.1f} % (at most"
        " {most:.0f} percentage points apart passes).",
    ),
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
    checks = []
    for number, network in enumerate(networks, 1):
        which = _which(number, networks)
        checks += [_training(network, which), *_excess(network, which), *_mechanism(network, which)]
    # Networks of different objectives need not agree: where they differ is a result, and not a doubt.
    groups = list(by_objective(networks).values())
    for group in [group for group in groups if len(group) > 1] or groups[:1]:
        checks += _agreement(group)
    return checks


def _training(network: NetworkFindings, which: str) -> Check:
    done, planned = network.update, network.updates
    state, why = "passed", ""
    if network.settled:
        why = " It matched with a margin, so the remaining updates were skipped."
    elif done < planned:
        state = "nearly" if done >= LEAST_TRAINED * planned else "failed"
        why = " Time ran out before the learning rate had reached its final value."
    return Check("Training reached its end", state, f"{done:,} of {planned:,} updates{which}.{why}")


def _excess(network: NetworkFindings, which: str) -> list[Check]:
    """Whether it denoises well enough; one that was never asked to has no limit."""
    excess = network.evaluation.get("excess")
    limit = limits_of(objective_of(network)).get("excess") if network.match is None else DISCOVERY_EXCESS
    if excess is None or limit is None:
        return []
    return [_check("Denoising", excess <= limit, EXCESS.format(excess, which, limit))]


def _mechanism(network: NetworkFindings, which: str) -> list[Check]:
    """What could not be asked of a network, and whether a held-out decoder of the same trials agrees with the rest."""
    mechanism = network.mechanism
    reasons: dict[str, list[str]] = {}
    for question, why in mechanism.left_out.items():
        reasons.setdefault(why, []).append(question)
    checks = []
    for why, questions in reasons.items():
        passed = None if without_swaps(why) else False  # no swaps is not a failure of an analysis
        checks.append(_check(f"Analysis: {', '.join(questions)}", passed, f"It could not be made{which}: {why}."))
    for name, answer in mechanism.answered:
        if (check := QUESTIONS[name].check) is not None:
            title, passed, text = check(answer, mechanism)
            checks.append(_check(title, passed, f"{text.removesuffix('.')}{which}."))
    return checks


def _agreement(networks: list[NetworkFindings]) -> list[Check]:
    """Whether networks give the same answers. Undecided ones do not agree: they say nothing."""
    if len(networks) == 1:
        return [_check("Networks agree", None, ONE_NETWORK)]
    checks = []
    mechanisms = [network.mechanism for network in networks]
    for verdict in verdicts():
        words = {verdict.of(mechanism) for mechanism in mechanisms}
        passed = None if None in words else True
        if len(words - {None}) > 1:
            passed = False
        text = f"The networks' answers: {', '.join(verdict.words(mechanisms))}."
        checks.append(_check(f"Networks agree on {verdict.about}", passed, text))
    return checks


def fit_checks(fit: dict[str, Any], truth: Truth | None = None) -> list[Check]:
    """What holds for the behaviour fit (Fit.to_dict())."""
    checks = []
    if truth is not None:
        text = TRUTH.format(percent=100 * truth.covered, truth=truth)
        checks.append(_check("Truth recovered", truth.covered >= LEAST_COVERED, text))
    text = "R-hat of the posterior draws is at most {rhat:.3f}."
    checks.append(_check("Fit converged", fit["converged"], text.format_map(fit)))
    swaps = sum(row["trials"] * row["non_target"] for row in fit["weights"])
    text = NO_SWAPS if fit["model"] == "none" else FEW if swaps < FEW_SWAPS else ENOUGH
    checks.append(_check("Enough swaps", swaps >= FEW_SWAPS, text.format(swaps, few=FEW_SWAPS)))
    if len(fit["comparison"] or ()) > 1:
        checks += _comparison(fit["model"], fit["comparison"])
    if fit["subjects"] > 1:
        checks.append(_check("Subjects alike", None, SUBJECTS.format_map(fit)))
    return checks


def _comparison(model: str, table: list[dict[str, Any]]) -> list[Check]:
    chosen = next(row for row in table if row["model"] == model)
    # A richer model that contains the chosen one cannot be ruled out by prediction; those that lack what it has can.
    rivals = [row for row in table if row["model"] in RIVALS[model]]
    if rivals:
        rival = max(rivals, key=lambda row: row["elpd"])
        gap, error = chosen["elpd"] - rival["elpd"], max(rival["difference_se"], chosen["difference_se"])
        needed = gap > NEEDED * error
        end = "." if needed else ": the data do not tell them apart."
        first = _check("The model is needed", needed, BETTER.format(model, gap, error, rival["model"], end))
    else:
        best = table[0]
        text = NOT_BETTER.format(best["model"], best["elpd"] - chosen["elpd"], chosen["difference_se"])
        first = _check("Swaps were looked for", True, text)
    rough = int(chosen[f"pareto_k_above_{LARGEST_K}"])
    text = f"{rough} trial{'s' * (rough != 1)} with Pareto k above {LARGEST_K}."
    return [first, _check("Predictive density is reliable", rough == 0, text)]


def match_checks(networks: list[NetworkFindings], set_size: int, averaged: bool) -> list[Check]:
    """Each network against the fit and the data. averaged: an index-cued network whose fitted swap function depends on
    distance, which it is not told."""
    checks = []
    for number, network in enumerate(networks, 1):
        match, which = network.match, _which(number, networks)
        if match is None:
            continue
        if match.predictive_fit is not None and match.predictive_network is not None:
            if number == 1:
                name = "Fit explains the data"
                explained = _inside(name, match, match.predictive_fit.outside, "the fit's", "")
                checks.append(_check(name, None, AVERAGED) if averaged else explained)
            outside = match.predictive_network.outside
            checks.append(_inside("Network matches the data", match, outside, "the network's", which))
        elif number == 1:
            checks.append(_check("Network matches the data", None, TWO_ITEMS.format(set_size)))
        checks += _criteria(match, which)
    return checks


def _inside(name: str, match: Match, outside: np.ndarray, whose: str, network: str) -> Check:
    """Whether the data lie within predictive intervals [bin]."""
    where = ", ".join(f"{degrees:.0f}°" for degrees in match.shown_distance[outside])
    return _check(name, not where, (OUTSIDE if where else INSIDE).format(whose=whose, network=network, where=where))


def _criteria(match: Match, network: str) -> list[Check]:
    low, high = SCATTER_RATIO
    shares = {"its": 100 * match.stray.network, "fits": 100 * match.stray.fit, "most": 100 * TOLERANCE}
    values = dict(match=match, network=network, low=low, high=high, **shares)
    return [
        _check(f"Network matches the fit: {title}", criterion not in match.failing, text.format(**values))
        for criterion, (title, text) in CRITERIA.items()
    ]
