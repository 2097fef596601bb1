"""Trial tables: units, names, layouts, and every kind of bad input."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from lapsus.circular import difference, wrap
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.trials import Trials, read_trials


def table(count=30, items=3, seed=0, unit=1.0):
    """A clean table in the documented columns; unit is radians per unit of the table."""
    rng = np.random.default_rng(seed)
    columns = {"subject": np.repeat(["a", "b"], count // 2), "set_size": items}
    columns["response"] = rng.uniform(0, 2 * np.pi, count) / unit
    for i in range(items):
        columns["target" if i == 0 else f"non_target_{i}"] = rng.uniform(0, 2 * np.pi, count) / unit
    for i in range(items):
        columns["target_probe" if i == 0 else f"non_target_probe_{i}"] = rng.uniform(0, 2 * np.pi, count) / unit
    return pd.DataFrame(columns | {"block": np.arange(count)})


def problems(frame, unit="radians", **options):
    with pytest.raises(LapsusError) as caught:
        Trials.from_table(frame, unit, **options)
    return str(caught.value)


@pytest.mark.parametrize("unit, factor", [("radians", 1.0), ("degrees", np.pi / 180), ("degrees_180", np.pi / 90)])
def test_units_become_radians(unit, factor):
    frame = table(unit=factor)
    trials = Trials.from_table(frame, unit)
    np.testing.assert_allclose(difference(trials.response, frame["response"].to_numpy() * factor), 0, atol=1e-12)
    np.testing.assert_allclose(
        difference(trials.probe[:, 2], frame["non_target_probe_2"].to_numpy() * factor), 0, atol=1e-12
    )
    assert trials.report.min() >= -np.pi and trials.report.max() < np.pi
    assert list(trials.conditions) == ["block"] and len(np.unique(trials.subject)) == 2
    if unit != "degrees_180":
        assert Trials.from_table(frame).unit == unit


def test_degrees_and_half_degrees_are_not_guessed():
    assert '`unit="degrees_180"`' in problems(table(unit=np.pi / 90), unit=None)


IN_UNIT = {"radians": 1.0, "degrees": np.pi / 180, "degrees_180": np.pi / 90}


@pytest.mark.parametrize(
    "said, true", [(a, b) for a in IN_UNIT for b in IN_UNIT if a != b and (a, b) != ("degrees", "degrees_180")]
)
def test_a_wrong_unit_is_one_sentence_that_says_what_to_give(said, true):
    text = problems(table(unit=IN_UNIT[true]), said)
    assert text.count("\n") == 0 and text.endswith(".") and f'`unit="{true}"`' in text
    assert ("degrees_180" in text) == ("degrees_180" in (said, true))  # no hint at orientations where there are none


def test_probes_in_another_unit_are_one_sentence():
    frame = table(unit=np.pi / 180)
    places = [name for name in frame if "probe" in name]
    frame[places] *= np.pi / 180
    text = problems(frame, "degrees")
    assert text.count("\n") == 0 and '`probe_unit="radians"`' in text
    Trials.from_table(frame, "degrees", "radians")
    # In half degrees opposite places fall together, which is no second problem.
    frame[places] = [[0.0, 180.0, 270.0], [270.0, 315.0, 90.0]] * 15
    items = [name for name in frame if "target" in name or name == "response"]
    halves = frame.assign(**{name: frame[name] / 2 for name in items if name not in places})
    text = problems(halves, "degrees_180")
    assert text.count("\n") == 0 and text.endswith('give `probe_unit="degrees"`.')
    frame[places] = [[1, 2, 3], [4, 5, 8]] * 15
    assert (
        "numbered positions" in problems(frame, "degrees")
        and problems(frame, "radians", probe_unit="degrees").count("numbered") == 1
    )


@pytest.mark.parametrize(
    "unit, low, high, hint",
    [
        ("degrees", 0, 180, True),
        ("degrees", -90, 90, True),
        ("radians", 0, np.pi, True),
        ("degrees", 0, 360, False),
        ("degrees", -180, 180, False),
        ("degrees", 0, 90, False),
        ("degrees_180", 0, 180, False),
        ("radians", -np.pi, np.pi, False),
    ],
)
def test_half_a_circle_that_is_full_gets_a_hint(unit, low, high, hint):
    frame, rng = table(count=60), np.random.default_rng(1)
    frame[[n for n in frame if "target" in n or n == "response"]] = rng.uniform(low, high, (60, 7))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Trials.from_table(frame, unit)
    assert [("degrees_180" in str(w.message), w.category) for w in caught] == [(True, LapsusWarning)] * hint


def test_a_cell_that_is_no_number_is_one_problem():
    frame = table().astype(object)
    frame.loc[8, "response"], frame.loc[9, "target"], frame.loc[10, "set_size"] = "left", "up", "many"
    frame.loc[11, "non_target_1"], frame.loc[12, "target_probe"] = "x", "y"
    text = problems(frame)
    assert text.count("\n") == 5 and text.count("is not a number") == 5 and "is missing" not in text


@pytest.mark.parametrize("name", ["response", "target", "non_target_1", "set_size"])
@pytest.mark.parametrize("kind", [bool, "boolean", object])
def test_true_and_false_are_no_angles(name, kind):
    """They were 1° and 0°."""
    frame = table()
    frame[name] = pd.Series(np.arange(len(frame)) % 2 == 0).astype(kind)
    text = problems(frame)
    assert f"column {name}: 'True' is not a number" in text and f"column {name}: 'False' is not a number" in text


@pytest.mark.parametrize("form", ["a.csv", "a.tsv", "a.txt", "semicolons.csv", "tabs.csv", "sub-7_task-a_beh.tsv"])
@pytest.mark.parametrize("name", ["subject", "id", "Participant ID", "vp"])
def test_subjects_whose_names_are_equal_numbers_stay_apart(tmp_path, form, name):
    """01, 1 and 1.0 are three names; pandas would read them as one number."""
    frame = table().rename(columns={"subject": name})
    frame[name] = ["01", "1", "1.0"] * 10
    separator = {"semicolons.csv": ";", "a.csv": ","}.get(form, "\t")
    frame.to_csv(tmp_path / form, sep=separator, decimal="," if separator == ";" else ".", index=False)
    columns = {"subject": "vp"} if name == "vp" else None
    trials = read_trials(tmp_path / form, "radians", columns=columns)
    assert trials.subject[:3].tolist() == ["01", "1", "1.0"]
    for who in ("01", "1", "1.0"):
        assert set(read_trials(tmp_path / form, "radians", columns=columns, where={name: who}).subject) == {who}


def test_a_subject_of_spaces_is_missing_and_spaces_around_one_do_not_count(tmp_path):
    (tmp_path / "a.csv").write_text("subject, response, target\n 1, 1, 2\n1 , 2, 3\n1,3,4\n")
    assert read_trials(tmp_path / "a.csv").subject.tolist() == ["1", "1", "1"]
    (tmp_path / "a.csv").write_text("subject,response,target\n1,1,2\n ,2,3\n")
    with pytest.raises(LapsusError, match="the subject is missing"):
        read_trials(tmp_path / "a.csv")


def test_the_same_problem_in_many_rows_is_one_line():
    frame = table()
    frame.loc[[2, 3, 4, 5, 20], "response"] = np.nan
    text = problems(frame)
    assert "rows 3–6, 21, column response: the response is missing" in text and text.count("\n") == 1


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".mat"])
def test_every_file_format_gives_the_same_trials(tmp_path, ending):
    frame, path = table(), tmp_path / f"trials{ending}"
    if ending == ".parquet":
        frame.to_parquet(path)
    elif ending == ".mat":
        from scipy.io import savemat

        savemat(
            path,
            {
                name: frame[name].to_numpy() if name != "subject" else (frame[name] == "b").to_numpy(int)
                for name in frame
            },
        )
    else:
        frame.to_csv(path, index=False, sep="," if ending == ".csv" else "\t")
    trials = read_trials(path, "radians")
    np.testing.assert_allclose(trials.response, wrap(frame["response"].to_numpy()), atol=1e-12)
    assert trials.set_size.tolist() == [3] * 30 and len(np.unique(trials.subject)) == 2


def test_mixtur_names_and_network_tables():
    frame = table().drop(
        columns=[f"{n}_probe{i}" for n, i in (("target", ""), ("non_target", "_1"), ("non_target", "_2"))]
    )
    named = frame.rename(columns={"subject": "id"})
    np.testing.assert_array_equal(
        Trials.from_table(named, "radians").report, Trials.from_table(frame, "radians").report
    )
    network = pd.DataFrame(
        {
            "cued": [2, 1],
            "target": [0.2, 0.3],
            "report_1": [0.1, 0.3],
            "report_2": [0.2, 0.4],
            "probe_1": [1.0, 2.0],
            "probe_2": [3.0, 2.5],
            "response": [0.2, 0.3],
        }
    )
    trials = Trials.from_table(network, "radians")
    np.testing.assert_allclose(trials.report, [[0.2, 0.1], [0.3, 0.4]])
    np.testing.assert_allclose(trials.probe, [[3.0, 1.0], [2.0, 2.5]])


def test_the_table_of_trials_reads_back(tmp_path):
    trials = Trials.from_table(table(), "radians")
    trials.to_csv(tmp_path / "again.csv")
    again = read_trials(tmp_path / "again.csv", "radians")
    np.testing.assert_allclose(again.report, trials.report)
    np.testing.assert_allclose(again.probe, trials.probe)


def test_set_sizes_vary_and_are_counted():
    frame = table()
    frame.loc[::2, ["non_target_2", "non_target_probe_2"]] = np.nan
    frame.loc[::2, "set_size"] = 2
    assert Trials.from_table(frame, "radians").set_size[:2].tolist() == [2, 3]
    assert Trials.from_table(frame.drop(columns="set_size"), "radians").set_size[:2].tolist() == [2, 3]


BAD = {
    "outside": (
        lambda f: f.__setitem__("response", f["response"].where(f.index != 4, 400.0)),
        "row 5, column response: 400 is outside",
    ),
    "response": (
        lambda f: f.__setitem__("response", f["response"].where(f.index != 2)),
        "row 3, column response: the response is missing",
    ),
    "target": (
        lambda f: f.__setitem__("target", f["target"].where(f.index != 2)),
        "row 3, column target: the target is missing",
    ),
    "beyond": (
        lambda f: f.__setitem__("set_size", f["set_size"].where(f.index != 6, 2)),
        "row 7, column non_target_2: a non-target beyond the set size of 2",
    ),
    "absent item": (
        lambda f: f.__setitem__("non_target_1", f["non_target_1"].where(f.index != 6)),
        "row 7, column non_target_1: missing",
    ),
    "text": (
        lambda f: f.__setitem__("response", f["response"].astype(object).where(f.index != 8, "left")),
        "row 9, column response: 'left' is not a number",
    ),
    "set size": (
        lambda f: f.__setitem__("set_size", f["set_size"].astype(float).where(f.index != 3, 2.5)),
        "row 4, column set_size: 2.5 is not a set size",
    ),
    "subject": (
        lambda f: f.__setitem__("subject", f["subject"].where(f.index != 3)),
        "row 4, column subject: the subject is missing",
    ),
    "infinite": (
        lambda f: f.__setitem__("target", f["target"].where(f.index != 3, np.inf)),
        "row 4, column target: the value is infinite",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_each_problem_is_named_with_its_row_and_column(kind):
    frame = table()
    BAD[kind][0](frame)
    assert BAD[kind][1] in problems(frame)


def test_mixed_units_between_subjects_and_columns():
    degrees = table(unit=np.pi / 180)
    degrees.loc[degrees["subject"] == "b", "response"] *= np.pi / 180
    assert "mixed units: the values of subject b look like radians" in problems(degrees, "degrees")
    degrees = table(unit=np.pi / 180)
    degrees["target"] *= np.pi / 180
    assert "column target: mixed units" in problems(degrees, "degrees")


def test_all_problems_come_in_one_list_cut_at_twenty():
    frame = table()
    for kind in ("outside", "response", "beyond"):
        BAD[kind][0](frame)
    text = problems(frame)
    assert all(BAD[kind][1] in text for kind in ("outside", "response", "beyond"))
    frame = table(count=100)
    for column in ("response", "target"):
        frame.loc[::5, column] = 100.0 + np.arange(20)  # fewer than half of a column are slips, not another unit
    text = problems(frame)
    assert text.count("\n") == 21 and "and 20 more." in text


def test_equal_items_are_kept_and_counted_or_dropped():
    """Two items of the same colour are a legitimate trial; they were an error."""
    frame = pd.DataFrame({"response": [0.0] * 3, "target": [1.0, 2.0, 3.0], "non_target_1": [1.5, 2.0, 1.0]})
    trials = Trials.from_table(frame, "radians")
    assert len(trials) == 3 and "1 of 3 trials has two items with the same reported feature" in trials.notes[0]
    dropped = Trials.from_table(frame, "radians", drop="equal")
    assert len(dropped) == 2 and dropped.dropped == {"equal": 1} and "1 trial was left out" in dropped.notes[0]
    frame[["target_probe", "non_target_probe_1"]] = [[0.1, 0.1], [0.1, 0.2], [0.1, 0.2]]
    assert sum("probe feature" in note for note in Trials.from_table(frame, "radians").notes) == 1
    from lapsus.fitting.emissions import VonMises
    from lapsus.fitting.likelihood import Likelihood, Parameters

    two = Likelihood(Trials([0.1] * 2, [[0.0, 0.0], [0.0, 0.0]]), VonMises(), np.zeros(2, int))
    import torch

    p = Parameters(None, torch.zeros(1, 1), torch.full((1, 1, 1), 2.0), None, None)
    np.testing.assert_allclose(two.responsibilities(p)[:, :2], 0.5)


@pytest.mark.parametrize(
    "columns, text",
    [
        (["target"], "response"),
        (["response"], "target"),
        (["response", "target", "non_target_probe_1"], "target_probe"),
    ],
)
def test_missing_columns_are_named(columns, text):
    assert text in problems(pd.DataFrame({name: [0.0, 1.0] for name in columns}))


def test_missing_columns_are_named_together():
    frame = table().drop(columns=["response", "non_target_1", "non_target_probe_2"])
    assert "columns response, non_target_1, non_target_probe_2 missing" in problems(frame)
    assert "column non_target_2 missing" in problems(table().drop(columns="non_target_2"))
    said = problems(table().rename(columns={"response": "answer", "subject": "participant"}))
    assert "answer" in said and "participant (read as subject)" in said and "(response=ITS_NAME)" in said


def test_columns_of_one_meaning(tmp_path):
    assert "two columns mean 'subject'" in problems(table().rename(columns={"subject": "id", "block": "participant"}))
    assert list(Trials.from_table(table().rename(columns={"block": "id"}), "radians").conditions) == ["id"]
    (tmp_path / "twice.csv").write_text("response,target,target\n1,2,3\n")
    with pytest.raises(LapsusError, match="two columns mean 'target'"):
        read_trials(tmp_path / "twice.csv")


def test_text_files_of_other_programs(tmp_path):
    frame = table(unit=np.pi / 180).drop(columns="subject")
    expected = Trials.from_table(frame, "degrees").response
    for decimal in ",.":
        frame.to_csv(tmp_path / "excel.csv", sep=";", decimal=decimal, index=False)
        np.testing.assert_allclose(read_trials(tmp_path / "excel.csv").response, expected)
    frame.to_csv(tmp_path / "tabs.csv", sep="\t", index=False)
    np.testing.assert_allclose(read_trials(tmp_path / "tabs.csv").response, expected)
    text = frame.to_csv(sep="\t")  # row names under an empty name, as R's write.csv has them
    (tmp_path / "r.tsv").write_text(text)
    np.testing.assert_allclose(read_trials(tmp_path / "r.tsv").response, expected)
    (tmp_path / "r.tsv").write_text(text.lstrip("\t"))  # under none, as write.table has them: they may be anything
    with pytest.raises(LapsusError, match="row 1 has 10 fields, the header has 9"):
        read_trials(tmp_path / "r.tsv")
    (tmp_path / "shifted.csv").write_text("response,target\n" + "".join(f"{x},1,2\n" for x in (0.3, 0.2, 0.5)))
    with pytest.raises(LapsusError, match="row 1 has 3 fields, the header has 2"):
        read_trials(tmp_path / "shifted.csv")


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    for name in ("trials.csv", "trials.txt", "trials.mat", "trials.parquet"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(LapsusError, match="the file is empty"):
            read_trials(tmp_path / name)
    for content in (
        b"\0" * 100,
        b"\x89PNG\r\n\x1a\n\xff",
        "response,target\n1,2°\n".encode("latin-1"),
        "response,target".encode("utf-16"),
    ):
        (tmp_path / "trials.csv").write_bytes(content)
        with pytest.raises(LapsusError, match="not a text file in UTF-8"):
            read_trials(tmp_path / "trials.csv")
    table().to_csv(tmp_path / "trials.csv")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(LapsusError, match=r"trials.csv: cannot be read \(Permission denied\)"):
        read_trials(tmp_path / "trials.csv")


def test_every_bad_file_of_a_folder_is_named(tmp_path):
    from scipy.io import savemat

    (tmp_path / "a.mat").write_bytes(b"nothing")
    savemat(tmp_path / "b.mat", {"recording1": {"set_size": [1.0, 2.0]}})
    savemat(tmp_path / "c.mat", {"recording1": [1.0, 2.0]})
    with pytest.raises(LapsusError) as caught:
        read_trials(tmp_path)
    assert all(
        name in str(caught.value)
        for name in ("a.mat", "b.mat: recording1 has no c_array", "c.mat: recording1 has no set_size")
    )


def test_a_published_layout_refuses_another_unit(tmp_path):
    from scipy.io import savemat

    angles = np.linspace(-2, 2, 6)
    others = np.stack([angles + 1, angles - 1], 1)
    columns = {
        "n_items": np.full(6, 3.0),
        "response": angles,
        "target": angles,
        "nontarget": others,
        "target_pos": angles,
        "nontarget_pos": others,
        "subject": np.ones(6),
    }
    savemat(tmp_path / "a.mat", columns)
    with pytest.raises(
        LapsusError, match=r"Bays et al. \(2009\), which is read as radians; leave `unit='degrees'` out"
    ):
        read_trials(tmp_path / "a.mat", "degrees")
    assert len(read_trials(tmp_path / "a.mat", "radians")) == len(read_trials(tmp_path / "a.mat")) == 6
    savemat(tmp_path / "b.mat", {"recording1": {"set_size": [1.0, 2.0]}})
    with pytest.raises(LapsusError, match="leave `probe_unit='radians'` out"):
        read_trials(tmp_path / "b.mat", "degrees", "radians")


def test_a_folder_of_a_published_layout_refuses_another_unit(human_data):
    with pytest.raises(LapsusError, match="leave `unit='radians'` out"):
        read_trials(human_data / "vandenberg2012_color", "radians")


def test_files_that_are_not_tables(tmp_path):
    for name in ("absent.csv", "notes.docx", "broken.parquet", "broken.mat"):
        if not name.startswith("absent"):
            (tmp_path / name).write_text("nothing")
        with pytest.raises(LapsusError, match=name.split(".")[0]):
            read_trials(tmp_path / name)
    with pytest.raises(LapsusError, match=r"no \.mat files"):
        (tmp_path / "empty").mkdir()
        read_trials(tmp_path / "empty")


def test_published_layouts(human_data):
    berg = read_trials(human_data / "vandenberg2012_color")
    assert len(berg) == 22464 and len(np.unique(berg.subject)) == 13 and set(berg.set_size) == set(range(1, 9))
    bays = read_trials(human_data / "bays2009" / "bays_data.mat")
    assert len(bays) == 7271 and len(np.unique(bays.subject)) == 12
    published = bays.conditions["error"].to_numpy()
    np.testing.assert_allclose(difference(published, bays.error), 0, atol=1e-9)
    steps = np.degrees(bays.distance("probe")[bays.set_size == 6]) / 45
    np.testing.assert_allclose(steps[np.isfinite(steps)], np.round(steps[np.isfinite(steps)]), atol=1e-6)


def relative(count=40, seed=0):
    """Errors and non-targets relative to the target, in degrees."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-180, 180, count), rng.uniform(-180, 180, (count, 2))


