"""Trained networks: what you trained (a run is a folder) and what ships, opened in one place.

open_network(source)   a run folder, or a network that ships by its name: experiment, metrics, model
load(source)           the trained model itself
"""

from lapsus.zoo.opening import load, open_network
from lapsus.zoo.runs import Run
from lapsus.zoo.shipped import Shipped, load_shipped

__all__ = ["Run", "Shipped", "load", "load_shipped", "open_network"]
