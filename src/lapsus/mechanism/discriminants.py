"""Linear discriminants of swaps from correct trials on held-out trials, areas under the ROC curve, and cosines."""

import numpy as np
from scipy import stats
from scipy.special import gammaln

from lapsus.mechanism.activity import require_trials

__all__ = [
    "discriminant",
    "discriminant_scores",
    "effective_dimension",
    "mean_difference",
    "pairwise_cosine",
    "random_cosine",
    "roc_area",
    "roc_curve",
]


def roc_area(scores: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve: the probability that a positive trial scores above another one, ties half."""
    positive = np.asarray(positive, dtype=bool)
    count, rest = int(positive.sum()), int((~positive).sum())
    require_trials(count, 1, "swap trials")
    require_trials(rest, 1, "correct trials")
    ranks = stats.rankdata(scores)
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * rest))


def roc_curve(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates as the criterion falls: [point] each, from (0, 0) to (1, 1)."""
    scores, positive = np.asarray(scores), np.asarray(positive, dtype=bool)
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)
    hits, misses = np.cumsum(positive[order])[last], np.cumsum(~positive[order])[last]
    return np.append(0, misses / misses[-1]), np.append(0, hits / hits[-1])


def discriminant(m: np.ndarray, swap: np.ndarray, shrink: float = 1e-3) -> np.ndarray:
    """Fisher's direction [unit]: the inverse of the covariance within classes times the difference of their means."""
    one, other = m[swap], m[~swap]
    centred = np.concatenate([one - one.mean(0), other - other.mean(0)])
    within = centred.T @ centred / max(len(centred) - 2, 1)
    within += shrink * np.trace(within) / len(within) * np.eye(len(within)) + 1e-12 * np.eye(len(within))
    return np.linalg.solve(within, one.mean(0) - other.mean(0))


def discriminant_scores(
    m: np.ndarray, swap: np.ndarray, stimulus: np.ndarray, *, folds: int = 5, seed: int = 0
) -> np.ndarray:
    """Held-out scores [trial] of a linear discriminant of swaps (high) from correct trials (low), m [trial, unit].

    Each fold is scored by the direction fitted to the others, centred half way between their two means. Folds hold
    whole stimuli (stimulus [trial], any label): a stimulus that happens to have more swaps among the trials fitted has
    fewer among those left out, and the area would fall below one half where there is nothing to find.
    """
    swap = np.asarray(swap, dtype=bool)
    require_trials(int(swap.sum()), 2 * folds, "swap trials")
    require_trials(int((~swap).sum()), 2 * folds, "correct trials")
    kinds = np.unique(np.round(stimulus, 6), return_inverse=True)[1]
    folds = min(folds, int(kinds.max()) + 1)
    require_trials(folds, 2, "different stimuli")
    fold = np.random.default_rng(seed).permutation(np.arange(kinds.max() + 1) % folds)[kinds]
    scores = np.zeros(len(m))
    for k in range(folds):
        train, test = fold != k, fold == k
        if not 1 < (train & swap).sum() < train.sum() - 1:
            continue
        w = discriminant(m[train], swap[train])
        middle = (m[train & swap].mean(0) + m[train & ~swap].mean(0)) / 2
        spread = max(float((m[train] @ w).std()), 1e-12)
        scores[test] = (m[test] - middle) @ w / spread
    return scores


def mean_difference(m: np.ndarray, swap: np.ndarray) -> np.ndarray:
    """The axis as a pattern of activity: mean of swaps minus mean of correct trials, of unit length, [unit].

    (The discriminant itself is a filter: it also turns away from directions of noise.)
    """
    d = m[swap].mean(0) - m[~swap].mean(0)
    return d / max(np.linalg.norm(d), 1e-12)


def effective_dimension(m: np.ndarray) -> float:
    """Participation ratio of the covariance of m [trial, unit]: in how many directions activity varies."""
    spectrum = np.linalg.eigvalsh(np.cov(m.T)).clip(0)
    return float(spectrum.sum() ** 2 / (spectrum**2).sum())


def random_cosine(dimension: float) -> float:
    """Mean |cos| of two random directions in a space of that (not necessarily whole) dimension."""
    return float(np.exp(gammaln(dimension / 2) - gammaln((dimension + 1) / 2)) / np.sqrt(np.pi))


def pairwise_cosine(first: np.ndarray, second: np.ndarray | None = None, *, signed: bool = False) -> np.ndarray:
    """|cos| between unit vectors first [configuration, unit] and second, over pairs of *different* configurations:
    [pair]; signed: cos, for vectors that have a sense."""
    cosine = (first @ (first if second is None else second).T).clip(-1, 1)
    cosine = cosine if signed else np.abs(cosine)
    rows, columns = np.triu_indices(len(first), 1) if second is None else np.nonzero(~np.eye(len(first), dtype=bool))
    return cosine[rows, columns]
