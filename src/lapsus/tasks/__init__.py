"""What the network sees and when."""

from lapsus.tasks.delayed_estimation import FeatureCued, IndexCued

__all__ = ["IndexCued", "FeatureCued"]
