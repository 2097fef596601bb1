"""The five answers in words: when swaps are decided, what carries them, along which axis, which kind, what dynamics.

A sentence is written only if nothing stricter that was computed from the same trials contradicts it: an axis is called
one only where it tells swaps from correct trials that report the same colour; a kind is named only where there were
swap trials enough to tell it from the others.
"""

import numpy as np

from lapsus.analysis.kind import Kind
from lapsus.study.how import Mechanism

__all__ = ["answers", "axis", "carried", "decided", "dynamics", "kind"]

KINDS = {
    "misbinding": "its swaps are misbindings: the colours are exchanged before the cue",
    "misselection": "its swaps are misselections: the cue is read, and the wrong colour is selected after it",
    "misinterpretation": "its swaps are misinterpretations: the cue is taken for the other one",
}


def _steps(value: float) -> str:
    return f"{value:.0f} step{'s' * (round(value) != 1)}"


def _interval(triple: tuple[float, float, float], percent: bool = False) -> str:
    value, low, high = (100 * v for v in triple) if percent else triple
    return f"{value:.0f} % [{low:.0f}, {high:.0f}]" if percent else f"{value:z.2f} [{low:z.2f}, {high:z.2f}]"


def answers(found: Mechanism) -> list[str]:
    """One sentence or two for each question, in order, with the reason where it could not be answered."""
    return [f(found) for f in (decided, carried, axis, kind, dynamics)]


def decided(found: Mechanism) -> str:
    """When?"""
    part = found.commitment
    if part is None:
        if (read := found.decoding) is not None:
            late, early = (
                float(read.auc[-1]),
                float(np.mean(read.auc[read.times < -5])) if (read.times < -5).any() else np.nan,
            )
            return (
                f"When: the coming swap is decoded from held-out trials with an area of {early:.2f} before the cue and"
                f" {late:.2f} at the response (0.5 is chance; {read.swaps:,} swaps)."
            )
        return f"When swaps are decided cannot be said: {found.left_out.get('commitment', 'it was not asked')}."
    before = sum(share for name, share in part.by_epoch.items() if name not in ("cue", "denoise"))
    after = part.half_time
    where = f"{_steps(after)} after the cue" if after >= 0 else f"{_steps(-after)} before cue offset"
    text = (
        f"When: half of the outcome is fixed {where} [{part.half_low:.0f}, {part.half_high:.0f}]; noise before the cue"
        f" fixes {100 * max(before, 0):.0f} % of it."
    )
    if before < 0.1:
        return text + " What comes before the cue sets the odds; noise after it throws the dice."
    return text + " Part of it is decided before the cue."


def carried(found: Mechanism) -> str:
    """By what?"""
    part = found.transplant
    if part is None:
        return f"What carries them cannot be said: {found.left_out.get('transplant', 'it was not asked')}."
    x, m = part.carried_by_x, part.carried_by_m
    if not np.isfinite(x[0]):
        return "What carries them cannot be said: swap and correct trials never part by enough before the response."
    if x[1] > 0.5 and x[1] > m[2]:
        what = "the forming response x"
    elif m[1] > 0.5 and m[1] > x[2]:
        what = "memory m"
    else:
        what = "neither part alone"
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
    if part.low < 0.6:
        return (
            "Axis: among trials that report the same colour, memory at the response hardly tells swaps from correct"
            f" ones ({measured}); an axis that seems to, without holding that colour fixed, finds the colour (it tells"
            f" correct trials apart by it with {part.colour_confound:.2f})."
        )
    same = "one axis for all places" if part.shared > part.shared_null else "another axis at other places"
    return (
        f"Axis: among trials that report the same colour, memory tells swaps from correct ones ({measured}), along"
        f" {same} (cos {part.shared:z.2f}; random directions {part.shared_null:.2f})."
    )


def _told_apart(part: Kind) -> str:
    if part.needed is None:
        return "misselection and misinterpretation predict the same memory activity here"
    if part.needed > part.swaps:
        return (
            f"misselection and misinterpretation predict memory activity only {part.angle:.0f}° apart, and about"
            f" {part.needed:,} swap trials would be needed where there are {part.swaps:,}"
        )
    return "swap trials lie between what the two predict"


def kind(found: Mechanism) -> str:
    """Which kind?"""
    part = found.kind
    if part is None:
        return f"Which kind cannot be said: {found.left_out.get('kind', 'it was not asked')}."
    weights = ", ".join(f"{name} {_interval(value)}" for name, value in part.weights.items())
    trials = f"{part.swaps:,} swap trials; {part.unclear:,} unclear ones left out"
    if part.decision == "no mark":
        return f"Kind: swap trials look like correct ones in memory up to the response ({weights}; {trials})."
    when = "" if not np.isfinite(part.onset) else f" They part from correct trials at step {part.onset:.0f}."
    if part.decision == "cannot tell":
        return (
            f"Kind: not misbinding; which of the other two cannot be told: {_told_apart(part)} ({weights};"
            f" {trials}).{when}"
        )
    return f"Kind: {KINDS[part.decision]} (weights at the end of delay 2: {weights}; {trials}).{when}"


def dynamics(found: Mechanism) -> str:
    """What dynamics?"""
    part = found.dynamics
    if part is None:
        return f"What dynamics cannot be said: {found.left_out.get('dynamics', 'it was not asked')}."
    if not np.isfinite(part.lifetime) or part.lifetime > 200:
        memory = "memories stay without noise"
    else:
        memory = f"memories fade, without noise, to 1/e in {_steps(part.lifetime)}"
    points = f"{part.fixed_points:,} fixed point{'s' * (part.fixed_points != 1)}"
    text = f"Dynamics: before the cue {memory} ({points}; slow points fill {part.manifold_dimension:.1f} dimensions)."
    if np.isfinite(part.half_time):
        text += f" In delay 2, linear response to noise expects half of the outcome fixed at step {part.half_time:.0f}"
        if np.isfinite(part.agreement):
            text += f" (correlation with the commitment curve {part.agreement:.2f})"
        text += "."
    return text
