"""The figure of both collections (studies/memory), drawn from networks that are made for it."""

from dataclasses import replace

import memory_figure as memory
import pytest

from lapsus import read_experiment
from lapsus.evaluation.sample_sizes import QUICK_FIGURES
from lapsus.paper.roles import Networks
from lapsus.training.model import Model

SIZES = replace(QUICK_FIGURES, degrees=(memory.NEAR, memory.FAR), rotations=1)


def _untrained(kind: str) -> Model:
    table = {
        "name": "tiny",
        "task": {"kind": kind, "denoise": 6},
        "network": {"kind": "dendritic", "units": 6, "branching": [3]},
        "stage": [{"updates": 1}],
    }
    return Model.of(read_experiment(table)).requires_grad_(False)


@pytest.fixture
def sets(monkeypatch):
    """One index-cued network in both sets, and a feature-cued one in one of them."""
    index, feature = _untrained("index-cued"), _untrained("feature-cued")
    made = {
        "paper": Networks({"index-none": lambda: index}, sizes=SIZES),
        "persistent": Networks({"index-none": lambda: index, "feature-none": lambda: feature}, sizes=SIZES),
    }
    for cached in (memory.error_by_delay, memory.norms, memory.planes):
        cached.cache_clear()
    monkeypatch.setattr(memory, "_networks", lambda collection: made[collection])
    yield made
    for cached in (memory.error_by_delay, memory.norms, memory.planes):
        cached.cache_clear()


@pytest.mark.slow
def test_the_figure_has_a_line_for_each_network_of_each_set(sets):
    from matplotlib import pyplot as plt

    drawn = memory.figure()
    lines = [[line.get_linestyle() for line in drawn.axes[place].lines] for place in (0, 4)]
    assert lines == [["--", "-"], ["-"]]  # the paper's set is dashed
    plt.close(drawn)
    tables = memory.tables()
    counts = tables["delays"].groupby(["collection", "network"]).size().to_dict()
    assert counts == {("paper", "index-none"): 7, ("persistent", "index-none"): 7, ("persistent", "feature-none"): 7}
    assert list(tables["growth"]["network"]) == ["index-none", "feature-none"]
    assert set(tables["planes"].query("network == 'feature-none'")["distance"]) == {45, 135}


def test_where_nothing_ships_the_panels_say_so(monkeypatch):
    from matplotlib import pyplot as plt

    monkeypatch.setattr(memory, "_networks", lambda collection: Networks({}))
    drawn = memory.figure()
    assert any("no network ships" in text.get_text().replace("\n", " ") for text in drawn.axes[0].texts)
    plt.close(drawn)
