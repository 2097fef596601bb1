"""The joint density of responses and parameters. Every coordinate has a standard normal prior; `unpack` says what it
means.

    a_k            coefficients of the swap function (swap_prior.py)
    mean           of f:      N(−2.5, 2)             the cued item's logit is 0, so f is relative to it
    log scale      of f:      N(log 0.7, 1)
    log(tau − 4)   of f:      N(0.5, 1)              one a feature
    emission       per group: the emission's own normal priors
    guess          per group: N(−3, 2)               logit of the probability of a uniform guess

A group is a set size, and with "hierarchical" a subject within a set size; then the groups of one set size share a
normal population with its own mean (prior as above) and s.d. (log-normal, median 0.4).
"""

import math

import numpy as np
import torch

from lapsus.inference.likelihood import Likelihood
from lapsus.inference.swap_prior import TAU_MIN, SwapPrior

__all__ = ["FEATURES", "Model"]

FEATURES = {"none": (), "constant": (), "probe": ("probe",), "report": ("report",), "both": ("probe", "report")}
MEAN, SCALE, TAU, GUESS = (-2.5, 2.0), (math.log(0.7), 1.0), (0.5, 1.0), (-3.0, 2.0)
POPULATION = (math.log(0.4), 0.5)


class Model:
    """One swap model on one set of trials.

    name        none, constant, probe, report or both
    labels      what each emission group is: (set size, subject or "all")
    dimension   number of coordinates; the first `latent` of them (coefficients and mean) are q(f)'s
    """

    def __init__(self, trials, name, emission, uniform=True, even=True, hierarchical=False, harmonics=None):
        self.trials, self.name, self.emission, self.uniform = trials, name, emission, uniform
        self.even, self.hierarchical = even, hierarchical
        features = FEATURES[name]
        self.prior = SwapPrior(features, even, harmonics) if features else None
        who = trials.subject if hierarchical else np.full(len(trials), "all", object)
        self.labels = sorted(set(zip(trials.set_size.tolist(), who.tolist())))
        number = {label: i for i, label in enumerate(self.labels)}
        groups = np.array([number[label] for label in zip(trials.set_size.tolist(), who.tolist())])
        self.likelihood = Likelihood(trials, emission, groups, features, name == "constant", even, uniform)
        if self.prior is not None:
            self.basis = self.prior.basis(self.likelihood.sites.points)
        sizes = sorted({size for size, _ in self.labels})
        self._size_of_group = torch.tensor([sizes.index(size) for size, _ in self.labels])

        self.slices, at = {}, 0
        per_group = len(emission.names) + uniform
        for part, count in (
            ("a", self.prior.size if self.prior else 0),
            ("mean", int(name != "none")),
            ("scale", int(self.prior is not None)),
            ("tau", len(features)),
            ("groups", per_group * len(self.labels)),
            ("population", per_group * len(sizes) if hierarchical else 0),
            ("population_sd", per_group if hierarchical else 0),
        ):
            self.slices[part] = slice(at, at + count)
            at += count
        self.dimension = at
        self.latent = self.slices["mean"].stop

    def unpack(self, theta):
        """theta [P, S] → a, mean and scale [1, S], tau [features, S], emission [E, groups, S], guess [groups, S]."""
        parts = {name: theta[part] for name, part in self.slices.items()}
        columns, count = theta.shape[1], len(self.emission.names) + self.uniform
        centre = torch.tensor([*self.emission.means, *[GUESS[0]] * self.uniform], dtype=torch.float64)[:, None, None]
        width = torch.tensor([*self.emission.scales, *[GUESS[1]] * self.uniform], dtype=torch.float64)[:, None, None]
        z = parts["groups"].reshape(count, len(self.labels), columns)
        if self.hierarchical:
            middle, sd = self.population(theta)
            groups = middle + sd * z
        else:
            groups = centre + width * z
        return {
            "a": parts["a"],
            "mean": MEAN[0] + MEAN[1] * parts["mean"],
            "scale": torch.exp(SCALE[0] + SCALE[1] * parts["scale"]),
            "tau": TAU_MIN + torch.exp(TAU[0] + TAU[1] * parts["tau"]),
            "emission": groups[: len(self.emission.names)],
            "guess": groups[-1] if self.uniform else None,
        }

    def population(self, theta):
        """Mean of each group's parameters in its population [E + 1, groups, S], and s.d. [E + 1, 1, S]; "hierarchical"
        only."""
        count, columns = len(self.emission.names) + self.uniform, theta.shape[1]
        centre = torch.tensor([*self.emission.means, *[GUESS[0]] * self.uniform], dtype=torch.float64)[:, None, None]
        width = torch.tensor([*self.emission.scales, *[GUESS[1]] * self.uniform], dtype=torch.float64)[:, None, None]
        middle = centre + width * theta[self.slices["population"]].reshape(count, -1, columns)
        sd = torch.exp(POPULATION[0] + POPULATION[1] * theta[self.slices["population_sd"]])[:, None]
        return middle[:, self._size_of_group], sd

    def f_at_sites(self, parts):
        """f where the data need it [G, S], or None for the model without swaps."""
        if self.name == "none":
            return None
        if self.prior is None:
            return parts["mean"]
        return self._function(self.basis, parts)

    def _function(self, basis, parts):
        return parts["mean"] + parts["scale"] * (basis @ (self.prior.spectrum(parts["tau"]).sqrt() * parts["a"]))

    def widths(self, theta):
        """Prior s.d. of the Fourier coefficients of f, and of its mean [latent, S]: f is linear in widths · latent."""
        parts = self.unpack(theta)
        mean = torch.full((self.latent and 1, theta.shape[1]), MEAN[1], dtype=torch.float64)
        if self.prior is None:
            return mean
        return torch.cat([parts["scale"] * self.prior.spectrum(parts["tau"]).sqrt(), mean])

    @property
    def features(self):
        """d f(sites) / d (coefficients, mean) [G, latent]."""
        constant = torch.ones(self.likelihood.values, 1, dtype=torch.float64)
        return constant if self.prior is None else torch.cat([self.basis, constant], 1)

    def f(self, theta, distances):
        """f at distances [G] (or [G, 2]) under theta [P, S] → [G, S]; −inf for the model without swaps."""
        theta = torch.as_tensor(theta, dtype=torch.float64)
        parts = self.unpack(theta)
        if self.name == "none":
            return torch.full((len(distances), theta.shape[1]), -math.inf, dtype=torch.float64)
        if self.prior is None:
            return parts["mean"].expand(len(distances), -1)
        return self._function(self.prior.basis(distances), parts)

    def log_likelihood(self, theta):
        """Σ_t log p(y_t | theta) [S] for theta [P, S], without gradient."""
        with torch.no_grad():
            parts = self.unpack(theta)
            return self.likelihood.total(self.f_at_sites(parts), parts["emission"], parts["guess"], gradient=False)

    def log_joint(self, theta, prior=1.0):
        """log p(responses, theta) up to a constant [S], and its gradient [P, S]; prior = 0 leaves the likelihood."""
        theta = theta.detach().requires_grad_(True)
        with torch.enable_grad():
            parts = self.unpack(theta)
            f = self.f_at_sites(parts)
        inputs = [x for x in (f, parts["emission"], parts["guess"]) if x is not None]
        with torch.no_grad():
            value, on_f, on_emission, on_guess = self.likelihood.total(
                *(None if part is None else part.detach() for part in (f, parts["emission"], parts["guess"]))
            )
        outputs = [x for x in (on_f, on_emission, on_guess) if x is not None]
        (gradient,) = torch.autograd.grad(inputs, theta, outputs)
        theta = theta.detach()
        return value - 0.5 * prior * (theta**2).sum(0), gradient - prior * theta

    def by_trial(self, theta):
        """log p(y_t | theta) [T, S]."""
        with torch.no_grad():
            parts = self.unpack(torch.as_tensor(theta, dtype=torch.float64))
            return self.likelihood.by_trial(self.f_at_sites(parts), parts["emission"], parts["guess"])

    def simulate(self, theta, rng):
        """The same trials with responses drawn from the model at theta [P]."""
        trials = self.trials
        parts = self.unpack(torch.tensor(theta)[:, None])
        f = self.f_at_sites(parts)
        parts = {k: None if v is None else v.numpy() for k, v in parts.items()}
        count = len(trials)
        logits = np.full(trials.report.shape, -np.inf)
        logits[:, 0] = 0.0
        for block in self.likelihood.blocks if f is not None else ():
            if block.others:
                logits[block.rows, 1 : block.others + 1] = self.likelihood.f_of_items(block, f)[:, :, 0].numpy().T
        item = (logits + rng.gumbel(size=logits.shape)).argmax(1)
        angle = trials.report[np.arange(count), item]
        if self.uniform:
            u = 1 / (1 + np.exp(-parts["guess"][self.likelihood.groups, 0]))
            angle = np.where(rng.uniform(size=count) < u, rng.uniform(-np.pi, np.pi, count), angle)
            # A guess is anywhere already: in the plane it gets the same noise, on the circle more noise changes
            # nothing.
        response = self.emission.sample(parts["emission"][:, self.likelihood.groups, 0], angle, rng)
        point = response if response.ndim == 2 else None
        if point is not None:
            response = np.arctan2(point[:, 1], point[:, 0])
        return trials.with_responses(response, point)

    def initial(self, mean):
        """A starting point [P] with f = mean everywhere and an emission read off the central errors."""
        theta = np.zeros(self.dimension)
        theta[self.slices["mean"]] = (mean - MEAN[0]) / MEAN[1]
        start = (np.array(self.emission.initial(self.trials)) - self.emission.means) / np.array(self.emission.scales)
        where = "population" if self.hierarchical else "groups"
        block = theta[self.slices[where]].reshape(len(self.emission.names) + self.uniform, -1)
        block[: len(start)] = start[:, None]
        return theta
