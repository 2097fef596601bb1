"""Checkpoints of a run: safetensors with a JSON beside them that carries their hash and that of the run's config.

Both are written whole, the JSON last, so that a checkpoint either is whole or is not there. Nothing here builds a
network or imports a class that the run's config names.
"""

import hashlib
import os
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from lapsus.errors import LapsusError, LapsusWarning
from lapsus.files import (
    Damaged,
    check_format,
    read_bytes,
    read_json,
    read_toml,
    readable,
    remove,
    set_aside,
    understood,
    write_bytes,
    write_json,
)
from lapsus.training.kinds import digest
from lapsus.training.loop import Training
from lapsus.training.model import Model, Tensors, set_weights

_NAME = re.compile(r"checkpoint-(\d{8})\.(json|safetensors)")
_KEPT = 2


@dataclass(frozen=True)
class Checkpoint:
    """The JSON beside a checkpoint's tensors: seconds of training and of processor time, the price of rates under a
    budget, the hash of the config that it was trained with, and the names of the parameters in their order."""

    update: int
    adam_updates: int
    trials_seen: int
    seconds: float
    core_seconds: float
    rate_price: float
    parameters: list[str]
    config: str
    sha256: str
    format: int = 1


Saved = tuple[Checkpoint, Tensors]


class Checkpoints:
    """Those in the folder of a run."""

    def __init__(self, folder: Path):
        self.folder = folder

    def _numbers(self, kind: str) -> list[int]:
        """Updates of the files of a kind (json, safetensors), newest first."""
        with readable(self.folder):
            matches = map(_NAME.fullmatch, os.listdir(self.folder))
        return sorted((int(match[1]) for match in matches if match and match[2] == kind), reverse=True)

    def _files(self, update: int) -> tuple[Path, Path]:
        """Tensors and JSON of a checkpoint."""
        stem = self.folder / f"checkpoint-{update:08d}"
        return stem.with_suffix(".safetensors"), stem.with_suffix(".json")

    def __bool__(self) -> bool:
        return bool(self._numbers("json"))

    def save(self, training: Training) -> None:
        """Write a checkpoint and forget all but the newest two; weights that are not finite are not saved."""
        from safetensors.torch import save

        if not bool(torch.isfinite(training.flat).all() and torch.isfinite(training.average).all()):
            raise LapsusError(
                f"The weights are no longer finite numbers after update {training.update}, and were not saved: the"
                f" checkpoint before it is kept in {self.folder}. A lower learning_rate or clip usually helps."
            )
        weights = {f"weights.{name}": tensor.contiguous() for name, tensor in training.model.state_dict().items()}
        state = {name: tensor for name, tensor in training.tensors().items() if name != "flat"}
        data = save(weights | state | training.hard_tensors())
        facts = Checkpoint(
            update=training.update,
            adam_updates=training.optimiser.updates,
            trials_seen=training.trials_seen,
            seconds=training.seconds,
            sha256=hashlib.sha256(data).hexdigest(),
            core_seconds=training.core_seconds,
            rate_price=training.price,
            config=self._config(),
            parameters=[name for name, _ in training.model.named_parameters()],
        )
        tensors, json = self._files(training.update)
        write_bytes(tensors, data)
        write_json(json, facts)
        self._forget()

    def _config(self) -> str:
        return digest(read_toml(self.folder / "config.toml"))

    def _forget(self) -> None:
        """All but the newest two; the JSON first, without which the tensors count for nothing."""
        for update in self._numbers("json")[_KEPT:]:
            tensors, json = self._files(update)
            remove(json)
            remove(tensors)

    def _read(self, update: int) -> Saved:
        """What the JSON of a checkpoint says, and its tensors; Damaged if either is not what was written."""
        from safetensors import SafetensorError
        from safetensors.torch import load

        tensors, json = self._files(update)
        if not json.is_file():
            raise Damaged("it has no JSON beside it: it was not finished, or that is lost")
        facts = read_json(json, Checkpoint)
        check_format(facts.format, 1, json)
        if not tensors.is_file():
            raise Damaged("its tensors are gone")
        data = read_bytes(tensors)
        if hashlib.sha256(data).hexdigest() != facts.sha256:
            raise Damaged("its contents do not match its hash")
        try:
            return facts, load(data)
        except SafetensorError as error:
            raise Damaged(str(error)) from error

    def whole(self) -> Checkpoint | None:
        """The newest that is whole; None if there is none."""
        for update in self._numbers("json"):
            with suppress(Damaged):
                return self._read(update)[0]
        return None

    def newest(self) -> Saved | None:
        """Facts and tensors of the newest that is whole, with a warning about newer ones; None if there never was one.

        A config that was changed after training is an error: it would describe another network or target.
        """
        for update in sorted({*self._numbers("json"), *self._numbers("safetensors")}, reverse=True):
            try:
                facts, tensors = self._read(update)
            except Damaged as error:
                reason = str(error).rstrip(".")
                warnings.warn(
                    f"checkpoint-{update:08d} in {self.folder} cannot be used ({reason}); trying the one before.",
                    LapsusWarning,
                    stacklevel=3,
                )
                continue
            if facts.config != self._config():
                raise LapsusError(
                    f"{self.folder / 'config.toml'} was changed after this network was trained. Restore it, or train"
                    " the changed experiment in a new folder."
                )
            return facts, tensors
        if self:
            raise LapsusError(self.all_damaged())
        return None

    def all_damaged(self) -> str:
        """A sentence for a run whose checkpoints are all lost."""
        return (
            f"Every checkpoint in {self.folder} is damaged; train again with `lapsus train {self.folder}/config.toml`."
        )

    def load_weights(self, model: Model, source: object) -> Checkpoint | None:
        """Give a model the averaged weights of the newest checkpoint; its facts, or None if there never was one."""
        newest = self.newest()
        if newest is None:
            return None
        facts, tensors = newest
        weights = _weights(tensors)
        with understood(self.folder):
            averaged = tensors["average"].split([weights[name].numel() for name in facts.parameters])
            for name, values in zip(facts.parameters, averaged):
                weights[name] = values.view_as(weights[name])
        set_weights(model, weights, source)
        return facts

    def restore(self, model: Model, source: object) -> Saved | None:
        """Give a model the weights of the newest checkpoint as they were; its facts and tensors."""
        newest = self.newest()
        if newest is not None:
            set_weights(model, _weights(newest[1]), source)
        return newest

    def repair(self) -> None:
        """Remove unfinished checkpoints and set damaged ones aside, unless none is whole: what cannot be loaded must
        not count as saved."""
        saved = self._numbers("json")
        for update in set(self._numbers("safetensors")) - set(saved):
            remove(self._files(update)[0])
        damaged = []
        for update in saved:
            try:
                self._read(update)
            except Damaged:
                damaged.append(update)
        if damaged == saved:
            return
        for update in damaged:
            told = f"checkpoint-{update:08d} in {self.folder} is damaged; it is set aside."
            warnings.warn(told, LapsusWarning, stacklevel=4)
            self._set_aside(update)
        self._forget()  # a kill or a power cut may have left, or brought back, older ones

    def set_aside(self) -> None:
        """Give all of them other names: training starts anew."""
        for update in self._numbers("json"):
            self._set_aside(update)

    def _set_aside(self, update: int) -> None:
        # The JSON last: tensors without it count as unfinished and would be removed.
        for path in self._files(update):
            if os.path.lexists(path):
                set_aside(path)


def _weights(tensors: Tensors) -> Tensors:
    return {name.removeprefix("weights."): tensor for name, tensor in tensors.items() if name.startswith("weights.")}
