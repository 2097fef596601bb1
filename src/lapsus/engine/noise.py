"""Standard normal numbers as a pure function of a key: no state, so any part of a batch can be drawn alone.

Philox4x32-10 (Salmon et al. 2011) turns key and counter into four words, Box-Muller turns two words into two normal
numbers. Condition c uses the counters (i, c, stream) for i = 0, 1, ... and fills its own [step, unit, trial] array with
them, 16 counters (64 numbers) at a time: word w of counter i of a run is number 16 w + i of that run.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lapsus.engine import fused
from lapsus.engine.threads import resolve
from lapsus.errors import LapsusError

_RUN = 64
_SMALL = 2**18


def normal(
    steps: int,
    units: int,
    conditions: int | range,
    trials: int,
    key: tuple[int, int],
    *,
    dtype: torch.dtype = torch.float32,
    threads: int | None = None,
) -> Tensor:
    """Independent N(0, 1) draws, shape [step, unit, condition, trial].

    The draws of a condition depend on key = (seed of 64 bits, stream of 32 bits), on the condition's own number, and on
    steps, units and trials alone: `conditions=range(8, 16)` gives what conditions 8 ... 15 of the whole batch get. They
    have the precision of float32 whatever the dtype.
    """
    seed, stream = key
    numbers = range(conditions) if isinstance(conditions, int) else conditions
    if not 0 <= seed < 2**64 or not 0 <= stream < 2**32:
        raise LapsusError(f"the key {key} must be a seed below 2**64 and a stream below 2**32, neither negative")
    if numbers.step != 1 or numbers.start < 0 or numbers.stop > 2**32:
        raise LapsusError(f"conditions is {numbers}; it must be a run of consecutive numbers from 0 to 2**32")
    rows, low, high = steps * units, seed & 0xFFFFFFFF, seed >> 32
    isa = fused.instruction_set()
    if isa is None:
        out = torch.from_numpy(_normal(rows, numbers, trials, low, high, stream))
    else:
        out = torch.empty(rows, len(numbers), trials)
        # Waking a second thread takes longer than it saves below about this many numbers.
        fused.fill_normal(isa, low, high, stream, numbers.start, out, 1 if out.numel() < _SMALL else resolve(threads))
    return out.view(steps, units, len(numbers), trials).to(dtype)


def philox(counter: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Philox4x32-10 of counters [4, ...] of 32-bit words: as many random words."""
    x = [np.asarray(word, np.uint64) for word in counter]
    low, high = np.uint64(key[0]), np.uint64(key[1])
    mask, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        first, second = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [(second >> shift) ^ x[1] ^ low, second & mask, (first >> shift) ^ x[3] ^ high, first & mask]
        low, high = (low + np.uint64(0x9E3779B9)) & mask, (high + np.uint64(0xBB67AE85)) & mask
    return np.stack(x).astype(np.uint32)


def _normal(rows: int, conditions: range, trials: int, low: int, high: int, stream: int) -> np.ndarray:
    """What the kernel computes, for machines without it: [row, condition, trial]."""
    out = np.empty((rows, len(conditions), trials), np.float32)
    runs = -(-rows * trials // _RUN)
    index = np.arange(runs * 16, dtype=np.uint64)
    for place, condition in enumerate(conditions):
        last = (np.full_like(index, condition), np.full_like(index, stream))
        counter = np.stack([index & np.uint64(0xFFFFFFFF), index >> np.uint64(32), *last])
        words = philox(counter, (low, high)).reshape(4, runs, 16)
        # The upper 24 bits, centred in their interval, so that the logarithm never sees 0; rounded as the kernel
        # rounds.
        uniform = (words[::2] >> np.uint32(8)).astype(np.float32) + np.float32(0.5)
        radius = np.sqrt(-2 * np.log(uniform.astype(np.float64) / 2**24))
        angle = words[1::2] * (2 * np.pi / 2**32)
        values = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(4, runs, 16)
        out[:, place] = values.swapaxes(0, 1).reshape(-1)[: rows * trials].reshape(rows, trials)
    return out
