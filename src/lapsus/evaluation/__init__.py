"""What a trained network does: its trials, and how close its behaviour comes to the target and to a subject."""

from lapsus.evaluation import sample_sizes as sample_sizes, verdict as verdict
from lapsus.evaluation.against_target import evaluate
from lapsus.evaluation.simulation import simulate

__all__ = ["evaluate", "simulate"]
