"""What the network sees and when."""

from lapsus.tasks.cue_combination import CueCombination
from lapsus.tasks.delayed_estimation import FeatureCued, IndexCued
from lapsus.tasks.durations import Range

__all__ = ["CueCombination", "FeatureCued", "IndexCued", "Range"]
