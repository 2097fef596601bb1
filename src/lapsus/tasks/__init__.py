"""What the network sees and when."""

from lapsus.tasks.attention import AttendedIndexCued
from lapsus.tasks.cue_combination import CueCombination
from lapsus.tasks.delayed_estimation import FeatureCued, FeatureCuedLike, IndexCued
from lapsus.tasks.durations import Range

__all__ = ["AttendedIndexCued", "CueCombination", "FeatureCued", "FeatureCuedLike", "IndexCued", "Range"]
