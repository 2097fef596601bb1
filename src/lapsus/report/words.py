"""A discovery in words: sentences with numbers, what to doubt, and a methods paragraph to paste."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lapsus.fitting.swap_models import SWAP_MODELS
from lapsus.mechanism.registry import QUESTIONS
from lapsus.report.check_list import Truth
from lapsus.report.determined import Determined, by_objective
from lapsus.report.findings import NetworkFindings

REFERENCES = (
    (
        "Radmard P, Bays PM, Lengyel M (2026). Setting up for failure: automatic discovery of the neural mechanisms of"
        " cognitive errors. ICLR 2026. arXiv:2512.04808."
    ),
    (
        "Radmard P, Bays PM, Lengyel M (2025). A flexible Bayesian non-parametric mixture model reveals multiple"
        " dependencies of swap errors in visual working memory. arXiv:2505.01178."
    ),
    (
        "Bays PM, Catalao RFG, Husain M (2009). The precision of visual working memory is set by allocation of a shared"
        " resource. Journal of Vision 9(10): 7."
    ),
    (
        "Ho J, Jain A, Abbeel P (2020). Denoising diffusion probabilistic models. Advances in Neural Information"
        " Processing Systems 33."
    ),
    (
        "Gneiting T, Raftery AE (2007). Strictly proper scoring rules, prediction, and estimation. Journal of the"
        " American Statistical Association 102: 359–378."
    ),
    (
        "Panichello MF, Buschman TJ (2021). Shared mechanisms underlie the control of working memory and attention."
        " Nature 592: 601–605."
    ),
    (
        "Alleman M, Panichello M, Buschman TJ, Johnston WJ (2024). The neural basis of swap errors in working memory."
        " PNAS 121: e2401032121."
    ),
    (
        "Vehtari A, Gelman A, Gabry J (2017). Practical Bayesian model evaluation using leave-one-out cross-validation"
        " and WAIC. Statistics and Computing 27: 1413–1432."
    ),
)


@dataclass(frozen=True)
class ReportContext:
    """What words about a discovery need besides its fit and its networks.

    start: the network that training started from (None: from scratch), start_distance how far its swap curve is from
    the target's; shipped: whether lapsus chose it; left_out: what the fit describes and the target lacks, in sentences.
    """

    set_size: int
    cueing: str
    start: str | None
    start_distance: float
    shipped: bool
    left_out: tuple[str, ...] = ()
    truth: Truth | None = None


# --- Sentences ---

NO_MODEL_WITH_SWAPS = "In {who}, no model with swaps predicts left-out responses better by more than one standard error"
ONLY_THE_CUED = ", so the model without swaps (only the cued item is ever reported) was kept."
BEST_WITH_SWAPS = " (the best, {best}, is {gap:.1f} ± {error:.1f} nats above), so the model without swaps was kept."
SWAP_RATE = "In {who}, {percent:.1f} % of responses report a non-target{by}; "
ONE_MODEL = "the behaviour model is {model} ({meaning})."
KEPT = "of the models compared, {model} was kept ({meaning}), {margin}."
BETTER_THAN_NEXT = "predicting left-out responses {gap:.1f} ± {error:.1f} nats better than the next ({other})"
SIMPLEST = "the simplest within one standard error of the best ({other}, {gap:.1f} ± {error:.1f} nats above it)"

NO_SWAP_FUNCTION = (
    "The data give no evidence that non-targets are ever reported: the swap rate is taken to be zero, and nothing"
    " can be said about what it depends on."
)
CONSTANT = "A single non-target is reported with probability {} whatever its distance (95 % band in brackets)."
BOTH = "With one non-target, p(swap) is {} for items {} and {} for items opposite in both (95 % bands)."
BY_DISTANCE = (
    "With one non-target, p(swap) is {near} at {near_degrees:.0f}° and {far} at {far_degrees:.0f}° of {model} distance"
    " (95 % bands): {trend}."
)
BAND = "{p_swap:.3f} [{p_low:.3f}, {p_high:.3f}]"

TRAINED = (
    "{many}, {start} and trained for {minutes:.1f} min, {verb} within {mad:.3f} of the fitted swap curve on average;"
    " {matched} to {against}."
)
AGAINST_DATA = "the fitted model and the raw data"
AGAINST_FIT = "the fitted model (the raw trials have more items than the network can be shown)"


def discovery_sentences(
    fit: dict[str, Any], networks: list[NetworkFindings], facts: ReportContext, together: Determined
) -> list[str]:
    """What was found: the data, the swap function, the networks, what they say together, and the mechanism of a single
    one. fit: Fit.to_dict()."""
    mechanism = []
    if len(networks) == 1:
        asked = [name for name, question in QUESTIONS.items() if question.verdict is not None]
        mechanism = [networks[0].mechanism.sentence(name) for name in asked]
    with_swaps = any(QUESTIONS[name].needs_swaps for network in networks for name in network.mechanism.answers)
    if fit["model"] == "none" and with_swaps:
        mechanism.append("The target has no swaps: these are responses that happened to fall nearer to the other item.")
    remarks = [f"Networks hold two items, not {facts.set_size}. {_COMPETITION}"] if facts.set_size > 2 else []
    lacking = [*remarks, *facts.left_out]
    sentences = [_data(fit, facts), _swap_function(fit), _network(networks, facts)]
    return [*sentences, *lacking, *together.sentences, *mechanism]


_COMPETITION = "They model the competition between the cued item and one non-target, not memory for all items."


def _data(fit: dict[str, Any], facts: ReportContext) -> str:
    plural = "s" * (fit["subjects"] != 1)
    who = f"{fit['trials']:,} trials of {fit['subjects']} subject{plural} with {facts.set_size} items"
    model, table = fit["model"], fit["comparison"] or []
    chosen = next((row for row in table if row["model"] == model), None)
    best = table[0]["model"] if table else model
    if model == "none":
        text = NO_MODEL_WITH_SWAPS.format(who=who)
        if chosen is None or best == "none":
            return text + ONLY_THE_CUED
        return text + BEST_WITH_SWAPS.format(best=best, **_margin(chosen))
    standard = fit.get("standard_mixture")  # fits before 0.2 was finished lack it
    by = " according to the three-component mixture (Bays et al. 2009)" if standard else ""
    rates = [(row["trials"], row["swap"]) for row in standard or ()]
    rates = rates or [(row["trials"], row["non_target"]) for row in fit["weights"]]
    swaps = sum(trials * rate for trials, rate in rates) / sum(trials for trials, _ in rates)
    text = SWAP_RATE.format(who=who, percent=100 * swaps, by=by)
    meaning = SWAP_MODELS[model].describe()
    if chosen is None:
        return text + ONE_MODEL.format(model=model, meaning=meaning)
    if best == model:
        margin = BETTER_THAN_NEXT.format(other=table[1]["model"], **_margin(table[1]))
    else:
        margin = SIMPLEST.format(other=best, **_margin(chosen))
    return text + KEPT.format(model=model, meaning=meaning, margin=margin)


def _margin(row: dict[str, Any]) -> dict[str, float]:
    """By how much a model predicts worse than the best, and the standard error of that."""
    return {"gap": -row["elpd_difference"], "error": row["difference_se"]}


def _swap_function(fit: dict[str, Any]) -> str:
    rows, model = fit["swap_function"], fit["model"]
    if model == "none" or not rows:
        return NO_SWAP_FUNCTION
    if model == "constant":
        return CONSTANT.format(BAND.format(**rows[0]))
    if model == "both":
        at = lambda d: min(rows, key=lambda row: abs(row["distance"] - d) + abs(row["report_distance"] - d))
        near, far = at(np.pi / 4), at(np.pi)
        return BOTH.format(BAND.format(**near), _apart(near), BAND.format(**far))
    near = min(rows, key=lambda row: abs(row["distance"] - np.pi / 4))
    far = max(rows, key=lambda row: row["distance"])
    trend = "the bands overlap"
    if near["p_low"] > far["p_high"]:
        trend = "it falls with distance"
    elif near["p_high"] < far["p_low"]:
        trend = "it rises with distance"
    return BY_DISTANCE.format(
        trend=trend,
        near=BAND.format(**near),
        near_degrees=near["degrees"],
        far=BAND.format(**far),
        far_degrees=far["degrees"],
        model=model,
    )


def _apart(row: dict[str, Any]) -> str:
    """How far two items are apart in either feature, in the user's degrees."""
    probe, report = (f"{row[name]:.0f}°" for name in ("degrees", "report_degrees"))
    return f"{probe} apart in both features" if probe == report else f"{probe} apart in probe and {report} in report"


