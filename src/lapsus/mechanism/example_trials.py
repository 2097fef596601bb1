"""Trials that a page shows one by one: clouds of responses, and memory activity on its way to the rings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lapsus import rng
from lapsus.errors import LapsusError
from lapsus.evaluation.against_target import respond
from lapsus.evaluation.sample_sizes import FULL, SampleSizes
from lapsus.evaluation.simulation import simulate_design
from lapsus.mechanism.activity import memory, two_items
from lapsus.mechanism.designs import pair, ring_design
from lapsus.mechanism.outcomes import outcomes
from lapsus.mechanism.rings import fit_ring_pair
from lapsus.training.model import Model

__all__ = ["Arrays", "Glimpse", "example_trials", "glimpse"]

FIXED = -np.pi / 2
Arrays = dict[str, np.ndarray]


def example_trials(model: Model, probe_distance: float, seed: int = 0, sizes: SampleSizes = FULL) -> Arrays:
    """Arrays by name: `cloud_…` and `rings_…` (below); items are `probe_distance` (radians) apart."""
    return _clouds(model, probe_distance, sizes) | _rings(model, probe_distance, seed, sizes)


@dataclass(frozen=True)
class Glimpse:
    """What a network does on a few trials. curve: its swap curve, where its target has one; cloud: responses (x, y) to
    one condition with items at these angles, of a target at this radius; empty where responses are no points."""

    curve: list[dict]
    cloud: list[list[float]]
    items: list[float]
    radius: float


def glimpse(model: Model) -> Glimpse:
    """A cheap look at a network that is being trained, on one thread."""
    sizes = FULL
    conditions = model.task.sample(sizes.glimpse_conditions, rng.generator("watch"))
    answers = respond(model, conditions, sizes.glimpse_trials, 0, threads=1)
    curve = model.behaviour.measures(conditions, answers).get("swap_curve", [])
    radius = float(getattr(model.behaviour, "radius", 2.5))
    if set(conditions) != {"report", "probe", "cued"} or model.behaviour.response_size != 2:
        return Glimpse(curve, [], [], radius)
    one = _tensors(pair(np.pi / 4))
    if conditions["report"].shape[1] != 2:
        one = {name: values[:1] for name, values in conditions.items()}
    x = respond(model, one, sizes.glimpse_cloud, 1, threads=1)[:, 0].T
    return Glimpse(curve, np.round(x.numpy(), 3).tolist(), one["report"][0].tolist(), radius)


def _tensors(conditions: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    given = {name: torch.as_tensor(values) for name, values in conditions.items()}
    return {name: v.float() if v.is_floating_point() else v for name, v in given.items()}


def _clouds(model: Model, near: float, sizes: SampleSizes) -> Arrays:
    """Responses x_T [trial, 2] to one condition with close items and one with far ones."""
    found = {}
    for name, gap in (("near", near), ("far", np.pi)):
        found[f"cloud_{name}"] = respond(model, _tensors(pair(gap)), sizes.cloud, 0)[:, 0].T.numpy()
    return found


def _rings(model: Model, apart: float, seed: int, sizes: SampleSizes) -> Arrays:
    """Trials through time in the plane of the ring at the response and, third, the normal of the two rings.

    One item's colour is fixed, the other's varies. Plane and normal are fitted to half of the trials with the fixed
    colour cued; the others are shown. Where there are too few swaps for two rings, the axes are principal components,
    and `rings_axes` says so. `rings_path` [trial, time, 3] is in 1/1700 of the largest extent at the response.
    """
    probes = np.array([[-apart / 2, apart / 2]])
    design = ring_design(np.array([FIXED]), probes, free=sizes.ring_colours)
    dataset = simulate_design(model, design, sizes.ring_trials, seed + 30)
    items = two_items(dataset)
    outcome = outcomes(items.response, items.report, items.cued)
    own, free = items.cued == 0, items.report[:, 1]
    m = memory(dataset.isel(time=[-1]))[:, 0]
    half = np.arange(len(m)) % 2 == 0
    axes, mean, called = _axes(m, free, own & half, outcome.swap, outcome.correct)
    shuffle = np.random.default_rng(seed)
    rest = np.flatnonzero(~half)
    rare, usual = (shuffle.permutation(rest[part[rest]]) for part in (outcome.swap, ~outcome.swap))
    few = rare[: sizes.shown // 3]
    chosen = np.sort(np.concatenate([few, usual[: sizes.shown - len(few)]])).astype(int)
    path = (memory(dataset.isel(trial=chosen)) - mean) @ axes.T
    scale = max(float(np.quantile(np.abs(path[:, -1]), 0.99)), 1e-12)
    return {
        "rings_axes": np.array(called),
        "rings_time": dataset["time"].to_numpy(),
        "rings_epoch": dataset["epoch"].to_numpy().astype("U16"),
        "rings_path": np.clip(np.round(path / scale * 1700), -32767, 32767).astype(np.int16),
        "rings_path_free": free[chosen],
        "rings_path_fixed_cued": own[chosen],
        "rings_path_swap": outcome.swap[chosen],
    }


def _axes(m: np.ndarray, free: np.ndarray, own: np.ndarray, swap: np.ndarray, correct: np.ndarray) -> tuple[Any, ...]:
    """Three axes [3, unit], the point [unit] at which they meet, and what they are called."""
    used = np.flatnonzero(own & (swap | correct))
    try:
        rings = fit_ring_pair(m[used], free[used], correct[used])
        first, second = rings.recalled, rings.other
        plane = (second if second.radii.sum() > first.radii.sum() else first).plane
        return np.concatenate([plane, rings.normal[None]]), (first.centre + second.centre) / 2, "rings"
    except LapsusError:
        known = m[own]
        mean = known.mean(0)
        return np.linalg.svd(known - mean, full_matrices=False)[2][:3], mean, "components"
