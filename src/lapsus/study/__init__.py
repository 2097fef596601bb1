"""A network on designed trials: what it does, how close that is to its target, and how it does it."""

from lapsus.study import findings as findings, sizes as sizes, verdict as verdict
from lapsus.study.evaluation import evaluate
from lapsus.study.mechanism import analyse
from lapsus.study.simulation import simulate

__all__ = ["analyse", "evaluate", "simulate"]
