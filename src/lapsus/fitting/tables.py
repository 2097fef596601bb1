"""A fit as tables: tidy estimates, the JSON of the command, HTML for notebooks, ArviZ."""

import html
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lapsus.errors import LapsusError
from lapsus.fitting.sampler import CHAINS
from lapsus.fitting.shares import band, group_shares
from lapsus.trials import Trials

if TYPE_CHECKING:
    from lapsus.fitting.result import Fit
    from lapsus.fitting.subjects import SubjectFits

__all__ = ["as_dict", "as_html", "feature_words", "records", "tidy", "to_arviz"]


GROUP = "group"
SHARES = {"target": "target", "swap": "non_target", "swap_apart": "non_target_apart", "guess": "guess"}


def records(table: pd.DataFrame) -> list[dict]:
    """The rows of a table as plain dictionaries."""
    return json.loads(table.to_json(orient="records", double_precision=10))


def feature_words(trials: Trials) -> dict:
    """What the features are called, and the unit of every angle that is printed or plotted."""
    return {
        "name": trials.feature_name,
        "probe": trials.probe_name,
        "unit": trials.unit_name,
        "circle": round(2 * np.pi * trials.degrees),
        "probe_unit": trials.probe_unit_name,
    }


def tidy(fit: "Fit") -> pd.DataFrame:
    """One row for every subject (or "all"), set size, condition and parameter: set_size, subject, condition, parameter,
    estimate, low, high, unit; with subjects also for their mean ("group") and for the s.d. of their offsets.

    low and high are the ends of the 95 % band; angles are in degrees of the reported feature. swap_apart is a share of
    all trials of the group and depends on their displays: not to be compared between groups that saw different ones.
    """
    model, degrees, unit = fit.model, fit.trials.degrees, fit.trials.unit_name
    subjects = len(model.subjects) > 1
    cells: dict[tuple[int, str, str], list[int]] = {label: [g] for g, label in enumerate(model.labels)}
    if subjects:  # the group: the mean of subjects
        for g, (size, _, condition) in enumerate(model.labels):
            cells.setdefault((size, GROUP, condition), []).append(g)
    measures = [
        (name, fit.shares[share], "share of responses", 2 if "non_target" in share else 1)
        for name, share in SHARES.items()
    ]
    # Kappa as it is in formulas, where orientations are doubled.
    doubled = "of twice the orientation" if fit.trials.unit == "degrees_180" else ""
    for name, values in model.emission.natural(fit.parameters.emission.numpy()).items():
        angle = name in ("circular_sd", "gamma")
        measures.append((name, values * (degrees if angle else 1), unit if angle else doubled * (name == "kappa"), 1))
    if fit.parameters.bias is not None:
        measures.append(("bias", degrees * fit.parameters.bias.numpy(), unit, 1))
    if fit.parameters.level is not None:
        measures.append(("level", fit.parameters.level.numpy(), "log odds", 2))
    rows = []
    for name, values, said, least in measures:
        for (size, subject, condition), groups in cells.items():
            if size >= least:
                draws = values[groups].mean(0)
                low, high = map(float, band(draws, "").values())
                rows.append([size, subject, condition, name, draws.mean(), low, high, said])
    for row in fit.random_effects.itertuples():
        scale = degrees if row.parameter == "bias" else 1.0
        values = scale * row.sd, scale * row.low, scale * row.high
        said = unit if row.parameter == "bias" else "logits or logarithms"
        rows.append(["all", f"s.d. of {row.of}", "all", row.parameter, *values, said])
    columns = ["set_size", "subject", "condition", "parameter", "estimate", "low", "high", "unit"]
    return pd.DataFrame(rows, columns=columns)


def as_dict(fit: "Fit") -> dict:
    """What `lapsus fit --json` prints. Distances of swap functions are in radians and, in `degrees`, in the unit of
    the feature that they are of."""
    model = fit.model
    several = [n for n in model.sizes if n > 1]
    by_size = model.sets != "shared" and len(several) > 1
    return {
        "model": fit.name,
        "sets": model.sets,
        "seconds": round(fit.seconds, 3),
        "trials": len(fit.trials),
        "subjects": len(np.unique(fit.trials.subject)),
        "feature": feature_words(fit.trials),
        "dropped": fit.trials.dropped,
        "notes": fit.trials.notes,
        "standard_mixture": None if fit.standard is None else records(fit.standard),
        "rates": records(fit.rates),
        "mean_rates": records(fit.mean_rates),
        "random_effects": records(fit.random_effects),
        "expected_swaps": fit.expected_swaps,
        "bias": None if fit.bias is None else {k: v * fit.trials.degrees for k, v in fit.bias.items()},
        "emission": {"kind": model.emission.name, "groups": records(_in_degrees(fit))},
        "weights": records(fit.weights),
        "contrasts": None if fit.contrasts is None else records(fit.contrasts),
        "comparison": None if fit.comparison is None else records(fit.comparison),
        "candidates": None if fit.candidates is None else records(fit.candidates),
        "checks": records(fit.checks),
        "swap_function": records(_with_degrees(fit, None)) if fit.swap_model.swaps else [],
        "swap_functions": {n: records(_with_degrees(fit, n)) for n in several} if by_size else {},
        "converged": fit.converged,
        "rhat": round(fit.rhat, 3),
        "warning": fit.warning,
        "summary": fit.summary(),
        "methods": fit.methods(),
    }


