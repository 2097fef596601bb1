"""Does alignment on single trials predict swaps? What the paper predicts and does not test.

A single trial has no plane. But if colours are held as m = A_1 u_1 + A_2 u_2, u = [cos, sin] of a colour, a held-out
decoder of item 1 reads d_1 = u_1 on average and u_1 + K u_2 on a trial in which plane 2 leans into plane 1 by K more
than usual. The deviation d_1 - u_1 is taken apart into two orthogonal directions: along u_1 + u_2 (*alignment*: item
2's colour is read together with item 1's) and along u_2 - u_1 (*misbinding*: it is read instead of it). A misbound
trial has no component along the first. Both are averaged over the two items. Swaps are then regressed on alignment with
misbinding, probe distance and colour distance as covariates.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from lapsus.circular import distance, embed
from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import SampleSizes
from lapsus.evaluation.simulation import Simulated
from lapsus.mechanism.activity import NO_SWAPS, cue_onset, memory, require_trials, two_items
from lapsus.mechanism.designs import alignment_grid
from lapsus.mechanism.drawing import interval
from lapsus.mechanism.plane_alignment import places
from lapsus.mechanism.registry import Mechanism, Panel, Question
from lapsus.plots.style import GREY, PURPLE
from lapsus.statistics.intervals import Z95, proportion_interval

__all__ = [
    "QUESTION",
    "AlignmentTest",
    "alignment_and_swaps",
    "alignment_predicts_swaps",
    "swap_rate_by_alignment",
    "trial_alignment",
]


def trial_alignment(dataset: xr.Dataset, *, groups: str | None = None) -> pd.DataFrame:
    """One row a trial: `alignment`, `misbinding`, `swap`, `probe_distance`, `report_distance`, `group`.

    Memory activity is averaged over the last five steps before the cue. Linear decoders of [cos, sin] of each
    item's colour are fitted within each group (spatial configuration) to the trials of the other folds, all of them:
    before the cue nobody knows which will be swaps.
    """
    items = two_items(dataset)
    time = dataset["time"].to_numpy()
    before = np.flatnonzero(time < cue_onset(dataset))[-5:]
    if len(before) == 0:
        raise LapsusError("The dataset has no time bin before the cue, and trial-wise alignment is measured there.")
    m = memory(dataset.isel(time=before)).mean(1)
    labels = (
        np.zeros(len(m), dtype=int) if groups is None else np.unique(dataset[groups].to_numpy(), return_inverse=True)[1]
    )
    rng, folds = np.random.default_rng(0), 5
    u = embed(items.report)
    decoded = np.full((len(m), 2, 2), np.nan)
    for label in range(labels.max() + 1):
        own = np.flatnonzero(labels == label)
        require_trials(len(own), 10 * folds, f"trials in group {label}")
        fold = rng.permutation(np.arange(len(own)) % folds)
        for k in range(folds):
            train, test = own[fold != k], own[fold == k]
            decoded[test] = _decode(m[train], u[train].reshape(len(train), 4), m[test]).reshape(len(test), 2, 2)
    other = u[:, ::-1]
    deviation = decoded - u
    return pd.DataFrame(
        {
            "alignment": (deviation * (other + u)).sum(-1).mean(1),
            "misbinding": (deviation * (other - u)).sum(-1).mean(1),
            "swap": items.swap,
            "probe_distance": items.probe_distance,
            "report_distance": distance(items.report[:, 0], items.report[:, 1]),
            "group": labels,
        }
    )


def _decode(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    mean, scale, centre = x.mean(0), np.maximum(x.std(0), 1e-12), y.mean(0)
    z = (x - mean) / scale
    weights = np.linalg.solve(z.T @ z + np.eye(z.shape[1]), z.T @ (y - centre))
    return (new - mean) / scale @ weights + centre


@dataclass(frozen=True)
class AlignmentTest:
    """Logistic regression of swaps on pre-cue alignment.

    odds_ratio: of a swap for one s.d. of alignment, with its 95 % Wald interval; p: permutation of alignment among
    trials of the same group and colour distance; swaps, trials: how many.
    """

    odds_ratio: float
    low: float
    high: float
    p: float
    swaps: int
    trials: int

    @property
    def supported(self) -> bool:
        """Whether alignment before the cue predicts swaps, at the level of 5 %."""
        return self.p < 0.05

    def row(self) -> dict:
        """Columns of a table."""
        return {"alignment_odds_ratio": self.odds_ratio, "alignment_p": self.p}


def alignment_predicts_swaps(table: pd.DataFrame, *, repeats: int = 1000, seed: int = 0) -> AlignmentTest:
    """Does `alignment` (of `trial_alignment`) predict swaps at fixed probe distance, colour distance and misbinding?

    Distances enter as classes (each distinct probe distance, up to six quantiles of it; four of colour distance), so
    that no shape of their effect is assumed.
    """
    swaps = int(table["swap"].sum())
    require_trials(swaps, 20, "swap trials")
    require_trials(len(table) - swaps, 20, "correct trials")
    y = table["swap"].to_numpy().astype(float)
    a = _standardise(table["alignment"].to_numpy())
    colour = _classes(table["report_distance"].to_numpy(), 4)
    probe = _classes(np.nan_to_num(table["probe_distance"].to_numpy()), 6)
    covariates = np.concatenate(
        [
            np.ones((len(y), 1)),
            _standardise(table["misbinding"].to_numpy())[:, None],
            _dummies(colour),
            _dummies(probe),
        ],
        1,
    )
    coefficients, covariance = _logistic(np.concatenate([a[:, None], covariates], 1), y)
    null, _ = _logistic(covariates, y)
    residual = y - _expit(covariates @ null)
    # Score statistic: its permutations need no refit. Trials change places only within their group and colour class.
    stratum = np.unique(np.stack([table["group"].to_numpy(), colour], 1), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(stratum, kind="stable")
    residual, a = residual[order], a[order]
    stratum = stratum[order]
    rng = np.random.default_rng(seed)
    observed = abs(a @ residual - _expected(a, residual, stratum))
    reached = 0
    for _ in range(repeats):
        shuffled = a[np.lexsort((rng.random(len(a)), stratum))]
        reached += abs(shuffled @ residual - _expected(a, residual, stratum)) >= observed - 1e-9
    half = Z95 * np.sqrt(covariance[0, 0])
    ratio, low, high = np.exp([coefficients[0], coefficients[0] - half, coefficients[0] + half])
    return AlignmentTest(float(ratio), float(low), float(high), float((1 + reached) / (1 + repeats)), swaps, len(y))


def _expected(a: np.ndarray, residual: np.ndarray, stratum: np.ndarray) -> float:
    """Mean of the score over permutations within strata."""
    count = np.bincount(stratum)
    return float((np.bincount(stratum, a) * np.bincount(stratum, residual) / np.maximum(count, 1)).sum())


def _standardise(x: np.ndarray) -> np.ndarray:
    return (x - x.mean()) / max(x.std(), 1e-12)


def _classes(x: np.ndarray, count: int) -> np.ndarray:
    # Angles in float32 are apart by up to 1e-6 when they are the same.
    distinct = np.unique(np.round(x, 4))
    edges = (
        (distinct[1:] + distinct[:-1]) / 2
        if len(distinct) <= count
        else np.quantile(x, np.linspace(0, 1, count + 1)[1:-1])
    )
    return np.searchsorted(edges, x)


def _dummies(classes: np.ndarray) -> np.ndarray:
    """One column a class, the first left out."""
    return (classes[:, None] == np.unique(classes)[1:]).astype(float)


def _expit(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _logistic(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and their covariance by Newton's method; the tiny ridge keeps a class without swaps finite."""
    beta, ridge = np.zeros(x.shape[1]), 1e-3
    for _ in range(50):
        p = _expit(x @ beta)
        hessian = (x * (p * (1 - p))[:, None]).T @ x + ridge * np.eye(x.shape[1])
        step = np.linalg.solve(hessian, x.T @ (y - p) - ridge * beta)
        beta = beta + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-8:
            break
    return beta, np.linalg.inv(hessian)


