"""What `kind` may name: a class of ours, by a short name, or a class of your own as "module:Class".

A file that names a class decides what is run, so nothing is imported before it is looked at. Names of ours are a list;
of modules in the working folder the source is read first; for anything else the user must say `trust=True`. A class is
taken only if it has what its section needs.
"""

import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lapsus.errors import LapsusError
from lapsus.files import read_text, short

__all__ = ["KINDS", "check_trust", "locate"]

KINDS = {
    "task": {
        "index-cued": "lapsus.tasks.delayed_estimation:IndexCued",
        "index-cued-attended": "lapsus.tasks.attention:AttendedIndexCued",
        "feature-cued": "lapsus.tasks.delayed_estimation:FeatureCued",
        "feature-cued-like": "lapsus.tasks.delayed_estimation:FeatureCuedLike",
        "cue-combination": "lapsus.tasks.cue_combination:CueCombination",
    },
    "behaviour": {
        "bns": "lapsus.behaviour.bns:BNS",
        "attended-swap": "lapsus.behaviour.attention:AttendedSwap",
        "causal-inference": "lapsus.behaviour.causal_inference:CausalInference",
    },
    "behaviour.swap": {
        "none": "lapsus.behaviour.swap:NoSwap",
        "constant": "lapsus.behaviour.swap:ConstantSwap",
        "smooth": "lapsus.behaviour.swap:SmoothSwap",
        "tabulated": "lapsus.behaviour.swap:TabulatedSwap",
    },
    "network": {
        "dendritic": "lapsus.networks.dendritic:DendriticTree",
        "point": "lapsus.networks.dendritic:PointNeurons",
        "two-layer": "lapsus.networks.two_layer:TwoLayer",
    },
    "objective": {
        "diffusion": "lapsus.training.objectives:Diffusion",
        "energy": "lapsus.training.objectives:Energy",
        "task-optimal": "lapsus.training.objectives:TaskOptimal",
        "sample-mse": "lapsus.training.objectives:SampleMSE",
    },
}
# What a class of each section must have; the rest of its protocol can be seen of an object alone.
_NEEDED = {
    "task": ("sample", "stimuli", "encoder", "table"),
    "behaviour": ("sample", "measures"),
    "behaviour.swap": ("__call__",),
    "network": ("drive", "biases", "F"),
    "objective": ("__call__",),
}
# Kinds outside of lapsus that the user said to trust, in this process.
_trusted: set[str] = set()


def _of_ours(section: str, kind: str) -> str | None:
    """ "module:Class" of a kind of ours. Older versions wrote classes with their module, which may have moved since:
    their name decides, and nothing is looked up in the package by a name from a file."""
    known = KINDS.get(section, {})
    if kind.split(":")[0].split(".")[0] == "lapsus":
        return next((path for path in known.values() if path.split(":")[1] == kind.partition(":")[2]), None)
    return known.get(kind)


def _kinds(table: Any, section: str = "") -> Iterator[tuple[str, str]]:
    """Section and kind of everything in the table of an experiment that names a class."""
    if isinstance(table, dict):
        if isinstance(kind := table.get("kind"), str):
            yield section, kind
        for key, value in table.items():
            # Stages hold an objective and perhaps a task and a behaviour of their own.
            place = f"{section}.{key}" if section and section != "stage" else str(key)
            yield from _kinds(value, place)
    elif isinstance(table, (list, tuple)):
        for value in table:
            yield from _kinds(value, section)


def _own_file(module: str) -> Path | None:
    """The file of a module in the working folder, or of the script that runs; found by path, nothing is imported."""
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is not None and Path(script).stem == module and Path(script).parent != Path(__file__).parents[1]:
        return Path(script)
    if parts[0] in sys.stdlib_module_names or parts[0] == "lapsus":
        return None
    base = Path.cwd().joinpath(*parts)
    file = next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)
    # A module of this name that is installed would be imported instead.
    spec = None if file is None else _spec(parts[0])
    return None if spec is not None and Path.cwd() not in Path(spec.origin or "/").parents else file


def _spec(top: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None


def _defines(file: Path, name: str) -> bool:
    """Whether the source of a module defines or imports a class of that name."""
    try:
        tree = ast.parse(read_text(file, 1 << 22))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.ImportFrom) and any(name in (alias.asname, alias.name) for alias in node.names):
            return True
    return False


