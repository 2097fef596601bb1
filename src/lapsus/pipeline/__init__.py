"""From a trial table to a mechanism in one call: fit, target, training, comparison, analyses, report.

    discover(trials)   → Discovery     (stages.py, result.py)

Read in this order: stages, folder, target, result, reports.
"""

from lapsus.pipeline.result import Discovery
from lapsus.pipeline.stages import discover

__all__ = ["Discovery", "discover"]
