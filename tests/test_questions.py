"""Questions as entries of a registry: a new one is found everywhere without any other edit."""

import json
from dataclasses import dataclass

import pandas as pd
import pytest
from sweep_members import write_sweep
from typer.testing import CliRunner

from lapsus.cli import app
from lapsus.mechanism import analyse
from lapsus.mechanism.registry import QUESTIONS, Column, Mechanism, Panel, Question, Term, Verdict, register
from lapsus.report.findings import NetworkFindings
from lapsus.report.networks import networks_page
from lapsus.report.terms import glossary
from lapsus.sweep import Sweep, plan_sweep, read_sweep
from lapsus.sweep.collected import collect
from lapsus.sweep.member import run_member
from lapsus.zoo import open_network


@dataclass(frozen=True)
class Toy:
    """How many units there are."""

    units: float

    def row(self):
        return {"toy_units": self.units}


TOY = Question(
    name="toy",
    title="How many units are there?",
    definition="A count of units.",
    in_recording="A count of neurons.",
    answer=Toy,
    ask=lambda network: Toy(float(network.model.network.units)),
    read="there is no recording of it",
    sentence=lambda toy, _: f"Toy: there are {toy.units:.0f} units.",
    panels=lambda toy, _: [Panel(lambda ax: ax.bar([0], [toy.units]))],
    caption="A bar as high as there are units.",
    unknown="How many units there are cannot be said",
    terms=(Term("units", "what a network has.", "Neurons.", "", r"\bunits\b"),),
    columns=(Column("toys", lambda toy, _: f"{toy.units:.0f} toys", "units by another name"),),
    statistics={"units": "Units of the toy"},
    verdict=Verdict(
        "size", "the size", lambda m: m.toy and "small", {}, lambda _: "It is small.", lambda _: "Unsized."
    ),
)


@pytest.fixture
def toy():
    register(TOY)
    yield TOY
    del QUESTIONS["toy"]


@pytest.fixture
def alone(monkeypatch):
    """Nothing but the toy is registered: whatever names another question fails."""
    others = dict(QUESTIONS)
    QUESTIONS.clear()
    register(TOY)
    yield TOY
    QUESTIONS.clear()
    QUESTIONS.update(others)


def _findings(mechanism: Mechanism) -> NetworkFindings:
    network = open_network("index-swap-10")
    evaluation = network.evaluation | {"conditions": 8, "trials": 2}
    return NetworkFindings(network.name, network.experiment, network.update, 60.0, [], evaluation, mechanism, {})


def test_a_new_question_is_on_the_page(toy):
    found = analyse("index-swap-10", only=("toy",))
    assert found.toy == Toy(16.0) and found.size == "small" and found.verdicts["size"] == "small"
    page = networks_page([_findings(found)] * 2)
    for text in (TOY.title, TOY.definition, TOY.in_recording, "Toy: there are 16 units.", TOY.caption, "16 toys"):
        assert text in page, text
    assert "units by another name" in page and "It is small." in page and "Networks agree on the size" in page
    assert TOY.terms[0] in glossary() and "what a network has." in page
    stored = json.loads(json.dumps(found.stored()))
    assert Mechanism.from_stored(stored).toy == found.toy


def test_no_page_needs_any_other_question(alone):
    page = networks_page([_findings(analyse("index-swap-10"))])
    assert TOY.title in page and "When is a swap decided" not in page


def test_a_new_question_is_in_the_json_and_the_table_of_answers(alone, tmp_path):
    said = CliRunner().invoke(app, ["analyse", "index-swap-10", "--json", "-o", str(tmp_path)])
    assert said.exit_code == 0, said.output
    answers = json.loads(said.stdout)
    assert answers["toy"] == {"units": 16.0} and answers["said"] == ["Toy: there are 16 units."]
    assert json.loads((tmp_path / "index-swap-10.json").read_text())["toy"] == {"units": 16.0}
    assert list(pd.read_csv(tmp_path / "mechanism.csv")["toy_units"]) == [16.0]
    assert (tmp_path / "index-swap-10-toy.png").is_file()


def test_a_new_question_is_in_the_table_of_a_sweep_and_on_its_page(toy, tmp_path):
    from lapsus.report.ensemble import ensemble_page

    file = write_sweep(
        tmp_path, {"stage": [{"updates": 1, "conditions": 2, "trials": 4}]}, measure={"questions": ["toy"]}
    )
    sweep = Sweep.make(tmp_path / "out", plan_sweep(read_sweep(file), tmp_path / "out"))
    for name in sweep.plan.members:
        outcome = run_member(sweep, name)
        assert outcome.kind == "done", outcome.reason
    found = collect(sweep)
    assert list(found.members["questions.toy.units"]) == [8.0] * len(sweep.plan.members)
    links = dict.fromkeys(sweep.plan.members, "#")
    assert "Units of the toy" in ensemble_page("t", "", found.members, found.statistics, links)


def test_a_name_is_registered_once(toy):
    from lapsus.errors import LapsusError

    with pytest.raises(LapsusError, match="question 'toy' already"):
        register(TOY)