def _own(kind: str) -> bool:
    """Whether a kind is a class of a module in the working folder, or of one that the caller has imported."""
    module, _, name = kind.partition(":")
    if module in sys.modules and not _installed(module.split(".")[0]):
        return True
    return (file := _own_file(module)) is not None and _defines(file, name)


def _installed(top: str) -> bool:
    """Whether a module came with Python or with a package, as those did that lapsus itself imports: nobody chose it by
    importing it, and some of their classes write files when they are called."""
    places = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}
    file = Path(getattr(sys.modules.get(top), "__file__", None) or "/")
    return top in sys.stdlib_module_names or bool(places & set(file.parents)) or top in _distributed()


@cache
def _distributed() -> set[str]:
    """Modules that installed packages hold, wherever those lie."""
    return set(importlib.metadata.packages_distributions())


def check_trust(table: dict, source: str | Path, trust: bool = False, own: bool = False) -> None:
    """Refuse an experiment that would run code from outside of lapsus, unless the user trusts it.

    own=True is for a file that the user gives to be trained: modules in the working folder are the user's own then.
    """
    foreign = sorted({kind for section, kind in _kinds(table) if ":" in kind and _of_ours(section, kind) is None})
    for kind in foreign:
        if kind.split(":")[0].split(".")[0] == "lapsus":
            raise LapsusError(f'{short(source)}: kind = "{kind[:100]}" is none of the kinds of lapsus.')
    if trust:
        _trusted.update(foreign)
        return
    unsure = [kind for kind in foreign if not (own and _own(kind))]
    if unsure:
        raise LapsusError(
            f"{short(source)} names classes outside of lapsus: opening it would import and run"
            f" {', '.join(_described(kind) for kind in unsure[:5])}. If you trust them, say so with"
            " `trust=True`" + ("; modules in the working folder need no such word." if own else ".")
        )


def _described(kind: str) -> str:
    """A kind with the file that its import would run, if that can be seen."""
    module, _, name = kind[:100].partition(":")
    file = _own_file(module)
    spec = _spec(module.split(".")[0]) if file is None and module.split(".")[0].isidentifier() else None
    where = file or (spec.origin if spec is not None else None)
    return f"{name} of {module} ({where or 'not found here'})"


def locate(section: str, kind: str) -> type:
    """The class that `kind` names in a section ("task", "network", …), after all checks; it has not been called."""
    path = _of_ours(section, kind)
    if path is None:
        if ":" not in kind or kind.split(":")[0].split(".")[0] == "lapsus":
            known = ", ".join(KINDS.get(section, {}))
            raise LapsusError(f'{section}.kind = "{kind[:100]}" is not known. Known: {known}, or "module:Class".')
        if kind not in _trusted and not _own(kind):
            module = kind.partition(":")[0]
            if _own_file(module) is None and _spec(module.split(".")[0] or "-") is None:
                raise LapsusError(
                    f'{section}.kind = "{kind[:100]}" cannot be imported: there is no module {module[:60]} here.'
                )
            raise LapsusError(
                f'{section}.kind = "{kind[:100]}" would run {_described(kind)}, which is neither of lapsus nor a class'
                " of a module in the working folder. If you trust it, say so with `trust=True`."
            )
        path = kind
    found = _imported(section, path)
    if not inspect.isclass(found):
        raise LapsusError(f'{section}.kind = "{path[:100]}" is not a class.')
    lacking = [name for name in _NEEDED.get(section, ()) if not _has(found, name)]
    if lacking:
        raise LapsusError(f'{section}.kind = "{path[:100]}" is no {section}: it has no {", ".join(lacking)}.')
    return found


def _has(made: type, name: str) -> bool:
    """Whether objects of a class have a method; every class itself can be called."""
    return any(name in vars(base) for base in made.__mro__) and callable(getattr(made, name))


def _imported(section: str, path: str) -> object:
    module, _, name = path.partition(":")
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.append(here)
    try:
        return getattr(importlib.import_module(module), name)
    except LapsusError:
        raise
    except Exception as error:  # whatever a module of the user's raises while it is imported
        raise LapsusError(f'{section}.kind = "{path[:100]}" cannot be imported: {error}.') from error
    finally:
        if added and here in sys.path:
            sys.path.remove(here)
