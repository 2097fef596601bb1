"""What is measured of a trained member, as plain numbers, lists and dictionaries."""

from lapsus.files import to_plain
from lapsus.study.evaluation import evaluate
from lapsus.study.how import QUESTIONS, analyse
from lapsus.study.mechanism import study_mechanism
from lapsus.study.sizes import FULL, QUICK
from lapsus.sweep.sweep_file import Evaluation, Measure, Mechanism
from lapsus.training.model import Model

__all__ = ["measure"]


def measure(model: Model, wanted: Measure, threads: int = 1) -> dict:
    """name of the measure → its numbers; what is not finite is null."""
    found: dict = {}
    if wanted.evaluation:
        how = wanted.evaluation if isinstance(wanted.evaluation, Evaluation) else Evaluation.model_validate({})
        found["evaluation"] = evaluate(model, how.conditions, how.trials, how.seed, threads=threads)
    if wanted.mechanism:
        settings = wanted.mechanism if isinstance(wanted.mechanism, Mechanism) else Mechanism.model_validate({})
        sizes = QUICK if settings.quick else FULL
        found["mechanism"] = study_mechanism(model, settings.probe_distance, settings.seed, sizes)[0]
    if wanted.questions:
        only = QUESTIONS if wanted.questions is True else tuple(wanted.questions)
        found["questions"] = analyse(model, only=only, threads=threads)
    return to_plain(found)
