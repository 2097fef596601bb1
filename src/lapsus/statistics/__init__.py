"""Statistics that several rooms need: each has its one home here."""

from lapsus.statistics import (
    counts as counts,
    intervals as intervals,
    ks as ks,
    random_effects as random_effects,
    swaps as swaps,
)
