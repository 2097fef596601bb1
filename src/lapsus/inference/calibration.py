"""Simulation-based calibration (Talts et al. 2018): does the posterior of f contain the truth as often as it says?

Swap functions and emissions are drawn from the prior, responses from them, and each data set is fitted. Where the
posterior is right, the rank of the true f(d) among its posterior draws is uniform at every distance d, and a band of
50, 80 or 95 % contains it as often.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

__all__ = ["Calibration", "calibrate"]

LEVELS = (0.5, 0.8, 0.95)


@dataclass
class Calibration:
    """distances [grid], the true f [fits, grid], and posterior draws of it [fits, grid, S]."""

    distances: np.ndarray
    truth: np.ndarray
    draws: np.ndarray
    seconds: float
    not_converged: int = 0  # fits that said so themselves; they count like the others

    @property
    def position(self) -> np.ndarray:
        """Share of the posterior draws that lie below the truth [fits, grid]: uniform where the posterior is right."""
        return (self.draws < self.truth[:, :, None]).mean(-1)

    def overconfident(self, factor: float) -> "Calibration":
        """The same fits with the posterior's spread divided by factor: what the check must flag."""
        centre = self.draws.mean(-1, keepdims=True)
        return Calibration(
            self.distances, self.truth, centre + (self.draws - centre) / factor, self.seconds, self.not_converged
        )

    @property
    def coverage(self) -> pd.DataFrame:
        """How often each central band holds the truth, over fits and distances, with the sampling error over fits."""
        rows = []
        for level in LEVELS:
            inside = np.abs(self.position - 0.5) <= level / 2
            by_fit = inside.mean(1)  # distances of one fit share a truth, so fits are the sample
            se = max(by_fit.std(ddof=1), np.sqrt(level * (1 - level) / self.position.shape[1])) / np.sqrt(len(by_fit))
            rows.append({"band": level, "coverage": inside.mean(), "se": se, "z": (inside.mean() - level) / se})
        return pd.DataFrame(rows)

    @property
    def p_values(self) -> np.ndarray:
        """At each distance, the p value of a chi-square test that ranks are uniform (10 bins)."""
        from scipy.stats import chisquare

        bins = np.minimum((self.position * 10).astype(int), 9)
        counts = np.stack([np.bincount(column, minlength=10) for column in bins.T])
        return chisquare(counts, axis=1).pvalue

    @property
    def passed(self) -> bool:
        """Coverage within three standard errors at every level, and no distance with non-uniform ranks (Bonferroni, 1
        %)."""
        return bool((self.coverage["z"].abs() < 3).all() and self.p_values.min() > 0.01 / len(self.p_values))


def calibrate(
    design,
    fits: int,
    model: str = "probe",
    emission: str = "von_mises",
    uniform: bool = True,
    seed: int = 0,
    distances=None,
    progress: bool = True,
) -> Calibration:
    """Simulate and fit `fits` data sets with the items of `design` (a Trials), and keep the true f and its
    posterior."""
    import time
    import warnings

    from tqdm import tqdm

    from lapsus.errors import LapsusWarning
    from lapsus.inference.emissions import EMISSIONS
    from lapsus.inference.fitting import fit
    from lapsus.inference.model import Model

    distances = np.linspace(0, np.pi, 9) if distances is None else np.asarray(distances)
    prior, start = Model(design, model, EMISSIONS[emission](), uniform), time.perf_counter()
    truths, draws, failed = [], [], 0
    for number in tqdm(range(fits), desc="calibration", disable=None if progress else True):
        rng = np.random.default_rng([seed, number])
        theta = rng.standard_normal(prior.dimension)
        truths.append(prior.f(theta[:, None], distances)[:, 0].numpy())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LapsusWarning)  # counted below
            fitted = fit(prior.simulate(theta, rng), model, emission, uniform, seed=number, progress=False)
        failed += not fitted.converged
        # Runs that needed longer chains have more draws; as many are kept of each, from all chains.
        f = fitted.f(distances)
        draws.append(f[:, :: f.shape[1] // 768])
    return Calibration(distances, np.array(truths), np.array(draws), time.perf_counter() - start, failed)
