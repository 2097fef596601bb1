"""A run is a folder: config.toml, checkpoints, metrics.jsonl. Nothing in it is executed when it is opened.

Checkpoints are safetensors with a JSON beside them that carries their hash; both are written under another name,
flushed to disk and renamed, the JSON last, so that a checkpoint either is whole or is not there.
"""

import hashlib
import json
import math
import os
import platform
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lapsus import __version__, rng
from lapsus.errors import LapsusError, LapsusWarning
from lapsus.files import (
    Damaged,
    append_line,
    check_place,
    holds,
    locked,
    make_folder,
    read_bytes,
    read_json,
    remove,
    set_aside,
    sweep,
    write_bytes,
    write_json,
    write_text,
)
from lapsus.training.experiment import Experiment, read_experiment, to_toml
from lapsus.training.kinds import check_trust
from lapsus.training.loop import Training
from lapsus.training.model import Model, set_weights
from lapsus.zoo.shipped import load_shipped, shipped_name, shipped_names

__all__ = ["Run", "first_model"]


@dataclass(frozen=True)
class Checkpoint:
    """The JSON beside a checkpoint's tensors; seconds of training, and of processor time where it was measured."""

    update: int
    adam_updates: int
    trials_seen: int
    seconds: float
    sha256: str
    core_seconds: float | None = None
    rate_price: float | None = None


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

    >>> run = lapsus.Run.create("mine", lapsus.read_experiment("index-swap-10"))
    >>> run.update
    0
    """

    def __init__(self, path: str | Path, trust: bool = False):
        self.path, self.trust = Path(path), trust
        config = self.path / "config.toml"
        if not holds(self.path, "run"):
            there = (
                "is not a run folder: it has no config.toml" if self.path.is_dir() else "is a file, not a run folder"
            )
            what = there if os.path.exists(self.path) else "does not exist"
            raise LapsusError(f"{self.path} {what}. `lapsus train` makes one.")
        self.experiment = read_experiment(config)
        check_trust(self.experiment.model_dump(), config, trust)

    def __repr__(self) -> str:
        return f"Run({self.path}, {self.experiment.name}, {self.experiment.updates:,} updates planned)"

    @classmethod
    def create(cls, path: str | Path, experiment: Experiment, trust: bool = False) -> "Run":
        """A new run folder for this experiment; a folder that holds anything is never touched. Classes of modules in
        the working folder, or that you have imported, need no trust."""
        path = Path(path)
        check_trust(experiment.model_dump(), experiment.name, trust, own=True)
        if check_place(path, "run"):
            raise LapsusError(
                f"{path} already holds a run. `lapsus resume {path}` goes on with it; name another folder."
            )
        make_folder(path)
        sweep(path)
        table = experiment.model_dump(exclude_none=True) | {"versions": _versions()}
        write_text(path / "config.toml", to_toml(table))
        return cls(path, trust=True)

    @classmethod
    def of(cls, path: str | Path, experiment: Experiment, trust: bool = False) -> "Run":
        """The run of this experiment in a folder, made if it is not there; a run of another experiment is an error."""
        if not holds(path, "run"):
            return cls.create(path, experiment, trust)
        check_trust(experiment.model_dump(), experiment.name, trust, own=True)
        run = cls(path, trust=True)
        held, wanted = run.experiment.model_dump(), experiment.model_dump()
        differ = [key for key in wanted if key != "versions" and held[key] != wanted[key]]
        if differ:
            raise LapsusError(
                f"{path} holds a run of {run.experiment.name} that was made from another description (its config.toml"
                f" differs in {', '.join(differ)}). Move it away, or use another folder."
            )
        return run

    def save(self, training: Training) -> None:
        """Write a checkpoint and forget all but the newest two."""
        from safetensors.torch import save

        weights = {f"weights.{name}": tensor.contiguous() for name, tensor in training.model.state_dict().items()}
        data = save(
            weights
            | {name: tensor for name, tensor in training.tensors().items() if name != "flat"}
            | training.hard_tensors()
        )
        facts = Checkpoint(
            update=training.update,
            adam_updates=training.optimiser.updates,
            trials_seen=training.trials_seen,
            seconds=training.seconds,
            sha256=hashlib.sha256(data).hexdigest(),
            core_seconds=training.core_seconds,
            rate_price=training.price,
        )
        name = f"checkpoint-{training.update:08d}"
        write_bytes(self.path / f"{name}.safetensors", data)
        write_json(self.path / f"{name}.json", facts)
        self._forget()

    def _forget(self) -> None:
        """All checkpoints but the newest two."""
        for old in self._checkpoints()[_KEPT:]:
            remove(old)
            remove(old.with_suffix(".safetensors"))

    def _checkpoints(self) -> list[Path]:
        """JSON files of checkpoints, newest first."""
        try:
            return sorted((p for p in self.path.iterdir() if _NAME.fullmatch(p.name)), reverse=True)
        except OSError as error:
            raise LapsusError(f"Cannot read {self.path}: {error.strerror}.") from error

    def _facts(self, path: Path) -> "tuple[Checkpoint, bytes]":
        """What the JSON of a checkpoint says and its tensors' bytes; Damaged if either is not what was written."""
        facts = read_json(path, Checkpoint)
        if f"checkpoint-{facts.update:08d}" != path.stem or facts.update > self.experiment.updates:
            raise Damaged(f"it says that it is at update {facts.update}")
        if min(facts.adam_updates, facts.trials_seen) < 0 or not 0 <= facts.seconds < math.inf:
            raise Damaged("its counts are not right")
        try:
            data = read_bytes(path.with_suffix(".safetensors"))
        except LapsusError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise Damaged("its tensors are gone") from error
            raise
        if hashlib.sha256(data).hexdigest() != facts.sha256:
            raise Damaged("its contents do not match its hash")
        return facts, data

    def _newest(self, warn: bool = False) -> "tuple[Checkpoint, dict[str, Tensor]] | None":
        """Facts and tensors of the newest whole checkpoint, past damaged ones; None if there never was one."""
        from safetensors import SafetensorError
        from safetensors.torch import load as load_tensors

        found = self._checkpoints()
        for path in found:
            try:
                facts, data = self._facts(path)
                return facts, load_tensors(data)
            except (Damaged, SafetensorError) as error:
                if warn:
                    warnings.warn(
                        f"{path.stem} in {self.path} is damaged ({str(error).rstrip('.')}); trying the one before.",
                        LapsusWarning,
                        stacklevel=3,
                    )
        if found:
            raise LapsusError(self._all_damaged())
        return None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Have the folder alone, rid of what dead writers left, with damaged checkpoints under other names: what
        cannot be loaded must not count as saved."""
        with locked(self.path, "is being trained"):
            sweep(self.path)
            for tensors in self.path.glob("checkpoint-*.safetensors"):
                if _NAME.fullmatch(tensors.stem + ".json") and not tensors.with_suffix(".json").exists():
                    remove(tensors)  # the JSON is written last and removed first: this was not, or is no more
            damaged, whole = [], False
            for path in self._checkpoints():
                try:
                    self._facts(path)
                    whole = True
                except Damaged:
                    damaged.append(path)
            for path in damaged if whole else []:
                warnings.warn(f"{path.stem} in {self.path} is damaged; it is set aside.", LapsusWarning, stacklevel=3)
                # The JSON last: tensors without it count as unfinished and would be removed.
                for part in (path.with_suffix(".safetensors"), path):
                    if os.path.lexists(part):
                        set_aside(part)
            if whole:
                self._forget()  # a kill or a power cut may have left, or brought back, older ones
            yield

    def tidy(self) -> None:
        """Take away what a killed training left in a run that is at its end; where that cannot be, it stays."""
        with suppress(LapsusError), self.writing():
            pass

    def training(self, **options: Any) -> Training:
        """The training as the newest checkpoint left it, or at its very start; `options` are those of Training."""
        newest = self._newest(warn=True)
        if newest is None:
            return Training(self.experiment, first_model(self.experiment, self.path.parent, self.trust), **options)
        model = Model.of(self.experiment)
        facts, tensors = newest
        set_weights(
            model, {k.removeprefix("weights."): v for k, v in tensors.items() if k.startswith("weights.")}, self.path
        )
        training = Training(self.experiment, model, update=facts.update, trials_seen=facts.trials_seen, **options)
        training.seconds = facts.seconds
        # Older checkpoints do not hold it: at most all of two cores, which is what they were made with.
        training.core_seconds = 2 * facts.seconds if facts.core_seconds is None else facts.core_seconds
        training.optimiser.updates = facts.adam_updates
        if facts.rate_price is not None:  # older checkpoints know of no budget
            training.price = facts.rate_price
        for name, tensor in training.tensors().items():
            if name == "flat" or (name in ("covariance", "axes") and name not in tensors):
                continue  # the weights themselves; and runs of older versions, whose Adam had no axes
            if name not in tensors or tensors[name].shape != tensor.shape or tensors[name].dtype != tensor.dtype:
                raise LapsusError(f"The checkpoint in {self.path} belongs to another network: {name} does not fit.")
            if not bool(torch.isfinite(tensors[name]).all()):
                raise LapsusError(f"The checkpoint in {self.path} holds values in {name} that are not finite numbers.")
            tensor.copy_(tensors[name])
        training.set_hard(_hard(tensors, model, self.path))
        return training

    def model(self) -> Model:
        """The trained model, with averaged weights where the last stage averages them."""
        if not self._checkpoints():
            raise LapsusError(f"{self.path} holds no checkpoint yet; `lapsus resume {self.path}` trains it.")
        training = self.training()
        training.flat.copy_(training.average)
        return training.model.requires_grad_(False)

    @property
    def name(self) -> str:
        """Of the folder."""
        return self.path.name or str(self.path)

    @property
    def update(self) -> int:
        """Of the newest checkpoint that is whole; 0 if there never was one."""
        found = self._whole()
        if found is None and self._checkpoints():
            raise LapsusError(self._all_damaged())
        return 0 if found is None else found.update

    @property
    def lost(self) -> bool:
        """Whether no checkpoint is there that is whole."""
        return self._whole() is None

    def _whole(self) -> Checkpoint | None:
        for path in self._checkpoints():
            with suppress(Damaged):
                return self._facts(path)[0]
        return None

    def begin_again(self) -> None:
        """Set all checkpoints aside and forget the metrics: training starts anew."""
        with self.writing():
            for path in self._checkpoints():
                for part in (path.with_suffix(".safetensors"), path):
                    if os.path.lexists(part):
                        set_aside(part)
            self.cut_metrics(-1)

    @property
    def evaluation(self) -> dict:
        """Nothing: only networks that ship keep theirs."""
        return {}

    def _all_damaged(self) -> str:
        return f"Every checkpoint in {self.path} is damaged; train again with `lapsus train {self.path}/config.toml`."

    def metrics(self) -> list[dict]:
        """All lines of metrics.jsonl that are whole: what became of the rest changes no weight."""
        path, lines = self.path / "metrics.jsonl", []
        if not path.exists():
            return []
        for line in read_bytes(path).split(b"\n"):
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if _is_metrics(found):
                lines.append(found)
        return lines

    def cut_metrics(self, update: int) -> None:
        """Forget metrics of updates after this one: they will be made again."""
        kept = [json.dumps(line) for line in self.metrics() if line["update"] <= update]
        write_text(self.path / "metrics.jsonl", "".join(line + "\n" for line in kept))

    def log(self, line: dict) -> None:
        """One more line of metrics.jsonl."""
        append_line(self.path / "metrics.jsonl", json.dumps(line))


def _is_metrics(line: object) -> bool:
    """Whether a line of metrics.jsonl is one that a training wrote: numbers by name, three of them always, and numbers
    by name within it (durations of epochs that vary)."""
    if not isinstance(line, dict):
        return False
    for value in line.values():
        if not all(_is_number(part) for part in (value.values() if isinstance(value, dict) else [value])):
            return False
    update, stage, seconds = (line.get(name) for name in ("update", "stage", "seconds"))
    whole = type(update) is int and type(stage) is int and 0 <= update < 2**53 and 0 <= stage < 2**31
    return whole and seconds is not None and not isinstance(seconds, dict) and 0 <= seconds < 1e15


def _is_number(value: object) -> bool:
    return value is None or (
        isinstance(value, (int, float)) and not isinstance(value, bool) and (value != value or abs(value) < 1e300)
    )


def _hard(tensors: dict[str, Tensor], model: Model, source: Path) -> dict[str, Tensor]:
    """The hard conditions among a checkpoint's tensors, if they are conditions of this task."""
    expected = model.task.sample(1, rng.generator("hard"))
    found = {name: tensor for name, tensor in tensors.items() if name.startswith("hard.")}
    for name, tensor in found.items():
        _, _, rest = name.partition(".")
        update, _, field = rest.partition(".")
        like = expected.get(field)
        right = like is not None and update.isdecimal() and tensor.dtype == like.dtype
        right = right and like is not None and tensor.shape[1:] == like.shape[1:]
        if not (right and bool(torch.isfinite(tensor.double()).all())):
            raise LapsusError(f"The checkpoint in {source} belongs to another task: {name[:80]} does not fit.")
    return found


def first_model(experiment: Experiment, folder: Path, trust: bool = False) -> Model:
    """The model before its first update: new weights, or those of its start."""
    model = Model.of(experiment)
    if experiment.start_from:
        start = _start(experiment, folder, trust)
        set_weights(model, start.state_dict(), experiment.start_from)
    return model


def _start(experiment: Experiment, folder: Path, trust: bool) -> Model:
    """What start_from names: a run in `folder` with the same seed, a run folder, or a shipped network; never the run
    itself, which may be called like the network that it starts from."""
    name, seed = str(experiment.start_from), experiment.seed
    itself = folder / f"{experiment.name}-{seed}"
    for path in (folder / f"{name}-{seed}", folder / name, Path(name)):
        if path != itself and holds(path, "run"):
            return Run(path, trust).model()
    own = shipped_name(name, seed)
    return load_shipped(own if own in shipped_names() else name)
