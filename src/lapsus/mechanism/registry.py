"""The questions about a mechanism, and what a network or a recording answers.

A question is one file of this package: what it asks, how it asks a network and reads a recording, its result (a frozen
dataclass with `row()`), its sentence and its panels. It ends with a `Question`, which `register` puts into QUESTIONS.
`lapsus analyse`, pages, tables, sweeps, the gallery and the glossary go through QUESTIONS and name none of them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from markupsafe import Markup
from matplotlib.axes import Axes

from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import FULL, SampleSizes
from lapsus.evaluation.simulation import simulate
from lapsus.files import from_plain, to_plain
from lapsus.mechanism.activity import without_swaps
from lapsus.mechanism.clock import Clock
from lapsus.mechanism.replay import conditions_at_one_pair
from lapsus.training.model import Model

__all__ = [
    "QUESTIONS",
    "AskedNetwork",
    "Column",
    "Mechanism",
    "Panel",
    "Question",
    "Recording",
    "Term",
    "Verdict",
    "by_default",
    "register",
    "summary",
    "without_answer",
]


@dataclass(frozen=True)
class AskedNetwork:
    """A network that is asked; probe_distance (radians): between its items; answers: those given before."""

    model: Model
    sizes: SampleSizes = FULL
    probe_distance: float = np.pi / 4
    seed: int = 0
    threads: int | None = None
    answers: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """What every simulation of it takes."""
        return {"probe_distance": self.probe_distance, "seed": self.seed, "threads": self.threads}

    @cached_property
    def single_trials(self) -> xr.Dataset:
        """Trials at one pair of locations, each with its own colours and cue."""
        seed = self.seed + 40
        conditions = conditions_at_one_pair(self.model, self.sizes.single_trials, self.probe_distance, seed)
        return simulate(self.model, conditions, 1, seed, threads=self.threads)


@dataclass(frozen=True)
class Recording:
    """A recording that is read; every: which time bins are looked at."""

    dataset: xr.Dataset
    sizes: SampleSizes = FULL
    seed: int = 0
    every: int = 2


@dataclass(frozen=True)
class Panel:
    """One panel of a question's figure, of a relative width."""

    draw: Callable[[Axes], object]
    width: float = 1.0


@dataclass(frozen=True)
class Term:
    """A word of the sentences: its definition, what neurons would show, and the inside of a drawing of 96 × 48 units;
    pattern: the regular expression that finds it in a text (the word itself unless given)."""

    name: str
    definition: str
    recording: str
    drawing: Markup
    pattern: str = ""

    def used_in(self, text: str) -> bool:
        """Whether a text uses the word."""
        return re.search(self.pattern or re.escape(self.name), text) is not None


@dataclass(frozen=True)
class Column:
    """A column of the table of several networks: its heading, its text and what it is."""

    head: str
    text: Callable[[Any, "Mechanism"], str]
    definition: str


@dataclass(frozen=True)
class Verdict:
    """A question's answer as one word, by which networks are compared.

    name: that of the word in JSON; about: what it is about; of: the word, None where it is open; short: how words are
    written in a list of networks; agreed and unknown: the sentence of networks that all give the same word, and of
    those that all give none.
    """

    name: str
    about: str
    of: Callable[["Mechanism"], str | None]
    short: Mapping[str, str]
    agreed: Callable[[list["Mechanism"]], str]
    unknown: Callable[[list["Mechanism"]], str]

    def words(self, found: list["Mechanism"]) -> list[str]:
        """The word of each network, as it is written."""
        given = [self.of(mechanism) for mechanism in found]
        return ["undecided" if word is None else self.short.get(word, word) for word in given]

    def sentence(self, found: list["Mechanism"]) -> str:
        """What one network or several say."""
        given = {self.of(mechanism) for mechanism in found}
        if len(given) > 1:
            return f"The networks differ in {self.about}: {', '.join(self.words(found))}."
        return self.unknown(found) if given == {None} else self.agreed(found)


