"""Pages of the reference, made from the package: its modules, its commands, and the keys of experiment files.

Docstrings are plain text with Markdown in it.
"""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import click
from pydantic import BaseModel
from typer.main import get_command

import lapsus
from lapsus.cli import app
from lapsus.training.experiment import Experiment, Noise, Stage
from lapsus.training.kinds import KINDS, locate

__all__ = ["reference_pages"]


def reference_pages() -> dict[str, str]:
    """File name → text of every page of the reference."""
    pages, rows = {}, []
    packages = sorted(name for name in lapsus.__all__ if inspect.ismodule(getattr(lapsus, name)))
    for name in packages:
        module = importlib.import_module(f"lapsus.{name}")
        pages[f"{name}.md"] = _package_page(module)
        meaning = " ".join((module.__doc__ or "").split("\n\n")[0].split())
        rows.append(f"| [`lapsus.{name}`]({name}.md) | {meaning} |")
    listed = "\n".join(["commands", "experiment", "/files", *packages])
    head = (Path(__file__).parent / "reference.md").read_text()
    pages["index.md"] = f"{head}{chr(10).join(rows)}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    pages["commands.md"] = _commands_page()
    pages["experiment.md"] = _experiment_page()
    return pages


def _commands_page() -> str:
    """--help of every command."""

    def helps(command: click.Command, name: str, parent: click.Context | None = None) -> dict[str, str]:
        context = command.make_context(name, [], resilient_parsing=True, parent=parent, terminal_width=100)
        found = {} if parent is None else {context.command_path: command.get_help(context)}
        for child in getattr(command, "commands", {}).values():
            found |= helps(child, child.name, context)
        return found

    parts = [f"## {name}\n\n```text\n{text.strip()}\n```\n" for name, text in helps(get_command(app), "lapsus").items()]
    head = "# Commands\n\n*For users of the command line.* Every command prints this with `--help`.\n\n"
    return head + "\n".join(parts)


def _experiment_page() -> str:
    """Keys of an experiment file, from the classes that read it."""
    parts = [
        "# Experiment files\n\n*For users who write experiment files.* An experiment is a TOML file, or a dictionary"
        " with the same keys. Unknown keys are errors. The table below is made from the classes that read the file;"
        " [how to train a network](../train.md) has an example.\n"
    ]
    for title, section in (("Top level", Experiment), ("[noise]", Noise), ("[[stage]]", Stage)):
        parts += [f"## {title}\n", text_of(section), _fields(section)]
    for section in ("task", "behaviour", "network", "objective"):
        parts.append(f"## Kinds of `{section}`\n\n| kind | keys and defaults |\n|---|---|")
        for kind in KINDS[section]:
            keys = inspect.signature(locate(section, kind)).parameters.values()
            shown = ", ".join(f"`{k.name}`" + ("" if k.default is k.empty else f" = {k.default}") for k in keys)
            parts.append(f"| `{kind}` | {shown.replace('|', chr(92) + '|')} |")
        parts.append("")
    return "\n".join(parts)


def _fields(section: type[BaseModel]) -> str:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for name, field in section.model_fields.items():
        kind = getattr(field.annotation, "__name__", str(field.annotation)).replace("|", "or")
        limits = [_limit(one) for one in field.metadata]
        default = "required" if field.is_required() else f"`{field.get_default()!r}`"
        rows.append(
            f"| `{name}` | {', '.join([kind, *filter(None, limits)])} | {default} | {field.description or ''} |"
        )
    return "\n".join(rows) + "\n"


def _limit(constraint: object) -> str:
    """A constraint of pydantic in words."""
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    return ", ".join(f"{sign} {getattr(constraint, key):,}" for key, sign in signs.items() if hasattr(constraint, key))


def _package_page(module: ModuleType) -> str:
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
