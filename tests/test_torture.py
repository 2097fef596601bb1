"""The campaign (docs/reliability.md), short: every kind of fault, every reader, a few times."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_short_campaign_loses_nothing():
    """In a process of its own, which forks before any thread is there."""
    folder = Path(__file__).parent
    script = (
        "from torture import campaign, hostile\n"
        "hostile.BATCH = 6\n"
        "least = campaign.Least(faults=18, kills=2, tables=20, inputs=1)\n"
        "found = campaign.campaign(0, 1, ('train', 'simulate --force', 'reproduce'), least)\n"
        "print(found.table())\n"
        "assert not found.losses and sum(found.tried.values()) > 100\n"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1", "LAPSUS_THREADS": "1"}
    paths = [str(folder), *filter(None, [environment.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