@dataclass(frozen=True)
class Question:
    """One question.

    name: its key in JSON and tables; title: as a question; definition: what is measured; in_recording: what it would
    look like in a recording; answer: the dataclass of its result. ask: of a network; read: in a recording, or why a
    recording cannot say. unknown: the beginning of the sentence where there is no answer. public: the result as JSON;
    row: as a row of a table; default: whether `lapsus analyse` asks it of a network; needs_swaps: whether it is about
    swaps; statistics: key of a number in JSON → its name on the page of a sweep. contradiction: what in other answers
    speaks against this one; check: a name, whether it holds, and a text. compare: an axis label, and what draws one
    network's answer at a height; gallery: what the first panel shows, in words.
    """

    name: str
    title: str
    definition: str
    in_recording: str
    answer: type
    ask: Callable[[AskedNetwork], Any]
    read: Callable[[Recording], Any] | str
    sentence: Callable[[Any, "Mechanism"], str]
    panels: Callable[[Any, "Mechanism"], list[Panel]]
    caption: str
    unknown: str
    public: Callable[[Any], Any] = to_plain
    row: Callable[[Any, "Mechanism"], dict[str, Any]] = lambda answer, _: answer.row()
    default: bool = True
    needs_swaps: bool = True
    terms: tuple[Term, ...] = ()
    columns: tuple[Column, ...] = ()
    statistics: Mapping[str, str] = field(default_factory=dict)
    verdict: Verdict | None = None
    contradiction: Callable[["Mechanism"], str | None] | None = None
    check: Callable[[Any, "Mechanism"], tuple[str, bool, str]] | None = None
    compare: tuple[str, Callable[[Axes, Any, int], None]] | None = None
    gallery: Callable[[Any], str] | None = None


QUESTIONS: dict[str, Question] = {}


def register(question: Question) -> None:
    """Add a question to those that are asked, after the others."""
    if question.name in QUESTIONS:
        raise LapsusError(f"There is a question {question.name!r} already.")
    QUESTIONS[question.name] = question


def by_default(default: bool = True) -> tuple[str, ...]:
    """Names of the questions that a network is asked by default, or of the others."""
    return tuple(name for name, question in QUESTIONS.items() if question.default == default)


