"""Pages of the API from docstrings, which are plain text with Markdown in it."""

import importlib
import inspect
import pkgutil
import re
from types import ModuleType

__all__ = ["room_page", "text_of"]


def room_page(module: ModuleType) -> str:
    """A package's modules, or a module: signatures and docstrings of what is public."""
    parts = [f"# {module.__name__}\n", text_of(module)]
    if hasattr(module, "__path__"):
        names = [name for _, name, _ in pkgutil.iter_modules(module.__path__) if not name.startswith("_")]
        for name in names:
            inner = importlib.import_module(f"{module.__name__}.{name}")
            parts += [f"## {inner.__name__}\n", text_of(inner), *_members(inner)]
    else:
        parts += _members(module, "##")
    return "\n".join(parts)


def _members(module: ModuleType, heading: str = "###") -> list[str]:
    parts = []
    for name in getattr(module, "__all__", []):
        member = getattr(module, name)
        own = getattr(member, "__module__", None) == module.__name__
        if own and (inspect.isclass(member) or inspect.isroutine(member)):
            parts += [f"{heading} {name}\n", _signature(name, member), text_of(member)]
            if inspect.isclass(member):
                parts += _methods(member)
    return parts


def _methods(owner: type) -> list[str]:
    parts = []
    for name, member in vars(owner).items():
        inner = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if name.startswith("_") or not inspect.getdoc(member):
            continue
        if isinstance(member, property):
            parts += [f"**`.{name}`**\n", text_of(member)]
        elif inspect.isroutine(inner):
            parts += [f"**`.{name}{_arguments(inner)}`**\n", text_of(member)]
    return parts


def _signature(name: str, member: object) -> str:
    kind = "class" if inspect.isclass(member) else "def"
    return f"```python\n{kind} {name}{_arguments(member)}\n```\n"


def _arguments(member: object) -> str:
    try:
        text = str(inspect.signature(member))
    except (TypeError, ValueError):
        return "(...)"
    text = re.sub(r"(?:typing\.)?Annotated\[([^<>]+?), <[^>]*>\]", r"\1", text)
    text = re.sub(r"<(?:factory|object|function|class)[^<>]*>", "...", text)
    return re.sub(
        r"\b(?:torch|pathlib|numpy|typing|collections\.abc|pandas\.core\.frame|lapsus(?:\.[a-z_]+)+)\.(?=[A-Z])",
        "",
        text,
    )


def text_of(member: object) -> str:
    """The docstring as Markdown: examples and what is aligned in columns stay as they are written."""
    parts, example = [], False
    for paragraph in (inspect.getdoc(member) or "").split("\n\n"):
        lines = paragraph.split("\n")
        example = paragraph.lstrip().startswith(">>>")
        if example:
            parts.append(f"```pycon\n{paragraph}\n```")
        elif any(re.search(r"\S {2,}\S", line) or line.startswith("    ") for line in lines):
            parts.append(f"```text\n{paragraph}\n```")
        else:
            parts.append(" ".join(lines).replace("<", "&lt;").replace("[", "\\["))
    return "\n\n".join(parts) + "\n"
