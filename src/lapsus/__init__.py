"""lapsus: from behaviour with its errors to the neural mechanisms that may cause them.

fit(trials)            a behaviour model from a trial table
train, Run, load       networks that answer like the behaviour model
simulate, evaluate     their activity, and how close they come
analysis, paper        the mechanism
"""

import ast
import os
from importlib import import_module
from pathlib import Path

__version__ = "0.2.0"

# Where torch is not loaded yet: its threads otherwise spin for milliseconds after every operation, on the cores that
# the kernel needs next. This alone makes training half as fast again.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# The names and where they come from are written once, in the stub that type checkers and editors read.
_WHERE = {
    name.name: found.module
    for found in ast.parse(Path(__file__).with_suffix(".pyi").read_text()).body
    if isinstance(found, ast.ImportFrom)
    for name in found.names
}

__all__ = sorted(_WHERE)


def __getattr__(name: str):
    # Lazy, so that `lapsus --help` does not wait for torch.
    if name not in _WHERE:
        raise AttributeError(f"module 'lapsus' has no attribute {name!r}")
    if _WHERE[name] == "lapsus":
        return import_module(f"lapsus.{name}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__():
    return __all__
