"""What the folder of a sweep costs: making its manifest, asking how it stands, collecting it, with members that nobody
trained.

    python benchmarks/sweep.py [--most 10000]

Prints a table of seconds and bytes at 10, 100, 1,000 and 10,000 members, and the exponent of a power law fitted to each
cost from 100 members on: 1 is linear.
"""

import argparse
import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from lapsus.report.ensemble import ensemble_page
from lapsus.sweep import Sweep, plan_sweep, read_sweep
from lapsus.sweep.collected import collect
from lapsus.sweep.status import summary
from lapsus.zoo.checkpoints import Checkpoint

MEMBERS_OF_A_SETTING = 10


def fake(sweep: Sweep) -> None:
    """Folders as members have them that are done, with as many numbers as an evaluation has."""
    rng = np.random.default_rng(0)
    for name in sweep.plan.members:
        folder = sweep.run_folder(name)
        folder.mkdir(parents=True)
        curve = [dict.fromkeys(("distance", "rate", "low", "high", "target"), rng.random()) for _ in range(9)]
        numbers = {f"measure_{k}": rng.random() for k in range(12)}
        evaluation = {"excess": rng.normal(0.05, 0.01), "excess_interval": [0.04, 0.06], "swap_curve": curve} | numbers
        sweep.measures_file(name).write_text(json.dumps({"evaluation": evaluation}))
        facts = Checkpoint(
            update=5000,
            adam_updates=5000,
            trials_seen=2_560_000,
            seconds=600.0,
            sha256="0" * 64,
            core_seconds=590.0,
            rate_price=0.001,
            config="0" * 16,
            parameters=[],
        )
        (folder / "checkpoint-00005000.json").write_text(json.dumps(asdict(facts)))


def timed(function, *arguments):
    began = time.process_time()
    found = function(*arguments)
    return time.process_time() - began, found


def measure(members: int, folder: Path) -> dict[str, float]:
    values = [round(1e-3 * (k + 1), 6) for k in range(max(1, members // MEMBERS_OF_A_SETTING))]
    table = {"name": "cost", "experiment": "index-preamble", "seeds": min(members, MEMBERS_OF_A_SETTING)}
    described = read_sweep(table | {"vary": {"stage.0.learning_rate": values}})
    plan_seconds, plan = timed(plan_sweep, described, folder)
    make_seconds, sweep = timed(Sweep.make, folder, plan)
    fake(sweep)
    open_seconds, sweep = timed(Sweep, folder)
    status_seconds, found = timed(summary, sweep)
    assert found["members"] == found["done"] == members, found
    collect_seconds, collected = timed(collect, sweep)
    write_seconds, _ = timed(collected.write, folder / "collected")
    links = dict.fromkeys(plan.members, "")
    page_seconds, page = timed(ensemble_page, "cost", "", collected.members, collected.statistics, links)
    return {
        "manifest s": plan_seconds + make_seconds,
        "manifest kB": (folder / "manifest.json").stat().st_size / 1e3,
        "status s": open_seconds + status_seconds,
        "collect s": collect_seconds + write_seconds,
        "page s": page_seconds,
        "page kB": len(page) / 1e3,
        "table kB": (folder / "collected" / "members.csv").stat().st_size / 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=10_000)
    counts = [10**k for k in range(1, 7) if 10**k <= parser.parse_args().most]
    with tempfile.TemporaryDirectory() as place:
        measure(10, Path(place) / "warm")  # imports
        rows = [measure(count, Path(place) / str(count)) for count in counts]
    names = list(rows[0])
    lines = [["members", *names], ["---:"] * (1 + len(names))]
    lines += [
        [f"{count:,}", *(f"{row[name]:,.0f}" if row[name] >= 100 else f"{row[name]:.2g}" for name in names)]
        for count, row in zip(counts, rows)
    ]
    kept = [k for k, count in enumerate(counts) if count >= 100]
    if len(kept) > 1:
        slopes = [np.polyfit(*(np.log10([[counts[k], rows[k][name]] for k in kept]).T), 1)[0] for name in names]
        lines.append(["exponent", *(f"{slope:.2f}" for slope in slopes)])
    print("\n".join(f"| {' | '.join(line)} |" for line in lines))


if __name__ == "__main__":
    main()
