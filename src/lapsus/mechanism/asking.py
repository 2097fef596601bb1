"""Ask a network or a recording: `analyse`. A question without an answer leaves its reason instead of numbers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr
from scipy import stats

from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import FULL, SampleSizes
from lapsus.mechanism.clock import clock_of
from lapsus.mechanism.recorded import analysable
from lapsus.mechanism.registry import QUESTIONS, AskedNetwork, Mechanism, Question, Recording, by_default
from lapsus.recordings import pseudo_population
from lapsus.statistics.intervals import Interval
from lapsus.tasks import IndexCued
from lapsus.training.model import Model
from lapsus.zoo import Run, Shipped, load
from lapsus.zoo.shipped import shipped

__all__ = ["analyse", "over_sessions", "swapping_networks", "swaps_most_at"]


def swaps_most_at(model: Model) -> float:
    """The probe distance at which the network's target swaps most: the smallest the task draws, unless items have fixed
    places."""
    return float(getattr(model.task, "probe_margin", np.pi)) or np.pi / 4


def analyse(
    source: "Model | Run | Shipped | str | Path | xr.Dataset",
    *,
    only: Sequence[str] | None = None,
    sizes: SampleSizes = FULL,
    probe_distance: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> Mechanism:
    """Ask a network (a model, a run or its folder, the name of one that ships; or a recording in the activity form) how
    it makes swaps.

    only: the questions to ask, of lapsus.mechanism.QUESTIONS; by default those about swaps, and of a recording all.
    probe_distance (radians; networks): how far apart items are, by default where the target swaps most. threads: of the
    kernel, which a recording does without. progress: called with the name of each question as it begins.

    >>> quick = lapsus.evaluation.sample_sizes.QUICK
    >>> found = lapsus.analyse("index-swap-10", only=("commitment",), sizes=quick)
    >>> bool(found.commitment.half_time > 0)  # steps from cue offset: after the cue
    True
    """
    if isinstance(source, xr.Dataset):
        if probe_distance is not None:
            raise LapsusError("`probe_distance` is for networks; a recording has the places that it was made with.")
        recording, clock = Recording(analysable(source), sizes, seed), clock_of(source)
        read: Callable[[Question], object] = lambda question: _read(question, recording)
        return Mechanism(clock=clock, **_answers(read, tuple(QUESTIONS) if only is None else only, progress))
    model = load(source)
    apart = swaps_most_at(model) if probe_distance is None or isinstance(model.task, IndexCued) else probe_distance
    network = AskedNetwork(model, sizes, apart, seed, threads)
    asked = by_default() if only is None else only
    found = _answers(lambda question: question.ask(network), asked, progress, network.answers)
    return Mechanism(probe_distance=apart, **found)


def _read(question: Question, recording: Recording) -> object:
    if isinstance(question.read, str):
        raise LapsusError(question.read)
    return question.read(recording)


def _answers(
    ask: Callable[[Question], object],
    only: Sequence[str],
    progress: Callable[[str], None],
    answers: dict[str, object] | None = None,
) -> dict:
    """Answers by name, put into `answers` as they come, and as `left_out` why there are no others."""
    unknown = [name for name in only if name not in QUESTIONS]
    if unknown:
        raise LapsusError(f"There is no question {unknown[0]!r}; there are {', '.join(QUESTIONS)}.")
    answers = {} if answers is None else answers
    left_out = {}
    for name, question in QUESTIONS.items():
        if name in only:
            progress(name)
            try:
                answers[name] = ask(question)
            except LapsusError as reason:
                left_out[name] = str(reason).rstrip(".")
    return answers | {"left_out": left_out}


def over_sessions(
    sessions: Sequence[xr.Dataset],
    found: Mechanism,
    sizes: SampleSizes = FULL,
    seed: int = 0,
    progress: Callable[[str], None] = lambda name: None,
) -> dict[str, Interval]:
    """Each number of an answer's row with its 95 % interval over sessions: what it would be without each of them in
    turn (jackknife)."""
    row, count = found.row(), len(sessions)
    # Shuffles and resampled trials only give intervals, which are not looked at here.
    sizes = replace(sizes, shuffles=2, repeats=2)
    without: list[dict] = []
    for k in range(count):
        progress(f"without session {k + 1}")
        rest = pseudo_population([*sessions[:k], *sessions[k + 1 :]], seed)
        without.append(analyse(rest, only=tuple(found.answers), sizes=sizes, seed=seed).row())
    reach = float(stats.t.ppf(0.975, count - 1))
    intervals = {}
    for name, value in row.items():
        if name.endswith("_p"):  # a p-value says by itself how sure it is
            continue
        values = np.array([one.get(name) for one in without], dtype=object)
        if isinstance(value, float) and all(isinstance(one, float) for one in values):
            error = float(np.sqrt((count - 1) * np.var(values.astype(float))))
            intervals[name] = (value, value - reach * error, value + reach * error)
    return intervals


def swapping_networks() -> list[str]:
    """Names of the shipped networks that were trained to swap: delayed estimation, a target with swaps."""
    found = []
    for name, facts in shipped().items():
        config = facts["config"]
        behaviour = config.get("behaviour", {})
        swaps = behaviour.get("kind") == "attended-swap" or (behaviour.get("swap") or {}).get("kind", "none") != "none"
        if swaps and config["stage"][-1]["objective"]["kind"] in ("diffusion", "energy"):
            found.append(name)
    return found
