"""How a trained network does it: alignment of planes over time, rings at the response, single-trial decoders.

Every part is computed apart; one that cannot be (no swap trials, say) leaves its reason instead of its numbers.
"""

from dataclasses import asdict

import numpy as np

from lapsus.analysis.activity import cue_onset, memory, two_items
from lapsus.analysis.alignment import plane_alignment, pre_and_post_cue, sigmoid_against_flat
from lapsus.analysis.decoders import attribute, error_projections, mechanism
from lapsus.analysis.rings import ring_geometry, roc_area, separation
from lapsus.analysis.trialwise import alignment_predicts_swaps, trial_alignment
from lapsus.errors import LapsusError
from lapsus.study.designs import alignment_grid, ring_design

__all__ = ["PARTS", "analyse"]

DEGREES = (45, 75, 105, 135, 165)
ROTATIONS = 8
FIXED = -np.pi / 2
PARTS = ("alignment", "rings", "decoders", "prediction")
# Trials in the figure that can be turned: more would hide each other.
SHOWN = 320
SINGLE = 4096


def analyse(model, probe_distance: float, seed: int = 0, progress=None) -> tuple[dict, dict[str, np.ndarray]]:
    """Numbers of each part, and arrays for the figures. probe_distance: where the network swaps most."""
    numbers, arrays = {}, {}
    index = type(model.task).__name__ == "IndexCued"
    apart = np.pi if index else probe_distance
    single = None
    for part in PARTS:
        try:
            if part == "alignment":
                found, extra = _alignment(model, index, seed)
            elif part == "rings":
                found, extra = _rings(model, apart, seed)
            else:
                single = _single_trials(model, apart, seed) if single is None else single
                found, extra = (_decoders if part == "decoders" else _prediction)(single)
            numbers[part] = found
            arrays |= {f"{part}_{name}": values for name, values in extra.items()}
        except LapsusError as reason:
            numbers[part] = {"reason": str(reason).rstrip(".")}
        if progress is not None:
            progress()
    numbers["probe_distance"] = float(apart)
    return numbers, arrays


def _simulate(model, conditions: dict[str, np.ndarray], trials: int, seed: int):
    import torch

    from lapsus.study import simulate

    given = {name: torch.as_tensor(conditions[name], dtype=torch.float32) for name in ("report", "probe")}
    dataset = simulate(model, given | {"cued": torch.as_tensor(conditions["cued"])}, trials, seed)
    extra = {k: ("trial", np.repeat(v, trials)) for k, v in conditions.items() if k not in ("report", "probe", "cued")}
    return dataset.assign(extra)


def _alignment(model, index: bool, seed: int):
    """Alignment of the two items' planes over time, at each probe distance (index-cued: one)."""
    curves = []
    for k, degrees in enumerate((180,) if index else DEGREES):
        conditions = alignment_grid() if index else alignment_grid(np.radians(degrees), ROTATIONS)
        dataset = _simulate(model, conditions, 8 if index else 1, seed + k)
        shown = np.flatnonzero(~np.isin(dataset["epoch"].to_numpy(), ("initial", "prestimulus")))
        curves.append(plane_alignment(dataset.isel(time=shown), groups=None if index else "configuration"))
    time, onset = curves[0]["time"].to_numpy(), cue_onset(dataset)
    mean = np.stack([curve.mean("group").to_numpy() for curve in curves])
    before, after = (
        np.array(values) for values in zip(*((a.mean(), b.mean()) for a, b in map(pre_and_post_cue, curves)))
    )
    rise = sigmoid_against_flat(time, mean)
    found = {
        "degrees": [180] if index else list(DEGREES),
        "before": before,
        "after": after,
        "mean_before": before.mean(),
        "mean_after": after.mean(),
        "sigmoid": asdict(rise),
        "onset": onset,
        "trials": dataset.sizes["trial"],
        "rotations": curves[0].sizes["group"],
    }
    return found, {"time": time, "mean": mean, "sd": np.stack([curve.std("group").to_numpy() for curve in curves])}


def _rings(model, apart: float, seed: int):
    """Two rings at the response, and the same trials at every time in the components of the response."""
    probes = np.array([[-apart / 2, apart / 2]])
    dataset = _simulate(model, ring_design(np.array([FIXED]), probes, free=48), 16, seed + 30)
    rings, projected = ring_geometry(dataset)
    own = projected.fixed_cued
    found = {"variance": rings.variance, "trials": int(own.sum()), "swaps": int((own & projected.swap).sum())}
    rng = np.random.default_rng(seed)
    rare = np.flatnonzero(projected.swap)
    rest = np.flatnonzero(~projected.swap)
    few = rng.permutation(rare)[: SHOWN // 3]
    chosen = np.sort(np.concatenate([few, rng.permutation(rest)[: SHOWN - len(few)]]))
    path = (memory(dataset.isel(trial=chosen)) - rings.mean) @ rings.components.T  # [trial, time, 3]
    scale = np.quantile(np.abs(path[:, -1]), 0.99)
    arrays = {
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
    try:
        found |= separation(projected)
        area = roc_area(projected.points[own, 2], projected.swap[own])
        found["roc_area"] = max(area, 1 - area)
    except LapsusError as reason:
        found["separation_reason"] = str(reason)
    return found, arrays


def _single_trials(model, apart: float, seed: int):
    """Trials at one pair of locations, each with its own colours."""
    import torch

    from lapsus import streams
    from lapsus.tasks.delayed_estimation import sample_features

    generator = streams.generator(seed, "single trials")
    count = SINGLE
    conditions = {
        "report": sample_features(count, 2, np.pi / 4, generator).numpy(),
        "probe": np.tile([[-apart / 2, apart / 2]], (count, 1)),
        "cued": torch.randint(2, (count,), generator=generator).numpy(),
    }
    return _simulate(model, conditions, 1, seed + 40)


def _decoders(dataset):
    """Where swap trials lie on the lines to misbinding, misselection and misinterpretation."""
    places = error_projections(dataset)
    table = attribute(places)
    found = {
        "mechanism": mechanism(places),
        "attribution": table.rename_axis("error").reset_index().to_dict("records"),
        "swaps": int(places.swap.sum()),
        "trials": len(places.swap),
        "onset": places.onset,
    }
    rows = places.table(repeats=200)
    last = rows[rows["time"] == rows["time"].max()]
    found["at_response"] = dict(zip(last["alternative"], last["difference"]))
    kept = {name: rows[name].to_numpy() for name in rows if name != "alternative"}
    return found, kept | {"alternative": rows["alternative"].to_numpy().astype("U40")}


def _prediction(dataset):
    """The paper's untested prediction: are trials with better aligned colours before the cue swapped more often?"""
    if not two_items(dataset).swap.any():
        raise LapsusError("no swap trials")
    return asdict(alignment_predicts_swaps(trial_alignment(dataset), repeats=500)), {}
