"""How activity moves: leaky dynamics with a dendritic tree, and the alternatives that the paper left."""

from lapsus.networks.dendritic import DendriticTree, PointNeurons
from lapsus.networks.readout import behavioural, nullspace, orthonormal_rows
from lapsus.networks.two_layer import TwoLayer

__all__ = ["DendriticTree", "PointNeurons", "TwoLayer", "behavioural", "nullspace", "orthonormal_rows"]