def test_memtoolbox_files(tmp_path):
    from scipy.io import savemat

    errors, distractors = relative()
    savemat(tmp_path / "a.mat", {"data": {"errors": errors, "distractors": distractors.T, "n": np.full(40, 3.0)}})
    trials = read_trials(tmp_path / "a.mat", "degrees")
    np.testing.assert_allclose(np.degrees(trials.error), errors)
    np.testing.assert_allclose(np.degrees(trials.distance("report")[:, 1:]), distractors)
    assert set(trials.set_size) == {3} and trials.probe is None
    savemat(tmp_path / "b.mat", {"data": {"errors": errors, "distractors": distractors[:, 0]}})
    assert set(read_trials(tmp_path / "b.mat", "degrees").set_size) == {2}
    savemat(tmp_path / "c.mat", {"errors": errors, "distractors": distractors.T})  # not in a struct
    np.testing.assert_allclose(read_trials(tmp_path / "c.mat", "degrees").report, trials.report)
    savemat(tmp_path / "d.mat", {"errors": errors, "distractors": distractors[:30].T})
    with pytest.raises(LapsusError, match="distractors is 2 × 30, but there are 40 trials"):
        read_trials(tmp_path / "d.mat", "degrees")


@pytest.mark.parametrize("given", ["degrees", None, "radians", "degrees_180"])
def test_errors_across_the_end_of_the_scale(given):
    errors, others = relative(200)
    target = np.random.default_rng(3).uniform(0, 360, 200)
    factor = {"radians": np.pi / 180, "degrees_180": 0.5}.get(given, 1.0)
    frame = pd.DataFrame({"resp_error": errors, "target": target, "nt_1": others[:, 0] % 360}) * factor
    trials = Trials.from_table(frame, given)
    np.testing.assert_allclose(wrap(trials.error - np.radians(errors)), 0, atol=1e-9)
    frame.loc[4, "resp_error"] = 900 * factor
    assert "column response" in problems(frame, given)


