"""Trained networks: what you trained (a run is a folder) and what ships, opened in one place.

load(source)   a trained model by the name of a network that ships, or from a run folder
Run            a run folder
"""

from lapsus.library.runs import Run, load
from lapsus.library.shipped import load_shipped, shipped

__all__ = ["Run", "load", "load_shipped", "shipped"]
