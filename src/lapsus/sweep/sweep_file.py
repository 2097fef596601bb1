"""The sweep file: which experiments, which seeds, and what varies. Unknown keys are errors."""

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lapsus.errors import LapsusError
from lapsus.evaluation.against_target import check_draws
from lapsus.files import read_toml
from lapsus.mechanism.registry import by_default
from lapsus.training.experiment import explain

Seed = Annotated[int, Field(ge=0, lt=2**31, strict=True)]
Seeds = Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | Annotated[list[Seed], Field(min_length=1)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Evaluation(_Section):
    """How each trained member is evaluated: fresh conditions, trials of each, and their seed."""

    conditions: int = Field(4096, ge=2)
    trials: int = Field(16, ge=1)
    seed: Seed = 0


class Analysis(_Section):
    """How the mechanism of each trained member is looked for: at which distance of the probes (radians), and whether
    with few trials, to see that all is in place."""

    probe_distance: float = Field(0.7853981633974483, gt=0, le=3.141592653589794)
    seed: Seed = 0
    quick: bool = False


class Measure(_Section):
    """What is measured of a member once it is trained; false leaves a measure out."""

    evaluation: Evaluation | bool = True
    mechanism: Analysis | bool = False
    questions: bool | list[str] = False


class Listed(_Section):
    """One setting, listed by hand: fields that differ from its experiment."""

    name: str | None = Field(None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$", max_length=100)
    experiment: str | None = None
    seeds: Seeds | None = None
    set: dict[str, Any] = {}


class Subjects(_Section):
    """Subjects of a trial table: each one's fitted behaviour becomes the target of a setting."""

    trials: str
    only: list[str] | None = None
    model: str = "auto"
    set_size: int | None = Field(None, ge=1)
    # How the table is read, as in lapsus.read_trials.
    unit: str | None = None
    probe_unit: str | None = None
    columns: dict[str, str] = {}
    where: dict[str, str] | list[str] = {}
    drop: list[str] = []
    probe_positions: int | None = None
    non_targets: str | None = None
    items_beyond_set_size: str | None = None

    def table_options(self) -> dict[str, Any]:
        """The keywords of `read_trials`."""
        return self.model_dump(exclude={"trials", "only", "model", "set_size"})


class SweepFile(_Section):
    """What `lapsus sweep` reads; `folder` is where the file is, from which its paths are taken."""

    name: str = Field(min_length=1, max_length=100)
    description: str = ""
    experiment: str | list[str] = []
    seeds: Seeds = 1
    vary: dict[str, list[Any]] = {}
    member: list[Listed] = []
    subjects: Subjects | None = None
    starts: list[str] = Field(
        ["network", "noise"],
        description="Varied fields that also hold for the trainings which a member starts from, by how they begin.",
    )
    tries: int = Field(3, ge=1, le=100, description="How often a member may fail before it is given up.")
    measure: Measure = Measure()
    folder: Path = Path()

    @property
    def experiments(self) -> list[str]:
        """The experiments it names, as a list."""
        return [self.experiment] if isinstance(self.experiment, str) else list(self.experiment)


def read_sweep(source: str | Path | dict, folder: Path | None = None) -> SweepFile:
    """A sweep from its TOML file, or from such a table with the folder that its paths are relative to."""
    name = "sweep"
    if not isinstance(source, dict):
        name, folder = str(source), Path(source).parent
        if not os.path.isfile(source):
            raise LapsusError(f"There is no sweep file {name}; docs/ensembles.md shows what one looks like.")
        source = read_toml(source)
    if not source:
        raise LapsusError(f"{name} is empty; docs/ensembles.md shows what a sweep file looks like.")
    if "folder" in source:
        raise LapsusError(f"{name}: folder is not a known key. Paths in it are relative to the file.")
    if isinstance(source.get("vary"), dict):
        source = source | {"vary": _flattened(source["vary"], name)}
    try:
        sweep = SweepFile.model_validate(source | {"folder": folder or Path()})
    except ValidationError as error:
        raise explain(error, name, SweepFile, Listed, Measure, Subjects, Evaluation, Analysis) from None
    _check_measure(sweep.measure, name)
    if not sweep.experiments and not sweep.member:
        raise LapsusError(f'{name} names no experiment: give experiment = "NAME" or [[member]] tables.')
    if sweep.vary and sweep.member:
        raise LapsusError(f"{name} has both [vary] and [[member]]; a sweep is either factorial or listed.")
    if len(sweep.experiments) != 1 and any(listed.experiment is None for listed in sweep.member):
        raise LapsusError(f"{name}: a [[member]] needs its own experiment where the file names none or several.")
    return sweep


def _check_measure(measure: Measure, source: str) -> None:
    """Before anything is trained: what cannot be measured would be found after it."""
    for asked in measure.questions if isinstance(measure.questions, list) else []:
        if asked not in by_default():
            raise LapsusError(f"{source}: there is no question {asked!r}; there are {', '.join(by_default())}.")
    if isinstance(how := measure.evaluation, Evaluation):
        check_draws(f"{source}: measure.evaluation", how.conditions, how.trials, how.seed, 2)


def _flattened(table: dict, source: str, prefix: str = "") -> dict[str, Any]:
    """network.units = […] means the same as "network.units" = […]."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat |= _flattened(value, source, f"{prefix}{key}.")
        elif not isinstance(value, list) or not value:
            raise LapsusError(f"{source}: vary.{prefix}{key} must be a list of values, as in [16, 32].")
        else:
            flat[prefix + key] = value
    return flat
