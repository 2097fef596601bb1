"""What a fit found: Fit for one group of trials, SubjectFits for one each."""

import json
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from lapsus.errors import LapsusError
from lapsus.inference.likelihood import one_thread_each
from lapsus.inference.loo import leave_one_out
from lapsus.inference.sampler import RHAT

__all__ = ["Fit", "SubjectFits", "comparison_table"]

BAND = (0.025, 0.975)
# Our own files in a results folder; a folder that holds anything else is somebody's.
FILES = (
    "fit.nc",
    "summary.json",
    "summary.txt",
    "swap_function",
    "errors",
    "non_target_errors",
    "predictive",
    "comparison",
    "subjects",
)


def comparison_table(loos: dict, rhats: dict) -> pd.DataFrame:
    """Models by leave-one-out predictive density, best first; differences from the best with their standard errors."""
    best = max(loos, key=lambda name: loos[name].elpd)
    rows = []
    for name, loo in sorted(loos.items(), key=lambda item: -item[1].elpd):
        difference = loo.by_trial - loos[best].by_trial
        rows.append(
            {
                "model": name,
                "elpd": loo.elpd,
                "se": loo.se,
                "elpd_difference": float(difference.sum()),
                "difference_se": float(np.sqrt(len(difference)) * difference.std()),
                "pareto_k_above_0.7": int((loo.pareto_k > 0.7).sum()),
                "rhat": rhats[name],
            }
        )
    return pd.DataFrame(rows)


