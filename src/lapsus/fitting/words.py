"""A fit in plain English: its summary, and a paragraph for a paper's methods."""

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

__all__ = ["averaged_over", "describe", "describe_subjects", "methods", "sizes_apart", "warning"]

SETS = {
    "shared": "f is the same at all set sizes",
    "offsets": "f has an offset for each set size",
    "shapes": "f has an offset and a shape for each set size",
}
SHOWN = 20  # groups that are listed one by one
STANDARD = "the three-component mixture (Bays et al. 2009)"


def describe(fit: "Fit") -> str:
    """The summary that the command prints."""
    doubt = disagreement(fit)
    lines = [doubt] if doubt else []
    lines += [_who(fit), *fit.trials.notes, "", *_headline(fit)]
    lines += ["", f"Model: {fit.name} ({_meaning(fit)}){_sets(fit)}; scatter {SCATTER[fit.model.emission.name]}."]
    lines += comparison(fit)
    lines += ["", *_rates(fit), *_scatter(fit), *_bias(fit)]
    if fit.swap_model.swaps:
        lines += ["", *_swap_function(fit)]
    if fit.contrasts is not None:
        lines += ["", *_contrasts(fit)]
    lines += ["", *_checks(fit), _diagnosis(fit)]
    lines += [fit.warning] if fit.warning else []
    return "\n".join(lines)


def _meaning(fit: "Fit") -> str:
    return fit.swap_model.describe(fit.trials.probe_name, fit.trials.feature_name)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _who(fit: "Fit") -> str:
    trials = fit.trials
    sizes = np.unique(trials.set_size)
    subjects = _plural(len(np.unique(trials.subject)), "subject")
    return (
        f"{_plural(len(trials), 'trial')} of {subjects}, set size{'s' * (len(sizes) > 1)} {', '.join(map(str, sizes))}."
    )


def _by(fit: "Fit") -> str:
    return " and ".join(fit.model.by)


def _sets(fit: "Fit") -> str:
    several = [n for n in fit.model.sizes if n > 1]
    return f"; {SETS[fit.model.sets]}" if len(several) > 1 and fit.swap_model.swaps else ""


def sizes_apart(fit: "Fit") -> list[int]:
    """The set sizes that have each an f of their own; none where they share it or there is one."""
    several = [n for n in fit.model.sizes if n > 1]
    return several if len(several) > 1 and fit.model.sets != "shared" and fit.swap_model.swaps else []


def averaged_over(fit: "Fit", sizes: bool = True) -> str:
    """What one swap function averages: set sizes (unless there is one for each), conditions; "" where nothing."""
    names = ["set sizes"] * bool(sizes and sizes_apart(fit)) + [f"{name}s" for name in fit.model.by]
    return f"f averaged over {_listed(names)}" if names else ""


def _percent(row: pd.Series, name: str) -> str:
    return f"{100 * row[name]:.1f} % [{100 * row[name + '_low']:.1f}, {100 * row[name + '_high']:.1f}]"


def _cell(fit: "Fit", row: pd.Series) -> str:
    where = f"set size {int(row['set_size'])}"
    return f"{where}, {fit.model.in_words(row['condition'])}" if fit.model.by else where


def _headline(fit: "Fit") -> list[str]:
    """The rate that other studies report, beside that of the model that was kept, and why they differ."""
    standard = fit.standard
    if standard is None:
        return []
    several = standard[standard["set_size"] > 1]
    about = "" if fit.is_standard else " (by Laplace's approximation)"
    lines = [f"Non-target reports by {STANDARD}, for comparison with other studies{about}:"]
    lines += [f"  {_cell(fit, row)}: {_percent(row, 'swap')}" for _, row in several.iterrows()]
    if fit.is_standard:
        return lines
    if not fit.swap_model.swaps:
        return [*lines, "The model that was kept does without them: they do not predict left-out responses better."]
    own = fit.mean_rates[fit.mean_rates["set_size"] > 1]
    lines.append(f"By the model that was kept ({fit.name}), for non-targets that can be told apart from the target:")
    lines += [f"  {_cell(fit, row)}: {_percent(row, 'swap_apart')}" for _, row in own.iterrows()]
    reasons = []
    if fit.swap_model.features:
        reasons.append("lets some non-targets be reported more often than others")
    if fit.model.emission.name != "von_mises":
        reasons.append(f"gives responses {SCATTER[fit.model.emission.name]} scatter")
    if not fit.model.uniform:
        reasons.append("has no guesses")
    lines.append(
        f"They differ because the kept model {_listed(reasons)}: near the target a swap cannot be told from scatter,"
        " and models divide such responses differently."
    )
    return lines


