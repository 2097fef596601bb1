"""fit(trials): which swap model, its swap function with its uncertainty, and how responses scatter."""

import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lapsus.engine.threads import torch_threads
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.fitting.candidates import EMISSION_ORDER, MODELS, Candidate, Choice, compare, evaluate, most_looks, search
from lapsus.fitting.emissions import EMISSIONS
from lapsus.fitting.laplace import Laplace
from lapsus.fitting.model import FEATURES, SETS, natural_order
from lapsus.fitting.progress import Bar
from lapsus.fitting.result import Fit
from lapsus.fitting.sampler import sample
from lapsus.fitting.shares import mean_shares
from lapsus.fitting.subjects import SubjectFits
from lapsus.statistics.swaps import nearest_item
from lapsus.trials import Trials, read_trials

__all__ = ["fit"]

# The work of drawing from the posterior of the kept model, in candidates: for the time left.
SAMPLING = 2.0


def fit(
    trials: Trials | pd.DataFrame | str | Path,
    model: str = "auto",
    emission: str | None = None,
    uniform: bool = True,
    even: bool = True,
    by: str | None = None,
    seed: int = 0,
    models: tuple[str, ...] | None = None,
    progress: bool = True,
    sets: str = "auto",
    bias: bool | None = None,
    apart: float | None = None,
) -> "Fit | SubjectFits":
    """Fit swap models to trials (a Trials, or a table or path that makes one).

    model     none, constant, probe, report, both, or auto: compare them (or `models`) by leave-one-out predictive
              density and keep the simplest within one standard error of the best
    emission  von_mises, variable_precision, wrapped_stable, plane (responses as points), or auto: compared together
              with the swap models; without it auto where the model is auto, else von_mises
    uniform   allow a share of uniform guesses
    even      f depends on the distance only, not on its sign
    by        None: all subjects together; "subject": a fit each; "hierarchical": subjects around a population; the
              name of another column: its values are compared, subjects around a population where there are several
    seed      of the posterior draws
    sets      how f differs between set sizes: shared, offsets, shapes, or auto: offsets, unless another predicts
              better by more than a standard error
    bias      a constant shift of all responses; None: where it predicts better
    apart     angle (radians) beyond which a non-target counts as told apart from the target; None: 2 circular s.d.

    >>> trials = lapsus.read_trials(lapsus.trials.observer_path())[:300]
    >>> lapsus.fit(trials, "constant", progress=False).name
    'constant'
    """
    trials = as_trials(trials)
    names = _models(model, models, trials)
    emissions = _emissions(emission, model, models, trials)
    condition = _check(by, sets, trials)
    _check_scatter(trials)
    start = time.perf_counter()
    hierarchical = by == "hierarchical" or (condition is not None and len(np.unique(trials.subject)) > 1)
    options = {"uniform": uniform, "even": even, "hierarchical": hierarchical, "by": condition}
    subjects: list[str | None] = [*natural_order(set(trials.subject))] if by == "subject" else [None]
    parts = [trials if s is None else trials[trials.subject == s] for s in subjects]
    several = len({int(n) for n in trials.set_size if n > 1}) > 1
    structures = (sets,) if sets != "auto" else SETS if several else ("offsets",)
    biases = (False, True) if bias is None else (bool(bias),)
    if names == ("none",):
        structures = ("shared",)
    work = most_looks(names, emissions, structures, biases) + SAMPLING
    with Bar(progress, work) as bar, torch_threads(1):

        def look(choice: Choice) -> Candidate:
            bar.stage(f"comparing: {choice.words(several)}")
            return evaluate(parts, choice, options, seed, apart)

        chosen, seen = search(names, emissions, structures, biases, look)
        results = []
        for number, laplace in enumerate(seen[chosen].fits):
            whose = "" if subjects[number] is None else f", subject {subjects[number]}"
            bar.stage(f"sampling: {chosen.words(several)}{whose}", SAMPLING / len(parts))
            results.append(_sample(laplace, seed, apart, bar))
        table = None
        if len(seen) > 1:
            table = compare(seen, chosen, mean_shares([(result.model, result.shares) for result in results]))
    seconds = time.perf_counter() - start
    for result, who in zip(results, subjects):
        result.requested = model
        if by != "subject":
            result.candidates, result.seconds = table, seconds
        if result.warning:
            label = "" if who is None else f" (subject {who})"
            warnings.warn(f"Model {result.name}{label}: {result.warning}", LapsusWarning, stacklevel=2)
    if by != "subject":
        return results[0]
    return SubjectFits({str(who): result for who, result in zip(subjects, results)}, table, seconds)


