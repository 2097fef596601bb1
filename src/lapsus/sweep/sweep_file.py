"""The sweep file: which experiments, which seeds, and what varies. Unknown keys are errors."""

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lapsus.errors import LapsusError
from lapsus.evaluation.against_target import check_draws
from lapsus.files import read_toml
from lapsus.mechanism.registry import by_default

__all__ = ["Analysis", "Evaluation", "Listed", "Measure", "Subjects", "SweepFile", "read_sweep"]

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
        names = ("unit", "probe_unit", "columns", "where", "drop", "probe_positions", "non_targets")
        return {name: getattr(self, name) for name in (*names, "items_beyond_set_size")}


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
        path = Path(source)
        name, folder = str(source), path.parent
        if os.path.isdir(path):
            raise LapsusError(f"{path} is a folder; a sweep is described by a .toml file.")
        if not os.path.exists(path):  # (pathlib would raise where no file can have such a name)
            raise LapsusError(f"There is no sweep file {path}; docs/ensembles.md shows what one looks like.")
        source = read_toml(path)
    if not source:
        raise LapsusError(f"{name} is empty; docs/ensembles.md shows what a sweep file looks like.")
    if "folder" in source:
        raise LapsusError(f"{name}: folder is not a known key. Paths in it are relative to the file.")
    if isinstance(source.get("vary"), dict):
        source = source | {"vary": _flattened(source["vary"], name)}
    try:
        sweep = SweepFile.model_validate(source | {"folder": folder or Path()})
    except ValidationError as error:
        raise _explain(error, name) from None
    _check_measure(sweep.measure, name)
    if not sweep.experiments and not sweep.member:
        raise LapsusError(f'{name} names no experiment: give experiment = "NAME" or [[member]] tables.')
    if sweep.vary and sweep.member:
        raise LapsusError(f"{name} has both [vary] and [[member]]; a sweep is either factorial or listed.")
    for listed in sweep.member:
        if listed.experiment is None and len(sweep.experiments) != 1:
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
    found: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= _flattened(value, source, f"{prefix}{key}.")
        elif not isinstance(value, list) or not value:
            raise LapsusError(f"{source}: vary.{prefix}{key} must be a list of values, as in [16, 32].")
        else:
            found[prefix + key] = value
    return found


def _explain(error: ValidationError, source: str) -> LapsusError:
    lines = []
    # Of a field that may be of several types, pydantic names each type that was tried; where one of them fits but for
    # what is in it, the others say nothing.
    tried = re.compile(r"\[|constrained|^(bool|Evaluation|Analysis)$")
    fields = [".".join(part for part in map(str, one["loc"]) if not tried.search(part)) for one in error.errors()]
    for field, problem in zip(fields, error.errors()):
        place = [str(part) for part in problem["loc"]]
        if any(other.startswith(f"{field}.") for other in fields):
            continue
        if "seeds" in place:
            given = "" if "list" in place[-2] or isinstance(problem["input"], list) else f", not {problem['input']!r}"
            lines.append(f"seeds are a number from 1 (of seeds 1, 2, …) or a list of whole numbers from 0{given}.")
        elif problem["type"] == "string_pattern_mismatch":
            lines.append(
                f"{field} = {problem['input']!r} is not right: letters, digits and _ . + -, a letter or digit first."
            )
        elif problem["type"] == "extra_forbidden":
            known = [key for key in _section_of(place).model_fields if key != "folder"]
            close = get_close_matches(place[-1], known, 1)
            lines.append(f"{field} is not a known key." + (f" Did you mean {close[0]}?" if close else ""))
        elif problem["type"] == "missing":
            lines.append(f"{field} is missing.")
        else:
            lines.append(f"{field} = {problem['input']!r} is not right: {problem['msg'].lower()}.")
    return LapsusError(f"{source}: " + " ".join(dict.fromkeys(lines)))


def _section_of(place: list[str]) -> type[_Section]:
    """The section that a key is in, from where pydantic found it."""
    sections: dict[str, type[_Section]] = {
        "member": Listed,
        "measure": Measure,
        "subjects": Subjects,
        "Evaluation": Evaluation,
        "Analysis": Analysis,
    }
    return next((sections[part] for part in reversed(place[:-1]) if part in sections), SweepFile)
