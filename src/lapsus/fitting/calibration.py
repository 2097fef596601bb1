"""Simulation-based calibration (Talts et al. 2018): does the posterior contain the truth as often as it says?

Parameters are drawn from the prior, responses from them, and each data set is fitted. Where the posterior is right, the
rank of the truth among its posterior draws is uniform, and a band of 50, 80 or 95 % contains it as often. What is
ranked: f at several distances, averaged over set sizes, or with `rates` the swap rate of every group (a set size, or a
subject in it) and the offsets of set sizes and of subjects from their mean.
"""

import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch

from lapsus.errors import LapsusWarning
from lapsus.fitting.emissions import EMISSIONS
from lapsus.fitting.fitting import fit
from lapsus.fitting.likelihood import Parameters
from lapsus.fitting.model import MixtureModel
from lapsus.fitting.result import Fit
from lapsus.fitting.shares import group_shares
from lapsus.trials import Trials

__all__ = ["Calibration", "calibrate"]

LEVELS = (0.5, 0.8, 0.95)
KEPT = 384


@dataclass
class Calibration:
    """distances [grid] (radians; or what else was ranked), the truth [fits, grid], posterior draws [fits, grid, S]."""

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
        return replace(self, draws=centre + (self.draws - centre) / factor)

    def only(self, kind: str) -> "Calibration":
        """Of what was ranked that whose name begins with `kind` (rate, set size, subject)."""
        mine = np.array([str(name).startswith(kind) for name in self.distances])
        return replace(self, distances=self.distances[mine], truth=self.truth[:, mine], draws=self.draws[:, mine])

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
        return np.asarray(chisquare(counts, axis=1).pvalue)

    @property
    def passed(self) -> bool:
        """Coverage within three standard errors at every level, and no distance with non-uniform ranks (Bonferroni, 1
        %)."""
        return bool((self.coverage["z"].abs() < 3).all() and self.p_values.min() > 0.01 / len(self.p_values))


def calibrate(
    design: Trials,
    fits: int,
    model: str = "probe",
    emission: str = "von_mises",
    uniform: bool = True,
    seed: int = 0,
    distances: np.ndarray | None = None,
    progress: bool = True,
    hierarchical: bool = False,
    rates: bool = False,
) -> Calibration:
    """Simulate and fit `fits` data sets with the items (and subjects) of `design` (a Trials), and keep truth and
    posterior of f at `distances`, or with `rates` of every group's swap rate and of the offsets."""
    from tqdm import tqdm

    distances = np.linspace(0, np.pi, 9) if distances is None else np.asarray(distances)
    prior = MixtureModel(design, model, EMISSIONS[emission](), uniform, hierarchical=hierarchical)
    start, truths, draws, failed = time.perf_counter(), [], [], 0
    names: list[str] = []
    for number in tqdm(range(fits), desc="calibration", disable=None if progress else True):
        rng = np.random.default_rng([seed, number])
        truth = prior.unpack(torch.tensor(rng.standard_normal((prior.dimension, 1))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LapsusWarning)  # counted below
            fitted = fit(
                prior.simulate(truth, rng),
                model,
                emission,
                uniform,
                seed=number,
                progress=False,
                by="hierarchical" if hierarchical else None,
                sets=prior.sets if prior.sets != "shared" else "offsets",
                bias=False,
            )
        assert isinstance(fitted, Fit)
        failed += not fitted.converged
        # Runs that needed longer chains have more draws; as many are kept of each, from all chains.
        thin = fitted.parameters.at(slice(None, None, fitted.draws // KEPT)).at(slice(KEPT))
        if rates:
            names, values = _rates(prior, truth)
            truths.append(values[:, 0])
            draws.append(_rates(fitted.model, thin)[1])
        else:
            truths.append(Fit(prior, truth, 1.0, 1.0, 0).f(distances)[:, 0])
            draws.append(Fit(fitted.model, thin, 1.0, 1.0, 0).f(distances))
    return Calibration(
        np.array(names) if rates else distances, np.array(truths), np.array(draws), time.perf_counter() - start, failed
    )


def _rates(model: MixtureModel, p: Parameters) -> tuple[list[str], np.ndarray]:
    """Names and draws [., S] of the swap rate of every group of several items, and of how far the level of each set
    size, and of each subject, is from their mean."""
    several = [g for g, label in enumerate(model.labels) if label[0] > 1]
    names = [f"rate {model.labels[g]}" for g in several]
    parts = [group_shares(model, p)["non_target"][several]]
    if p.level is not None:
        for kind, at in (("set size", 0), ("subject", 1)):
            units = sorted({model.labels[g][at] for g in several})
            if len(units) < 2:
                continue
            level = [p.level[[g for g in several if model.labels[g][at] == unit]].mean(0).numpy() for unit in units]
            names += [f"{kind} {unit}" for unit in units]
            parts.append(np.array(level) - np.mean(level, 0))
    return names, np.concatenate(parts)
