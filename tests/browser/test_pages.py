"""Every page of ours in headless Chromium with the network off: as a reader meets them."""

import os
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from lapsus.evaluation.sample_sizes import QUICK
from lapsus.report.ensemble import ensemble_page
from lapsus.report.gallery import gallery_page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from made_discovery import made, tiny_start

from browser.chromium import EXECUTABLE, Chromium

pytestmark = [
    pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium on this machine (Debian: apt-get install chromium)"),
    pytest.mark.slow,
]
# `npm install --prefix tests/browser axe-core`, or where LAPSUS_AXE says.
AXE = Path(os.environ.get("LAPSUS_AXE", Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"))
# Set to a folder to keep the screenshots.
SHOTS = os.environ.get("LAPSUS_SCREENSHOTS")
# `make docs`
SITE = Path(__file__).resolve().parents[2] / "site"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium = Chromium(tmp_path_factory.mktemp("profile"))
    yield chromium
    chromium.close()


@pytest.fixture
def report(browser):
    browser.offline()
    browser.size(1280)
    browser.open((made() / "report.html").as_uri())
    browser.run("document.querySelectorAll('details').forEach(part => part.open = true)")
    return browser


def audit(browser) -> list[str]:
    """What axe-core finds serious or critical on the page as it is now, with everything unfolded."""
    if not AXE.is_file():
        pytest.skip("no axe-core (npm install --prefix tests/browser axe-core)")
    browser.run("document.querySelectorAll('details').forEach(part => part.open = true)")
    browser.run(AXE.read_text() + "; true")
    return browser.run(
        "axe.run({resultTypes: ['violations']}).then(found => found.violations"
        ".filter(one => ['serious', 'critical'].includes(one.impact))"
        ".map(one => one.id + ': ' + one.nodes.map(node => node.target.join(' ')).join(', ')))",
        timeout=300,  # a few seconds of processor time, for which a busy machine may need minutes
    )


def shot(browser, name):
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        browser.screenshot(Path(SHOTS) / f"{name}.png")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_report_reads_well(browser, width, dark):
    browser.offline()
    browser.size(width, 844, dark, mobile=width < 500)
    browser.open((made() / "report.html").as_uri())
    assert browser.complaints() == []
    images = browser.run("[...document.images].map(i => [i.complete && i.naturalWidth > 0, i.alt.length > 20])")
    assert len(images) >= 5 and all(loaded and described for loaded, described in images)
    assert browser.run("document.documentElement.scrollWidth") <= width
    shot(browser, f"report-{width}-{'dark' if dark else 'light'}")


@pytest.mark.parametrize("width, dark", [(390, False), (1280, True)])
def test_axe_finds_nothing_serious_in_the_report(browser, width, dark):
    browser.offline()
    browser.size(width, 844, dark, mobile=width < 500)
    browser.open((made() / "report.html").as_uri())
    assert audit(browser) == []


def test_axe_finds_what_is_wrong(report):
    """The control: a picture without words and grey on grey are found."""
    wrong = "<img src='data:,'><p style='color: #999; background: #aaa'>grey</p>"
    report.run(f'document.querySelector("main").innerHTML += "{wrong}"')
    assert {"image-alt", "color-contrast"} <= {one.split(":")[0] for one in audit(report)}


def test_nothing_moves_while_the_report_loads(browser):
    browser.size(390, 844, mobile=True)
    shift = """new Promise(done => { let sum = 0;
        new PerformanceObserver(list => { for (const e of list.getEntries()) sum += e.value; })
            .observe({type: 'layout-shift', buffered: true});
        setTimeout(() => done(sum), 800); })"""
    browser.open((made() / "report.html").as_uri())
    assert browser.run(shift) < 0.01


def view(browser):
    browser.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return browser.run("document.querySelector('.viewer').dataset.view").split()


def picture(browser):
    return browser.run("document.querySelector('.viewer canvas').toDataURL()")


def test_rings_turn_by_pointer_and_keyboard_and_move_through_time(report):
    report.run("document.querySelector('.viewer').scrollIntoView({block: 'center', behavior: 'instant'})")
    start, before = view(report), picture(report)
    box = report.run(
        "(r => [r.left, r.top, r.width, r.height])(document.querySelector('.viewer canvas').getBoundingClientRect())"
    )
    middle = (box[0] + box[2] / 2, box[1] + box[3] / 2)
    report.drag(middle, (middle[0] + 60, middle[1] + 25))
    dragged = view(report)
    assert dragged[:2] != start[:2] and picture(report) != before
    report.run("document.querySelector('.viewer canvas').focus()")
    report.key("ArrowLeft")
    report.key("ArrowUp")
    turned = view(report)
    assert float(turned[0]) == pytest.approx(float(dragged[0]) - 0.2, abs=0.002) and float(turned[1]) == pytest.approx(
        float(dragged[1]) + 0.15, abs=0.002
    )
    before = picture(report)
    report.run("document.querySelector('.viewer input').focus()")
    for _ in range(3):
        report.key("ArrowLeft")
    report.run("(s => { s.value = 10; s.dispatchEvent(new Event('input')); })(document.querySelector('.viewer input'))")
    assert view(report)[2] == "10" and picture(report) != before
    assert re.match(
        r"-?[\d.]+ s \(-?\d+ steps?\), \w+", report.run("document.querySelector('.viewer output').textContent")
    )
    report.run("document.querySelector('[data-action=reset]').click()")
    assert view(report)[:2] == start[:2]
    assert report.complaints() == []


def test_every_control_is_reached_by_keyboard(report):
    # What a closed part hides is not there to be reached.
    wanted = set(
        report.run(
            """(all => all.filter(e => e.checkVisibility()
            && e.matches('a[href], button, input, summary, [tabindex="0"]'))
        .map(e => all.indexOf(e)))([...document.querySelectorAll('*')])"""
        )
    )
    reached = set()
    report.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    for _ in range(len(wanted) + 3):
        report.send("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
        report.send("Input.dispatchKeyEvent", type="keyUp", key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.add(report.run("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    assert len(wanted) > 15 and wanted <= reached


def test_report_prints(report):
    data = report.send("Page.printToPDF", timeout=120, preferCSSPageSize=True)["data"]
    assert len(data) > 50_000


def test_hostile_names_run_nothing(report):
    assert report.run("document.querySelectorAll('script').length") == 2
    assert report.run("document.images.length && [...document.images].every(i => i.src.startsWith('data:'))")
    assert "<script>alert" in report.run("document.querySelector('header').textContent")


def made_up_ensemble() -> str:
    """Two settings of six networks, one of which stands apart; numbers that nobody measured."""
    key, settings = "evaluation.median_error", ("few units", "many units, with a name that is longer than its place")
    rows = [
        {
            "member": f"{setting[:3]}-{seed}",
            "setting": setting,
            "start": False,
            "done": True,
            key: 0.1 + 0.01 * seed,
            "questions.x": seed,
        }
        for setting in settings
        for seed in range(1, 7)
    ]
    one = {"mean": 0.13, "low": 0.11, "high": 0.15, "between": 0.02, "units": 6, "outliers": ""}
    statistics = [{"setting": s, "statistic": name} | one for name in (key, "questions.x") for s in settings]
    statistics[0]["outliers"] = "few-6"
    members = pd.DataFrame(rows)
    links = {name: f"../members/{name}/" for name in members["member"]}
    apart = {"setting": settings[1], "from": settings[0], "mean": 0.01, "low": -0.02, "high": 0.04, "seeds": 6}
    differences = pd.DataFrame([apart | {"statistic": key}])
    tables = (members, pd.DataFrame(statistics))
    return ensemble_page("a study", "Two settings.", *tables, links, differences=differences)


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """The gallery and the page of an ensemble, as files."""
    folder = tmp_path_factory.mktemp("pages")
    pages = {"gallery": gallery_page(["index-swap-10"], QUICK, 1), "ensemble": made_up_ensemble()}
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text)
    return {name: (folder / f"{name}.html").as_uri() for name in pages}


@pytest.mark.parametrize("width, dark", [(390, False), (820, True), (1280, False)])
@pytest.mark.parametrize("name", ["gallery", "ensemble"])
def test_gallery_and_ensemble_read_well(browser, others, name, width, dark):
    browser.offline()
    browser.size(width, 844, dark, mobile=width < 900)
    browser.open(others[name])
    assert browser.complaints() == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    shot(browser, f"{name}-{width}-{'dark' if dark else 'light'}")
    assert audit(browser) == []


@pytest.fixture(scope="module")
def live(tmp_path_factory, warm):
    path = tiny_start(tmp_path_factory.mktemp("live"))
    with warm.lapsus("watch", path, "--no-browser", cwd=path.parent) as process:
        yield process.said(r"http://\S+")[0]


@pytest.mark.parametrize("width, dark", [(390, False), (1280, True)])
def test_live_page(browser, live, width, dark):
    browser.send(
        "Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1
    )
    browser.size(width, 844, dark, mobile=width < 500)
    browser.open(live)
    browser.wait(
        lambda: browser.run(
            "document.getElementById('curve').childElementCount > 3 &&"
            " document.getElementById('cloud').childElementCount > 300"
        ),
        90,
    )
    assert "update" in browser.run("document.getElementById('status').textContent")
    assert browser.complaints() == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    shot(browser, f"live-{width}-{'dark' if dark else 'light'}")
    assert audit(browser) == []


@pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="no site (make docs)")
@pytest.mark.parametrize("width, dark", [(390, False), (1280, True)])
@pytest.mark.parametrize("page", ["index", "tutorials/subject", "claims", "reference/mechanism", "reference/commands"])
def test_the_site_reads_well(browser, page, width, dark):
    browser.offline()
    browser.size(width, 844, dark, mobile=width < 500)
    browser.open((SITE / f"{page}.html").as_uri())
    assert browser.complaints() == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    shot(browser, f"site-{page.replace('/', '-')}-{width}-{'dark' if dark else 'light'}")
    assert audit(browser) == []
