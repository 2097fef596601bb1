"""Objectives, curriculum stages, the loop, run folders, evaluation and simulation of trained networks."""

from lapsus.training.evaluate import evaluate
from lapsus.training.experiment import Experiment, Stage, read_experiment
from lapsus.training.model import Model
from lapsus.training.objectives import Batch, Diffusion, SampleMSE, TaskOptimal
from lapsus.training.runs import Run, load
from lapsus.training.simulate import simulate
from lapsus.training.train import train

__all__ = [
    "Batch",
    "Diffusion",
    "Experiment",
    "Model",
    "Run",
    "SampleMSE",
    "Stage",
    "TaskOptimal",
    "evaluate",
    "load",
    "read_experiment",
    "simulate",
    "train",
]
