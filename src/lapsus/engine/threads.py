"""How many threads the kernel may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from lapsus.errors import LapsusError

_MOST = 1024


def available() -> int:
    """The cores that this process may run on: its affinity, and the share that a container or a slice allows it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *map(math.ceil, _quotas())]))


def _quotas(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Iterator[float]:
    """Cores that each control group around this process allows, of either version of control groups."""
    groups = {Path(".")}
    with suppress(OSError):
        for line in own.read_text().splitlines():
            path = Path(line.split(":", 2)[2].lstrip("/"))
            groups |= {path, *path.parents}
    for group in groups:
        with suppress(OSError, ValueError):  # "max": no limit
            quota, period = (root / group / "cpu.max").read_text().split()
            yield int(quota) / int(period)
        with suppress(OSError, ValueError):
            old = root / "cpu" / group
            microseconds = int((old / "cpu.cfs_quota_us").read_text())  # -1: no limit
            if microseconds > 0:
                yield microseconds / int((old / "cpu.cfs_period_us").read_text())


def resolve(threads: int | None) -> int:
    """The number asked for, else LAPSUS_THREADS, else every core available."""
    if threads is None:
        text = os.environ.get("LAPSUS_THREADS")
        if not text:
            return available()
        if not text.isdecimal() or not 1 <= int(text[:9]) <= _MOST:
            raise LapsusError(f"LAPSUS_THREADS is {text[:20]!r}; it must be a whole number from 1 to {_MOST}")
        return int(text)
    if not 1 <= threads <= _MOST:
        raise LapsusError(f"threads is {threads}; it must be 1 to {_MOST}")
    return threads


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """So many threads in torch's own operations inside, as many as before afterwards; None changes nothing.

    Beside the kernel, or in a thread of many, those operations are small: waking other threads for them costs more than
    it saves.
    """
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
