"""A run is a folder: config.toml, checkpoints, metrics.jsonl. Nothing in it is executed when it is opened."""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from lapsus import __version__
from lapsus.errors import LapsusError
from lapsus.files import (
    append_line,
    check_place,
    clean_up,
    holds,
    locked,
    make_folder,
    read_bytes,
    read_toml,
    write_text,
    write_toml,
)
from lapsus.training.experiment import Experiment, read_experiment
from lapsus.training.kinds import accept, accepted, check_trust, foreign
from lapsus.training.loop import Training
from lapsus.training.model import Model, set_weights
from lapsus.zoo.checkpoints import Checkpoints
from lapsus.zoo.shipped import load_shipped, shipped_name, shipped_names


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
    opens only with trust=True, or where you made it yourself (the rule is in lapsus/training/kinds.py).

    >>> run = lapsus.Run.create("mine", lapsus.read_experiment("index-swap-10"))
    >>> run.update
    0
    """

    def __init__(self, path: str | Path, trust: bool = False):
        self.path = Path(path)
        config = self.path / "config.toml"
        if not holds(self.path, "run"):
            what = "is not a run folder: it has no config.toml" if os.path.exists(self.path) else "does not exist"
            raise LapsusError(f"{self.path} {what}. `lapsus train` makes one.")
        table = read_toml(config)
        check_trust(table, config, trust or accepted(table))
        self.experiment = read_experiment(config)
        self.checkpoints = Checkpoints(self.path)

    def __repr__(self) -> str:
        return f"Run({self.path}, {self.experiment.name}, {self.experiment.updates:,} updates planned)"

    @classmethod
    def create(cls, path: str | Path, experiment: Experiment) -> "Run":
        """A new run folder for this experiment, which is yours: classes that it names need no trust. A folder that
        holds anything is never touched, and of two processes that make the same folder one gets an error."""
        path = Path(path)
        _check_new(path)
        make_folder(path)
        table = experiment.model_dump(mode="json", exclude_none=True) | {"versions": _versions()}
        with locked(path, "is being made"):
            _check_new(path)
            clean_up(path)
            write_toml(path / "config.toml", table)
        accept(read_toml(path / "config.toml"))
        return cls(path, trust=True)

    @classmethod
    def of(cls, path: str | Path, experiment: Experiment) -> "Run":
        """The run of this experiment in a folder, made if it is not there; a run of another experiment is an error."""
        if not holds(path, "run"):
            return cls.create(path, experiment)
        wanted = experiment.model_dump()
        known = set(foreign(read_toml(Path(path) / "config.toml"))) <= set(foreign(wanted))
        run = cls(path, trust=known)
        held = run.experiment.model_dump()
        differ = [key for key in wanted if key != "versions" and held[key] != wanted[key]]
        if differ:
            raise LapsusError(
                f"{path} holds a run of {run.experiment.name} that was made from another description (its config.toml"
                f" differs in {', '.join(differ)}). Move it away, or use another folder."
            )
        return run

    def save(self, training: Training) -> None:
        """Write a checkpoint and forget all but the newest two."""
        self.checkpoints.save(training)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Have the folder alone, rid of what dead writers left, with damaged checkpoints under other names."""
        with locked(self.path, "is being trained"):
            clean_up(self.path)
            self.checkpoints.repair()
            yield

    def tidy(self) -> None:
        """Take away what a killed training left in a run that is at its end; where that cannot be, it stays."""
        with suppress(LapsusError), self.writing():
            pass

    def training(self, **options: Any) -> Training:
        """The training as the newest checkpoint left it, or at its very start; `options` are those of Training."""
        model = Model.of(self.experiment)
        newest = self.checkpoints.restore(model, self.path)
        if newest is None:
            return Training(self.experiment, first_model(self.experiment, self.path.parent), **options)
        facts, tensors = newest
        training = Training(self.experiment, model, update=facts.update, trials_seen=facts.trials_seen, **options)
        training.seconds, training.core_seconds = facts.seconds, facts.core_seconds
        training.optimiser.updates, training.price = facts.adam_updates, facts.rate_price
        training.set_tensors(tensors, self.path)
        return training

    def model(self) -> Model:
        """The trained model, with averaged weights where the last stage averages them."""
        model = Model.of(self.experiment)
        facts = self.checkpoints.load_weights(model, self.path)
        if facts is None:
            raise _untrained(self.path)
        if not facts.update and (trained := self._last_update()):
            raise LapsusError(
                f"{self.path} was trained to update {trained:,}, but only the untrained network is left in it: the"
                f" training was cut off, or a checkpoint is lost. `lapsus resume {self.path}` trains it again."
            )
        return model.requires_grad_(False)

    def _last_update(self) -> int:
        """How far the metrics say that it was trained."""
        return max((line["update"] for line in self.metrics()), default=0)

    @property
    def name(self) -> str:
        """Of the folder."""
        return self.path.name or str(self.path)

    @property
    def update(self) -> int:
        """Of the newest checkpoint that is whole; 0 if there never was one."""
        newest = self.checkpoints.whole()
        if newest is None and self.checkpoints:
            raise LapsusError(self.checkpoints.all_damaged())
        return newest.update if newest else 0

    @property
    def lost(self) -> bool:
        """Whether no checkpoint is there that is whole."""
        return self.checkpoints.whole() is None

    @property
    def behind(self) -> bool:
        """Whether the newest checkpoint that is whole is older than the newest metrics: of a training that ended, the
        last checkpoint is lost."""
        newest = self.checkpoints.whole()
        return newest is not None and newest.update < self._last_update()

    def begin_again(self) -> None:
        """Set all checkpoints aside unless one is whole, and forget the metrics after it: training resumes there."""
        with self.writing():
            newest = self.checkpoints.whole()
            if newest is None:
                self.checkpoints.set_aside()
            self.cut_metrics(newest.update if newest else -1)

    @property
    def evaluation(self) -> dict:
        """Nothing: only networks that ship keep theirs."""
        return {}

    def metrics(self) -> list[dict]:
        """All lines of metrics.jsonl that are whole: what became of the rest changes no weight."""
        path, lines = self.path / "metrics.jsonl", []
        for line in read_bytes(path).split(b"\n") if path.exists() else ():
            with suppress(ValueError, TypeError, RecursionError):  # cut short by a crash
                entry = json.loads(line)
                if {"update", "stage", "seconds"} <= set(entry):
                    lines.append(entry)
        return lines

    def cut_metrics(self, update: int) -> None:
        """Forget metrics of updates after this one: they will be made again."""
        kept = [json.dumps(line) for line in self.metrics() if line["update"] <= update]
        write_text(self.path / "metrics.jsonl", "".join(line + "\n" for line in kept))

    def log(self, line: dict) -> None:
        """One more line of metrics.jsonl."""
        append_line(self.path / "metrics.jsonl", json.dumps(line))


def _check_new(path: Path) -> None:
    if check_place(path, "run"):
        raise LapsusError(f"{path} already holds a run. `lapsus resume {path}` continues it; name another folder.")


def first_model(experiment: Experiment, folder: Path) -> Model:
    """The model before its first update: new weights, or those of its start. Of a run that it starts from only the
    weights are read: no class that the run's config names is imported."""
    model = Model.of(experiment)
    if not experiment.start_from:
        return model
    name, seed = experiment.start_from, experiment.seed
    # A run in `folder` with the same seed, a run folder, or a shipped network; never the run itself, which may be
    # called like the network that it starts from.
    itself = folder / f"{experiment.name}-{seed}"
    for path in (folder / f"{name}-{seed}", folder / name, Path(name)):
        if path != itself and holds(path, "run"):
            if Checkpoints(path).load_weights(model, path) is None:
                raise _untrained(path)
            return model
    of_seed = shipped_name(name, seed)
    start = load_shipped(of_seed if of_seed in shipped_names() else name)
    set_weights(model, start.state_dict(), name)
    return model


def _untrained(path: Path) -> LapsusError:
    return LapsusError(f"{path} holds no checkpoint yet; `lapsus resume {path}` trains it.")
