"""Is the version the same wherever it is written? An argument (a tag such as v0.2.0) must name it too."""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def versions() -> dict[str, str]:
    """file → the version it names."""
    return {
        "src/lapsus/__init__.py": _found(r'^__version__ = "(.+)"$', "src/lapsus/__init__.py"),
        "CITATION.cff": _found(r"^version: (.+)$", "CITATION.cff"),
        "codemeta.json": json.loads((ROOT / "codemeta.json").read_text())["version"],
        "CHANGELOG.md": _found(r"^## (\d\S*)", "CHANGELOG.md"),
    }


def _found(pattern: str, name: str) -> str:
    match = re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)
    return match.group(1) if match else "none"


if __name__ == "__main__":
    seen = versions() | ({"tag": sys.argv[1].removeprefix("v")} if sys.argv[1:] else {})
    for name, version in seen.items():
        print(f"{version:12}{name}")
    sys.exit(len(set(seen.values())) != 1)
