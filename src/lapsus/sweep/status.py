"""How a sweep stands, from its folder alone: as numbers and in words."""

from lapsus.sweep.folder import Sweep
from lapsus.sweep.live_table import running_table

__all__ = ["describe", "summary"]


def summary(sweep: Sweep) -> dict:
    """What `lapsus sweep status --json` prints."""
    states = sweep.states()
    counts = {"members": len(sweep.plan.members)} | states.counts()
    failures = {name: sweep.failures(name)[-1] for name in states.failed}
    return {"name": sweep.plan.name, "hash": sweep.hash} | counts | {"failures": failures}


def describe(sweep: Sweep) -> str:
    """Counts, a table of what runs, and the last lines of what was given up."""
    states = sweep.states()
    words = {
        "done": "done",
        "running": "running",
        "ready": "ready",
        "waiting": "waiting for their start",
        "failed": "given up",
        "blocked": "without their start, which was given up",
    }
    counts = [f"{count} {words[name]}" for name, count in states.counts().items() if count]
    lines = [f"{sweep.plan.name}: {len(sweep.plan.members)} members: {', '.join(counts)}."]
    lines += running_table(sweep, states.running)
    for name in states.failed:
        last = sweep.failures(name)[-1]
        lines += [
            "",
            f"{name} was given up after {sweep.plan.tries} tries, at update {last['update']}: {last['reason']}",
        ]
        lines += [f"    {line}" for line in last["lines"][-6:]]
    if states.failed:
        lines += ["", "With --again, the command that began the sweep tries once more what was given up."]
    return "\n".join(lines)
