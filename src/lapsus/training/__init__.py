"""How a network learns: experiment files, models, objectives, the loop, and training a run to its end."""

from lapsus.training.experiment import Experiment, Stage, read_experiment
from lapsus.training.model import Model
from lapsus.training.objectives import Batch, Diffusion, Energy, SampleMSE, TaskOptimal
from lapsus.training.trainer import train

__all__ = [
    "Batch",
    "Diffusion",
    "Energy",
    "Experiment",
    "Model",
    "SampleMSE",
    "Stage",
    "TaskOptimal",
    "read_experiment",
    "train",
]
