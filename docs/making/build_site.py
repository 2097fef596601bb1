"""Builds the site: `python docs/making/build_site.py [FOLDER]` (`make docs`). Offline; any warning is an error.

Pages in docs/tutorials are run and show what came out, pages of the API, of the commands and of the changes are made
from the package, files of the project that a page names with ../ come along. Sphinx then turns Markdown into pages.
"""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from api import room_page
from blocks import blocks

ROOT = Path(__file__).resolve().parents[2]

_OUTSIDE = re.compile(r"\]\((?P<up>(?:\.\./)+)(?P<path>[\w./@-]+)\)")


def build(site: Path) -> None:
    """The whole site in a folder, which is emptied first."""
    work = ROOT / "build" / "site-source"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(ROOT / "docs", work, ignore=shutil.ignore_patterns("making", "__pycache__"))
    for page in sorted((work / "tutorials").glob("*.md")):
        began = time.monotonic()
        page.write_text(_with_outputs(page.read_text(), _run(page)))
        print(f"{page.name}: run in {time.monotonic() - began:.0f} s", flush=True)
    for name, text in {**_reference(), "changelog.md": (ROOT / "CHANGELOG.md").read_text()}.items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(text)
    for page in sorted(work.rglob("*.md")):
        page.write_text(_with_files(page, work))
    _place_the_rest(work)
    shutil.rmtree(site, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html"]
    subprocess.run(
        [*command, "-c", str(ROOT / "docs/making"), "-d", str(work.parent / "site-trees"), work, site], check=True
    )


def _run(page: Path) -> list[dict]:
    """The page's blocks in a process of their own, with the kernel wherever it was built."""
    environment = dict(os.environ)
    if any((ROOT / "src/lapsus/engine").glob("_native*")):
        environment["PYTHONPATH"] = str(ROOT / "src")
    command = [sys.executable, str(ROOT / "docs/making/run_page.py"), str(page), str(page.parent)]
    done = subprocess.run(command, cwd=page.parent, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{page.name} does not run:\n{done.stderr[-3000:]}")
    return json.loads((page.parent / "outputs.json").read_text())


def _with_outputs(markdown: str, outputs: list[dict]) -> str:
    """The page with what each of its Python blocks printed and drew below it."""
    parts, place, left = [], 0, iter(outputs)
    for block in blocks(markdown):
        if block.language != "python":
            continue
        output = next(left)
        parts.append(markdown[place : block.end])
        place = block.end
        if output.get("text", "").strip():
            parts.append(f"\n\n```text\n{output['text'].rstrip()}\n```\n")
        if output.get("html"):
            box = f'<div class="pst-scrollable-table-container">{output["html"]}</div>'
            parts.append(f"\n\n```{{raw}} html\n{box}\n```\n")
        parts += [f"\n\n![{picture['alt']}]({picture['file']})\n" for picture in output.get("pictures", [])]
    return "".join([*parts, markdown[place:]])


def _with_files(page: Path, work: Path) -> str:
    """The page's text, links to files outside of docs/ turned to their copies."""

    def turned(match: re.Match) -> str:
        target = (page.parent / match["up"] / match["path"]).resolve()
        if target.is_relative_to(work):
            return match[0]
        outside = ROOT / target.relative_to(work.parent)
        if not outside.is_file():
            sys.exit(f"{page.name} names {match['path']}, which is not a file of the project.")
        copied = work / "files" / outside.relative_to(ROOT)
        copied = copied.with_suffix(".txt") if copied.suffix == ".md" else copied  # or it would be a page
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(outside, copied)
        return f"]({os.path.relpath(copied, page.parent)})"

    return _OUTSIDE.sub(turned, page.read_text())


def _place_the_rest(work: Path) -> None:
    """Pages beside index.md that no table of contents names are science."""
    named = set(re.findall(r"^[\w/-]+$", "\n".join(page.read_text() for page in work.glob("*.md")), re.MULTILINE))
    rest = [page.stem for page in sorted(work.glob("*.md")) if page.stem not in named | {"index"}]
    science = work / "science.md"
    science.write_text(science.read_text().replace("recipe\n```", "\n".join(["recipe", *rest]) + "\n```"))


def _reference() -> dict[str, str]:
    """One page a room of the package, one for all commands, and the page that lists them."""
    import lapsus

    pages, rows = {}, []
    rooms = sorted(name for name, where in lapsus._WHERE.items() if where == "lapsus")
    for name in rooms:
        module = importlib.import_module(f"lapsus.{name}")
        pages[f"reference/{name}.md"] = room_page(module)
        rows.append(
            f"| [`lapsus.{name}`]({name}.md) | {' '.join((module.__doc__ or '').split(chr(10) * 2)[0].split())} |"
        )
    listed = "\n".join(["commands", *rooms])
    toctree = f"\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    head = (ROOT / "docs/making/reference.md").read_text()
    pages["reference/index.md"] = head + "\n".join(rows) + "\n" + toctree
    pages["reference/commands.md"] = _commands_page()
    return pages


def _commands_page() -> str:
    """--help of every command."""
    import click
    from typer.main import get_command

    from lapsus.cli import app

    def helps(command: click.Command, name: str, parent: click.Context | None = None) -> dict[str, str]:
        context = command.make_context(name, [], resilient_parsing=True, parent=parent, terminal_width=100)
        found = {} if parent is None else {context.command_path: command.get_help(context)}
        for child in getattr(command, "commands", {}).values():
            found |= helps(child, child.name, context)
        return found

    parts = [f"## {name}\n\n```text\n{text.strip()}\n```\n" for name, text in helps(get_command(app), "lapsus").items()]
    return "# Commands\n\nEvery command prints this with `--help`.\n\n" + "\n".join(parts)


if __name__ == "__main__":
    began = time.monotonic()
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site")
    print(f"Built in {time.monotonic() - began:.0f} s.")