def swap_rate_by_alignment(table: pd.DataFrame) -> pd.DataFrame:
    """Swap rate in fifths of alignment within each class of probe distance: columns probe_distance, alignment, rate,
    low, high, trials."""
    rows = []
    probe = _classes(np.nan_to_num(table["probe_distance"].to_numpy()), 6)
    for label in np.unique(probe):
        own = table[probe == label]
        place = pd.qcut(own["alignment"], 5, labels=False, duplicates="drop")
        for _quantile, part in own.groupby(place.to_numpy()):
            low, high = proportion_interval(part["swap"].sum(), len(part))
            rows.append(
                (
                    own["probe_distance"].mean(),
                    part["alignment"].mean(),
                    part["swap"].mean(),
                    float(low),
                    float(high),
                    len(part),
                )
            )
    return pd.DataFrame(rows, columns=["probe_distance", "alignment", "rate", "low", "high", "trials"])


def alignment_and_swaps(
    simulated: Simulated, degrees: tuple[int, ...] | None, rotations: int, trials: int
) -> tuple[pd.DataFrame, AlignmentTest]:
    """Trial-wise alignment of simulated trials, and the regression of swaps on it. degrees None: fixed places."""
    if degrees is None:
        table = trial_alignment(simulated(alignment_grid(), trials, seed=41))
    else:
        parts = []
        for k, apart in enumerate(degrees):
            dataset = simulated(alignment_grid(np.radians(apart), rotations), trials, seed=42 + k)
            part = trial_alignment(dataset, groups="configuration")
            parts.append(part.assign(group=part["group"] + k * rotations))
        table = pd.concat(parts, ignore_index=True)
    return table, alignment_predicts_swaps(table)


