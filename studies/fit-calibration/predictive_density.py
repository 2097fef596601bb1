"""Is the predictive density by which models are compared the one that an exact calculation gives?

python predictive_density.py [--trials 800] [--folds 10] [--seed 0]

One simulated table (two and four items, scatter whose precision varies, swaps, guesses) and three scatters. For each:
elpd from 128 draws of Laplace's approximation (what the comparison uses), from the draws of the chains, and by k-fold
cross-validation, which fits again without each fold and needs no importance weights. One thread; prints Markdown.
"""

import argparse
import time

import numpy as np
import torch
from scipy.special import logsumexp

from lapsus.circular import wrap
from lapsus.fitting import fit
from lapsus.fitting.candidates import EMISSION_ORDER, Choice, evaluate
from lapsus.fitting.likelihood import Parameters
from lapsus.trials import Trials

OPTIONS = {"uniform": True, "even": True, "hierarchical": False, "by": (), "reference": {}}


def table(count, seed):
    """Trials whose precision is gamma-distributed, with 15 % swaps and 5 % guesses."""
    rng = np.random.default_rng(seed)
    size = rng.choice([2, 4], count)
    report = rng.uniform(-np.pi, np.pi, (count, 4))
    report[np.arange(4) >= size[:, None]] = np.nan
    item = np.where(rng.random(count) < 0.15, (rng.random(count) * (size - 1)).astype(int) + 1, 0)
    response = report[np.arange(count), item] + rng.vonmises(0, 15 * rng.gamma(2.0, 0.5, count))
    response = np.where(rng.random(count) < 0.05, rng.uniform(-np.pi, np.pi, count), response)
    return Trials(wrap(response), report)


def held_out(result, trials):
    """Log density [T] of trials that a fit has not seen: the mean over its draws."""
    model = result.model
    size = {label[0]: g for g, label in enumerate(model.labels)}
    whole = fit_model(trials, model)
    order = [size[label[0]] for label in whole.labels]
    p = result.parameters
    parameters = Parameters(None, p.level[order], p.emission[:, order], None, p.guess[order])
    values = whole.likelihood().by_trial(parameters)
    return logsumexp(values, axis=1) - np.log(values.shape[1])


def fit_model(trials, model):
    """The same model on other trials."""
    return type(model)(trials, model.name, model.emission, sets=model.sets)


def compared(trials, emission, folds, seed):
    """elpd by Laplace's draws, by those of the chains, and by k folds; R-hat."""
    plain = {"model": "constant", "emission": emission, "sets": "offsets", "bias": False, "progress": False}
    by_laplace = evaluate([trials], Choice("constant", emission), OPTIONS, seed, None).loo.elpd
    result = fit(trials, **plain, draws=4096, seed=seed)
    fold = np.random.default_rng(seed).permutation(len(trials)) % folds
    left_out = sum(held_out(fit(trials[fold != k], **plain, seed=seed), trials[fold == k]).sum() for k in range(folds))
    return by_laplace, result.loo.elpd, left_out, result.rhat


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("trials", 800), ("folds", 10), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    torch.set_num_threads(1)
    start, trials = time.process_time(), table(options.trials, options.seed)
    print("| scatter | Laplace | chains | k folds | R-hat |\n|---|---|---|---|---|")
    for emission in EMISSION_ORDER:
        *elpd, rhat = compared(trials, emission, options.folds, options.seed)
        print(f"| {emission} | " + " | ".join(f"{value:.1f}" for value in elpd) + f" | {rhat:.3f} |", flush=True)
    print(f"\n{options.trials} trials, {options.folds} folds; {time.process_time() - start:.0f} s of processor time")