def test_bmm_tables(tmp_path):
    errors, others = relative()
    frame = pd.DataFrame({"ID": np.repeat([1, 2], 20), "resp_error": np.radians(errors)})
    frame[["nt_features1", "nt_features2"]] = np.radians(others)
    frame.to_csv(tmp_path / "bmm.csv", index=False)
    trials = read_trials(tmp_path / "bmm.csv", "radians")
    np.testing.assert_allclose(np.degrees(trials.error), errors)
    np.testing.assert_allclose(np.degrees(trials.deviation[:, 1]), np.degrees(wrap(np.radians(errors - others[:, 0]))))
    assert len(np.unique(trials.subject)) == 2
    absolute = frame.assign(target=np.radians(np.abs(errors)))  # with the target there, the rest is not relative
    np.testing.assert_allclose(np.degrees(Trials.from_table(absolute, "radians").error), errors, atol=1e-9)


def test_columns_of_any_name_and_some_of_the_rows():
    frame = table(unit=np.pi / 180).rename(columns={"response": "response_ori"}).assign(task="single", response="left")
    frame.loc[:9, "task"] = "dual"
    trials = Trials.from_table(frame, "degrees", columns={"response": "response_ori"}, where={"task": "dual"})
    assert len(trials) == 10 and "response_in_table" in trials.conditions
    assert len(Trials.from_table(frame, "degrees", columns={"response": "response_ori"}, where={"block": "3"})) == 1
    for options, text in (
        ({"columns": {"response": "answer"}}, "no column answer to be response"),
        ({"where": {"colour": "red"}}, "no column colour to select by"),
        ({"where": {"task": "triple"}}, "no row has task triple; the column has dual, single"),
    ):
        assert text in problems(frame, "degrees", **options)


