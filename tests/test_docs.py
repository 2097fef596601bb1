"""What README and the pages show can be typed: commands exist with these options, code runs, links lead somewhere.

Tutorials are run by the build of the site. Of the other pages every Python block is run, unless NOT_RUN says why not,
and the commands that RUN names. The reader's table is the synthetic observer's.
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
DOCS = sorted(page for page in (ROOT / "docs").rglob("*.md") if "making" not in page.parts)
PAGES = [ROOT / "README.md", *DOCS]
OTHERS = [page for page in PAGES if page.parent.name != "tutorials"]
STUDIES = sorted((ROOT / "studies").rglob("*.md"))
# What pages take for granted after their first lines.
GRANTED = 'import lapsus\ntrials = lapsus.read_trials("trials.csv")\n'

# First line of a block → how it is run. Other commands have tests of their own; here their spelling is checked.
RUN = {"lapsus zoo": "long", "lapsus doctor experiment.csv": "slow"}
# (page, first line of a Python block) → why it is not run.
NOT_RUN = {
    ("fit.md", "fit = lapsus.fit(trials)  # compares models, keeps one"): "tests of the fit take each of these",
    ("recordings.md", "from lapsus.recordings import Session, count_spikes, read_recording"): (
        "test_recordings.py makes such files"
    ),
    ("report.md", "import lapsus"): "ten minutes of training; tests discover with small sizes",
    ("your-own-task.md", "@dataclass(frozen=True)"): "tutorials/own-task.md runs this class",
}
LONG = {("README.md", "import lapsus"), ("train.md", "import lapsus")}
LONG.add(("analyse.md", 'found = lapsus.analyse(lapsus.load("feature-smooth-0"))'))


def _first(page: Path, block: Block) -> tuple[str, str]:
    return page.name, block.code.split("\n")[0]


def _blocks(pages: list[Path], *languages: str) -> list:
    found = [(page, block) for page in pages for block in blocks(page.read_text()) if block.language in languages]
    return [
        pytest.param(
            page,
            block,
            id=f"{page.name}:{block.line}",
            marks=[pytest.mark.long]
            if _first(page, block) in LONG or RUN.get(_first(page, block)[1]) == "long"
            else [],
        )
        for page, block in found
    ]


def test_what_is_not_run_is_there():
    """An exception for a block that was changed or removed is an exception for nothing."""
    there = {_first(page, block) for page in OTHERS for block in blocks(page.read_text())}
    assert set(NOT_RUN) <= there and there >= LONG and set(RUN) <= {line for _, line in there}


def test_pages_speak_to_readers_alone():
    """No comments for machines, and few words."""
    assert not [page.name for page in PAGES if "<!--" in page.read_text()]
    assert sum(len(page.read_text().split()) for page in DOCS) <= 20_000
    how_to = re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs" / "how-to.md").read_text())
    assert len(how_to) >= 8 and all(len((ROOT / "docs" / name).read_text().split()) < 900 for name in how_to)


@pytest.mark.parametrize(
    "page", [*PAGES, *STUDIES, ROOT / "CONTRIBUTING.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_links_lead_somewhere(page):
    made_by_the_site = ("reference/", "contributing.md", "actions/")
    for link in re.findall(r"\]\(([\w./@-]+)(?:#[\w-]+)?\)", page.read_text()):
        if not any(name in link for name in made_by_the_site):
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize("folder", sorted(path.name for path in (ROOT / "studies").iterdir() if path.is_dir()))
def test_a_study_has_a_short_answer_and_one_figure(folder):
    if folder == "__pycache__":
        pytest.skip("not a study")
    text = (ROOT / "studies" / folder / "README.md").read_text()
    answer = text[text.index("**Answer.**") : text.index("![")]
    assert len(answer.split()) <= 300 and text.count("![") == 1 and "## Run it" in text
    assert f"({folder}/README.md)" in (ROOT / "studies" / "README.md").read_text()


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
    if _first(page, block) in NOT_RUN:
        pytest.skip(NOT_RUN[_first(page, block)])
    _run((GRANTED if "import lapsus" not in block.code else "") + block.code, tmp_path, warm)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page, block", [one for one in _blocks(OTHERS, "sh") if one.values[1].code.split("\n")[0] in RUN]
)
def test_commands_run(page: Path, block: Block, tmp_path, warm):
    for line in commands(block):
        program, *arguments = shlex.split(line)
        assert program == "lapsus"
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


@pytest.mark.parametrize(
    "start, used",
    [pytest.param({}, True, marks=pytest.mark.slow), pytest.param({"start_from": None}, False, marks=pytest.mark.long)],
)
def test_the_example_of_an_experiment_uses_the_cue(start, used, tmp_path):
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
