"""A discovery in words: five sentences with numbers, what to doubt, and a methods paragraph to paste."""

import numpy as np

from lapsus.inference.words import MEANING
from lapsus.study.match import TOLERANCE

__all__ = ["REFERENCES", "checks", "five_sentences", "methods", "network_checks"]

REFERENCES = (
    (
        "Radmard P, Bays PM, Lengyel M. Setting up for failure: automatic discovery of the neural mechanisms of"
        " cognitive errors."
    ),
    (
        "Radmard P, Bays PM, Lengyel M (2025). A flexible Bayesian non-parametric mixture model reveals multiple"
        " dependencies of swap errors in visual working memory. arXiv:2505.01178."
    ),
    (
        "Ho J, Jain A, Abbeel P (2020). Denoising diffusion probabilistic models. Advances in Neural Information"
        " Processing Systems 33."
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
FEW_SWAPS = 50
# Models that have all that a model has, itself among them.
CONTAIN = {
    "none": ("none", "constant", "probe", "report", "both"),
    "constant": ("constant", "probe", "report", "both"),
    "probe": ("probe", "both"),
    "report": ("report", "both"),
    "both": ("both",),
}


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _deg(radians: float) -> str:
    return f"{np.degrees(radians):.0f}°"


# --- Five sentences ---


def five_sentences(fit: dict, networks: list[dict], facts: dict) -> list[str]:
    """What was found. fit: Fit.to_dict(); networks: evaluation and mechanism of each; facts: the rest."""
    decoded = _decoded(networks[0]["mechanism"])
    if fit["model"] == "none" and "reason" not in networks[0]["mechanism"]["decoders"]:
        decoded += " The target has no swaps: these are responses that happened to fall nearer to the other item."
    return [
        _data(fit, facts),
        _swap_function(fit),
        _network(networks, facts),
        decoded,
        _geometry(networks[0]["mechanism"]),
    ]


def _data(fit, facts):
    who = (
        f"{fit['trials']:,} trials of {fit['subjects']} subject{'s' * (fit['subjects'] != 1)} with {facts['set_size']}"
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
    weights = fit["weights"]
    total = sum(row["trials"] for row in weights)
    swaps = sum(row["trials"] * row["non_target"] for row in weights) / total
    text = f"In {who}, {_percent(swaps)} of responses report a non-target; "
    table = fit["comparison"]
    if not table:
        return text + f"the behaviour model is {fit['model']} ({MEANING[fit['model']]})."
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
    return text + f"of the models compared, {fit['model']} won ({MEANING[fit['model']]}), {margin}."


def _swap_function(fit):
    rows = fit["swap_function"]
    if fit["model"] == "none" or not rows:
        return (
            "The data give no reason to say that non-targets are reported at all: the swap rate is taken to be zero, "
            "and nothing can be said about what it depends on."
        )
    interval = lambda row: f"{row['p_swap']:.3f} [{row['p_low']:.3f}, {row['p_high']:.3f}]"  # noqa: E731
    if fit["model"] == "constant":
        return (
            f"A single non-target is reported with probability {interval(rows[0])} whatever its distance (95 % band in"
            " brackets)."
        )
    if fit["model"] == "both":
        at = lambda d: min(rows, key=lambda r: abs(r["distance"] - d) + abs(r["report_distance"] - d))  # noqa: E731
        return (
            f"With one non-target, p(swap) is {interval(at(np.pi / 4))} for items 45° apart in both features and "
            f"{interval(at(np.pi))} for items opposite in both (95 % bands)."
        )
    near = min(rows, key=lambda row: abs(row["distance"] - np.pi / 4))
    far = max(rows, key=lambda row: row["distance"])
    verb = "falls" if near["p_swap"] > far["p_swap"] else "rises"
    return (
        f"With one non-target, p(swap) {verb} from {interval(near)} at 45° to {interval(far)} at 180° of {fit['model']}"
        " distance (95 % bands)."
    )


def _network(networks, facts):
    match = networks[0]["match"]
    many = f"{len(networks)} networks" if len(networks) > 1 else "A network"
    verb = "come" if len(networks) > 1 else "comes"
    mad = np.mean([n["match"]["swap_curve_mad_fit"] for n in networks])
    start = f"started from {facts['start']}" if facts["start"] else "trained from scratch"
    text = (
        f"{many} {start} and trained for {facts['train_seconds'] / 60:.1f} min {verb} within {mad:.3f} of the fitted"
        " swap curve on average; its behaviour is "
    )
    against = (
        "the fitted model and the raw data"
        if "data" in match
        else "the fitted model (the raw trials have more items than the network can be shown)"
    )
    if match["matched"]:
        return text + f"matched to {against}."
    more = len(match["where"]) - 1
    return text + f"not matched to {against}: {match['where'][0]}" + (f" (and {more} more, below)." if more else ".")


def _decoded(mechanism):
    part = mechanism["decoders"]
    if "reason" in part:
        return f"Where its swaps arise cannot be decoded: {part['reason']}."
    rows = {row["error"]: row for row in part["attribution"]}
    place = lambda name: f"{rows[name]['difference']:z.2f} [{rows[name]['low']:z.2f}, {rows[name]['high']:z.2f}]"  # noqa: E731
    verdict = {
        "misbinding": "its swaps are misbindings: the colours are exchanged before the cue",
        "misselection": "its swaps are misselections: the cue is read, and the wrong colour is selected after it",
        "misinterpretation": "its swaps are misinterpretations: the cue is taken for the other one",
        "undecided": "whether its swaps are misselections or misinterpretations is undecided",
    }[part["mechanism"]]
    last = part["at_response"]
    return (
        f"Decoding {part['swaps']:,} swap trials, {verdict} (swap minus correct trials on the line to each error:"
        f" before the cue misbinding {place('misbinding')}, in the delay after it misselection {place('misselection')}"
        f" and misinterpretation {place('misinterpretation')}, at the response {last['misselection']:z.2f} and"
        f" {last['misinterpretation']:z.2f})."
    )


def _geometry(mechanism):
    part, rings = mechanism["alignment"], mechanism["rings"]
    if "reason" in part:
        text = f"Alignment of the two colour planes cannot be computed: {part['reason']}"
    else:
        text = (
            f"The planes of the two items' colours have |cos| {part['mean_before']:.2f} before the cue and"
            f" {part['mean_after']:.2f} after it"
        )
        if len(part["degrees"]) > 1:
            text += (
                f" ({part['before'][0]:.2f} for items {part['degrees'][0]}° apart and {part['before'][-1]:.2f} for"
                f" {part['degrees'][-1]}°, before it)"
            )
    if rings.get("distance") is not None:
        measured = f"{rings['distance']:.1f} s.d. apart along the third component, ROC area {rings['roc_area']:.2f}"
        if rings["distance"] < 1:
            return text + f"; at the response, swaps and correct trials do not lie on separate rings ({measured})."
        return text + f"; at the response, swaps and correct trials lie on two rings ({measured})."
    return (
        text + "; whether swaps lie on a ring of their own cannot be said"
        f" ({rings.get('reason') or rings.get('separation_reason')})."
    )


# --- How sure are we ---


def _check(name: str, passed: bool | None, text: str) -> dict:
    return {"name": name, "status": "not checked" if passed is None else "passed" if passed else "failed", "text": text}


def network_checks(networks: list[dict]) -> list[dict]:
    """What holds for any trained network."""
    found = []
    for number, network in enumerate(networks, 1):
        which = f" (network {number})" if len(networks) > 1 else ""
        done, of = network["update"], network["updates"]
        found.append(
            _check(
                "Training reached its end",
                done >= 0.8 * of,
                f"{done:,} of {of:,} updates{which}."
                + (
                    ""
                    if done >= of
                    else " The time was up first, before the learning rate had fallen to its last value."
                ),
            )
        )
        excess = network["evaluation"].get("excess")
        if excess is not None:
            found.append(
                _check(
                    "Denoising",
                    excess < 0.2,
                    f"Excess loss over the exact Bayes denoiser {excess:.3f}{which} (0 is perfect; below 0.2 passes).",
                )
            )
        for part, why in (
            (p, network["mechanism"][p].get("reason")) for p in ("alignment", "rings", "decoders", "prediction")
        ):
            if why:
                found.append(_check(f"Analysis: {part}", False, f"It could not be computed{which}: {why}."))
    verdicts = [n["mechanism"]["decoders"].get("mechanism") for n in networks]
    if len(networks) > 1:
        same = len(set(verdicts)) == 1
        found.append(
            _check(
                "Networks agree",
                same,
                f"The {len(networks)} networks' swaps are decoded as: {', '.join(str(v) for v in verdicts)}.",
            )
        )
    else:
        found.append(
            _check(
                "Networks agree",
                None,
                "One network was trained, so nothing is known of how much networks differ; --networks 3 would say.",
            )
        )
    return found


def checks(fit: dict, networks: list[dict], facts: dict) -> list[dict]:
    """Everything that was checked, failures first, then what was not checked."""
    found = []
    if facts.get("truth"):
        covered = facts["truth"]["covered"]
        found.append(
            _check(
                "Truth recovered",
                covered >= 0.9,
                f"The true swap function of the synthetic observer lies in the 95 % band at {100 * covered:.0f} % of"
                f" distances (mean deviation {facts['truth']['mad']:.3f}).",
            )
        )
    found.append(
        _check("Fit converged", fit["converged"], f"R-hat of the posterior draws is at most {fit['rhat']:.3f}.")
    )
    swaps = sum(row["trials"] * row["non_target"] for row in fit["weights"])
    if fit["model"] == "none":
        text = "No model with swaps is clearly better: there are too few swaps, if any, to say what they depend on."
    elif swaps < FEW_SWAPS:
        text = f"About {swaps:.0f} swap trials in the data: too few (below {FEW_SWAPS}) to say what swaps depend on. "
        text += "The shape of the swap function rests on its prior."
    else:
        text = f"About {swaps:.0f} swap trials in the data."
    found.append(_check("Enough swaps", swaps >= FEW_SWAPS, text))
    table = fit["comparison"]
    if table and len(table) > 1:
        chosen = next(row for row in table if row["model"] == fit["model"])
        # A richer model that contains the chosen one cannot be ruled out by prediction; those that lack what it has
        # can.
        rivals = [row for row in table if row["model"] not in CONTAIN[fit["model"]]]
        if rivals:
            rival = max(rivals, key=lambda row: row["elpd"])
            gap, error = chosen["elpd"] - rival["elpd"], max(rival["difference_se"], chosen["difference_se"])
            found.append(
                _check(
                    "The model is needed",
                    gap > 2 * error,
                    f"{fit['model']} predicts {gap:.1f} ± {error:.1f} nats better than the best model without what it"
                    f" adds ({rival['model']})" + ("." if gap > 2 * error else ": the data do not tell them apart."),
                )
            )
        else:
            best = table[0]
            found.append(
                _check(
                    "Swaps were looked for",
                    True,
                    f"No model with swaps predicts better by more than one standard error (best: {best['model']},"
                    f" {best['elpd'] - chosen['elpd']:.1f} ± {chosen['difference_se']:.1f} nats above).",
                )
            )
        rough = int(chosen["pareto_k_above_0.7"])
        found.append(
            _check(
                "Predictive density is reliable",
                rough == 0,
                f"{rough} trial{'s' * (rough != 1)} with Pareto k above 0.7.",
            )
        )
    if fit["subjects"] > 1:
        found.append(
            _check(
                "Subjects alike",
                None,
                f"{fit['subjects']} subjects were fitted together, as if they were one; `lapsus fit --by subject` looks"
                " at each.",
            )
        )
    for number, network in enumerate(networks, 1):
        which = f" (network {number})" if len(networks) > 1 else ""
        match = network["match"]
        if "data" in match:
            outside = [k for k, out in enumerate(match["predictive_fit"]["outside"]) if out]
            averaged = facts["cueing"] == "index" and fit["model"] in ("probe", "both")
            if number == 1 and averaged:
                text = (
                    "An index-cued network is not told where items are, so the fitted swap function was averaged over"
                    " distances: "
                )
                text += "it cannot follow the data by distance."
                found.append(_check("Fit explains the data", None, text))
            elif number == 1:
                found.append(
                    _check(
                        "Fit explains the data",
                        not outside,
                        (
                            "The subject's swap rates lie within the fit's predictive intervals at every distance."
                            if not outside
                            else "The subject's swap rate lies outside the fit's predictive interval at "
                            + ", ".join(_deg(match["distance"][k]) for k in outside)
                            + "."
                        ),
                    )
                )
            lost = [k for k, out in enumerate(match["predictive_network"]["outside"]) if out]
            found.append(
                _check(
                    "Network matches the data",
                    not lost,
                    (
                        "The subject's swap rates lie within the network's predictive intervals at every"
                        f" distance{which}."
                        if not lost
                        else f"The subject's swap rate lies outside the network's predictive interval{which} at "
                        + ", ".join(_deg(match["distance"][k]) for k in lost)
                        + "."
                    ),
                )
            )
        elif number == 1:
            found.append(
                _check(
                    "Network matches the data",
                    None,
                    f"The trials have {facts['set_size']} items and the network holds two, so it was compared with the"
                    " fitted model's prediction for two items only.",
                )
            )
        mad = match["swap_curve_mad_fit"]
        found.append(
            _check(
                "Network matches the fit: swaps",
                mad <= TOLERANCE,
                f"Mean deviation of the swap curve {mad:.3f}{which} (at most {TOLERANCE} passes), largest"
                f" {match['swap_curve_max_fit']:.3f}.",
            )
        )
        ratio = match["scatter"]["network"] / max(match["scatter"]["fit"], 1e-9)
        found.append(
            _check(
                "Network matches the fit: precision",
                0.8 <= ratio <= 1.25,
                f"Responses scatter {ratio:.2f} times as much as the fitted model's{which} (0.8 to 1.25 passes).",
            )
        )
    found += network_checks(networks)
    order = {"failed": 0, "not checked": 1, "passed": 2}
    return sorted(found, key=lambda check: order[check["status"]])


# --- Methods ---


def methods(fit: dict, facts: dict, version: str) -> str:
    """A paragraph to paste."""
    origin = (
        "the one among those that ship with lapsus whose target swap curve is nearest"
        if facts["shipped"]
        else "chosen by the user"
    )
    start = (
        f"started from the trained network “{facts['start']}” ({origin}; mean difference of the swap curves"
        f" {facts['start_distance']:.3f}),"
        if facts["start"]
        else "trained from scratch (a task-optimal preamble with a growing horizon, then no swaps),"
    )
    items = (
        ""
        if facts["set_size"] == 2
        else (
            f" The fitted swap function of {facts['set_size']}-item trials was applied to a two-item task: the network"
            " holds two items, so it models the competition between the cued item and one non-target, not memory for"
            " all items."
        )
    )
    cueing = (
        "feature-cued: both features of two items are shown conjunctively and the probe feature of one is the cue"
        if facts["cueing"] == "feature"
        else "index-cued: the network is told which of two ordered items to report, and not where items are"
    )
    guesses = (
        ""
        if facts["uniform_target"] or facts["uniform_fit"] == 0
        else f" Guesses ({_percent(facts['uniform_fit'])}) were left out of the target."
    )
    return (
        f"Responses were analysed with lapsus {version}. The Bayesian non-parametric swap model (Radmard et al. 2025)"
        f" was fitted to {fit['trials']:,} trials with a Gaussian-process prior on the swap function, von Mises scatter"
        " and uniform guesses; models without swaps, with constant swaps, and with swaps that depend on the probe"
        " distance, the report distance or both were compared by leave-one-out predictive density (Vehtari et al."
        f" 2017), keeping the simplest within one standard error of the best ({fit['model']}). The posterior mean of"
        " the swap probability became the target of"
        f" {'a recurrent network' if facts['networks'] == 1 else str(facts['networks']) + ' recurrent networks'}"
        f" ({facts['architecture']}), {start} and trained for {facts['train_seconds'] / 60:.1f} min to answer by"
        f" denoising diffusion through its own dynamics (Ho et al. 2020). The task was {cueing}; items had the"
        f" distances of the data.{items} The target's scatter was set so that, with the scatter of the network's own"
        f" memory, responses scatter as the subjects' do.{guesses} The network was then compared with the fitted model"
        " and, shown the subjects' own trials, with the data (95 % predictive intervals, corrected for the number of"
        " bins). Mechanism: alignment of the two items' colour planes over time (Panichello & Buschman 2021),"
        " principal components of memory activity at the response, and cross-validated projections of single trials"
        " onto the lines to three kinds of error (Alleman et al. 2024)."
    )
