"""What `kind` may name: a class of lapsus, by a short name, or any other class as "module:Class".

A file that names a class decides what code runs. One rule says whose files may:

- An experiment that you pass to `Run.create`, or a file that you name to `lapsus train` or in a sweep file, is yours,
  unless that file is the config.toml of a run folder. Its classes are imported without a question.
- Any other file that names a class outside of lapsus needs `trust=True` (--trust): a run folder, a discovery, a sweep.
- What `train` accepted here, other commands accept here. `Run.create` records the config and the working folder in
  your own state folder (`accept`), where no file from elsewhere can write. The same config opened in the same working
  folder needs no further word.
- Trust is never handed on. Of a run that `start_from` names only the weights are read, and no class of it is imported.
  Of an experiment that a sweep trains as a start, only classes that your own experiments name too are imported.
"""

import hashlib
import importlib
import importlib.util
import inspect
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lapsus.errors import LapsusError
from lapsus.files import holds, make_folder, read_toml, short, write_text

KINDS = {
    "task": {
        "index-cued": "lapsus.tasks.delayed_estimation:IndexCued",
        "index-cued-attended": "lapsus.tasks.attention:AttendedIndexCued",
        "feature-cued": "lapsus.tasks.delayed_estimation:FeatureCued",
        "feature-cued-like": "lapsus.tasks.delayed_estimation:FeatureCuedLike",
        "cue-combination": "lapsus.tasks.cue_combination:CueCombination",
        "designed": "lapsus.tasks.designed:DesignedTask",
    },
    "behaviour": {
        "bns": "lapsus.behaviour.bns:BNS",
        "by-set-size": "lapsus.behaviour.set_sizes:BySetSize",
        "attended-swap": "lapsus.behaviour.attention:AttendedSwap",
        "causal-inference": "lapsus.behaviour.causal_inference:CausalInference",
        "learned": "lapsus.behaviour.learned:LearnedDensity",
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
# Kinds outside of lapsus that this process may import.
_trusted: set[str] = set()


def foreign(table: Any) -> list[str]:
    """Classes outside of lapsus that the table of an experiment names."""
    return sorted({kind for kind in _kinds(table) if ":" in kind})


def _kinds(table: Any) -> Iterator[str]:
    if isinstance(table, dict):
        if isinstance(kind := table.get("kind"), str):
            yield kind
        table = list(table.values())
    if isinstance(table, (list, tuple)):
        for value in table:
            yield from _kinds(value)


def check_trust(table: dict, source: str | Path, trust: bool = False) -> None:
    """Refuse a table that names classes outside of lapsus unless it is trusted; see the top of this file."""
    named = foreign(table)
    if named and not trust:
        raise LapsusError(
            f"{short(source)} names classes outside of lapsus: opening it would import and run"
            f" {', '.join(_described(kind) for kind in named[:5])}. If you trust them, say so with `trust=True`."
        )
    _trusted.update(named)


def _described(kind: str) -> str:
    """A kind with the file that its import would run, if that can be seen."""
    module, _, name = kind[:100].partition(":")
    return f"{name} of {module} ({_origin(module) or 'not found here'})"


def _origin(module: str) -> str | None:
    """The file of a module, found without importing anything: in the working folder, or the installed package."""
    base = Path.cwd().joinpath(*module.split("."))
    here = [base.with_suffix(".py"), base / "__init__.py"] if module.replace(".", "").isidentifier() else []
    for path in here:
        if path.is_file():
            return str(path)
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(module.split(".")[0])
        return None if spec is None else spec.origin
    return None


def digest(table: dict) -> str:
    """Of an experiment's table as its file holds it, whatever its layout; the versions that wrote it do not count."""
    content = {key: value for key, value in table.items() if key != "versions"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def accept(table: dict) -> None:
    """Record that the user gave this table to be trained in this working folder, if it names classes of their own."""
    if foreign(table):
        with suppress(LapsusError):  # without a state folder, other commands ask for --trust
            record = _record(table)
            make_folder(record.parent)
            write_text(record, "")


def accepted(table: dict) -> bool:
    """Whether the user gave this very table to be trained in this working folder before."""
    return bool(foreign(table)) and os.path.isfile(_record(table))


def from_user(path: str | Path) -> bool:
    """Whether an experiment file that the user names is theirs: the config.toml of a run folder may be anybody's,
    unless it was accepted before."""
    return not os.path.isfile(path) or not holds(Path(path).parent, "run") or accepted(read_toml(path))


def _record(table: dict) -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    name = hashlib.sha256(f"{digest(table)}\n{Path.cwd()}".encode("utf-8", "surrogatepass")).hexdigest()
    return Path(home) / "lapsus" / "accepted" / name


def locate(section: str, kind: str) -> type:
    """The class that `kind` names in a section ("task", "network", …), after all checks; it has not been called."""
    known = KINDS.get(section, {})
    path = known.get(kind, kind)
    if path == kind:
        module = kind.partition(":")[0]
        if ":" not in kind or module.split(".")[0] == "lapsus":
            close = get_close_matches(kind, known, 1)
            hint = f" Did you mean {close[0]}?" if close else f' Known: {", ".join(known)}, or "module:Class".'
            raise LapsusError(f'{section}.kind = "{kind[:100]}" is not known.{hint}')
        # A module that the caller has imported runs no code by being named.
        if kind not in _trusted and module not in sys.modules:
            if _origin(module) is None:
                raise LapsusError(
                    f'{section}.kind = "{kind[:100]}" cannot be imported: there is no module {module[:60]}.'
                )
            check_trust({"kind": kind}, f"{section}.kind")
    named = _imported(section, path)
    if not inspect.isclass(named):
        raise LapsusError(f'{section}.kind = "{path[:100]}" is not a class.')
    lacking = [name for name in _NEEDED.get(section, ()) if not _has(named, name)]
    if lacking:
        raise LapsusError(f'{section}.kind = "{path[:100]}" is not a {section}: it has no {", ".join(lacking)}.')
    return named


def _has(made: type, name: str) -> bool:
    """Whether objects of a class have a method; every class itself can be called."""
    return any(name in vars(base) for base in made.__mro__) and callable(getattr(made, name))


def _imported(section: str, path: str) -> object:
    module, _, name = path.partition(":")
    here = str(Path.cwd())
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.append(here)  # last, so that nothing there stands in for an installed module
    try:
        imported = importlib.import_module(module)
    except LapsusError:
        raise
    except Exception as error:  # whatever a module of the user's raises while it is imported
        raise LapsusError(f'{section}.kind = "{path[:100]}" cannot be imported: {error}.') from error
    finally:
        if added and here in sys.path:
            sys.path.remove(here)
    if not hasattr(imported, name):
        classes = [other for other, value in vars(imported).items() if inspect.isclass(value)]
        close = get_close_matches(name, classes, 1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise LapsusError(f'{section}.kind = "{path[:100]}": {module} has no class {name[:60]}.{hint}')
    return getattr(imported, name)
