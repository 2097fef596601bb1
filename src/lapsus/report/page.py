"""One self-contained page: everything it shows is inside it, and everything from outside is escaped."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lapsus.report.terms import TERMS

__all__ = ["MARK", "SECTIONS", "render"]

# Every page of ours says so; what does not is not replaced.
MARK = "Made by lapsus"
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
    own = {"css": Markup((here / "page.css").read_text()), "script": Markup((here / "page.js").read_text())}
    own |= {"terms": TERMS}
    return environment.get_template(template).render(context | own)
