"""How a network makes swaps: five questions, and what the paper looks at besides.

When are swaps decided, what carries them, along which direction, which kind are they, what dynamics makes them; then
the planes of the two colours over time and the paper's prediction on single trials. `analyse` asks a network, and of a
recording what a recording can answer. A question that cannot be answered leaves its reason instead of numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr

from lapsus.analysis.activity import NO_SWAPS, two_items
from lapsus.analysis.commitment import Commitment
from lapsus.analysis.decoding import Decoding, decoding
from lapsus.analysis.dynamics import Dynamics
from lapsus.analysis.kind import MOST, Kind, kind_of_swaps
from lapsus.analysis.transplants import Push, Transplant
from lapsus.analysis.trialwise import AlignmentTest, alignment_predicts_swaps, trial_alignment
from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import FULL, Sizes
from lapsus.evaluation.simulation import Simulated, simulate
from lapsus.files import to_plain
from lapsus.study.commitment import commitment
from lapsus.study.dynamics import dynamics
from lapsus.study.geometry import Geometry, geometry
from lapsus.study.planes import Planes, network_planes, places, recording_planes
from lapsus.study.replay import probe_conditions
from lapsus.study.transplants import pushes, transplants
from lapsus.tasks import FeatureCued, IndexCued
from lapsus.training.model import Model
from lapsus.zoo import Run, Shipped, load
from lapsus.zoo.shipped import shipped

__all__ = [
    "ALL",
    "QUESTIONS",
    "TELLS",
    "Mechanism",
    "analyse",
    "analyse_recording",
    "at_one_pair",
    "parting",
    "swapping_networks",
    "swaps_most_at",
    "table_row",
]

QUESTIONS = ("commitment", "transplant", "pushes", "swap_axis", "kind", "decoding", "dynamics")
# With what the paper looks at besides.
ALL = (*QUESTIONS, "alignment", "prediction")
# Area from which on a held-out decoder is said to tell two kinds of trials apart.
TELLS = 0.6
# Share of the outcome from which on the time before the cue is said to decide part of it.
EARLY = 0.1
# Steps in which memories fade to 1/e, from which on they are said to stay.
STAYS = 200


@dataclass(frozen=True)
class Mechanism:
    """Answers to each question; None where one could not be asked, and then `left_out` says why.

    probe_distance: how far apart items were where the network swaps most, in radians.
    """

    commitment: Commitment | None = None
    transplant: Transplant | None = None
    pushes: dict[str, Push] | None = None
    swap_axis: Geometry | None = None
    kind: Kind | None = None
    decoding: Decoding | None = None
    dynamics: Dynamics | None = None
    alignment: Planes | None = None
    prediction: AlignmentTest | None = None
    probe_distance: float = float("nan")
    left_out: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        said = ", ".join(f"{name} {getattr(self, name) or 'not known'}" for name in ("decided", "carrier", "error"))
        return f"Mechanism({said}; answers: {', '.join(name for name in ALL if getattr(self, name) is not None)})"

    def _repr_html_(self) -> str:
        rows = {name: f"{value:.3g}" if isinstance(value, float) else value for name, value in table_row(self).items()}
        return pd.Series(rows, dtype=object).to_frame().to_html(header=False, border=0)

    @property
    def decided(self) -> str | None:
        """ "before" or "after" the cue, where at least a tenth, or surely less, of the outcome is fixed at its onset;
        None where that is open."""
        if self.commitment is None or "commitment" in self.contradicted:
            return None
        _, low, high = self.commitment.before_cue
        return "after" if high < EARLY else "before" if low >= EARLY else None

    @property
    def carrier(self) -> str | None:
        """ "x" (the forming response), "m" (memory) or "neither" alone; None where nothing could be carried."""
        if self.transplant is None:
            return None
        x, m = self.transplant.carried_by_x, self.transplant.carried_by_m
        if not np.isfinite(x[0]):
            return None
        if x[1] > MOST and x[1] > m[2]:
            return "x"
        return "m" if m[1] > MOST and m[1] > x[2] else "neither"

    @property
    def error(self) -> str | None:
        """The kind of error, or "no mark"; None where it is not known or a held-out decoder contradicts it."""
        if self.kind is None or self.kind.decision == "cannot tell" or "kind" in self.contradicted:
            return None
        return self.kind.decision

    @property
    def maybe_misbinding(self) -> bool:
        """Whether misbinding is not ruled out."""
        return self.kind is not None and self.kind.weights["misbinding"][2] >= MOST

    @property
    def axis_tells(self) -> bool:
        """Whether memory surely tells swaps from correct trials that report the same colour."""
        return self.swap_axis is not None and self.swap_axis.axis.low >= TELLS

    @property
    def memory_stays(self) -> bool:
        """Whether memories stay before the cue, without noise."""
        part = self.dynamics
        return part is not None and (not np.isfinite(part.lifetime) or part.lifetime > STAYS)

    @property
    def contradicted(self) -> dict[str, str]:
        """Questions whose answer a held-out decoder of the same trials contradicts, and what it says."""
        read = self.decoding
        if read is None:
            return {}
        found, limit = {}, TELLS + 2 * read.error
        if self.kind is not None and self.kind.decision == "no mark" and read.at_response > limit:
            found["kind"] = f"a held-out decoder of memory tells swaps at the response (area {read.at_response:.2f})"
        early = self.commitment is not None and self.commitment.before_cue[0] < EARLY
        if early and read.before_cue > limit:
            found["commitment"] = f"a held-out decoder tells swaps before the cue (area {read.before_cue:.2f})"
        return found

    @property
    def without_points(self) -> "Mechanism":
        """The same without every slow point found: thousands of numbers that no page shows."""
        if self.dynamics is None:
            return self
        few = replace(self.dynamics, points=self.dynamics.points[:0], stable=self.dynamics.stable[:0])
        return replace(self, dynamics=few)

    def to_dict(self) -> dict:
        """Plain numbers, lists and dictionaries, as `lapsus analyse --json` prints them."""
        found = {name: to_plain(getattr(self, name)) for name in ALL if getattr(self, name) is not None}
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


def parting(kind: Kind | None, held_out: Decoding | None) -> tuple[float, bool] | None:
    """From which step on swap and correct trials differ, and whether a held-out decoder says it: where the kind's
    regression says, unless the decoder of the same trials cannot tell them apart there; then from where on it can. None
    where neither says."""
    if kind is None or not np.isfinite(kind.onset):
        return None
    if held_out is None or np.interp(kind.onset, held_out.times, held_out.auc) >= TELLS:
        return kind.onset, False
    lasting = np.flatnonzero(np.minimum.accumulate((held_out.auc >= TELLS)[::-1])[::-1])
    return (float(held_out.times[lasting[0]]), True) if len(lasting) else None


def swaps_most_at(model: Model) -> float:
    """The probe distance at which the network's target swaps most: the smallest the task draws, unless items have fixed
    places."""
    return float(getattr(model.task, "probe_margin", np.pi)) or np.pi / 4


def analyse(
    source: "Model | Run | Shipped | str | Path | xr.Dataset",
    *,
    only: tuple[str, ...] | None = None,
    sizes: Sizes = FULL,
    probe_distance: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda name: None,
) -> Mechanism:
    """Ask a network (a model, a run or its folder, the name of one that ships; or a recording in the activity form) how
    it makes swaps.

    only: the questions to ask, of ALL; by default the five questions, and of a recording all that it allows.
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
        return analyse_recording(source, only=ALL if only is None else only, sizes=sizes, seed=seed, progress=progress)
    source = load(source)
    apart = swaps_most_at(source) if probe_distance is None or isinstance(source.task, IndexCued) else probe_distance
    common: dict[str, Any] = {"seed": seed, "threads": threads, "probe_distance": apart}
    found: dict = {}
    single = cache(lambda: single_trials(source, sizes.single_trials, apart, seed, threads))
    ask: dict[str, Callable[[], Any]] = {
        "commitment": lambda: commitment(
            source,
            conditions=sizes.replay_conditions,
            groups=sizes.groups,
            replays=sizes.replays,
            every=sizes.every,
            **common,
        ),
        "transplant": lambda: transplants(
            source, conditions=sizes.replay_conditions, trials=sizes.donors, every=sizes.every, **common
        ),
        "pushes": lambda: {
            when: pushes(source, when=when, conditions=sizes.push_conditions, trials=sizes.push_trials, **common)
            for when in ("before", "after")
        },
        "swap_axis": lambda: geometry(source, locations=sizes.locations, colours=sizes.colours, **common),
        "kind": lambda: kind_of_swaps(single()),
        "decoding": lambda: decoding(single()),
        "dynamics": lambda: dynamics(source, starts=sizes.starts, commitment=found.get("commitment"), **common),
        "alignment": lambda: network_planes(source, sizes, seed),
        "prediction": lambda: _prediction(single(), sizes),
    }
    return Mechanism(**_asked(ask, QUESTIONS if only is None else only, progress, {}, found), probe_distance=apart)


