"""Along which direction do swaps differ from correct trials? A cross-validated discriminant, and whether it is shared.

A swap reports another colour than a correct trial of the same condition does, so any direction that holds the reported
colour tells the two apart: that axis merely finds the colour. Here the reported colour is held fixed. Trials that
report one colour are correct where it was the target's and swaps where it was the distractor's; since the colour is
shown at either place, neither the place nor the cue alone tells which.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import gammaln

from lapsus.analysis.activity import require_trials
from lapsus.statistics.intervals import limits

__all__ = [
    "Reports",
    "SwapAxis",
    "discriminant",
    "discriminant_scores",
    "effective_dimension",
    "mean_difference",
    "pairwise_cosine",
    "random_cosine",
    "roc_area",
    "roc_curve",
    "swap_axis",
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


@dataclass(frozen=True)
class SwapAxis:
    """How well a linear axis tells swaps from correct trials that report the same colour, and whether it is one axis.

    auc: held-out area under the ROC curve at the response, mean over location pairs and colours; low, high: 95 %
    interval over them; null: the same with labels shuffled. times, auc_over_time [time]. colour_confound: the area at
    which an axis fitted without holding the reported colour fixed tells *correct* trials apart by the colour they
    report; where it is as high as auc, that axis finds the colour. shared: mean cos of the axis (which points from
    correct trials to swaps) between location pairs of one colour; across_colours: of opposite colours; shared_null:
    mean |cos| of random vectors of the effective dimension.
    vectors [location, colour, unit]. swaps, correct: trials.
    """

    auc: float
    low: float
    high: float
    null: float
    times: np.ndarray
    auc_over_time: np.ndarray
    colour_confound: float
    shared: float
    across_colours: float
    shared_null: float
    dimension: float
    vectors: np.ndarray
    swaps: int
    correct: int


@dataclass(frozen=True)
class Reports:
    """Trials of one location pair with one fixed colour: activity at the response and who is who.

    m [trial, unit]; reported [trial] bool, whether the response was the fixed colour; target [trial] bool, whether that
    colour was the target's; free [trial] the other item's colour in radians.
    """

    m: np.ndarray
    reported: np.ndarray
    target: np.ndarray
    free: np.ndarray


def swap_axis(
    cells: list[list[Reports]], over_time: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], *, seed: int = 0
) -> SwapAxis:
    """From trials by location pair and fixed colour, cells[location][colour], colours evenly spaced on the circle.

    over_time: times [time], activity [trial, time, unit] of the trials of one cell that report its colour, which of
    them were swaps [trial], and the other item's colour [trial].
    """
    rng = np.random.default_rng(seed)
    held_out, nulls, confounds, lines, swaps, correct = [], [], [], [], 0, 0
    for row in cells:
        line = []
        for cell in row:
            m, swap = cell.m[cell.reported], ~cell.target[cell.reported]
            free = cell.free[cell.reported]
            held_out.append(roc_area(discriminant_scores(m, swap, free, seed=seed), swap))
            shuffled = rng.permutation(swap)
            nulls.append(roc_area(discriminant_scores(m, shuffled, free, seed=seed), shuffled))
            line.append(mean_difference(m, swap))
            swaps, correct = swaps + int(swap.sum()), correct + int((~swap).sum())
            # The axis that does not hold the reported colour fixed: the fixed colour is the target throughout.
            other = cell.target & ~cell.reported
            if other.sum() >= 10:
                w = discriminant(cell.m[cell.target], other[cell.target])
                right = cell.reported == cell.target
                confounds.append(roc_area(cell.m[right] @ w, ~cell.reported[right]))
        lines.append(line)
    vectors, areas = np.array(lines), np.array(held_out)
    colours = vectors.shape[1]
    same = (
        np.concatenate([pairwise_cosine(vectors[:, c], signed=True) for c in range(colours)])
        if len(vectors) > 1
        else np.empty(0)
    )
    opposite = (
        np.concatenate(
            [
                pairwise_cosine(vectors[:, c], vectors[:, (c + colours // 2) % colours], signed=True)
                for c in range(colours)
            ]
        )
        if len(vectors) > 1 and colours > 1
        else np.empty(0)
    )
    drawn = areas[rng.integers(len(areas), size=(500, len(areas)))].mean(1)
    low, high = limits(drawn)
    times, path, swapped, free = over_time
    curve = np.array(
        [roc_area(discriminant_scores(path[:, k], swapped, free, seed=seed), swapped) for k in range(len(times))]
    )
    dimension = effective_dimension(np.concatenate([cell.m for row in cells for cell in row]))
    mean = lambda values: float(np.mean(values)) if len(values) else float("nan")
    return SwapAxis(
        auc=float(areas.mean()),
        low=float(low),
        high=float(high),
        null=float(np.mean(nulls)),
        times=np.asarray(times, dtype=float),
        auc_over_time=curve,
        colour_confound=mean(confounds),
        shared=mean(same),
        across_colours=mean(opposite),
        shared_null=random_cosine(dimension),
        dimension=dimension,
        vectors=vectors,
        swaps=swaps,
        correct=correct,
    )