def _predicted(dataset: xr.Dataset, sizes: SampleSizes, groups: str | None = None) -> AlignmentTest:
    if not two_items(dataset).swap.any():
        raise LapsusError(f"{NO_SWAPS} among {dataset.sizes['trial']:,}")
    return alignment_predicts_swaps(trial_alignment(dataset, groups=groups), repeats=sizes.repeats)


def _sentence(found: AlignmentTest, _: Mechanism) -> str:
    return (
        "Single trials: one s.d. more alignment of the two colours before the cue multiplies the odds of a swap by"
        f" {interval((found.odds_ratio, found.low, found.high))} (permutation p = {found.p:.3f}; {found.swaps:,} swaps"
        f" in {found.trials:,} trials)."
    )


def _panel(ax: Axes, found: AlignmentTest) -> None:
    """The odds ratio with its interval, beside no effect."""
    ax.axvline(1, color=GREY, lw=0.6, ls=(0, (3, 2)))
    ax.plot([found.low, found.high], [0, 0], color=PURPLE, lw=1.4)
    ax.plot([found.odds_ratio], [0], "o", color=PURPLE, ms=5, label="odds ratio")
    ax.set(yticks=[], ylim=(-1, 1), xlabel="odds ratio of a swap per s.d. of alignment")
    ax.set_title(f"permutation p = {found.p:.3f}", fontsize="small")


QUESTION = Question(
    name="prediction",
    title="Does alignment on single trials predict swaps?",
    definition="The odds ratio of a swap for one s.d. more alignment of the two colours before the cue.",
    in_recording="The same regression is made of a recording whose items have the same places in many trials.",
    answer=AlignmentTest,
    ask=lambda network: _predicted(network.single_trials, network.sizes),
    read=lambda recording: _predicted(recording.dataset, recording.sizes, places(recording.dataset)),
    sentence=_sentence,
    panels=lambda answer, _: [Panel(lambda ax: _panel(ax, answer))],
    caption="Odds ratio of a swap for one s.d. more alignment before the cue, with its 95 % interval.",
    unknown="Whether single trials with better aligned colours are swapped more often cannot be said",
    default=False,
    statistics={"odds_ratio": "Alignment predicts swaps (odds ratio)"},
)
