"""Fixtures that every test shares."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import warm as warm_process
from tiny_experiment import TINY

from lapsus import read_experiment
from lapsus.training import Experiment

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


@pytest.fixture(autouse=True, scope="session")
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the user accepted to run is recorded in a folder of the tests, also by processes that they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


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


@pytest.fixture
def tiny() -> Experiment:
    return read_experiment(TINY)


RUNNING: list[warm_process.Warm] = []


@pytest.fixture(scope="session")
def warm() -> Iterator[warm_process.Warm]:
    """Runs Python in processes of their own, which start at once."""
    with warm_process.started() as process:
        RUNNING.append(process)
        yield process
        RUNNING.remove(process)


# --- What tests cost: `pytest --processor-time`, the same on a busy machine and on a quiet one ---

# Seconds from which on a test must carry the marker (pyproject.toml says the same in words).
LIMITS = {"slow": 1.0, "long": 20.0}
SECONDS = pytest.StashKey[dict[str, tuple[float, str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--processor-time", action="store_true", help="print what tests cost, and which carry a marker that is wrong"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SECONDS] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is long is slow: `-m "not slow"` stands in the place of the settings' `-m "not long"`."""
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker("slow")


def _processor_seconds() -> float:
    """Of this process, of the children that it has waited for, and of the one that is kept warm."""
    return sum(os.times()[:4]) + sum(process.processor_seconds() for process in RUNNING)


def _marker(item: pytest.Item) -> str:
    return next((name for name in ("long", "slow") if item.get_closest_marker(name)), "fast")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """With what a shared fixture takes, which counts for the first test that asks for it."""
    begin = _processor_seconds()
    result = yield
    item.config.stash[SECONDS][item.nodeid] = _processor_seconds() - begin, _marker(item)
    return result


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter", config: pytest.Config) -> None:
    if not config.getoption("--processor-time"):
        return
    found = config.stash[SECONDS]
    terminalreporter.section("processor time, seconds")
    for name, (seconds, marker) in sorted(found.items(), key=lambda one: -one[1][0])[:40]:
        terminalreporter.line(f"{seconds:7.2f} {marker} {name}")
    for marker in ("fast", "slow", "long"):
        own = [seconds for seconds, carried in found.values() if carried == marker]
        terminalreporter.line(f"{sum(own):7.1f} in {len(own)} {marker} tests")
    for name, (seconds, marker) in found.items():
        due = "long" if seconds > LIMITS["long"] else "slow" if seconds > LIMITS["slow"] else "fast"
        if ("fast", "slow", "long").index(due) > ("fast", "slow", "long").index(marker):
            terminalreporter.line(f"{name} takes {seconds:.1f} s and is not marked {due}")
