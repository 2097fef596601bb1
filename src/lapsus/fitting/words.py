"""A fit in plain English."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lapsus import __version__
from lapsus.fitting.candidates import SCATTER
from lapsus.fitting.compared import comparison, disagreement
from lapsus.fitting.predictive import largest_z
from lapsus.fitting.sampler import CHAINS, RHAT, effective_draws

if TYPE_CHECKING:
    from lapsus.fitting.result import Fit
    from lapsus.fitting.subjects import SubjectFits

__all__ = ["MEANING", "averaged_over", "describe", "describe_subjects", "methods", "sizes_apart", "warning"]

MEANING = {
    "none": "only the cued item is ever reported",
    "constant": "every non-target is reported equally often",
    "probe": "swaps depend on the distance in the probe feature",
    "report": "swaps depend on the distance in the reported feature",
    "both": "swaps depend on the distances in both features",
}
SETS = {
    "shared": "f is the same at all set sizes",
    "offsets": "f has an offset for each set size",
    "shapes": "f has an offset and a shape for each set size",
}
SHOWN = 20  # groups that are listed one by one


def meaning(fit: "Fit") -> str:
    """What the swap model says, in the table's own words."""
    feature = fit.trials.feature_name if fit.trials.feature_name != "report" else "the reported feature"
    probe = fit.trials.probe_name if fit.trials.probe_name != "probe" else "the probe feature"
    return {
        "probe": f"swaps depend on the distance in {probe}",
        "report": f"swaps depend on the distance in {feature}",
        "both": f"swaps depend on the distances in {probe} and {feature}",
    }.get(fit.name, MEANING[fit.name])


def describe(fit: "Fit") -> str:
    """The summary that the command prints."""
    trials = fit.trials
    subjects, sizes = len(np.unique(trials.subject)), np.unique(trials.set_size)
    doubt = disagreement(fit)
    lines = [doubt] if doubt else []
    lines += [
        (
            f"{len(trials):,} trials of {subjects} subject{'s' * (subjects != 1)}, set size{'s' * (len(sizes) > 1)} "
            f"{', '.join(map(str, sizes))}."
        ),
        f"Model: {fit.name} ({meaning(fit)}){_sets(fit)}; scatter {SCATTER[fit.model.emission.name]}.",
    ]
    lines += comparison(fit)
    lines += ["", *_rates(fit), *_scatter(fit), *_bias(fit)]
    if fit.name != "none":
        lines += ["", *_swap_function(fit)]
    if fit.contrasts is not None:
        lines += ["", *_contrasts(fit)]
    lines += ["", *_checks(fit), _diagnosis(fit)]
    lines += [fit.warning] if fit.warning else []
    return "\n".join(lines)


def _sets(fit: "Fit") -> str:
    several = [n for n in fit.model.sizes if n > 1]
    return f"; {SETS[fit.model.sets]}" if len(several) > 1 and fit.name != "none" else ""


def sizes_apart(fit: "Fit") -> list[int]:
    """The set sizes that have each an f of their own; none where they share it or there is one."""
    several = [n for n in fit.model.sizes if n > 1]
    return several if len(several) > 1 and fit.model.sets != "shared" and fit.name != "none" else []


def averaged_over(fit: "Fit", sizes: bool = True) -> str:
    """What one swap function averages: set sizes (unless there is one for each), conditions; "" where nothing."""
    names = ["set sizes"] * bool(sizes and sizes_apart(fit)) + [f"{fit.model.by}s"] * (fit.model.by is not None)
    return f"f averaged over {' and '.join(names)}" if names else ""


def _percent(row: pd.Series, name: str) -> str:
    return f"{100 * row[name]:.1f} % [{100 * row[name + '_low']:.1f}, {100 * row[name + '_high']:.1f}]"


