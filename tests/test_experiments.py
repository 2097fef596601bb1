"""Experiment files: read, changed on the command line, written, and what is wrong with them."""

import pytest
from tiny_experiment import TINY

from lapsus import LapsusError, read_experiment
from lapsus.files import to_toml
from lapsus.training.experiment import override


def test_experiment_survives_its_own_toml(tiny):
    import tomllib

    assert read_experiment(tomllib.loads(to_toml(tiny.model_dump(exclude_none=True)))) == tiny


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The torch reference runs")  # the two-layer control is no tree
def test_every_shipped_experiment_can_be_built():
    from importlib.resources import files
    from pathlib import Path

    from lapsus.training.rehearsal import rehearse

    found = sorted(Path(str(files("lapsus") / "experiments")).glob("*.toml"))
    assert found
    for path in found:
        rehearse(read_experiment(path))


def test_overrides():
    changed = override(override(TINY, "task.delay=7"), "stage.*.trials=2")
    assert (
        changed["task"]["delay"] == 7
        and [s["trials"] for s in changed["stage"]] == [2, 2]
        and TINY["task"]["delay"] == 1
    )
    assert override(TINY, "behaviour.swap.kind=none")["behaviour"]["swap"]["kind"] == "none"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"nonsense": 1}, "nonsense is not a known key"),
        ({"task": {"kind": "index-cued", "dellay": 3}}, "task.dellay is not a field.*Did you mean delay"),
        ({"task": {"kind": "index-cued", "delay": "long"}}, "task.delay = 'long' is not right"),
        ({"task": {"kind": "nothing"}}, 'task.kind = "nothing" is not known'),
        ({"behaviour": {"kind": "bns", "swap": {"kind": "constant"}}}, "behaviour.swap.p is missing"),
        ({"network": {"kind": "nowhere.module:Net"}}, "cannot be imported"),
        ({"stage": []}, "stage"),
        ({"stage": [{"updates": -1}]}, "stage.0.updates = -1 is not right"),
        ({"stage": [{"updates": 1, "learning_rat": 1}]}, "Did you mean learning_rate"),
        ({"stage": [{"updates": 1, "task": {"speed": 1}}]}, "stage.task.speed is not a field"),
        ({"stage": [{"updates": 1, "objective": {"kind": "task-optimal", "window": "x"}}]}, "objective.window"),
        ({"noise": {"first": 1.5}}, "noise.first"),
    ],
)
def test_mistakes_in_an_experiment_name_the_field(change, message):
    from lapsus.training.rehearsal import rehearse

    with pytest.raises(LapsusError, match=message):
        rehearse(read_experiment(TINY | change))


def test_a_field_of_a_table_that_the_file_leaves_out_changes_the_default():
    bare = {key: value for key, value in TINY.items() if key not in ("network", "behaviour")}
    bare["stage"] = [{"updates": 1}]
    changes = ["network.units=32", "behaviour.radius=2.0", "stage.0.objective.rate_penalty=0.0"]
    found = read_experiment(bare, changes)
    assert found.network == {"kind": "dendritic", "units": 32} and found.behaviour == {"kind": "bns", "radius": 2.0}
    assert found.stage[0].objective == {"kind": "diffusion", "rate_penalty": 0.0}
    assert read_experiment(bare).network == {"kind": "dendritic"}, "the default itself is as it was"
