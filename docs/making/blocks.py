"""The code blocks of a Markdown page."""

import re
from dataclasses import dataclass

__all__ = ["Block", "blocks", "commands"]

_FENCE = re.compile(r"^```(?P<language>[\w-]*)[^\n]*\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^[ \t]*\n)(?P<code>(?:^ {4}\S[^\n]*\n)+)", re.MULTILINE)
_PROGRAMS = ("lapsus ", "make ", "pip ", "python ", "cffconvert")


@dataclass(frozen=True)
class Block:
    """Code in a language, the line it starts at (from 1), and its place in the text."""

    language: str
    code: str
    line: int
    start: int
    end: int


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
    line = text.count("\n", 0, match.start("code")) + 1
    code = match["code"]
    if language == "sh":
        code = "\n".join(row.removeprefix("    ") for row in code.split("\n"))
    return Block(language, code, line, match.start(), match.end())


def commands(block: Block) -> list[str]:
    """Its commands, one per line, without prompts and comments."""
    lines = (re.sub(r"\s+#\s.*$", "", line.strip().removeprefix("$ ")) for line in block.code.split("\n"))
    return [line for line in lines if line and not line.startswith("#")]
