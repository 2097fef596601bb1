"""Statistics that several rooms need: each has its one home here."""

from lapsus.statistics import counts, intervals, ks, random_effects, swaps

__all__ = ["counts", "intervals", "ks", "random_effects", "swaps"]
