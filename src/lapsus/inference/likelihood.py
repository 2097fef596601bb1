"""log p(responses | swap function, emission) for S parameter vectors at once, with its gradient by hand.

    p(y) = (1 − u) Σ_n π_n p_ε(y ⊖ z_r⁽ⁿ⁾) + u / 2π,   π = softmax(0 for the cued item, f(Δ⁽ⁿ⁾) for the others)

Everything that a fit does is in these few lines, so they are written out: no graph is built over trials × vectors.
f enters only through its values at `sites`: the distinct distances of the data where these are few, else a fine
regular grid with linear interpolation between its points (the form in which a fitted swap function is tabulated).
"""

import math
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch

__all__ = ["Likelihood", "in_parallel", "one_thread_each", "sparse_pair"]

CHUNK = 1 << 18  # array elements per piece of work: small enough to stay in the cache
GRID = {(1, True): 121, (1, False): 240, (2, True): 49, (2, False): 72}  # sites a dimension, by (features, even)


_pool = None


def in_parallel(work, blocks, columns):
    """work(block) for every block, in order, on all cores: one thread a block beats torch's threads inside each
    operation."""
    global _pool
    if len(blocks) < 2 or columns < 8:  # waking a thread takes as long as a few columns
        return map(work, blocks)
    if _pool is None:
        _pool = ThreadPoolExecutor(min(os.cpu_count() or 1, 8))
    return _pool.map(work, blocks)


