"""Trained networks that ship with lapsus: weights as float32 safetensors, and a JSON with config, metrics and
evaluation.

The first seed of a network goes by its name, further seeds by name@seed.
"""

import json
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from lapsus.errors import LapsusError
from lapsus.training.experiment import read_experiment, set_of
from lapsus.training.model import Model

__all__ = ["core_minutes", "load_shipped", "shipped", "shipped_name", "summary", "weights_folder"]


def shipped_name(name: str, seed: int) -> str:
    """What a network of that seed goes by."""
    return name if seed == 1 else f"{name}@{seed}"


def weights_folder() -> Path:
    """Where the shipped networks are."""
    return Path(str(files("lapsus.library") / "weights"))


def shipped(which: str | None = None) -> dict[str, dict]:
    """name → facts (config, evaluation, cost, learning curve) of every network in the package, or in one set."""
    paths = sorted(weights_folder().glob("*.json"))
    return {path.stem: json.loads(path.read_text()) for path in paths if which in (None, set_of(path.stem))}


def load_shipped(name: str):
    """The trained model of that name."""
    from safetensors.torch import load_file

    from lapsus.library.runs import set_weights

    path = weights_folder() / f"{name}.json"
    if "/" in name or not path.is_file():
        names = [entry.stem for entry in sorted(weights_folder().glob("*.json"))]
        close = get_close_matches(name, names, 1)
        hint = f"Did you mean {close[0]}?" if close else f"Shipped networks: {', '.join(names) or 'none yet'}."
        raise LapsusError(f"{name} is neither a run folder nor a network that ships with lapsus. {hint}")
    model = Model.of(read_experiment(json.loads(path.read_text())["config"]))
    set_weights(model, load_file(path.with_suffix(".safetensors")), name)
    return model.requires_grad_(False)


def core_minutes(facts: dict) -> float:
    """Processor time of a network's training; where it was not recorded, all of two cores."""
    return facts.get("core_minutes", 2 * facts["minutes"])


def summary() -> list[dict]:
    """One row a network: what `lapsus zoo` prints."""
    rows = []
    for name, facts in shipped().items():
        config = facts["config"]
        row = {"name": config["name"], "seed": config["seed"], "set": set_of(name)}
        row |= _measures(facts, facts["evaluation"])
        if "delays" in facts:
            row["delays"] = [{"delay": found["delay"]} | _measures(facts, found) for found in facts["delays"]]
            row["norm_ratio"] = facts["norm_ratio"]
        rows.append(row | {"trials_seen": facts["trials_seen"], "core_minutes": core_minutes(facts)})
    return rows


def _measures(facts: dict, found: dict) -> dict:
    keys = ("excess", "swap_curve_mad", "swap_curve_max", "swap_likelihood_mad", "median_error", "away")
    row = {key: found.get(key) for key in keys}
    if facts["config"]["stage"][-1]["objective"]["kind"] != "diffusion":
        row["excess"] = None  # it was never asked to denoise
    return row
