"""How a network makes swaps, in five questions: when, carried by what, along which direction, which kind, what
dynamics.

`analyse` asks all of them of a network, and of a recording those that a recording can answer. A question that cannot be
answered leaves its reason instead of numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from lapsus.analysis.activity import cue_onset, memory, two_items
from lapsus.analysis.commitment import Commitment
from lapsus.analysis.dynamics import Dynamics
from lapsus.analysis.kind import Kind, kind_of_swaps
from lapsus.analysis.outcomes import outcomes
from lapsus.analysis.swap_axis import roc_area
from lapsus.analysis.transplants import Push, Transplant
from lapsus.errors import LapsusError
from lapsus.files import to_plain
from lapsus.library import shipped
from lapsus.study.commitment import commitment
from lapsus.study.dynamics import dynamics
from lapsus.study.geometry import Geometry, geometry
from lapsus.study.simulation import simulate
from lapsus.study.transplants import pushes, transplants
from lapsus.training.model import Model

__all__ = [
    "QUESTIONS",
    "Decoding",
    "Mechanism",
    "Sizes",
    "analyse",
    "analyse_recording",
    "swapping_networks",
    "table_row",
]

QUESTIONS = ("commitment", "transplant", "pushes", "swap_axis", "kind", "dynamics")


@dataclass(frozen=True)
class Sizes:
    """How much is simulated for each question; the defaults take about a minute in all on one core."""

    conditions: int = 48
    groups: int = 64
    replays: int = 4
    donors: int = 128
    push_conditions: int = 48
    push_trials: int = 48
    locations: int = 4
    colours: int = 4
    single_trials: int = 4096
    starts: int = 1024
    every: int = 4


@dataclass(frozen=True)
class Decoding:
    """Held-out decoding of the coming swap at each time of a recording: times and auc [time], null [time] with labels
    shuffled among trials; the activity is taken relative to what the linear model of correct trials predicts."""

    times: np.ndarray
    auc: np.ndarray
    null: np.ndarray
    swaps: int
    correct: int
    unclear: int


@dataclass(frozen=True)
class Mechanism:
    """Answers to the five questions; None where one could not be asked, and then `left_out` says why.

    probe_distance: how far apart items were where the network swaps most, in radians. decoding: recordings only.
    """

    commitment: Commitment | None = None
    transplant: Transplant | None = None
    pushes: dict[str, Push] | None = None
    swap_axis: Geometry | None = None
    kind: Kind | None = None
    dynamics: Dynamics | None = None
    decoding: Decoding | None = None
    probe_distance: float = float("nan")
    left_out: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict:
        """Plain numbers, lists and dictionaries, as `lapsus analyse --json` prints them."""
        found = {
            name: to_plain(getattr(self, name)) for name in (*QUESTIONS, "decoding") if getattr(self, name) is not None
        }
        if self.swap_axis is not None:
            rings = self.swap_axis.fitted
            found["swap_axis"] = to_plain(self.swap_axis.axis) | {
                "rings": {
                    "fitted": len(rings),
                    "explained": to_plain(np.mean([pair.explained for pair in rings])) if rings else None,
                    "distance": to_plain(np.mean([pair.distance for pair in rings])) if rings else None,
                    "parallel": to_plain(np.mean([pair.parallel for pair in rings])) if rings else None,
                    "dimensions": to_plain(np.median([p.recalled.dimensions for p in rings])) if rings else None,
                }
            }
            found["swap_axis"].pop("vectors")
        if self.dynamics is not None:
            for name in ("points", "stable"):
                found["dynamics"].pop(name)
        if np.isfinite(self.probe_distance):
            found["probe_distance"] = self.probe_distance
        return found | {"left_out": self.left_out}


def swaps_most_at(model: Model) -> float:
    """The probe distance at which the network's target swaps most: the smallest the task draws, unless items have fixed
    places."""
    return float(getattr(model.task, "probe_margin", np.pi)) or np.pi / 4


def analyse(
    source: "Model | xr.Dataset",
    *,
    only: tuple[str, ...] = QUESTIONS,
    sizes: Sizes | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> Mechanism:
    """Ask a network (or a recording in the activity form) how it makes swaps.

    only: the questions to ask, of QUESTIONS. progress: called with the name of each question as it begins.
    """
    if isinstance(source, xr.Dataset):
        return analyse_recording(source, seed=seed)
    unknown = [name for name in only if name not in QUESTIONS]
    if unknown:
        raise LapsusError(f"There is no question {unknown[0]!r}; there are {', '.join(QUESTIONS)}.")
    sizes = sizes or Sizes()
    apart = swaps_most_at(source)
    common = {"seed": seed, "threads": threads, "probe_distance": apart}
    found: dict = {}
    left_out: dict[str, str] = {}
    ask = {
        "commitment": lambda: commitment(
            source, conditions=sizes.conditions, groups=sizes.groups, replays=sizes.replays, every=sizes.every, **common
        ),
        "transplant": lambda: transplants(
            source, conditions=sizes.conditions, trials=sizes.donors, every=sizes.every, **common
        ),
        "pushes": lambda: {
            when: pushes(source, when=when, conditions=sizes.push_conditions, trials=sizes.push_trials, **common)
            for when in ("before", "after")
        },
        "swap_axis": lambda: geometry(source, locations=sizes.locations, colours=sizes.colours, **common),
        "kind": lambda: kind_of_swaps(single_trials(source, sizes.single_trials, apart, seed, threads)),
        "dynamics": lambda: dynamics(source, starts=sizes.starts, commitment=found.get("commitment"), **common),
    }
    for name in QUESTIONS:
        if name not in only:
            continue
        progress(name)
        try:
            found[name] = ask[name]()
        except LapsusError as reason:
            left_out[name] = str(reason).rstrip(".")
    return Mechanism(**found, probe_distance=apart, left_out=left_out)


def single_trials(model: Model, count: int, apart: float, seed: int = 0, threads: int | None = None) -> xr.Dataset:
    """Trials at one pair of locations, each with its own colours and cue."""
    import torch

    from lapsus.study.replay import probe_conditions

    conditions = probe_conditions(model, count, seed + 40)
    if type(model.task).__name__.startswith("FeatureCued"):
        conditions["probe"] = torch.tensor([[-apart / 2, apart / 2]]).expand(count, 2).clone()
    return simulate(model, conditions, 1, seed + 40, threads=threads)


def analyse_recording(dataset: xr.Dataset, *, every: int = 2, seed: int = 0) -> Mechanism:
    """What a recording allows: which kind of error, and when the coming swap can be decoded from held-out trials."""
    replayed = "it takes replays of the same trial with other noise, which a recording cannot have"
    left_out = {
        "commitment": f"{replayed}; `decoding` says when the coming swap can be read instead",
        "transplant": "it takes states put together from two trials, which only a network allows",
        "pushes": "it takes pushes of the state, which only a network allows",
        "swap_axis": "it takes many trials that report one colour at each pair of places; see `decoding`",
        "dynamics": "it takes the equations of the network",
    }
    found: dict = {}
    for name, ask in (("kind", kind_of_swaps), ("decoding", decoding)):
        try:
            found[name] = ask(dataset, every=every, seed=seed)
        except LapsusError as reason:
            left_out[name] = str(reason).rstrip(".")
    return Mechanism(**found, left_out=left_out)


def decoding(dataset: xr.Dataset, *, folds: int = 5, every: int = 2, seed: int = 0) -> Decoding:
    """Decode the coming swap at each time from activity relative to what was shown and asked, on held-out trials.

    Colours and cue are taken off by the linear model of correct trials, so that what is left is what differs between
    trials that were shown the same; a swap is then a shift towards the exchanged prediction, and the score is the place
    along it in units of the noise. Before the cue the shift is that of exchanged colours.
    """
    from lapsus.analysis.kind import _whitener, prediction_model

    items = two_items(dataset)
    outcome = outcomes(items.response, items.report, items.cued)
    sure = outcome.swap | outcome.correct
    if outcome.swap.sum() < 2 * folds:
        raise LapsusError(f"only {outcome.swap.sum()} swap trials" if outcome.swap.any() else "no swap trials")
    rng = np.random.default_rng(seed)
    fold = np.empty(len(sure), dtype=int)
    for rows in (np.flatnonzero(outcome.swap), np.flatnonzero(~outcome.swap)):
        fold[rows] = rng.permutation(np.arange(len(rows)) % folds)
    time, onset = dataset["time"].to_numpy(), cue_onset(dataset)
    steps = np.unique(np.append(np.arange(0, len(time), every), len(time) - 1))
    m = memory(dataset)[:, steps]
    areas, nulls = [], []
    shuffled = rng.permutation(outcome.swap[sure])
    for k, step in enumerate(steps):
        scores = np.empty(len(sure))
        for j in range(folds):
            train, test = (fold != j) & outcome.correct, fold == j
            cue = None if time[step] < onset else items.cued
            given = (items.report[train],) if cue is None else (items.report[train], cue[train])
            model = prediction_model(m[train, k], *given)
            white = _whitener(m[train, k] - model.nominal(*given))
            given = (items.report[test],) if cue is None else (items.report[test], cue[test])
            nominal = model.nominal(*given)
            error = model.exchanged(*given) if cue is None else model.misselected(*given)
            line = (error - nominal) @ white
            scores[test] = (((m[test, k] - nominal) @ white) * line).sum(1) / np.maximum(
                np.linalg.norm(line, axis=1), 1e-9
            )
        areas.append(roc_area(scores[sure], outcome.swap[sure]))
        nulls.append(roc_area(scores[sure], shuffled))
    counts = int(outcome.swap.sum()), int(outcome.correct.sum()), outcome.unclear
    return Decoding(time[steps].astype(float), np.array(areas), np.array(nulls), *counts)


def swapping_networks() -> list[str]:
    """Names of the shipped networks that were trained to swap: delayed estimation, diffusion, a target with swaps."""
    found = []
    for name, facts in shipped().items():
        config = facts["config"]
        behaviour = config.get("behaviour", {})
        swaps = behaviour.get("kind") == "attended-swap" or (behaviour.get("swap") or {}).get("kind", "none") != "none"
        if swaps and config["stage"][-1]["objective"]["kind"] == "diffusion":
            found.append(name)
    return found


def table_row(found: Mechanism) -> dict:
    """The answers as one row of numbers and a word; None where a question was left out."""
    row: dict = {}
    if (when := found.commitment) is not None:
        at_cue = sum(share for name, share in when.by_epoch.items() if name not in ("cue", "denoise"))
        row |= {"half_time": when.half_time, "half_low": when.half_low, "half_high": when.half_high}
        row |= {"fixed_at_cue_onset": at_cue, "fixed_at_cue_offset": when.at(0.0)}
    if (what := found.transplant) is not None:
        row |= {"carried_by_x": what.carried_by_x[0], "carried_by_m": what.carried_by_m[0]}
    if found.pushes is not None:
        row["push_alignment"] = found.pushes["before"].against_random["alignment"][0]
        row["push_swap_axis"] = found.pushes["after"].against_random["swap axis"][0]
    if found.swap_axis is not None:
        axis, rings = found.swap_axis.axis, found.swap_axis.fitted
        row |= {"axis_auc": axis.auc, "colour_confound": axis.colour_confound}
        row |= {"shared": axis.shared, "shared_null": axis.shared_null}
        row["ring_distance"] = float(np.mean([pair.distance for pair in rings])) if rings else None
    if (kind := found.kind) is not None:
        row |= {"kind": kind.decision, "misselection": kind.weights["misselection"][0]}
        row |= {"misinterpretation": kind.weights["misinterpretation"][0], "misbinding": kind.weights["misbinding"][0]}
        row |= {"angle": kind.angle, "needed": kind.needed, "swaps": kind.swaps, "onset": kind.onset}
    if (how := found.dynamics) is not None:
        row |= {"fixed_points": how.fixed_points, "manifold_dimension": how.manifold_dimension}
        row |= {"lifetime": how.lifetime, "memory_dimension": how.memory_dimension}
        row |= {"linear_half_time": how.half_time, "agreement": how.agreement}
    return row | {"left_out": ", ".join(found.left_out)}
