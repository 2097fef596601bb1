"""What matched networks of two objectives say together: each sentence on findings for which it is true and false."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from lapsus.evaluation.manipulations import Separation
from lapsus.mechanism.registry import Verdict
from lapsus.report import determined as page
from lapsus.report.determined import determined


@pytest.fixture(autouse=True)
def toy_verdicts(monkeypatch):
    """Two verdicts that read a word off a toy mechanism."""

    def verdict(name, about):
        return Verdict(
            name=name,
            about=about,
            of=lambda mechanism: mechanism.words.get(name),
            short={},
            agreed=lambda found: f"{about}: {found[0].words[name]}.",
            unknown=lambda found: f"{about} is not known.",
        )

    toys = [verdict("decided", "when swaps are decided"), verdict("carrier", "what carries swaps")]
    monkeypatch.setattr(page, "verdicts", lambda: toys)


def network(name, objective, matched=True, **words):
    stage = SimpleNamespace(objective={"kind": objective})
    return SimpleNamespace(
        name=name,
        experiment=SimpleNamespace(stage=[stage]),
        match=SimpleNamespace(matched=matched),
        mechanism=SimpleNamespace(words=words, commitment=None, verdicts=words),
    )


CUE = Separation("cue", 10.0, {"diffusion": 0.01, "energy": -0.04}, 0.0, -0.05, 410)


def test_what_differs_is_not_determined_and_what_agrees_is_said_first():
    networks = [
        network("diffusion-1", "diffusion", decided="after", carrier="memory"),
        network("energy-1", "energy", decided="before", carrier="memory"),
    ]
    found = determined(networks, [CUE])
    assert found.agree == {"carrier": "memory"}
    assert found.differ == {"decided": {"diffusion-1": "after", "energy-1": "before"}}
    said = " ".join(found.sentences)
    assert said.index("All of them agree: what carries swaps: memory.") < said.index("They differ in when swaps")
    assert "diffusion-1: after; energy-1: before" in said and "does not determine this" in said
    assert "duration of the cue at 0.5 s (10 steps)" in said and "410 trials" in said


def test_where_all_agree_nothing_is_called_undetermined():
    networks = [network(f"{o}-1", o, decided="after", carrier="response") for o in ("diffusion", "energy")]
    found = determined(networks, [CUE])
    assert not found.differ and "does not determine" not in " ".join(found.sentences)
    assert found.sentences[-1] == "They do not differ in any answer."


def test_networks_that_are_not_matched_say_nothing():
    networks = [
        network("diffusion-1", "diffusion", decided="after"),
        network("energy-1", "energy", matched=False, decided="before"),
    ]
    found = determined(networks, [])
    assert found.objectives == ("diffusion",) and found.differ == {}
    (said,) = found.sentences
    assert said.startswith("Only networks trained with the diffusion") and "follows from the objective" in said
    (none,) = determined([network("a", "energy", matched=False, decided="after")], []).sentences
    assert none.startswith("No network is matched")


def test_one_objective_is_never_a_finding_about_the_subject():
    for objective in ("diffusion", "energy"):
        (said,) = determined([network("a", objective, decided="after")], []).sentences
        assert "what the behaviour determines remains open" in said
        assert ("follows from the objective and not" in said) == (objective == "diffusion")
        assert ("by another mechanism" in said) == (objective == "energy")


def test_without_a_manipulation_that_separates_it_says_so():
    networks = [network("diffusion-1", "diffusion", decided="after"), network("energy-1", "energy", decided="before")]
    useless = Separation("cue", 10.0, {"diffusion": 0.0, "energy": 0.0}, 0.1, 0.0, None)
    assert "None of the manipulations" in determined(networks, [useless]).sentences[-1]


def test_an_answer_that_one_network_lacks_is_a_difference():
    networks = [network("diffusion-1", "diffusion", decided="after"), network("energy-1", "energy")]
    assert determined(networks, []).differ["decided"] == {"diffusion-1": "after", "energy-1": None}


def needs(**swaps):
    rows = [
        {"network": name, "objective": "", "units": 100, "window": window, "area": 0.7, "swaps": count}
        for name, by_window in swaps.items()
        for window, count in by_window.items()
    ]
    return pd.DataFrame(rows)


def test_what_a_recording_would_show_is_said_network_by_network():
    networks = [network("diffusion-1", "diffusion", decided="after"), network("energy-1", "energy", decided="before")]
    early = needs(a={"cue": np.nan, "late delay 2": 40.0}, b={"cue": 20.0, "late delay 2": 10.0})
    said = determined(networks, [CUE], needs=early).sentences[-1]
    assert "a: from late delay 2 on, with 40 swaps; b: from cue on, with 20 swaps" in said
    alike = needs(a={"cue": 20.0}, b={"cue": 20.0})
    assert "alike in all of them" in determined(networks, [CUE], needs=alike).sentences[-1]
    never = needs(a={"cue": np.nan}, b={"cue": 20.0})
    assert "a: not with 100 neurons" in determined(networks, [CUE], needs=never).sentences[-1]
