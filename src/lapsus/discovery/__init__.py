"""From a trial table to a mechanism in one call: fit, target, training, comparison, analyses, report.

    discover(trials)   → Discovery     (discover.py, result.py)

Read in this order: discover, folder, target, matching, mechanism, words, result.
"""

from lapsus.discovery.result import Discovery
from lapsus.discovery.stages import discover

__all__ = ["Discovery", "discover"]