def test_numbered_positions_become_angles():
    frame = table(unit=np.pi / 180)
    names = [name for name in frame if "probe" in name]
    frame[names] = [[1, 2, 13], [4, 5, 8]] * 15
    assert "`probe_positions`" in problems(frame, "degrees")
    trials = Trials.from_table(frame, "degrees", probe_positions=13)
    np.testing.assert_allclose(np.degrees(trials.distance("probe")[0]), [0, 360 / 13, -360 / 13])
    np.testing.assert_allclose(
        Trials.from_table(frame.assign(**{n: frame[n] - 1 for n in names}), "degrees", probe_positions=13).probe,
        trials.probe,
    )
    assert "from 1 to 8; the table has 1 to 13" in problems(frame, "degrees", probe_positions=8)
    assert "needs columns target_probe" in problems(frame.drop(columns=names), "degrees", probe_positions=8)


def test_a_text_column_called_probe_is_a_condition():
    frame = table().drop(columns=[name for name in table() if "probe" in name]).assign(probe="location")
    trials = Trials.from_table(frame, "radians")
    assert trials.probe is None and list(trials.conditions["probe"].unique()) == ["location"]


@pytest.mark.parametrize("ending", [".rds", ".rda"])
def test_r_data(tmp_path, ending):
    rdata = pytest.importorskip("rdata")
    frame, path = table(), tmp_path / f"trials{ending}"
    frame["subject"] = (frame["subject"] == "b").astype(int)
    if ending == ".rds":
        rdata.write_rds(path, frame)
    else:
        rdata.write_rda(path, {"trials": frame})
    trials = read_trials(path, "radians")
    np.testing.assert_allclose(trials.response, wrap(frame["response"].to_numpy()))
    assert len(np.unique(trials.subject)) == 2
    path.write_bytes(b"nothing")
    with pytest.raises(LapsusError, match="cannot be read as R data"):
        read_trials(path)