def _rates(fit: "Fit") -> list[str]:
    """Rates by set size (mean of subjects, where there are); then the subjects, where they are few."""
    lines, model = [], fit.model
    who = ", mean of subjects" if model.hierarchical and len(model.subjects) > 1 else ""
    for _, row in fit.mean_rates.iterrows():
        where = f"Set size {int(row['set_size'])}" + (f", {model.by} {row['condition']}" if model.by else "") + who
        text = []
        if row["set_size"] > 1:
            text.append(
                "no non-target reports"
                if fit.name == "none"
                else f"a non-target is reported in {_percent(row, 'swap')} of trials"
                f" ({_percent(row, 'swap_apart')} without non-targets too near to the target to be told apart)"
            )
        if model.uniform:
            text.append(f"a guess in {_percent(row, 'guess')}" if text else f"guesses in {_percent(row, 'guess')}")
        if text:
            lines.append(f"{where}: {', '.join(text)}.")
    if fit.name != "none":
        angles = fit.apart_angle * fit.trials.degrees
        low, high = angles.min(), angles.max()
        shown = f"{low:.0f}°" if high - low < 1 else f"{low:.0f}° to {high:.0f}° ({_groups(fit)})"
        why = "as asked for" if fit.apart is not None else "two circular s.d."
        feature = "reported feature" if fit.trials.feature_name == "report" else fit.trials.feature_name
        lines.append(f"Told apart: non-targets whose {feature} is more than {shown} from the target's ({why}).")
        count = fit.expected_swaps
        lines.append(
            f"Given the responses, {count['expected']:.0f} [{count['low']:.0f}, {count['high']:.0f}] of"
            f" {len(fit.trials):,} trials were swaps."
        )
    if who and len(model.labels) <= SHOWN and fit.name != "none":
        width = max(len(name) for name in (model.by or "", *model.conditions)) + 3 if model.by else 0
        lines += ["", f"subject     {model.by or '':<{width}}set size   non-target reports       guesses"]
        for _, row in fit.rates.sort_values("set_size", kind="stable").iterrows():
            if row["set_size"] > 1:
                which = f"{row['condition']:<{width}}" if model.by else ""
                rates = f"{_percent(row, 'swap'):<24} {_percent(row, 'guess')}"
                lines.append(f"{row['subject']:<11} {which}{row['set_size']:>8}   {rates}")
    elif who:
        lines.append("Every subject's rates are in `rates` (JSON) and estimates.csv.")
    return lines


def _groups(fit: "Fit") -> str:
    """What scatter and rates differ by."""
    model = fit.model
    names = ["set size"] * (len(model.sizes) > 1) + ["subject"] * model.hierarchical
    names += [] if model.by is None else [model.by]
    return f"by {', '.join(names[:-1])}{' and ' * (len(names) > 1)}{names[-1]}"


def _scatter(fit: "Fit") -> list[str]:
    table, degrees = fit.emission, fit.trials.degrees
    means = degrees * table.groupby("set_size")["circular_sd"].mean()
    low, high = means.min(), means.max()
    of = " of orientation" if fit.trials.unit == "degrees_180" else ""
    spread = f"{low:.1f}°{of}" if high - low < 0.05 else f"{low:.1f}° to {high:.1f}°{of} over set sizes"
    return [
        f"Responses scatter around the reported item with a circular s.d. of {spread}"
        f" ({SCATTER[fit.model.emission.name]})."
    ]


def _bias(fit: "Fit") -> list[str]:
    if fit.bias is None:
        return []
    degrees = fit.trials.degrees
    value, low, high = (degrees * fit.bias[name] for name in ("bias", "low", "high"))
    return [f"All responses are shifted by {value:+z.1f}° [{low:+z.1f}, {high:+z.1f}] (bias)."]


def _p_swap(row: pd.Series) -> str:
    return f"{row['p_swap']:.3f} [{row['p_low']:.3f}, {row['p_high']:.3f}]"


def _swap_function(fit: "Fit") -> list[str]:
    trials = fit.trials
    average = f", {over}" if (over := averaged_over(fit)) else ""
    if fit.name == "constant":
        row = fit.swap_function([0.0]).iloc[0]
        return [f"A single non-target is reported instead of the target with probability {_p_swap(row)}{average}."]
    if fit.name == "both":
        shown = fit.swap_function(np.array([[a, b] for a in (np.pi / 4, np.pi) for b in (np.pi / 4, np.pi)]))
        lines = [f"p(swap) with one non-target, by its distances [95 % band]{average}:"]
        lines.append(f"{trials.probe_name:<10} {trials.feature_name}")
        for _, row in shown.iterrows():
            probe, report = trials.probe_degrees * row["distance"], trials.degrees * row["report_distance"]
            lines.append(f"{probe:>6.0f}°    {report:>6.0f}°    {_p_swap(row)}")
        return lines
    degrees = trials.degrees if fit.name == "report" else trials.probe_degrees
    name = trials.feature_name if fit.name == "report" else trials.probe_name
    quarter = np.pi / 4 * np.array([1, 2, 3, 4] if fit.model.even else [-3, -2, -1, 1, 2, 3, 4])
    lines = [f"p(swap) with one non-target, by its {name} distance [95 % band]{average}:"]
    for _, row in fit.swap_function(quarter).iterrows():
        f = f"f = {row['f']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
        at = f"{degrees * row['distance']:.4g}"
        lines.append(f"  {at:>4}°   {_p_swap(row)}   {f}")
    if fit.model.even:
        values = fit.f(quarter[[0, 3]])
        near, far = (f"{degrees * d:.4g}°" for d in quarter[[0, 3]])
        lines.append(
            f"A non-target at {near} is reported more often than one at {far} with posterior probability"
            f" {(values[0] > values[1]).mean():.3f}."
        )
    return lines


