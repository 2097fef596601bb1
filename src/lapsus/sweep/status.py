"""How a sweep stands, from its folder alone: as numbers, in words, and as a bar while it runs."""

import json
import sys
from contextlib import suppress
from pathlib import Path

from tqdm import tqdm

from lapsus.errors import LapsusError
from lapsus.files import read_end, short
from lapsus.sweep.folder import Sweep
from lapsus.sweep.pool import Pool

# Members that a table shows.
_ROWS = 20


def summary(sweep: Sweep) -> dict:
    """What `lapsus sweep status --json` prints."""
    states = sweep.states()
    counts = {"members": len(sweep.plan.members)} | states.counts()
    failures = {name: sweep.failures(name)[-1] for name in states.failed}
    return {"name": sweep.plan.name, "hash": sweep.hash} | counts | {"failures": failures}


# State of members → what is said of those in it.
_STATES = {
    "done": "done",
    "failed": "given up",
    "running": "running",
    "ready": "ready",
    "waiting": "waiting for their start",
    "blocked": "without their start, which was given up",
}


def describe(sweep: Sweep) -> str:
    """Counts, a table of what runs, and the last lines of what was given up."""
    states = sweep.states()
    counts = [f"{count} {_STATES[name]}" for name, count in states.counts().items() if count]
    lines = [f"{sweep.plan.name}: {len(sweep.plan.members)} members: {', '.join(counts)}."]
    lines += _running_table(sweep, states.running)
    for name in states.failed:
        last = sweep.failures(name)[-1]
        given_up = f"{name} was given up after {sweep.plan.tries} tries, at update {last['update']}: {last['reason']}"
        lines += ["", given_up, *(f"    {line}" for line in last["lines"][-6:])]
    if states.failed:
        lines += ["", "With --again, the command that began the sweep tries once more what was given up."]
    return "\n".join(lines)


def _last_metrics(run: Path) -> dict:
    """The newest numbers of a run's metrics, by name; empty where there are none."""
    metrics: dict = {}
    with suppress(LapsusError):
        for line in read_end(run / "metrics.jsonl", 4096).splitlines():
            with suppress(ValueError, TypeError):  # a line that was cut short
                metrics |= json.loads(line)
    return metrics


_ROW = "{name:44} {update:7,}/{total:7,} {rate:>9} {excess:>7} {left:>9}"


def _running_table(sweep: Sweep, running: list[str]) -> list[str]:
    """Lines about the members that are worked on."""
    lines = [f"{'member':44} {'updates':>15} {'trials/s':>9} {'excess':>7} {'left':>9}"] if running else []
    for name in running[:_ROWS]:
        total, metrics = sweep.plan.updates(name), _last_metrics(sweep.run_folder(name))
        update, left = metrics.get("update", 0), "-"
        if update >= total:
            left = "measuring"
        elif update:
            left = tqdm.format_interval(metrics["seconds"] / update * (total - update))
        rate = f"{metrics['trials_per_second']:,.0f}" if "trials_per_second" in metrics else "-"
        excess = f"{metrics['excess']:.3f}" if "excess" in metrics else "-"
        lines.append(_ROW.format(name=short(name, 44), update=update, total=total, rate=rate, excess=excess, left=left))
    if len(running) > _ROWS:
        lines.append(f"… and {len(running) - _ROWS} more")
    return lines


class ProgressBar:
    """Called by a pool about once a second, and with a line whenever a member ended: updates of all members together,
    and how many members are where. Without a terminal, the lines alone."""

    def __init__(self) -> None:
        self.bar = tqdm(unit="update", disable=not sys.stderr.isatty(), dynamic_ncols=True)

    def __call__(self, pool: Pool, line: str | None) -> None:
        if line is not None:
            tqdm.write(line, file=sys.stderr)
        if self.bar.disable:
            return
        plan, over = pool.sweep.plan, pool.failed | pool.blocked
        made = sum(plan.updates(name) for name in pool.done)
        made += sum(_last_metrics(pool.sweep.run_folder(name)).get("update", 0) for name in pool.running)
        if self.bar.total is None:
            self.bar.initial = made  # what was there before says nothing about the pace
        self.bar.total = sum(plan.updates(name) for name in pool.names if name not in over)
        self.bar.n = made
        self.bar.set_postfix(done=len(pool.done), running=len(pool.running), given_up=len(pool.failed))
        if pool.stopping:
            self.bar.set_description("saving checkpoints")

    def close(self) -> None:
        """Leave the line of the bar."""
        self.bar.close()
