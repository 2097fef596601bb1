"""A variable of an experiment: an angle, a number or a category, in the table's own units and as networks see it."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from lapsus import circular
from lapsus.errors import LapsusError

__all__ = ["Kind", "Variable", "guess_kind", "usual_period"]

Kind = Literal["circular", "linear", "categorical"]

# A column of numbers with at most this many distinct values is taken for a category, unless more than that is known.
_MOST_LEVELS = 6


@dataclass(frozen=True)
class Variable:
    """One column of the table.

    Inside, angles are radians, numbers are standardised (`centre` and `scale`, of their logarithm where `log`), and
    categories are their place in `levels`. period: of an angle, in the table's unit. epochs: when a stimulus is shown.
    """

    name: str
    kind: Kind
    period: float = 2 * math.pi
    centre: float = 0.0
    scale: float = 1.0
    log: bool = False
    levels: tuple[str, ...] = ()
    epochs: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        column: pd.Series,
        kind: Kind,
        *,
        period: float | None = None,
        log: bool = False,
        epochs: tuple[str, ...] = (),
    ) -> "Variable":
        """The variable that a column holds, with the scale or the levels of its values."""
        if kind == "categorical":
            levels = tuple(sorted({str(value) for value in column.dropna()}))
            return cls(name, kind, levels=levels, epochs=epochs)
        values = numbers(column, name)
        if kind == "circular":
            period = usual_period(values) if period is None else period
            _check_period(name, values, period)
            return cls(name, kind, period=period, epochs=epochs)
        present = values[np.isfinite(values)]
        if log:
            if (present <= 0).any():
                raise LapsusError(f"Column {name} has values of 0 or below, which have no logarithm; leave `log` out.")
            present = np.log(present)
        return cls(name, kind, centre=float(present.mean()), scale=float(present.std()) or 1.0, log=log, epochs=epochs)

    def encode(self, column: pd.Series) -> np.ndarray:
        """Values as they are used inside, NaN where there is none."""
        if self.kind == "categorical":
            place = {level: float(k) for k, level in enumerate(self.levels)}
            return np.array([np.nan if pd.isna(value) else place.get(str(value), np.nan) for value in column])
        values = numbers(column, self.name)
        if self.kind == "circular":
            return np.asarray(circular.wrap(values * (2 * math.pi / self.period)))
        return ((np.log(values) if self.log else values) - self.centre) / self.scale

    def decode(self, values: np.ndarray) -> np.ndarray:
        """The table's own values again; angles from 0 to the period."""
        if self.kind == "categorical":
            return np.array(self.levels, dtype=object)[np.asarray(values, dtype=int)]
        if self.kind == "circular":
            return np.mod(values * (self.period / (2 * math.pi)), self.period)
        found = np.asarray(values) * self.scale + self.centre
        return np.exp(found) if self.log else found


def numbers(column: pd.Series, name: str) -> np.ndarray:
    """A column as numbers; text that is none is an error."""
    found = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
    wrong = np.isnan(found) & column.notna().to_numpy()
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise LapsusError(
            f"Column {name} should hold numbers, and row {row + 1} has {str(column.iloc[row])[:40]!r};"
            ' a column of words is `kind = "categorical"`.'
        )
    return found


def usual_period(values: np.ndarray) -> float:
    """The period that angles seem to have: 2 pi where they fit into it, else 180 or 360."""
    present = values[np.isfinite(values)]
    span, largest = (present.max() - present.min(), np.abs(present).max()) if len(present) else (0.0, 0.0)
    if largest <= 2 * math.pi + 1e-6 and span <= 2 * math.pi + 1e-6:
        return 2 * math.pi
    return 180.0 if span <= 180 and present.min() >= 0 else 360.0


def _check_period(name: str, values: np.ndarray, period: float) -> None:
    present = values[np.isfinite(values)]
    if not period > 0:
        raise LapsusError(f"The period of {name} must be positive, not {period:g}.")
    if len(present) and present.max() - present.min() > period * (1 + 1e-6):
        raise LapsusError(
            f"Column {name} goes from {present.min():g} to {present.max():g}, which is more than its period of"
            f" {period:g}; give the period in the column's own unit, such as 360 for degrees."
        )


def guess_kind(column: pd.Series, name: str) -> Kind:
    """What a column seems to hold: words or a few whole numbers are categories, values that fill a circle angles."""
    values = pd.to_numeric(column, errors="coerce")
    if values.isna().any() and column[values.isna()].notna().any():
        return "categorical"
    present = values.dropna().to_numpy(dtype=float)
    distinct = np.unique(present)
    if len(distinct) <= _MOST_LEVELS:
        return "categorical"
    lowered = name.lower()
    if any(word in lowered for word in ("time", "rt", "interval", "duration", "confidence", "rating")):
        return "linear"
    return "circular" if _fills_circle(present) else "linear"


def _fills_circle(values: np.ndarray) -> bool:
    """Whether values are spread evenly over 180, 360 or 2 pi, as angles are: no tenth of the circle is nearly empty."""
    for period in (2 * math.pi, 180.0, 360.0):
        span = values.max() - values.min()
        if 0.9 * period <= span <= period * (1 + 1e-6):
            counts = np.histogram(np.mod(values, period), bins=10, range=(0, period))[0]
            return bool(counts.min() > 0.4 * counts.mean())
    return False