def _contrasts(fit: "Fit") -> list[str]:
    if fit.contrasts is None:
        return []
    over = ", averaged over set sizes" if len(fit.model.sizes) > 1 else ""
    lines = [f"Differences between {fit.model.by}s for a typical subject{over} [95 % interval]:"]
    for _, row in fit.contrasts.iterrows():
        rate = row["unit"] == "share of responses"
        if rate or row["unit"] == fit.trials.unit_name:
            factor, unit = (100, " percentage points") if rate else (1, "°")
            low, high = factor * row["low"], factor * row["high"]
            clear = "" if low <= 0 <= high else ", which leaves out 0"
            lines.append(
                f"  {row['condition']} − {row['reference']}, {row['measure']}: {factor * row['difference']:+z.1f}{unit}"
                f" [{low:+z.1f}, {high:+z.1f}]{clear}"
            )
    return lines


def _checks(fit: "Fit") -> list[str]:
    """A sentence for predictive checks that fail, the worst first; one that none did."""
    table = fit.checks
    failed = table[~table["passed"]].assign(size=lambda t: t["z"].abs()).sort_values("size", ascending=False)
    if not len(failed):
        kinds = " and of every subject" if (table["kind"] == "subject").any() else ""
        return [f"Predictive checks: the model reproduces the responses at every set size{kinds}."]
    lines = []
    for _, row in failed.head(3).iterrows():
        if row["measure"] == "nearest":
            what = (
                f"{100 * row['observed']:.1f} % of responses are nearest to a non-target, where the model predicts"
                f" {100 * row['predicted']:.1f} ± {100 * row['sd']:.1f} %"
            )
        else:
            item = "the target" if row["measure"] == "error" else "the nearest item"
            what = (
                f"the mean cosine of the response to {item} is {row['observed']:.3f}, where the model predicts"
                f" {row['predicted']:.3f} ± {row['sd']:.3f}"
            )
        lines.append(f"The model does not reproduce the responses of {row['kind']} {row['which']}: {what}.")
    rest = len(failed) - len(lines)
    return [*lines, *([f"{rest} more predictive checks of {len(table)} fail."] if rest else [])]


