"""A few conditions through every stage, so that what cannot be trained is said before a folder is made."""

from lapsus.training.experiment import Experiment
from lapsus.training.loop import NonFinite, Training
from lapsus.training.model import Model


def rehearse(
    experiment: Experiment, model: Model | None = None, engine: str = "auto", threads: int | None = None
) -> None:
    """One update of a few conditions in each stage; what cannot be trained raises."""
    model = Model.of(experiment) if model is None else model
    tried = [
        stage.model_copy(update={"updates": 1, "conditions": min(stage.conditions, 4), "hard_example_fraction": 0.0})
        for stage in experiment.stage
        if stage.updates
    ]
    if tried:
        try:
            for _ in Training(
                experiment.model_copy(update={"stage": tried}), model, engine=engine, threads=threads
            ).run():
                pass
        except NonFinite:
            pass  # so few conditions do not tell