def test_bids_files_and_folders(tmp_path):
    import json

    for who in ("01", "02"):
        place = tmp_path / f"sub-{who}" / "beh"
        place.mkdir(parents=True)
        frame = table(unit=np.pi / 180).drop(columns="subject").astype(object)
        frame.loc[0, ["non_target_2", "non_target_probe_2", "set_size"]] = [np.nan, np.nan, 2]
        frame.to_csv(place / f"sub-{who}_task-recall_beh.tsv", sep="\t", index=False, na_rep="n/a")
    about = {"response": {"Units": "deg"}, "target": {"LongName": "orientation", "Units": "deg"}}
    (tmp_path / "task-recall_beh.json").write_text(json.dumps(about))
    trials = read_trials(tmp_path)
    assert len(trials) == 60 and set(trials.subject) == {"01", "02"} and trials.unit == "degrees"
    assert trials.feature_name == "orientation" and trials.set_size[0] == 2
    assert set(read_trials(tmp_path / "sub-02" / "beh" / "sub-02_task-recall_beh.tsv").subject) == {"02"}
    for unit in ("degrees_180", "degrees of orientation"):
        (tmp_path / "task-recall_beh.json").write_text(json.dumps({"response": {"Units": unit}}))
        with pytest.raises(LapsusError, match="degrees_180"):
            read_trials(tmp_path)  # its values go up to 360
    (tmp_path / "task-recall_beh.json").write_text("{")
    with pytest.raises(LapsusError, match="not a JSON file"):
        read_trials(tmp_path)


def test_a_notebook_shows_angles_in_the_unit_of_the_table():
    frame = pd.DataFrame({"response": [170.0], "target": [20.0], "target_probe": [90.0], "target_colour": ["red"]})
    page = Trials.from_table(frame, "degrees_180", "degrees")._repr_html_()
    # Orientations from −90 to 90, positions from −180 to 180.
    assert "-10.0" in page and "20.0" in page and "90.0" in page and "red" in page
    assert "in degrees of orientation (probes in degrees)" in page


def test_orientation_files_of_van_den_berg(tmp_path):
    from scipy.io import savemat

    rng, count = np.random.default_rng(0), 40
    size = rng.integers(1, 9, count)
    shown = np.arange(8)[:, None] < size
    angles = np.full((9, count), -1.0)
    angles[:8][shown] = rng.uniform(0, 180, shown.sum())
    places = np.stack([np.sort(rng.permutation(8)[:8]) + 1 for _ in range(count)], 1)
    places = np.where(shown, places, -1)
    cued = np.stack([rng.integers(1, size + 1), np.zeros(count), np.ones(count)])
    block = {
        "set_size": size,
        "subject_responses": rng.uniform(0, 180, count),
        "gabor_angles": angles,
        "cued_gabor": cued,
        "gabor_locations": places,
        "true_values": angles[cued[0].astype(int) - 1, np.arange(count)],
    }
    savemat(tmp_path / "AB20090101a.mat", {"tot_score": 1.0, "block_one": block, "block_two": block})
    for path in (tmp_path, tmp_path / "AB20090101a.mat"):
        trials = read_trials(path)
        assert trials.unit == "degrees_180" and set(trials.subject) == {"AB"} and len(trials) == 2 * count
        np.testing.assert_allclose(wrap(trials.report[:count, 0] - np.radians(2 * block["true_values"])), 0, atol=1e-9)
        assert trials.feature_name == "orientation" and trials.degrees == pytest.approx(90 / np.pi)
        assert set(trials.set_size[:count] - size) == {0}
    savemat(tmp_path / "AB20090101a.mat", {"block_one": {"set_size": size}})
    with pytest.raises(LapsusError, match="block_one has no subject_responses"):
        read_trials(tmp_path)


def test_published_orientation_data(human_data):
    trials = read_trials(human_data / "vandenberg2012_orientation")
    assert len(np.unique(trials.subject)) == 2 and set(trials.set_size) == set(range(1, 9))
    assert np.cos(trials.error[trials.set_size == 1]).mean() > 0.8