def _sample(laplace: Laplace, seed: int, apart: float | None, bar: Bar) -> Fit:
    """Exact draws of the posterior, from chains that start at its approximation."""
    start = time.perf_counter()
    model, conditional = laplace.conditional.model, laplace.conditional
    rng = np.random.default_rng([seed, MODELS.index(model.name)])
    chains = sample(conditional, laplace.centre, laplace.factor(), rng, progress=bar.step)
    with torch.no_grad():
        theta, _ = conditional.theta(torch.tensor(chains.draws.reshape(model.dimension, -1)))
        parameters = model.unpack(theta)
        population = model.typical(theta)
    result = Fit(model, parameters, chains.rhat.max(), chains.accepted, seed, population, apart)
    result.seconds = time.perf_counter() - start
    return result


def _check_scatter(trials: Trials) -> None:
    """Responses that equal an item to the last digit have no scatter, and its likelihood no maximum."""
    exact = nearest_item(trials.response, trials.report)[1] < 1e-9
    if exact.mean() > 0.9:
        raise LapsusError(
            f"{exact.sum()} of {len(trials)} responses equal an item exactly: there is no scatter to fit. "
            "Is the response column a copy of an item's?"
        )


def as_trials(trials: Trials | pd.DataFrame | str | Path) -> Trials:
    """Trials as they are, or those of a table or of a file."""
    if isinstance(trials, Trials):
        return trials
    if isinstance(trials, pd.DataFrame):
        return Trials.from_table(trials)
    return read_trials(Path(trials))


def _models(model: str, models: tuple[str, ...] | None, trials: Trials) -> tuple[str, ...]:
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


def _emissions(emission: str | None, model: str, models: tuple[str, ...] | None, trials: Trials) -> tuple[str, ...]:
    if emission is None:
        emission = "auto" if model == "auto" and models is None else "von_mises"
    if emission == "auto":
        return EMISSION_ORDER
    if emission not in EMISSIONS:
        raise LapsusError(f"emission '{emission}' is not known; use auto, {', '.join(EMISSIONS)}.")
    EMISSIONS[emission]().initial(trials)  # says what it misses
    return (emission,)


def _check(by: str | None, sets: str, trials: Trials) -> str | None:
    """The column of conditions that `by` names, if it names one."""
    if sets not in ("auto", *SETS):
        raise LapsusError(f"sets '{sets}' is not known; use auto, {', '.join(SETS)}.")
    if len(trials) < 10:
        raise LapsusError(f"{trials.source}: {len(trials)} trials are too few to fit; at least 10 are needed.")
    if by is None:
        return None
    if by not in ("subject", "hierarchical"):
        if by not in trials.conditions:
            there = ", ".join(map(str, trials.conditions)) or "no further columns"
            raise LapsusError(
                f"by '{by}' is not known; use 'subject', 'hierarchical', or a column of the table ({there})."
            )
        if trials.conditions[by].isna().any():
            raise LapsusError(f"{trials.source}: column {by} is empty in some rows; every trial needs a value.")
        levels, counts = np.unique(trials.conditions[by].astype(str), return_counts=True)
        if not 2 <= len(levels) <= 12:
            raise LapsusError(f"{trials.source}: column {by} has {len(levels)} values; 2 to 12 can be compared.")
        if counts.min() < 10:
            raise LapsusError(
                f"{trials.source}: {by} {levels[counts.argmin()]} has {counts.min()} trials; 10 at least."
            )
        return by
    if "subject" not in trials.columns:
        raise LapsusError(
            f"{trials.source}: there is no column subject, which by '{by}' needs; the table has"
            f" {', '.join(trials.columns)}. Call the column that says who answered 'subject', or leave out `by` to fit"
            " all trials together."
        )
    if by == "subject":
        subjects, counts = np.unique(trials.subject, return_counts=True)
        if counts.min() < 10:
            few = subjects[counts.argmin()]
            raise LapsusError(f"{trials.source}: subject {few} has {counts.min()} trials; at least 10 are needed.")
    return None
