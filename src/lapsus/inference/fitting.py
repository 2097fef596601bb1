"""fit(trials): which swap model, its swap function with its uncertainty, and how responses scatter."""

import time
import warnings

import numpy as np
import torch

from lapsus import circular
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.inference.conditional import Conditional
from lapsus.inference.emissions import EMISSIONS
from lapsus.inference.likelihood import one_thread_each
from lapsus.inference.loo import Loo
from lapsus.inference.model import FEATURES, Model
from lapsus.inference.result import Fit, SubjectFits, comparison_table
from lapsus.inference.sampler import sample
from lapsus.inference.variational import curvature, maximise, maximum_a_posteriori
from lapsus.trials import Trials

__all__ = ["MODELS", "fit"]

MODELS = ("none", "constant", "probe", "report", "both")  # simplest first
PILOT = 2000  # trials on which starting points are tried


def fit(
    trials,
    model: str = "auto",
    emission: str = "von_mises",
    uniform: bool = True,
    even: bool = True,
    by: str | None = None,
    seed: int = 0,
    models: tuple[str, ...] | None = None,
    progress: bool = True,
) -> "Fit | SubjectFits":
    """Fit swap models to trials (a Trials, or a table or path that makes one).

    model     none, constant, probe, report, both, or auto: compare them (or `models`) by leave-one-out predictive
              density and keep the simplest within one standard error of the best
    emission  von_mises, wrapped_stable, or plane (responses as points)
    uniform   allow a share of uniform guesses
    even      f depends on the distance only, not on its sign
    by        None: all subjects together; "subject": a fit each; "hierarchical": one swap function, own emissions
    seed      of the posterior draws
    """
    trials = _as_trials(trials)
    names = _models(model, models, trials)
    _check(emission, by, trials)
    _check_scatter(trials)
    start = time.perf_counter()
    subjects = list(dict.fromkeys(trials.subject)) if by == "subject" else [None]
    with _bar(len(subjects) * len(names), progress) as bar, one_thread_each():
        tables, chosen = {}, {}
        for name in names:
            for subject in subjects:
                part = trials if subject is None else trials[trials.subject == subject]
                bar.set_description(f"{name}{'' if subject is None else ', subject ' + subject}")
                fitted = _fit_one(part, name, emission, uniform, even, by == "hierarchical", seed, bar, len(names) > 1)
                chosen[name, subject] = fitted
        for subject in subjects:
            tables[subject] = _compare({n: [chosen[n, subject]] for n in names})
    if by != "subject":
        best = _choice(tables[None], names)
        result = chosen[best, None]
        result.comparison, result.seconds = tables[None], time.perf_counter() - start
        result.requested = model
        return result
    overall = _compare({n: [chosen[n, s] for s in subjects] for n in names})
    best = _choice(overall, names)
    results = SubjectFits({s: chosen[best, s] for s in subjects}, overall, time.perf_counter() - start)
    for subject in subjects:
        results[subject].comparison = tables[subject]
    return results


def _check_scatter(trials) -> None:
    """Responses that equal an item to the last digit have no scatter, and its likelihood no maximum."""
    exact = np.nanmin(circular.distance(trials.response[:, None], trials.report), axis=1) < 1e-9
    if exact.mean() > 0.9:
        raise LapsusError(
            f"{exact.sum()} of {len(trials)} responses equal an item exactly: there is no scatter to fit. "
            "Is the response column a copy of an item's?"
        )


def _fit_one(trials, name, emission, uniform, even, hierarchical, seed, bar, with_loo) -> Fit:
    start = time.perf_counter()
    rng = np.random.default_rng([seed, MODELS.index(name)])
    model = Model(trials, name, EMISSIONS[emission](), uniform, even, hierarchical)
    pilot = None
    if len(trials) > 2 * PILOT:
        chosen = _pilot_rows(model, rng)
        pilot = Model(trials[chosen], name, model.emission, uniform, even, hierarchical)
    starts = [model.initial(mean) for mean in ((-1.5, -4.0) if model.latent else (0.0,))]
    theta, gradient, tries = maximum_a_posteriori(model, starts, pilot)
    bar.update(0.2)
    precision = curvature(model.log_joint, theta)
    conditional = Conditional(model, theta, precision - np.eye(model.dimension), gradient)
    variational = maximise(model, conditional, theta, precision)
    bar.update(0.2)
    centre = conditional.start(variational.theta)
    chains = sample(conditional, centre, curvature(conditional.log_joint, centre), rng, progress=bar.step(0.5))
    with torch.no_grad():
        draws = conditional.theta(torch.tensor(chains.draws.reshape(model.dimension, -1)))[0].numpy()
    result = Fit(model, draws, variational, chains.rhat.max(), chains.accepted, tries, seed)
    if with_loo:
        result.loo  # computed now, so that the bar and the clock include it
    bar.update(0.1)
    result.seconds = time.perf_counter() - start
    if result.warning:
        warnings.warn(f"Model {bar.description}: {result.warning}", LapsusWarning, stacklevel=3)
    return result


