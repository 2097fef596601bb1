"""Fixtures that every test shares."""

import os
from pathlib import Path

import pytest
import torch

# Tests are many small operations: a second thread would only wait for the first, the more so on a busy machine.
torch.set_num_threads(1)

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def untouched_global_state():
    """No function of ours may draw from, or seed, the global generators, or change torch's defaults."""
    import numpy as np

    before = torch.get_rng_state(), np.random.get_state()[1].copy(), torch.get_default_dtype()
    yield
    assert torch.equal(before[0], torch.get_rng_state()), "torch's global random state was used"
    assert (before[1] == np.random.get_state()[1]).all(), "NumPy's global random state was used"
    assert before[2] == torch.get_default_dtype()


@pytest.fixture
def human_data() -> Path:
    """The folder of human data sets, which the project does not ship."""
    folder = Path(os.environ.get("LAPSUS_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no human data at {folder} (set LAPSUS_DATA)")
    return folder
