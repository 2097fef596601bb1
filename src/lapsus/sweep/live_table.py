"""How a sweep stands, for people: a table that renews itself on a terminal, single lines elsewhere."""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from lapsus.errors import LapsusError
from lapsus.files import read_end
from lapsus.sweep.folder import Sweep
from lapsus.sweep.pool import Pool

__all__ = ["LiveTable", "progress_row", "running_table"]

# No number that a training writes is beyond this.
_MOST = 1e15
_HEAD = f"{'member':44} {'updates':>15} {'trials/s':>9} {'excess':>7} {'left':>9}"


def last_metrics(run: Path) -> dict:
    """The newest whole line of a run's metrics, with the newest excess; empty where there is none."""
    try:
        lines = read_end(run / "metrics.jsonl", 4096).splitlines()
    except LapsusError:
        return {}
    found: dict = {}
    for line in lines:
        with suppress(ValueError, RecursionError):
            entry = json.loads(line)
            for key, value in entry.items() if isinstance(entry, dict) else ():
                if isinstance(value, (int, float)) and abs(value) < _MOST:
                    found[key] = value
    return found


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{seconds:02d}s"


def progress_row(sweep: Sweep, name: str) -> tuple[str, int, float | None]:
    """A line about a member that is worked on, its update, and the seconds that it has left."""
    total = sweep.plan.updates(name)
    found = last_metrics(sweep.run_folder(name))
    update, seconds = found.get("update", 0), found.get("seconds", 0.0)
    left = seconds / update * (total - update) if update else None
    excess, rate = found.get("excess"), found.get("trials_per_second")
    short = name if len(name) <= 44 else name[:20] + "…" + name[-23:]
    shown = ("-" if rate is None else f"{rate:,.0f}", "-" if excess is None else f"{excess:.3f}")
    end = _duration(left) if update < total else "measuring"
    row = f"{short:44} {update:7,}/{total:7,} {shown[0]:>9} {shown[1]:>7} {end:>9}"
    return row, update, left


def running_table(sweep: Sweep, running: list[str], most: int = 20) -> list[str]:
    """Lines about the members that are worked on."""
    lines = [_HEAD] if running else []
    lines += [progress_row(sweep, name)[0] for name in running[:most]]
    if len(running) > most:
        lines.append(f"… and {len(running) - most} more")
    return lines


class LiveTable:
    """Called by a pool about once a second, and with a line whenever a member ended."""

    def __init__(self) -> None:
        self.live, self.drawn = sys.stderr.isatty(), 0

    def __call__(self, pool: Pool, line: str | None) -> None:
        if line is not None:
            self._wipe()
            print(line, file=sys.stderr, flush=True)
        if self.live:
            self._draw(pool)

    def _wipe(self) -> None:
        if self.drawn:
            print(f"\x1b[{self.drawn}F\x1b[J", end="", file=sys.stderr)
        self.drawn = 0

    def _draw(self, pool: Pool) -> None:
        lines = running_table(pool.sweep, list(pool.running), 12)
        counts = f"{len(pool.done)} done, {len(pool.running)} running"
        counts += f", {len(pool.failed)} given up" if pool.failed else ""
        counts += f", {len(pool.elsewhere)} elsewhere" if pool.elsewhere else ""
        left = self._left(pool)
        lines.append(f"{counts} of {len(pool.names)}" + (f"; about {_duration(left)} left" if left else ""))
        if pool.stopping:
            lines.append("Stopping: checkpoints are being written …")
        self._wipe()
        width = _width()
        print("\n".join(text[:width] for text in lines), file=sys.stderr, flush=True)
        self.drawn = len(lines)

    def _left(self, pool: Pool) -> float | None:
        """By the pace of what is running now, all its processes busy to the end."""
        plan, seconds, updates = pool.sweep.plan, 0.0, 0
        for name in pool.running:
            found = last_metrics(pool.sweep.run_folder(name))
            seconds, updates = seconds + found.get("seconds", 0.0), updates + found.get("update", 0)
        over = pool.done | pool.failed | pool.blocked
        todo = sum(plan.updates(name) for name in pool.names if name not in over) - updates
        return seconds / updates * todo / pool.count if updates else None


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns - 1
    except (OSError, ValueError):
        return 100
