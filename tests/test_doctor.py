"""What `lapsus doctor` says of a table, against tables of which everything is known."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import lapsus
from lapsus.cli import app
from lapsus.trials.observer import observer_path


def written(folder, rates, trials=500, seed=0):
    """A table with a set size of two and of three items that swaps at known rates, under names of its own."""
    rng = np.random.default_rng(seed)
    parts = []
    for size, rate in rates.items():
        items = rng.uniform(-180, 180, (trials, size))
        said = np.where(rng.random(trials) < rate, 1, 0) if size > 1 else np.zeros(trials, int)
        response = items[np.arange(trials), said] + rng.normal(0, 8, trials)
        table = {"participant": np.where(rng.random(trials) < 0.5, "a", "b"), "resp_ori": (response + 180) % 360 - 180}
        table |= {"target": items[:, 0]} | {f"nt{i}": items[:, i] for i in range(1, size)}
        parts.append(pd.DataFrame(table | {"cue": rng.choice(["late", "early"], trials), "note": "x"}))
    path = folder / "own.csv"
    pd.concat(parts).to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_it_counts_the_swaps_that_were_made_and_names_the_set_size_with_most(tmp_path):
    path = written(tmp_path, {1: 0.0, 2: 0.05, 3: 0.3})
    found = lapsus.examine(lapsus.read_trials(path, columns={"response": "resp_ori"}))
    sizes = {size.items: size for size in found.set_sizes}
    assert list(sizes) == [1, 2, 3] and found.recommended == 3 and found.subjects == 2
    assert sizes[1].swaps is None and sizes[1].report_distance is None
    assert sizes[2].swaps == pytest.approx(25, abs=15) and sizes[3].swaps == pytest.approx(150, abs=30)
    low, middle, high = sizes[3].report_distance
    assert 0 <= low < 5 and 80 < middle < 100 and 175 < high <= 180
    assert found.columns["response"] == "resp_ori" and found.columns["non_target_1"] == "nt1"
    assert found.others == ["cue", "note"] and found.probe is None and found.unit == "degrees"
    assert '`by="cue"`' in found.analyses["conditions"] and "note" not in found.analyses["conditions"]


@pytest.mark.slow
def test_the_command_prints_it_and_says_where_data_are_few(tmp_path):
    path = written(tmp_path, {2: 0.02}, trials=300)
    options = ["doctor", str(path), "--columns", "response=resp_ori"]
    said = CliRunner().invoke(app, options)
    assert said.exit_code == 0, said.output
    for part in ("300 trials of 2 subjects", "response (from resp_ori)", "no probe feature", "are few"):
        assert part in said.output
    facts = json.loads(CliRunner().invoke(app, [*options, "--json"]).output)
    assert facts["set_sizes"][0]["items"] == 2 and facts["recommended"] == 2


def test_a_table_without_a_second_item_has_nothing_to_discover(tmp_path):
    found = lapsus.examine(lapsus.read_trials(written(tmp_path, {1: 0.0}), columns={"response": "resp_ori"}))
    assert found.recommended is None and found.analyses["discover"].startswith("no")
    assert "<pre>" in found._repr_html_() and "1 trials" not in found.text()


def test_columns_that_were_renamed_are_named_as_in_the_table():
    """non_target_1 (from other1_ori) to ori."""
    rng = np.random.default_rng(0)
    names = {"response": "said", "target": "t", "non_target_1": "other1_ori", "non_target_2": "other2_ori"}
    table = pd.DataFrame(rng.uniform(0, 360, (40, 4)), columns=list(names.values()))
    found = lapsus.examine(lapsus.Trials.from_table(table, "degrees", columns=names))
    assert "non_target_1 to non_target_2 (from other1_ori to other2_ori)." in found.text()
    plain = table.rename(columns={theirs: ours for ours, theirs in names.items()})
    assert "response, target, non_target_1 to non_target_2." in lapsus.examine(plain).text()


def test_orientations_are_in_degrees_of_orientation(tmp_path):
    table = lapsus.read_trials(observer_path()).table
    angles = [name for name in table if name not in ("subject", "set_size")]
    table[angles] = np.rad2deg(table[angles]) / 2
    table.to_csv(tmp_path / "t.csv", index=False)
    found = lapsus.examine(lapsus.read_trials(tmp_path / "t.csv", "degrees_180")[:600])
    assert found.unit == "degrees of orientation" and found.set_sizes[0].report_distance[2] <= 90
    said = CliRunner().invoke(app, ["doctor", str(tmp_path / "absent.csv")])
    assert said.exit_code == 2 and "there is no such file" in said.output


@pytest.mark.slow
def test_discover_recommends_the_set_size_with_most_swaps(tmp_path):
    from lapsus.pipeline.stages import _better_size, _of_size

    table = lapsus.read_trials(written(tmp_path, {1: 0.0, 2: 0.05, 3: 0.3}), columns={"response": "resp_ori"})
    used, notes = _of_size(table, "own.csv", None)
    assert set(used.set_size) == {2} and "1,000 left out" in notes[0]
    said = _better_size(table, 2)
    assert "`set_size=3`" in said and "shows two items at any set size" in said
    assert "3 items of which its network shows two" in lapsus.examine(table).analyses["discover"]
    assert "of which" not in lapsus.examine(used).analyses["discover"]
    assert _better_size(table, 3) is None and _better_size(used, 2) is None


def test_discover_says_first_that_networks_hold_two_items(tmp_path, monkeypatch):
    monkeypatch.setattr("lapsus.pipeline.stages._stages", lambda folder, *_: folder)
    for size, expected in ((4, 1), (2, 0)):
        said: list[str] = []
        read = {"columns": {"response": "resp_ori"}, "output": tmp_path / str(size), "say": said.append}
        lapsus.discover(written(tmp_path, {size: 0.2}), **read)
        assert sum("Networks hold two items, not 4" in line for line in said) == expected


def test_it_names_the_unit_of_the_table_and_what_is_wrong_with_it(tmp_path):
    """Degrees were named where the table has radians, and a code for missing responses was read in silence."""
    table = lapsus.read_trials(observer_path()).table[:600]
    table.loc[:49, "response"] = -1.0
    table.to_csv(tmp_path / "t.csv", index=False)
    said = CliRunner().invoke(app, ["doctor", str(tmp_path / "t.csv")])
    assert "is in radians; the probe feature (probe) in radians" in said.output
    assert "50 of 600 responses are exactly -1" in said.output and "--where response!=-1" in said.output
    clean = CliRunner().invoke(app, ["doctor", str(tmp_path / "t.csv"), "--where", "response!=-1", "--json"])
    facts = json.loads(clean.output)
    assert facts["trials"] == 550 and facts["dropped"] == {"where": 50}
    assert facts["notes"] == ["50 trials were left out: 50 because `where` excludes them."]


@pytest.mark.parametrize("command", ["doctor", "fit", "discover"])
def test_every_command_that_reads_a_table_has_the_same_options(command):
    """discover lacked those that its own messages named."""
    said = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    for option in ("unit", "probe-unit", "columns", "where", "drop", "probe-positions", "non-targets"):
        assert f"--{option} " in said
    assert "--items-beyond-set-size" in said


def test_a_sweeps_subjects_take_the_same_options():
    import inspect

    from lapsus.sweep.sweep_file import Subjects

    options = Subjects(trials="t.csv", columns={"response": "r"}, where=["block!=1"], drop=["missing"]).table_options()
    named = set(inspect.signature(lapsus.read_trials).parameters) - {"path", "feature_name", "probe_name"}
    assert set(options) == named and options["where"] == ["block!=1"]
