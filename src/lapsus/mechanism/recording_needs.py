"""What would a recording of such a network show? When a held-out decoder reads the coming swap, and how many swaps that
takes.

Recordings are simulated from a network's trials as in `resemblance`: neurons that mix its units at random, Poisson
spikes, and colours that explain a tenth of the variance of the counts. In each of five windows of the trial a decoder
of held-out trials reads the coming swap. It is read where its area is above what chance gives in one of twenty
recordings. As many swaps are needed as make four of five simulated recordings pass.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from lapsus.mechanism.resemblance import (
    TRIALS,
    WINDOWS,
    Noise,
    Pool,
    features,
    folds,
    like,
    matched_noise,
    single_trials,
)
from lapsus.training.model import Model

__all__ = ["CORRECT", "SWAPS", "UNITS", "critical_area", "earliest", "recording_needs"]

UNITS, SWAPS = (50, 100, 200), (10, 20, 40, 80)
CORRECT = 400
# Share of recordings that must show it; simulated recordings of each size.
POWER, RECORDINGS = 0.8, 20
# Seconds of the windows in the paper's task; spikes/s; share of the variance of counts that colours explain; mean
# noise correlation.
SECONDS = np.array([0.15, 0.5, 0.15, 0.65, 0.65])
RATE, RELIABILITY, CORRELATION = 10.0, 0.1, 0.03


def critical_area(swaps: int, correct: int) -> float:
    """Area under the ROC curve that chance exceeds in one of twenty recordings (Mann and Whitney's statistic)."""
    return 0.5 + 1.645 * float(np.sqrt((swaps + correct + 1) / (12 * swaps * correct)))


def recording_needs(
    networks: Mapping[str, Model],
    units: Sequence[int] = UNITS,
    swaps: Sequence[int] = SWAPS,
    recordings: int = RECORDINGS,
    trials: int = TRIALS,
    seed: int = 0,
) -> pd.DataFrame:
    """One row per network, number of neurons and window: the mean area of the decoder with the most swaps that were
    tried, and how many swaps it takes to read the coming swap there (NaN where those are too few)."""
    rows = []
    for name, model in networks.items():
        pool = Pool.of(partial(single_trials, model), trials, seed)
        for count in units:
            for window, area, needed in _by_window(pool, count, swaps, recordings, seed):
                described = {"network": name, "objective": model.objective, "units": count, "window": window}
                rows.append(described | {"area": area, "swaps": needed})
    return pd.DataFrame(rows)


def _by_window(
    pool: Pool, units: int, swaps: Sequence[int], recordings: int, seed: int
) -> list[tuple[str, float, float]]:
    """Window, mean area with the most swaps, and the swaps that are needed there."""
    # A network that swaps too rarely for the larger recordings is asked about the smaller ones.
    tried = [count for count in sorted(swaps) if count <= pool.swap.sum()]
    if not tried or pool.correct.sum() < CORRECT:
        return [(window, float("nan"), float("nan")) for window in WINDOWS]
    rates = np.random.default_rng(seed).lognormal(np.log(RATE), 0.5, units)
    made = partial(like, pool, correct=CORRECT, seconds=SECONDS, rates=rates)
    level = lambda pool, **how: made(swaps=tried[-1], **how)
    depth, shared = matched_noise(pool, level, Noise(RELIABILITY, CORRELATION, rates))
    shown = {}
    for count in tried:
        numbers = range(1000 * (seed + 1), 1000 * (seed + 1) + recordings)
        of_size = partial(made, swaps=count, depth=depth, shared=shared)
        simulated = [(number, of_size(seed=number)) for number in numbers]
        areas = np.stack([features(one, folds(one, number))[: len(WINDOWS)] for number, one in simulated])
        shown[count] = (areas.mean(0), (areas > critical_area(count, CORRECT)).mean(0) >= POWER)
    found = []
    for k, window in enumerate(WINDOWS):
        enough = [count for count in tried if shown[count][1][k]]
        found.append((window, float(shown[tried[-1]][0][k]), float(min(enough, default=float("nan")))))
    return found


def earliest(needs: pd.DataFrame, network: str, units: int) -> tuple[str, int] | None:
    """The first window in which the coming swap is read from recordings of a network, and the swaps that it takes."""
    own = needs[(needs["network"] == network) & (needs["units"] == units)]
    read = own[own["swaps"].notna()]
    return None if read.empty else (str(read["window"].iloc[0]), int(read["swaps"].iloc[0]))
