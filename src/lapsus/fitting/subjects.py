"""What fits of subjects one by one found."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from lapsus.fitting.files import save_subjects
from lapsus.fitting.model import natural_order
from lapsus.fitting.result import Fit
from lapsus.fitting.tables import as_dict, as_html, feature_words, records
from lapsus.fitting.words import describe_subjects, methods

__all__ = ["SubjectFits"]


class SubjectFits(dict):
    """A Fit for each subject: a dictionary from subject to Fit, all of the same model."""

    def __init__(
        self, fits: dict[str, Fit], candidates: pd.DataFrame | None = None, seconds: float = float("nan")
    ) -> None:
        super().__init__({subject: fits[subject] for subject in natural_order(fits)})
        self.candidates, self.seconds = candidates, seconds

    @property
    def _first(self) -> Fit:
        return next(iter(self.values()))

    @property
    def name(self) -> str:
        """The swap model."""
        return self._first.name

    @property
    def whole(self) -> Fit:
        """The first subject's fit with the candidates that were compared over all subjects, and the largest R-hat."""
        first, rhat = self._first, max(fit.rhat for fit in self.values())
        whole = Fit(first.model, first.parameters, rhat, first.accepted, first.seed)
        whole.candidates = self.candidates
        return whole

    @property
    def comparison(self) -> pd.DataFrame | None:
        """The swap models that were compared, over all subjects; None: only one."""
        return None if self.candidates is None else self.whole.comparison

    def swap_function(self, distances: np.ndarray | Sequence[float] | None = None) -> pd.DataFrame:
        """Every subject's swap function, one below the other, with a column subject."""
        return pd.concat([fit.swap_function(distances).assign(subject=s) for s, fit in self.items()], ignore_index=True)

    @property
    def rates(self) -> pd.DataFrame:
        """Every subject's swap and guess rates, by set size."""
        parts = [fit.rates.assign(subject=subject) for subject, fit in self.items()]
        return pd.concat(parts, ignore_index=True)

    def table(self) -> pd.DataFrame:
        """Tidy estimates of every subject."""
        return pd.concat([fit.table().assign(subject=s) for s, fit in self.items()], ignore_index=True)

    def summary(self) -> str:
        """What was found, in plain English."""
        return describe_subjects(self)

    def methods(self) -> str:
        """One paragraph for a paper's methods."""
        return methods(self.whole, separate=len(self))

    def to_dict(self) -> dict:
        """What `lapsus fit --by subject --json` prints."""
        return {
            "model": self.name,
            "seconds": round(self.seconds, 3),
            "feature": feature_words(self._first.trials),
            "comparison": None if self.comparison is None else records(self.comparison),
            "candidates": None if self.candidates is None else records(self.candidates),
            "rates": records(self.rates),
            "swap_function": records(self.swap_function()) if self._first.swap_model.swaps else [],
            "converged": all(fit.converged for fit in self.values()),
            "warning": {subject: fit.warning for subject, fit in self.items() if fit.warning},
            "summary": self.summary(),
            "subjects": {subject: as_dict(fit) for subject, fit in self.items()},
        }

    def _repr_html_(self) -> str:
        return as_html(self)

    def save(self, folder: Path | str, also: Callable[[Path], object] | None = None) -> Path:
        """One folder a subject, and a summary of all."""
        return save_subjects(self, folder, also)