def single_trials(model: Model, count: int, apart: float, seed: int = 0, threads: int | None = None) -> xr.Dataset:
    """Trials at one pair of locations, each with its own colours and cue."""
    return simulate(model, at_one_pair(model, count, apart, seed + 40), 1, seed + 40, threads=threads)


def at_one_pair(model: Model, count: int, apart: float, seed: int) -> dict[str, torch.Tensor]:
    """Conditions of these trials, both items cued equally often."""
    conditions = probe_conditions(model, count, seed)
    if isinstance(model.task, FeatureCued):
        conditions["probe"] = torch.tensor([[-apart / 2, apart / 2]]).expand(count, 2).clone()
    return conditions


def kind_of_trials(simulated: Simulated, count: int) -> Kind:
    """Which kind of error, from so many single trials, each of its own condition as the task draws it."""
    return kind_of_swaps(simulated(count, 1, seed=21))


def _prediction(dataset: xr.Dataset, sizes: Sizes, groups: str | None = None) -> AlignmentTest:
    """The paper's untested prediction: are trials with better aligned colours before the cue swapped more often?"""
    if not two_items(dataset).swap.any():
        raise LapsusError(NO_SWAPS)
    return alignment_predicts_swaps(trial_alignment(dataset, groups=groups), repeats=sizes.repeats)