def _network(networks: list[NetworkFindings], facts: ReportContext) -> str:
    # Every network of a discovery is compared with its subject.
    matches = [network.match for network in networks if network.match is not None]
    matched, first = sum(match.matched for match in matches), matches[0]
    against = AGAINST_FIT if first.data is None else AGAINST_DATA
    if len(networks) > 1:
        share = {0: "none is", len(matches): "all are"}.get(matched, f"{matched} of {len(matches)} are")
    else:
        share = f"its behaviour is{'' if matched else ' not'}"
        if off := len(first.where):  # what is off stands beside the verdict, and among what to doubt
            against += f" ({off} criteri{'a fail' if off > 1 else 'on fails'})"
    several = len(networks) > 1
    return TRAINED.format(
        many=f"{len(networks)} networks" if several else "A network",
        verb="come" if several else "comes",
        start=f"started from {facts.start}" if facts.start else "started from scratch",
        minutes=_minutes(networks),
        mad=np.mean([match.swap_curve_mad_fit for match in matches]),
        matched=f"{share} matched",
        against=against,
    )


def _minutes(networks: list[NetworkFindings]) -> float:
    return sum(network.seconds for network in networks) / len(networks) / 60


# --- Methods ---

_MECHANISM = (
    " Mechanism: trials were replayed in groups that shared noise up to a given time and had fresh noise after it; the"
    " share of the outcome's variance between groups measures what is decided by then. States were composed of the"
    " behavioural part of one trial and the memory of another. The swap axis is a discriminant, tested on held-out"
    " trials that report the same colour. Types of error are weights in a regression of held-out activity at the end of"
    " the second delay on the prediction of each type (after Alleman et al. 2024). Slow points are minima of the speed"
    " in the first delay. Planes of the two colours follow Panichello & Buschman (2021)."
)
_METHODS = (
    "{fit} The posterior mean of the swap probability became the target of {networks} ({architecture}), {start} and"
    " trained for {minutes:.1f} min {objectives}. The task was {cueing}; distances between items were those of the"
    " data.{items}{left_out} Each network was then compared with the fitted model and, on the subjects' own trials,"
    " with the data (95 % predictive intervals, corrected for the number of bins)."
) + _MECHANISM
_FROM_SCRATCH = "initialised at random (with a task-optimal preamble of growing horizon, then no swaps),"
_STARTED = "started from {start} ({origin}; mean difference of the swap curves {start_distance:.3f}),"
_MORE_ITEMS = (
    f" The fitted swap function of {{}}-item trials was applied to networks that hold two items. {_COMPETITION}"
)
_CUEING = {
    "feature": (
        "feature-cued: both features of two items are shown conjunctively and the probe feature of one is the cue"
    ),
    "index": "index-cued: the network is told which of two ordered items to report, and not where items are",
}
_TRAINED_BY = {
    "diffusion": (
        "by denoising diffusion through the network's own dynamics (Ho et al. 2020), with a target narrower than the"
        " fitted scatter by what the network's memory adds, so that responses scatter as the subjects' do"
    ),
    "energy": (
        "by the energy score of free-running final responses (Gneiting & Raftery 2007), which leaves open at"
        " what time noise decides the response"
    ),
}
_OBJECTIVES = {
    "diffusion": "by denoising diffusion through the network's own dynamics (Ho et al. 2020)",
    "energy": "by the energy score of free-running final responses (Gneiting & Raftery 2007)",
    "task-optimal": "to be as close to the correct response as possible (squared error)",
}
_NETWORKS = (
    "{} trained with lapsus {} to answer a delayed-estimation task {}, with targets from the Bayesian non-parametric"
    " swap model (Radmard et al. 2025). Swap curves were measured on fresh conditions by the item nearest to the"
    " response."
) + _MECHANISM


