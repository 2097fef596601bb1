"""One update of every setting, so that what cannot be trained is said before a sweep begins."""

import os
from collections.abc import Collection
from pathlib import Path

from lapsus.errors import LapsusError
from lapsus.files import holds
from lapsus.sweep.plan import Plan
from lapsus.training.experiment import Experiment
from lapsus.training.rehearsal import rehearse
from lapsus.zoo.runs import first_model

# Trying takes up to a second each; a sweep of more settings finds out as it goes.
_MOST = 64


def try_settings(plan: Plan, members: Path, known: Collection[str] = ()) -> None:
    """Try the first settings that are not known; the error says which one cannot be trained. `members` is where the
    run folders will be."""
    new = [(name, setting) for name, setting in plan.settings.items() if name not in known]
    for name, setting in new[:_MOST]:
        try:
            experiment = Experiment.model_validate(setting.table | {"seed": 1})
            # Weights of a start that is not a member are there already, and may not fit.
            rehearse(experiment, None if setting.start else first_model(_found(experiment, members), members))
        except LapsusError as error:
            raise LapsusError(f"{name}: {error}") from error


def _found(experiment: Experiment, members: Path) -> Experiment:
    """With the place of its start from here: the folder from which a path leads to it is not there yet."""
    start = os.path.normpath(os.path.abspath(members / (experiment.start_from or ".")))
    return experiment.model_copy(update={"start_from": start}) if holds(start, "run") else experiment
