"""Trained networks that ship with lapsus: weights as float32 safetensors, and a JSON with config, metrics and
evaluation.

The first seed of a network goes by its name, further seeds by name@seed.
"""

import json
import os
import re
from collections.abc import Collection
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path

from safetensors.torch import load_file

from lapsus.errors import LapsusError
from lapsus.training.experiment import Experiment, read_experiment, shipped_experiments
from lapsus.training.model import Model, set_weights

# The paper's networks, trained on one delay; networks that were trained on delays that vary (docs/memory.md); and such
# networks trained by the energy score instead of diffusion.
COLLECTIONS = ("paper", "persistent", "open")


def check_collection(name: str) -> str:
    """The name of a collection, if it is one."""
    if name not in COLLECTIONS:
        raise LapsusError(f"There is no collection of networks {name!r}; there are {' and '.join(COLLECTIONS)}.")
    return name


@cache
def collection_of(name: str) -> str:
    """The collection of a network that ships, whatever its seed; the paper's for any other."""
    path = weights_folder() / f"{name.partition('@')[0]}.json"
    return json.loads(path.read_text())["collection"] if path.is_file() else COLLECTIONS[0]


def experiments_in(collection: str) -> list[str]:
    """Experiments that ship and whose networks belong to a collection."""
    return [name for name in shipped_experiments() if collection_of(name) == collection]


def shipped_name(name: str, seed: int) -> str:
    """What a network of that seed goes by."""
    return name if seed == 1 else f"{name}@{seed}"


def seed_of(name: str) -> int:
    """The seed of a network that goes by such a name.

    >>> from lapsus.zoo.shipped import seed_of
    >>> seed_of("feature-smooth-2"), seed_of("feature-smooth-2@3")
    (1, 3)
    """
    match = re.search(r"@(\d+)$", name)
    return int(match.group(1)) if match else 1


def weights_folder() -> Path:
    """Where the shipped networks are."""
    return Path(str(files("lapsus.zoo") / "weights"))


def shipped_names() -> list[str]:
    """Of every network in the package, without opening any."""
    return sorted(path.stem for path in weights_folder().glob("*.json"))


def shipped(collection: str | None = None) -> dict[str, dict]:
    """name → facts (collection, config, evaluation, cost, learning curve) of every network in the package, or of one
    collection."""
    facts = {name: json.loads((weights_folder() / f"{name}.json").read_text()) for name in shipped_names()}
    return {name: entry for name, entry in facts.items() if collection in (None, entry["collection"])}


# Endings of files that hold recordings elsewhere.
_RECORDINGS = {".npy", ".npz", ".csv", ".tsv", ".mat", ".h5", ".hdf5", ".parquet", ".pkl"}


class Shipped:
    """A network that ships with lapsus; it answers what a run folder (`Run`) answers."""

    def __init__(self, name: str):
        path = weights_folder() / f"{name}.json"
        if "/" in name or not path.is_file():
            close = get_close_matches(name, shipped_names(), 1)
            hint = f"Did you mean {close[0]}?" if close else "`lapsus zoo` lists those that ship."
            if Path(name).suffix in _RECORDINGS and os.path.isfile(name):
                hint = (
                    "A recording must be an NWB file (.nwb), or netCDF (.nc) with activity[trial, time, unit] and the"
                    " columns of a trial table on its trials: docs/tutorials/recording.md makes one."
                )
            raise LapsusError(f"{name} is neither a run folder nor a network that ships with lapsus. {hint}")
        self.name, self.facts = name, json.loads(path.read_text())
        self.experiment: Experiment = read_experiment(self.facts["config"])
        self._weights = path.with_suffix(".safetensors")

    def __repr__(self) -> str:
        return f"Shipped({self.name})"

    @property
    def update(self) -> int:
        """All of them: only finished networks ship."""
        return self.experiment.updates

    @property
    def evaluation(self) -> dict:
        """What `lapsus evaluate` found when it was trained."""
        return self.facts["evaluation"]

    def metrics(self) -> list[dict]:
        """The learning curve, thinned."""
        return self.facts["learning_curve"]

    def model(self) -> Model:
        """The trained model."""
        model = Model.of(self.experiment)
        set_weights(model, load_file(self._weights), self.name)
        return model.requires_grad_(False)


def load_shipped(name: str) -> Model:
    """The trained model of that name."""
    return Shipped(name).model()


def core_minutes(facts: dict) -> float:
    """Processor time of a network's training; where it was not recorded, all of two cores."""
    return facts.get("core_minutes", 2 * facts["minutes"])


def halfway(name: str) -> bool:
    """Whether a network ships only for others to start from: it is not trained to its end and held to nothing."""
    return name.partition("@")[0].endswith("-base")


def summary(names: Collection[str] | None = None) -> list[dict]:
    """One row a network, of those named or of all that were trained to their end: what `lapsus zoo` prints."""
    rows = []
    for name, facts in shipped().items():
        if halfway(name) if names is None else name not in names:
            continue
        config = facts["config"]
        row = {"name": config["name"], "seed": config["seed"], "collection": facts["collection"]}
        row["objective"] = config["stage"][-1]["objective"]["kind"]
        row |= _measures(facts, facts["evaluation"])
        if "delays" in facts:
            row["delays"] = [{"delay": measured["delay"]} | _measures(facts, measured) for measured in facts["delays"]]
            row["norm_ratio"] = facts["norm_ratio"]
        rows.append(row | {"trials_seen": facts["trials_seen"], "core_minutes": core_minutes(facts)})
    return rows


def _measures(facts: dict, found: dict) -> dict:
    keys = (
        "energy_excess",
        "excess",
        "swap_curve_mad",
        "swap_curve_max",
        "swap_likelihood_mad",
        "median_error",
        "away",
    )
    row = {key: found.get(key) for key in keys}
    if facts["config"]["stage"][-1]["objective"]["kind"] != "diffusion":
        row["excess"] = None  # it was never asked to denoise
    return row
