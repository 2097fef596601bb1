"""Fixtures that every test shares."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

# Tests are many small operations: a second thread would only wait for the first, the more so on a busy machine.
torch.set_num_threads(1)

ROOT = Path(__file__).resolve().parents[1]


def _global_state() -> dict:
    return {
        "torch's random state": torch.get_rng_state().numpy().tobytes(),
        "NumPy's random state": np.random.get_state()[1].tobytes(),
        "torch's default dtype": torch.get_default_dtype(),
        "torch's number of threads": torch.get_num_threads(),
        "the working directory": os.getcwd(),
        "what Ctrl-C does": signal.getsignal(signal.SIGINT),
    }


@pytest.fixture(autouse=True)
def untouched_global_state():
    """No function of ours may draw from, or seed, the global generators, or leave anything else of the process
    changed."""
    before = _global_state()
    yield
    after = _global_state()
    assert not [name for name in before if before[name] != after[name]], "was changed"


@pytest.fixture
def human_data() -> Path:
    """The folder of human data sets, which the project does not ship."""
    folder = Path(os.environ.get("LAPSUS_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no human data at {folder} (set LAPSUS_DATA)")
    return folder
