"""The trial table of a delayed-estimation experiment: columns, units, validation, readers of published layouts."""

from lapsus.trials.read import read_trials
from lapsus.trials.table import Trials

__all__ = ["Trials", "read_trials"]