class Fit:
    """The posterior of one swap model.

    model         the Model, with its trials
    draws         posterior draws of its coordinates [P, S]
    variational   the Gaussian q(f) that maximises the ELBO, with point estimates of the rest
    comparison    table of models, best first; None where only one was fitted
    rhat, accepted, restarts: how the inference went
    """

    def __init__(self, model, draws, variational, rhat, accepted, restarts, seed):
        self.model, self.draws, self.variational = model, draws, variational
        self.rhat, self.accepted, self.restarts, self.seed = float(rhat), float(accepted), list(restarts), seed
        self.comparison, self.seconds, self.requested = None, float("nan"), model.name

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def trials(self):
        return self.model.trials

    def __repr__(self):
        return f"Fit(model {self.name}, emission {self.model.emission.name}, {self.trials!r})"

    def f(self, distances) -> np.ndarray:
        """Posterior draws of f at distances [G] (model "both": [G, 2], probe and report) → [G, S]."""
        with one_thread_each():
            return self.model.f(self.draws, np.asarray(distances, float)).numpy()

    def swap_function(self, distances=None) -> pd.DataFrame:
        """f and p(swap) with 95 % bands. p_swap is for one distractor beside the cued item, guesses aside.

        Columns distance (and report_distance for "both"), f, low, high, p_swap, p_low, p_high.
        """
        if distances is None:
            axis = np.linspace(0 if self.model.even else -np.pi, np.pi, 61 if self.model.even else 121)
            if self.name == "both":
                axis = axis[::5] if self.model.even else axis[::10]
                distances = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
            else:
                distances = axis
        distances = np.asarray(distances, float)
        f = self.f(distances)
        p = 1 / (1 + np.exp(-f))
        columns = {"distance": distances.reshape(len(distances), -1)[:, 0]}
        if distances.ndim == 2:
            columns["report_distance"] = distances[:, 1]
        return pd.DataFrame(columns | {"f": f.mean(1)} | _band(f, "") | {"p_swap": p.mean(1)} | _band(p, "p_"))

    def _thinned(self, count):
        step = max(1, self.draws.shape[1] // count)
        return torch.tensor(self.draws[:, ::step])

    @cached_property
    def weights(self) -> pd.DataFrame:
        """How often the cued item, any other item, or nothing (a guess) is reported, by emission group, with 95 %
        bands."""
        theta = self._thinned(200)
        with torch.no_grad(), one_thread_each():
            parts = self.model.unpack(theta)
            f, likelihood = self.model.f_at_sites(parts), self.model.likelihood
            sums = {i: [0, 0.0] for i in range(len(self.model.labels))}
            for block in likelihood.blocks:
                if f is None or not block.others:
                    target = torch.ones(len(block.rows), theta.shape[1], dtype=torch.float64)
                else:
                    target = 1 / (1 + likelihood.f_of_items(block, f).exp().sum(0))
                sums[block.group][0] += len(block.rows)
                sums[block.group][1] = sums[block.group][1] + target.sum(0).numpy()
            rows = []
            for group, (size, subject) in enumerate(self.model.labels):
                target = sums[group][1] / sums[group][0]
                guess = (
                    np.zeros_like(target) if parts["guess"] is None else torch.sigmoid(parts["guess"][group]).numpy()
                )
                row = {"set_size": size, "subject": subject, "trials": sums[group][0]}
                shares = {"target": (1 - guess) * target, "non_target": (1 - guess) * (1 - target), "guess": guess}
                for name, value in shares.items():
                    row |= {name: value.mean()} | {f"{name}_{k}": v.item() for k, v in _band(value[None], "").items()}
                rows.append(row)
        return pd.DataFrame(rows)

    @cached_property
    def emission(self) -> pd.DataFrame:
        """Parameters of the scatter around the reported item, by emission group, with 95 % bands."""
        with torch.no_grad():
            values = self.model.unpack(torch.tensor(self.draws))["emission"].numpy()
        rows = []
        for group, (size, subject) in enumerate(self.model.labels):
            row = {"set_size": size, "subject": subject}
            for name, value in self.model.emission.natural(values[:, group]).items():
                row |= {name: value.mean()} | {f"{name}_{k}": v.item() for k, v in _band(value[None], "").items()}
            rows.append(row)
        return pd.DataFrame(rows)

    @cached_property
    def responsibilities(self) -> pd.DataFrame:
        """Probability that each trial's response reports the target, each non-target, or is a guess: one row a
        trial."""
        with torch.no_grad(), one_thread_each():
            parts = self.model.unpack(self._thinned(100))
            values = self.model.likelihood.responsibilities(
                self.model.f_at_sites(parts), parts["emission"], parts["guess"]
            )
        names = ["target", *(f"non_target_{i}" for i in range(1, values.shape[1] - 1)), "guess"]
        return pd.DataFrame(values, columns=names)

    @cached_property
    def loo(self):
        """Leave-one-out expected log predictive density."""
        with one_thread_each():
            parts = [self.model.by_trial(part).numpy() for part in torch.tensor(self.draws).split(64, dim=1)]
        return leave_one_out(np.concatenate(parts, 1))

    @property
    def converged(self) -> bool:
        """Whether the bound's ascent ended by itself and the chains agree."""
        return self.variational.converged and self.rhat < RHAT

    @property
    def warning(self) -> str | None:
        """What did not converge, what that means and what to do; None where all did."""
        from lapsus.inference.words import warning

        return warning(self)

    def predict(self, count=1, seed=0) -> list:
        """`count` sets of the same trials with responses drawn from the posterior predictive distribution."""
        rng = np.random.default_rng([self.seed, seed])
        with one_thread_each():
            return [self.model.simulate(self.draws[:, rng.integers(self.draws.shape[1])], rng) for _ in range(count)]

    @cached_property
    def predictive(self) -> list:
        """Sixty posterior predictive data sets, which the plots share."""
        return self.predict(60)

    def behaviour(
        self, average: str = "mean", radius: float = 2.5, spread: float | None = None, set_size: int | None = None
    ):
        """The generative model that training takes: BNS with this swap function.

        average "mean" tabulates the posterior mean of f; "posterior" the logit of the posterior mean of p(swap).
        spread is radius times the emission's angular s.d. unless given (the paper's networks use 0.2). Guesses and
        scatter are those of `set_size`, or averaged over all trials.
        """
        from lapsus.behaviour import BNS, NoSwap, TabulatedSwap

        if average not in ("mean", "posterior"):
            raise LapsusError(f"average '{average}' is not known; use 'mean' or 'posterior'.")
        rows = (
            np.ones(len(self.weights), bool) if set_size is None else (self.weights["set_size"] == set_size).to_numpy()
        )
        if not rows.any():
            raise LapsusError(
                f"set_size {set_size} is not among the fitted ones: {sorted(set(self.weights['set_size']))}."
            )
        share = self.weights["trials"][rows] / self.weights["trials"][rows].sum()
        uniform = float((share * self.weights["guess"][rows]).sum())
        if spread is None:
            spread = radius * float((share * self.emission["circular_sd"][rows]).sum())
        if self.name == "none":
            return BNS(swap=NoSwap(), uniform=uniform, radius=radius, spread=spread)
        axis = -np.pi + 2 * np.pi * np.arange(72) / 72
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2) if self.name == "both" else axis
        f = self.f(grid)
        p = (1 / (1 + np.exp(-f))).mean(1)
        logits = f.mean(1) if average == "mean" else np.log(p) - np.log1p(-p)
        if self.name == "both":
            logits = logits.reshape(72, 72)
        rows = tuple(map(tuple, logits.tolist())) if logits.ndim == 2 else tuple(logits.tolist())
        table = TabulatedSwap(tuple(axis.tolist()), rows)
        feature = self.name if self.name in ("report", "both") else "probe"
        return BNS(swap=table, feature=feature, uniform=uniform, radius=radius, spread=spread)

    def summary(self) -> str:
        """What was found, in plain English."""
        from lapsus.inference.words import describe

        return describe(self)

    def to_dict(self) -> dict:
        """What `lapsus fit --json` prints."""
        return {
            "model": self.name,
            "seconds": round(self.seconds, 3),
            "trials": len(self.trials),
            "subjects": len(np.unique(self.trials.subject)),
            "emission": {"kind": self.model.emission.name, "groups": _records(self.emission)},
            "weights": _records(self.weights),
            "comparison": None if self.comparison is None else _records(self.comparison),
            "swap_function": [] if self.name == "none" else _records(self.swap_function()),
            "converged": self.converged,
            "rhat": round(self.rhat, 4),
            "warning": self.warning,
            "elbo": self.variational.elbo,
            "summary": self.summary(),
        }

    def plot(self):
        """A figure with the swap function, errors, errors to non-targets, posterior predictive and model comparison."""
        from lapsus.plots.fits import overview

        return overview(self)

    def save(self, folder, plots: bool = True) -> Path:
        """Write fit.nc, summary.json, summary.txt and the plots (PNG and PDF) into a new folder, or one of an earlier
        fit."""
        from lapsus.inference.files import save_fit

        return save_fit(self, folder, plots)

    @classmethod
    def load(cls, folder) -> "Fit":
        """A fit saved by `save`."""
        from lapsus.inference.files import load_fit

        return load_fit(folder)


