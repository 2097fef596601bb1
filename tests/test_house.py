"""What `make check` holds, seen to fail: each tool on a copy in which one thing is wrong."""

import ast
import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import conftest
import pytest

import lapsus

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "lapsus"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())


@cache
def tree_of(path):
    return ast.parse(path.read_text())


def run(tool, *arguments, cwd):
    """Exit code and what was printed; a tool that is not installed skips the test."""
    if not (found := shutil.which(tool, path=str(Path(sys.executable).parent))):
        pytest.skip(f"{tool} is not installed (the extra `dev` has it)")
    done = subprocess.run([found, *map(str, arguments)], cwd=cwd, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path):
    """A few rooms of the package, with the settings of all tools."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "src" / "lapsus").mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "circular.py", "rng.py"):
        shutil.copy(PACKAGE / name, tmp_path / "src" / "lapsus")
    return tmp_path


def test_an_unformatted_line_is_refused(copy):
    assert run("ruff", "format", "--check", ".", cwd=copy)[0] == 0
    with (copy / "src" / "lapsus" / "rng.py").open("a") as file:
        file.write("\n\nSEED = {'a':1}\n")
    code, said = run("ruff", "format", "--check", ".", cwd=copy)
    assert code == 1 and "rng.py" in said


def test_a_name_that_nothing_uses_is_refused(copy):
    assert run("ruff", "check", ".", cwd=copy)[0] == 0
    streams = copy / "src" / "lapsus" / "rng.py"
    streams.write_text(streams.read_text().replace("import hashlib\n", "import hashlib\nimport json\n"))
    code, said = run("ruff", "check", ".", cwd=copy)
    assert code == 1 and "F401" in said


@pytest.mark.slow
def test_a_wrong_type_is_refused(copy):
    """On one file without torch."""
    room = copy / "src" / "lapsus" / "room.py"
    room.write_text("def seed(name: str) -> int:\n    return len(name)\n")
    arguments = ("--config-file", copy / "pyproject.toml", "--no-incremental", "--follow-imports=skip", room)
    code, said = run("mypy", *arguments, cwd=copy)
    assert code == 0, said
    room.write_text("def seed(name: str) -> int:\n    return name\n")
    code, said = run("mypy", *arguments, cwd=copy)
    assert code == 1 and "Incompatible return value type" in said


def test_imports_of_the_tree_as_it_is_go_down(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE.parent))
    code, said = run("lint-imports", "--no-cache", cwd=ROOT)
    assert code == 0, said


@pytest.mark.parametrize(
    "where, line, message",
    [
        ("errors.py", "from lapsus import cli\n", "lapsus.errors -> lapsus.cli"),
        ("rng.py", "def late():\n    from lapsus.mechanism import planes\n", "lapsus.rng -> lapsus.mechanism"),
        ("attic.py", "", "attic"),
    ],
)
def test_an_import_that_goes_up_is_refused(where, line, message, tmp_path, monkeypatch):
    """At the top of a file or inside a function; and so is a room that is not in the list."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ignored = shutil.ignore_patterns("*.so", "*.safetensors", "*.json", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "src" / "lapsus", ignore=ignored)
    with (tmp_path / "src" / "lapsus" / where).open("a") as file:
        file.write(line)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    code, said = run("lint-imports", "--no-cache", cwd=tmp_path)
    assert code == 1 and message in said, said


def test_make_check_runs_every_tool_and_what_runs_before_a_change_runs_it():
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    for tool in ("ruff check .", "ruff format --check .", "lint-imports", "mypy"):
        assert f"$(BIN)/{tool}\n" in recipe, tool
    assert "\nmake check\n" in (ROOT / ".ci" / "run").read_text()
    assert "run: make check\n" in (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert SETTINGS["tool"]["mypy"]["packages"] == ["lapsus"]


def test_what_is_long_is_slow_too(request):
    """So that `-m "not slow"` runs neither."""
    item = pytest.Function.from_parent(request.node.parent, name="test_made", callobj=lambda: None)
    conftest.pytest_collection_modifyitems([item])
    assert not item.get_closest_marker("slow")
    item.add_marker("long")
    conftest.pytest_collection_modifyitems([item])
    assert item.get_closest_marker("slow")


def rooms():
    """Folders and modules of the package, without what holds no code."""
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    return modules | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def layers():
    """The rooms in the order of the contract, lowest first."""
    contract, _ = SETTINGS["tool"]["importlinter"]["contracts"]
    return contract["layers"][::-1]


def test_the_contract_names_every_room():
    assert set(layers()) == rooms() and len(layers()) == len(set(layers()))


def test_the_picture_of_the_house_is_true():
    """The rooms that docs/design.md draws are those of the tree, and their order is that of the contract."""
    picture = re.search(r"```\nlapsus/\n(.*?)```", (ROOT / "docs" / "design.md").read_text(), re.DOTALL)[1]
    drawn = [name for line in picture.splitlines() for name in re.split(r"\s{2,}", line.strip())[0].split()]
    folders = {name.rstrip("/") for name in drawn if name.endswith("/")}
    assert folders == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert [name.rstrip("/") for name in drawn] == layers()


@pytest.mark.slow
def test_our_own_modules_are_imported_at_the_top():
    """A lazy import is for a heavy package of others; commands, which must start at once, are what it is for."""
    late = []
    light = {"lapsus", *sys.stdlib_module_names} - {"fcntl", "resource"}  # those two are not there on every system
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] in ("cli", "__init__.py"):
            continue
        body = tree_of(path).body
        at_the_top = {*body, *(node for one in body if isinstance(one, (ast.If, ast.Try)) for node in one.body)}
        for node in set(ast.walk(tree_of(path))) - at_the_top:
            modules = [node.module] if isinstance(node, ast.ImportFrom) else []
            modules = [name.name for name in node.names] if isinstance(node, ast.Import) else modules
            late += [f"{path.relative_to(PACKAGE)}:{node.lineno}" for name in modules if name.split(".")[0] in light]
    assert not late