def _rates(fit: "Fit") -> list[str]:
    """Rates by set size (mean of subjects, where there are); then the subjects, where they are few."""
    lines, model = [], fit.model
    who = ", mean of subjects" if model.hierarchical and len(model.subjects) > 1 else ""
    for _, row in fit.mean_rates.iterrows():
        text = []
        if row["set_size"] > 1:
            text.append(
                f"a non-target is reported in {_percent(row, 'swap')} of trials"
                f" ({_percent(row, 'swap_apart')} without non-targets too near to the target to be told apart)"
                if fit.swap_model.swaps
                else "no non-target reports"
            )
        if model.uniform:
            text.append(f"a guess in {_percent(row, 'guess')}" if text else f"guesses in {_percent(row, 'guess')}")
        if text:
            where = _cell(fit, row)
            lines.append(f"{where[0].upper()}{where[1:]}{who}: {', '.join(text)}.")
    if fit.swap_model.swaps:
        lines += _told_apart(fit)
    if who and len(model.labels) <= SHOWN and fit.swap_model.swaps:
        width = max(len(name) for name in (_by(fit), *model.conditions)) + 3 if model.by else 0
        lines += ["", f"subject     {_by(fit):<{width}}set size   non-target reports       guesses"]
        for _, row in fit.rates.sort_values("set_size", kind="stable").iterrows():
            if row["set_size"] > 1:
                which = f"{row['condition']:<{width}}" if model.by else ""
                rates = f"{_percent(row, 'swap'):<24} {_percent(row, 'guess')}"
                lines.append(f"{row['subject']:<11} {which}{row['set_size']:>8}   {rates}")
    elif who:
        lines.append("Every subject's rates are in `rates` (JSON) and estimates.csv.")
    return lines


def _told_apart(fit: "Fit") -> list[str]:
    angles = fit.apart_angle * fit.trials.degrees
    low, high = angles.min(), angles.max()
    model = fit.model
    names = ["set size"] * (len(model.sizes) > 1) + ["subject"] * model.hierarchical + list(model.by)
    shown = f"{low:.0f}°" if high - low < 1 else f"{low:.0f}° to {high:.0f}° (by {_listed(names)})"
    why = "as asked for" if fit.apart is not None else "two circular s.d."
    feature = "reported feature" if fit.trials.feature_name == "report" else fit.trials.feature_name
    count = fit.expected_swaps
    return [
        f"Told apart: non-targets whose {feature} is more than {shown} from the target's ({why}).",
        f"Given the responses, {count['expected']:.0f} [{count['low']:.0f}, {count['high']:.0f}] of"
        f" {len(fit.trials):,} trials were swaps.",
    ]


def _scatter(fit: "Fit") -> list[str]:
    means = fit.trials.degrees * fit.emission.groupby("set_size")["circular_sd"].mean()
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
    value, low, high = (fit.trials.degrees * fit.bias[name] for name in ("bias", "low", "high"))
    return [f"All responses are shifted by {value:+z.1f}° [{low:+z.1f}, {high:+z.1f}] (bias)."]


def _p_swap(row: pd.Series) -> str:
    return f"{row['p_swap']:.3f} [{row['p_low']:.3f}, {row['p_high']:.3f}]"


