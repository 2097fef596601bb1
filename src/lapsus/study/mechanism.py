"""How a trained network does it: alignment of planes over time, rings at the response, single-trial decoders.

Every part is computed apart; one that cannot be (no swap trials, say) leaves its reason instead of its numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr

from lapsus import streams
from lapsus.analysis.activity import cue_onset, memory, two_items
from lapsus.analysis.alignment import SigmoidFit, plane_alignment, pre_and_post_cue, sigmoid_against_flat
from lapsus.analysis.decoders import attribute, error_projections, mechanism
from lapsus.analysis.rings import ring_geometry, roc_area, separation
from lapsus.analysis.trialwise import AlignmentTest, alignment_predicts_swaps, trial_alignment
from lapsus.errors import LapsusError
from lapsus.study.designs import alignment_grid, pair, ring_design
from lapsus.study.evaluation import respond
from lapsus.study.simulation import simulate_design
from lapsus.study.sizes import FULL, Sizes
from lapsus.tasks import IndexCued
from lapsus.tasks.delayed_estimation import sample_features
from lapsus.training import Model

__all__ = ["Attribution", "Decoders", "LeftOut", "Mechanism", "Planes", "TwoRings", "study_mechanism"]

FIXED = -np.pi / 2
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class LeftOut:
    """An analysis that could not be made, and why."""

    reason: str


@dataclass(frozen=True)
class Planes:
    """|cos| of the two items' colour planes, mean over rotations, before and after the cue at each probe distance."""

    degrees: tuple[int, ...]
    before: np.ndarray
    after: np.ndarray
    mean_before: float
    mean_after: float
    sigmoid: SigmoidFit
    onset: float
    trials: int
    rotations: int


@dataclass(frozen=True)
class TwoRings:
    """Rings at the response: variance of three components, and how far swaps are from correct trials along the
    third."""

    variance: np.ndarray
    trials: int
    swaps: int
    distance: float | None = None
    turn_correct: float | None = None
    turn_swap: float | None = None
    roc_area: float | None = None
    separation_reason: str | None = None


@dataclass(frozen=True)
class Attribution:
    """Where swap and correct trials lie on the line to one error (0 nominal, 1 error), and their difference."""

    error: str
    swap: float
    correct: float
    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Decoders:
    """Misbinding, misselection or misinterpretation, from held-out single trials."""

    mechanism: str
    attribution: tuple[Attribution, ...]
    swaps: int
    trials: int
    onset: float
    at_response: dict[str, float]


@dataclass(frozen=True)
class Mechanism:
    """All parts; probe_distance (radians) is where single trials were looked at."""

    alignment: Planes | LeftOut
    rings: TwoRings | LeftOut
    decoders: Decoders | LeftOut
    prediction: AlignmentTest | LeftOut
    probe_distance: float

    @property
    def kind(self) -> str | None:
        """What swaps are decoded as; None where they cannot be."""
        return None if isinstance(self.decoders, LeftOut) else self.decoders.mechanism

    @property
    def left_out(self) -> dict[str, str]:
        """Parts that could not be computed, with the reason."""
        parts = {name: getattr(self, name) for name in ("alignment", "rings", "decoders", "prediction")}
        return {name: part.reason for name, part in parts.items() if isinstance(part, LeftOut)}


def study_mechanism(
    model: Model, probe_distance: float, seed: int = 0, sizes: Sizes = FULL, progress: Callable[[], None] | None = None
) -> tuple[Mechanism, Arrays]:
    """Numbers of each part, and arrays for the figures. probe_distance (radians): where the network swaps most."""
    index = isinstance(model.task, IndexCued)
    apart = np.pi if index else probe_distance
    single: list[xr.Dataset] = []

    def single_trials() -> xr.Dataset:
        if not single:
            single.append(_single_trials(model, apart, seed, sizes))
        return single[0]

    parts: dict[str, Callable[[], tuple[Any, Arrays]]] = {
        "alignment": lambda: _alignment(model, index, seed, sizes),
        "rings": lambda: _rings(model, apart, seed, sizes),
        "decoders": lambda: _decoders(single_trials()),
        "prediction": lambda: (_prediction(single_trials(), sizes), {}),
    }
    found: dict[str, Any] = {}
    arrays = _clouds(model, apart, sizes)
    for name, part in parts.items():
        try:
            found[name], extra = part()
            arrays |= {f"{name}_{key}": values for key, values in extra.items()}
        except LapsusError as reason:
            found[name] = LeftOut(str(reason).rstrip("."))
        if progress is not None:
            progress()
    return Mechanism(probe_distance=float(apart), **found), arrays


def _clouds(model: Model, near: float, sizes: Sizes) -> Arrays:
    """Responses x_T [trial, 2] to one condition with close items and one with far ones."""
    found = {}
    for name, gap in (("near", near), ("far", np.pi)):
        conditions = {key: torch.as_tensor(values) for key, values in pair(gap).items()}
        conditions = {key: v.float() if v.is_floating_point() else v for key, v in conditions.items()}
        found[f"cloud_{name}"] = respond(model, conditions, sizes.cloud, 0)[:, 0].T.numpy()
    return found


