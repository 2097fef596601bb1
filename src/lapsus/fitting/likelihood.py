"""log p(responses | parameters) for S parameter vectors at once, with its gradient by hand.

    p(y) = (1 − u) Σ_n π_n p_ε(y ⊖ z_r⁽ⁿ⁾ ⊖ bias) + u / 2π,   π ∝ (1 for the cued item, exp(level + shape(Δ⁽ⁿ⁾)))

Everything that a fit does is in these few lines, so they are written out: no graph is built over trials × vectors.
Trials belong to groups (a set size, or a subject in it); level, emission, bias and guesses are the group's, the shape
of the swap function is shared by all groups or by those of one set size. The shape enters only through its values at
`sites`: the distinct distances of the data where these are few, else a fine regular grid, between whose points
exp(shape) is linear.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from lapsus.engine.threads import resolve
from lapsus.fitting.interpolation import Sites, sparse_pair
from lapsus.trials import Trials

__all__ = ["At", "Likelihood", "Parameters", "Total", "in_parallel"]

CHUNK = 1 << 17  # array elements per piece of work: small enough to stay in the cache
COLUMNS = {torch.float64: 8, torch.float32: 32}  # parameter vectors that usually come together
THIN = 20_000  # trials from which a search for the mode begins


@dataclass
class Parameters:
    """What the likelihood depends on, for S draws. None where the model has no such part.

    coefficients [C, K, S]  Fourier coefficients of the swap function's shape: C = 1, or one row a set size
    level        [G, S]     log odds of a distractor against the cued item, before the shape
    emission     [E, G, S]  the emission's own parameters
    bias         [G, S]     angle that is added to every response, radians
    guess        [G, S]     logit of the probability of a guess
    """

    coefficients: Tensor | None
    level: Tensor | None
    emission: Tensor
    bias: Tensor | None
    guess: Tensor | None

    def map(self, function: Callable[[Tensor], Tensor]) -> "Parameters":
        """The same with every part passed through a function."""

        def of(part: Tensor | None) -> Tensor | None:
            return None if part is None else function(part)

        return Parameters(of(self.coefficients), of(self.level), function(self.emission), of(self.bias), of(self.guess))

    def at(self, draws: Tensor | slice) -> "Parameters":
        """Some of the draws."""
        return self.map(lambda part: part[..., draws])

    def dot(self, gradient: "Parameters") -> Tensor:
        """Σ part · gradient: differentiating it carries the likelihood's gradient on to what made these parameters."""
        pairs: tuple[tuple[Tensor | None, Any], ...] = (
            (self.coefficients, gradient.coefficients),
            (self.level, gradient.level),
            (self.emission, gradient.emission),
            (self.bias, gradient.bias),
            (self.guess, gradient.guess),
        )
        return torch.stack([(part * on).sum() for part, on in pairs if part is not None]).sum()


_pool: ThreadPoolExecutor | None = None


def in_parallel(work: Callable, blocks: list, columns: int) -> Iterable:
    """work(block) for every block, in order, on all cores (or LAPSUS_THREADS): one thread a block beats torch's threads
    inside each operation."""
    global _pool
    if len(blocks) < 2 or columns < 8:  # waking a thread takes as long as a few columns
        return map(work, blocks)
    threads = min(resolve(None), 8)
    if threads == 1:
        return map(work, blocks)
    if _pool is None:
        _pool = ThreadPoolExecutor(threads)
    return _pool.map(work, blocks)


class At:
    """at(x [G, S]) → [T, S]: what each trial's group has."""

    def __init__(self, groups: np.ndarray):
        self.groups = slice(int(groups[0]), int(groups[-1]) + 1)  # trials are sorted by group
        self.local = groups - groups[0]
        self.index = torch.tensor(self.local)
        self.single = int(self.local[-1]) == 0

    @overload
    def __call__(self, x: Tensor) -> Tensor: ...
    @overload
    def __call__(self, x: None) -> None: ...
    def __call__(self, x: Tensor | None) -> Tensor | None:
        if x is None:
            return None
        return x[self.groups] if self.single else x[self.groups].index_select(0, self.index)


