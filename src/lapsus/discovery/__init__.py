"""From a trial table to a mechanism in one call: fit, target, training, comparison, analyses, report.

    discover(trials)   → Discovery     (stages.py, result.py)

Read in this order: stages, folder, target, result, reports.
"""

from lapsus.discovery.result import Discovery
from lapsus.discovery.stages import discover

__all__ = ["Discovery", "discover"]
