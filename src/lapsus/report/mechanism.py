"""The five answers in words: when swaps are decided, what carries them, along which axis, which kind, what dynamics.

A sentence is written only if nothing stricter that was computed from the same trials contradicts it: an axis is called
one only where it tells swaps from correct trials that report the same colour; a kind is named only where there were
swap trials enough to tell it from the others.
"""

import numpy as np

from lapsus.analysis.activity import without_swaps
from lapsus.analysis.kind import Kind
from lapsus.analysis.trialwise import AlignmentTest
from lapsus.study.mechanism import TELLS, Mechanism, parting

__all__ = [
    "TITLES",
    "answers",
    "asked",
    "axis",
    "carried",
    "decided",
    "dynamics",
    "first_answer",
    "kind",
    "planes",
    "predicted",
    "unasked",
]

KINDS = {
    "misbinding": "its swaps are misbindings: the colours are exchanged before the cue",
    "misselection": "its swaps are misselections: the cue is read, and the wrong colour is selected after it",
    "misinterpretation": "its swaps are misinterpretations: the cue is taken for the other one",
    "late switch": "its swaps are late switches: the cue is read as it was given, and only later does memory go over to"
    " the other item",
}

# Of late switches of which part shows when the cue ends.
_BEGUN = (
    "most of its swaps are late switches: the cue is read as it was given, and memory goes most of the way to the other"
    " item later, but part of the way is there when the cue ends"
)


def _steps(value: float) -> str:
    return f"{value:.0f} step{'s' * (round(value) != 1)}"


def _interval(triple: tuple[float, float, float], percent: bool = False) -> str:
    value, low, high = (100 * v for v in triple) if percent else triple
    return f"{value:z.0f} % [{low:z.0f}, {high:z.0f}]" if percent else f"{value:z.2f} [{low:z.2f}, {high:z.2f}]"


def answers(found: Mechanism) -> list[str]:
    """One sentence or two for each question, in order, with the reason where it could not be answered."""
    return [f(found) for f in (decided, carried, axis, kind, dynamics)]


# Figure → the question that it answers.
TITLES = {
    "when": "When is a swap decided?",
    "what": "What carries it?",
    "axis": "Along which direction?",
    "kind": "Which kind of error is it?",
    "dynamics": "By what dynamics?",
}
_PARTS = {"when": "commitment", "what": "transplant", "axis": "swap_axis", "kind": "kind", "dynamics": "dynamics"}


def asked(found: Mechanism) -> dict[str, str]:
    """Figure → its sentence, for the questions that have an answer."""
    said = dict(zip(TITLES, answers(found)))
    return {name: text for name, text in said.items() if getattr(found, _PARTS[name]) is not None}


def unasked(found: Mechanism) -> list[str]:
    """Which questions have no answer and why, one sentence a reason."""
    reasons: dict[str, list[str]] = {}
    for name, part in _PARTS.items():
        if getattr(found, part) is None:
            title = TITLES[name].rstrip("?")
            reasons.setdefault(found.left_out.get(part, "it was not asked"), []).append(title[0].lower() + title[1:])
    return [f"Without an answer: {'; '.join(names)} ({why})." for why, names in reasons.items()]


_WHEN = {"after": "Swaps are decided after the cue", "before": "Part of what becomes a swap is decided before the cue"}
_WHAT = {
    "x": "The slip travels in the response that is forming; memory, put into another trial, does not bring it along.",
    "m": "The slip travels in memory.",
    "neither": "Neither the response that is forming nor memory carries the slip alone.",
}
_WHICH = {
    "misbinding": "The colours change places in memory before the cue.",
    "misselection": "Before the cue the colours are in their places; the wrong colour is selected after it.",
    "misinterpretation": "Before the cue the colours are in their places; the cue is taken for the other one.",
    "late switch": "Before the cue the colours are in their places, and the cue is read as it was given; only later"
    " does memory go over to the other item.",
    "no mark": "Memory shows no trace of it up to the response.",
}

