"""The code blocks of a Markdown page.

A comment in the line before a block says how it is treated: `<!-- not run: REASON -->` or `<!-- long -->`.
"""

import re
from dataclasses import dataclass

__all__ = ["Block", "blocks", "commands"]

_FENCE = re.compile(r"^```(?P<language>[\w-]*)[^\n]*\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^[ \t]*\n)(?P<code>(?:^ {4}\S[^\n]*\n)+)", re.MULTILINE)
_REASON = re.compile(r"<!-- not run: (.+?) -->\s*\Z")
_LONG = re.compile(r"<!-- long -->\s*\Z")
_PROGRAMS = ("lapsus ", "make ", "pip ", "python ", "cffconvert")


@dataclass(frozen=True)
class Block:
    """Code in a language, the line it starts at (from 1), its place in the text, and how it is treated."""

    language: str
    code: str
    line: int
    start: int
    end: int
    reason: str = ""
    long: bool = False


def blocks(text: str) -> list[Block]:
    """All fenced blocks, and indented ones that hold commands, in the order of the page."""
    found = [_block(text, match, match["language"]) for match in _FENCE.finditer(text)]
    fenced = [(block.start, block.end) for block in found]
    for match in _INDENTED.finditer(text):
        inside = any(start <= match.start("code") < end for start, end in fenced)
        if not inside and match["code"].strip().startswith(_PROGRAMS):
            found.append(_block(text, match, "sh"))
    return sorted(found, key=lambda block: block.start)


def _block(text: str, match: re.Match, language: str) -> Block:
    if not language and match["code"].startswith(_PROGRAMS):
        language = "sh"
    before = text[: match.start()]
    reason = _REASON.search(before)
    line = text.count("\n", 0, match.start("code")) + 1
    code = (
        "\n".join(row.removeprefix("    ") for row in match["code"].split("\n")) if language == "sh" else match["code"]
    )
    return Block(
        language, code, line, match.start(), match.end(), reason[1] if reason else "", bool(_LONG.search(before))
    )


def commands(block: Block) -> list[str]:
    """Its commands, one a line, without prompts and comments."""
    lines = (re.sub(r"\s+#\s.*$", "", line.strip().removeprefix("$ ")) for line in block.code.split("\n"))
    return [line for line in lines if line and not line.startswith("#")]
