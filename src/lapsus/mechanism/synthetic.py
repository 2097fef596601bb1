"""Populations that make swap errors in a known way: to test the analyses on, and to see what each error would look
like.

Before the cue the population holds the colour of the upper item (item 1) in one plane and that of the lower one in
another. From the cue on it holds the target's colour and the distractor's, each at the place it came from. A swap comes
about by *misbinding* (colours exchanged from the stimulus on), by *misselection* (colours exchanged from the cue on),
by *misinterpretation* (the other item is taken for the cued one from the cue on), by a *late switch* (to the state of
the other cue, in the middle of the second delay) or by *prior inclination* (from the stimuli on one item is favoured,
as a code of its own says, and taken for the cued one whatever the cue).
"""

import numpy as np
import pandas as pd
import xarray as xr

from lapsus.circular import embed, wrap
from lapsus.errors import LapsusError
from lapsus.mechanism.activity import activity_dataset
from lapsus.mechanism.error_type import ERROR_TYPES

__all__ = ["EPOCHS", "MECHANISMS", "planes", "synthetic_population"]

# Steps of each epoch, as in the paper's task.
EPOCHS = {"prestimulus": 3, "stimulus": 5, "delay": 15, "cue": 5, "denoise": 40}
MECHANISMS = (*ERROR_TYPES, "late switch", "prior inclination")
# Steps after the cue at which a late switch begins, and how many it takes.
SWITCH, SWITCHING = 18, 5
# Distance between no inclination and one to either item.
INCLINED = 2.0


def planes(angle: float, units: int, rng: np.random.Generator) -> np.ndarray:
    """Bases [2, 2, unit] of two planes that share a line and whose normals, in the space they span, differ by
    `angle`."""
    basis = np.linalg.qr(rng.standard_normal((units, units)))[0].T
    lean = np.cos(angle) * basis[1] + np.sin(angle) * basis[2]
    return np.stack([basis[:2], np.stack([basis[0], lean])])


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def synthetic_population(
    mechanism: str = "misselection",
    *,
    trials: int = 2000,
    units: int = 24,
    swap_probability: float = 0.15,
    before: float = np.pi / 2,
    after: float = 0.3,
    cue_code: float = 1.0,
    noise: float = 0.5,
    response_noise: float = 0.1,
    margin: float = np.pi / 4,
    seed: int = 0,
) -> xr.Dataset:
    """A dataset of a population whose swaps are all of one kind.

    before, after: angle in radians between the planes of the two items' colours before and after the cue; cue_code:
    distance between the population's two states of having heard one cue or the other; noise: s.d. of each unit at each
    step (planes have unit radius).
    """
    if mechanism not in MECHANISMS:
        *others, last = map(repr, MECHANISMS)
        raise LapsusError(f"mechanism is {', '.join(others)} or {last}, not {mechanism!r}.")
    rng = np.random.default_rng(seed)
    first = rng.uniform(-np.pi, np.pi, trials)
    colours = np.stack([first, wrap(first + rng.uniform(margin, 2 * np.pi - margin, trials))], 1)
    cued = rng.integers(2, size=trials)
    swap = rng.random(trials) < swap_probability
    exchanged = np.where(swap[:, None], colours[:, ::-1], colours)
    stored = exchanged if mechanism == "misbinding" else colours
    loaded = exchanged if mechanism in ("misbinding", "misselection") else colours
    other = np.where(swap, 1 - cued, cued)
    heard = other if mechanism in ("misinterpretation", "prior inclination") else cued
    followed = other if mechanism == "late switch" else heard

    spatial = np.einsum("tix,ixu->tu", embed(stored), planes(before, units, rng))
    as_target, as_distractor = planes(after, units, rng), planes(after, units, rng)
    direction = rng.standard_normal(units)

    def after_cue(cue: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The target's colour and the state of having heard this cue."""
        target, distractor = (np.take_along_axis(loaded, index[:, None], 1)[:, 0] for index in (cue, 1 - cue))
        role = np.einsum("tx,txu->tu", embed(target), as_target[cue])
        role += 0.7 * np.einsum("tx,txu->tu", embed(distractor), as_distractor[1 - cue])
        return target, role + cue_code * (cue[:, None] - 0.5) * _unit(direction)

    (_, role), (target, final) = after_cue(heard), after_cue(followed)

    time = np.arange(sum(EPOCHS.values())) - sum(EPOCHS.values()) + EPOCHS["denoise"]
    epoch = np.repeat(list(EPOCHS), list(EPOCHS.values()))
    shown = (epoch != "prestimulus").astype(float)
    loading = np.clip((time + EPOCHS["cue"] + 1) / EPOCHS["cue"], 0, 1)
    switched = np.clip((time - SWITCH) / SWITCHING, 0, 1)[:, None]
    # Favoured is the item that will be reported on swap trials; as often the cued one is, to no harm.
    lucky = (
        rng.random(trials) < swap_probability / (1 - swap_probability) if mechanism == "prior inclination" else False
    )
    favoured = np.where(swap | lucky, 2 * heard - 1, 0) * (mechanism == "prior inclination")
    spatial = spatial + INCLINED * favoured[:, None] * _unit(
        rng.standard_normal(units) if np.any(favoured) else direction
    )
    activity = (shown * (1 - loading))[:, None] * spatial[:, None]
    activity = activity + loading[:, None] * ((1 - switched) * role[:, None] + switched * final[:, None])
    activity = activity + noise * rng.standard_normal(activity.shape)
    response = wrap(target + response_noise * rng.standard_normal(trials))
    table = pd.DataFrame({"cued": cued + 1, "report_1": colours[:, 0], "report_2": colours[:, 1]})
    return activity_dataset(activity, table, time=time, epoch=epoch, response=response)