def test_the_same_trials_with_other_responses_share_their_items():
    """Sixty predictive data sets of 200,000 trials would else take a gigabyte."""
    trials = Trials.from_table(table(), "radians")
    other = trials.with_responses(trials.response + 0.1)
    assert np.shares_memory(other.report, trials.report) and not np.shares_memory(other.response, trials.response)


def test_a_notebook_shows_degrees_as_the_user_counts_them():
    rows = {"response": [20.0], "target": [10.0], "non_target_1": [70.0]}
    rows |= {"target_probe": [90.0], "non_target_probe_1": [-90.0], "n": [3]}
    trials = Trials.from_table(pd.DataFrame(rows), unit="degrees_180", probe_unit="degrees")
    names, values = (re.findall(f"<{cell}>(.*?)</{cell}>", trials._repr_html_()) for cell in ("th", "td"))
    shown = dict(zip(names, values))
    assert [float(shown[name]) for name in rows] == [20, 10, 70, 90, -90, 3]


def test_a_missing_target_is_one_problem():
    frame = table()
    frame.loc[2, "target"] = np.nan
    for one in (frame, frame.drop(columns="set_size")):
        with pytest.raises(LapsusError) as error:
            Trials.from_table(one, "radians")
        assert "the target is missing" in str(error.value) and "target_probe" not in str(error.value)


def test_orientations_on_a_ring_of_probes_are_judged_apart():
    frame = table()
    probes = [name for name in frame if "probe" in name]
    angles = [name for name in frame if name == "response" or ("target" in name and name not in probes)]
    frame[angles] = np.degrees(frame[angles]) % 360 / 2
    frame[probes] = np.degrees(frame[probes]) % 360
    with pytest.raises(LapsusError) as error:
        Trials.from_table(frame, "radians")
    values, ring = str(error.value).split("the probes lie between")
    assert f"and {frame[angles].to_numpy().max():.4g}, which looks like degrees" in values and "degrees_180" in values
    assert 'give `probe_unit="degrees"`' in ring and "degrees_180" not in ring


def uniform_trials(count=1500, items=4, swap=0.25, seed=0, margin=0.0, scatter=0.2):
    """Absolute features in radians; swaps to any non-target; items at least `margin` from the target."""
    rng = np.random.default_rng(seed)
    target = rng.uniform(-np.pi, np.pi, count)
    others = target[:, None] + rng.uniform(margin, 2 * np.pi - margin, (count, items - 1))
    every = np.column_stack([target, others])
    said = np.where(rng.random(count) < swap, rng.integers(1, items, count), 0)
    response = wrap(every[np.arange(count), said] + rng.normal(0, scatter, count))
    names = ["target", *(f"non_target_{i}" for i in range(1, items))]
    return pd.DataFrame({"response": response} | dict(zip(names, wrap(every).T)))


@pytest.mark.parametrize("margin", [0.0, 0.5])
@pytest.mark.parametrize("anchor", ["response", "target"])
def test_non_targets_relative_to_the_response_or_target_are_refused_or_converted(anchor, margin):
    """They were read as colours: 0.2 % swaps where there were 27 %."""
    frame = uniform_trials(margin=margin)
    others = [name for name in frame if name.startswith("non_target")]
    given = frame.assign(**{name: wrap(frame[name] - frame[anchor]) for name in others})
    absolute = Trials.from_table(frame, "radians")
    assert f'`non_targets="relative_to_{anchor}"`' in problems(given)
    trials = Trials.from_table(given, "radians", non_targets=f"relative_to_{anchor}")
    np.testing.assert_allclose(wrap(trials.report - absolute.report), 0, atol=1e-9)
    assert any("were converted" in note for note in trials.notes)
    Trials.from_table(given, "radians", non_targets="absolute")  # if the user insists
    assert "non_targets 'reltive' is not known" in problems(given, non_targets="reltive")


@pytest.mark.parametrize("anchor", ["response", "target"])
def test_few_swaps_give_differences_away(anchor):
    """A hundred swaps in 600 trials with items anywhere: their mean cosine says nothing, the number of values near 0
    (or near the error) does."""
    frame = uniform_trials(600, 4, 0.2, scatter=0.25)
    others = [name for name in frame if name.startswith("non_target")]
    given = frame.assign(**{name: wrap(frame[name] - frame[anchor]) for name in others})
    assert f'`non_targets="relative_to_{anchor}"`' in problems(given)
    Trials.from_table(frame, "radians")


@pytest.mark.parametrize("seed", range(20))
def test_features_are_not_taken_for_differences(seed):
    rng = np.random.default_rng(seed)
    frame = uniform_trials(
        int(rng.integers(50, 4000)), int(rng.integers(2, 7)), rng.uniform(0, 0.5), seed, rng.choice([0, 0.3, 0.8])
    )
    Trials.from_table(frame, "radians")
    Trials.from_table(frame.assign(target=0.3 * frame["target"]), "radians")  # targets from a part of the circle


@pytest.mark.parametrize("items", [2, 3, 4])
def test_features_on_a_grid_are_not_taken_for_differences(items):
    """Of six colours one is at 0, near which more values lie than on a circle that is filled evenly."""
    rng = np.random.default_rng(items)
    colours = np.argsort(rng.random((1500, 6)), 1)[:, :items] * np.pi / 3
    response = np.where(rng.random(1500) < 0.05, colours[:, 1], colours[:, 0]) + rng.normal(0, 0.15, 1500)
    frame = pd.DataFrame({"response": wrap(response), "target": wrap(colours[:, 0])})
    for i in range(1, items):
        frame[f"non_target_{i}"] = wrap(colours[:, i])
    Trials.from_table(frame, "radians")


@pytest.mark.parametrize("anchor", ["response", "target"])
def test_published_tables_with_relative_non_targets(human_data, anchor):
    bays = read_trials(human_data / "bays2009" / "bays_data.mat")
    others = [name for name in bays.table if re.fullmatch(r"non_target_\d", name)]
    frame = bays.table.assign(**{name: wrap(bays.table[name] - bays.table[anchor]) for name in others})
    assert f'`non_targets="relative_to_{anchor}"`' in problems(frame)


