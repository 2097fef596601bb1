"""The units in which tables have angles."""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

__all__ = ["TURN", "UNITS", "Unit", "fits_half_circle", "infer_unit"]


class Unit(NamedTuple):
    """How angles are written: radians on the full circle for one unit, and the range of values that it allows."""

    factor: float  # radians on the full circle per unit
    low: float
    high: float
    degrees: float  # degrees, as people count them for this feature, in a radian
    name: str  # of these degrees


UNITS = {
    "radians": Unit(1.0, -math.pi, 2 * math.pi, 180 / math.pi, "degrees"),
    "degrees": Unit(math.pi / 180, -180.0, 360.0, 180 / math.pi, "degrees"),
    "degrees_180": Unit(math.pi / 90, -90.0, 180.0, 90 / math.pi, "degrees of orientation"),
}
TURN = 2 * math.pi + 1e-9


def fits_half_circle(values: np.ndarray) -> tuple[float, float] | None:
    """The range of orientations in degrees, 0 … 180 or −90 … 90, that holds all values; None where neither does."""
    for low, high in ((0.0, 180.0), (-90.0, 90.0)):
        if len(values) and low - 1e-9 <= values.min() and values.max() <= high + 1e-9:
            return low, high
    return None


def infer_unit(numbers: pd.DataFrame) -> tuple[str, str | None]:
    """The unit that the values can only be in, and a sentence where two are possible."""
    values = numbers.to_numpy(float)
    values = values[np.isfinite(values)]
    # Cells out of every range must not decide: most of the values do.
    extent = np.quantile(np.abs(values), 0.99) if len(values) > 100 else np.abs(values).max(initial=0.0)
    if extent <= TURN:
        return "radians", None
    if extent > 180 + 1e-9 or (values < -90 - 1e-9).mean() > 0.01:
        return "degrees", None
    return "degrees", (
        f"the values lie between {values.min():.4g} and {values.max():.4g}, so they may be degrees or degrees_180: "
        'give `unit="degrees_180"` if 0 and 180 are the same (orientations), else `unit="degrees"`'
    )