def test_no_module_imports_itself_by_a_detour():
    """Within a room either, inside functions too; what is imported for its types alone is not imported."""
    grimp = pytest.importorskip("grimp", reason="grimp is not installed (the extra `dev` has it)")
    graph = grimp.build_graph("lapsus", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()  # names the modules of a cycle
    imports["lapsus.errors"] = {"lapsus.files.writing"}
    with pytest.raises(CycleError, match=r"lapsus\.errors"):
        TopologicalSorter(imports).prepare()


def test_only_mechanism_joins_a_network_with_a_statistic():
    """Above it, no function both simulates and calls a statistic of activity: it takes what a question found."""
    joined = []
    for room in layers()[layers().index("mechanism") + 1 :]:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            tree = tree_of(path)
            imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
            analyses = {
                name.asname or name.name
                for node in imported
                if (node.module or "").startswith("lapsus.mechanism.") and node.module != "lapsus.mechanism.designs"
                for name in node.names
            }
            for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
                called = {
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                    for node in ast.walk(function)
                    if isinstance(node, ast.Call)
                }
                if called & analyses and called & {"simulate", "responses", "respond", "simulate_design", "rollout"}:
                    joined.append(f"{path.relative_to(PACKAGE)}: {function.name}")
    assert not joined


def test_everything_that_is_offered_is_there():
    for name in lapsus.__all__:
        assert getattr(lapsus, name) is not None, name
    assert set(dir(lapsus)) == set(lapsus.__all__)
    with pytest.raises(AttributeError, match="attribute nothing"):
        lapsus.nothing


def silent_names(tree):
    """Functions, classes and their members without a docstring that are offered: in `__all__`, or public in a module
    that has none; of overloads, what they are overloads of says it."""
    lists = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    offered = ast.literal_eval(lists[0]) if lists and isinstance(lists[0], ast.List) else None
    named = (ast.FunctionDef, ast.ClassDef)
    for node in (node for node in tree.body if isinstance(node, named)):
        if node.name.startswith("_") if offered is None else node.name not in offered:
            continue
        members = node.body if isinstance(node, ast.ClassDef) else []
        shown = [one for one in members if isinstance(one, named) and one.name[0] != "_"]
        yield from [node.name] * (not ast.get_docstring(node))
        for one in shown:
            overload = any(ast.unparse(decorator) == "overload" for decorator in one.decorator_list)
            yield from [f"{node.name}.{one.name}"] * (not overload and not ast.get_docstring(one))


def test_every_public_function_and_class_says_what_it_does():
    silent = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in silent_names(tree_of(path))
    ]
    assert not silent
    made = "def f(): ...\ndef _g(): ...\nclass A:\n  'It.'\n  def b(self): ...\n  def _c(self): ..."
    assert list(silent_names(ast.parse(made))) == ["f", "A.b"]
    assert list(silent_names(ast.parse(f"__all__ = ['_g']\n{made}"))) == ["_g"]


def test_modules_do_not_share_names_with_what_they_offer():
    """`from lapsus.evaluation import evaluate` must not be a function in one place and a module in another."""
    for room in sorted({path.parent for path in PACKAGE.glob("*/__init__.py")}):
        offered = getattr(importlib.import_module(f"lapsus.{room.name}"), "__all__", [])
        modules = {path.stem for path in room.glob("*.py")} | {path.parent.name for path in room.glob("*/__init__.py")}
        assert not modules & set(offered), room.name


def test_workflows_name_their_actions_by_commit():
    """A tag can be moved to other code."""
    used = [
        (path.name, found)
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for found in re.findall(r"uses:\s*(\S+)", path.read_text())
    ]
    assert used and [one for one in used if not re.fullmatch(r"\./.*|[\w./-]+@[0-9a-f]{40}", one[1])] == []


def test_files_are_written_in_one_place():
    """What is written elsewhere is not flushed, not renamed into its place, and no fault of the campaign meets it."""
    direct = re.compile(
        r"\.write_(text|bytes)\(|\.to_(csv|parquet|netcdf)\((?!index|buffer)\w|\bopen\([^)]*[\"'][wax]b?[\"']"
    )
    # Who works on a member says so in a file that means nothing after a crash.
    elsewhere = {PACKAGE / "sweep" / "holders.py", *(PACKAGE / "files").iterdir()}
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        if path not in elsewhere
        for line in path.read_text().splitlines()
        if direct.search(line)
    ]
    assert found == []