def _swap_function(fit: "Fit") -> list[str]:
    trials, features = fit.trials, fit.swap_model.features
    average = f", {over}" if (over := averaged_over(fit)) else ""
    if not features:
        row = fit.swap_function([0.0]).iloc[0]
        return [f"A single non-target is reported instead of the target with probability {_p_swap(row)}{average}."]
    if len(features) == 2:
        shown = fit.swap_function(np.array([[a, b] for a in (np.pi / 4, np.pi) for b in (np.pi / 4, np.pi)]))
        lines = [f"p(swap) with one non-target, by its distances [95 % band]{average}:"]
        lines.append(f"{trials.probe_name:<10} {trials.feature_name}")
        for _, row in shown.iterrows():
            probe, report = trials.probe_degrees * row["distance"], trials.degrees * row["report_distance"]
            lines.append(f"{probe:>6.0f}°    {report:>6.0f}°    {_p_swap(row)}")
        return lines
    by_report = features == ("report",)
    degrees = trials.degrees if by_report else trials.probe_degrees
    name = trials.feature_name if by_report else trials.probe_name
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
    """Differences from the reference, averaged over set sizes; in the rate of swaps also at each set size."""
    table = fit.contrasts
    if table is None:
        return []
    over = ", averaged over set sizes unless one is named" if len(fit.model.sizes) > 1 else ""
    compared = " and ".join(f"{factor}s" for factor in fit.model.by)
    lines = [f"Differences between {compared} for a typical subject{over} [95 % interval]:"]
    references = {levels[0] for levels in fit.model.levels.values()}
    shown = table[table["reference"].isin(references) | table["factor"].str.contains("×")]
    shown = shown[(shown["set_size"] == "all") | (shown["measure"] == "swap rate")]
    for _, row in shown.iterrows():
        rate = row["unit"] == "share of responses"
        if rate or row["unit"] == fit.trials.unit_name:
            factor, unit = (100, " percentage points") if rate else (1, "°")
            size = "" if row["set_size"] == "all" else f", set size {row['set_size']}"
            low, high = factor * row["low"], factor * row["high"]
            clear = "" if low <= 0 <= high else " (the interval excludes 0)"
            lines.append(
                f"  {row['condition']} − {row['reference']}, {row['measure']}{size}:"
                f" {factor * row['difference']:+z.1f}{unit} [{low:+z.1f}, {high:+z.1f}]{clear}"
            )
    return [*lines, "All pairs, set sizes and measures are in contrasts.csv and `contrasts` (JSON)."]


def _checks(fit: "Fit") -> list[str]:
    """A sentence for predictive checks that fail, the worst first; one that none did."""
    table = fit.checks
    outside, distances = int(table["outside"].sum()), (table["kind"] == "distance").any()
    failed = table[~table["passed"]].assign(size=lambda t: t["z"].abs()).sort_values("size", ascending=False)
    if not len(failed):
        kinds = ["at every set size", *["in every condition"] * bool(fit.model.by)]
        kinds += ["of every subject"] * bool((table["kind"] == "subject").any())
        kinds += ["at every distance of non-targets"] * bool(distances)
        lines = [f"Predictive checks: the model reproduces the responses {_listed(kinds)}."]
        if outside:
            lines.append(
                f"{outside} of {len(table)} checked values lie outside their own 95 % band, where about"
                f" {0.05 * len(table):.1f} are expected by chance; none is further out than chance allows."
            )
        return lines
    lines = []
    for _, row in failed.head(3).iterrows():
        where = row["which"] if row["kind"] == "condition" else f"{row['kind']} {row['which']}"
        if row["kind"] == "distance":
            where = f"trials with a non-target at a distance of {row['which']}"
        lines.append(f"The model does not reproduce the responses of {where}: {_check(row)}.")
    rest = len(failed) - len(lines)
    return [*lines, *([f"{rest} more predictive checks of {len(table)} fail."] if rest else [])]


def _check(row: pd.Series) -> str:
    if row["measure"] == "nearest":
        item = "that non-target" if row["kind"] == "distance" else "a non-target"
        return (
            f"{100 * row['observed']:.1f} % of responses are nearest to {item}, where the model predicts"
            f" {100 * row['predicted']:.1f} ± {100 * row['sd']:.1f} %"
        )
    item = "the target" if row["measure"] == "error" else "the nearest item"
    return (
        f"the mean cosine of the response to {item} is {row['observed']:.3f}, where the model predicts"
        f" {row['predicted']:.3f} ± {row['sd']:.3f}"
    )