class Total:
    """total(x [T, S]) → [groups of the block, S]: sums over the trials of each group."""

    def __init__(self, at: At, bias: bool, dtype: torch.dtype):
        self.bias, self.single = bias, at.single
        if not self.single:
            ones = np.ones((len(at.local), 1))
            self.matrix = sparse_pair(at.local[:, None], ones, int(at.local[-1]) + 1, dtype)[1]

    def __call__(self, x: Tensor) -> Tensor:
        return x.sum(0, keepdim=True) if self.single else self.matrix @ x


class _Block:
    """Trials of one set size, sorted by group, at most a chunk of them."""

    def __init__(self, likelihood: "Likelihood", rows: np.ndarray):
        trials, dtype = likelihood.trials[rows], likelihood.dtype
        self.rows, self.others = rows, int(trials.set_size[0]) - 1
        self.at = At(likelihood.groups[rows])
        self.total = Total(self.at, likelihood.bias, dtype)
        self.statistics = likelihood.emission.statistics(trials, self.at.local, dtype)
        self.shape = likelihood.shape_of_size.get(self.others + 1, 0)
        if likelihood.sites is not None and self.others:
            index, weight = likelihood.sites.locate(trials)
            self.interpolate, self.scatter = sparse_pair(index, weight, len(likelihood.sites.points), dtype)


