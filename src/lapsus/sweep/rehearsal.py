"""One update of every setting, so that what cannot be trained is said before a sweep begins."""

from collections.abc import Collection

from lapsus.errors import LapsusError
from lapsus.sweep.plan import Plan
from lapsus.training.experiment import Experiment
from lapsus.training.rehearsal import rehearse

__all__ = ["try_settings"]

# Trying takes up to a second each; a sweep of more settings finds out as it goes.
_MOST = 64


def try_settings(plan: Plan, known: Collection[str] = ()) -> None:
    """Try the first settings that are not known; the error says which one cannot be trained."""
    new = [(name, setting) for name, setting in plan.settings.items() if name not in known]
    for name, setting in new[:_MOST]:
        try:
            rehearse(Experiment.model_validate(setting.table | {"seed": 1}))
        except LapsusError as error:
            raise LapsusError(f"{name}: {error}") from error