@pytest.mark.parametrize("name", ["non_target", "nontarget", "NonTarget", "distractor", "nt", "Non-Target"])
def test_a_single_non_target_needs_no_number(name, tmp_path):
    """It was dropped without a word, and its swaps were called guesses."""
    from scipy.io import savemat

    frame = table(items=2).drop(columns=["target_probe", "non_target_probe_1"])
    expected = Trials.from_table(frame, "radians")
    renamed = frame.rename(columns={"non_target_1": name})
    np.testing.assert_array_equal(Trials.from_table(renamed, "radians").report, expected.report)
    if name.isidentifier():
        columns = {n: renamed[[n]].to_numpy() for n in renamed if n != "subject"}
        savemat(tmp_path / "a.mat", columns)
        np.testing.assert_array_equal(read_trials(tmp_path / "a.mat", "radians").report, expected.report)


def test_columns_that_look_like_items_are_never_passed_over():
    frame = table(items=2).drop(columns=["target_probe", "non_target_probe_1", "set_size"])
    text = problems(frame.rename(columns={"non_target_1": "lure_hue"}))
    assert "the column lure_hue looks like items" in text and "non_target_1=lure_hue" in text
    renamed = frame.rename(columns={"non_target_1": "lure_hue"})
    assert Trials.from_table(renamed, "radians", columns={"non_target_1": "lure_hue"}).set_size.max() == 2
    assert Trials.from_table(renamed, "radians", columns={"condition": "lure_hue"}).set_size.max() == 1
    more = Trials.from_table(frame.assign(nt_extra=frame["target"]), "radians")
    assert any(note.startswith("Not used, though the column nt_extra looks like items") for note in more.notes)
    flag = Trials.from_table(frame.assign(distractor=[0, 1] * 15), "radians")  # a condition
    assert "distractor" in flag.conditions and flag.set_size.max() == 2


def test_a_header_that_repeats_an_item_is_refused(tmp_path):
    """pandas calls the second one non_target_1.1, which was then a condition."""
    (tmp_path / "a.csv").write_text("response,target,non_target_1,non_target_1\n" + "1,2,3,4\n2,3,4,5\n" * 5)
    with pytest.raises(LapsusError, match="two columns mean 'non_target_1'"):
        read_trials(tmp_path / "a.csv")


def test_two_probe_features_must_be_chosen_from():
    frame = table(items=2).rename(
        columns={"target_probe": "target_location", "non_target_probe_1": "non_target_location_1"}
    )
    frame = frame.assign(target_probe=0.1 + np.arange(30) / 9, non_target_probe_1=0.2 + np.arange(30) / 8)
    assert "two columns mean 'target_probe'" in problems(frame) and "`columns`" in problems(frame)
    chosen = {"target_probe": "target_location", "non_target_probe_1": "non_target_location_1"}
    trials = Trials.from_table(frame, "radians", columns=chosen)
    np.testing.assert_allclose(wrap(trials.probe[:, 0] - frame["target_location"]), 0, atol=1e-12)
    hand_named = {"target_probe": "target_probe", "non_target_probe_1": "non_target_probe_1"}
    trials = Trials.from_table(frame, "radians", columns=hand_named)
    np.testing.assert_allclose(wrap(trials.probe[:, 0] - frame["target_probe"]), 0, atol=1e-12)
    assert "target_location" in trials.conditions


def test_rows_are_dropped_on_request_and_counted():
    frame = table(count=60)
    frame.loc[[3, 4], "response"], frame.loc[7, "target"], frame.loc[9, "non_target_1"] = np.nan, 90.0, np.nan
    frame.loc[11, "non_target_2"] = frame.loc[11, "target"]
    assert '`drop="missing,outside"`' in problems(frame)
    trials = Trials.from_table(frame, "radians", drop=["missing", "outside", "equal"])
    assert len(trials) == 55 and trials.dropped == {"missing": 3, "outside": 1, "equal": 1}
    assert "5 trials were left out: 3 because" in trials.notes[0]
    assert 4 not in trials.conditions["block"].tolist() and 5 in trials.conditions["block"].tolist()
    assert "drop 'odd' is not known" in problems(frame, drop="odd")
    kept = Trials.from_table(table(), "radians", where=["block!=3", "subject=a"])
    assert len(kept) == 14 and 3 not in kept.conditions["block"].tolist()
    assert kept.dropped == {"where": 16}
    assert kept.notes == ["16 trials were left out: 16 because `where` excludes them."]
    both = Trials.from_table(frame, "radians", where="subject=a", drop=["missing", "outside"])
    assert both.dropped == {"where": 30, "missing": 3, "outside": 1} and not Trials.from_table(table()).dropped
    assert "column!=value" in problems(table(), where=["block"])


def test_values_beyond_the_set_size_are_one_sentence_with_the_remedy():
    frame = table(count=60)
    frame.loc[::2, "set_size"] = 2
    text = problems(frame)
    assert text.count("\n") <= 3 and "30 trials" in text and '`items_beyond_set_size="drop"`' in text
    trials = Trials.from_table(frame, "radians", items_beyond_set_size="drop")
    assert trials.set_size.tolist() == [2, 3] * 30 and np.isnan(trials.report[0, 2])


def test_files_without_a_header_are_read_by_position(tmp_path):
    frame = table(items=2)[["response", "target", "non_target_1"]]
    frame.to_csv(tmp_path / "a.csv", index=False, header=False)
    with pytest.raises(LapsusError, match=r"has no header.*by position"):
        read_trials(tmp_path / "a.csv", "radians")
    columns = {"response": "1", "target": "2", "non_target_1": "3"}
    trials = read_trials(tmp_path / "a.csv", "radians", columns=columns)
    np.testing.assert_allclose(trials.response, wrap(frame["response"].to_numpy()))
    assert len(trials) == len(frame)
    # With names of subjects, and with items that the first trial does not have.
    mixed = frame.assign(non_target_1=frame["non_target_1"].where(np.arange(len(frame)) > 0), subject="anna")
    mixed.to_csv(tmp_path / "b.csv", index=False, header=False)
    with pytest.raises(LapsusError, match=r"has no header.*by position"):
        read_trials(tmp_path / "b.csv", "radians")
    trials = read_trials(tmp_path / "b.csv", "radians", columns=columns | {"subject": "4"})
    assert len(trials) == len(frame) and trials.set_size[0] == 1 and set(trials.subject) == {"anna"}