def _in_degrees(fit: "Fit") -> pd.DataFrame:
    """The emission's table with its circular s.d. in degrees of the reported feature beside radians."""
    table = fit.emission
    more = {f"{name}_degrees": table[name] * fit.trials.degrees for name in table if name.startswith("circular_sd")}
    return table.assign(**more)


def _with_degrees(fit: "Fit", set_size: int | None) -> pd.DataFrame:
    table = fit.swap_function(set_size=set_size)
    own = fit.trials.degrees if fit.swap_model.features == ("report",) else fit.trials.probe_degrees
    table = table.assign(degrees=table["distance"] * own)
    if "report_distance" in table:
        table = table.assign(report_degrees=table["report_distance"] * fit.trials.degrees)
    return table


def as_html(fit: "Fit | SubjectFits") -> str:
    """The rates by set size, and folded the subjects' and the summary: for a notebook."""
    first, *rest = fit.summary().split("\n")

    def shown(table: pd.DataFrame) -> str:
        table = table.drop(columns=[c for c in table if c.startswith("swap_apart")])
        return table.to_html(index=False, float_format=lambda value: f"{value:.3f}", border=0)

    def folded(name: str, inside: str) -> str:
        return f"<details><summary>{name}</summary>{inside}</details>"

    by_size = getattr(fit, "mean_rates", None)
    parts = [shown(fit.rates if by_size is None else by_size)]
    if by_size is not None and len(by_size) < len(fit.rates):
        parts.append(folded("Subjects", shown(fit.rates)))
    parts.append(folded("Summary", f'<pre style="white-space: pre-wrap">{html.escape(chr(10).join(rest))}</pre>'))
    return f"<p><b>{html.escape(first)}</b></p>{''.join(parts)}"


def to_arviz(fit: "Fit") -> Any:
    """The draws for ArviZ (its DataTree; before version 1 its InferenceData): posterior (swap, guess, level, emission
    parameters by group; f by distance), log_likelihood by trial, observed_data. Angles in degrees of their
    feature."""
    try:
        import arviz
    except ImportError as error:
        raise LapsusError("to_arviz needs ArviZ: install lapsus[arviz].") from error

    count = CHAINS if fit.draws % CHAINS == 0 else 1

    def chains(values: ArrayLike) -> np.ndarray:  # [..., S] → [chain, draw, ...]
        values = np.moveaxis(np.asarray(values), -1, 0)
        return values.reshape(count, -1, *values.shape[1:])

    model, p = fit.model, fit.parameters
    names = ["/".join(str(part) for part in label if part != "all") for label in model.labels]
    posterior: dict[str, np.ndarray] = {}
    dims: dict[str, list[str]] = {}

    def add(name: str, values: ArrayLike, *axes: str) -> None:
        posterior[name], dims[name] = chains(values), list(axes)

    for i, name in enumerate(model.emission.names):
        add(f"log_{name}" if name != "alpha" else "logit_alpha", p.emission[i], "group")
    shares = group_shares(model, p, fit.apart)
    add("swap", shares["non_target"], "group")
    add("guess", shares["guess"], "group")
    add("circular_sd", model.emission.natural(p.emission.numpy())["circular_sd"] * fit.trials.degrees, "group")
    for name, values in (("level", p.level), ("logit_guess", p.guess)):
        if values is not None:
            add(name, values, "group")
    if p.bias is not None:
        add("bias", p.bias * fit.trials.degrees, "group")
    coords = {"group": names, "trial": np.arange(len(fit.trials))}
    features = fit.swap_model.features
    if fit.swap_model.swaps and len(features) < 2:
        axis = np.linspace(0 if model.even else -np.pi, np.pi, 61)
        coords["distance"] = axis * (fit.trials.degrees if features == ("report",) else fit.trials.probe_degrees)
        add("f", fit.f(axis), "distance")
    likelihood = {"response": chains(fit.log_likelihood)}
    dims["response"] = ["trial"]
    observed = {"response": fit.trials.response * fit.trials.degrees}
    groups = {"posterior": posterior, "log_likelihood": likelihood, "observed_data": observed}
    if int(arviz.__version__.split(".")[0]) >= 1:  # takes the groups as one argument and makes a DataTree
        return arviz.from_dict(groups, coords=coords, dims=dims)
    return arviz.from_dict(**groups, coords=coords, dims=dims)
