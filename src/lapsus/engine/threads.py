"""How many threads the kernel may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

from lapsus.errors import LapsusError

__all__ = ["available", "resolve"]

_MOST = 1024


def available() -> int:
    """The cores that this process may run on: its affinity, and the share that a container allows it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        cores = min(cores, max(1, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):
        pass
    return cores


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
