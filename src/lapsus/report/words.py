"""A discovery in words: sentences with numbers, what to doubt, and a methods paragraph to paste."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lapsus.fitting.swap_models import SWAP_MODELS
from lapsus.mechanism.registry import QUESTIONS
from lapsus.report.check_list import Truth
from lapsus.report.determined import Determined, objective_of
from lapsus.report.findings import NetworkFindings

__all__ = ["REFERENCES", "Facts", "discovery_sentences", "methods", "networks_methods"]

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
class Facts:
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


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


# --- Sentences ---


def discovery_sentences(
    fit: dict[str, Any], networks: list[NetworkFindings], facts: Facts, together: Determined
) -> list[str]:
    """What was found: the data, the swap function, the networks, what they say together, and the mechanism of a single
    one. fit: Fit.to_dict()."""
    told = []
    if len(networks) == 1:
        mechanism = networks[0].mechanism
        told = [mechanism.sentence(name) for name, question in QUESTIONS.items() if question.verdict is not None]
    with_swaps = any(QUESTIONS[name].needs_swaps for network in networks for name in network.mechanism.answers)
    if fit["model"] == "none" and with_swaps:
        told.append("The target has no swaps: these are responses that happened to fall nearer to the other item.")
    shown = [f"Networks hold two items, not {facts.set_size}. {_COMPETITION}"] if facts.set_size > 2 else []
    lacking = [*shown, *facts.left_out]
    return [_data(fit, facts), _swap_function(fit), _network(networks, facts), *lacking, *together.sentences, *told]


_COMPETITION = "They model the competition between the cued item and one non-target, not memory for all items."


def _data(fit: dict[str, Any], facts: Facts) -> str:
    who = (
        f"{fit['trials']:,} trials of {fit['subjects']} subject{'s' * (fit['subjects'] != 1)} with {facts.set_size}"
        " items"
    )
    if fit["model"] == "none":
        best = (fit["comparison"] or [None])[0]
        text = f"In {who}, no model with swaps predicts left-out responses better by more than one standard error"
        if best is None or best["model"] == "none":
            return text + ", so the model without swaps (only the cued item is ever reported) was kept."
        chosen = next(row for row in fit["comparison"] if row["model"] == "none")
        gap = f"{-chosen['elpd_difference']:.1f} ± {chosen['difference_se']:.1f} nats above"
        return text + f" (the best, {best['model']}, is {gap}), so the model without swaps was kept."
    standard = fit.get("standard_mixture")  # fits before 0.2 was finished lack it
    by = " by the three-component mixture (Bays et al. 2009)" if standard else ""
    rates = standard or [{"trials": row["trials"], "swap": row["non_target"]} for row in fit["weights"]]
    swaps = sum(row["trials"] * row["swap"] for row in rates) / sum(row["trials"] for row in rates)
    text = f"In {who}, {_percent(swaps)} of responses report a non-target{by}; "
    table, meaning = fit["comparison"], SWAP_MODELS[fit["model"]].describe()
    if not table:
        return text + f"the behaviour model is {fit['model']} ({meaning})."
    chosen = next(row for row in table if row["model"] == fit["model"])
    if table[0]["model"] == fit["model"]:
        margin = (
            f"predicting left-out responses {-table[1]['elpd_difference']:.1f} ± {table[1]['difference_se']:.1f} nats"
            f" better than the next ({table[1]['model']})"
        )
    else:
        margin = (
            f"the simplest within one standard error of the best ({table[0]['model']}, {-chosen['elpd_difference']:.1f}"
            f" ± {chosen['difference_se']:.1f} nats above it)"
        )
    return text + f"of the models compared, {fit['model']} was kept ({meaning}), {margin}."


def _swap_function(fit: dict[str, Any]) -> str:
    rows = fit["swap_function"]
    if fit["model"] == "none" or not rows:
        return (
            "The data give no reason to say that non-targets are reported at all: the swap rate is taken to be zero, "
            "and nothing can be said about what it depends on."
        )
    interval = lambda row: f"{row['p_swap']:.3f} [{row['p_low']:.3f}, {row['p_high']:.3f}]"
    if fit["model"] == "constant":
        return (
            f"A single non-target is reported with probability {interval(rows[0])} whatever its distance (95 % band in"
            " brackets)."
        )
    if fit["model"] == "both":
        at = lambda d: min(rows, key=lambda r: abs(r["distance"] - d) + abs(r["report_distance"] - d))
        return (
            f"With one non-target, p(swap) is {interval(at(np.pi / 4))} for items {_apart(at(np.pi / 4))} and "
            f"{interval(at(np.pi))} for items opposite in both (95 % bands)."
        )
    near = min(rows, key=lambda row: abs(row["distance"] - np.pi / 4))
    far = max(rows, key=lambda row: row["distance"])
    verb = "falls" if near["p_swap"] > far["p_swap"] else "rises"
    return (
        f"With one non-target, p(swap) {verb} from {interval(near)} at {_shown(near):.0f}° to {interval(far)} at"
        f" {_shown(far):.0f}° of {fit['model']} distance (95 % bands)."
    )


def _shown(row: dict[str, Any], feature: str = "") -> float:
    """The distance of a row in the user's degrees."""
    return row[f"{feature}degrees"]


