"""Activity and its trial table: the one form in which simulations and recordings enter every analysis.

A dataset holds `activity[trial, time, unit]`, `response[trial]` and the trial table as variables on `trial`; time 0 is
the offset of the cue. A network's dataset also holds `readout[dim, unit]`, W_x of the paper; a recording has none.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from lapsus.circular import distance, embed, wrap
from lapsus.errors import LapsusError
from lapsus.statistics.swaps import nearest_item

__all__ = [
    "NO_SWAPS",
    "NO_SWAPS_IN_DATA",
    "Items",
    "activity_dataset",
    "behaviour",
    "check_activity",
    "cue_onset",
    "items",
    "memory",
    "require_trials",
    "two_items",
    "without_swaps",
]

# Why a question about swaps has no answer, where nothing failed: none was made, or none is in the data.
NO_SWAPS = "no swap trials"
NO_SWAPS_IN_DATA = "the fit found no swaps in these data, so there are none to explain"


@dataclass(frozen=True)
class Items:
    """What was shown, what was asked and what was answered, as arrays over trials.

    report, probe: [trial, item] radians (probe is None where locations are fixed and not given); cued: [trial], counted
    from 0;
    response: [trial] radians; recalled: [trial], the item whose report feature is nearest to the response; swap:
    [trial] bool.
    """

    report: np.ndarray
    probe: np.ndarray | None
    cued: np.ndarray
    response: np.ndarray
    recalled: np.ndarray

    @property
    def swap(self) -> np.ndarray:
        """Whether the nearest item is not the cued one, [trial]."""
        return self.recalled != self.cued

    @property
    def target(self) -> np.ndarray:
        """Report feature of the cued item, [trial]."""
        return np.take_along_axis(self.report, self.cued[:, None], 1)[:, 0]

    @property
    def distractor(self) -> np.ndarray:
        """Report feature of the other item, [trial]; two items only."""
        return np.take_along_axis(self.report, 1 - self.cued[:, None], 1)[:, 0]

    def of_trials(self, rows: np.ndarray) -> "Items":
        """Some of the trials."""
        probe = None if self.probe is None else self.probe[rows]
        return Items(self.report[rows], probe, self.cued[rows], self.response[rows], self.recalled[rows])

    @property
    def probe_distance(self) -> np.ndarray:
        """Distance between the two probe features, [trial], in [0, pi]; NaN where none are given."""
        if self.probe is None:
            return np.full(len(self.cued), np.nan)
        return distance(self.probe[:, 0], self.probe[:, 1])

    @property
    def points(self) -> np.ndarray:
        """Response on the unit circle, [trial, 2]."""
        return embed(self.response)


def activity_dataset(
    activity: Any,
    trials: pd.DataFrame,
    *,
    time: np.ndarray | None = None,
    epoch: np.ndarray | None = None,
    response: np.ndarray | None = None,
    readout: np.ndarray | None = None,
    time_unit: str | None = None,
) -> xr.Dataset:
    """A dataset from plain arrays, checked.

    activity: [trial, time, unit], finite; or pynapple's TsdTensor [time, trial, unit], which brings its times in
    seconds. trials: one row a trial, with `cued` (number of the cued item, from 1),
    `report_1`, `report_2`, … (radians) and, where locations vary, `probe_1`, `probe_2`, …; any further column is kept.
    time: [time], increasing, 0 at cue offset. epoch: [time] names, among them "cue". response: [trial] radians, unless
    `trials` has it.
    readout: [dim, unit] with orthonormal rows, for networks. time_unit: "s", "ms" or "steps" (of 50 ms); without it,
    the numbers decide (lapsus.mechanism.clock).
    """
    if hasattr(activity, "time_support"):
        time = activity.t if time is None else time
        time_unit = "s" if time_unit is None else time_unit
        activity = np.moveaxis(np.asarray(activity), 0, min(1, np.ndim(activity) - 1))
    activity = np.asarray(activity)
    if activity.ndim != 3:
        raise LapsusError(f"activity must have three axes (trial, time, unit), not {activity.ndim}.")
    count, steps, units = activity.shape
    if len(trials) != count:
        raise LapsusError(f"The trial table has {len(trials)} rows and activity has {count} trials; they must agree.")
    if not np.isfinite(activity).all():
        trial, step, unit = np.argwhere(~np.isfinite(activity))[0]
        raise LapsusError(f"activity is not finite at trial {trial}, time {step}, unit {unit}; drop or fill it first.")
    time = np.arange(steps) if time is None else np.asarray(time)
    if time.shape != (steps,) or np.any(np.diff(time) <= 0):
        raise LapsusError(f"time must be {steps} increasing numbers, one for each time bin of activity.")
    epoch = np.full(steps, "") if epoch is None else np.asarray(epoch, dtype=str)
    if epoch.shape != (steps,):
        raise LapsusError(f"epoch must be {steps} names, one for each time bin of activity.")
    variables: dict[str, tuple] = {"activity": (("trial", "time", "unit"), activity)}
    for name in trials.columns:
        variables[str(name)] = ("trial", trials[name].to_numpy())
    if response is not None:
        response = np.asarray(response)
        if response.shape != (count,):
            raise LapsusError(
                f"response must be {count} numbers, one for each trial, not an array of shape {response.shape}."
            )
        variables["response"] = ("trial", response)
    if readout is not None:
        readout = np.asarray(readout)
        if readout.ndim != 2 or readout.shape[1] != units:
            raise LapsusError(f"readout must be [dim, {units}], one column for each unit, not {readout.shape}.")
        if not np.allclose(readout @ readout.T, np.eye(len(readout)), atol=1e-4):
            raise LapsusError("readout must have orthonormal rows; pass an orthonormal basis of the response space.")
        variables["readout"] = (("dim", "unit"), readout)
    dataset = xr.Dataset(variables, coords={"time": time, "epoch": ("time", epoch)})
    if time_unit is not None:
        dataset["time"].attrs["units"] = time_unit
    items(dataset)
    return dataset


def check_activity(dataset: xr.Dataset) -> None:
    """Raise unless a dataset from a file has the activity form; one that `activity_dataset` or `simulate` made has."""
    for name, dims in (("activity", ("trial", "time", "unit")), ("time", ("time",)), ("epoch", ("time",))):
        if name not in dataset.variables or set(dataset[name].dims) != set(dims):
            raise LapsusError(f"The dataset needs a variable {name!r} over {', '.join(dims)}.")
    if empty := [name for name, size in dataset["activity"].sizes.items() if size == 0]:
        raise LapsusError(f"The dataset is empty: it has no {empty[0]}.")
    for name in ("activity", "time", *(["readout"] if "readout" in dataset else [])):
        if dataset[name].dtype.kind not in "fiu" or not np.isfinite(dataset[name].to_numpy()).all():
            raise LapsusError(f"Variable {name} has values that are not finite numbers; drop or fill them first.")
    if np.any(np.diff(dataset["time"].to_numpy()) <= 0):
        raise LapsusError("Variable time must increase from bin to bin.")
    if "readout" in dataset:
        if set(dataset["readout"].dims) != {"dim", "unit"}:
            raise LapsusError("The dataset's readout must be over dim and unit.")
        readout = dataset["readout"].transpose("dim", "unit").to_numpy()
        if not np.allclose(readout @ readout.T, np.eye(len(readout)), atol=1e-4):
            raise LapsusError("The dataset's readout must have orthonormal rows.")
    items(dataset)


def items(dataset: xr.Dataset) -> Items:
    """The trial table of a dataset as arrays, with the item recalled on each trial (nearest in the report feature)."""
    for name in ("response", "cued", "report_1"):
        if name not in dataset:
            there = ", ".join(map(str, dataset.data_vars))[:300]
            raise LapsusError(f"The dataset has no variable {name!r}; it has {there}.")
        if dataset[name].dims != ("trial",):
            raise LapsusError(f"Variable {name} of the dataset must have one value a trial.")
    report = _columns(dataset, "report")
    probe = _columns(dataset, "probe") if "probe_1" in dataset else None
    if probe is not None and probe.shape != report.shape:
        raise LapsusError(
            f"The dataset has {report.shape[1]} report columns and {probe.shape[1]} probe columns; give one each an"
            " item."
        )
    if probe is not None and not np.isfinite(probe).all():
        probe = None
    number = dataset["cued"].to_numpy()
    if not np.isin(number, np.arange(1, report.shape[1] + 1)).all():
        wrong = number[~np.isin(number, np.arange(1, report.shape[1] + 1))][0]
        raise LapsusError(f"Column cued holds {wrong!r}; it must be the number of an item, 1 to {report.shape[1]}.")
    cued = number.astype(int) - 1
    response = _numbers(dataset, "response")
    for name, values in (("report", report), ("response", response)):
        if not np.isfinite(values).all():
            raise LapsusError(
                f"Column {name} has values that are not finite, first in trial"
                f" {np.argwhere(~np.isfinite(values))[0][0]}."
            )
        if np.abs(values).max(initial=0) > 2 * np.pi + 1e-3:
            raise LapsusError(
                f"Column {name} reaches {np.abs(values).max():.4g}: angles must be radians; convert degrees first."
            )
    recalled, _ = nearest_item(response, report)
    return Items(wrap(report), None if probe is None else wrap(probe), cued, wrap(response), recalled)


def _columns(dataset: xr.Dataset, stem: str) -> np.ndarray:
    names: list[str] = []
    while f"{stem}_{len(names) + 1}" in dataset:
        names.append(f"{stem}_{len(names) + 1}")
    return np.stack([_numbers(dataset, name) for name in names], 1)


def _numbers(dataset: xr.Dataset, name: str) -> np.ndarray:
    """A column of the trial table as floats."""
    if dataset[name].dims != ("trial",) or dataset[name].dtype.kind not in "fiub":
        raise LapsusError(f"Variable {name} of the dataset must have one number a trial.")
    return dataset[name].to_numpy().astype(float)


def two_items(dataset: xr.Dataset) -> Items:
    """`items`, for analyses defined for two items."""
    found = items(dataset)
    if found.report.shape[1] != 2:
        raise LapsusError(f"This analysis is defined for two items a trial; the dataset has {found.report.shape[1]}.")
    return found


def memory(dataset: xr.Dataset) -> np.ndarray:
    """m = W_x^perp r, activity outside the readout, [trial, time, unit - dim]; without a readout, the activity
    itself."""
    activity = dataset["activity"].transpose("trial", "time", "unit").to_numpy()
    if "readout" not in dataset:
        return activity.astype(np.float64)
    readout = dataset["readout"].transpose("dim", "unit").to_numpy().astype(np.float64)
    nullspace = np.linalg.svd(readout, full_matrices=True)[2][len(readout) :]
    return activity.astype(np.float64) @ nullspace.T


def behaviour(dataset: xr.Dataset) -> np.ndarray:
    """x = W_x r, activity seen through the readout, [trial, time, dim]."""
    if "readout" not in dataset:
        raise LapsusError("The dataset has no readout, so there is no response space to project its activity to.")
    activity = dataset["activity"].transpose("trial", "time", "unit").to_numpy()
    return activity.astype(np.float64) @ dataset["readout"].transpose("dim", "unit").to_numpy().astype(np.float64).T


def cue_onset(dataset: xr.Dataset) -> float:
    """Time of the first bin of the cue."""
    during = dataset["epoch"].to_numpy() == "cue"
    if not during.any():
        raise LapsusError(
            "The dataset's epoch coordinate names no bin 'cue'; name the epochs so that before and after are known."
        )
    return float(dataset["time"].to_numpy()[during][0])


def require_trials(count: int, needed: int, what: str) -> None:
    """Raise unless there are enough trials of a kind."""
    if count < needed:
        raise LapsusError(f"no {what}" if count == 0 else f"only {count} {what}, and this analysis needs {needed}")


def without_swaps(why: str) -> bool:
    """Whether a question was left out for want of swaps, by the reason that is given."""
    return why.startswith((NO_SWAPS, NO_SWAPS_IN_DATA))
