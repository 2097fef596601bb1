"""One self-contained page: everything it shows is inside it, and everything from outside is escaped."""

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lapsus.files import check_file, read_bytes
from lapsus.report.terms import by_first_use

# Every page of ours says so in its footer; what does not is not replaced.
MARK = "Made by lapsus"
_FOOTER = re.compile(rf"<footer>(<p>)?{MARK}".encode())
SECTIONS = {
    "found": "What was found",
    "data": "The data",
    "fit": "The behaviour fit",
    "match": "Network against data",
    "mechanism": "The mechanism",
    "sure": "How sure we are",
    "methods": "Methods",
    "made": "How this was made",
}


def render(context: dict[str, Any], template: str = "page.html") -> str:
    """The page. Autoescape is on: only our own style, script and already escaped data are marked safe."""
    here = Path(__file__).parent
    environment = Environment(
        loader=FileSystemLoader(here), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    css, script = (Markup((here / name).read_text()) for name in ("page.css", "page.js"))
    resources = {"css": css, "script": script, "terms": by_first_use(_texts(context)) if "networks" in context else {}}
    return environment.get_template(template).render(context | resources)


def _texts(context: dict[str, Any]) -> dict[str, str]:
    """Place → what it says, for the places of a report at which words can be defined, in its order."""
    networks = context["networks"]
    against = [picture.caption for network in networks for picture in network["match_pictures"]]
    texts = {
        "found": [context["answer"], context["verdict"]["text"], *context["sentences"]],
        "match": [*(row[0] for row in context["match_table"]["body"]), *against],
        "mechanism": [context["mechanism_columns"]] if len(networks) > 1 else [],
    }
    for which, network in enumerate(networks, 1):
        for asked in network["questions"]:
            texts[f"{asked['title']} {which}"] = [asked["definition"], asked["text"], asked["picture"].caption]
        texts[f"rings {which}"] = [network["rings"]["axes"]] if network["rings"] else []
    texts["sure"] = [check.text for check in context["checks"]]
    return {section: " ".join(sentences) for section, sentences in texts.items()}


def page_place(path: Path) -> Path:
    """Where a page may be written: nothing is there, or one of our own pages."""
    check_file(path, "a report of ours", lambda page: _FOOTER.search(read_bytes(page)) is not None)
    return path
