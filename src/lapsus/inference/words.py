"""A fit in plain English."""

import numpy as np

from lapsus.inference.sampler import RHAT

__all__ = ["describe", "describe_subjects", "warning"]

MEANING = {
    "none": "only the cued item is ever reported",
    "constant": "every non-target is reported equally often",
    "probe": "swaps depend on the distance in the probe feature",
    "report": "swaps depend on the distance in the reported feature",
    "both": "swaps depend on the distances in both features",
}


def describe(fit) -> str:
    trials = fit.trials
    subjects, sizes = len(np.unique(trials.subject)), np.unique(trials.set_size)
    lines = [
        (
            f"{len(trials):,} trials of {subjects} subject{'s' * (subjects != 1)}, set size{'s' * (len(sizes) > 1)} "
            f"{', '.join(map(str, sizes))}."
        ),
        f"Model: {fit.name} ({MEANING[fit.name]}).",
    ]
    lines += _comparison(fit.comparison, fit.name)
    lines.append("")
    lines += _weights(fit.weights)
    lines += _scatter(fit)
    if fit.name not in ("none",):
        lines += ["", *_swap_function(fit)]
    lines += ["", _diagnosis(fit)]
    lines += [fit.warning] if fit.warning else []
    return "\n".join(lines)


def _comparison(table, name):
    if table is None:
        return []
    best = table.iloc[0]
    chosen = table[table["model"] == name].iloc[0]
    lines = []
    if name == best["model"]:
        runner = table.iloc[1]
        lines.append(
            f"It predicts left-out responses best: {-runner['elpd_difference']:.1f} ± {runner['difference_se']:.1f}"
            f" nats above {runner['model']}."
        )
    else:
        lines.append(
            f"It is the simplest model within one standard error of the best: {best['model']} is "
            f"{-chosen['elpd_difference']:.1f} ± {chosen['difference_se']:.1f} nats above it."
        )
    lines.append("model      elpd (LOO)   below the best")
    for _, row in table.iterrows():
        below = (
            "best" if row["model"] == best["model"] else f"{-row['elpd_difference']:.1f} ± {row['difference_se']:.1f}"
        )
        rough = f"   not converged (R-hat {row['rhat']:.2f})" if row.get("rhat", 1.0) >= RHAT else ""
        lines.append(f"{row['model']:<9} {row['elpd']:>11.1f}   {below}{rough}")
    high = int(chosen["pareto_k_above_0.7"])
    if high:
        lines.append(f"{high} trial{'s' * (high > 1)} with Pareto k above 0.7: the predictive density there is rough.")
    return lines


def _percent(row, name):
    return f"{100 * row[name]:.1f} % [{100 * row[name + '_low']:.1f}, {100 * row[name + '_high']:.1f}]"


def _weights(table):
    lines = []
    if (table["subject"] != "all").any():
        shown = table.groupby("set_size")[["target", "non_target", "guess"]].mean()
        for size, row in shown.iterrows():
            lines.append(
                f"Set size {size}, mean of subjects: target {100 * row['target']:.1f} %, "
                f"a non-target {100 * row['non_target']:.1f} %, guesses {100 * row['guess']:.1f} %."
            )
        return lines
    for _, row in table.iterrows():
        text = f"Set size {row['set_size']}: the target is reported in {_percent(row, 'target')} of trials"
        if row["set_size"] > 1:
            text += f", a non-target in {_percent(row, 'non_target')}"
        if row["guess"] > 0:
            text += f", a guess in {_percent(row, 'guess')}"
        lines.append(text + ".")
    return lines


def _scatter(fit):
    table = fit.emission
    low, high = np.degrees(table["circular_sd"].min()), np.degrees(table["circular_sd"].max())
    spread = f"{low:.1f}°" if high - low < 0.05 else f"{low:.1f}° to {high:.1f}° over set sizes or subjects"
    kind = fit.model.emission.name.replace("_", " ")
    return [f"Responses scatter around the reported item with a circular s.d. of {spread} ({kind})."]


def _p_swap(row):
    return f"{row['p_swap']:.3f} [{row['p_low']:.3f}, {row['p_high']:.3f}]"


def _swap_function(fit):
    if fit.name == "constant":
        row = fit.swap_function([0.0]).iloc[0]
        return [f"A single non-target is reported instead of the target with probability {_p_swap(row)}."]
    if fit.name == "both":
        shown = fit.swap_function(np.array([[a, b] for a in (np.pi / 4, np.pi) for b in (np.pi / 4, np.pi)]))
        lines = ["p(swap) with one non-target, by its distances [95 % band]:", "probe    report"]
        for _, row in shown.iterrows():
            probe, report = np.degrees(row["distance"]), np.degrees(row["report_distance"])
            lines.append(f"{probe:>4.0f}°    {report:>4.0f}°    {_p_swap(row)}")
        return lines
    steps = np.radians([45, 90, 135, 180] if fit.model.even else [-135, -90, -45, 45, 90, 135, 180])
    lines = [f"p(swap) with one non-target, by its {fit.name} distance [95 % band]:"]
    for _, row in fit.swap_function(steps).iterrows():
        f = f"f = {row['f']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
        lines.append(f"  {np.degrees(row['distance']):>4.0f}°   {_p_swap(row)}   {f}")
    if fit.model.even:
        f = fit.f(np.radians([45, 180]))
        share = (f[0] > f[1]).mean()
        lines.append(
            f"A non-target at 45° is reported more often than one at 180° with posterior probability {share:.3f}."
        )
    return lines


def _diagnosis(fit):
    q = fit.variational
    bound = (
        f"The bound {'converged' if q.converged else 'did not converge'} in {q.iterations} iterations (ELBO"
        f" {q.elbo:.1f})"
    )
    chains = f"{fit.draws.shape[1]} posterior draws, R-hat at most {fit.rhat:.3f}"
    return f"{bound}; {chains}; {fit.seconds:.1f} s."


def warning(fit):
    """What did not converge, what that means and what to do; None where all did."""
    if fit.converged:
        return None
    reasons = []
    if fit.rhat >= RHAT:
        reasons.append(f"the chains disagree (R-hat {fit.rhat:.2f}, which should be below {RHAT})")
    if not fit.variational.converged:
        reasons.append("the ascent of the bound, where the chains start, was cut short")
    return (
        f"Not converged: {' and '.join(reasons)}, so its credible bands are rough. Fit again with another seed (--seed"
        " 1); if that does not help, use a simpler model (--model), or more trials (--by hierarchical shares them"
        " between subjects)."
    )


def describe_subjects(fits) -> str:
    lines = [
        f"{len(fits)} subject{'s' * (len(fits) != 1)} fitted separately; model {fits.name} ({MEANING[fits.name]})."
    ]
    lines += _comparison(fits.comparison, fits.name)
    lines += ["", "subject     trials   target        non-target    guess         circular s.d."]
    for subject, fit in fits.items():
        table, total = fit.weights, fit.weights["trials"].sum()
        mean = {name: 100 * (table[name] * table["trials"]).sum() / total for name in ("target", "non_target", "guess")}
        sd = np.degrees((fit.emission["circular_sd"] * table["trials"]).sum() / total)
        shares = "       ".join(f"{mean[name]:>5.1f} %" for name in ("target", "non_target", "guess"))
        lines.append(f"{subject:<10} {total:>7}   {shares}       {sd:>5.1f}°")
    poor = [subject for subject, fit in fits.items() if not fit.converged]
    lines.append("" if poor else "Every fit converged.")
    lines += [f"Subject {subject}: {fits[subject].warning}" for subject in poor]
    return "\n".join(lines)
