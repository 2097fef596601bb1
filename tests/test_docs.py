"""What README and the pages say can be typed: commands exist with these options, code runs, files are what is printed.

Tutorials are run by the build of the site; here, every block of the other pages that does not say why it is not run,
where the reader's table is the synthetic observer's. What takes long is in `make long`.
"""

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest
from blocks import Block, blocks, commands
from typer.main import get_command
from version import versions
from warm import Warm

from lapsus import Run, evaluate, read_experiment, train
from lapsus.cli import app
from lapsus.trials.observer import observer_path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = [page for page in PAGES if page.parent.name != "tutorials"]
# What pages of the science take for granted after their first lines.
GRANTED = 'import lapsus\ntrials = lapsus.read_trials("trials.csv")\n'


def _blocks(pages: list[Path], *languages: str) -> list:
    found = [(page, block) for page in pages for block in blocks(page.read_text()) if block.language in languages]
    return [
        pytest.param(page, block, id=f"{page.name}:{block.line}", marks=[pytest.mark.long] if block.long else [])
        for page, block in found
    ]


@pytest.mark.parametrize("page, block", _blocks(PAGES, "sh", "console", "bash", ""))
def test_commands_exist_with_these_options(page: Path, block: Block):
    for line in commands(block):
        if not line.startswith("lapsus ") or any(word.isupper() for word in line.split()):
            continue
        words = shlex.split(line)
        command, context = get_command(app), None
        while isinstance(command, click.Group):
            context = click.Context(command, info_name=words[0], parent=context)
            word = next((word for word in words[1:] if word in command.commands), None)
            if word is None:
                break
            words = words[words.index(word) :]
            command = command.commands[word]
        if not isinstance(command, click.Group):
            command.make_context(words[0], words[1:], parent=context)


@pytest.mark.parametrize("page, block", _blocks(PAGES, "python"))
def test_code_compiles(page: Path, block: Block):
    compile(block.code, f"{page.name}:{block.line}", "exec")


def _run(code: str, folder: Path, warm: Warm) -> None:
    for name in ("trials.csv", "experiment.csv"):
        (folder / name).write_bytes(observer_path().read_bytes())
    done = warm.run(code, cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page, block", _blocks(OTHERS, "python"))
def test_code_runs(page: Path, block: Block, tmp_path, warm):
    if block.reason:
        pytest.skip(block.reason)
    _run((GRANTED if "import lapsus" not in block.code else "") + block.code, tmp_path, warm)


@pytest.mark.slow
@pytest.mark.parametrize("page, block", _blocks(OTHERS, "sh"))
def test_commands_run(page: Path, block: Block, tmp_path, warm):
    if block.reason:
        pytest.skip(block.reason)
    for line in commands(block):
        program, *arguments = shlex.split(line)
        assert program == "lapsus", f"{line}: say why it is not run (docs/making/blocks.py)"
        _run(f"import sys\nfrom lapsus.cli import main\nsys.argv[1:] = {arguments!r}\nmain()", tmp_path, warm)


NAMED = {name for page in PAGES for name in re.findall(r"\blapsus(?:\.[A-Za-z_]\w*)+", page.read_text())}
ROOMS = sorted({name.split(".")[1] for name in NAMED if name.count(".") > 1})


@pytest.mark.slow
@pytest.mark.parametrize("room", ["", *ROOMS])
def test_what_pages_name_is_there_after_import(room, tmp_path, warm):
    """The names of a room in a process of their own, where nothing else has imported its modules yet."""
    chosen = [name for name in NAMED if (name.split(".")[1] if name.count(".") > 1 else "") == room]
    code = f"import lapsus, operator\nfor name in {sorted(chosen)!r}:\n    operator.attrgetter(name[7:])(lapsus)"
    done = warm.run(code, cwd=tmp_path)
    assert chosen and done.returncode == 0, done.stderr


def test_the_experiment_of_readme_is_the_file():
    printed = [block.code for block in blocks((ROOT / "README.md").read_text()) if block.language == "toml"]
    assert printed == [(ROOT / "examples" / "mine.toml").read_text()]


@pytest.mark.parametrize(
    "start, used",
    [pytest.param({}, True, marks=pytest.mark.slow), pytest.param({"start_from": None}, False, marks=pytest.mark.long)],
)
def test_the_experiment_of_readme_uses_the_cue(start, used, tmp_path):
    """A fiftieth of its updates, a quarter as large: far from its target, but not with any item at random, which is
    what the same training without its start does."""
    table = tomllib.loads((ROOT / "examples" / "mine.toml").read_text()) | start
    for stage in table["stage"]:
        stage["updates"] //= 50
        stage |= {"conditions": 16, "trials": 8, "warmup": 5}
    run = Run.create(tmp_path / "run", read_experiment(table))
    train(run, progress=False)
    curve = evaluate(run.model(), conditions=512, trials=8)["swap_curve"]
    swaps = sum(point["likelihood"] for point in curve) / len(curve)
    assert swaps < 0.25 if used else swaps > 0.35


def test_the_version_is_the_same_everywhere():
    assert len(set(versions().values())) == 1, versions()


def test_tables_of_claims_say_what_claims_toml_says():
    """docs/making/tables.py makes them; a threshold that is changed by hand in one place alone is seen."""
    import tables

    page = (ROOT / "docs" / "claims.md").read_text()
    assert tables.rules() in page and tables.changes() in page


def test_tables_of_claims_say_what_the_studies_hold():
    import tables

    page = (ROOT / "docs" / "claims.md").read_text()
    assert tables.results(tables.judged("paper")) in page
    assert tables.each(tables.judged("paper")) in page and tables.each(tables.judged("persistent")) in page


def test_tables_are_put_between_their_comments(tmp_path):
    import pandas as pd
    import tables

    from lapsus.paper.verdicts import judge_networks

    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a -->\nold\n<!-- end a -->\nafter\n")
    tables.put(page, "a", tables.markdown(["x"], [["1 | 2"]]))
    assert page.read_text() == "before\n<!-- a -->\n| x |\n| --- |\n| 1 \\| 2 |\n<!-- end a -->\nafter\n"
    with pytest.raises(SystemExit, match="has no"):
        tables.put(page, "b", "")
    row = {"network": "n", "half_time": 20.04, "half_low": 19.0, "half_high": 21.0, "carried_by_x": 0.931}
    row |= {"fixed_points": 1, "lifetime": float("nan"), "error_type": "no mark", "left_out": "swap_axis"}
    line = tables.mechanism(pd.DataFrame([row])).splitlines()[-1]
    assert "| 20.0 [19.0, 21.0] |" in line and "| 93 % |" in line and "| stay |" in line and "swap_axis" in line
    said = tables.results([judge_networks("two-rings", {"n": (0.3, 0.2, 0.4)})])
    assert "| `two-rings` | 0.3 | 0.2 to 0.4 | > 0.5 | 1 | 1 | 0 | does not hold in one seed |" in said
    assert "In the one seed that there is: 0 hold, 1 do not, 0 undecided." in said