def _architecture(network: NetworkFindings) -> str:
    described = network.experiment.network
    branching = " × ".join(map(str, described.get("branching", ())))
    units = f"{described.get('units', 16)} units"
    return units + (f", each with a dendritic tree of {branching} branches" if branching else "")


def methods(fit: dict[str, Any], networks: list[NetworkFindings], facts: ReportContext) -> str:
    """A paragraph to paste: that of the fit, then the networks'."""
    origin = "trained without swaps; ships with lapsus" if facts.shipped else "chosen by the user"
    start = _STARTED.format(start=facts.start, origin=origin, start_distance=facts.start_distance)
    return _METHODS.format(
        fit=fit["methods"],
        networks="a recurrent network" if len(networks) == 1 else f"{len(networks)} recurrent networks",
        architecture=_architecture(networks[0]),
        start=start if facts.start else _FROM_SCRATCH,
        minutes=_minutes(networks),
        objectives=" or ".join(_TRAINED_BY.get(kind, f"by the objective {kind}") for kind in by_objective(networks)),
        cueing=_CUEING[facts.cueing],
        items="" if facts.set_size == 2 else _MORE_ITEMS.format(facts.set_size),
        left_out="".join(f" {sentence}" for sentence in facts.left_out),
    )


def networks_methods(networks: list[NetworkFindings], version: str) -> str:
    """The same for any trained networks."""
    count = len(networks)
    subject = "A recurrent network with dendritic trees was"
    if count > 1:
        subject = f"{count} recurrent networks with dendritic trees were"
    objectives = " or ".join(_OBJECTIVES.get(kind, f"by the objective {kind}") for kind in by_objective(networks))
    return _NETWORKS.format(subject, version, objectives)
