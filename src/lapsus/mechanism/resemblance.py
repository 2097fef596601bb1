"""Which kind of mechanism does a recording resemble? Networks of each kind, turned into recordings like this one.

A simulated recording has the units, trials, swaps and window lengths of the real one: random mixtures of a network's
units as neurons, with the recording's firing rates, Poisson spikes, a depth of modulation at which colours explain as
much of the counts as in the recording, and a gain common to all neurons that varies between trials so that noise
correlations agree. The same numbers are computed of both: in five windows of the trial, how well the coming swap is
decoded, and how far swap trials have gone towards each error. Kinds are compared by a Gaussian discriminant of these
numbers. A brain is none of the networks, so the discriminant allows for how much networks of one kind differ; where no
kind has several, the networks that ship say how much. Its recovery of simulated recordings, each left out in turn, says
what the answer is worth: where fewer than nine in ten come back as their own kind, the answer is "cannot tell". Where a
kind has several networks, a simulated recording is recognised without the recordings of its own network, as a real one
has to be.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import cycle
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from lapsus.circular import distance
from lapsus.errors import LapsusError
from lapsus.evaluation.simulation import simulate
from lapsus.mechanism.activity import Items, two_items
from lapsus.mechanism.asking import swaps_most_at
from lapsus.mechanism.colour_code import prediction_model
from lapsus.mechanism.decoding import folds_by_condition, held_out_scores, inclined_area
from lapsus.mechanism.discriminants import roc_area
from lapsus.mechanism.error_type import error_equations
from lapsus.mechanism.outcomes import Outcomes, outcomes
from lapsus.mechanism.replay import conditions_at_one_pair
from lapsus.mechanism.synthetic import MECHANISMS, synthetic_population
from lapsus.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, legend_above
from lapsus.recordings.spikes import as_neurons
from lapsus.statistics.intervals import Interval, limits
from lapsus.tasks import FeatureCued, IndexCued
from lapsus.training.model import Model
from lapsus.zoo import load
from lapsus.zoo.shipped import COLLECTIONS, halfway, shipped

__all__ = [
    "FEATURES",
    "Discriminant",
    "Noise",
    "Pool",
    "Resemblance",
    "Windows",
    "between_networks",
    "comparable",
    "decision",
    "features",
    "folds",
    "kinds_of",
    "like",
    "matched_noise",
    "noise_of",
    "recorded_windows",
    "recovered",
    "resemblance",
    "resemblance_figure",
    "resemblance_panel",
    "single_trials",
    "windows",
]

WINDOWS = ("before stimuli", "delay 1", "cue", "early delay 2", "late delay 2")
FEATURES = (
    *(f"decoder, {name}" for name in WINDOWS),
    "inclination",
    "misbinding",
    *(f"way to the error, {name}" for name in WINDOWS[2:]),
)
# How many of them are areas under ROC curves, the first ones.
AREAS = len(WINDOWS) + 1
# Principal components of the counts that are analysed; simulated recordings of each kind; trials of each network.
COMPONENTS, RECORDINGS, TRIALS = 20, 40, 2048
# Simulated recordings of each shipped network, for how much networks of one kind differ.
SPREAD_RECORDINGS = 6
# Share of simulated recordings that must come back as their own kind, and the least score of the kind that is named.
RECOVERED, SURE = 0.9, 0.9
# Probability below which a recording is too far from every kind to be one of them.
UNLIKE = 1e-4
FEWEST_SWAPS, FEWEST_CORRECT = 5, 100
# More trials than these are not compared: they would add little and take long to simulate.
MOST_SWAPS, MOST_CORRECT = 200, 1000
# Populations that are built to err in one way: angles between the planes of both items before and after the cue, how
# strongly the cue is held, and noise.
GEOMETRIES = (
    (np.pi / 2, 0.3, 1.0, 0.5),
    (np.pi / 2, 1.2, 2.0, 1.5),
    (np.pi / 4, 0.3, 2.0, 1.0),
    (np.pi / 4, 1.2, 1.0, 2.5),
)
# Groups of trials of which each is left out in turn, for intervals over trials.
GROUPS = 10
# Levels that are tried to match reliability and noise correlations, by halving.
HALVINGS = 6

# Makes single trials of one network: (trials, seed) → dataset.
Source = Callable[[int, int], xr.Dataset]


@dataclass(frozen=True)
class Windows:
    """Spike counts [trial, window, unit] in five windows of the trial, their lengths in seconds, the trials, and in a
    pseudo-population the session of each unit."""

    counts: np.ndarray
    seconds: np.ndarray
    items: Items
    session: np.ndarray | None = None

    @cached_property
    def outcome(self) -> Outcomes:
        """Which trials are surely swaps, and which surely correct."""
        return outcomes(self.items.response, self.items.report, self.items.cued)

    def of_trials(self, rows: np.ndarray) -> "Windows":
        """Some of the trials."""
        return replace(self, counts=self.counts[rows], items=self.items.of_trials(rows))


@dataclass(frozen=True)
class Noise:
    """What is matched: share of the counts' variance that colours explain in held-out trials, and mean correlation of
    what they leave; rates [unit] in spikes/s."""

    reliability: float
    correlation: float
    rates: np.ndarray


@dataclass(frozen=True)
class Discriminant:
    """Gaussians of comparable features with a common covariance, one per kind: names [kind], means [kind, feature],
    covariance [feature, feature] of the recordings of a new network, and the degrees of freedom of its estimate."""

    names: list[str]
    means: np.ndarray
    covariance: np.ndarray
    freedom: int

    @classmethod
    def of(
        cls, simulated: Mapping[str, np.ndarray], networks: Mapping[str, int], between: np.ndarray
    ) -> "Discriminant":
        """simulated: kind → comparable features [recording, feature] of its networks in turn; networks: how many those
        are; between [feature, feature]: covariance between networks of a kind."""
        deviations, freedom = _within_networks(simulated, networks)
        # A new network deviates from the mean of the kind's networks, which itself deviates from that of the kind.
        new = 1 + np.mean([1 / count for count in networks.values()])
        covariance = deviations.T @ deviations / freedom + new * between
        # A tenth towards independent features: the covariance is estimated from few recordings.
        covariance = 0.9 * covariance + 0.1 * np.diag(np.diag(covariance)) + 1e-9 * np.eye(len(covariance))
        return cls(list(simulated), np.stack([own.mean(0) for own in simulated.values()]), covariance, freedom)

    def _distance(self, value: np.ndarray) -> np.ndarray:
        """Squared Mahalanobis distance [kind] of features [feature] from the means."""
        away = value - self.means
        return (away * np.linalg.solve(self.covariance, away.T).T).sum(1)

    def probabilities(self, value: np.ndarray) -> np.ndarray:
        """Probability of each kind [kind] for comparable features [feature], kinds equally likely."""
        distance = self._distance(value)
        weight = np.exp(-(distance - distance.min()) / 2)
        return weight / weight.sum()

    def unlikely(self, value: np.ndarray) -> float:
        """Probability that a recording of the nearest kind is as far from its mean as this one (Hotelling's T²)."""
        nearest, size = float(self._distance(value).min()), len(value)
        freedom = self.freedom - size + 1
        return float(stats.f.sf(nearest * freedom / (size * self.freedom), size, freedom))


@dataclass(frozen=True)
class Resemblance:
    """kind: the one that the recording resembles, "none of these" or "cannot tell" (why says which). scores: kind →
    (probability, low, high), kinds taken as equally likely, with the 95 % interval over the recording's trials (or
    sessions) and over simulated recordings. recovered: kind → share of simulated recordings like this one that come
    back as their own kind. needed: swaps with which nine in ten do, as many trials correct as here; None where none of
    those tried is enough. features: name → (value in the recording, low, high), over trials or sessions; expected: kind
    → name → mean."""

    kind: str
    scores: dict[str, Interval]
    recovered: dict[str, float]
    swaps: int
    correct: int
    units: int
    needed: int | None
    features: dict[str, Interval]
    expected: dict[str, dict[str, float]]
    why: str = ""

    @property
    def nearest(self) -> str | None:
        """The kind that the recording is nearest to, where it is clearly nearer to it than to the others."""
        if self.kind == "cannot tell":
            return None
        return next((kind for kind, (score, _, _) in self.scores.items() if score >= SURE), None)

    def sentence(self) -> str:
        """The answer in words."""
        given = f"{self.swaps:,} swaps, {self.units:,} neurons"
        scores = ", ".join(
            f"{kind} {score:.2f} [{low:.2f}, {high:.2f}]" for kind, (score, low, high) in self.scores.items()
        )
        if self.kind in self.scores:
            rate = 100 * self.recovered[self.kind]
            return (
                f"Comparison: the recording resembles {self.kind} ({given}; scores: {scores}). Of recordings like this"
                f" one simulated from {self.kind}, {rate:.0f} % are recognised."
            )
        text = f"Comparison: {self.kind} ({given}{f'; scores: {scores}' if scores else ''}): {self.why}."
        if self.nearest is not None:
            text += f" The nearest of them is {self.nearest}."
        if self.needed is not None and self.needed > self.swaps:
            text += f" About {self.needed:,} swaps would be enough."
        return text


# --- Windows and what is measured in them ---


def windows(epoch: np.ndarray) -> list[np.ndarray]:
    """Time bins of each window, from the epoch of each bin.

    Delay 1 and the cue count from their middle on; the time after the cue has an early and a late third.
    """
    cue = np.flatnonzero(epoch == "cue")
    if len(cue) == 0:
        raise LapsusError("The recording has no time bins in the cue, so that it cannot be compared with networks.")
    after = np.arange(cue[-1] + 1, len(epoch))
    held = np.flatnonzero(np.isin(epoch[: cue[0]], ("stimulus", "delay")))
    before = np.flatnonzero(epoch == "prestimulus")
    third = max(len(after) // 3, 1)
    found = [before, held[len(held) // 2 :], cue[len(cue) // 2 :], after[:third], after[-third:]]
    for name, bins in zip(WINDOWS, found):
        if len(bins) == 0:
            raise LapsusError(f"The recording has no time bins in one of the windows that are compared: {name}.")
    return found


def recorded_windows(dataset: xr.Dataset) -> Windows:
    """Of a recording of spike counts."""
    if "bin" not in dataset.attrs:
        raise LapsusError("Networks are compared with spike counts, as they are read from NWB files.")
    bins = windows(dataset["epoch"].to_numpy())
    activity = dataset["activity"].transpose("trial", "time", "unit").to_numpy()
    counts = np.stack([activity[:, own].sum(1, dtype=np.float32) for own in bins], 1)
    seconds = float(dataset.attrs["bin"]) * np.array([len(own) for own in bins])
    session = dataset["session"].to_numpy() if "session" in dataset.coords else None
    return Windows(counts, seconds, two_items(dataset), session)


def folds(found: Windows, seed: int = 0) -> np.ndarray:
    """Fold of each trial in which decoders are tested, [trial]."""
    return folds_by_condition(found.items, found.outcome.swap, 5, np.random.default_rng(seed))


def features(found: Windows, fold: np.ndarray) -> np.ndarray:
    """The numbers that kinds are compared by, [feature], of the leading principal components of the counts."""
    counts = found.counts / np.sqrt(found.seconds)[:, None]
    z = (counts - counts.mean((0, 1))) / np.sqrt(np.maximum(counts.mean((0, 1)), 1e-3))
    flat = z.reshape(-1, z.shape[2])
    vectors = np.linalg.eigh(flat.T @ flat)[1][:, ::-1][:, :COMPONENTS]
    m = (z @ vectors).astype(np.float64)
    items, swap, correct = found.items, found.outcome.swap, found.outcome.correct
    before, after = (items.report,), (items.report, items.cued)
    sure = swap | correct
    scores = [
        *held_out_scores(m[:, :2], before, sure, correct, fold, (swap,))[0],
        *held_out_scores(m[:, 2:], after, sure, correct, fold, (swap,))[0],
    ]
    areas = [roc_area(one[sure], swap[sure]) for one in scores]
    inclined = inclined_area(m[:, 1:2], items, found.outcome, fold)
    equations = [*error_equations(m[:, 1:2], before, correct, fold), *error_equations(m[:, 2:], after, correct, fold)]
    way = [one.solve(np.flatnonzero(swap)) - one.solve(np.flatnonzero(correct)) for one in equations]
    return np.array([*areas, inclined, *(weights.sum() for weights in way)])


def comparable(values: np.ndarray) -> np.ndarray:
    """Features [..., feature] on a scale on which their noise is about the same everywhere: areas, which vary less near
    1 than near one half, as the arcsine of their root, as is usual for shares."""
    return np.concatenate([np.arcsin(np.sqrt(values[..., :AREAS])), values[..., AREAS:]], -1)


def noise_of(found: Windows) -> Noise:
    """Reliability and noise correlations in delay 1 and at the end of delay 2, and rates."""
    correct = np.flatnonzero(found.outcome.correct)
    reliable, correlated = [], []
    for window, given in ((1, (found.items.report,)), (4, (found.items.report, found.items.cued))):
        x = found.counts[:, window].astype(float)
        x = (x - x[correct].mean(0)) / np.sqrt(np.maximum(x[correct].mean(0), 1e-3))
        rest = np.empty((len(correct), x.shape[1]))
        for k in (0, 1):
            train, test = correct[1 - k :: 2], correct[k::2]
            model = prediction_model(x[train], *(part[train] for part in given), alpha=5.0)
            rest[k::2] = x[test] - model.nominal(*(part[test] for part in given))
        reliable.append(1 - (rest**2).sum() / ((x[correct] - x[correct].mean(0)) ** 2).sum())
        # The mean of all pairs, from the variance of the sum of standardised units.
        unit = rest / np.maximum(rest.std(0), 1e-9)
        units = unit.shape[1]
        correlated.append((unit.sum(1).var() - units) / max(units * (units - 1), 1))
    rates = found.counts.sum(1).mean(0) / found.seconds.sum()
    return Noise(float(np.mean(reliable)), float(np.mean(correlated)), rates)


# --- Recordings of networks ---


def kinds_of(names: str | Sequence[str], feature_cued: bool = False) -> dict[str, list[Source]]:
    """Sources of simulated trials by kind: names of collections, networks, run folders or folders of them (a
    discovery), and types of error that are built in (a population made to err so). "name=this+that" is a kind of
    several of these. feature_cued: which networks of a collection are meant."""
    task = FeatureCued if feature_cued else IndexCued
    found: dict[str, list[Source]] = {}
    for given in names.split(",") if isinstance(names, str) else names:
        kind, _, several = given.rpartition("=")
        members = [member.strip() for member in several.split("+")]
        found[kind.strip() or members[0]] = [source for member in members for source in _sources(member, task)]
    if len(found) < 2:
        raise LapsusError("A recording is compared with two kinds or more; name them as `against=open,persistent`.")
    return found


def _sources(name: str, task: type) -> list[Source]:
    """Of the networks that a name stands for, or of a population made to err so."""
    if not name:
        raise LapsusError("A name is missing among those to compare with; write `against=open,persistent`.")
    if name in MECHANISMS:
        return [partial(_population, name, number) for number in range(len(GEOMETRIES))]
    if name in COLLECTIONS:
        swapping = (load(network) for network, facts in shipped(name).items() if _swaps(network, facts))
        models = [model for model in swapping if isinstance(model.task, task)]
    elif Path(name).is_dir() and not (Path(name) / "config.toml").exists():
        models = [load(path.parent) for path in sorted(Path(name).rglob("config.toml"))]
    else:
        models = [load(name)]
    if not models:
        raise LapsusError(f"There is no network of {name} that swaps and has the task of the recording.")
    return [partial(single_trials, model) for model in models]


def _swaps(name: str, facts: dict) -> bool:
    """Whether a shipped network was trained to swap by samples, not by its mean."""
    swap = (facts["config"].get("behaviour", {}).get("swap") or {}).get("kind", "none")
    return (
        swap != "none"
        and facts["config"]["stage"][-1]["objective"]["kind"] in ("diffusion", "energy")
        and not halfway(name)
    )


def single_trials(model: Model, trials: int, seed: int) -> xr.Dataset:
    """Trials of a network at one pair of places, each with its own colours and cue."""
    conditions = conditions_at_one_pair(model, trials, swaps_most_at(model), seed)
    return simulate(model, conditions, 1, seed, threads=1)


def _population(mechanism: str, number: int, trials: int, seed: int) -> xr.Dataset:
    before, after, cue_code, noise = GEOMETRIES[number]
    return synthetic_population(
        mechanism,
        trials=trials,
        swap_probability=0.2,
        before=before,
        after=after,
        cue_code=cue_code,
        noise=noise,
        seed=100 * seed + number,
    )


@dataclass(frozen=True)
class Pool:
    """Trials of one network in the five windows of a recording, mean activity [trial, window, unit], and who is who."""

    activity: np.ndarray
    items: Items
    swap: np.ndarray
    correct: np.ndarray

    @classmethod
    def of(cls, source: Source, trials: int, seed: int) -> "Pool":
        """Simulate."""
        dataset = source(trials, seed)
        bins = windows(dataset["epoch"].to_numpy())
        activity = dataset["activity"].transpose("trial", "time", "unit").to_numpy()
        items = two_items(dataset)
        outcome = outcomes(items.response, items.report, items.cued)
        means = np.stack([activity[:, own].mean(1) for own in bins], 1)
        return cls(means, items, outcome.swap, outcome.correct)


def _pool(source: Source, trials: int, swaps: int, correct: int, seed: int) -> Pool:
    """Trials of a network, more of them where it swaps too rarely for recordings with so many swaps."""
    for more in (1, 4, 16):
        pool = Pool.of(source, more * trials, seed)
        if pool.swap.sum() >= swaps and pool.correct.sum() >= correct:
            return pool
    raise LapsusError(
        f"a network makes {pool.swap.sum():,} swaps in {more * trials:,} trials, and {swaps:,} are needed"
    )


def _pools(
    sources: Sequence[Source],
    made: Callable[..., Windows],
    noise: Noise,
    swaps: int,
    correct: int,
    trials: int,
    seed: int,
) -> list[tuple[Pool, float, float]]:
    """Trials of each network of a kind, and the depth and the shared gain at which its noise is matched."""
    level = partial(made, swaps=swaps, correct=correct)
    pools = [_pool(source, trials, swaps, correct, seed + 7 * k) for k, source in enumerate(sources)]
    return [(pool, *matched_noise(pool, level, noise)) for pool in pools]


def like(
    pool: Pool, swaps: int, correct: int, seconds: np.ndarray, rates: np.ndarray, depth: float, shared: float, seed: int
) -> Windows:
    """A recording from a network's trials: so many swaps and correct trials, neurons with these rates (spikes/s),
    modulated by `depth`, with a gain common to all whose logarithm has the s.d. `shared` between trials."""
    rng = np.random.default_rng(seed)
    rows = [
        rng.permutation(np.flatnonzero(own))[:count] for own, count in ((pool.swap, swaps), (pool.correct, correct))
    ]
    chosen = rng.permutation(np.concatenate(rows))
    relative = as_neurons(pool.activity[chosen], len(rates), depth, seed)
    relative /= relative.mean((0, 1))
    gain = np.exp(shared * rng.standard_normal((len(chosen), len(seconds), 1)) - shared**2 / 2)
    counts = rng.poisson(relative * gain * rng.permutation(rates) * seconds[:, None]).astype(np.float32)
    return Windows(counts, seconds, pool.items.of_trials(chosen))


def matched_noise(pool: Pool, made: Callable[..., Windows], noise: Noise) -> tuple[float, float]:
    """Depth of modulation and shared gain at which simulated recordings have the reliability and the noise correlations
    of the recording, as nearly as the network allows."""
    low, high, shared = 0.02, 3.0, 0.0
    depth = high
    for k in range(HALVINGS):
        depth = float(np.sqrt(low * high))
        if noise_of(made(pool, depth=depth, shared=shared, seed=k)).reliability > noise.reliability:
            high = depth
        else:
            low = depth
    if noise_of(made(pool, depth=depth, shared=0.0, seed=0)).correlation < noise.correlation:
        low, high = 0.0, 1.0
        for k in range(HALVINGS):
            shared = (low + high) / 2
            if noise_of(made(pool, depth=depth, shared=shared, seed=k)).correlation > noise.correlation:
                high = shared
            else:
                low = shared
    return depth, shared


# --- Comparing ---


def resemblance(
    recording: xr.Dataset | Windows,
    against: "str | Sequence[str] | Mapping[str, Sequence[Source]]",
    *,
    recordings: int | None = None,
    trials: int = TRIALS,
    seed: int = 0,
    progress: Callable[[str], None] = lambda name: None,
) -> Resemblance:
    """Which of the kinds a recording of spike counts resembles.

    against: names as `kinds_of` takes them, or kind → sources of simulated trials. recordings: simulated of each kind
    (40), more where there are many networks.
    """
    recordings = RECORDINGS if recordings is None else recordings
    found = recording if isinstance(recording, Windows) else recorded_windows(recording)
    probe = found.items.probe
    feature_cued = probe is not None and bool(distance(probe, probe[:1]).max() > 1e-3)
    kinds = against if isinstance(against, Mapping) else kinds_of(against, feature_cued)
    swaps, correct, units = int(found.outcome.swap.sum()), int(found.outcome.correct.sum()), found.counts.shape[2]
    if swaps < FEWEST_SWAPS or correct < FEWEST_CORRECT:
        why = f"it takes {FEWEST_SWAPS} swaps and {FEWEST_CORRECT} correct trials, and there are {swaps} and {correct}"
        return Resemblance("cannot tell", {}, {}, swaps, correct, units, None, {}, {}, why)
    compared = found.of_trials(_at_most(found.outcome, MOST_SWAPS, MOST_CORRECT, seed))
    counts = min(swaps, MOST_SWAPS), min(correct, MOST_CORRECT)
    noise = noise_of(compared)
    made = partial(like, seconds=found.seconds, rates=noise.rates)
    pools = {}
    for kind, sources in kinds.items():
        progress(f"networks of {kind}")
        try:
            pools[kind] = _pools(sources, made, noise, *counts, trials, seed)
        except LapsusError as reason:
            raise LapsusError(f"The recording cannot be compared with {kind}: {str(reason).rstrip('.')}.") from None
    progress("recordings of each kind")
    networks = {kind: len(own) for kind, own in pools.items()}
    # With fewer, their covariance says nothing of what is too far from all kinds.
    fewest = -(-(2 * len(FEATURES) + sum(networks.values())) // len(networks))
    recordings = max(recordings, 2 * max(networks.values()), fewest)
    made_of = _simulated(pools, made, *counts, recordings, seed)
    simulated = {name: comparable(own) for name, own in made_of.items()}
    between = between_networks(simulated, networks)
    if between is None:
        progress("how much networks of one kind differ")
        between = _between_shipped(feature_cued, noise, made, *counts, trials, seed)
    shares = recovered(simulated, networks, between)
    fold = folds(compared, seed)
    value, without = features(compared, fold), _left_out(compared, fold, seed)
    kind, why = decision(Discriminant.of(simulated, networks, between), shares, comparable(value))
    needed: int | None = swaps
    if np.mean(list(shares.values())) < RECOVERED:
        needed = _needed(pools, made, between, *counts, recordings, seed)
    away = _jackknife(without)
    reach = float(stats.t.ppf(0.975, len(away) - 1)) * np.sqrt((away**2).sum(0))
    low, high = value - reach, value + reach
    low[:AREAS], high[:AREAS] = low[:AREAS].clip(0, 1), high[:AREAS].clip(0, 1)
    own_features = {name: (float(x), float(a), float(b)) for name, x, a, b in zip(FEATURES, value, low, high)}
    expected = {name: dict(zip(FEATURES, map(float, own.mean(0)))) for name, own in made_of.items()}
    scores = _scores(simulated, networks, between, comparable(value), _jackknife(comparable(without)), seed)
    return Resemblance(kind, scores, shares, swaps, correct, units, needed, own_features, expected, why)


def _between_shipped(
    feature_cued: bool, noise: Noise, made: Callable[..., Windows], swaps: int, correct: int, trials: int, seed: int
) -> np.ndarray:
    """Covariance between networks of one kind, of the collections that ship with several seeds."""
    kinds = kinds_of(("open", "persistent"), feature_cued)
    pools = {kind: _pools(sources, made, noise, swaps, correct, trials, seed) for kind, sources in kinds.items()}
    networks = {kind: len(own) for kind, own in pools.items()}
    simulated = _simulated(pools, made, swaps, correct, SPREAD_RECORDINGS * max(networks.values()), seed)
    between = between_networks({kind: comparable(own) for kind, own in simulated.items()}, networks)
    assert between is not None  # the persistent networks have three seeds
    return between


def _at_most(outcome: Outcomes, swaps: int, correct: int, seed: int) -> np.ndarray:
    """Rows of surely swapped and surely correct trials, so many of each at most."""
    rng = np.random.default_rng(seed)
    parts = ((outcome.swap, swaps), (outcome.correct, correct))
    return np.sort(np.concatenate([rng.permutation(np.flatnonzero(own))[:most] for own, most in parts]))


def _left_out(found: Windows, fold: np.ndarray, seed: int) -> np.ndarray:
    """Features without each session (of units) or each group of trials in turn, [group, feature]."""
    if found.session is not None:
        rest = [found.session != own for own in np.unique(found.session)]
        parts = [replace(found, counts=found.counts[:, :, units], session=None) for units in rest]
        return np.stack([features(part, fold) for part in parts])
    rng, swap = np.random.default_rng(seed), found.outcome.swap
    count = min(GROUPS, int(swap.sum()))
    group = np.empty(len(swap), dtype=int)
    for own in (swap, ~swap):
        group[own] = rng.permutation(np.arange(own.sum()) % count)
    kept = [np.flatnonzero(group != k) for k in range(count)]
    # Trials stay in their fold: other folds would change the decoders by more than a tenth of the trials does.
    return np.stack([features(found.of_trials(rows), fold[rows]) for rows in kept])


def _jackknife(values: np.ndarray) -> np.ndarray:
    """Deviations of values [group, feature] without each group, in units in which the sum of squares is the variance of
    the value with all."""
    return (values - values.mean(0)) * np.sqrt(1 - 1 / len(values))


def decision(kinds: Discriminant, shares: Mapping[str, float], value: np.ndarray) -> tuple[str, str]:
    """The kind that comparable features [feature] are of, "cannot tell" or "none of these", and why it is none; shares:
    what `recovered` says of these kinds."""
    share, score = float(np.mean(list(shares.values()))), kinds.probabilities(value)
    if share < RECOVERED:
        return "cannot tell", f"only {100 * share:.0f} % of simulated recordings like this one are recognised"
    if (far := kinds.unlikely(value)) < UNLIKE:
        return "none of these", f"recordings of these kinds would be as far away with a probability of {far:.1g}"
    if score.max() < SURE:
        return "cannot tell", "it lies between the kinds"
    return kinds.names[int(score.argmax())], ""


def _simulated(
    pools: dict, made: Callable[..., Windows], swaps: int, correct: int, recordings: int, seed: int
) -> dict[str, np.ndarray]:
    """Features [recording, feature] of simulated recordings of each kind, its networks in turn."""
    found = {}
    for kind, own in pools.items():
        rows = []
        for k in range(recordings):
            pool, depth, shared = own[k % len(own)]
            number = 1000 * (seed + 1) + k
            one = made(pool, swaps=swaps, correct=correct, depth=depth, shared=shared, seed=number)
            rows.append(features(one, folds(one, number)))
        found[kind] = np.stack(rows)
    return found


def _within_networks(simulated: Mapping[str, np.ndarray], networks: Mapping[str, int]) -> tuple[np.ndarray, int]:
    """Deviations [recording, feature] from the mean of each recording's network, and their degrees of freedom."""
    parts = [own[network :: networks[kind]] for kind, own in simulated.items() for network in range(networks[kind])]
    return np.concatenate([part - part.mean(0) for part in parts]), sum(map(len, parts)) - len(parts)


def between_networks(simulated: Mapping[str, np.ndarray], networks: Mapping[str, int]) -> np.ndarray | None:
    """Covariance [feature, feature] between networks of one kind, None where no kind has several: that of the networks'
    means without what single recordings add to it."""
    several = {kind: count for kind, count in networks.items() if count > 1}
    if not several:
        return None
    means = {
        kind: np.stack([simulated[kind][k::count].mean(0) for k in range(count)]) for kind, count in several.items()
    }
    away = np.concatenate([own - own.mean(0) for own in means.values()])
    deviations, freedom = _within_networks(simulated, networks)
    recordings = np.mean([len(simulated[kind]) / count for kind, count in several.items()])
    between = away.T @ away / (len(away) - len(several)) - deviations.T @ deviations / freedom / recordings
    # An estimate may be negative in some directions; a covariance is not.
    values, vectors = np.linalg.eigh(between)
    return vectors * values.clip(0) @ vectors.T


def recovered(
    simulated: Mapping[str, np.ndarray], networks: Mapping[str, int], between: np.ndarray
) -> dict[str, float]:
    """Share of simulated recordings of each kind, made from its networks in turn, that the others assign to it: those
    of the other networks, or where the kind has one network, all others."""
    shares = {}
    for k, (kind, own) in enumerate(simulated.items()):
        count = networks[kind]
        group = np.arange(len(own)) % (count if count > 1 else len(own))
        right = 0
        for held_out in np.unique(group):
            rest = {**simulated, kind: own[group != held_out]}
            others = Discriminant.of(rest, {**networks, kind: max(count - 1, 1)}, between)
            right += sum(int(others.probabilities(value).argmax() == k) for value in own[group == held_out])
        shares[kind] = right / len(own)
    return shares


def _scores(
    simulated: dict[str, np.ndarray],
    networks: dict[str, int],
    between: np.ndarray,
    value: np.ndarray,
    away: np.ndarray,
    seed: int,
) -> dict[str, Interval]:
    """Probability of each kind with its interval; away [group, feature]: as `_jackknife` gives it."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(200):
        # Every recording is replaced by one of the same network.
        rows = {kind: _same_network(len(own), networks[kind], rng) for kind, own in simulated.items()}
        resampled = {kind: own[rows[kind]] for kind, own in simulated.items()}
        kinds = Discriminant.of(resampled, networks, between)
        drawn.append(kinds.probabilities(value + rng.standard_normal(len(away)) @ away))
    low, high = limits(np.array(drawn))
    score = Discriminant.of(simulated, networks, between).probabilities(value)
    return {kind: (float(score[k]), float(low[k]), float(high[k])) for k, kind in enumerate(simulated)}


def _same_network(recordings: int, networks: int, rng: np.random.Generator) -> np.ndarray:
    """For each recording one of the same network at random [recording], networks having made them in turn."""
    network = np.arange(recordings) % networks
    count = -(-(recordings - network) // networks)  # recordings of that network
    return network + networks * rng.integers(count)


def _needed(
    pools: dict, made: Callable[..., Windows], between: np.ndarray, swaps: int, correct: int, recordings: int, seed: int
) -> int | None:
    """The first of twice, four and eight times the swaps with which kinds are recovered."""
    available = min(int(pool.swap.sum()) for own in pools.values() for pool, *_ in own)
    networks = {kind: len(own) for kind, own in pools.items()}
    for more in (2 * swaps, 4 * swaps, 8 * swaps):
        if more > available:
            return None
        simulated = _simulated(pools, made, more, correct, recordings, seed)
        shares = recovered({kind: comparable(own) for kind, own in simulated.items()}, networks, between)
        if np.mean(list(shares.values())) >= RECOVERED:
            return more
    return None


# --- Figure ---


def resemblance_figure(found: Resemblance) -> Figure:
    """The panel with its legend, as a figure of its own."""
    figure, ax = plt.subplots(figsize=(4.6, 3.2), layout="constrained")
    resemblance_panel(ax, found)
    legend_above(ax, columns=1)
    return figure


def resemblance_panel(ax: Axes, found: Resemblance) -> Axes:
    """The numbers that kinds are compared by: of the recording with their intervals, and of each kind on average."""
    heights = np.arange(len(found.features))
    values = np.array(list(found.features.values()))
    reach = np.abs(values[:, 1:] - values[:, :1]).T
    ax.errorbar(values[:, 0], heights, xerr=reach, fmt="o", ms=4, lw=0.8, color=BLACK, label="the recording")
    colours = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, GREY)
    for (kind, expected), colour, marker in zip(found.expected.items(), cycle(colours), cycle("sD^vPX")):
        mean = [expected[name] for name in found.features]
        ax.plot(mean, heights, marker, ms=4, color=colour, alpha=0.8, label=kind)
    for chance in (0, 0.5, 1):
        ax.axvline(chance, color=GREY, lw=0.4, zorder=0)
    ax.set_yticks(heights, list(found.features))
    low, high = min(values[:, 0].min(), 0) - 0.15, max(values[:, 0].max(), 1) + 0.15
    ax.set(xlabel="AUC (0.5 is chance), or share of the way", ylim=(len(heights) - 0.5, -0.5), xlim=(low, high))
    return ax
