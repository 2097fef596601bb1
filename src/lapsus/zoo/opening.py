"""A string becomes a trained network here, and nowhere else."""

import os
from pathlib import Path

from lapsus.training.model import Model
from lapsus.zoo.runs import Run
from lapsus.zoo.shipped import Shipped


def open_network(source: str | Path, trust: bool = False) -> Run | Shipped:
    """A run folder, or a network that ships with lapsus by its name; both have `name`, `experiment`, `update`,
    `metrics()` and `model()`. trust: import classes outside of lapsus that a run folder names.

    >>> lapsus.open_network("index-swap-10").name
    'index-swap-10'
    """
    return Run(source, trust) if os.path.isdir(source) else Shipped(str(source))


def load(source: Model | Run | Shipped | str | Path, trust: bool = False) -> Model:
    """The trained model of a run folder or of a network that ships with lapsus, by its name; a model is itself. All
    that takes a network takes what this does.

    >>> lapsus.load("feature-smooth-2").network.units
    16
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, (Run, Shipped)):
        return source.model()
    return open_network(source, trust).model()
