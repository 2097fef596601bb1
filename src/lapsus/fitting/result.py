"""What a fit found."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch

from lapsus.behaviour import BNS, NoSwap, TabulatedSwap
from lapsus.engine.threads import torch_threads
from lapsus.errors import LapsusError
from lapsus.fitting.candidates import Choice, evaluate
from lapsus.fitting.contrasts import contrasts
from lapsus.fitting.files import load_fit, save_fit
from lapsus.fitting.likelihood import Parameters
from lapsus.fitting.loo import Loo, leave_one_out
from lapsus.fitting.model import MixtureModel
from lapsus.fitting.predictive import predictive_checks
from lapsus.fitting.sampler import RHAT
from lapsus.fitting.shares import band, group_shares, mean_rates, tell_apart
from lapsus.fitting.swap_models import SwapModel
from lapsus.fitting.tables import as_dict, as_html, tidy, to_arviz
from lapsus.fitting.words import describe, methods, warning
from lapsus.statistics.counts import expected_count
from lapsus.trials import Trials

__all__ = ["Fit", "random_effects"]


def random_effects(model: MixtureModel, theta: torch.Tensor) -> pd.DataFrame:
    """Learned s.d. of offsets (of set sizes, subjects, …) in each parameter, from draws of theta [P, S]: columns of,
    parameter, sd, low, high; in units of a logit or a logarithm, of the bias in radians."""
    rows = []
    for tier in model.tiers:
        name = "subject in set size" if tier.name == "group" else tier.name
        for row, values in zip(tier.rows, tier.spread(theta).numpy(), strict=True):
            ends = {k: float(v) for k, v in band(values, "").items()}
            rows.append({"of": name, "parameter": model.rows[row], "sd": float(values.mean())} | ends)
    return pd.DataFrame(rows, columns=["of", "parameter", "sd", "low", "high"])


class Fit:
    """The posterior of one swap model.

    model         the MixtureModel, with its trials
    parameters    posterior draws of everything that the likelihood depends on (S columns)
    population    the same for a typical subject (no subject's offsets); None where subjects are not modelled
    candidates    table of all models compared, best first; None where there was one
    random_effects  table of learned s.d.: of what, in which parameter, sd, low, high
    rhat, accepted: how the sampling went
    apart         angle beyond which non-targets count as distinguishable (radians); None: 2 circular s.d.

    >>> trials = lapsus.read_trials(lapsus.trials.observer_path())[:300]
    >>> fit = lapsus.fit(trials, "constant", progress=False)
    >>> list(fit.rates)[:5]
    ['set_size', 'trials', 'swap', 'swap_low', 'swap_high']
    """

    def __init__(
        self,
        model: MixtureModel,
        parameters: Parameters,
        rhat: float,
        accepted: float,
        seed: int,
        population: Parameters | None = None,
        apart: float | None = None,
    ):
        self.model, self.parameters, self.population, self.apart = model, parameters, population, apart
        self.rhat, self.accepted, self.seed = float(rhat), float(accepted), seed
        self.candidates: pd.DataFrame | None = None
        self.random_effects = pd.DataFrame(columns=["of", "parameter", "sd", "low", "high"])
        self.seconds, self.requested = float("nan"), model.name

    @property
    def name(self) -> str:
        """The swap model: none, constant, probe, report or both."""
        return self.model.name

    @property
    def swap_model(self) -> SwapModel:
        """What the swap model is."""
        return self.model.swap_model

    @property
    def trials(self) -> Trials:
        """The trials that were fitted."""
        return self.model.trials

    @property
    def draws(self) -> int:
        """Number of posterior draws."""
        return int(self.parameters.emission.shape[-1])

    def __repr__(self) -> str:
        return f"Fit(model {self.name}, emission {self.model.emission.name}, {self.trials!r})"

    @property
    def comparison(self) -> pd.DataFrame | None:
        """The swap models that were compared with all else as in the one that was kept, best first; None: only one."""
        table = self.candidates
        if table is None:
            return None
        model = self.model
        same = (table["emission"] == model.emission.name) & (table["bias"] == model.bias)
        table = table[same].drop_duplicates("model")  # best first: of a model with several `sets` its best
        table = table.assign(elpd_difference=table["elpd_difference"] - table["elpd_difference"].max())
        return None if len(table) < 2 else table.reset_index(drop=True)

    def f(self, distances: np.ndarray | Sequence[float], set_size: int | None = None) -> np.ndarray:
        """Posterior draws of f at distances [G] in radians (model "both": [G, 2], probe and report) → [G, S].

        Of a set size, or the mean over set sizes with more than one item; with subjects, the mean of subjects.
        """
        distances = np.asarray(distances, float)
        p, model = self.parameters, self.model
        if p.level is None:
            return np.full((len(distances), self.draws), -np.inf)
        sizes = [n for n in model.sizes if n > 1]
        if set_size is not None and set_size not in sizes:
            raise LapsusError(f"set_size {set_size} is not among those with swaps: {', '.join(map(str, sizes))}.")
        total, wanted = np.zeros((len(distances), self.draws)), sizes if set_size is None else [set_size]
        for n in wanted:
            own = [g for g, label in enumerate(model.labels) if label[0] == n]
            total += p.level[own].mean(0).numpy()
            if p.coefficients is not None and model.prior is not None:
                shape = p.coefficients[sizes.index(n) if model.sets == "shapes" else 0]
                total += (model.prior.basis(distances) @ shape).numpy()
        return total / len(wanted)

    def swap_function(
        self, distances: np.ndarray | Sequence[float] | None = None, set_size: int | None = None
    ) -> pd.DataFrame:
        """f and p(swap) with 95 % bands. p_swap is for one distractor beside the cued item, guesses aside.

        Columns distance (and report_distance for "both"; radians), f, low, high, p_swap, p_low, p_high. Of one set
        size, or the mean f over set sizes.
        """
        if distances is None:
            axis = np.linspace(0 if self.model.even else -np.pi, np.pi, 61 if self.model.even else 121)
            if len(self.swap_model.features) == 2:
                axis = axis[::5] if self.model.even else axis[::10]
                distances = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
            else:
                distances = axis
        distances = np.asarray(distances, float)
        f = self.f(distances, set_size)
        p = 1 / (1 + np.exp(-f))
        columns = {"distance": distances.reshape(len(distances), -1)[:, 0]}
        if distances.ndim == 2:
            columns["report_distance"] = distances[:, 1]
        return pd.DataFrame(columns | {"f": f.mean(1)} | band(f, "") | {"p_swap": p.mean(1)} | band(p, "p_"))

    def _thinned(self, parameters: Parameters, count: int) -> Parameters:
        step = max(1, self.draws // count)
        return parameters.map(lambda part: part[..., ::step])

    @cached_property
    def shares(self) -> dict[str, np.ndarray]:
        """Shares of responses at each posterior draw, by group (see fitting/shares.py)."""
        with torch_threads(1):
            return group_shares(self.model, self._thinned(self.parameters, 1200), self.apart)

    def _labels(self) -> pd.DataFrame:
        table = pd.DataFrame(self.model.labels, columns=["set_size", "subject", "condition"])
        return table.assign(trials=self.shares["trials"])

    @cached_property
    def weights(self) -> pd.DataFrame:
        """How often the cued item, any other item, or nothing (a guess) is reported, by group, with 95 % bands;
        non_target_apart counts only non-targets that can be told apart from the target."""
        table = self._labels()
        for name in ("target", "non_target", "non_target_apart", "guess"):
            values = self.shares[name]
            table = table.assign(**{name: values.mean(-1)}, **band(values, f"{name}_"))
        return table

    @cached_property
    def rates(self) -> pd.DataFrame:
        """Swap and guess rates by group: set_size, subject and condition where fits are by them, swap, swap_low,
        swap_high, swap_apart …, guess, guess_low, guess_high."""
        table = self.weights.rename(columns=lambda name: name.replace("non_target", "swap"))
        drop = ["target", "target_low", "target_high"]
        drop += ["subject"] * (not self.model.hierarchical) + ["condition"] * (not self.model.by)
        return table.drop(columns=drop)

    @cached_property
    def mean_rates(self) -> pd.DataFrame:
        """Shares of responses by set size (and condition): the mean of subjects, with 95 % bands of that mean."""
        return mean_rates(self.model, self.shares)

    @cached_property
    def standard(self) -> pd.DataFrame | None:
        """Rates of the three-component mixture of Bays et al. (2009), which the literature reports: one rate of
        non-target reports for each set size (and condition), von Mises scatter, guesses. Columns as in `mean_rates`;
        None where no trial has two items. From Laplace's approximation unless it is the model that was kept."""
        if self.is_standard:
            return self.mean_rates
        if self.trials.set_size.max() < 2:
            return None
        model = self.model
        options = {"hierarchical": model.hierarchical, "by": model.by, "reference": model.reference}
        with torch_threads(1):
            found = evaluate([self.trials], Choice("constant", bias=model.bias), options, self.seed, self.apart)
        return mean_rates(*found.shares[0])

    @property
    def is_standard(self) -> bool:
        """Whether the model that was kept is the three-component mixture itself."""
        model = self.model
        return model.name == "constant" and model.emission.name == "von_mises" and model.uniform

    @cached_property
    def emission(self) -> pd.DataFrame:
        """Parameters of the scatter around the reported item, by group, with 95 % bands; circular_sd in radians."""
        rows = []
        for g, (size, subject, condition) in enumerate(self.model.labels):
            row = {"set_size": size, "subject": subject, "condition": condition}
            for name, value in self.model.emission.natural(self.parameters.emission[:, g].numpy()).items():
                row |= {name: value.mean()} | {k: float(v) for k, v in band(value, f"{name}_").items()}
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def bias(self) -> dict[str, float] | None:
        """The constant shift of all responses (mean of subjects): bias, low, high in radians; None without one."""
        if self.parameters.bias is None:
            return None
        values = self.parameters.bias.mean(0).numpy()
        return {"bias": float(values.mean())} | {k: float(v) for k, v in band(values, "").items()}

    @cached_property
    def apart_angle(self) -> np.ndarray:
        """Distance from the target beyond which non-targets count as distinguishable, by group [G], radians."""
        return tell_apart(self.model, self.parameters, self.apart)

    @cached_property
    def responsibilities(self) -> pd.DataFrame:
        """Probability that each trial's response reports the target, each non-target, or is a guess: one row a
        trial."""
        with torch_threads(1):
            values = self.model.likelihood().responsibilities(self._thinned(self.parameters, 100))
        names = ["target", *(f"non_target_{i}" for i in range(1, values.shape[1] - 1)), "guess"]
        return pd.DataFrame(values, columns=names)

    @cached_property
    def swap_probability(self) -> np.ndarray:
        """Probability that each trial's response was a swap: that it reports some non-target [T]."""
        table = self.responsibilities
        return table.drop(columns=["target", "guess"]).sum(axis=1).to_numpy()

    @cached_property
    def expected_swaps(self) -> dict[str, float]:
        """How many trials were swaps: their expected number given the responses, and its 95 % interval."""
        return self.count_swaps()

    def count_swaps(self, rows: np.ndarray | slice = slice(None)) -> dict[str, float]:
        """How many of some trials (all, or those at a mask) were swaps: expected, low, high (95 %). The interval holds
        what is not known of each trial and what is not known of the parameters."""
        with torch_threads(1):
            likelihood = self.model.likelihood(torch.float32)
            return expected_count(likelihood.swaps(self._thinned(self.parameters, 100))[rows])

    @property
    def log_likelihood(self) -> np.ndarray:
        """Of each trial's response at each posterior draw [T, S], nats."""
        with torch_threads(1):
            likelihood, columns = self.model.likelihood(torch.float32), []
            for where in torch.arange(self.draws).split(64):
                columns.append(likelihood.by_trial(self.parameters.at(where)))
        return np.concatenate(columns, 1)

    @cached_property
    def loo(self) -> Loo:
        """Leave-one-out expected log predictive density, from the posterior draws."""
        return leave_one_out(self.log_likelihood)

    @property
    def converged(self) -> bool:
        """Whether the chains agree."""
        return self.rhat < RHAT

    @property
    def warning(self) -> str | None:
        """What did not converge, what that means and what to do; None where all did."""
        return warning(self)

    def predict(self, count: int = 1, seed: int = 0) -> list[Trials]:
        """`count` sets of the same trials with responses drawn from the posterior predictive distribution."""
        rng = np.random.default_rng([self.seed, seed])
        with torch_threads(1):
            found = []
            for _ in range(count):
                at = rng.integers(self.draws)
                found.append(self.model.simulate(self.parameters.at(slice(at, at + 1)), rng))
        return found

    @cached_property
    def predictive(self) -> list:
        """Sixty posterior predictive data sets, which checks and plots share."""
        return self.predict(60)

    @cached_property
    def checks(self) -> pd.DataFrame:
        """Predictive checks by set size and by subject (see fitting/predictive.py)."""
        return predictive_checks(self)

    @cached_property
    def contrasts(self) -> pd.DataFrame | None:
        """Differences between conditions (see fitting/contrasts.py); None where the fit is not by a condition."""
        return contrasts(self) if self.model.by else None

    def behaviour(
        self, average: str = "mean", radius: float = 2.5, spread: float | None = None, set_size: int | None = None
    ) -> BNS:
        """The generative model that training takes: BNS with this swap function.

        average "mean" tabulates the posterior mean of f; "posterior" the logit of the posterior mean of p(swap).
        spread is radius times the emission's angular s.d. unless given (the paper's networks use 0.2). f, guesses and
        scatter are those of `set_size`, or averaged over all trials.
        """
        if average not in ("mean", "posterior"):
            raise LapsusError(f"average '{average}' is not known; use 'mean' or 'posterior'.")
        rows = (
            np.ones(len(self.weights), bool) if set_size is None else (self.weights["set_size"] == set_size).to_numpy()
        )
        if not rows.any():
            raise LapsusError(
                f"set_size {set_size} is not among the fitted ones: {', '.join(map(str, self.model.sizes))}."
            )
        share = self.weights["trials"][rows] / self.weights["trials"][rows].sum()
        uniform = float((share * self.weights["guess"][rows]).sum())
        if spread is None:
            spread = radius * float((share * self.emission["circular_sd"][rows]).sum())
        features = self.swap_model.features
        if not self.swap_model.swaps or set_size == 1:
            return BNS(swap=NoSwap(), uniform=uniform, radius=radius, spread=spread)
        axis = -np.pi + 2 * np.pi * np.arange(72) / 72
        torus = len(features) == 2
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2) if torus else axis
        f = self.f(grid, set_size)
        p = (1 / (1 + np.exp(-f))).mean(1)
        logits = f.mean(1) if average == "mean" else np.log(p) - np.log1p(-p)
        if torus:
            logits = logits.reshape(72, 72)
        values = tuple(map(tuple, logits.tolist())) if logits.ndim == 2 else tuple(logits.tolist())
        table = TabulatedSwap(tuple(axis.tolist()), values)
        feature: Literal["probe", "report", "both"] = (
            "both" if torus else "report" if features == ("report",) else "probe"
        )
        return BNS(swap=table, feature=feature, uniform=uniform, radius=radius, spread=spread)

    def summary(self) -> str:
        """What was found, in plain English."""
        return describe(self)

    def methods(self) -> str:
        """One paragraph for a paper's methods."""
        return methods(self)

    def table(self) -> pd.DataFrame:
        """Tidy estimates: set_size, subject, condition, parameter, estimate, low, high (95 %), unit."""
        return tidy(self)

    def to_dict(self) -> dict:
        """What `lapsus fit --json` prints."""
        return as_dict(self)

    def to_arviz(self) -> Any:
        """The draws for ArviZ with named variables and dimensions (needs lapsus[arviz]): a DataTree, before version 1
        an InferenceData."""
        return to_arviz(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def save(self, folder: Path | str, also: Callable[[Path], object] | None = None) -> Path:
        """Write fit.nc, estimates.csv, summary.json, summary.txt and methods.txt into a new folder, or one of an
        earlier fit; `also` (`lapsus.plots.fits.save_all` with the fit) adds to it before it takes its place."""
        return save_fit(self, folder, also)

    @classmethod
    def load(cls, folder: Path | str) -> "Fit":
        """A fit saved by `save`."""
        return load_fit(folder, cls)
