"""What is measured of a trained member, as plain numbers, lists and dictionaries."""

import math

import numpy as np

from lapsus.files import to_plain
from lapsus.study.evaluation import evaluate
from lapsus.study.mechanism import study_mechanism
from lapsus.sweep.sweep_file import Evaluation, Measure, Mechanism
from lapsus.training.model import Model

__all__ = ["measure"]


def measure(model: Model, wanted: Measure, threads: int = 1) -> dict:
    """name of the measure → its numbers; what is not finite is null."""
    found: dict = {}
    if wanted.evaluation:
        settings = wanted.evaluation if isinstance(wanted.evaluation, Evaluation) else Evaluation()
        found["evaluation"] = evaluate(model, settings.conditions, settings.trials, settings.seed, threads=threads)
    if wanted.mechanism:
        settings = wanted.mechanism if isinstance(wanted.mechanism, Mechanism) else Mechanism()
        found["mechanism"] = to_plain(study_mechanism(model, settings.probe_distance, settings.seed)[0])
    return plain(found)


def plain(value: object) -> object:
    """JSON's types only."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