def _apart(row: dict[str, Any]) -> str:
    probe, report = f"{_shown(row):.0f}°", f"{_shown(row, 'report_'):.0f}°"
    return f"{probe} apart in both features" if probe == report else f"{probe} apart in probe and {report} in report"


def _network(networks: list[NetworkFindings], facts: Facts) -> str:
    # Every network of a discovery is compared with its subject.
    matches = [one.match for one in networks if one.match is not None]
    many, verb = (f"{len(networks)} networks", "come") if len(networks) > 1 else ("A network", "comes")
    mad = np.mean([match.swap_curve_mad_fit for match in matches])
    start = f"started from {facts.start}" if facts.start else "trained from scratch"
    against = (
        "the fitted model and the raw data"
        if matches[0].data is not None
        else "the fitted model (the raw trials have more items than the network can be shown)"
    )
    good = sum(match.matched for match in matches)
    if len(networks) > 1:
        is_matched = {0: "none is matched", len(matches): "all are matched"}.get(
            good, f"{good} of {len(matches)} are matched"
        )
    else:
        # What is off stands beside the verdict, and among what to doubt.
        is_matched = f"its behaviour is {'' if good else 'not '}matched"
        off = len(matches[0].where)
        against += f" ({off} point{'s are' if off > 1 else ' is'} off)" if off else ""
    return (
        f"{many} {start} and trained for {_minutes(networks):.1f} min {verb} within {mad:.3f} of the fitted swap curve"
        f" on average; {is_matched} to {against}."
    )


def _minutes(networks: list[NetworkFindings]) -> float:
    return sum(n.seconds for n in networks) / len(networks) / 60


# --- Methods ---


_MECHANISM = (
    " Mechanism: trials were replayed with shared noise up to a time and other noise after it, and the share of the"
    " outcome's variance between such groups was taken for what is decided by then; states were put together from the"
    " behavioural part of one trial and the memory of another; the axis of swaps is a discriminant of held-out trials"
    " that report the same colour; types of error are weights in a regression of held-out activity at the end of the"
    " second delay on what each type predicts (after Alleman et al. 2024); slow points are minima of the speed in the"
    " first delay. Planes of the two colours: Panichello & Buschman (2021)."
)


def _architecture(network: NetworkFindings) -> str:
    described = network.experiment.network
    branching = " × ".join(map(str, described.get("branching", ())))
    units = f"{described.get('units', 16)} units"
    return units + (f", each with a dendritic tree of {branching} branches" if branching else "")


def methods(fit: dict[str, Any], networks: list[NetworkFindings], facts: Facts) -> str:
    """A paragraph to paste: that of the fit, then the networks'."""
    origin = "trained without swaps; ships with lapsus" if facts.shipped else "chosen by the user"
    start = (
        f"started from {facts.start} ({origin}; mean difference of the swap curves {facts.start_distance:.3f}),"
        if facts.start
        else "trained from scratch (a task-optimal preamble with a growing horizon, then no swaps),"
    )
    items = (
        ""
        if facts.set_size == 2
        else (
            f" The fitted swap function of {facts.set_size}-item trials was applied to networks that hold two items."
            f" {_COMPETITION}"
        )
    )
    cueing = (
        "feature-cued: both features of two items are shown conjunctively and the probe feature of one is the cue"
        if facts.cueing == "feature"
        else "index-cued: the network is told which of two ordered items to report, and not where items are"
    )
    dropped = "".join(f" {sentence}" for sentence in facts.left_out)
    return (
        f"{fit['methods']} The posterior mean of the swap probability became the target of"
        f" {'a recurrent network' if len(networks) == 1 else str(len(networks)) + ' recurrent networks'}"
        f" ({_architecture(networks[0])}), {start} and trained for {_minutes(networks):.1f} min"
        f" {_objectives(networks)} The task was {cueing}; items had the distances of the data.{items}{dropped} Each"
        " network was then compared with the fitted model and, shown the subjects' own trials, with the data (95 %"
        " predictive intervals, corrected for the number of bins)." + _MECHANISM
    )


_TRAINED_BY = {
    "diffusion": (
        "by denoising diffusion through the network's own dynamics (Ho et al. 2020), with a target so much narrower"
        " than the fitted scatter that, with the scatter of the network's memory, responses scatter as the subjects' do"
    ),
    "energy": (
        "by the energy score of free-running final responses (Gneiting & Raftery 2007), which leaves open when in the"
        " trial noise decides the response"
    ),
}


def _objectives(networks: list[NetworkFindings]) -> str:
    kinds = dict.fromkeys(map(objective_of, networks))
    return " or ".join(_TRAINED_BY.get(kind, f"by the objective {kind}") for kind in kinds) + "."


def networks_methods(count: int, version: str) -> str:
    """The same for any trained networks."""
    who, own = (f"{count} recurrent networks with dendritic trees were", "their own")
    if count == 1:
        who, own = "A recurrent network with dendritic trees was", "its own"
    return (
        f"{who} trained with lapsus {version} to answer a delayed-estimation task by denoising diffusion through {own}"
        " dynamics (Ho et al. 2020), with targets from the Bayesian non-parametric swap model (Radmard et al. 2025)."
        " Swap curves were measured on fresh conditions by the item nearest to the response." + _MECHANISM
    )