class Likelihood:
    """The likelihood of trials as a function of Parameters.

    groups [T]   number of each trial's group; the trials of a group have one set size
    features     distances on which the shape depends; none: no shape
    basis        function from sites to the shape's basis [sites, K]; None: a value at every site
    by_size      a shape for each set size (of two items or more), not one for all
    """

    def __init__(
        self,
        trials: Trials,
        emission: Any,
        groups: np.ndarray,
        features: tuple[str, ...] = (),
        even: bool = True,
        bias: bool = False,
        basis: Callable | None = None,
        by_size: bool = False,
        dtype: torch.dtype = torch.float64,
    ):
        self.trials, self.emission, self.bias, self.dtype = trials, emission, bias, dtype
        self.groups = np.asarray(groups)
        self.group_count = int(self.groups.max()) + 1
        sizes = np.unique(trials.set_size)
        several = [int(n) for n in sizes if n > 1]
        self.shape_of_size = {n: i if by_size else 0 for i, n in enumerate(several)}
        self.sites = Sites(trials, features, even) if features and several else None
        if self.sites is not None:
            points = self.sites.points
            matrix = torch.eye(len(points)) if basis is None else basis(points)
            self.basis = matrix.to(dtype)
        self.blocks: list[_Block] = []
        for size in sizes:
            rows = np.flatnonzero(trials.set_size == size)
            rows = rows[np.argsort(self.groups[rows], kind="stable")]
            step = max(1, CHUNK // (COLUMNS[dtype] * int(size)))
            self.blocks += [_Block(self, rows[start : start + step]) for start in range(0, len(rows), step)]
        self.scale = 1.0  # trials that each one stands for
        self.floor = 1e-300 if dtype == torch.float64 else 1e-36

    def _site_odds(self, p: Parameters) -> list[Tensor] | None:
        """exp(shape) at the sites [sites, S], one for each row of coefficients."""
        if p.coefficients is None or self.sites is None:
            return None
        return [(self.basis @ row).clamp_(-40, 40).exp_() for row in p.coefficients]

    def _odds(self, block: _Block, p: Parameters, sites: list[Tensor] | None) -> Tensor | None:
        """exp(level + shape) of every distractor [N−1, T, S] (constant over items: [1, T, S]); None: no swaps."""
        if p.level is None or not block.others:
            return None
        level = block.at(p.level.clamp(-40, 40)).exp()
        if sites is None:
            return level.expand(len(block.rows), -1)[None]
        shape = (block.interpolate @ sites[block.shape]).reshape(block.others, len(block.rows), -1)
        return shape * level

    def _of_block(
        self, block: _Block, p: Parameters, prepared: tuple, sites: list[Tensor] | None, gradient: bool
    ) -> Any:
        """log p [T, S] of a block's trials; with gradient its sum over them, and the sums of each part."""
        density, flat, saved = self.emission.densities(block.statistics, prepared, block.at)
        odds = self._odds(block, p, sites)
        if odds is None:
            mixture = density[0]
        else:
            alike = sites is None  # one number for all distractors of a trial
            every = odds[0] * block.others + 1 if alike else odds.sum(0).add_(1)
            weighted = odds[0] * density[1:].sum(0) if alike else (odds * density[1:]).sum(0)
            mixture = weighted.add_(density[0]).div_(every)
        u = None if p.guess is None else torch.sigmoid(block.at(p.guess))
        if u is None:
            chance = mixture.clamp_min(self.floor)
        else:
            chance = (mixture * (1 - u) + u * flat).clamp_min_(self.floor)
        log_p = chance.log()
        if not gradient:
            return log_p
        inverse = chance.reciprocal()
        guess = on_guess = None
        if u is not None:
            guess = inverse * (u * flat)
            # chance = (1 − u) mixture + u flat, so (1 − u) mixture / chance = 1 − guess
            on_guess = block.total(guess - u)
            inverse = inverse * (1 - u)
        on_level = on_sites = None
        if odds is None:
            responsibility = torch.zeros_like(density)
            torch.mul(density[0], inverse, out=responsibility[0])
        else:
            inverse = inverse / every
            responsibility = density.mul_(inverse)  # from here: (1 − u) density / (chance · every)
            pull = mixture * inverse
            if alike:
                responsibility[1:] *= odds
                on_level = block.total(responsibility[1:].sum(0) - pull * (odds[0] * block.others))
            else:
                responsibility[1:] *= odds
                on_items = torch.addcmul(responsibility[1:], odds, pull, value=-1)
                on_level = block.total(on_items.sum(0))
                # d/d log(site odds): a site's share of an item's odds, which are a weighted sum over sites
                assert p.level is not None and sites is not None  # else there were no such odds
                whole = on_items / odds * block.at(p.level.clamp(-40, 40)).exp()
                on_sites = (block.scatter @ whole.reshape(-1, whole.shape[-1])) * sites[block.shape]
        on_emission = self.emission.pull_back(block.statistics, responsibility, guess, saved, block.total)
        return log_p.sum(0), on_sites, on_level, on_emission, on_guess

    def thinned(self) -> "Likelihood":
        """The same from about THIN trials alone, taken evenly from the table, each for several: to begin a search where
        trials are many. Where groups share a set size all are needed, and this is the whole."""
        every = len(self.trials) // THIN
        if every < 2 or self.group_count > len({block.others for block in self.blocks}):
            return self
        part = copy.copy(self)
        by_size: dict[int, list[_Block]] = {}
        for block in self.blocks:
            by_size.setdefault(block.others, []).append(block)
        part.blocks = [block for blocks in by_size.values() for block in blocks[::every]]
        part.scale = self.scale * len(self.trials) / sum(len(block.rows) for block in part.blocks)
        return part

    @torch.no_grad()
    def total(self, parameters: Parameters) -> tuple[Tensor, Parameters]:
        """Σ_t log p [S] and its gradient, shaped like the parameters, both in float64."""
        p = parameters.map(lambda part: part.detach().to(self.dtype))
        prepared, sites = self.emission.prepare(p.emission, p.bias), self._site_odds(p)
        columns = p.emission.shape[-1]
        value = torch.zeros(columns, dtype=torch.float64)
        on = p.map(lambda part: torch.zeros_like(part, dtype=torch.float64))
        on_sites = None if sites is None else [torch.zeros_like(s, dtype=torch.float64) for s in sites]
        sums = None
        results = in_parallel(lambda b: self._of_block(b, p, prepared, sites, True), self.blocks, columns)
        for block, parts in zip(self.blocks, results):
            if self.scale != 1:
                parts = [None if x is None else x * self.scale for x in parts]
            log_p, df, dl, de, dg = parts
            value += log_p
            if sums is None:
                sums = torch.zeros(len(de), self.group_count, columns, dtype=torch.float64)
            sums[:, block.at.groups] += de
            if on_sites is not None and df is not None:
                on_sites[block.shape] += df
            if on.level is not None and dl is not None:
                on.level[block.at.groups] += dl
            if on.guess is not None:
                on.guess[block.at.groups] += dg
        assert sums is not None  # there is a block: no table is empty
        gradient = self.emission.gradient(sums.to(self.dtype), prepared).double()
        count = len(self.emission.names)
        on.emission = gradient[:count]
        if on.bias is not None:
            on.bias = gradient[count]
        if on_sites is not None:
            on.coefficients = torch.stack([self.basis.double().T @ row for row in on_sites])
        return value, on

    @torch.no_grad()
    def by_trial(self, parameters: Parameters) -> np.ndarray:
        """log p of every trial [T, S]."""
        p = parameters.map(lambda part: part.detach().to(self.dtype))
        prepared, sites = self.emission.prepare(p.emission, p.bias), self._site_odds(p)
        out = np.empty((len(self.trials), p.emission.shape[-1]))
        results = in_parallel(lambda b: self._of_block(b, p, prepared, sites, False), self.blocks, out.shape[1])
        for block, log_p in zip(self.blocks, results):
            out[block.rows] = log_p.numpy()
        return out

    @torch.no_grad()
    def by_group(self, parameters: Parameters) -> Tensor:
        """Σ log p over the trials of each group [G, S], in float64."""
        p = parameters.map(lambda part: part.detach().to(self.dtype))
        prepared, sites = self.emission.prepare(p.emission, p.bias), self._site_odds(p)
        out = torch.zeros(self.group_count, p.emission.shape[-1], dtype=torch.float64)
        results = in_parallel(lambda b: self._of_block(b, p, prepared, sites, False), self.blocks, out.shape[1])
        for block, log_p in zip(self.blocks, results):
            out[block.at.groups] += block.total(log_p)
        return out

    @torch.no_grad()
    def weights(self, parameters: Parameters) -> Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For every block its rows, the probability of each item to be reported [N, T, S], and of a guess [T, S]."""
        p = parameters.map(lambda part: part.detach().to(self.dtype))
        sites, columns = self._site_odds(p), p.emission.shape[-1]
        for block in self.blocks:
            odds, count = self._odds(block, p, sites), len(block.rows)
            items = torch.zeros(block.others + 1, count, columns, dtype=self.dtype)
            items[0] = 1.0
            if odds is not None:
                items[1:] = odds
                items /= items.sum(0)
            guess = torch.zeros(count, columns, dtype=self.dtype)
            if p.guess is not None:
                guess = torch.sigmoid(block.at(p.guess)).expand(count, -1)
            yield block.rows, (items * (1 - guess)).numpy(), guess.numpy()

    def _posterior(self, parameters: Parameters) -> Iterator[tuple[_Block, Tensor, Tensor]]:
        """For every block the probability that each item [N, T, S], or a guess [T, S], gave the response."""
        p = parameters.map(lambda part: part.detach().to(self.dtype))
        prepared = self.emission.prepare(p.emission, p.bias)
        for block, (_, items, guess) in zip(self.blocks, self.weights(parameters)):
            density, flat, _ = self.emission.densities(block.statistics, prepared, block.at)
            joint, lapse = torch.tensor(items) * density, torch.tensor(guess) * flat
            every = (joint.sum(0) + lapse).clamp_min(self.floor)
            yield block, joint / every, lapse / every

    @torch.no_grad()
    def responsibilities(self, parameters: Parameters) -> np.ndarray:
        """Posterior probability that each item, or a guess (the last column), gave the response: mean over draws
        [T, N + 1]."""
        out = np.full((len(self.trials), self.trials.report.shape[1] + 1), np.nan)
        for block, items, guess in self._posterior(parameters):
            out[block.rows, : block.others + 1] = items.mean(-1).T.numpy()
            out[block.rows, -1] = guess.mean(-1).numpy()
        return out

    @torch.no_grad()
    def swaps(self, parameters: Parameters) -> np.ndarray:
        """Posterior probability that a non-target gave the response, at every draw [T, S]."""
        out = np.empty((len(self.trials), parameters.emission.shape[-1]), np.float32)
        for block, items, _ in self._posterior(parameters):
            out[block.rows] = items[1:].sum(0).numpy()
        return out