@contextmanager
def one_thread_each():
    """torch computes each operation on one thread inside, so that the blocks' threads do not fight; restored after."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def sparse_pair(index, weight, columns):
    """Sparse float64 matrix with `weight` [R, c] at columns `index` [R, c], and its transpose."""
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(len(index)), index.shape[1])
    matrix = csr_array((weight.reshape(-1), (rows, index.reshape(-1))), shape=(len(index), columns))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch announces that its sparse layout is young
        return tuple(
            torch.sparse_csr_tensor(torch.tensor(m.indptr), torch.tensor(m.indices), torch.tensor(m.data), m.shape)
            for m in (matrix, matrix.T.tocsr())
        )


class _Block:
    """Trials of one set size and one emission group, at most a chunk of them."""

    def __init__(self, trials, rows, group, emission, sites):
        self.rows, self.group = rows, group
        self.others = int(trials.set_size[rows[0]]) - 1
        self.sub = trials[rows]
        self.statistics = emission.statistics(self.sub, slice(None))
        if sites is not None and self.others:
            index, weight = sites.locate(self.sub)
            self.interpolate, self.scatter = sparse_pair(index, weight, len(sites.points))


class Sites:
    """The distances at which f is needed. points [G] or [G, 2]; locate(trials) gives rows of interpolation."""

    def __init__(self, trials, features, even):
        self.features, self.even, axes = features, even, []
        for feature in features:
            values = trials.distance(feature)[:, 1:]
            values = _fold(values[np.isfinite(values)], even)
            unique = np.unique(np.round(values, 9))
            if len(unique) <= 48:
                axes.append(unique)
            elif even:
                axes.append(np.linspace(0, math.pi, GRID[len(features), True]))
            else:
                axes.append(np.arange(GRID[len(features), False]) * 2 * math.pi / GRID[len(features), False] - math.pi)
        self.axes = axes
        self.exact = [len(axis) <= 48 for axis in axes]
        grid = np.meshgrid(*axes, indexing="ij")
        self.points = np.stack([g.reshape(-1) for g in grid], -1)

    def locate(self, trials):
        """index, weight [(N−1)·T, c], item by item: f at every distractor is Σ weight · f(points[index])."""
        index = weight = None
        for feature, axis, exact in zip(self.features, self.axes, self.exact):
            values = _fold(trials.distance(feature)[:, 1:], self.even).T.reshape(-1)
            if exact:
                i = np.clip(np.searchsorted(axis, np.round(values, 9)), 0, len(axis) - 1)[:, None]
                w = np.ones_like(i, float)
            else:
                position = (values - axis[0]) / (axis[1] - axis[0])
                left = np.floor(position).astype(int)
                left = np.minimum(left, len(axis) - 2) if self.even else left % len(axis)
                right = left + 1 if self.even else (left + 1) % len(axis)
                share = position - left if self.even else position - np.floor(position)
                i, w = np.stack([left, right], 1), np.stack([1 - share, share], 1)
            if index is None:
                index, weight = i, w
            else:
                index = (index[:, :, None] * len(axis) + i[:, None, :]).reshape(len(i), -1)
                weight = (weight[:, :, None] * w[:, None, :]).reshape(len(w), -1)
        return index, weight


def _fold(values, even):
    return np.abs(values) if even else values


class Likelihood:
    """The likelihood of trials as a function of f at the sites and of each emission group's parameters.

    kind: "none" (f = −∞), "constant" (one value) or "function" (`features`, f at the sites).
    groups [T] numbers each trial's emission group.
    """

    def __init__(self, trials, emission, groups, features=(), constant=False, even=True, uniform=True, columns=64):
        self.trials, self.emission, self.uniform = trials, emission, uniform
        self.kind = "function" if features else "constant" if constant else "none"
        self.sites = Sites(trials, features, even) if features else None
        self.groups = np.asarray(groups)
        self.group_count = int(self.groups.max()) + 1
        self.values = len(self.sites.points) if features else 1 if constant else 0
        self.blocks = []
        for size in np.unique(trials.set_size):
            for group in range(self.group_count):
                rows = np.flatnonzero((trials.set_size == size) & (self.groups == group))
                step = max(1, CHUNK // (columns * size))
                for start in range(0, len(rows), step):
                    self.blocks.append(_Block(trials, rows[start : start + step], group, emission, self.sites))

    def f_of_items(self, block, f):
        """f at every distractor of a block [N−1, T, S], from its values at the sites [G, S]."""
        shape = (block.others, len(block.rows), f.shape[-1])
        if self.kind == "constant":
            return f.expand(shape)
        return (block.interpolate @ f).reshape(shape)

    def of_block(self, block, f_items, emission, guess, gradient=False):
        """log p [T, S] of a block's trials; with gradient also d/df_items [N−1, T, S], d/demission [E, S], d/dguess
        [S].

        f_items [N−1, T, S] or None, emission [E, S], guess [S] (logit of u) or None. Items come first: sums over them
        are then sums of whole arrays.
        """
        density, flat, saved = self.emission.densities(block.statistics, emission)
        silent = f_items is None or not block.others
        if silent:
            mixture = density[0]
        else:
            odds = f_items.exp()
            total = odds.sum(0).add_(1)
            mixture = (odds * density[1:]).sum(0).add_(density[0]).div_(total)
        if guess is None:
            p, share = mixture.clamp_min(1e-300), 1.0
        else:
            u = torch.sigmoid(guess)
            share = 1 - u
            p = torch.addcmul(u * flat, mixture, share).clamp_min_(1e-300)
        log_p = p.log()
        if not gradient:
            return log_p
        inverse = p.reciprocal()
        on_guess = guess_responsibility = None
        if guess is not None:
            guess_responsibility = inverse * (u * flat)
            # p = share · mixture + u · flat, so share · mixture / p = 1 − guess_responsibility
            on_guess = (guess_responsibility - u).sum(0)
            inverse *= share
        if silent:
            on_f, responsibility = None, torch.zeros_like(density)
            responsibility[0] = density[0] * inverse
        else:
            inverse /= total
            density.mul_(inverse)  # from here: share · density / (p · total)
            responsibility = density
            on_f = torch.sub(density[1:], mixture.mul_(inverse)).mul_(odds)
            responsibility[1:] *= odds
        on_emission = self.emission.pull_back(block.statistics, responsibility, guess_responsibility, saved)
        return log_p, on_f, on_emission, on_guess

    def total(self, f, emission, guess, gradient=True):
        """Σ_t log p [S]; and its gradients in f [G, S], emission [E, groups, S], guess [groups, S]."""
        columns = emission.shape[-1]

        @torch.no_grad()
        def work(block):
            items = self.f_of_items(block, f) if f is not None and block.others else None
            g = guess[block.group] if guess is not None else None
            if not gradient:
                return self.of_block(block, items, emission[:, block.group], g).sum(0)
            log_p, df, de, dg = self.of_block(block, items, emission[:, block.group], g, True)
            if df is not None:
                df = df.sum((0, 1)) if self.kind == "constant" else block.scatter @ df.reshape(-1, columns)
            return log_p.sum(0), df, de, dg

        if not gradient:
            return sum(in_parallel(work, self.blocks, columns))
        value = emission.new_zeros(columns)
        on_f = torch.zeros_like(f) if f is not None else None
        on_emission, on_guess = torch.zeros_like(emission), torch.zeros_like(guess) if guess is not None else None
        for block, (log_p, df, de, dg) in zip(self.blocks, in_parallel(work, self.blocks, columns)):
            value += log_p
            if df is not None:
                on_f += df
            on_emission[:, block.group] += de
            if dg is not None:
                on_guess[block.group] += dg
        return value, on_f, on_emission, on_guess

    def by_trial(self, f, emission, guess):
        """log p of every trial [T, S]."""
        out = torch.empty(len(self.trials), emission.shape[-1], dtype=torch.float64)

        @torch.no_grad()
        def work(block):
            items = self.f_of_items(block, f) if f is not None and block.others else None
            g = guess[block.group] if guess is not None else None
            out[block.rows] = self.of_block(block, items, emission[:, block.group], g)

        list(in_parallel(work, self.blocks, emission.shape[-1]))
        return out

    def responsibilities(self, f, emission, guess):
        """Posterior probability that each item [T, N], or a guess [T, 1], gave the response: mean over columns → [T,
        N+1]."""
        width = self.trials.report.shape[1]
        out = np.full((len(self.trials), width + 1), np.nan)
        for block in self.blocks:
            density, flat, _ = self.emission.densities(block.statistics, emission[:, block.group])
            logits = torch.zeros_like(density)
            if f is not None and block.others:
                logits[1:] = self.f_of_items(block, f)
            elif block.others:
                logits[1:] = -math.inf
            u = (
                torch.sigmoid(guess[block.group])
                if guess is not None
                else torch.zeros(emission.shape[-1], dtype=torch.float64)
            )
            joint = (1 - u) * torch.softmax(logits, 0) * density
            lapse = (u * flat).expand(len(block.rows), -1)
            total = joint.sum(0) + lapse
            out[block.rows, : block.others + 1] = (joint / total).mean(-1).T
            out[block.rows, -1] = (lapse / total).mean(-1)
        return out
