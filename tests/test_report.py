"""The report as a file: one, small, self-contained, and nothing from outside is executed."""

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_discovery import HOSTILE, TINY, made

from lapsus import Discovery, open_network, report, verdict
from lapsus.errors import LapsusError
from lapsus.evaluation.sample_sizes import QUICK
from lapsus.pipeline.reports import write_report
from lapsus.plots.panels import _dark
from lapsus.report.discovery import _data, _paragraphs
from lapsus.report.parts import script_json, shortened
from lapsus.report.terms import by_first_use, glossary
from lapsus.training import Experiment, train
from lapsus.trials import Trials
from lapsus.zoo import Run


class Elements(HTMLParser):
    """Every start tag with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


@pytest.fixture(scope="module")
def page():
    return (made() / "report.html").read_text()


def check_page(text):
    assert len(text.encode()) < 8e6
    tags = Elements(text).tags
    for tag, attributes in tags:
        for name in ("src", "srcset", "href", "action", "data", "poster"):
            if attributes.get(name):
                assert attributes[name].startswith(("data:", "#")), f"{tag} {name}={attributes[name][:80]}"
        assert not any(name.startswith("on") for name in attributes), f"{tag} has an inline handler"
    images = [a for t, a in tags if t == "img"]
    assert images and all(a.get("alt", "").strip() and a["width"] and a["height"] for a in images)
    assert not re.search(r"(?:url\(|@import|fetch\(|XMLHttpRequest|WebSocket)", text)
    return tags


@pytest.mark.slow
def test_one_self_contained_page(page):
    tags = check_page(page)
    assert sum(t == "script" for t, _ in tags) == 2 and any(t == "canvas" for t, _ in tags)
    heads = re.findall(r"<h2[^>]*>([^<]+)", page)
    assert heads == [
        "What was found",
        "The data",
        "The behaviour fit",
        "Network against data",
        "The mechanism",
        "How sure we are",
        "Methods",
        "How this was made",
    ]
    facts = json.loads((made() / "discovery.json").read_text())
    statuses = re.findall(r'class="status">(.) ', page)
    assert statuses == sorted(statuses, key="✗?≈✓".index) and len(statuses) == len(facts["checks"])


@pytest.mark.slow
def test_hostile_names_are_text(page):
    assert HOSTILE not in page and "<script>alert" not in page and "<img src=x" not in page and "<b>column" not in page
    assert "&lt;script&gt;alert(" in page and "longlong" * 40 not in page


def test_data_cannot_end_its_script_element():
    text = str(script_json({"x": "</script><script>alert(1)</script><!-- &"}))
    assert "<" not in text and ">" not in text and json.loads(text)["x"].startswith("</script>")


def test_names_are_shortened_and_made_visible():
    assert len(shortened("x" * 10_000)) == 120 and shortened("a\x00\nb\u202e") == "a\ufffd\ufffdb\ufffd"


def test_greys_turn_over_on_dark_pages_and_light_colours_stay():
    svg = '<svg width="1"><path style="fill: #ffffff; stroke: #000000"/><path style="fill: #d55e00"/></svg>'
    dark = _dark(svg)
    white, black = re.search(r"fill: #(..)", dark)[1], re.search(r"stroke: #(..)", dark)[1]
    assert int(white, 16) < 40 and int(black, 16) > 200 and "#d55e00" in dark and 'fill="#ececec"' in dark
    violet = re.search("stroke: #(..)(..)(..)", _dark('<svg ><path style="stroke: #482576"/></svg>'))
    assert sum(int(part, 16) for part in violet.groups()) > 1.8 * (0x48 + 0x25 + 0x76)  # too dark for a dark page


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("<b>runs &")
    made_runs = []
    for seed, swap in ((1, {"kind": "smooth"}), (2, {"kind": "none"})):
        described = Experiment.model_validate(
            {
                "name": "<i>tiny",
                "seed": seed,
                "task": {"kind": "feature-cued"},
                "network": TINY,
                "behaviour": {"kind": "bns", "swap": swap},
                "stage": [{"updates": 3, "conditions": 8, "trials": 4}],
            }
        )
        run = Run.create(folder / f"<script>run-{seed}", described)
        train(run, progress=False)
        made_runs.append(run)
    return made_runs


@pytest.mark.slow
def test_any_runs_side_by_side(runs, tmp_path):
    path = write_report([str(run.path) for run in runs], tmp_path / "two.html", sizes=QUICK)
    text = path.read_text()
    check_page(text)
    assert text.count("<canvas") == 2 and "<script>run" not in text and "<i>tiny" not in text and "network 2" in text
    assert "The data" not in re.findall(r"<h2[^>]*>([^<]+)", text)


def test_files_of_others_are_not_overwritten(runs, tmp_path):
    (tmp_path / "mine.html").write_text("years of work")
    with pytest.raises(LapsusError, match="not a report of ours"):
        write_report([str(runs[0].path)], tmp_path / "mine.html")
    assert (tmp_path / "mine.html").read_text() == "years of work"
    with pytest.raises(LapsusError, match="nowhere"):
        write_report([str(tmp_path / "nowhere")], tmp_path / "x.html")


def test_pages_share_one_head():
    """Every template of a page extends the base, which alone has a head."""
    templates = {path.name: path.read_text() for path in Path(report.__file__).parent.glob("*.html")}
    assert {name for name, text in templates.items() if "<head>" in text} == {"base.html"}
    extending = {name for name, text in templates.items() if text.startswith('{% extends "base.html" %}')}
    assert extending == {"page.html", "ensemble.html", "gallery.html", "live.html", "designed.html"}


def test_orientations_in_a_report_are_those_of_the_user():
    """Errors of 10° of orientation are 10° in the table of subjects and on the axis, whatever circle they lie on."""
    rng = np.random.default_rng(0)
    target = rng.uniform(0, 180, 60)
    turned = target + np.tile([10.0, -10.0], 30)
    rows = {"subject": ["a", "b"] * 30, "response": turned % 180, "target": target, "non_target_1": (target + 60) % 180}
    trials = Trials.from_table(pd.DataFrame(rows), unit="degrees_180")
    shown = _data(trials, {"model": "constant", "weights": [{"trials": 60, "non_target": 0.1}]}, [])
    assert [row[2] for row in shown["subjects"]["body"]] == ["10.0", "10.0"]
    assert "repeat after 180°" in shown["text"]


def test_a_summary_breaks_between_sentences_and_not_within_columns():
    summary = "One.\nTwo.\nmodel   swaps\nprobe   18 %\nAfter it.\n\n    45°   0.2\n    90°   0.1"
    assert _paragraphs(summary) == [
        (False, "One. Two."),
        (True, "model   swaps\nprobe   18 %"),
        (False, "After it."),
        (True, "    45°   0.2\n    90°   0.1"),
    ]


def test_a_word_is_defined_where_it_is_first_used():
    said = {"found": "Half is fixed at step 20.", "type": "x carries it, its swaps are misselections.", "end": "x, m"}
    names = {place: [term.name for term in terms] for place, terms in by_first_use(said).items()}
    assert names == {"found": [], "type": ["x and m", "misselection"], "end": []}


@pytest.mark.slow
def test_every_word_of_the_page_is_defined_once(page):
    defined = re.findall(r"<dt>([^<]+)</dt>", page)
    assert sorted(defined) == sorted(set(defined))
    words = _words_of(page)
    for term in glossary():
        assert (term.name in defined) == term.used_in(words), term.name


def _words_of(page: str) -> str:
    """What a reader is told: without definitions, configurations, scripts and drawings."""
    for part in ("style", "script", "svg", "pre", "dl", "blockquote", "title", "header"):
        page = re.sub(rf"<{part}[ >].*?</{part}>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.mark.slow
def test_nothing_is_said_twice(page):
    sentences = re.split(r"(?<=[.;:]) ", _words_of(page))
    long = [sentence for sentence in sentences if len(sentence) > 60]
    assert len(long) > 20 and len(long) == len(set(long)), [one for one in long if long.count(one) > 1]


@pytest.mark.slow
def test_results_show_themselves_shortly_and_in_notebooks():
    """A line in a terminal, and a piece of HTML in which nothing of the user's is executed."""
    found = Discovery(made())
    results = [found, found.trials, found.fit, found.matches[0], found.mechanisms[0], verdict(found.evaluations[0])]
    for one in results:
        assert "\n" not in repr(one) and len(repr(one)) < 500, type(one)
        assert one._repr_html_().startswith("<") and "<script" not in one._repr_html_(), type(one)
    for other in (found.runs[0], found.models[0], open_network("index-swap-10")):
        assert "\n" not in repr(other) and len(repr(other)) < 500 and " object at " not in repr(other)
