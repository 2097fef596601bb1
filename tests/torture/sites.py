"""The calls in the code of lapsus that change the disk, found by reading it."""

import ast
from pathlib import Path

from lapsus import files
from torture.child import OURS

# What of lapsus.files changes the disk; whatever else does is lapsus.files' own.
WRITERS = {name for name in vars(files) if name.startswith("write_")}
WRITERS |= {"append_line", "make_folder", "own_files", "remove", "set_aside", "subfolder"}


def calls() -> dict[str, set[str]]:
    """ "file:line" of each call of a writer outside of lapsus.files → all of its lines, any of which a traceback may
    name."""
    found = {}
    for path in sorted(Path(OURS).rglob("*.py")):
        name = str(path.relative_to(OURS))
        if not name.startswith("files/"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and _called(node.func) in WRITERS:
                    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                    found[f"{name}:{node.lineno}"] = {f"{name}:{line}" for line in lines}
    return found


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):  # files.write_text(…), but not path.write_text(…)
        return function.attr if isinstance(function.value, ast.Name) and function.value.id == "files" else ""
    return function.id if isinstance(function, ast.Name) else ""


def missed(steps: set[tuple[str, str]]) -> tuple[int, list[str]]:
    """How many such calls there are, and which of them none of these steps came through."""
    seen = {line for _, place in steps for line in place.split(" < ")}
    every = calls()
    return len(every), [name for name, lines in every.items() if not lines & seen]