def _diagnosis(fit: "Fit") -> str:
    worth = round(effective_draws(fit.rhat, kept=max(fit.draws // CHAINS, 2)), -1)
    return (
        f"{fit.draws} posterior draws, R-hat at most {fit.rhat:.3f} (worth about {worth:.0f} independent draws or more)"
        f"; {fit.seconds:.1f} s."
    )


def warning(fit: "Fit") -> str | None:
    """What did not converge, what that means and what to do; None where all did."""
    if fit.converged:
        return None
    return (
        f"Not converged: the chains disagree (R-hat {fit.rhat:.2f}, which should be below {RHAT}), so its bands are"
        " rough. Fit again with another seed (`seed=1`); if that does not help, use a simpler model (`model`),"
        ' or more trials (`by="hierarchical"` shares them between subjects).'
    )


def describe_subjects(fits: "SubjectFits") -> str:
    """The summary of separate fits."""
    first = next(iter(fits.values()))
    doubt = None if fits.candidates is None else disagreement(fits.whole)
    lines = [doubt] if doubt else []
    lines += [
        f"{len(fits)} subject{'s' * (len(fits) != 1)} fitted separately; model {fits.name} ({meaning(first)}), scatter"
        f" {SCATTER[first.model.emission.name]}."
    ]
    if fits.candidates is not None:
        lines += comparison(fits.whole)
    unit = f" ({first.trials.unit_name})" if first.trials.unit == "degrees_180" else ""
    lines += ["", f"subject     trials   target        non-target    guess         circular s.d.{unit}"]
    for subject, fit in fits.items():
        table, total = fit.weights, fit.weights["trials"].sum()
        mean = {name: 100 * (table[name] * table["trials"]).sum() / total for name in ("target", "non_target", "guess")}
        sd = fit.trials.degrees * (fit.emission["circular_sd"] * table["trials"]).sum() / total
        shares = "       ".join(f"{mean[name]:>5.1f} %" for name in ("target", "non_target", "guess"))
        lines.append(f"{subject:<10} {total:>7}   {shares}       {sd:>5.1f}°")
    poor = [subject for subject, fit in fits.items() if not fit.converged]
    lines += ["", _subjects_checks(fits), *([] if poor else ["Every fit converged."])]
    lines += [f"Subject {subject}: {fits[subject].warning}" for subject in poor]
    return "\n".join(lines)


def _subjects_checks(fits: "SubjectFits") -> str:
    """Whose responses the fits do not reproduce, corrected for the checks of all subjects."""
    tables = {subject: fit.checks["z"].abs() for subject, fit in fits.items()}
    limit = largest_z(sum(len(table) for table in tables.values()))
    failed = [subject for subject, table in tables.items() if (table > limit).any()]
    if not failed:
        return "Predictive checks: the model reproduces the responses of every subject at every set size."
    return f"The model does not reproduce the responses of subject{'s' * (len(failed) > 1)} {', '.join(failed)}."


def methods(fit: "Fit", separate: int | None = None) -> str:
    """One paragraph for a paper's methods."""
    model, trials = fit.model, fit.trials
    pooled = ["the parameters of the scatter", *["the probability of a guess"] * model.uniform]
    pooled = [*["the level of the swap function"] * (model.name != "none"), *pooled, *["the bias"] * model.bias]
    listed = " and ".join([", ".join(pooled[:-1])] * (len(pooled) > 1) + pooled[-1:])
    parts = [
        f"Responses were described by a mixture: on each trial one item is reported with {SCATTER[model.emission.name]}"
        f" scatter{', or none (a uniform guess)' if model.uniform else ''}."
    ]
    if model.name == "none":
        parts.append("The cued item was the only one that could be reported.")
    else:
        shape = "a constant" if model.prior is None else "a Gaussian process on the circle (C2-Wendland kernel)"
        parts.append(
            "The log odds of reporting a non-target instead of the target, the swap function, were"
            f" {shape}; {SETS[model.sets] if len(model.sizes) > 1 else 'one set size was fitted'}."
        )
    if separate:
        parts.append(f"The {separate} subjects were fitted separately.")
    elif any(tier.name == "subject" for tier in model.tiers):
        pooled_over = {
            "subject": "subjects",
            "subject in condition": f"subjects in each {model.by}",
            "group": "subjects in each set size" + (f" and {model.by}" if model.by else ""),
        }
        units = ", and of ".join(pooled_over[tier.name] for tier in model.tiers if tier.name in pooled_over)
        parts.append(f"{listed[0].upper()}{listed[1:]} had partially pooled offsets of {units}, with learned scales.")
    if model.by:
        parts.append(f"The values of {model.by} entered as an effect on {listed.removesuffix(' and the bias')}.")
    if model.bias:
        parts.append("A constant response bias was included.")
    table = fit.candidates
    if table is not None:
        rules = []
        if "emission" in table and len(table[["model", "emission"]].drop_duplicates()) > 1:
            rules.append("of swap models and scatters the simplest within one standard error of the best was kept")
            if table["model"].nunique() > 1 and table["emission"].nunique() > 1:
                rules.append(
                    "not all combinations were tried, but all swap models, the other scatters with the two best of"
                    " these, and all swap models with the scatter of the best"
                )
        elif "emission" in table:
            rules.append("swap model and scatter were chosen beforehand")
        if "sets" in table and table["sets"].nunique() > 1 and model.name != "none":
            rules.append(
                "f with offsets of set sizes was kept unless another form predicted better by more than one standard"
                " error"
            )
        if "bias" in table and table["bias"].nunique() > 1:
            rules.append("a bias was included if it predicted better")
        parts.append(
            f"{len(table)} models were compared by approximate leave-one-out predictive density (Laplace posterior,"
            f" Pareto-smoothed importance sampling; Vehtari, Gelman & Gabry 2017)"
            f"{': ' if rules else ''}{'; '.join(rules)}."
        )
    drawn = f"{fit.draws} draws{' a subject' * bool(separate)}, R-hat at most {fit.rhat:.2f}"
    parts.append(
        f"The posterior was sampled by Hamiltonian Monte Carlo ({drawn}) with lapsus {__version__}; intervals are"
        f" central 95 % credible intervals; angles are in {trials.unit_name}."
    )
    return " ".join(parts)