class Mechanism:
    """Answers by question; `left_out` says why there are no others.

    An answer or a verdict is an attribute, too: `found.commitment`, `found.decided`; None where there is none.
    probe_distance: how far apart items were, in radians; clock: that of the answers' times.
    """

    def __init__(
        self,
        left_out: Mapping[str, str] | None = None,
        probe_distance: float = float("nan"),
        clock: Clock = Clock(),  # noqa: B008
        **answers: Any,
    ):
        self.answers = {name: answer for name, answer in answers.items() if answer is not None}
        self.left_out, self.probe_distance, self.clock = dict(left_out or {}), probe_distance, clock

    def __getattr__(self, name: str) -> Any:
        if name in QUESTIONS:
            return self.__dict__.get("answers", {}).get(name)
        for question in QUESTIONS.values():
            if question.verdict is not None and question.verdict.name == name:
                return question.verdict.of(self)
        raise AttributeError(name)

    def __repr__(self) -> str:
        words = ", ".join(f"{name} {word or 'not known'}" for name, word in self.verdicts.items())
        return f"Mechanism({words}; answers: {', '.join(name for name, _ in self.answered)})"

    def _repr_html_(self) -> str:
        rows = {name: f"{value:.3g}" if isinstance(value, float) else value for name, value in self.row().items()}
        return pd.Series(rows, dtype=object).to_frame().to_html(header=False, border=0)

    @property
    def answered(self) -> list[tuple[str, Any]]:
        """Questions with their answers, in order."""
        return [(name, self.answers[name]) for name in QUESTIONS if name in self.answers]

    @property
    def verdicts(self) -> dict[str, str | None]:
        """Every verdict by its name."""
        found = (question.verdict for question in QUESTIONS.values())
        return {verdict.name: verdict.of(self) for verdict in found if verdict is not None}

    @property
    def contradicted(self) -> dict[str, str]:
        """Questions whose answer others contradict, and what they say."""
        found = {}
        for name, _ in self.answered:
            against = QUESTIONS[name].contradiction
            if against is not None and (why := against(self)) is not None:
                found[name] = why
        return found

    def sentence(self, name: str) -> str:
        """The answer to one question in words, or why there is none."""
        question = QUESTIONS[name]
        if name in self.answers:
            return question.sentence(self.answers[name], self)
        return f"{question.unknown}: {self.left_out.get(name, 'it was not asked')}."

    def sentences(self) -> list[str]:
        """One for each question that was asked."""
        return [self.sentence(name) for name in QUESTIONS if name in self.answers or name in self.left_out]

    def row(self) -> dict[str, Any]:
        """The answers as one row of numbers and words."""
        row: dict[str, Any] = {}
        for name, answer in self.answered:
            row |= QUESTIONS[name].row(answer, self)
        row |= {name: "not known" for name in self.contradicted if name in row}
        return row | {"clock": self.clock.unit, "left_out": ", ".join(self.left_out)}

    def to_dict(self) -> dict:
        """Plain numbers, lists and dictionaries, as `lapsus analyse --json` prints them."""
        found = {name: QUESTIONS[name].public(answer) for name, answer in self.answered}
        if np.isfinite(self.probe_distance):
            found["probe_distance"] = self.probe_distance
        return found | {"verdicts": self.verdicts, "clock": self.clock.unit, "left_out": self.left_out}

    def stored(self) -> dict:
        """All of it as plain values, from which `from_stored` makes it again."""
        answers = {name: to_plain(answer) for name, answer in self.answered}
        return answers | {"probe_distance": to_plain(self.probe_distance), "left_out": self.left_out}

    @classmethod
    def from_stored(cls, plain: dict) -> "Mechanism":
        """A ValueError where it is not what `stored` gives."""
        unknown = plain.keys() - QUESTIONS.keys() - {"probe_distance", "left_out"}
        if unknown:
            raise ValueError(f"it has an unknown field {min(unknown)[:40]!r}")
        answers = {
            name: from_plain(question.answer | None, plain[name])
            for name, question in QUESTIONS.items()
            if name in plain
        }
        left_out = from_plain(dict[str, str], plain.get("left_out", {}))
        return cls(left_out, from_plain(float, plain.get("probe_distance")), **answers)


def without_answer(found: Mechanism) -> list[str]:
    """Which questions have no answer and why, one sentence per reason."""
    reasons: dict[str, list[str]] = {}
    for name, question in QUESTIONS.items():
        if name not in found.answers:
            title = question.title.rstrip("?")
            why = found.left_out.get(name, "it was not asked")
            reasons.setdefault(why, []).append(title[0].lower() + title[1:])
    return [f"Without an answer: {'; '.join(titles)} ({why})." for why, titles in reasons.items()]


def summary(found: list[Mechanism]) -> str:
    """All verdicts in words that need no definition, and how sure they are; of one network or several."""
    asked = {name: question.verdict for name, question in QUESTIONS.items() if question.verdict is not None}
    if not any(name in mechanism.answers for mechanism in found for name in asked):
        reasons = [found[0].left_out[name] for name in asked if name in found[0].left_out]
        why = reasons[0] if reasons else "it was not asked"
        if without_swaps(why):
            return f"{'This network makes' if len(found) == 1 else 'These networks make'} no swaps to explain."
        return f"How swaps come about is not known: {why}."
    sure = "This is one network; another may do it in another way."
    if len(found) > 1:
        sure = f"{len(found)} networks were asked."
    return " ".join([*(verdict.sentence(found) for verdict in asked.values()), sure])
