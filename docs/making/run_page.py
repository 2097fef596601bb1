"""Runs the Python blocks of a page from top to bottom in one process, as a notebook would.

    python docs/making/run_page.py PAGE.md FOLDER

writes FOLDER/outputs.json: for each block what it printed, what its last expression is, and its pictures (SVG files in
FOLDER), whose description is the comment `# picture: …` in the block.
"""

import ast
import contextlib
import io
import json
import sys
from pathlib import Path

import matplotlib
from blocks import Block, blocks

matplotlib.use("agg")
matplotlib.rcParams["svg.hashsalt"] = "lapsus"


def run(page: Path, folder: Path) -> list[dict]:
    """The outputs of the page's Python blocks, in order."""
    names: dict = {"__name__": "page"}
    outputs = []
    for number, block in enumerate(block for block in blocks(page.read_text()) if block.language == "python"):
        outputs.append(_output(block, names, page, folder, number))
    return outputs


def _output(block: Block, names: dict, page: Path, folder: Path, number: int) -> dict:
    from matplotlib import pyplot as plt

    tree = ast.parse(block.code, f"{page.name}, block at line {block.line}")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, page.name, "exec"), names)
        value = eval(compile(ast.Expression(last.value), page.name, "eval"), names) if last else None
    output = {"text": printed.getvalue(), "html": "", "pictures": []}
    if value is not None and not _is_drawing(value):
        if hasattr(value, "_repr_html_"):
            output["html"] = value._repr_html_()
        else:
            output["text"] += f"{value!r}\n"
    told = [line.removeprefix("# picture: ") for line in block.code.split("\n") if line.startswith("# picture: ")]
    for index, figure in enumerate(plt.get_fignums()):
        if index >= len(told):
            raise SystemExit(f"{page.name}, line {block.line}: a picture without a description (# picture: …)")
        name = f"{page.stem}-{number + 1}-{index + 1}.svg"
        plt.figure(figure).savefig(folder / name, metadata={"Date": None})
        output["pictures"].append({"file": name, "alt": told[index]})
    plt.close("all")
    return output


def _is_drawing(value: object) -> bool:
    kind = type(value).__module__
    return kind.startswith("matplotlib") or (isinstance(value, list) and value != [] and _is_drawing(value[0]))


if __name__ == "__main__":
    source, target = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    target.mkdir(parents=True, exist_ok=True)
    made = run(source, target)
    (target / "outputs.json").write_text(json.dumps(made))
