"""Spike counts in time bins about the events of each trial, as the dataset that every analysis takes."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from scipy.ndimage import gaussian_filter1d

from lapsus.errors import LapsusError
from lapsus.recordings.layout import EPOCHS
from lapsus.recordings.session import Session
from lapsus.statistics.swaps import nearest_item

__all__ = ["count_spikes", "pseudo_population", "seconds"]

# Bytes of the counts of one recording: one each, four each where they are smoothed.
MOST_BYTES = 2_000_000_000
# Bins of each colour among which trials of several sessions are matched, fewer where a session would lack trials.
COLOUR_BINS = (4, 3, 2, 1)


def seconds(text: str | float) -> float:
    """A duration in seconds.

    >>> from lapsus.recordings.counts import seconds
    >>> seconds("50ms"), seconds("0.1 s"), seconds(0.05)
    (0.05, 0.1, 0.05)
    """
    number = str(text).strip()
    scale = 1.0
    if number.endswith("ms"):
        number, scale = number[:-2], 0.001
    elif number.endswith("s"):
        number = number[:-1]
    try:
        value = float(number) * scale
    except ValueError:
        value = np.nan
    if not 0 <= value < np.inf:
        raise LapsusError(f"'{str(text)[:40]}' is not a duration; write 50ms or 0.05s.")
    return value


def count_spikes(
    session: Session, bin: str | float = 0.05, *, align: str = "cue", smooth: str | float = 0.0
) -> xr.Dataset:
    """Counts [trial, time, unit] of a session in bins of `bin` seconds.

    Time 0 is the end of the cue in the median trial. align: the event, or events with commas, to which bins are
    aligned: each bin follows the last of them that comes before it, so that "stimulus,cue" has trials with delays of
    different length on two clocks. `recorded [trial, time]` is false where a trial has ended, or is in another epoch
    than the bin. smooth: s.d. of a Gaussian over time, in seconds.
    """
    width, blur = seconds(bin), seconds(smooth)
    if not width:
        raise LapsusError("A bin of 0 s holds no spikes; give a longer `bin`, as 50ms.")
    finest = max(session.resolution, 1e-4)
    if width < finest:
        raise LapsusError(
            f"{session.name}: its spike times are exact to {finest * 1000:g} ms, so bins of {width * 1000:g} ms are"
            " finer than the data allow; give a longer `bin`."
        )
    time, epoch, starts, recorded = _bins(session, width, align)
    if "cue" not in epoch:
        raise LapsusError(f"{session.name}: with bins of {width:g} s no bin is in the cue; give a shorter `bin`.")
    if blur > width * len(time):
        raise LapsusError(f"{session.name}: a `smooth` of {blur:g} s is longer than the trial; give less, as 20ms.")
    size = len(session.trials) * len(time) * len(session.spikes)
    if size * (4 if blur else 1) > MOST_BYTES:
        raise LapsusError(
            f"{session.name}: {len(session.spikes):,} units × {len(session.trials):,} trials × {len(time)} bins are"
            f" {'more smoothed' if blur else 'more'} counts than fit in memory; give a longer `bin`,"
            f"{' no `smooth`,' if blur else ''} or fewer units or trials."
        )
    counts = _counts(session.spikes, starts, width)
    counts[~recorded] = 0
    if blur:
        counts = gaussian_filter1d(counts, blur / width, axis=1, output=np.float32)
    return _dataset(session, counts, time, epoch, recorded, width)


def _bins(session: Session, width: float, align: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Time [time] and epoch [time] of the bins, when each begins in each trial [trial, time], and whether the trial is
    in that epoch then."""
    events = {str(name)[3:]: times.to_numpy() for name, times in session.trials.items() if str(name).startswith("at_")}
    anchors = [name.strip() for name in align.split(",")]
    if missing := [name for name in anchors if name not in events]:
        raise LapsusError(f"There is no event {missing[0]!r} to align to; there are {', '.join(events)}.")
    # Times of events in the median trial, from the end of the cue.
    median = {name: float(np.median(times - events["response"])) for name, times in events.items()}
    anchors.sort(key=lambda name: median[name])
    first = int(np.floor(median[next(iter(events))] / width + 1e-6))
    last = int(np.ceil(median["end"] / width - 1e-6))
    time = np.arange(first, last) * width
    follows = np.searchsorted([median[name] for name in anchors], time + 1e-9, side="right") - 1
    starts = np.empty((len(session.trials), len(time)))
    for k, name in enumerate(anchors):
        now = np.maximum(follows, 0) == k
        starts[:, now] = events[name][:, None] + (time[now] - median[name])
    names = [name for name in EPOCHS if name in events]
    which = np.searchsorted([median[name] for name in names], time + width / 2, side="right") - 1
    which = np.maximum(which, 0)
    onset = np.stack([events[name] for name in [*names, "end"]], 1)
    # A bin may reach across the edge of its epoch by one bin: events jitter.
    middle = starts + width / 2
    recorded = (middle > onset[:, which] - width) & (middle < onset[:, which + 1] + width)
    recorded &= (starts > onset[:, :1] - width) & (starts < onset[:, -1:])
    return time, np.array(names)[which], starts, recorded


