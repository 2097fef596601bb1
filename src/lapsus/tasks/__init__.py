"""What the network sees and when."""

from lapsus.tasks.cue_combination import CueCombination
from lapsus.tasks.delayed_estimation import FeatureCued, FeatureCuedLike, IndexCued

__all__ = ["CueCombination", "FeatureCued", "FeatureCuedLike", "IndexCued"]