# Why a recording cannot answer.
_NETWORK_ONLY = {
    "commitment": "it takes replays of the same trial with other noise, which a recording cannot have; `decoding` says"
    " when the coming swap can be read instead",
    "transplant": "it takes states put together from two trials, which only a network allows",
    "pushes": "it takes pushes of the state, which only a network allows",
    "swap_axis": "it takes many trials that report one colour at each pair of places; see `decoding`",
    "dynamics": "it takes the equations of the network",
}


def analyse_recording(
    dataset: xr.Dataset,
    *,
    only: tuple[str, ...] = ALL,
    sizes: Sizes = FULL,
    every: int = 2,
    seed: int = 0,
    progress: Callable[[str], None] = lambda name: None,
) -> Mechanism:
    """What a recording allows: which kind of error, when the coming swap can be decoded from held-out trials, and,
    where items have the same places in many trials, the planes of the two colours and the paper's prediction."""
    ask: dict[str, Callable[[], Any]] = {
        "kind": lambda: kind_of_swaps(dataset, every=every, seed=seed),
        "decoding": lambda: decoding(dataset, every=every, seed=seed),
        "alignment": lambda: recording_planes(dataset, sizes, seed),
        "prediction": lambda: _prediction(dataset, sizes, places(dataset)),
    }
    return Mechanism(**_asked(ask, only, progress, _NETWORK_ONLY))


def _asked(
    ask: dict[str, Callable[[], Any]],
    only: tuple[str, ...],
    progress: Callable[[str], None],
    left_out: dict[str, str],
    found: dict | None = None,
) -> dict:
    """Answers by name, put into `found` as they come, and as `left_out` why there are no others."""
    unknown = [name for name in only if name not in ALL]
    if unknown:
        raise LapsusError(f"There is no question {unknown[0]!r}; there are {', '.join(ALL)}.")
    found = {} if found is None else found
    reasons = {}
    for name in (name for name in ALL if name in only):
        if name in left_out:
            reasons[name] = left_out[name]
            continue
        progress(name)
        try:
            found[name] = ask[name]()
        except LapsusError as reason:
            reasons[name] = str(reason).rstrip(".")
    return found | {"left_out": reasons}


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
        row |= {"half_time": when.half_time, "half_low": when.half_low, "half_high": when.half_high}
        row |= {"fixed_at_cue_onset": when.before_cue[0], "fixed_at_cue_offset": when.at(0.0)}
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
        said = "not known" if "kind" in found.contradicted else kind.decision
        row |= {"kind": said, "misselection": kind.weights["misselection"][0]}
        row |= {"misinterpretation": kind.weights["misinterpretation"][0], "misbinding": kind.weights["misbinding"][0]}
        row |= {"way_at_cue_offset": kind.at_offset[0], "cue_misread": kind.misread[0]}
        row |= {"angle": kind.angle, "needed": kind.needed, "swaps": kind.swaps, "onset": kind.onset}
        apart = parting(kind, found.decoding)
        row["parting"] = None if apart is None else apart[0]
    if (read := found.decoding) is not None:
        row |= {"decoding_before_cue": read.before_cue, "decoding_auc": read.at_response}
    if (how := found.dynamics) is not None:
        row |= {"fixed_points": how.fixed_points, "manifold_dimension": how.manifold_dimension}
        row |= {"lifetime": how.lifetime, "memory_dimension": how.memory_dimension}
        row |= {"linear_half_time": how.half_time, "agreement": how.agreement}
    return row | {"left_out": ", ".join(found.left_out)}