def _alignment(model: Model, index: bool, seed: int, sizes: Sizes) -> tuple[Planes, Arrays]:
    """Alignment of the two items' planes over time, at each probe distance (index-cued: one)."""
    curves, levels = [], (180,) if index else sizes.degrees
    for k, degrees in enumerate(levels):
        conditions = alignment_grid() if index else alignment_grid(np.radians(degrees), sizes.rotations)
        dataset = simulate_design(model, conditions, 8 if index else 1, seed + k)
        shown = np.flatnonzero(~np.isin(dataset["epoch"].to_numpy(), ("initial", "prestimulus")))
        curves.append(plane_alignment(dataset.isel(time=shown), groups=None if index else "configuration"))
    time, onset = curves[0]["time"].to_numpy(), cue_onset(dataset)
    mean = np.stack([curve.mean("group").to_numpy() for curve in curves])
    before, after = (
        np.array(values) for values in zip(*((a.mean(), b.mean()) for a, b in map(pre_and_post_cue, curves)))
    )
    found = Planes(
        degrees=tuple(levels),
        before=before,
        after=after,
        mean_before=float(before.mean()),
        mean_after=float(after.mean()),
        sigmoid=sigmoid_against_flat(time, mean),
        onset=float(onset),
        trials=dataset.sizes["trial"],
        rotations=curves[0].sizes["group"],
    )
    return found, {"time": time, "mean": mean, "sd": np.stack([curve.std("group").to_numpy() for curve in curves])}


def _rings(model: Model, apart: float, seed: int, sizes: Sizes) -> tuple[TwoRings, Arrays]:
    """Two rings at the response, and the same trials at every time in the components of the response."""
    probes = np.array([[-apart / 2, apart / 2]])
    design = ring_design(np.array([FIXED]), probes, free=sizes.ring_colours)
    dataset = simulate_design(model, design, sizes.ring_trials, seed + 30)
    rings, projected = ring_geometry(dataset)
    own = projected.fixed_cued
    apart_by: dict[str, Any] = {}
    try:
        area = roc_area(projected.points[own, 2], projected.swap[own])
        apart_by = separation(projected) | {"roc_area": max(area, 1 - area)}
    except LapsusError as reason:
        apart_by = {"separation_reason": str(reason)}
    found = TwoRings(rings.variance, int(own.sum()), int((own & projected.swap).sum()), **apart_by)
    rng = np.random.default_rng(seed)
    rare = np.flatnonzero(projected.swap)
    rest = np.flatnonzero(~projected.swap)
    few = rng.permutation(rare)[: sizes.shown // 3]
    chosen = np.sort(np.concatenate([few, rng.permutation(rest)[: sizes.shown - len(few)]]))
    path = (memory(dataset.isel(trial=chosen)) - rings.mean) @ rings.components.T  # [trial, time, 3]
    scale = np.quantile(np.abs(path[:, -1]), 0.99)
    return found, {
        "points": projected.points,
        "free": projected.free,
        "fixed_cued": own,
        "swap": projected.swap,
        "time": dataset["time"].to_numpy(),
        "epoch": dataset["epoch"].to_numpy().astype("U16"),
        "path": np.clip(np.round(path / scale * 1700), -32767, 32767).astype(np.int16),
        "path_free": projected.free[chosen],
        "path_fixed_cued": own[chosen],
        "path_swap": projected.swap[chosen],
    }


def _single_trials(model: Model, apart: float, seed: int, sizes: Sizes) -> xr.Dataset:
    """Trials at one pair of locations, each with its own colours."""
    generator = streams.generator(seed, "single trials")
    count = sizes.single_trials
    conditions = {
        "report": sample_features(count, 2, np.pi / 4, generator).numpy(),
        "probe": np.tile([[-apart / 2, apart / 2]], (count, 1)),
        "cued": torch.randint(2, (count,), generator=generator).numpy(),
    }
    return simulate_design(model, conditions, 1, seed + 40)


def _decoders(dataset: xr.Dataset) -> tuple[Decoders, Arrays]:
    """Where swap trials lie on the lines to misbinding, misselection and misinterpretation."""
    places = error_projections(dataset)
    table = attribute(places).rename_axis("error").reset_index()
    rows = places.table(repeats=200)
    last = rows[rows["time"] == rows["time"].max()]
    names = tuple(Attribution.__dataclass_fields__)
    found = Decoders(
        mechanism=mechanism(places),
        attribution=tuple(Attribution(*(row[name] for name in names)) for row in table.to_dict("records")),
        swaps=int(places.swap.sum()),
        trials=len(places.swap),
        onset=float(places.onset),
        at_response=dict(zip(last["alternative"], last["difference"])),
    )
    kept = {name: rows[name].to_numpy() for name in rows if name != "alternative"}
    return found, kept | {"alternative": rows["alternative"].to_numpy().astype("U40")}


def _prediction(dataset: xr.Dataset, sizes: Sizes) -> AlignmentTest:
    """The paper's untested prediction: are trials with better aligned colours before the cue swapped more often?"""
    if not two_items(dataset).swap.any():
        raise LapsusError("no swap trials")
    return alignment_predicts_swaps(trial_alignment(dataset), repeats=sizes.repeats)
