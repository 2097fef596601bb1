"""Pareto-smoothed importance-sampling leave-one-out cross-validation (Vehtari, Gelman & Gabry 2017; Vehtari et al. 2024)."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

__all__ = ["Loo", "leave_one_out", "pareto_fit", "pareto_smooth"]


@dataclass
class Loo:
    """Expected log predictive density of new trials: total, its standard error, by trial [T]; Pareto k by trial [T]."""

    elpd: float
    se: float
    by_trial: np.ndarray
    pareto_k: np.ndarray


def pareto_fit(x):
    """Shape k and scale sigma of generalised Pareto distributions on each row of x [R, M], ascending and positive.

    Zhang & Stephens (2009), with k shrunk towards 0.5 by a prior worth ten observations.
    """
    rows, count = x.shape
    grid = 30 + int(math.sqrt(count))
    j = np.arange(1, grid + 1) - 0.5
    quartile = np.maximum(x[:, int(count / 4 + 0.5) - 1], 1e-300)
    theta = 1 / x[:, -1:] + (1 - np.sqrt(grid / j)) / (3 * quartile[:, None])
    k = np.stack([np.log1p(-theta[:, [g]] * x).mean(1) for g in range(grid)], 1)
    profile = count * (np.log(-theta / k) - k - 1)
    weight = np.exp(profile - logsumexp(profile, axis=1, keepdims=True))
    theta = (theta * weight).sum(1)
    k = np.log1p(-theta[:, None] * x).mean(1)
    sigma = -k / theta
    return (count * k + 5) / (count + 10), sigma


def pareto_smooth(log_ratios):
    """Normalised log weights [R, S] and Pareto k [R] from importance log ratios [R, S], one set a row."""
    rows, count = log_ratios.shape
    tail = int(math.ceil(min(0.2 * count, 3 * math.sqrt(count))))
    log_weights = log_ratios - log_ratios.max(1, keepdims=True)
    order = np.argsort(log_weights, axis=1)
    largest = order[:, -tail:]
    in_tail = np.take_along_axis(log_weights, largest, 1)
    cutoff = np.take_along_axis(log_weights, order[:, [-tail - 1]], 1)
    excess = np.exp(in_tail) - np.exp(cutoff)
    # A row without spread in its tail needs no smoothing.
    spread = excess[:, -1] > 1e-12
    k = np.full(rows, -np.inf)
    if spread.any():
        excess = np.maximum(excess[spread], 1e-300)
        shape, sigma = pareto_fit(excess)
        k[spread] = shape
        p = (np.arange(1, tail + 1) - 0.5) / tail
        safe = np.where(np.abs(shape) < 1e-9, 1e-9, shape)[:, None]
        quantile = sigma[:, None] * np.expm1(-safe * np.log1p(-p)) / safe
        smooth = np.log(np.exp(cutoff[spread]) + quantile)
        in_tail[spread] = np.minimum(smooth, 0.0)
        np.put_along_axis(log_weights, largest, in_tail, 1)
    return log_weights - logsumexp(log_weights, axis=1, keepdims=True), k


def leave_one_out(log_likelihood) -> Loo:
    """From log p(y_t | draw) [T, S]."""
    log_likelihood = np.asarray(log_likelihood)
    by_trial, ks = [], []
    for part in np.array_split(log_likelihood, max(1, len(log_likelihood) // 2000)):
        weights, k = pareto_smooth(-part)
        by_trial.append(logsumexp(weights + part, axis=1))
        ks.append(k)
    by_trial, k = np.concatenate(by_trial), np.concatenate(ks)
    return Loo(float(by_trial.sum()), float(np.sqrt(len(by_trial)) * by_trial.std()), by_trial, k)