_WHICH_BEGUN = (
    "Before the cue the colours are in their places; in most swap trials the cue is read as it was given and memory"
    " goes most of the way to the other item later, but part of the way is there when the cue ends."
)


def first_answer(found: list[Mechanism]) -> str:
    """When, what and which kind, in words that need no definition, and how sure that is; one network or several."""
    if all(one.commitment is None and one.kind is None for one in found):
        why = found[0].left_out.get("commitment", "it was not asked")
        if without_swaps(why):
            return f"{'This network makes' if len(found) == 1 else 'These networks make'} no swaps to explain."
        return f"How swaps come about is not known: {why}."
    parts = [_first_when(found)]
    for name, said, unknown in (
        ("carrier", _WHAT, "What carries the slip is not known."),
        ("error", _WHICH, _unknown_kind(found)),
    ):
        given = {getattr(one, name) for one in found}
        if given == {None}:
            parts.append(unknown)
        elif len(given) == 1:
            way = given.pop()
            begun = way == "late switch" and any(one.kind is not None and one.kind.begun for one in found)
            parts.append(_WHICH_BEGUN if begun else said[way])
        else:
            words = {"x": "the forming response", "m": "memory", "neither": "neither alone", None: "undecided"}
            each = [words.get(getattr(one, name), getattr(one, name)) for one in found]
            what = "what carries it" if name == "carrier" else "which kind of error it is"
            parts.append(f"Networks do not all say the same about {what}: {', '.join(each)}.")
    sure = (
        "This is one network; another may do it in another way."
        if len(found) == 1
        else f"{len(found)} networks were asked."
    )
    return " ".join([*parts, sure])


def _first_when(found: list[Mechanism]) -> str:
    given = {one.decided for one in found}
    known = [one.commitment for one in found if one.commitment is not None]
    if not known:
        return "When swaps are decided is not known."
    halves = [part.half_time for part in known]
    low, high = min(halves), max(halves)
    steps = _steps(low) if len(known) == 1 or round(low) == round(high) else f"{low:.0f} to {_steps(high)}"
    half = (
        f"half of the outcome is fixed {steps} after it"
        if low >= 0
        else f"half of the outcome is fixed by step {high:.0f}"
    )
    if len(given) > 1:
        each = [{"after": "after", "before": "partly before", None: "undecided"}[one.decided] for one in found]
        return (
            f"Networks do not all say the same about when, relative to the cue, swaps are decided: {', '.join(each)}."
        )
    way = given.pop()
    return (
        f"{_WHEN[way]}; {half}." if way else f"Of when, relative to the cue, a swap is decided, this is known: {half}."
    )


def _unknown_kind(found: list[Mechanism]) -> str:
    kinds = [one.kind for one in found]
    if any(part is None for part in kinds) or any("kind" in one.contradicted for one in found):
        return "Which kind of error it is could not be said."
    if any(one.kind is not None and one.kind.partly_misbound for one in found):
        return "Swaps are of more than one kind; in part of them the colours change places in memory before the cue."
    if any(one.maybe_misbinding for one in found):
        return "Which kind of error it is cannot be told from so few swaps."
    if any(one.kind is not None and one.kind.late for one in found):
        return (
            "Before the cue the colours are in their places; memory goes over to the other item after it, and whether"
            " the cue was read as it was given cannot be told."
        )
    return (
        "Before the cue the colours are in their places; whether the wrong one is selected after it or the cue is taken"
        " for the other one cannot be told apart here."
    )


def planes(found: Mechanism) -> str:
    """Planes of the two colours before and after the cue."""
    part = found.alignment
    if part is None:
        return f"Alignment of the two colour planes was not computed: {found.left_out.get('alignment', 'not asked')}."
    text = f"The planes of the two items' colours have |cos| {part.mean_before:.2f} before the cue and"
    text += f" {part.mean_after:.2f} after it"
    if len(part.degrees) > 1:
        text += f" ({part.before[0]:.2f} for items {part.degrees[0]}° apart and {part.before[-1]:.2f} for"
        text += f" {part.degrees[-1]}°, before it)"
    return text + "."


