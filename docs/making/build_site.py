"""Builds the site: `python docs/making/build_site.py [FOLDER]` (`make docs`). Offline; any warning is an error.

Pages in docs/tutorials are run and show what came out. Pages of the API, of the commands and of experiment files are
made from the package. Studies, the changelog and the page for contributors come along. Sphinx makes pages of it all.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from blocks import blocks
from reference import reference_pages

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "site-source"
# Folders of the project that are part of the site, and where in it.
PLACES = {ROOT / "docs": WORK, ROOT / "studies": WORK / "studies"}
# A link to a file, with its part of a page.
LINK = re.compile(r"(?<=\]\()(?P<path>[\w./@-]+)(?P<part>#[\w-]+)?(?=\))")


def build(site: Path) -> None:
    """The whole site in a folder, which is emptied first."""
    shutil.rmtree(WORK, ignore_errors=True)
    for source, place in PLACES.items():
        shutil.copytree(source, place, ignore=shutil.ignore_patterns("making", "__pycache__"))
    for page in sorted((WORK / "tutorials").glob("*.md")):
        began = time.monotonic()
        page.write_text(_with_outputs(page.read_text(), _run(page)))
        print(f"{page.name}: run in {time.monotonic() - began:.0f} s", flush=True)
    for page in sorted(WORK.rglob("*.md")):
        _turn_links(page, _origin(page))
    for name, source in {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}.items():
        page = WORK / f"{name}.md"
        page.write_text((ROOT / source).read_text())
        _turn_links(page, ROOT / source)
    for name, text in reference_pages().items():
        (WORK / "reference").mkdir(exist_ok=True)
        (WORK / "reference" / name).write_text(text)
    studies = WORK / "studies" / "README.md"
    inner = sorted(str(page.relative_to(studies.parent)) for page in studies.parent.glob("*/*.md"))
    studies.write_text(studies.read_text() + "\n```{toctree}\n:hidden:\n\n" + "\n".join(inner) + "\n```\n")
    shutil.rmtree(site, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html"]
    command += ["-c", str(ROOT / "docs/making"), "-d", str(WORK.parent / "site-trees")]
    subprocess.run([*command, WORK, site], check=True)


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
    parts, place = [], 0
    python = [block for block in blocks(markdown) if block.language == "python"]
    for block, output in zip(python, outputs, strict=True):
        parts.append(markdown[place : block.end])
        place = block.end
        if output["text"].strip():
            parts.append(f"\n\n```text\n{output['text'].rstrip()}\n```\n")
        if output["html"]:
            box = f'<div class="pst-scrollable-table-container">{output["html"]}</div>'
            parts.append(f"\n\n```{{raw}} html\n{box}\n```\n")
        parts += [f"\n\n![{picture['alt']}]({picture['file']})\n" for picture in output["pictures"]]
    return "".join([*parts, markdown[place:]])


def _origin(page: Path) -> Path:
    """Where a page of the site is in the project."""
    inside = page.relative_to(WORK)
    return ROOT / inside if inside.parts[0] == "studies" else ROOT / "docs" / inside


def _turn_links(page: Path, origin: Path) -> None:
    """Links to files of the project lead to their places in the site; files that have none yet are copied into it."""

    def turned(match: re.Match) -> str:
        target = (origin.parent / match["path"]).resolve()
        if not target.exists():
            return match[0]  # a page that is made later
        inside = next((source for source in PLACES if target.is_relative_to(source)), None)
        if inside is not None:
            place = PLACES[inside] / target.relative_to(inside)
        else:
            place = WORK / "files" / target.relative_to(ROOT)
            place = place.with_suffix(".txt") if place.suffix == ".md" else place  # or it would be a page
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, place)
        return os.path.relpath(place, page.parent) + (match["part"] or "")

    page.write_text(LINK.sub(turned, page.read_text()))


if __name__ == "__main__":
    began = time.monotonic()
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site")
    print(f"Built in {time.monotonic() - began:.0f} s.")
