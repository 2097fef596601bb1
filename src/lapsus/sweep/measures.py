"""What is measured of a trained member, as plain numbers, lists and dictionaries."""

from lapsus.evaluation.against_target import evaluate
from lapsus.evaluation.sample_sizes import FULL, QUICK
from lapsus.files import to_plain
from lapsus.mechanism.asking import analyse
from lapsus.mechanism.registry import by_default
from lapsus.sweep.sweep_file import Analysis, Evaluation, Measure
from lapsus.training.model import Model


def measure(model: Model, wanted: Measure, threads: int = 1) -> dict:
    """name of the measure → its numbers; what is not finite is null."""
    measured: dict = {}
    if wanted.evaluation:
        how = wanted.evaluation if isinstance(wanted.evaluation, Evaluation) else Evaluation.model_validate({})
        measured["evaluation"] = evaluate(model, how.conditions, how.trials, how.seed, threads=threads)
    if wanted.mechanism:
        settings = wanted.mechanism if isinstance(wanted.mechanism, Analysis) else Analysis.model_validate({})
        sizes = QUICK if settings.quick else FULL
        measured["mechanism"] = analyse(
            model,
            only=by_default(False),
            sizes=sizes,
            probe_distance=settings.probe_distance,
            seed=settings.seed,
            threads=threads,
        ).to_dict()
    if wanted.questions:
        only = by_default() if wanted.questions is True else tuple(wanted.questions)
        measured["questions"] = analyse(model, only=only, threads=threads).to_dict()
    return to_plain(measured)
