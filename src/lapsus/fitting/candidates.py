"""Which model: swap model, emission, set sizes and bias are compared by how well they predict responses left out.

Every candidate is approximated (laplace.py), not sampled. Not all combinations are tried: bias first, then all swap
models, then the other emissions for the two best of those, then (where another emission won) all swap models with
that, then how f differs between set sizes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from lapsus.fitting.emissions import EMISSIONS
from lapsus.fitting.laplace import Laplace, approximate
from lapsus.fitting.loo import Loo, leave_one_out, sum_loo
from lapsus.fitting.model import SETS, MixtureModel
from lapsus.fitting.shares import group_shares, mean_shares
from lapsus.fitting.swap_models import SWAP_MODELS
from lapsus.trials import Trials

__all__ = [
    "EMISSION_ORDER",
    "MODELS",
    "SCATTER",
    "Candidate",
    "Choice",
    "compare",
    "evaluate",
    "most_candidates",
    "nearest_candidate",
    "search",
    "standard_candidate",
]

MODELS = tuple(SWAP_MODELS)  # simplest first
EMISSION_ORDER = ("von_mises", "variable_precision", "wrapped_stable")
SCATTER = {
    "von_mises": "von Mises",
    "variable_precision": "variable-precision",
    "wrapped_stable": "wrapped stable",
    "plane": "Gaussian in the plane",
}
DRAWS = 128


@dataclass(frozen=True)
class Choice:
    """One combination: swap model, emission, how f differs between set sizes, with a bias or without."""

    model: str
    emission: str = "von_mises"
    sets: str = "offsets"
    bias: bool = False

    def words(self, several: bool) -> str:
        """What is being compared or sampled; how f differs between set sizes where there are several."""
        sets = [f"f {self.sets}"] if several and SWAP_MODELS[self.model].swaps else []
        return ", ".join([self.model, f"{SCATTER[self.emission]} scatter", *sets, *(["bias"] if self.bias else [])])


@dataclass
class Candidate:
    """A choice on one or several sets of trials (one a subject): approximations, predictive density, swap rates."""

    choice: Choice
    fits: list[Laplace]
    loo: Loo
    shares: list[tuple[MixtureModel, dict[str, np.ndarray]]]  # of responses, for every set of trials (shares.py)


def make_model(trials: Trials, choice: Choice, **options: Any) -> MixtureModel:
    """The model of a choice; options: uniform, even, hierarchical, by, reference."""
    emission = EMISSIONS[choice.emission]()
    return MixtureModel(trials, choice.model, emission, sets=choice.sets, bias=choice.bias, **options)


def nearest_candidate(choice: Choice, looked: list[Candidate]) -> Candidate | None:
    """Of candidates that were approximated, the one that has most in common with a choice, the latest of equals."""

    def shared(candidate: Candidate) -> int:
        other = candidate.choice
        same = 4 * (other.model == choice.model) + 2 * (other.emission == choice.emission)
        return same + (other.sets == choice.sets) + (other.bias == choice.bias)

    return max(reversed(looked), key=shared, default=None)


def evaluate(
    parts: list, choice: Choice, options: dict, seed: int, apart: float | None, near: Candidate | None = None
) -> Candidate:
    """Approximate a choice on every part of the trials, starting from a candidate on the same parts."""
    fits, loos, shares = [], [], []
    for number, trials in enumerate(parts):
        model = make_model(trials, choice, **options)
        fits.append(approximate(model, None if near is None else near.fits[number]))
        rng = np.random.default_rng([seed, number])
        parameters = model.unpack(fits[-1].draw(DRAWS, rng))
        loos.append(leave_one_out(model.likelihood(torch.float32).by_trial(parameters)))
        shares.append((model, group_shares(model, parameters.map(lambda part: part[..., ::2]), apart)))
    for found in fits:
        found.forget()  # of many candidates one is sampled, and all together would fill the memory
    return Candidate(choice, fits, sum_loo(loos), shares)


def standard_candidate(seen: dict[Choice, Candidate]) -> Candidate | None:
    """Of candidates the three-component mixture of Bays et al. (2009), the better of those with and without a bias."""
    found = [c for c in seen if (c.model, c.emission) == ("constant", "von_mises") and c.sets != "shared"]
    return seen[max(found, key=lambda c: seen[c].loo.elpd)] if found else None


def search(
    models: tuple[str, ...],
    emissions: tuple[str, ...],
    sets: tuple[str, ...],
    biases: tuple[bool, ...],
    evaluate: Callable[[Choice], Candidate],
) -> tuple[Choice, dict[Choice, Candidate]]:
    """The choice to keep, and every candidate that was evaluated."""
    seen: dict[Choice, Candidate] = {}

    def look(choice: Choice) -> Candidate:
        if choice not in seen:
            seen[choice] = evaluate(choice)
        return seen[choice]

    middle = "offsets" if "offsets" in sets else sets[0]
    first = Choice("constant" if "constant" in models else models[0], emissions[0], middle, biases[0])
    if len(biases) > 1:
        with_bias = replace(first, bias=True)
        first = max((first, with_bias), key=lambda c: look(c).loo.elpd)
    look(first)
    tried = [replace(first, model=name) for name in models]
    if len(models) * len(emissions) > 1:
        ranked = sorted(tried, key=lambda c: -look(c).loo.elpd)
        for emission in emissions[1:]:
            for choice in ranked[:2]:
                look(replace(choice, emission=emission))
        best = max(seen, key=lambda c: seen[c].loo.elpd)
        for name in models:
            look(replace(best, model=name))
    chosen = _simplest(seen)
    swap_model = SWAP_MODELS[chosen.model]
    if len(sets) > 1 and swap_model.swaps:
        # Shapes of each set size over two distances have hundreds of coefficients, which hours of sampling would not
        # tell apart: they are fitted where they are asked for.
        others = [replace(chosen, sets=s) for s in sets if s != "shapes" or len(swap_model.features) == 1]
        chosen = _sets(others, look)
    look(chosen)
    return chosen, seen


def most_candidates(
    models: tuple[str, ...], emissions: tuple[str, ...], sets: tuple[str, ...], biases: tuple[bool, ...]
) -> int:
    """How many candidates `search` evaluates at most; those that come twice are evaluated once."""
    compared = len(models) * len(emissions) > 1
    again = 2 * (len(emissions) - 1) + len(models) - 1 if compared and len(emissions) > 1 else 0
    return len(biases) + len(models) - 1 + again + len(sets) - 1


def _sets(others: list[Choice], look: Callable[[Choice], Candidate]) -> Choice:
    """Offsets, unless another way to differ predicts better by more than a standard error: where set sizes do not
    differ the offsets are learned to be small, while one f for all would be wrong without a word where they do."""
    own = next((c for c in others if c.sets == "offsets"), others[0])
    better = []
    for choice in others:
        difference, error = loo_difference(look(choice).loo, look(own).loo)
        if choice == own or difference > error:
            better.append((difference, choice))
    return max(better, key=lambda pair: pair[0])[1]


def _simplest(seen: dict[Choice, Candidate]) -> Choice:
    """The simplest candidate within one standard error of the best: swap model first, then emission."""
    best = max(seen, key=lambda c: seen[c].loo.elpd)
    near = []
    for choice, candidate in seen.items():
        difference, error = loo_difference(candidate.loo, seen[best].loo)
        if choice == best or difference >= -error:
            near.append(choice)
    order = [*EMISSION_ORDER, "plane"]
    return min(
        near, key=lambda c: (MODELS.index(c.model), order.index(c.emission), c.bias != best.bias, SETS.index(c.sets))
    )


def loo_difference(a: Loo, b: Loo) -> tuple[float, float]:
    """elpd of a minus that of b, and its standard error."""
    difference = a.by_trial - b.by_trial
    return float(difference.sum()), float(np.sqrt(len(difference)) * difference.std())


def compare(seen: dict[Choice, Candidate], kept: Choice, sampled: pd.DataFrame) -> pd.DataFrame:
    """Candidates by leave-one-out predictive density, best first, with differences from the best and swap rates.

    swap, swap_low, swap_high: share of non-target reports over all trials with two items or more, of the model that
    is kept from its posterior draws (`sampled`, as from `mean_shares`), of the others from Laplace's approximation.
    """
    best = max(seen.values(), key=lambda candidate: candidate.loo.elpd)
    rows = []
    for choice, candidate in sorted(seen.items(), key=lambda item: -item[1].loo.elpd):
        difference, error = loo_difference(candidate.loo, best.loo)
        overall = (sampled if choice == kept else mean_shares(candidate.shares)).iloc[-1]
        rows.append(
            {
                "model": choice.model,
                "emission": choice.emission,
                "sets": choice.sets,
                "bias": choice.bias,
                "elpd": candidate.loo.elpd,
                "se": candidate.loo.se,
                "elpd_difference": difference,
                "difference_se": error,
                "pareto_k_above_0.7": int((candidate.loo.pareto_k > 0.7).sum()),
            }
            | {name: float(overall[name]) for name in ("swap", "swap_low", "swap_high")}
            | {"sampled": choice == kept}
        )
    return pd.DataFrame(rows)
