"""From a table of an experiment file to the object it names: `kind` and the constructor's own arguments.

`kind` is one of ours or "package.module:Class" for your own; every other key must be an argument of that class.
"""

import importlib
import inspect
import typing
from difflib import get_close_matches

import pydantic

from lapsus.errors import LapsusError

__all__ = ["KINDS", "build"]

KINDS = {
    "task": {
        "index-cued": "lapsus.tasks.delayed_estimation:IndexCued",
        "feature-cued": "lapsus.tasks.delayed_estimation:FeatureCued",
        "cue-combination": "lapsus.tasks.cue_combination:CueCombination",
    },
    "behaviour": {
        "bns": "lapsus.behaviour.bns:BNS",
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
        "task-optimal": "lapsus.training.objectives:TaskOptimal",
        "sample-mse": "lapsus.training.objectives:SampleMSE",
    },
}


def _locate(section: str, kind: str) -> type:
    path = KINDS.get(section, {}).get(kind, kind)
    if ":" not in path:
        known = ", ".join(KINDS.get(section, {}))
        raise LapsusError(f'{section}.kind = "{kind}" is not known. Known: {known}, or "package.module:Class".')
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise LapsusError(f'{section}.kind = "{path}" cannot be imported: {error}.') from error
    if not inspect.isclass(found):
        raise LapsusError(f'{section}.kind = "{path}" is not a class.')
    return found


def build(section: str, table: dict, **given):
    """The object that `table` of section ("task", "network", …) describes; `given` are arguments that the caller
    supplies."""
    table = dict(table)
    kind = table.pop("kind", None)
    if not isinstance(kind, str):
        raise LapsusError(f"[{section}] needs a kind, one of: {', '.join(KINDS.get(section, {}))}.")
    made = _locate(section, kind)
    parameters = inspect.signature(made).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    hints = typing.get_type_hints(made.__init__ if inspect.isclass(made) else made, include_extras=True)
    arguments = {name: value for name, value in given.items() if name in parameters or open_ended}
    for key, value in table.items():
        if (key not in parameters and not open_ended) or key in given:
            allowed = [name for name in parameters if name not in given]
            close = get_close_matches(key, allowed, 1)
            hint = f" Did you mean {close[0]}?" if close else f" It has: {', '.join(allowed) or 'no fields'}."
            raise LapsusError(f'{section}.{key} is not a field of "{kind}".{hint}')
        if isinstance(value, dict) and "kind" in value:
            value = build(f"{section}.{key}", value)
        elif key in hints:
            value = _validated(f"{section}.{key}", value, hints[key])
        arguments[key] = value
    missing = [
        name
        for name, p in parameters.items()
        if p.default is p.empty and name not in arguments and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if missing:
        raise LapsusError(f'{section}.{missing[0]} is missing: "{kind}" needs it.')
    return made(**arguments)


def _validated(field: str, value, hint):
    try:
        return pydantic.TypeAdapter(hint).validate_python(value)
    except pydantic.PydanticSchemaGenerationError:
        return value
    except pydantic.ValidationError as error:
        raise LapsusError(f"{field} = {value!r} is not right: {error.errors()[0]['msg']}.") from error
