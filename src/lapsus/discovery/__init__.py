"""From a trial table to a mechanism in one call: fit, target, training, comparison, analyses, report.

    discover(trials)   → Discovery     (discover.py)

Read in this order: folder, target, matching, mechanism, words, discover.
"""

from lapsus.discovery.discover import Discovery, discover

__all__ = ["Discovery", "discover"]