class SubjectFits(dict):
    """A Fit for each subject: a dictionary from subject to Fit, all of the same model."""

    def __init__(self, fits, comparison=None, seconds=float("nan")):
        super().__init__(fits)
        self.comparison, self.seconds = comparison, seconds

    @property
    def name(self) -> str:
        return next(iter(self.values())).name

    def swap_function(self, distances=None) -> pd.DataFrame:
        """Every subject's swap function, one below the other, with a column subject."""
        return pd.concat([fit.swap_function(distances).assign(subject=s) for s, fit in self.items()], ignore_index=True)

    def summary(self) -> str:
        from lapsus.inference.words import describe_subjects

        return describe_subjects(self)

    def to_dict(self) -> dict:
        return {
            "model": self.name,
            "seconds": round(self.seconds, 3),
            "comparison": None if self.comparison is None else _records(self.comparison),
            "swap_function": [] if self.name == "none" else _records(self.swap_function()),
            "converged": all(fit.converged for fit in self.values()),
            "warning": {subject: fit.warning for subject, fit in self.items() if fit.warning},
            "summary": self.summary(),
            "subjects": {subject: fit.to_dict() for subject, fit in self.items()},
        }

    def plot(self):
        from lapsus.plots.fits import subjects

        return subjects(self)

    def save(self, folder, plots: bool = True) -> Path:
        """One folder a subject, and a summary of all."""
        from lapsus.inference.files import save_subjects

        return save_subjects(self, folder, plots)


def _band(values, prefix):
    if np.isneginf(values).all():  # no swaps: quantiles of −inf would be NaN
        return {f"{prefix}low": values[..., 0], f"{prefix}high": values[..., 0]}
    low, high = np.quantile(values, BAND, axis=-1)
    return {f"{prefix}low": low, f"{prefix}high": high}


def _records(table) -> list[dict]:
    return json.loads(table.to_json(orient="records", double_precision=10))
