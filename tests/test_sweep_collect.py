"""One table and one page of a sweep: what is in them, from members whose measures are known."""

import json

import numpy as np
import pandas as pd
import pytest
import sweep as costs
from scipy import stats
from sweep_members import QUICK, write_sweep

from lapsus.cli import app
from lapsus.files import make_folder, write_json
from lapsus.report.ensemble import ensemble_page
from lapsus.sweep import Sweep, plan_sweep, read_sweep
from lapsus.sweep.collected import _differences, collect


@pytest.fixture
def made_up(tmp_path) -> Sweep:
    """Two settings of eight seeds; measures that nobody measured, one member far off, one not done."""
    path = write_sweep(tmp_path, seeds=8, vary={"network.units": [6, 8], "task.encoding": ["circular", "linear"][:1]})
    sweep = Sweep.make(tmp_path / "out", plan_sweep(read_sweep(path), tmp_path / "out"))
    rng = np.random.default_rng(0)
    for name, member in sweep.plan.members.items():
        if name == "tiny_units-8_encoding-circular-8":
            continue
        excess = 5.0 if name == "tiny_units-6_encoding-circular-3" else rng.normal(0.05, 0.001)
        evaluation = {"excess": excess, "excess_interval": [excess - 0.002, excess + 0.002], "conditions": 16}
        evaluation |= {"swap_curve": [{"rate": 0.1, "low": 0.05, "high": 0.15, "distance": 1.0}], "bad": None}
        make_folder(sweep.run_folder(name))
        write_json(
            sweep.measures_file(name),
            {"evaluation": evaluation, "mechanism": {"kind": "a" if member.seed % 2 else "b"}},
        )
    return sweep


def test_one_row_a_member(made_up):
    found = collect(made_up)
    table = found.members
    assert len(table) == 16 and table["done"].sum() == 15 and list(table["network.units"].unique()) == [6.0, 8.0]
    assert found.measured == ["evaluation.excess", "evaluation.swap_curve.0.rate", "evaluation.bad"]
    assert np.isnan(table["evaluation.excess"].iloc[-1]) and table["mechanism.kind"].iloc[1] == "b"
    rows = found.statistics.set_index(["setting", "statistic"])
    wide = rows.loc[("tiny_units-6_encoding-circular", "evaluation.excess")]
    assert wide["outliers"] == "tiny_units-6_encoding-circular-3" and wide["units"] == 8
    near = rows.loc[("tiny_units-8_encoding-circular", "evaluation.excess")]
    own = table[table["setting"] == "tiny_units-8_encoding-circular"]["evaluation.excess"]
    assert near["units"] == 7 and abs(near["mean"] - own.mean()) < 1e-9 and near["low"] < 0.05 < near["high"]


def test_settings_are_compared_within_seeds(made_up):
    found = collect(made_up)
    first, other = (f"tiny_units-{units}_encoding-circular" for units in (6, 8))
    row = found.differences.set_index(["setting", "statistic"]).loc[(other, "evaluation.excess")]
    wide = found.members.pivot(index="seed", columns="setting", values="evaluation.excess").dropna()
    reference = stats.ttest_rel(wide[other], wide[first]).confidence_interval()
    assert row["from"] == first and row["seeds"] == len(wide) == 7
    assert np.allclose([row["mean"], row["low"], row["high"]], [(wide[other] - wide[first]).mean(), *reference])
    assert set(found.differences["setting"]) == {other}
    assert not found.differences["statistic"].eq("evaluation.bad").any()  # no seed has both


def test_settings_are_compared_with_the_first_of_their_kind_that_has_the_statistic():
    rows = [("a", 1, np.nan, 1.0), ("a", 2, np.nan, 2.0), ("b", 1, 5.0, 4.0), ("b", 2, 7.0, 4.0), ("c", 1, 6.0, 0.0)]
    rows += [("c", 3, 9.0, 9.0), ("other", 1, 1.0, 1.0), ("d", 4, 1.0, 1.0)]
    members = pd.DataFrame(rows, columns=["setting", "seed", "x", "y"]).assign(done=True, start=False)
    kinds = dict.fromkeys("abcd", "one") | {"other": "another"}
    found = _differences(members, ["x", "y"], kinds).set_index(["setting", "statistic"])
    assert set(found.index) == {("b", "y"), ("c", "x"), ("c", "y")}  # none for "other", alone, and "d", without a seed
    assert found["from"].to_dict() == {("b", "y"): "a", ("c", "x"): "b", ("c", "y"): "a"}
    assert found["mean"].to_dict() == {("b", "y"): 2.5, ("c", "x"): 1.0, ("c", "y"): -1.0}
    assert found["seeds"].to_dict() == {("b", "y"): 2, ("c", "x"): 1, ("c", "y"): 1}
    assert _differences(members.assign(done=False), ["x", "y"], kinds).empty
    assert _differences(members, [], kinds).empty