def mistaken(kind):
    """A good table of 600 trials with one thing wrong, and what must be said about it."""
    frame, rng = uniform_trials(600, items=3), np.random.default_rng(5)
    frame = np.degrees(frame) % 360
    if kind == "missing as -1":
        frame.loc[rng.permutation(600)[:50], "response"] = -1
        return frame, "50 of 600 responses are exactly -1"
    if kind == "missing as 0":
        frame.loc[rng.permutation(600)[:50], "response"] = 0
        return frame, "50 of 600 responses are exactly 0"
    if kind == "errors as responses":
        return frame.assign(response=np.degrees(wrap(np.radians(frame["response"] - frame["target"])))), "gather at 0"
    if kind == "absolute errors":
        error = np.abs(np.degrees(wrap(np.radians(frame["response"] - frame["target"]))))
        return frame.drop(columns="response").assign(error=error), "absolute errors"
    if kind == "absolute errors as responses":
        error = np.abs(np.degrees(wrap(np.radians(frame["response"] - frame["target"]))))
        return frame.assign(response=error), "gather at 0"
    if kind == "turns":
        return frame / 360, "turns of a circle"
    if kind == "constant":
        return frame.assign(response=12.0), "Every response is 12"
    if kind == "twice":
        return pd.concat([frame, frame]), "600 of 1,200 rows repeat"
    if kind == "few each":
        return frame.assign(subject=np.arange(600) // 3), "All 200 subjects have fewer than 10 trials"
    if kind == "twice, numbered":
        return pd.concat([frame, frame]).assign(row=np.arange(1200)), "600 of 1,200 rows repeat"
    if kind == "each twice, numbered":
        return frame.loc[frame.index.repeat(2)].assign(row=np.arange(1200)), "600 of 1,200 rows repeat"
    return frame.assign(subject=["a"] * 597 + ["b"] * 3), "fewer than 10 trials: b (3)"


MISTAKES = ["missing as -1", "missing as 0", "errors as responses", "absolute errors", "absolute errors as responses"]
MISTAKES += ["turns", "constant", "twice", "twice, numbered", "each twice, numbered", "few each", "few"]


@pytest.mark.parametrize("kind", MISTAKES)
def test_wrong_tables_that_can_be_read_are_not_read_in_silence(kind):
    frame, sentence = mistaken(kind)
    notes = Trials.from_table(frame).notes
    assert sum(sentence in note for note in notes) == 1, notes


@pytest.mark.parametrize("seed", range(10))
def test_right_tables_have_no_notes(seed):
    rng = np.random.default_rng(seed)
    frame = np.degrees(uniform_trials(400, 3, 0.3, seed)) % 360
    frame = frame.round(rng.integers(0, 3)).assign(subject=rng.choice(["a", "b"], 400), rt=rng.random(400))
    notes = Trials.from_table(frame, "degrees").notes
    assert [note for note in notes if "two items with the same" not in note] == []


def test_coarse_values_repeat_by_chance():
    rng = np.random.default_rng(0)
    target = rng.integers(0, 8, 400) * 45.0
    frame = pd.DataFrame({"trial": np.arange(400), "target": target, "response": target + rng.integers(-3, 4, 400)})
    frame["response"] %= 360
    assert not any("repeat" in note for note in Trials.from_table(frame, "degrees").notes)
    assert len(Trials.from_table(frame, "degrees", drop="repeated")) == 400


def test_rows_in_another_unit_are_refused():
    frame = np.degrees(uniform_trials(600, items=3)) % 360
    frame.loc[::3] = np.radians(frame.loc[::3])
    assert "all angles of the row look like radians" in problems(frame, "degrees")


def test_bids_copies_units_and_tasks(tmp_path):
    import json

    def write(place, who, frame, task="recall"):
        folder = tmp_path / place / f"sub-{who}" / "beh"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"sub-{who}_task-{task}_beh.tsv"
        frame.to_csv(path, sep="\t", index=False)
        return path

    radians = uniform_trials(200, seed=1)
    write(".", "01", np.degrees(radians))
    for copy in ("derivatives/clean", "sourcedata"):
        write(copy, "01", np.degrees(radians))
    second = write(".", "02", radians)
    second.with_suffix(".json").write_text(json.dumps({"response": {"Units": "rad"}}))
    trials = read_trials(tmp_path)
    assert len(trials) == 400 and trials.unit == "degrees"
    halves = trials[trials.subject == "01"], trials[trials.subject == "02"]
    np.testing.assert_allclose(wrap(halves[0].report - halves[1].report), 0, atol=1e-9)
    write(".", "03", radians, task="search")
    with pytest.raises(LapsusError, match="tasks recall, search, which are not pooled"):
        read_trials(tmp_path)
    assert len(read_trials(tmp_path, where={"task": "recall"})) == 400


def test_an_item_by_any_other_name_is_seen_in_the_responses():
    rng = np.random.default_rng(0)
    target, other = rng.uniform(-180, 180, (2, 300))
    swapped = rng.random(300) < 0.3
    noise = np.degrees(rng.vonmises(0, 12, 300))
    response = np.degrees(wrap(np.radians(np.where(swapped, other, target) + noise)))
    frame = pd.DataFrame({"response": response, "target": target, "uncued": other})
    frame["answer_again"], frame["phase"] = frame["response"], rng.uniform(-180, 180, 300)
    note = "gather at the values of uncued"
    assert [note in line for line in Trials.from_table(frame, "degrees").notes].count(True) == 1
    for change in ({"uncued": rng.permutation(other)}, {"response": target.round(1)}):
        assert "gather" not in " ".join(Trials.from_table(frame.assign(**change), "degrees").notes)
    named = Trials.from_table(frame.rename(columns={"uncued": "non_target_1"}), "degrees")
    assert "gather" not in " ".join(named.notes)
