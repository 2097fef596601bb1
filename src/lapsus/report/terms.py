"""The words of a page: what each means, a small drawing, and how it would look in a recording."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

__all__ = ["TERMS", "Term", "by_first_use"]


@dataclass(frozen=True)
class Term:
    """A word, its definition in a line, what neurons would show, and the inside of a drawing of 96 × 48 units; `said`
    is what in a text is a use of it (a regular expression; the word itself unless given)."""

    name: str
    definition: str
    recording: str
    drawing: Markup
    said: str = ""

    def used_in(self, text: str) -> bool:
        """Whether a text uses the word."""
        return re.search(self.said or re.escape(self.name), text) is not None


def _arrow(x1: int, y1: int, x2: int, y2: int) -> str:
    """A line with a dot at its end."""
    return f'<path d="M{x1} {y1}L{x2} {y2}"/><circle cx="{x2}" cy="{y2}" r="2.5" fill="currentColor"/>'


_ITEMS = '<circle cx="12" cy="12" r="6"/><rect x="6" y="30" width="12" height="12"/>'
_PLACES = '<path d="M78 12h12M78 36h12"/>'

TERMS = (
    Term(
        "misbinding",
        "the two colours change places in memory before the cue; the cue then finds the wrong one.",
        "Before the cue, decoders of each item's colour read the other item's colour on swap trials.",
        Markup(_ITEMS + _PLACES + _arrow(20, 12, 74, 36) + _arrow(20, 36, 74, 12)),
    ),
    Term(
        "misselection",
        "memory is right and the cue is read, but it selects the wrong colour.",
        "Before the cue swap trials look like correct ones; once it has been shown, the colours have changed roles.",
        Markup(_ITEMS + _PLACES + _arrow(20, 12, 74, 12) + '<path d="M20 36L74 36" stroke-dasharray="2 4"/>'),
    ),
    Term(
        "misinterpretation",
        "memory is right, but the cue is taken for that of the other item.",
        "On swap trials the cue itself is decoded as the other item's, as soon as it is shown.",
        Markup(_ITEMS + '<path d="M48 6v36" stroke-dasharray="2 4"/>' + _arrow(90, 36, 56, 12)),
    ),
    Term(
        "late switch",
        "memory is right and the cue is read as it was given; later, in the delay, memory goes over to the other item.",
        "When the cue ends, swap trials look like correct ones with the cue that was given; they part later.",
        Markup(_ITEMS + _PLACES + '<path d="M20 12L46 12"/>' + _arrow(46, 12, 74, 36)),
        r"late switch",
    ),
    Term(
        "plane alignment",
        "each item's colour moves activity within a plane; |cos| is 1 where the two planes are parallel, 0 where they"
        " are perpendicular, about 0.5 where they have nothing to do with each other.",
        "A decoder of one item's colour works for the other one where planes are aligned, and fails elsewhere.",
        Markup('<path d="M6 40l30-10 24 8-30 10zM6 20l30-10 24 8-30 10z"/><path d="M72 6v36l16-8V-2z"/>'),
        r"\bplanes\b|\|cos\|",
    ),
    Term(
        "x and m",
        "x is the part of activity that is read out, the forming response; m is all the rest, the memory.",
        "x would be what an optimal linear readout of the response uses; m what is left when that is taken off.",
        Markup(
            '<path d="M12 40V8M12 40h34M12 40l22-16"/><g font-size="11" fill="currentColor" stroke="none">'
            '<text x="2" y="12">x</text><text x="50" y="42">m</text></g>'
        ),
        r"\b[xm]\b",
    ),
    Term(
        "rings",
        "activity at the response, over all colours of one item, closes to a ring; swaps may lie on their own.",
        "At the response, swap trials would lie on a ring of their own, shifted along a direction normal to both.",
        Markup(
            '<ellipse cx="48" cy="15" rx="36" ry="9"/><ellipse cx="48" cy="35" rx="36" ry="9" stroke-dasharray="3 3"/>'
        ),
        r"\brings\b",
    ),
    Term(
        "excess",
        "how much larger the network's loss is than that of the best possible denoiser; 0 is perfect.",
        "No counterpart: it needs the distribution that the network was trained on.",
        Markup('<path d="M6 6C20 34 40 36 90 36"/><path d="M6 43h84" stroke-dasharray="3 3"/>'),
        r"\b[Ee]xcess\b",
    ),
)


def by_first_use(texts: Mapping[str, str]) -> dict[str, list[Term]]:
    """Place → the words that are used there and at no place before it; texts: place → what it says, in the page's
    order."""
    found, left = {}, list(TERMS)
    for place, text in texts.items():
        found[place] = [term for term in left if term.used_in(text)]
        left = [term for term in left if term not in found[place]]
    return found
