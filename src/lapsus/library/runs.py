"""A run is a folder: config.toml, checkpoints, metrics.jsonl. Nothing in it is executed when it is opened.

Checkpoints are safetensors with a JSON beside them that carries their hash; both are written under another name,
flushed to disk and renamed, the JSON last, so that a checkpoint either is whole or is not there.
"""

import hashlib
import json
import platform
import re
import warnings
from pathlib import Path

import torch
from torch import Tensor

from lapsus import __version__
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.files import append_line, check_place, make_folder, remove, sweep, write_bytes, write_json, write_text
from lapsus.library.shipped import load_shipped, shipped, shipped_name
from lapsus.training.experiment import Experiment, read_experiment, to_toml
from lapsus.training.loop import Training
from lapsus.training.model import Model, set_weights

__all__ = ["Run", "first_model"]

_NAME = re.compile(r"checkpoint-(\d{8})\.json")
_KEPT = 2


def _versions() -> dict[str, str]:
    return {
        "lapsus": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


class Run:
    """A run folder. `Run.create` makes one, `Run(path)` opens one.

    A config may name classes outside of lapsus ("my_module:MyTask"). Importing them runs their code, so such a folder
    opens only with trust=True.
    """

    def __init__(self, path: str | Path, trust: bool = False):
        self.path, self.trust = Path(path), trust
        config = self.path / "config.toml"
        if not config.is_file():
            what = "is not a run folder: it has no config.toml" if self.path.is_dir() else "does not exist"
            raise LapsusError(f"{self.path} {what}. `lapsus train EXPERIMENT -o {self.path.name}` makes a run.")
        try:
            self.experiment = read_experiment(config)
        except PermissionError as error:
            raise LapsusError(f"Cannot read {config}: {error.strerror}.") from error
        foreign = sorted(set(_foreign_kinds(self.experiment.model_dump())))
        if foreign and not trust:
            raise LapsusError(
                f"{config} names classes outside of lapsus ({', '.join(foreign)}); importing them would run their code."
                " If you trust this folder, open it with --trust (trust=True in Python)."
            )

    @classmethod
    def create(cls, path: str | Path, experiment: Experiment) -> "Run":
        """A new run folder for this experiment; a folder that holds anything is never touched."""
        path = Path(path)
        if check_place(path, "run"):
            raise LapsusError(
                f"{path} already holds a run. `lapsus resume {path}` goes on with it; -o names another folder."
            )
        make_folder(path)
        sweep(path)
        table = experiment.model_dump(exclude_none=True) | {"versions": _versions()}
        write_text(path / "config.toml", to_toml(table))
        return cls(path, trust=True)

    @classmethod
    def of(cls, path: str | Path, experiment: Experiment) -> "Run":
        """The run of this experiment in a folder, made if it is not there; a run of another experiment is an error."""
        if not (Path(path) / "config.toml").is_file():
            return cls.create(path, experiment)
        run = cls(path, trust=True)
        held, wanted = run.experiment.model_dump(), experiment.model_dump()
        differ = [key for key in wanted if key != "versions" and held[key] != wanted[key]]
        if differ:
            raise LapsusError(
                f"{path} holds a run of {run.experiment.name} that was made from another description (its config.toml"
                f" differs in {', '.join(differ)}). Move it away, or use another folder."
            )
        return run

    def save(self, training: Training, seconds: float = 0.0) -> None:
        """Write a checkpoint and forget all but the newest two."""
        from safetensors.torch import save

        weights = {f"weights.{name}": tensor.contiguous() for name, tensor in training.model.state_dict().items()}
        data = save(
            weights
            | {name: tensor for name, tensor in training.tensors().items() if name != "flat"}
            | training.hard_tensors()
        )
        facts = {
            "update": training.update,
            "adam_updates": training.optimiser.updates,
            "trials_seen": training.trials_seen,
            "seconds": seconds,
            "core_seconds": training.core_seconds,
            "rate_price": training.price,
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        name = f"checkpoint-{training.update:08d}"
        write_bytes(self.path / f"{name}.safetensors", data)
        write_json(self.path / f"{name}.json", facts)
        for old in self._checkpoints()[_KEPT:]:
            remove(old)
            remove(old.with_suffix(".safetensors"))

    def _checkpoints(self) -> list[Path]:
        """JSON files of checkpoints, newest first."""
        return sorted((p for p in self.path.iterdir() if _NAME.fullmatch(p.name)), reverse=True)

    def _newest(self) -> tuple[dict, dict[str, Tensor]] | None:
        """Facts and tensors of the newest whole checkpoint, warning of damaged ones; None if there never was one."""
        from safetensors import SafetensorError
        from safetensors.torch import load as load_tensors

        found = self._checkpoints()
        for path in found:
            try:
                facts = json.loads(path.read_text())
                data = path.with_suffix(".safetensors").read_bytes()
                if hashlib.sha256(data).hexdigest() != facts["sha256"]:
                    raise ValueError("its contents do not match its hash")
                return facts, load_tensors(data)
            except (OSError, ValueError, KeyError, SafetensorError) as error:
                reason = "it lacks " + str(error) if isinstance(error, KeyError) else error
                warnings.warn(
                    f"{path.stem} in {self.path} is damaged ({reason}); trying the one before.",
                    LapsusWarning,
                    stacklevel=3,
                )
        if found:
            raise LapsusError(
                f"Every checkpoint in {self.path} is damaged; train again with `lapsus train {self.path}/config.toml`."
            )
        return None

    def training(self, **options) -> tuple[Training, float]:
        """The training as the newest checkpoint left it (or at its very start), and the seconds it has taken so far."""
        newest = self._newest()
        if newest is None:
            return Training(self.experiment, first_model(self.experiment, self.path.parent, self.trust), **options), 0.0
        model = Model.of(self.experiment)
        facts, tensors = newest
        set_weights(
            model, {k.removeprefix("weights."): v for k, v in tensors.items() if k.startswith("weights.")}, self.path
        )
        training = Training(self.experiment, model, update=facts["update"], trials_seen=facts["trials_seen"], **options)
        # Older checkpoints do not hold it: at most all of two cores, which is what they were made with.
        training.core_seconds = facts.get("core_seconds", 2 * facts["seconds"])
        training.optimiser.updates = facts["adam_updates"]
        training.price = facts.get("rate_price", training.price)  # older checkpoints know of no budget
        for name, tensor in training.tensors().items():
            if name == "flat" or (name in ("covariance", "axes") and name not in tensors):
                continue  # the weights themselves; and runs of older versions, whose Adam had no axes
            if tensors[name].shape != tensor.shape:
                raise LapsusError(f"The checkpoint in {self.path} belongs to another network: {name} does not fit.")
            tensor.copy_(tensors[name])
        training.set_hard(tensors)
        return training, facts["seconds"]

    def model(self) -> Model:
        """The trained model, with averaged weights where the last stage averages them."""
        if not self._checkpoints():
            raise LapsusError(f"{self.path} holds no checkpoint yet; `lapsus resume {self.path}` trains it.")
        training, _ = self.training()
        training.flat.copy_(training.average)
        return training.model.requires_grad_(False)

    @property
    def name(self) -> str:
        """Of the folder."""
        return self.path.name or str(self.path)

    @property
    def update(self) -> int:
        """Of the newest checkpoint."""
        found = self._checkpoints()
        return int(_NAME.fullmatch(found[0].name).group(1)) if found else 0

    def metrics(self) -> list[dict]:
        """All lines of metrics.jsonl that are whole."""
        path, lines = self.path / "metrics.jsonl", []
        for line in path.read_text().splitlines() if path.is_file() else []:
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return lines

    def cut_metrics(self, update: int) -> None:
        """Forget metrics of updates after this one: they will be made again."""
        kept = [json.dumps(line) for line in self.metrics() if line["update"] <= update]
        write_text(self.path / "metrics.jsonl", "".join(line + "\n" for line in kept))

    def log(self, line: dict) -> None:
        """One more line of metrics.jsonl."""
        append_line(self.path / "metrics.jsonl", json.dumps(line))


def first_model(experiment: Experiment, folder: Path, trust: bool = False) -> Model:
    """The model before its first update: new weights, or those of its start."""
    model = Model.of(experiment)
    if experiment.start_from:
        set_weights(model, _start(experiment, folder, trust).state_dict(), experiment.start_from)
    return model


def _start(experiment: Experiment, folder: Path, trust: bool) -> Model:
    """What start_from names: a run in `folder` with the same seed, a run folder, or a shipped network."""
    name, seed = experiment.start_from, experiment.seed
    for path in (folder / f"{name}-{seed}", folder / name, Path(name)):
        if (path / "config.toml").is_file():
            return Run(path, trust).model()
    own = shipped_name(name, seed)
    return load_shipped(own if own in shipped() else name)


def _foreign_kinds(table) -> list[str]:
    """Every kind = "module:Class" anywhere in a config whose module is not one of lapsus."""
    if isinstance(table, dict):
        kind = str(table.get("kind", ""))
        own = [kind] if ":" in kind and not kind.startswith("lapsus.") else []
        return own + [kind for value in table.values() for kind in _foreign_kinds(value)]
    return [kind for value in table for kind in _foreign_kinds(value)] if isinstance(table, list) else []
