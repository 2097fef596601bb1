"""The trial table of a delayed-estimation experiment: columns, units, validation, readers of published layouts."""

from lapsus.trials.observer import observer_path
from lapsus.trials.read import read_trials
from lapsus.trials.table import Trials

__all__ = ["Trials", "observer_path", "read_trials"]
