"""Tables that can be read and are probably not what they seem: each suspicion is a sentence with its remedy."""

import numpy as np
import pandas as pd

from lapsus.circular import difference, wrap
from lapsus.trials.checks import Angles
from lapsus.trials.columns import numeric
from lapsus.trials.units import UNITS, fits_half_circle

__all__ = ["half_circle", "relative_non_targets", "repeated_rows", "suspicions"]

LEAST = 30  # trials below which a distribution says nothing
HARMONICS = np.arange(1, 4)


def suspicions(table: pd.DataFrame, numbers: pd.DataFrame, reported: Angles, called: dict[str, str]) -> list[str]:
    """Sentences about values that were read as they are, and probably mean something else.

    numbers: columns as in the table, in its unit; called: what the table calls those that were renamed.
    """
    if len(numbers) < LEAST:
        return []
    found = [_turns(numbers, reported), _absolute_errors(table)]
    if "response" in numbers:
        response = numbers["response"].to_numpy()
        name = called.get("response", "response")
        found += [_code_for_missing(numbers, name), _constant(response, name), _errors(numbers, reported.unit, name)]
        found.append(_unused_item(table, numbers, UNITS[reported.unit].factor))
    repeated = int(repeated_rows(table).sum())
    if repeated > 0.05 * len(table):
        found.append(f'{repeated:,} of {len(table):,} rows repeat an earlier row; `drop="repeated"` leaves them out.')
    return [sentence for sentence in found if sentence] + _few_trials(table)


def repeated_rows(table: pd.DataFrame) -> np.ndarray:
    """Which rows equal an earlier one in every column [T].

    A number of the row may differ where copies follow their originals at one distance: coarse values repeat by chance.
    """
    steps = {name: numeric(table[name]).diff().iloc[1:] for name in table}
    rest = table.drop(columns=[name for name, step in steps.items() if len(step) and (step == 1).all()])
    if rest.shape[1] in (0, table.shape[1]):
        return table.duplicated().to_numpy()
    which = rest.groupby(list(rest), dropna=False, sort=False).ngroup().to_numpy()
    distance = pd.Series(np.arange(len(table))).groupby(which).diff()
    copied = distance.notna() & (distance == distance.mode().max())
    return (copied if copied.sum() > 0.9 * distance.notna().sum() else table.duplicated()).to_numpy()


def _turns(numbers: pd.DataFrame, reported: Angles) -> str | None:
    values = reported.finite(numbers)
    if reported.unit != "radians" or values.min() < 0 or not 0.9 < values.max() <= 1:
        return None
    return (
        "All angles lie between 0 and 1, which looks like turns of a circle, and they are read as radians: multiply"
        ' them by 360, and give `unit="degrees"`.'
    )


def _absolute_errors(table: pd.DataFrame) -> str | None:
    """Errors of one sign have lost their side; those modulo a circle reach beyond half of it."""
    if "error" not in table or "response" in table:
        return None
    errors = pd.to_numeric(table["error"], errors="coerce").dropna()
    if not len(errors) or errors.min() < 0:
        return None
    largest = errors.max()
    # Errors gather at 0; modulo a circle they gather at its end too.
    if largest == 0 or (errors > 0.75 * largest).mean() > 0.5 * (errors < 0.25 * largest).mean():
        return None
    return (
        "No error is negative: these look like absolute errors, which do not say on which side of the target a response"
        " was, so swaps cannot be told from guesses. Use signed errors, or the responses themselves."
    )


def _code_for_missing(numbers: pd.DataFrame, name: str) -> str | None:
    """One exact value among responses that is far more frequent than any other, and than it is among targets."""
    values, counts = np.unique(numbers["response"].dropna(), return_counts=True)
    if len(values) < 3:
        return None
    order = np.argsort(counts)
    most, next_most, value = counts[order[-1]], counts[order[-2]], values[order[-1]]
    among_targets = (numbers["target"] == value).sum()
    if most < 10 or most < 0.02 * len(numbers) or most < 5 * next_most or most < 2 * among_targets:
        return None
    return (
        f"{most:,} of {len(numbers):,} responses are exactly {value:g}, which looks like a code for a missing response:"
        f' `where="{name}!={value:g}"` leaves these trials out.'
    )


def _constant(response: np.ndarray, name: str) -> str | None:
    values = response[np.isfinite(response)]
    if len(np.unique(values)) > 1:
        return None
    return f"Every response is {values[0]:g}: is {name} the column of responses?"


def _errors(numbers: pd.DataFrame, unit: str, name: str) -> str | None:
    """Responses that gather at 0 whatever the target is."""
    response, target = (numbers[column].to_numpy() * UNITS[unit].factor for column in ("response", "target"))
    if np.ptp(numbers["response"].dropna()) == 0 or np.ptp(numbers["target"].dropna()) == 0:
        return None
    at_zero, at_target = np.nanmean(np.cos(response)), np.nanmean(np.cos(response - target))
    targets = np.abs(np.nanmean(np.exp(1j * target)))
    if at_zero < 0.3 or at_zero < 2 * max(at_target, targets):
        return None
    return (
        "The responses gather at 0 whatever the target is, which looks like errors, not responses: name their column"
        f" error (`columns` error={name})."
    )