def predicted(found: Mechanism) -> str:
    """The paper's prediction on single trials."""
    part: AlignmentTest | None = found.prediction
    if part is None:
        why = found.left_out.get("prediction", "it was not asked")
        return f"Whether single trials with better aligned colours are swapped more often cannot be said: {why}."
    return (
        "Single trials: one s.d. more alignment of the two colours before the cue multiplies the odds of a swap by"
        f" {part.odds_ratio:.2f} [{part.low:.2f}, {part.high:.2f}] (permutation p = {part.p:.3f}; {part.swaps:,} swaps"
        f" in {part.trials:,} trials)."
    )


def decided(found: Mechanism) -> str:
    """When?"""
    part = found.commitment
    if part is None:
        if (read := found.decoding) is not None:
            return (
                f"When: the coming swap is decoded from held-out trials with an area of {read.before_cue:.2f} before"
                f" the cue and {read.at_response:.2f} at the response (0.5 is chance; {read.swaps:,} swaps)."
            )
        return f"When swaps are decided cannot be said: {found.left_out.get('commitment', 'it was not asked')}."
    after = part.half_time
    where = f"{_steps(after)} after the cue" if after >= 0 else f"{_steps(-after)} before cue offset"
    text = (
        f"When: half of the outcome is fixed {where} [{part.half_low:.0f}, {part.half_high:.0f}]; what differs"
        f" between trials before the cue fixes {_interval(part.before_cue, True)} of it."
    )
    if "commitment" in found.contradicted:
        return text + f" But {found.contradicted['commitment']}: trials that are shown the same differ before it."
    if found.decided == "after":
        return text + " What comes before the cue sets the odds; noise after it throws the dice."
    if found.decided == "before":
        return text + " Part of it is decided before the cue."
    return text + " Whether a part that matters is decided before the cue cannot be said from so few conditions."


def carried(found: Mechanism) -> str:
    """By what?"""
    part = found.transplant
    if part is None:
        return f"What carries them cannot be said: {found.left_out.get('transplant', 'it was not asked')}."
    x, m = part.carried_by_x, part.carried_by_m
    if found.carrier is None:
        return "What carries them cannot be said: swap and correct trials never part by enough before the response."
    what = {"x": "the forming response x", "m": "memory m", "neither": "neither part alone"}[found.carrier]
    return (
        f"Carried by {what}: transplanted between trials of the same condition, x takes {_interval(x, True)} of the"
        f" difference with it and m {_interval(m, True)} ({part.pairs:,} pairs of trials)."
    )


def axis(found: Mechanism) -> str:
    """Along which direction?"""
    if found.swap_axis is None:
        return f"Along which axis cannot be said: {found.left_out.get('swap_axis', 'it was not asked')}."
    part = found.swap_axis.axis
    measured = f"held-out area {part.auc:.2f} [{part.low:.2f}, {part.high:.2f}], shuffled {part.null:.2f}"
    if not found.axis_tells:
        read = found.decoding
        by = ""
        if read is not None and read.at_response >= TELLS:
            by = f"a held-out decoder reads the swap from memory at the response (area {read.at_response:.2f}) by the"
            by += " colour that is reported: "
        return (
            f"Axis: {by}among trials that report the same colour, memory hardly tells swaps from correct ones"
            f" ({measured}). An axis that does not hold that colour fixed finds the colour (it tells correct trials"
            f" apart by it with {part.colour_confound:.2f})."
        )
    same = "one axis for all places" if part.shared > part.shared_null else "another axis at other places"
    return (
        f"Axis: among trials that report the same colour, memory tells swaps from correct ones ({measured}), along"
        f" {same} (cos {part.shared:z.2f}; random directions {part.shared_null:.2f}): it still holds which colour was"
        " asked for."
    )