def _pilot_rows(model, rng):
    """PILOT trials, the same share of every emission group and at least 20 of each."""
    groups, chosen = model.likelihood.groups, []
    for group in range(len(model.labels)):
        rows = np.flatnonzero(groups == group)
        count = min(len(rows), max(20, len(rows) * PILOT // len(groups)))
        chosen.append(rng.choice(rows, count, replace=False))
    return np.sort(np.concatenate(chosen))


def _as_trials(trials):
    import pandas as pd

    if isinstance(trials, Trials):
        return trials
    if isinstance(trials, pd.DataFrame):
        return Trials.from_table(trials)
    from lapsus.trials import read_trials

    return read_trials(trials)


def _models(model, models, trials):
    chosen = tuple(models or (m for m in MODELS if trials.probe is not None or "probe" not in FEATURES[m]))
    chosen = chosen if model == "auto" else (model,)
    for name in chosen:
        if name not in MODELS:
            raise LapsusError(f"model '{name}' is not known; use auto, {', '.join(MODELS)}.")
        if "probe" in FEATURES[name]:
            trials.distance("probe")
    if trials.set_size.max() < 2:
        if model not in ("auto", "none"):
            raise LapsusError(
                f"{trials.source}: every trial has one item, so there is nothing to swap; use model 'none'."
            )
        return ("none",)
    return chosen


def _check(emission, by, trials):
    if emission not in EMISSIONS:
        raise LapsusError(f"emission '{emission}' is not known; use {', '.join(EMISSIONS)}.")
    if by not in (None, "subject", "hierarchical"):
        raise LapsusError(f"by '{by}' is not known; use 'subject', 'hierarchical' or None.")
    if len(trials) < 10:
        raise LapsusError(f"{trials.source}: {len(trials)} trials are too few to fit; at least 10 are needed.")
    if by is not None and "subject" not in trials.columns:
        raise LapsusError(
            f"{trials.source}: there is no column subject, which by '{by}' needs; the table has"
            f" {', '.join(trials.columns)}. Call the column that says who answered 'subject', or leave out --by to fit"
            " all trials together."
        )
    if by == "subject":
        subjects, counts = np.unique(trials.subject, return_counts=True)
        if counts.min() < 10:
            few = subjects[counts.argmin()]
            raise LapsusError(f"{trials.source}: subject {few} has {counts.min()} trials; at least 10 are needed.")


def _choice(table, names):
    """The simplest model within one standard error of the best."""
    if table is None:
        return names[0]
    near = table[(table["elpd_difference"] >= -table["difference_se"]) | (table["elpd_difference"] == 0)]
    return min(near["model"], key=MODELS.index)


def _compare(fits):
    """Table of models {name: its fits, one or one a subject}; None where there is one model."""
    if len(fits) < 2:
        return None
    loos = {name: _sum_loo([fit.loo for fit in parts]) for name, parts in fits.items()}
    return comparison_table(loos, {name: max(fit.rhat for fit in parts) for name, parts in fits.items()})


def _sum_loo(parts):
    by_trial = np.concatenate([part.by_trial for part in parts])
    k = np.concatenate([part.pareto_k for part in parts])
    return Loo(float(by_trial.sum()), float(np.sqrt(len(by_trial)) * by_trial.std()), by_trial, k)


class _bar:
    """A tqdm bar that counts models in fractions; silent when not on a terminal."""

    def __init__(self, total, shown):
        from tqdm import tqdm

        form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
        self._tqdm = tqdm(total=total, disable=None if shown else True, bar_format=form, leave=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._tqdm.close()

    def set_description(self, text):
        self.description = text
        self._tqdm.set_description(text)

    def update(self, share):
        self._tqdm.update(min(share, self._tqdm.total - self._tqdm.n))

    def step(self, share, count=36):
        return lambda: self.update(share / count)
