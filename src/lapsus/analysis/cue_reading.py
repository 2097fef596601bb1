"""Was the cue read as it was given? A decoder of the cue from memory, fitted to correct trials, asked on swap trials.

Where the cue is taken for the other one, memory is that of the other cue as soon as it has been shown, and the decoder
reads the other cue. Where a trial goes over to the other item later, or the wrong colour is selected, it reads the cue
that was given.
"""

import numpy as np

from lapsus.analysis.swap_axis import discriminant

__all__ = ["READABLE", "read_other_cue", "share_misread"]

# Share of correct trials in which the decoder may be wrong for its word to count; at one half it reads nothing. Its
# errors are taken off (share_misread), so that a weak code of the cue costs trials and no truth.
READABLE = 0.4


def read_other_cue(m: np.ndarray, cued: np.ndarray, known: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Whether a held-out linear decoder of the cue reads the one that was not given, [trial, time].

    m: memory [trial, time, unit]; cued [trial]: 0 or 1; known [trial]: the trials (correct ones) that it is fitted to,
    of the other folds (fold [trial]).
    """
    other = np.zeros(m.shape[:2], dtype=bool)
    second = np.asarray(cued) == 1
    for k in range(fold.max() + 1):
        train, test = (fold != k) & known, fold == k
        if not 1 < (train & second).sum() < train.sum() - 1:
            continue
        for t in range(m.shape[1]):
            now = m[:, t]
            w = discriminant(now[train], second[train])
            middle = (now[train & second].mean(0) + now[train & ~second].mean(0)) / 2
            other[test, t] = ((now[test] - middle) @ w > 0) != second[test]
    return other


def share_misread(swap: np.ndarray, correct: np.ndarray) -> np.ndarray:
    """Share of swap trials whose cue was taken for the other one, from the shares of swap and of correct trials in
    which a decoder reads the other one, which is as often wrong on the former as on the latter."""
    return (swap - correct) / np.maximum(1 - 2 * correct, 1e-9)
