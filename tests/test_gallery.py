"""The gallery: a row a network, written where nothing else is lost."""

import pytest
from typer.testing import CliRunner

from lapsus.cli import app
from lapsus.evaluation.sample_sizes import QUICK
from lapsus.report.gallery import gallery_page


@pytest.mark.slow
def test_a_row_a_network_with_its_picture_and_numbers():
    looked_at = []
    names = ["index-swap-10", "feature-optimal-40", "persistent-feature-smooth-2", "cue-combination"]
    page = gallery_page(names, QUICK, 1, looked_at.append)
    assert looked_at == names[:3]  # cue combination has no items
    assert page.count('class="row"') == page.count("<img ") == 3
    assert "never swaps" not in page.split("feature-optimal-40")[0] and "this network never swaps" in page
    assert "half of the outcome fixed " in page and "Made by lapsus" in page and "http:" not in page
    assert page.index("Networks of the paper") < page.index("hold their memory")


def test_what_is_there_is_kept_and_unknown_names_are_said(tmp_path):
    path = tmp_path / "mine.html"
    path.write_text("a page of somebody else")
    said = CliRunner().invoke(app, ["zoo", "index-swap-10", "--gallery", str(path)])
    assert said.exit_code == 2 and "not a report of ours" in said.output
    assert path.read_text() == "a page of somebody else"
    said = CliRunner().invoke(app, ["zoo", "index-swap-11", "--gallery", str(tmp_path / "x.html")])
    assert said.exit_code == 2 and "Did you mean index-swap-1" in said.output and not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_the_list_needs_no_gallery(option):
    said = CliRunner().invoke(app, ["zoo", *option])
    assert said.exit_code == 0 and "index-swap-10" in said.output