def _unused_item(table: pd.DataFrame, numbers: pd.DataFrame, factor: float) -> str | None:
    """A column at whose values responses gather that are far from the target: an item, whatever its name. A column that
    most responses equal is not one."""
    response, target = (numbers[column].to_numpy() * factor for column in ("response", "target"))
    error = np.abs(difference(response, target))
    scatter = np.nanmedian(error)
    for name in table.columns.difference(numbers.columns):
        values = pd.to_numeric(table[name], errors="coerce").to_numpy(float) * factor
        gap = difference(response, values)
        far = np.isfinite(gap) & (error > 4 * scatter)
        if far.sum() >= LEAST and np.nanmedian(np.abs(gap)) > scatter and _excess(gap[far], 1.5 * scatter) > 4.5:
            return (
                f"Responses that are far from the target gather at the values of {name}, which is not used: if it is an"
                f" item, name it with `columns` (non_target_1={name})."
            )
    return None


def _few_trials(table: pd.DataFrame) -> list[str]:
    if "subject" not in table:
        return []
    counts = table["subject"].value_counts()
    few = [f"{subject} ({count})" for subject, count in counts.items() if count < 10]
    if not few:
        return []
    if len(few) == len(counts):
        return [f"All {len(few):,} subjects have fewer than 10 trials: estimates of single subjects say little."]
    listed = ", ".join(few[:10]) + (f" and {len(few) - 10} more" if len(few) > 10 else "")
    return [f"Subjects with fewer than 10 trials: {listed}. Their estimates say little."]


def half_circle(numbers: pd.DataFrame, reported: Angles) -> str | None:
    """A sentence where the values fill half of the circle that the unit has, and nothing else: orientations."""
    unit, values = reported.unit, reported.finite(numbers)
    in_degrees = np.degrees(values * UNITS[unit].factor)
    half = fits_half_circle(in_degrees)
    if unit == "degrees_180" or len(values) < 50 or half is None:
        return None
    # Half-filled by chance or by design is not half-filled to the brim.
    if in_degrees.min() > half[0] + 10 or in_degrees.max() < half[1] - 10:
        return None
    advice = ("give " if unit == "degrees" else "give them in degrees with ") + '`unit="degrees_180"`'
    return (
        f"All items and responses lie between {values.min():.4g} and {values.max():.4g}, which is half of the circle in"
        f" {unit}. If its two ends are the same (orientations), {advice}."
    )


def _moments(angles: np.ndarray) -> np.ndarray:
    """Size of the mean cosines of angles and of their multiples [harmonics]."""
    return np.abs(np.cos(HARMONICS[:, None] * angles[None]).mean(1))


def _excess(angles: np.ndarray, width: float) -> float:
    """How many more angles lie within `width` of 0 than of uniform ones would, in s.d. of that number."""
    share = min(width / np.pi, 0.5)
    expected = share * len(angles)
    return float((np.sum(np.abs(difference(angles, 0.0)) < share * np.pi) - expected) / np.sqrt(max(expected, 1.0)))


def _surplus(values: np.ndarray, anchors: np.ndarray, every: np.ndarray, width: float) -> float:
    """How many more values lie within `width` of their own anchor than of any of `every`, in s.d. of that number."""
    width = min(width, np.pi / 2)
    ordered = np.sort(np.concatenate([values + turn for turn in (-2 * np.pi, 0.0, 2 * np.pi)]))
    low, high = (np.searchsorted(ordered, wrap(every) + side * width) for side in (-1, 1))
    expected = np.mean(high - low)
    found = np.sum(np.abs(difference(values, anchors)) < width)
    return float((found - expected) / np.sqrt(max(expected, 1.0)))


def relative_non_targets(response: np.ndarray, report: np.ndarray) -> str | None:
    """Where the non-targets' values look like differences from the response or the target, which of the two.

    Features of items are anywhere on the circle, and what is known about non-targets shows in their distance from the
    target (items are kept apart) and from the response (swaps). Differences are the other way round: their own
    distribution is centred on 0 (swaps) or leaves it out (items kept apart), and added to the target's feature they
    are anywhere. Compared are mean cosines, of the first three harmonics.
    """
    shown = np.isfinite(report[:, 1:])
    if shown.sum() < LEAST:
        return None
    trial = np.nonzero(shown)[0]
    values, target = report[:, 1:][shown], report[:, 0]
    error = difference(response, target)
    as_features = np.maximum(*(_moments(values - anchor[trial]) for anchor in (target, response)))
    of_targets = np.abs(np.exp(1j * HARMONICS[:, None] * target).mean(1))
    least = np.maximum(6 / np.sqrt(2 * len(values)), np.maximum(2 * as_features, 3 * of_targets))
    around_zero, around_error = _moments(values), _moments(values - error[trial])
    scatter = np.median(np.abs(error))
    # Swaps show best close by: non-targets at the response are features, at 0 or at the error they are differences.
    anchors = [(response[trial], response), (np.zeros(len(trial)), target), (error[trial], error)]
    swapped = [_surplus(values, own, every, 1.5 * scatter) for own, every in anchors]
    close = max(swapped[1:]) > 4.5 and swapped[0] < max(swapped[1:]) / 3
    if not close and not (np.maximum(around_zero, around_error) > least).any():
        return None
    # Where the response is far from the target it may have been a swap: to a difference of 0 from the response, of
    # the error from the target.
    far = np.abs(error[trial]) > 4 * scatter
    at_zero, at_error = (np.abs(gap[far]) < 2 * scatter for gap in (values, difference(values, error[trial])))
    return "relative_to_target" if at_error.sum() >= at_zero.sum() else "relative_to_response"
