"""What behaviour determines of a mechanism, and what it does not: networks of different objectives, matched to the same
responses, that agree or differ."""

from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from lapsus.evaluation.manipulations import Separation, title_of
from lapsus.evaluation.predictive_density import DensityDifference
from lapsus.mechanism.recording_needs import CORRECT, earliest
from lapsus.mechanism.registry import QUESTIONS, Verdict
from lapsus.report.findings import NetworkFindings

# Why networks of one objective alone say nothing about the subject.
_FOLLOWS = {
    "diffusion": (
        "Under the diffusion objective, no noise before cue offset can decide the response, so a late decision follows"
        " from the objective and not from the behaviour."
    ),
    "energy": "A network trained with another objective may produce the same behaviour by another mechanism.",
}


@dataclass(frozen=True)
class Determined:
    """On which verdicts matched networks agree and differ.

    objectives: those with a matched network; agree: verdict → the word of all; differ: verdict → the word of each
    network (None where it has no answer); sentences: the same in words, the answer first.
    """

    objectives: tuple[str, ...]
    agree: dict[str, str]
    differ: dict[str, dict[str, str | None]]
    sentences: list[str] = field(default_factory=list)


def objective_of(network: NetworkFindings) -> str:
    """What a network was trained by."""
    return str(network.experiment.stage[-1].objective["kind"])


def by_objective(networks: list[NetworkFindings]) -> dict[str, list[NetworkFindings]]:
    """Networks by what they were trained by."""
    groups: dict[str, list[NetworkFindings]] = {}
    for network in networks:
        groups.setdefault(objective_of(network), []).append(network)
    return groups


def determined(
    networks: list[NetworkFindings],
    separations: list[Separation],
    density: DensityDifference | None = None,
    needs: pd.DataFrame | None = None,
) -> Determined:
    """What the matched networks of a discovery say together; separations: the manipulations that tell them apart;
    density: which of them predicts the trials better over durations that the table has; needs: what recordings of them
    would show."""
    matched = [network for network in networks if network.match is not None and network.match.matched]
    agree: dict[str, str] = {}
    differ: dict[str, dict[str, str | None]] = {}
    for verdict in verdicts():
        words = {network.name: verdict.of(network.mechanism) for network in matched}
        different = set(words.values())
        if len(different) == 1 and None not in different:
            agree[verdict.name] = str(*different)
        elif different - {None}:
            differ[verdict.name] = words
    result = Determined(tuple(by_objective(matched)), agree, differ)
    sentences = _sentences(result, networks, matched)
    if result.differ and len(result.objectives) > 1:
        if density is not None:
            sentences.append(_density_sentence(density))
        sentences.append(_what_would_decide(separations))
        if needs is not None and len(needs):
            sentences.append(_recording_sentence(needs))
    return replace(result, sentences=sentences)


def network_rows(networks: list[NetworkFindings]) -> list[dict[str, Any]]:
    """Each network as discovery.json has it."""
    return [
        {
            "name": network.name,
            "objective": objective_of(network),
            "matched": network.match is not None and network.match.matched,
            **network.mechanism.verdicts,
            "shares": getattr(network.mechanism.commitment, "shares", {}),
        }
        for network in networks
    ]


def verdicts() -> list[Verdict]:
    """Verdicts of all questions that have one."""
    return [question.verdict for question in QUESTIONS.values() if question.verdict is not None]


def _sentences(found: Determined, networks: list[NetworkFindings], matched: list[NetworkFindings]) -> list[str]:
    if not matched:
        return ["No network is matched, so nothing can be said about the mechanism of this behaviour."]
    if not (found.agree or found.differ):
        return ["The matched networks make no swaps to explain."]
    if len(found.objectives) == 1:
        objective = found.objectives[0]
        only = (
            "All networks were trained with the {} objective"
            if len(by_objective(networks)) == 1
            else "Only networks trained with the {} objective are matched"
        )
        follows = _FOLLOWS.get(objective, "")
        return [f"{only.format(objective)}, so what the behaviour determines remains open. {follows}".strip()]
    mechanisms = [network.mechanism for network in matched]
    names = " and ".join(found.objectives)
    sentences = [f"Networks trained with the {names} objectives reproduce the same responses."]
    agreed = [verdict.sentence(mechanisms) for verdict in verdicts() if verdict.name in found.agree]
    if agreed:
        sentences.append(f"All of them agree: {' '.join(agreed)}")
    if not found.differ:
        return [*sentences, "They do not differ in any answer."]
    for verdict in verdicts():
        if verdict.name in found.differ:
            words = verdict.words(mechanisms)
            listed = "; ".join(f"{network.name}: {word}" for network, word in zip(matched, words))
            sentences.append(f"They differ in {verdict.about} ({listed}).")
    return [*sentences, "The behaviour alone therefore does not determine this."]


def _density_sentence(found: DensityDifference) -> str:
    """Whether the durations of the table already tell the objectives apart."""
    first, second = found.kinds
    numbers = (
        f"mean difference in log density ({first} minus {second}) {found.difference:+.4f}"
        f" [{found.low:+.4f}, {found.high:+.4f}] per trial, {found.trials:,} trials"
    )
    changes = f"How responses change with the column {found.column}"
    if found.favours is None:
        return f"{changes} does not tell them apart ({numbers})."
    return f"{changes} favours the networks trained with the {found.favours} objective ({numbers})."


def _what_would_decide(separations: list[Separation]) -> str:
    useful = [separation for separation in separations if separation.trials is not None]
    if not useful:
        return "None of the manipulations that were simulated tells them apart; a recording could."
    best = useful[0]
    effects = " and ".join(f"{100 * effect:+.1f} ({kind})" for kind, effect in best.effects.items())
    what = title_of(best.manipulation, best.level, " at")
    return (
        f"What would decide it: {what} changes the swap rate by {effects} percentage points; {best.trials:,} trials"
        " with it and as many without tell these apart with a power of 80 %."
    )


# Neurons of the recording that a sentence speaks of.
_NEURONS = 100


def _recording_sentence(needs: pd.DataFrame) -> str:
    """When a recording would show the coming swap, network by network."""
    sentences = []
    for name in dict.fromkeys(needs["network"]):
        first = earliest(needs, name, _NEURONS)
        if first is None:
            sentences.append(f"{name}: not with {_NEURONS} neurons")
        else:
            sentences.append(f"{name}: from {first[0]} on, with {first[1]} swaps")
    if len({text.partition(": ")[2] for text in sentences}) == 1:
        same = sentences[0].partition(": ")[2]
        return f"In a recording of {_NEURONS} neurons, the upcoming swap would be read alike in all of them ({same})."
    return (
        f"A recording would show when the upcoming swap can be read ({_NEURONS} neurons, {CORRECT} correct trials):"
        f" {'; '.join(sentences)}."
    )