def _diagnosis(fit: "Fit") -> str:
    worth = round(effective_draws(fit.rhat, kept=max(fit.draws // CHAINS, 2)), -1)
    more = "" if fit.rhat < 1.01 else "; `draws=4096` brings R-hat nearer to 1.01"
    return (
        f"{fit.draws} posterior draws, R-hat at most {fit.rhat:.3f} (worth about {worth:.0f} independent draws or more"
        f"{more}); {fit.seconds:.1f} s."
    )


def warning(fit: "Fit") -> str | None:
    """What did not converge, what that means and what to do; None where all did."""
    if fit.converged:
        return None
    return (
        f"Not converged: the chains disagree (R-hat {fit.rhat:.3f}, which should be below {RHAT}), so its bands are"
        " rough. Fit again with more draws (`draws=4096`) or another seed (`seed=1`); if that does not help, use a"
        ' simpler model (`model`), or more trials (`by="hierarchical"` pools them across subjects).'
    )


def describe_subjects(fits: "SubjectFits") -> str:
    """The summary of separate fits."""
    first = next(iter(fits.values()))
    doubt = None if fits.candidates is None else disagreement(fits.whole)
    lines = [doubt] if doubt else []
    lines += [
        f"{_plural(len(fits), 'subject')} fitted separately; model {fits.name} ({_meaning(first)}), scatter"
        f" {SCATTER[first.model.emission.name]}.",
        *first.trials.notes,
    ]
    if fits.candidates is not None:
        lines += comparison(fits.whole)
    unit = f" ({first.trials.unit_name})" if first.trials.unit == "degrees_180" else ""
    columns = "target        non-target    guess         standard mixture's non-target"
    lines += ["", f"subject     trials   {columns}   circular s.d.{unit}"]
    for subject, fit in fits.items():
        trials = fit.weights["trials"]
        mean = {name: 100 * np.average(fit.weights[name], weights=trials) for name in ("target", "non_target", "guess")}
        sd = fit.trials.degrees * np.average(fit.emission["circular_sd"], weights=trials)
        shares = "       ".join(f"{mean[name]:>5.1f} %" for name in ("target", "non_target", "guess"))
        standard = "      –"
        if fit.standard is not None:
            standard = f"{100 * np.average(fit.standard['swap'], weights=fit.standard['trials']):>5.1f} %"
        lines.append(f"{subject:<10} {trials.sum():>7}   {shares}       {standard}{'':<25}{sd:>5.1f}°")
    poor = [subject for subject, fit in fits.items() if not fit.converged]
    lines += [f"Shares are of all trials; the standard mixture is {STANDARD}.", ""]
    lines += [_subjects_checks(fits), *([] if poor else ["Every fit converged."])]
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


# --- Methods ---


def methods(fit: "Fit", separate: int | None = None) -> str:
    """One paragraph for a paper's methods. separate: how many subjects were fitted one by one."""
    sentences = [
        *_data_methods(fit, separate),
        *_model_methods(fit),
        *_pooling_methods(fit, separate),
        *_comparison_methods(fit),
    ]
    each = " for each subject" if separate else ""
    sentences.append(
        f"The posterior was sampled by Hamiltonian Monte Carlo ({fit.draws} draws{each}, R-hat at most {fit.rhat:.2f})"
        f" with lapsus {__version__}; intervals are central 95 % credible intervals; angles are in"
        f" {fit.trials.unit_name}."
    )
    return " ".join(sentences)


def _data_methods(fit: "Fit", separate: int | None) -> list[str]:
    trials = fit.trials
    subjects = len(np.unique(trials.subject))
    sizes = _listed([str(n) for n in np.unique(trials.set_size)])
    left_out = sum(trials.dropped.values())
    if separate:
        return [f"The trials of {separate} subjects with {sizes} items were fitted separately."]
    pooled = ""
    if subjects > 1 and not fit.model.hierarchical:
        pooled = ", pooled: differences between subjects were not modelled"
    out = f"; {_plural(left_out, 'trial')} {'were' if left_out > 1 else 'was'} left out" if left_out else ""
    who = f"{_plural(len(trials), 'trial')} of {_plural(subjects, 'subject')}"
    return [f"{who} with {sizes} items were fitted{pooled}{out}."]


def _model_methods(fit: "Fit") -> list[str]:
    model = fit.model
    guesses = ", or none (a uniform guess)" if model.uniform else ""
    sentences = [
        "Responses were described by a mixture (Bays, Catalao & Husain 2009; Radmard, Bays & Lengyel 2025): on each"
        f" trial one item is reported with {SCATTER[model.emission.name]} scatter{guesses}."
    ]
    if not fit.swap_model.swaps:
        sentences.append("The cued item was the only one that could be reported.")
    else:
        shape = "a constant"
        if fit.swap_model.features:
            shape = "a Gaussian process on the circle (C2-Wendland kernel; log scale N(log 0.7, 1))"
        sets = SETS[model.sets] if len(model.sizes) > 1 else "one set size was fitted"
        sentences.append(
            "The log odds of reporting a non-target instead of the target, the swap function f, were"
            f" {shape} with mean N(−2.5, 2); {sets}."
        )
    priors = [
        f"{name} N({mean:g}, {scale:g})"
        for name, mean, scale in zip(model.emission.names, model.emission.means, model.emission.scales, strict=True)
    ]
    if model.uniform:
        priors.append("logit of a guess N(−3, 2)")
    if model.bias:
        sentences.append("A constant response bias was included (N(0, 0.15) radians).")
    sentences.append(f"Priors of the other parameters, on their logarithmic or logit scale: {', '.join(priors)}.")
    return sentences


def _pooling_methods(fit: "Fit", separate: int | None) -> list[str]:
    model, by = fit.model, _by(fit)
    effects = ["the level of the swap function"] * fit.swap_model.swaps + ["the parameters of the scatter"]
    effects += ["the probability of a guess"] * model.uniform
    sentences = []
    names = {tier.name for tier in model.tiers}
    if model.by:
        text = f"The values of {by} entered as an effect on {_listed(effects)} (N(0, 1); reference"
        text += f" {', '.join(levels[0] for levels in model.levels.values())})"
        deviations = ["each combination of them"] * ("condition" in names)
        deviations += ["each condition in each set size"] * ("condition in set size" in names)
        text += f", with partially pooled deviations of {_listed(deviations)}" if deviations else ""
        sentences.append(f"{text}.")
    if not separate and "subject" in names:
        units = ["subjects"]
        units += [f"subjects in each {by}"] * ("subject in condition" in names)
        units += ["subjects in each set size" + (f" and {by}" if by else "")] * ("group" in names)
        shifted = _listed(effects + ["the bias"] * model.bias)
        sentences.append(
            f"{shifted[0].upper()}{shifted[1:]} had partially pooled offsets of {_listed(units)}, whose standard"
            " deviations were estimated."
        )
        if len(units) > 1 and model.emission.tails:
            sentences.append(f"The {model.emission.tails} of the scatter had offsets of subjects only.")
    return sentences


def _comparison_methods(fit: "Fit") -> list[str]:
    table = fit.candidates
    if table is None:
        return []
    rules = []
    if len(table[["model", "emission"]].drop_duplicates()) > 1:
        rules.append("among swap models and scatters, the simplest within one standard error of the best was kept")
        if table["model"].nunique() > 1 and table["emission"].nunique() > 1:
            rules.append(
                "not all combinations were tried, but first all swap models, then the other scatters with the two best"
                " of these, then all swap models with the best scatter"
            )
    else:
        rules.append("swap model and scatter were chosen beforehand")
    if table["sets"].nunique() > 1 and fit.swap_model.swaps:
        rules.append(
            "f with an offset for each set size was kept unless another form predicted better by more than one standard"
            " error"
        )
    if table["bias"].nunique() > 1:
        rules.append("a bias was included if it predicted better")
    return [
        f"{len(table)} models were compared by approximate leave-one-out predictive density (Laplace posterior,"
        f" Pareto-smoothed importance sampling; Vehtari, Gelman & Gabry 2017): {'; '.join(rules)}."
    ]