def test_the_command_writes_tables_and_a_page(made_up, capsys):
    app(["sweep", "collect", str(made_up.path)], standalone_mode=False)
    assert "15 of 16 members" in capsys.readouterr().out
    folder = made_up.path / "collected"
    csv, parquet = pd.read_csv(folder / "members.csv"), pd.read_parquet(folder / "members.parquet")
    assert list(csv) == list(parquet) and np.allclose(
        csv["evaluation.excess"], parquet["evaluation.excess"], equal_nan=True
    )
    page = (folder / "index.html").read_text()
    assert 'href="../members/tiny_units-6_encoding-circular-3/"' in page and "stands apart" in page
    assert page.count("<circle") == 15 * 2  # a dot for every member and statistic; "bad" has no value
    assert "Differences between settings" in page and len(pd.read_csv(folder / "differences.csv")) == 2
    assert (folder / "costs.csv").is_file() and "http" not in page.replace("http-equiv", "")


def test_angles_are_degrees_on_the_page_and_radians_in_the_table():
    key = "evaluation.median_error"
    members = pd.DataFrame({"member": ["a-1", "a-2"], "setting": "a", "done": True, key: np.radians([5.0, 7.0])})
    members["start"] = False
    row = {"setting": "a", "statistic": key, "between": np.radians(2.0), "units": 2, "outliers": ""}
    row |= {"mean": np.radians(6.0), "low": np.radians(4.5), "high": np.radians(7.5)}
    given_up = {"a-3": "no <b>finite"}
    page = ensemble_page("a", "", members, pd.DataFrame([row]), {"a-1": "x", "a-2": "y"}, given_up)
    assert "a-3 was given up: no &lt;b&gt;finite" in page
    assert "Median error (°)" in page and "6 [4.5, 7.5], s.d. between networks 2" in page and "a-2: 7<" in page


def test_names_from_outside_are_escaped(tmp_path, capsys):
    path = write_sweep(tmp_path, name="<script>alert(1)</script>", description="<b>bold</b>", measure=QUICK)
    sweep = Sweep.make(tmp_path / "out", plan_sweep(read_sweep(path), tmp_path / "out"))
    make_folder(sweep.run_folder("tiny-1"))
    write_json(sweep.measures_file("tiny-1"), {"evaluation": {"<i>excess": 1.0}})
    app(["sweep", "collect", str(sweep.path)], standalone_mode=False)
    page = (sweep.path / "collected" / "index.html").read_text()
    assert "<script>" not in page and "<b>bold" not in page and "<i>excess" not in page


def test_what_others_start_from_is_in_the_table_and_not_in_the_pictures(tmp_path):
    """It does another task."""
    path = write_sweep(tmp_path, start={}, seeds=2)
    sweep = Sweep.make(tmp_path / "out", plan_sweep(read_sweep(path), tmp_path / "out"))
    for name in sweep.plan.members:
        make_folder(sweep.run_folder(name))
        write_json(sweep.measures_file(name), {"evaluation": {"excess": 77.0 if "first" in name else 0.05}})
    app(["sweep", "collect", str(sweep.path)], standalone_mode=False)
    folder = sweep.path / "collected"
    page, table = (folder / "index.html").read_text(), pd.read_csv(folder / "members.csv")
    assert table.set_index("member")["start"].to_dict() == {
        "first-1": True,
        "tiny-1": False,
        "first-2": True,
        "tiny-2": False,
    }
    assert page.count("<circle") == 2 and "77" not in page and "study: 2 networks" in page
    assert "2 of 2 networks are done, in 1 settings. 2 of 2 that they start from are done." in page


def test_an_empty_sweep_collects_to_empty_tables(tmp_path):
    path = write_sweep(tmp_path)
    sweep = Sweep.make(tmp_path / "out", plan_sweep(read_sweep(path), tmp_path / "out"))
    app(["sweep", "collect", str(sweep.path)], standalone_mode=False)
    assert json.loads(json.dumps(collect(sweep).members["done"].tolist())) == [False]


def test_what_a_sweep_costs_can_be_measured(tmp_path):
    """With members that nobody trained (benchmarks/sweep.py), whose folders must be such as they are."""
    found = costs.measure(10, tmp_path / "few")
    assert found["table kB"] > 1 and found["page kB"] > 10 and all(value > 0 for value in found.values())
