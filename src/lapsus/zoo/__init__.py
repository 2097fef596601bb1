"""Trained networks that ship with lapsus: weights as float32 safetensors, and a JSON with config, metrics and evaluation."""

import json
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from lapsus.errors import LapsusError

__all__ = ["shipped", "load_shipped"]


def _folder() -> Path:
    return Path(str(files("lapsus.zoo")))


def shipped() -> dict[str, dict]:
    """name → facts (config, evaluation, cost) of every network in the package; further seeds are name@seed."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(_folder().glob("*.json"))}


def load_shipped(name: str):
    """The trained model of that name."""
    from safetensors.torch import load_file

    from lapsus.training.experiment import read_experiment
    from lapsus.training.model import Model
    from lapsus.training.runs import _set_weights

    path = _folder() / f"{name}.json"
    if "/" in name or not path.is_file():
        names = [entry.stem for entry in sorted(_folder().glob("*.json"))]
        close = get_close_matches(name, names, 1)
        hint = f"Did you mean {close[0]}?" if close else f"Shipped networks: {', '.join(names) or 'none yet'}."
        raise LapsusError(f"{name} is neither a run folder nor a network that ships with lapsus. {hint}")
    model = Model.of(read_experiment(json.loads(path.read_text())["config"]))
    _set_weights(model, load_file(path.with_suffix(".safetensors")), name)
    return model.requires_grad_(False)