def _told_apart(part: Kind) -> str:
    if part.late and part.cue_read is None:
        return (
            "swap trials go over after the cue, and whether it was read as it was given cannot be said, since memory at"
            " cue offset does not hold it"
        )
    if part.cue_read and part.contrast[2] < 0:
        return "memory in the end is as after the other cue, but at cue offset it holds the cue that was given"
    if part.needed is None:
        return "misselection and misinterpretation predict the same memory activity here"
    if part.needed > part.swaps:
        return (
            f"misselection and misinterpretation predict memory activity only {part.angle:.0f}° apart, and about"
            f" {part.needed:,} swap trials would be needed where there are {part.swaps:,}"
        )
    return "swap trials lie between what the two predict"


def _parting(found: Mechanism) -> str:
    """When swap and correct trials part (lapsus.study.mechanism.parting)."""
    apart = parting(found.kind, found.decoding)
    if apart is None:
        return ""
    step, decoded = apart
    when = f"step {step:.0f}" if float(step).is_integer() else f"time {step:g}"
    if decoded:
        return f" A held-out decoder tells them from correct trials from {when} on."
    return f" They part from correct trials at {when}."


def kind(found: Mechanism) -> str:
    """Which kind?"""
    part = found.kind
    if part is None:
        return f"Which kind cannot be said: {found.left_out.get('kind', 'it was not asked')}."
    weights = ", ".join(f"{name} {_interval(value)}" for name, value in part.weights.items())
    trials = f"{part.swaps:,} swap trials; {part.unclear:,} unclear ones left out"
    if "kind" in found.contradicted:
        return (
            f"Kind: none of the three kinds describes these swaps ({weights}; {trials}), although"
            f" {found.contradicted['kind']}."
        )
    if part.decision == "no mark":
        return f"Kind: swap trials look like correct ones in memory up to the response ({weights}; {trials})."
    when = _parting(found)
    if part.decision == "cannot tell" and part.partly_misbound:
        return f"Kind: more than one: part of the swaps are misbindings, and part are not ({weights}; {trials}).{when}"
    if part.decision == "cannot tell" and found.maybe_misbinding:
        return f"Kind: which of the kinds cannot be told from so few swaps ({weights}; {trials}).{when}"
    if part.decision == "cannot tell":
        return (
            f"Kind: not misbinding; which of the other two cannot be told: {_told_apart(part)} ({weights};"
            f" {trials}).{when}"
        )
    named = _BEGUN if part.decision == "late switch" and part.begun else KINDS[part.decision]
    text = f"Kind: {named} (weights at the end of delay 2: {weights}; {trials}).{when}"
    if part.decision != "late switch":
        return text
    return (
        f"{text} At cue offset all weights together are {_interval(part.at_offset)}, and memory is that of the other"
        f" cue in {_interval(part.misread, True)} of swap trials."
    )


def dynamics(found: Mechanism) -> str:
    """What dynamics?"""
    part = found.dynamics
    if part is None:
        return f"What dynamics cannot be said: {found.left_out.get('dynamics', 'it was not asked')}."
    if found.memory_stays:
        memory = "memories stay without noise"
    else:
        memory = f"memories fade, without noise, to 1/e in {_steps(part.lifetime)}"
    if part.fixed_points == 1 and part.manifold_dimension == 0:
        points = "one fixed point, to which all decay"
    else:
        many = f"{part.fixed_points:,} fixed point{'s' * (part.fixed_points != 1)}"
        points = f"{many}; slow points fill {part.manifold_dimension:.1f} dimensions"
    text = f"Dynamics: before the cue {memory} ({points})."
    if np.isfinite(part.half_time):
        text += f" In delay 2, linear response to noise expects half of the outcome fixed at step {part.half_time:.0f}"
        if np.isfinite(part.agreement):
            text += f" (correlation with the commitment curve {part.agreement:.2f})"
        text += "."
    return text
