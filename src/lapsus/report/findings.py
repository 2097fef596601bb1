"""What a study of a network found, as frozen results: pages, words and files take these and compute nothing."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lapsus.evaluation.against_target import evaluate
from lapsus.evaluation.match import Match
from lapsus.evaluation.sample_sizes import FULL, SampleSizes
from lapsus.mechanism.asking import analyse
from lapsus.mechanism.example_trials import Arrays, example_trials
from lapsus.mechanism.registry import QUESTIONS, Mechanism
from lapsus.mechanism.resemblance import Resemblance
from lapsus.training import Experiment
from lapsus.zoo import Run, Shipped

# Items nearer than this (radians) are not looked at one by one: their colours blur into each other.
LEAST_APART = math.pi / 12


@dataclass(frozen=True)
class Check:
    """Something that was checked, in words; status is "failed", "not checked", "nearly" or "passed"."""

    name: str
    status: str
    text: str


@dataclass(frozen=True)
class RecordingFindings:
    """A recording that was given with a discovery: its name, what it has in sentences, and which of the matched
    networks it resembles; no comparison where there were none of both objectives."""

    source: str
    said: list[str]
    comparison: Resemblance | None

    @property
    def sentence(self) -> str:
        """Which networks the recording resembles."""
        if self.comparison is None:
            return "The recording was compared with nothing: no networks of both objectives are matched and swap."
        return self.comparison.sentence()


@dataclass(frozen=True)
class NetworkFindings:
    """One network: how far its training came (updates, minutes in `seconds`), how close it is to its target, how it
    does it; `match` only where it was trained for a subject; settled: it was left early, as nothing was to be gained.
    """

    name: str
    experiment: Experiment
    update: int
    seconds: float
    metrics: list[dict]
    evaluation: dict[str, Any]
    mechanism: Mechanism
    arrays: Arrays
    match: Match | None = None
    settled: bool = False

    @property
    def updates(self) -> int:
        """Updates that its experiment asks for."""
        return self.experiment.updates


def seconds_trained(metrics: list[dict]) -> float:
    """Seconds that training has taken, from its record."""
    return float((metrics or [{}])[-1].get("seconds", 0.0))


def study_network(
    network: Run | Shipped,
    seed: int = 0,
    sizes: SampleSizes = FULL,
    progress: Callable[[str], None] = lambda part: None,
) -> NetworkFindings:
    """A trained network of delayed estimation against its own target, and its mechanism; progress: called with the name
    of each part as it begins."""
    model, metrics = network.model(), network.metrics()
    progress("evaluation")
    evaluation = evaluate(model, sizes.evaluation_conditions, sizes.evaluation_trials, seed=seed)
    curve = evaluation["swap_curve"]
    apart = max(curve, key=lambda point: point["target"])["distance"] if curve else math.pi / 4
    apart = max(apart, LEAST_APART)
    mechanism = analyse(model, only=tuple(QUESTIONS), probe_distance=apart, seed=seed, sizes=sizes, progress=progress)
    # Like the questions, the example trials have two items; a network of another task is not shown them.
    arrays = example_trials(model, mechanism.probe_distance, seed, sizes) if mechanism.answers else {}
    return NetworkFindings(
        network.name,
        network.experiment,
        network.update,
        seconds_trained(metrics),
        metrics,
        evaluation,
        mechanism,
        arrays,
    )
