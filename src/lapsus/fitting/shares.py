"""How often the cued item, another item, or nothing (a guess) is reported, from draws of the parameters."""

import numpy as np
import pandas as pd
import torch

from lapsus.fitting.likelihood import Parameters
from lapsus.fitting.model import MixtureModel
from lapsus.statistics.intervals import limits

__all__ = ["band", "group_shares", "mean_rates", "mean_shares", "tell_apart"]


def band(values: np.ndarray, prefix: str) -> dict[str, np.ndarray]:
    """95 % limits over the last axis, under the names {prefix}low and {prefix}high."""
    if np.isneginf(values).all():  # no swaps: quantiles of −inf would be NaN
        return {f"{prefix}low": values[..., 0], f"{prefix}high": values[..., 0]}
    low, high = limits(values, axis=-1)
    return {f"{prefix}low": low, f"{prefix}high": high}


def tell_apart(model: MixtureModel, p: Parameters, apart: float | None) -> np.ndarray:
    """The distance in the reported feature beyond which a non-target counts as distinguishable, by group [G]
    (radians): `apart`, or 2 circular s.d. of the scatter."""
    if apart is not None:
        return np.full(len(model.labels), float(apart))
    return np.minimum(2 * model.emission.natural(p.emission.mean(-1).numpy())["circular_sd"], np.pi)


def group_shares(model: MixtureModel, p: Parameters, apart: float | None = None) -> dict[str, np.ndarray]:
    """Shares of responses by group [G, S]: target, non_target, guess, and non_target_apart (of non-targets beyond
    `tell_apart`), averaged over the trials of the group; and trials [G]."""
    groups, columns = len(model.labels), p.emission.shape[-1]
    limit = tell_apart(model, p, apart)
    distance = np.abs(model.trials.distance("report"))
    found = {name: np.zeros((groups, columns)) for name in ("target", "non_target", "non_target_apart", "guess")}
    count = np.bincount(model.groups, minlength=groups)
    for rows, items, guess in model.likelihood(torch.float32).weights(p):
        own = model.groups[rows]
        starts = np.flatnonzero(np.diff(own, prepend=-1))
        far = limit[own] < distance[rows, : len(items)].T
        far[0] = False
        values = {
            "target": items[0],
            "non_target": items[1:].sum(0),
            "non_target_apart": np.einsum("nts,nt->ts", items[1:], far[1:].astype(items.dtype)),
            "guess": guess,
        }
        for name, value in values.items():
            found[name][own[starts]] += np.add.reduceat(value.astype(float), starts, axis=0)
    return {name: value / count[:, None] for name, value in found.items()} | {"trials": count}


def mean_rates(model: MixtureModel, shares: dict[str, np.ndarray]) -> pd.DataFrame:
    """Shares of responses by set size (and condition): the mean of subjects, with 95 % bands of that mean.

    Columns set_size, condition (where there are some), trials, and for each of swap, swap_apart, guess and target its
    mean, _low and _high."""
    columns = {"swap": "non_target", "swap_apart": "non_target_apart", "guess": "guess", "target": "target"}
    cells: dict[tuple[int, str], list[int]] = {}
    for group, (size, _, condition) in enumerate(model.labels):
        cells.setdefault((size, condition), []).append(group)
    rows = []
    for size, condition in sorted(cells, key=lambda cell: (cell[0], model.conditions.index(cell[1]))):
        groups = cells[size, condition]
        row = {"set_size": size, "condition": condition, "trials": int(shares["trials"][groups].sum())}
        for name, share in columns.items():
            values = shares[share][groups].mean(0)
            row |= {name: values.mean()} | {k: float(v) for k, v in band(values, f"{name}_").items()}
        rows.append(row)
    return pd.DataFrame(rows).drop(columns=[] if model.by else ["condition"])


def mean_shares(parts: list[tuple[MixtureModel, dict[str, np.ndarray]]]) -> pd.DataFrame:
    """Swap rates of all trials by set size, and in the last row over every trial with two items or more (set_size 0).

    parts: models (one, or one a subject) with their `group_shares`; of longer chains as many draws as of the shortest.
    """
    totals: dict[int, list] = {}
    columns = min(shares["non_target"].shape[-1] for _, shares in parts)
    for model, shares in parts:
        drawn = shares["non_target"].shape[-1]
        swaps = shares["non_target"][:, np.arange(columns) * drawn // columns]
        for g, (size, _, _) in enumerate(model.labels):
            for key in (size, 0) if size > 1 else (size,):
                totals.setdefault(key, []).append((shares["trials"][g], swaps[g]))
    rows = []
    for size in [*sorted(key for key in totals if key), *([0] if 0 in totals else [])]:
        count = sum(n for n, _ in totals[size])
        swap = sum(n * value for n, value in totals[size]) / count
        rows.append({"set_size": size, "trials": count, "swap": swap.mean()} | band(swap, "swap_"))
    return pd.DataFrame(rows)
