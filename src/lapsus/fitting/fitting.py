"""fit(trials): which swap model, its swap function with its uncertainty, and how responses scatter."""

import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lapsus.engine.threads import torch_threads
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.fitting.candidates import (
    EMISSION_ORDER,
    MODELS,
    Candidate,
    Choice,
    compare,
    evaluate,
    most_candidates,
    nearest_candidate,
    search,
    standard_candidate,
)
from lapsus.fitting.emissions import EMISSIONS
from lapsus.fitting.laplace import Laplace
from lapsus.fitting.model import SETS, condition_labels, natural_order
from lapsus.fitting.progress import Bar
from lapsus.fitting.result import Fit, random_effects
from lapsus.fitting.sampler import CHAINS, sample
from lapsus.fitting.shares import mean_rates, mean_shares
from lapsus.fitting.subjects import SubjectFits
from lapsus.fitting.swap_models import SWAP_MODELS
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
    by: str | Sequence[str] | None = None,
    seed: int = 0,
    models: tuple[str, ...] | None = None,
    progress: bool = True,
    sets: str = "auto",
    bias: bool | None = None,
    apart: float | None = None,
    reference: str | Mapping[str, str] | None = None,
    draws: int = 1024,
) -> "Fit | SubjectFits":
    """Fit swap models to trials (a Trials, or a table or path that makes one).

    model     none, constant, probe, report, both, or auto: compare them (or `models`) by leave-one-out predictive
              density and keep the simplest within one standard error of the best
    emission  von_mises, variable_precision, wrapped_stable, plane (responses as points), or auto: compared together
              with the swap models; without it auto where the model is auto, else von_mises
    uniform   allow a share of uniform guesses
    even      f depends on the distance only, not on its sign
    by        None: all subjects together; "subject": a fit each; "hierarchical": subjects around a population; the
              name of another column, or several ("cue,group"): their values are compared, with interactions, subjects
              around a population where there are several
    reference the value that others are compared with: "valid", or {"cue": "valid"}; the first by name unless given
    draws     posterior draws to keep at least; more where the chains need them to agree
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
    factors = _factors(by, trials)
    references = _references(reference, factors, trials)
    _check(by, sets, trials)
    if draws < 1:
        raise LapsusError(f"`draws` must be positive, not {draws}.")
    _check_scatter(trials)
    start = time.perf_counter()
    hierarchical = by == "hierarchical" or (bool(factors) and len(np.unique(trials.subject)) > 1)
    options = {"uniform": uniform, "even": even, "hierarchical": hierarchical, "by": factors, "reference": references}
    subjects: list[str | None] = [*natural_order(set(trials.subject))] if by == "subject" else [None]
    parts = [trials if s is None else trials[trials.subject == s] for s in subjects]
    several = len({int(n) for n in trials.set_size if n > 1}) > 1
    structures = (sets,) if sets != "auto" else SETS if several else ("offsets",)
    biases = (False, True) if bias is None else (bool(bias),)
    if names == ("none",):
        structures = ("shared",)
    work = most_candidates(names, emissions, structures, biases) + SAMPLING
    looked: list[Candidate] = []
    with Bar(progress, work) as bar, torch_threads(1):

        def look(choice: Choice) -> Candidate:
            bar.stage(f"comparing: {choice.words(several)}")
            looked.append(evaluate(parts, choice, options, seed, apart, nearest_candidate(choice, looked)))
            return looked[-1]

        chosen, seen = search(names, emissions, structures, biases, look)
        results = []
        for number, laplace in enumerate(seen[chosen].fits):
            whose = "" if subjects[number] is None else f", subject {subjects[number]}"
            bar.stage(f"sampling: {chosen.words(several)}{whose}", SAMPLING / len(parts))
            results.append(_sample(laplace, seed, apart, bar, draws))
        table = None
        if len(seen) > 1:
            table = compare(seen, chosen, mean_shares([(result.model, result.shares) for result in results]))
    seconds = time.perf_counter() - start
    for number, (result, who) in enumerate(zip(results, subjects)):
        result.requested = model
        if uniform and not result.is_standard and (found := standard_candidate(seen)) is not None:
            result.standard = mean_rates(*found.shares[number])
        if by != "subject":
            result.candidates, result.seconds = table, seconds
        if result.warning:
            label = "" if who is None else f" (subject {who})"
            warnings.warn(f"Model {result.name}{label}: {result.warning}", LapsusWarning, stacklevel=2)
    if by != "subject":
        return results[0]
    return SubjectFits({str(who): result for who, result in zip(subjects, results)}, table, seconds)


def _sample(laplace: Laplace, seed: int, apart: float | None, bar: Bar, draws: int) -> Fit:
    """Exact draws of the posterior, from chains that start at its approximation."""
    start = time.perf_counter()
    model, conditional = laplace.conditional.model, laplace.conditional
    rng = np.random.default_rng([seed, MODELS.index(model.name)])
    kept = -(-draws // CHAINS)
    chains = sample(conditional, laplace.centre, laplace.factor, rng, kept=kept, progress=bar.step)
    with torch.no_grad():
        x = torch.tensor(chains.draws.reshape(model.dimension, -1), dtype=torch.float64)
        # All at once would fill the memory.
        theta = torch.cat([conditional.theta(part)[0] for part in x.split(256, dim=1)], 1)
        parameters = model.unpack(theta)
        population = model.typical(theta)
        spreads = random_effects(model, theta)
    result = Fit(model, parameters, chains.rhat.max(), chains.accepted, seed, population, apart)
    result.seconds, result.random_effects = time.perf_counter() - start, spreads
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
    known = [m for m in MODELS if trials.probe is not None or "probe" not in SWAP_MODELS[m].features]
    chosen = tuple(models or known) if model == "auto" else (model,)
    for name in chosen:
        if name not in MODELS:
            raise LapsusError(f"model '{name}' is not known; use auto, {', '.join(MODELS)}.")
        if "probe" in SWAP_MODELS[name].features:
            trials.distance("probe")
    if trials.set_size.max() < 2:
        if model != "auto" and SWAP_MODELS[model].swaps:
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


def _factors(by: str | Sequence[str] | None, trials: Trials) -> tuple[str, ...]:
    """The columns of conditions that `by` names, checked; none where it names none."""
    if by is None or by in ("subject", "hierarchical"):
        return ()
    names = tuple(name.strip() for name in by.split(",")) if isinstance(by, str) else tuple(by)
    for name in names:
        if name not in trials.conditions:
            there = ", ".join(map(str, trials.conditions)) or "no further columns"
            raise LapsusError(
                f"by '{name}' is not known; use 'subject', 'hierarchical', or a column of the table ({there})."
            )
        if trials.conditions[name].isna().any():
            raise LapsusError(f"{trials.source}: column {name} is empty in some rows; every trial needs a value.")
        levels = trials.conditions[name].astype(str).nunique()
        if not 2 <= levels <= 12:
            raise LapsusError(f"{trials.source}: column {name} has {levels} values; 2 to 12 can be compared.")
    conditions, counts = np.unique(condition_labels(trials, names).astype(str), return_counts=True)
    if counts.min() < 10:
        few = conditions[counts.argmin()]
        raise LapsusError(f"{trials.source}: {', '.join(names)} {few} has {counts.min()} trials; 10 at least.")
    return names


def _references(reference: str | Mapping[str, str] | None, factors: tuple[str, ...], trials: Trials) -> dict[str, str]:
    """The reference of each factor that has one: from "valid", "cue=valid,group=old" or a dictionary."""
    if reference is None:
        return {}
    if not factors:
        raise LapsusError("`reference` needs `by`, which says what is compared.")
    levels = {factor: natural_order(set(trials.conditions[factor].astype(str))) for factor in factors}
    if isinstance(reference, str):
        parts = [part.strip() for part in reference.split(",")]
        named = [part.partition("=") for part in parts if part.partition("=")[0] in factors and "=" in part]
        reference = {factor: level for factor, _, level in named}
        for level in (part for part in parts if part.partition("=")[0] not in reference):
            having = [factor for factor in factors if level in levels[factor]]
            if len(having) != 1:
                problem = "several of the columns have" if having else "no column that is compared has"
                raise LapsusError(f"`reference`: {problem} the value '{level}'; write {factors[0]}=VALUE.")
            reference[having[0]] = level
    for factor, level in reference.items():
        if level not in levels.get(factor, ()):
            there = ", ".join(levels.get(factor, factors))
            raise LapsusError(f"`reference`: {factor} has no value '{level}'; there are {there}.")
    return dict(reference)


def _check(by: str | Sequence[str] | None, sets: str, trials: Trials) -> None:
    if sets not in ("auto", *SETS):
        raise LapsusError(f"sets '{sets}' is not known; use auto, {', '.join(SETS)}.")
    if len(trials) < 10:
        raise LapsusError(f"{trials.source}: {len(trials)} trials are too few to fit; at least 10 are needed.")
    if by in ("subject", "hierarchical") and "subject" not in trials.columns:
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
