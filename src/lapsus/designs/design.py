"""A design file: what each column of a trial table is, and when it is shown.

    [response]
    column = "response"
    kind = "circular"
    period = 360

    [[stimulus]]
    column = "direction"
    kind = "circular"
    period = 360
    epoch = "stimulus"

    [epochs]            # seconds, in order; the response forms in the last one
    stimulus = 0.25
    delay = 0.75
    response = 2.0

`read_design` reads the file, `Design.of` puts it together with a table. An epoch may be the name of a column that holds
its duration, and several responses are several [[response]] tables.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from lapsus.designs.variables import Kind, Variable, guess_kind, numbers
from lapsus.errors import LapsusError
from lapsus.files import read_toml, short, to_toml

__all__ = ["Design", "DesignFile", "guess_design", "read_design"]

STEP = 0.05  # seconds
_LONGEST = 30.0  # seconds of an epoch; longer ones are milliseconds by mistake
LEAST_TRIALS = 200


def _listed(value: Any) -> Any:
    """One table or name stands for a list of one."""
    return value if isinstance(value, list | tuple) else [value]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Column(_Part):
    """What responses and stimuli have in common."""

    column: str
    previous: bool = False
    missing: float | str | None = None

    @property
    def name(self) -> str:
        """What the variable is called."""
        return f"previous {self.column}" if self.previous else self.column


class ResponseColumn(_Column):
    """A column that the subject produced."""

    kind: Literal["circular", "linear"] | None = None
    period: float | None = None
    log: bool = False


class StimulusColumn(_Column):
    """A column that the subject was shown, or that the experimenter set; without an epoch it is not shown, but the
    behaviour may depend on it."""

    kind: Kind | None = None
    period: float | None = None
    log: bool = False
    epoch: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()


class _Span(_Part):
    start: float
    stop: float


class DesignFile(_Part):
    """The design file as it is written."""

    response: Annotated[tuple[ResponseColumn, ...], BeforeValidator(_listed)] = Field(min_length=1)
    stimulus: Annotated[tuple[StimulusColumn, ...], BeforeValidator(_listed)] = ()
    epochs: dict[str, float | str | _Span]
    subject: str | None = None

    def text(self) -> str:
        """As a TOML file, in which one response and one epoch are not lists."""
        plain = self.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        if len(plain["response"]) == 1:
            (plain["response"],) = plain["response"]
        for stimulus in plain.get("stimulus", ()):
            if len(stimulus.get("epoch", ())) == 1:
                (stimulus["epoch"],) = stimulus["epoch"]
        return to_toml(plain)


def read_design(path: str | Path) -> DesignFile:
    """The design in a TOML file.

    >>> try:
    ...     lapsus.read_design("no-such-design.toml")
    ... except lapsus.LapsusError as error:
    ...     print("no-such-design.toml" in str(error))
    True
    """
    return _validated(read_toml(Path(path)), short(path))


def _validated(table: dict, source: str) -> DesignFile:
    try:
        return DesignFile.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if not isinstance(part, int)) or "the file"
        known = "A design has [response], [[stimulus]] and [epochs]; `lapsus design TABLE` writes one."
        raise LapsusError(f"{source}: {where}: {first['msg'].rstrip('.')}. {known}") from error


@dataclass(frozen=True)
class Design:
    """A design with its table: every variable, and each trial's values as they are used inside.

    responses, stimuli: variables; values: name → [trial]; steps: epoch → steps; durations: epoch → steps of each trial,
    where a column holds them; subject [trial]; dropped: why trials were left out → how many.

    >>> import numpy as np
    >>> import pandas as pd
    >>> from lapsus.designs import DesignFile
    >>> table = pd.DataFrame({"shown": np.linspace(0, 6, 300), "response": np.linspace(0.1, 6.1, 300)})
    >>> shown = {"column": "shown", "kind": "circular", "epoch": "stimulus"}
    >>> given = {"column": "response", "kind": "circular"}
    >>> epochs = {"stimulus": 0.25, "response": 2.0}
    >>> lapsus.Design.of(DesignFile(response=given, stimulus=shown, epochs=epochs), table)
    Design(300 trials, response given shown)
    """

    responses: tuple[Variable, ...]
    stimuli: tuple[Variable, ...]
    steps: dict[str, int]
    durations: dict[str, np.ndarray]
    values: dict[str, np.ndarray]
    subject: np.ndarray
    dropped: dict[str, int]
    table: pd.DataFrame

    def __len__(self) -> int:
        return len(self.subject)

    def __repr__(self) -> str:
        shown = ", ".join(variable.name for variable in self.stimuli)
        given = ", ".join(variable.name for variable in self.responses)
        return f"Design({len(self):,} trials, {given} given {shown})"

    @classmethod
    def of(cls, file: DesignFile, table: pd.DataFrame, source: str = "the table") -> "Design":
        """The design of a table; every problem is one sentence."""
        table = table.reset_index(drop=True)
        _check_columns(file, table, source)
        subject = table[file.subject].astype(str).to_numpy() if file.subject else np.full(len(table), "all")
        parts: list[_Column] = [*file.response, *file.stimulus]
        columns = {part.name: _column(part, table, subject) for part in parts}
        dropped = {}
        usable = np.ones(len(table), dtype=bool)
        for part in file.response:
            missing = columns[part.column].isna().to_numpy() & usable
            if missing.any():
                dropped[f"{part.column} is missing"] = int(missing.sum())
            usable &= ~missing
        for shown in file.stimulus:
            unknown = columns[shown.name].isna().to_numpy() & usable
            if shown.missing is None and unknown.any():
                why = "there is no previous trial" if shown.previous else f"{shown.column} is missing"
                dropped[why] = int(unknown.sum())
                usable &= ~unknown
        if usable.sum() < LEAST_TRIALS:
            raise LapsusError(
                f"{source}: {int(usable.sum())} trials have all columns of the design; at least {LEAST_TRIALS} are"
                " needed."
            )
        columns = {name: column[usable] for name, column in columns.items()}
        table, subject = table[usable].reset_index(drop=True), subject[usable]
        steps, durations = _epochs(file, table, source)
        responses = tuple(_variable(part, columns[part.column]) for part in file.response)
        stimuli = [_variable(part, columns[part.name]) for part in file.stimulus]
        # The behaviour may depend on how long an epoch was.
        stimuli += [
            Variable.of(f"{epoch} (s)", pd.Series(counts * STEP), "linear") for epoch, counts in durations.items()
        ]
        columns |= {f"{epoch} (s)": pd.Series(counts * STEP) for epoch, counts in durations.items()}
        _check_shown(stimuli, steps, source)
        values = {variable.name: variable.encode(columns[variable.name]) for variable in (*responses, *stimuli)}
        _check_values(responses, stimuli, values, source)
        return cls(responses, tuple(stimuli), steps, durations, values, subject, dropped, table)

    def only(self, rows: np.ndarray) -> "Design":
        """Some of the trials."""
        return replace(
            self,
            durations={name: counts[rows] for name, counts in self.durations.items()},
            values={name: values[rows] for name, values in self.values.items()},
            subject=self.subject[rows],
            table=self.table.iloc[rows].reset_index(drop=True),
        )


def _column(part: _Column, table: pd.DataFrame, subject: np.ndarray) -> pd.Series:
    """The values of a part of the design: of the trial itself, or of the one before it of the same subject."""
    column = table[part.column]
    if part.missing is not None:
        column = column.mask(column == part.missing)
    return column.groupby(subject).shift(1) if part.previous else column


def _variable(part: ResponseColumn | StimulusColumn, column: pd.Series) -> Variable:
    kind = part.kind or guess_kind(column, part.column)
    if isinstance(part, ResponseColumn) and kind == "categorical":
        kind = "linear"
    epochs = part.epoch if isinstance(part, StimulusColumn) else ()
    return Variable.of(part.name, column, kind, period=part.period, log=part.log, epochs=epochs)


def _check_columns(file: DesignFile, table: pd.DataFrame, source: str) -> None:
    parts: list[_Column] = [*file.response, *file.stimulus]
    named = [part.column for part in parts]
    named += [duration for duration in file.epochs.values() if isinstance(duration, str)]
    named += [file.subject] if file.subject else []
    for name in named:
        if name not in table.columns:
            raise LapsusError(f"{source} has no column {name!r}; it has {', '.join(map(str, table.columns))}.")
    names = [part.name for part in parts]
    for name in names:
        if names.count(name) > 1:
            raise LapsusError(f"The design names the column {name!r} twice; a stimulus may have several epochs.")


def _epochs(file: DesignFile, table: pd.DataFrame, source: str) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """Steps of each epoch in order, and those of each trial where a column holds them."""
    if len(file.epochs) < 2:
        raise LapsusError("[epochs] needs at least two epochs: one that shows a stimulus, and the response.")
    steps: dict[str, int] = {}
    durations: dict[str, np.ndarray] = {}
    clock = 0.0
    for name, asked in file.epochs.items():
        given = asked
        if isinstance(given, _Span):
            if given.start < clock - 1e-9:
                raise LapsusError(
                    f"[epochs]: {name} begins at {given.start:g} s, before the epoch ahead of it ends at {clock:g} s;"
                    " epochs must not overlap."
                )
            if given.start > clock + 1e-9:
                steps[f"before {name}"] = _steps(f"before {name}", given.start - clock)
            clock = given.start
            given = given.stop - given.start
        if isinstance(given, str):
            seconds = numbers(table[given], given)
            if not np.isfinite(seconds).all():
                raise LapsusError(f"{source}: column {given}, which holds durations, has missing values.")
            for value in (seconds.min(), seconds.max()):
                _steps(f"{name} ({given})", float(value))
            durations[name] = np.maximum(1, np.rint(seconds / STEP)).astype(int)
            steps[name], clock = int(np.median(durations[name])), clock + float(np.median(seconds))
        else:
            steps[name], clock = _steps(name, given), clock + given
    if list(steps)[-1] in durations:
        raise LapsusError("[epochs]: the last epoch, in which the response forms, has one duration in seconds.")
    return steps, durations


def _steps(name: str, seconds: float) -> int:
    if not seconds > 0:
        raise LapsusError(f"[epochs]: {name} lasts {seconds:g} s; a duration must be positive.")
    if seconds > _LONGEST:
        raise LapsusError(
            f"[epochs]: {name} lasts {seconds:g} s; durations are in seconds, so {seconds:g} ms are {seconds / 1000:g}."
        )
    return max(1, round(seconds / STEP))


def _check_shown(stimuli: Sequence[Variable], steps: dict[str, int], source: str) -> None:
    last = list(steps)[-1]
    for variable in stimuli:
        for epoch in variable.epochs:
            if epoch not in steps:
                raise LapsusError(
                    f"{variable.name} is shown in {epoch!r}, which is not an epoch; there are {', '.join(steps)}."
                )
            if epoch == last:
                raise LapsusError(
                    f"{variable.name} is shown in {epoch!r}, the last epoch, in which the response forms; nothing is"
                    " shown there."
                )
    if not any(variable.epochs for variable in stimuli):
        raise LapsusError(f"{source}: no stimulus has an epoch, so the network would see nothing.")


def _check_values(
    responses: Sequence[Variable], stimuli: Sequence[Variable], values: dict[str, np.ndarray], source: str
) -> None:
    for variable in (*responses, *stimuli):
        present = values[variable.name][np.isfinite(values[variable.name])]
        if len(np.unique(np.round(present, 9))) < 2:
            raise LapsusError(
                f"{source}: {variable.name} has the same value in every trial, so nothing can depend on it; take it"
                " out of the design."
            )


# --- Guessing ---

_RESPONSE = ("response", "report", "answer", "reproduction", "estimate", "judgement", "judgment")
_SUBJECT = ("subject", "participant", "id", "sub", "observer", "subject_id", "participant_id")
_RESPONSE_TIMES = ("rt", "response_time", "reaction_time")
# What a table may hold that was not shown, or is computed from the response.
_NOT_SHOWN = ("trial", "block", "session", "error", "index", "correct", "date", "time", *_RESPONSE_TIMES)


def guess_design(table: pd.DataFrame, source: str = "the table") -> DesignFile:
    """A design for a table, from the names and values of its columns; meant to be edited."""
    names = {str(name): str(name).lower().replace(" ", "_") for name in table.columns}
    response = next((name for word in _RESPONSE for name, lowered in names.items() if lowered == word), None)
    response = response or next((n for word in _RESPONSE for n, lowered in names.items() if word in lowered), None)
    if response is None:
        raise LapsusError(
            f"{source} has no column whose name says that it is the response; name one `response`, or write the design"
            " yourself."
        )
    subject = next((name for word in _SUBJECT for name, lowered in names.items() if lowered == word), None)
    stimuli = [
        name
        for name, lowered in names.items()
        if name not in (response, subject)
        and not any(lowered == word or lowered.startswith(f"{word}_") for word in _NOT_SHOWN)
        and table[name].nunique() > 1
    ]
    return _validated(
        {
            "subject": subject,
            "response": _described(table[response], response, response=True),
            "stimulus": [_described(table[name], name) | {"epoch": "stimulus"} for name in stimuli],
            "epochs": {"stimulus": 0.25, "delay": 0.75, "response": 2.0},
        },
        source,
    )


def _described(column: pd.Series, name: str, response: bool = False) -> dict:
    kind = guess_kind(column, name)
    kind = "linear" if response and kind == "categorical" else kind
    found: dict[str, Any] = {"column": name, "kind": kind}
    if kind == "circular":
        period = Variable.of(name, column, "circular").period
        found["period"] = round(period, 9) if not math.isclose(period, 2 * math.pi) else 2 * math.pi
    return found
