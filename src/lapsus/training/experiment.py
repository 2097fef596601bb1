"""The experiment file: everything that makes a network, in one small TOML file. Unknown keys are errors."""

import json
import os
import re
import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from lapsus.errors import LapsusError
from lapsus.files import check_format, read_toml, short, shown


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Noise(_Section):
    """Process noise. `first` and `last` are beta of the first and the last response step; before cue offset the noise
    is that of the first response step.

    Any epoch of the task may have a standard deviation of its own instead, as in `delay = 0.0`; `response` is the last
    epoch. With an objective that leaves open when an error happens, this says where errors may come from.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[float, Field(ge=0, le=100)]]

    first: float = Field(0.3, gt=0, lt=1)
    last: float = Field(0.01, gt=0, lt=1)

    @property
    def by_epoch(self) -> dict[str, float]:
        """Standard deviations of the epochs that have their own."""
        return dict(self.__pydantic_extra__ or {})


class Stage(_Section):
    """One stage of the curriculum: an objective for so many updates, on a task of given durations."""

    name: str = ""
    updates: int = Field(ge=0, le=10**8)
    objective: dict = {"kind": "diffusion"}
    task: dict = Field({}, description="Fields of the task that differ in this stage; lists make one stage each.")
    behaviour: dict | None = Field(None, description="Another target in this stage.")
    conditions: int = Field(32, ge=1, le=10**6, description="Conditions an update.")
    trials: int = Field(16, ge=1, le=10**6, description="Trials a condition.")
    hard_example_fraction: float = Field(
        0.0,
        ge=0,
        le=0.5,
        description=(
            "Share of a batch that are the conditions with the largest loss (the objective's first term) two updates"
            " before."
        ),
    )
    response_tempering: float = Field(
        1.0,
        gt=0,
        le=1,
        description=(
            "Responses that the network is led through are drawn with the items' probabilities raised to this power,"
            " so that rare ones are seen more often; what is learned of them stays the target's (regress ="
            ' "expectation").'
        ),
    )
    rate_budget: float | None = Field(
        None,
        gt=0,
        description=(
            "Largest root mean square of the rates, over units, steps and trials: a price of rates, added to the loss,"
            " rises while they exceed it and falls while they do not."
        ),
    )
    rate_hold: float = Field(
        0.0,
        ge=0,
        description=(
            "Weight of the squared relative deviation of the mean square rate from that of rate_budget, which then also"
            " holds from below: under the energy score a network otherwise makes its first errors by weakening its"
            " memory."
        ),
    )
    learning_rate: float = Field(3e-3, gt=0)
    final_learning_rate: float | None = Field(None, gt=0, description="Reached by exponential decay; none: constant.")
    warmup: int = Field(100, ge=0, description="Updates over which the learning rate rises linearly.")
    clip: float = Field(1.0, gt=0, description="Largest norm of the gradient.")
    beta_1: float = Field(0.9, ge=0, lt=1)
    beta_2: float = Field(0.99, ge=0, lt=1)
    principal_axes: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Adam works in the principal axes of the gradient, averaged with this decay; 0: plain Adam.",
    )
    average: float = Field(0.0, ge=0, lt=1, description="Decay of the moving average of weights; 0: no average.")

    @field_validator("rate_hold")
    @classmethod
    def _has_budget(cls, value: float, known: ValidationInfo) -> float:
        if value and known.data.get("rate_budget") is None:
            raise PydanticCustomError("no_budget", "rates are held at rate_budget, which the stage does not set")
        return value


class Experiment(_Section):
    """A network, the task it sees, the behaviour it should show, and the stages of its training.

    >>> lapsus.read_experiment("index-swap-10").behaviour["swap"]
    {'kind': 'constant', 'p': 0.1}
    """

    name: str = Field(min_length=1, max_length=200)
    description: str = ""
    seed: int = Field(1, ge=0, lt=2**31)
    start_from: str | None = Field(None, description="A run folder or a shipped network whose weights to start from.")
    task: dict
    network: dict = {"kind": "dendritic"}
    behaviour: dict = {"kind": "bns"}
    noise: Noise = Noise()
    stage: list[Stage] = Field(min_length=1)
    versions: dict[str, str] = Field({}, description="What made the run; written by lapsus.")
    format: int = Field(1, description="Of this file; written by lapsus.")

    @property
    def updates(self) -> int:
        """Of all stages together."""
        return sum(stage.updates for stage in self.stage)

    def stage_at(self, update: int) -> tuple[int, int]:
        """Which stage the update (counted from 0) belongs to, and its place within that stage."""
        for index, stage in enumerate(self.stage):
            if update < stage.updates:
                return index, update
            update -= stage.updates
        return len(self.stage) - 1, self.stage[-1].updates


# What pydantic puts into the place of an error for each type of a field that may have several.
_TYPE = re.compile(r"\[|constrained|^(bool|int|[A-Z]\w*)$")


def explain(error: ValidationError, source: str, *sections: type[BaseModel]) -> LapsusError:
    """What is wrong with a file, a sentence for each field; sections: those that its keys belong to."""
    known = {key for section in sections for key in section.model_fields}
    sentences: dict[str, str] = {}
    for problem in error.errors():
        field = ".".join(str(key_part) for key_part in problem["loc"] if not _TYPE.search(str(key_part)))
        if problem["type"] == "extra_forbidden":
            key = str(problem["loc"][-1])
            close = get_close_matches(key, known - {key}, 1)
            sentence = f"{field} is not a known key." + (f" Did you mean {close[0]}?" if close else "")
        elif problem["type"] == "missing":
            sentence = f"{field} is missing."
        else:
            sentence = (
                f"{field} = {shown(problem['input'])} is not right: {problem['msg'][:1].lower()}{problem['msg'][1:]}."
            )
        # Where one type of a field fits but for what is in it, the others say nothing.
        if not any(other.startswith(f"{field}.") for other in sentences):
            sentences.setdefault(field, sentence)
    return LapsusError(f"{source}: " + " ".join([*sentences.values()][:20]))


def read_experiment(source: str | Path | dict, overrides: Sequence[str] = ()) -> Experiment:
    """An experiment from a TOML file, from the name of one that ships with lapsus, or from a dictionary.

    >>> lapsus.read_experiment("feature-smooth-2").task["kind"]
    'feature-cued'
    """
    name = "experiment"
    if not isinstance(source, dict):
        name, source = str(source), experiment_table(source)
    check_format(source.get("format", 1), 1, name)
    for assignment in overrides:
        source = override(source, assignment)
    if isinstance(source.get("stage"), list):
        source = source | {"stage": [unrolled for stage in source["stage"] for unrolled in _unrolled(stage, name)]}
    try:
        return Experiment.model_validate(source)
    except ValidationError as error:
        raise explain(error, name, Experiment, Stage) from None


def experiment_table(source: str | Path) -> dict:
    """The table of an experiment file, or of one that ships, as it stands there: not checked, stages not unrolled."""
    return read_toml(_find(source))


def _unrolled(stage: dict, source: str) -> list[dict]:
    """A stage whose task fields are lists, such as denoise = [8, 12, 18], stands for one stage after another."""
    asked = stage.get("task") if isinstance(stage, dict) else None
    fields: dict = asked if isinstance(asked, dict) else {}
    lists = {key: value for key, value in fields.items() if isinstance(value, list)}
    if not lists:
        return [stage]
    counts = {len(value) for value in lists.values()}
    if len(counts) != 1 or 0 in counts:
        raise LapsusError(
            f"{source}: the lists in stage.task must have the same length, of at least 1 ({', '.join(lists)})."
        )
    parts = [dict(zip(lists, values)) for values in zip(*lists.values())]
    label = stage.get("name", "stage")
    return [
        stage | {"name": f"{label} {number}/{len(parts)}", "task": fields | values_of}
        for number, values_of in enumerate(parts, 1)
    ]


def _shipped() -> Path:
    return Path(str(files("lapsus") / "experiments"))


def shipped_experiments() -> list[str]:
    """Names of the experiments that ship with lapsus."""
    return sorted(path.stem for path in _shipped().glob("*.toml"))


def _find(source: str | Path) -> Path:
    if os.path.isfile(path := Path(source)):
        return path
    if os.path.isdir(path):
        raise LapsusError(f"{path} is a folder; an experiment is a .toml file.")
    names = shipped_experiments()
    if str(source) in names:
        return _shipped() / f"{source}.toml"
    close = get_close_matches(str(source), names, 1)
    hint = f"Did you mean {close[0]}?" if close else f"Shipped experiments: {', '.join(names)}."
    raise LapsusError(f"There is no experiment file {short(str(source))}. {hint}")


def override(table: dict, assignment: str) -> dict:
    """A copy of the table with `key.path=value` applied; stages by number, as in stage.0.updates=100 (or
    stage.*.trials=8)."""
    key, equals, text = assignment.partition("=")
    if not equals or not key.strip() or key.count(".") > 20:
        raise LapsusError(f"A field is set by key=value, for example task.delay=10, not by {shown(assignment)}.")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except ValueError:
        value = text.strip()
    return set_field(table, key.strip(), value, assignment[:200])


def set_field(table: dict, key: str, value: object, named: str | None = None) -> dict:
    """A copy of the table with the field at `key.path` set; errors call the change `named`."""
    table = json.loads(json.dumps(table))
    called = named or f"{key} = {json.dumps(value)}"
    _assign(table, key.split("."), value, called, _defaults(Experiment, "network", "behaviour"))
    return table


def _defaults(section: type[_Section], *names: str) -> dict[str, dict]:
    return {name: dict(section.model_fields[name].default) for name in names}


def _assign(node: Any, parts: list[str], value: Any, assignment: str, defaults: dict[str, dict]) -> None:
    """`defaults` stand for tables that the node lacks: a field of such a table changes the default."""
    name, rest = parts[0], parts[1:]
    if isinstance(node, list):
        numbers = {str(index): index for index in range(-len(node), len(node))}
        chosen = range(len(node)) if name == "*" else [numbers[name]] if name in numbers else []
        if not chosen or not rest or not all(isinstance(node[index], (dict, list)) for index in chosen):
            raise LapsusError(f"{assignment}: stages are numbered 0 to {len(node) - 1} (or * for all).")
        for index in chosen:
            _assign(node[index], rest, value, assignment, _defaults(Stage, "objective"))
    elif rest:
        child = node.setdefault(name, defaults.get(name, {}))
        if not isinstance(child, (dict, list)):
            raise LapsusError(f"{assignment}: {name} is a value, it has no field {rest[0]}.")
        _assign(child, rest, value, assignment, {})
    else:
        node[name] = value
