"""The words of a page: those of every question, and those of the page itself."""

from collections.abc import Mapping

from markupsafe import Markup

from lapsus.mechanism.registry import QUESTIONS, Term

_EXCESS = Term(
    "excess",
    "how much larger the network's loss is than that of the best possible denoiser; 0 is perfect.",
    "No counterpart: it needs the distribution that the network was trained on.",
    Markup('<path d="M6 6C20 34 40 36 90 36"/><path d="M6 43h84" stroke-dasharray="3 3"/>'),
    r"\b[Ee]xcess\b",
)


def glossary() -> list[Term]:
    """All words that are defined."""
    return [*(term for question in QUESTIONS.values() for term in question.terms), _EXCESS]


def by_first_use(texts: Mapping[str, str]) -> dict[str, list[Term]]:
    """Place → the words that are used there and at no place before it; texts: place → what it says, in the page's
    order."""
    used, left = {}, glossary()
    for section, text in texts.items():
        used[section] = [term for term in left if term.used_in(text)]
        left = [term for term in left if term not in used[section]]
    return used