def _counts(spikes: Sequence[np.ndarray], starts: np.ndarray, width: float) -> np.ndarray:
    """Counts [trial, time, unit], one unit after the other, in bytes where they fit."""
    # A bin ends where the next one begins, but for rounding and where the bins change to another event.
    ends = starts + width
    following = starts[:, 1:]
    ends[:, :-1] = np.where(np.abs(following - ends[:, :-1]) < 1e-6 * width, following, ends[:, :-1])
    begin, end = starts.ravel(), ends.ravel()
    counts = np.empty((*starts.shape, len(spikes)), np.uint8)
    for unit, times in enumerate(spikes):
        found = (np.searchsorted(times, end) - np.searchsorted(times, begin)).reshape(starts.shape)
        if found.max(initial=0) > np.iinfo(counts.dtype).max:
            counts = counts.astype(np.uint16)
        counts[..., unit] = found
    return counts


def _dataset(
    session: Session, counts: np.ndarray, time: np.ndarray, epoch: np.ndarray, recorded: np.ndarray, width: float
) -> xr.Dataset:
    variables: dict = {"activity": (("trial", "time", "unit"), counts), "recorded": (("trial", "time"), recorded)}
    variables |= {str(name): ("trial", values.to_numpy()) for name, values in session.trials.items()}
    coords: dict = {"time": time, "epoch": ("time", epoch)}
    coords |= {name: ("unit", session.units[name].to_numpy()) for name in ("rate", "presence")}
    dataset = xr.Dataset(
        variables, coords=coords, attrs={"bin": width, "session": session.name, "notes": "\n".join(session.notes)}
    )
    dataset["time"].attrs["units"] = "s"
    cue = time[epoch == "cue"]
    if len(cue):
        dataset = dataset.assign_coords(from_cue_onset=("time", time - cue[0]))
    return dataset


def pseudo_population(sessions: list[xr.Dataset], seed: int = 0) -> xr.Dataset:
    """Units of several sessions as if they had been recorded at once.

    Trials are matched by condition: which item was cued, which was reported, and the bin of each colour. A condition
    has as many trials as the session with the fewest; colours and response are those of the first session's trial.
    Noise correlations between sessions are lost.
    """
    if len(sessions) == 1:
        return sessions[0]
    widths = {float(dataset.attrs["bin"]) for dataset in sessions}
    if len(widths) > 1:
        raise LapsusError("Sessions must have bins of the same length to be pooled.")
    # The bins that all sessions have, by whole bins from the end of the cue.
    place = [np.round(dataset["time"].to_numpy() / widths.copy().pop()).astype(int) for dataset in sessions]
    shared = sorted(set.intersection(*map(set, place)))
    if not shared:
        raise LapsusError("The sessions have no time bin in common.")
    parts = [dataset.isel(time=np.searchsorted(own, shared)) for dataset, own in zip(sessions, place)]
    swaps = [_conditions(part, 1)[:, 1] != _conditions(part, 1)[:, 0] for part in parts]
    for bins in COLOUR_BINS:
        rows = _matched([_conditions(part, bins) for part in parts], np.random.default_rng(seed))
        # Swaps are few: coarser colours where matching would lose half of them.
        if swaps[0][rows[0]].sum() >= 0.5 * min(own.sum() for own in swaps):
            break
    if len(rows[0]) == 0:
        raise LapsusError("The sessions have no condition in common, so their trials cannot be matched.")
    chosen = [part.isel(trial=own) for part, own in zip(parts, rows)]
    first = chosen[0].drop_vars(["rate", "presence", "activity", "recorded"])
    activity = np.concatenate([part["activity"].to_numpy() for part in chosen], 2)
    recorded = np.all([part["recorded"].to_numpy() for part in chosen], axis=0)
    notes = [f"{len(sessions)} sessions are pooled: {len(rows[0]):,} trials matched in {bins} bins of each colour"]
    pooled = first.assign(
        activity=(("trial", "time", "unit"), activity), recorded=(("trial", "time"), recorded)
    ).assign_coords({name: ("unit", np.concatenate([part[name] for part in chosen])) for name in ("rate", "presence")})
    session = np.repeat(np.arange(len(parts)), [part.sizes["unit"] for part in parts])
    pooled = pooled.assign_coords(session=("unit", session))
    for one in sessions:
        notes += [f"{one.attrs['session']}: {line}" for line in str(one.attrs["notes"]).splitlines()]
    return pooled.assign_attrs(notes="\n".join(notes), session=f"{len(sessions)} sessions")


def _conditions(dataset: xr.Dataset, bins: int) -> np.ndarray:
    """Cued item, reported item and the bin of each colour [trial, 4]."""
    report = np.stack([dataset["report_1"], dataset["report_2"]], 1)
    recalled, _ = nearest_item(dataset["response"].to_numpy(), report)
    colour = np.floor((report + np.pi) / (2 * np.pi) * bins).astype(int).clip(0, bins - 1)
    return np.column_stack([dataset["cued"].to_numpy() - 1, recalled, colour])


def _matched(conditions: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Rows of each session so that all have the same condition in the same place."""
    tables = [pd.DataFrame(own).groupby([0, 1, 2, 3]).indices for own in conditions]
    rows: list[list[np.ndarray]] = [[] for _ in tables]
    for key in sorted(set.intersection(*(set(table) for table in tables))):
        count = min(len(table[key]) for table in tables)
        for own, table in zip(rows, tables):
            own.append(rng.permutation(table[key])[:count])
    return [np.concatenate(own) if own else np.empty(0, dtype=int) for own in rows]
