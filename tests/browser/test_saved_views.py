"""What one sees on a page can be saved (SVG, PNG, CSV) and linked to; links are not trusted."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from urllib.parse import quote
from xml.etree import ElementTree

import matplotlib.colors
import matplotlib.image
import pytest

from dperm_cli.results.charts.chart_model import HUES
from dperm_cli.results.charts.mechanism_looks import SHIPPED
from dperm_cli.results.page import html_page
from dperm_cli.results.records.schema import normalise
from tests.browser.chrome import Chrome
from tests.results import html_study
from tests.results.conftest import trial_rows
from tests.results.html_study import EVIL

pytestmark = pytest.mark.browser

SHAPES = ("svg", "g", "path", "rect", "line", "text", "tspan", "defs", "clipPath", "title", "desc")
CELLS = "[data-grid=cells]"


def hide_first_curve(page: Chrome) -> str:
    """Hide a curve as a reader does; its name."""
    page.click("#curves .legend button")
    return page.run("document.querySelector('#curves .legend button').innerText.split(' slope')[0]")


def read_svg(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def texts(svg: ElementTree.Element) -> str:
    return " ".join("".join(node.itertext()) for node in svg.iter() if node.tag.endswith("}text"))


def drawn(svg: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    """The shapes of a kind in the plot itself, the legend left out."""
    (plot,) = (node for node in svg.iter() if node.get("class") == "chart")
    return [node for node in plot.iter() if kind in (node.get("class") or "").split()]


def describe_view(page: Chrome) -> dict:
    """All that a reader has chosen, as the page shows it."""
    return page.run(
        """(() => { const values = (all) => [...document.querySelectorAll(all)].map((e) =>
          e.type === 'checkbox' ? e.checked : e.value);
        return { fields: values('select, input'),
          pressed: [...document.querySelectorAll('[aria-pressed]')].map((e) => e.ariaPressed),
          sorted: [...document.querySelectorAll('[aria-sort]')].map((e) => e.ariaSort),
          cells: [...document.querySelectorAll('[data-grid] tbody')].map((e) => e.innerText),
          curves: [...document.querySelectorAll('#curves .figure path')].map((e) =>
            e.getAttribute('d')) }; })()"""
    )


def test_the_saved_svg_is_the_figure_that_one_sees(page):
    page.choose("#axis", "n")
    page.run("document.querySelector('#curves .below .check input').click()")  # no bands
    hidden = hide_first_curve(page)
    name, text = page.downloaded("#save-svg")
    assert name == "large-figure-n.svg"
    svg = read_svg(text)
    assert len(drawn(svg, "curve")) == 4
    assert len(drawn(svg, "dot")) == 16
    assert drawn(svg, "band") == []
    assert len(drawn(svg, "floor")) == 1
    words = texts(svg)
    shown = page.run("[...document.querySelectorAll('#curves .legend [aria-pressed=true]')]"
                     ".map((e) => e.innerText.split(' slope')[0])")  # fmt: skip
    assert len(shown) == 4
    for label in (*shown, "n", "epsilon 1", "data0", "simulation", "data-free"):
        assert label in words, label
    assert hidden not in words.replace("output_perturbation", "")


def test_a_saved_svg_stands_alone_and_is_for_paper(page, browser):
    """The same bytes from a dark page; colours are the figure's; nothing runs or is loaded."""
    _, text = page.downloaded("#save-svg")
    svg = read_svg(text)
    assert {node.tag.rpartition("}")[2] for node in svg.iter()} <= set(SHAPES)
    assert "var(" not in text
    assert not re.search(r"\s(on\w+|style|href|tabindex|role)=", text)
    stroke = drawn(svg, "curve")[0].get("stroke")
    rgb = [int(part) / 255 for part in re.findall(r"\d+", stroke)[:3]]
    assert matplotlib.colors.to_hex(rgb) == HUES[SHIPPED["noisy_gd"] % 8].lower()
    width, height = float(svg.get("width")), float(svg.get("height"))
    for node in svg.iter():
        if node.tag.endswith("}text"):
            assert -1 < float(node.get("x") or 0) < width + 1
            assert -1 < float(node.get("y") or 0) < height + 1
    browser.view(1280, 900, dark=True)
    assert page.downloaded("#save-svg")[1] == text


def test_the_png_is_the_svg_at_twice_its_size(page):
    svg = read_svg(page.downloaded("#save-svg")[1])
    hue = matplotlib.colors.to_rgb(HUES[SHIPPED["noisy_gd"] % 8])

    def read_png() -> tuple[tuple[int, int], int]:
        path = page.save("#save-png")
        assert path.name == "large-figure-epsilon.png"
        pixels = matplotlib.image.imread(path)
        assert pixels[0, 0, :3].tolist() == [1.0, 1.0, 1.0]
        assert pixels[-1, -1].tolist() == [1.0, 1.0, 1.0, 1.0]
        return pixels.shape[:2], int((abs(pixels[..., :3] - hue).max(axis=2) < 0.01).sum())

    size, count = read_png()
    assert size == (2 * int(svg.get("height")), 2 * int(svg.get("width")))
    assert count > 200
    hide_first_curve(page)
    assert read_png()[1] == 0


def test_rows_are_saved_as_they_are_shown(page):
    page.choose("#table [data-filter=mechanism]", "noisy_sgd")
    page.click(f"{CELLS} [data-key=excess_risk_median]")
    _, text = page.downloaded("#save-shown")
    names, *lines = csv.reader(io.StringIO(text))
    assert "cell" not in names
    assert len(lines) == 101
    risks = [line[names.index("excess_risk_median")] for line in lines]
    risks = [float(risk) for risk in risks if risk]  # the refused cell has none
    assert risks == sorted(risks)
    assert len(risks) > 99
    assert {line[names.index("mechanism")] for line in lines} == {"noisy_sgd"}
    page.click("#table .controls input[type=checkbox]")
    assert "cell" in page.downloaded("#save-shown")[1].splitlines()[0].split(",")


def test_a_link_shows_the_same_view(page, large_page):
    page.choose("#source", "p2")
    page.choose("#axis", "n")
    page.choose("#curves [data-held=epsilon]", "10")
    page.run("document.querySelectorAll('#curves .below .check input')[2].click()")
    hide_first_curve(page)
    page.click("#curves .risk [data-each='1']")
    page.choose("#table [data-filter=mechanism]", "noisy_sgd")
    page.type("#table input[type=search]", "data4 é&=#?%")
    page.run("document.querySelector('#table input[type=search]').value = 'data4'")
    page.type("#table input[type=search]", " noisy")
    page.click("#table .controls input[type=checkbox]")
    for _ in range(2):
        page.click(f"{CELLS} [data-key=noise_scale]")
    page.choose("#ranking select", "1")
    page.choose("#ranking [data-held=n]", "500")
    page.choose("#slopes [data-filter=series]", "frank")
    page.click("[data-grid=ledger] [data-key=epsilon]")
    page.wait("location.hash.includes('ledger.sort=epsilon')")
    fragment, seen = page.run("location.hash"), describe_view(page)
    assert 50 < len(fragment) < 500
    page.open(large_page)
    plain = describe_view(page)
    assert plain != seen
    page.open(large_page, fragment)  # in the same tab
    page.wait("document.querySelector('#source').value === 'p2'")
    assert describe_view(page) == seen
    page.send("Page.navigate", url="about:blank")
    page.open(large_page, fragment)
    assert describe_view(page) == seen
    page.open(large_page, "#?figure=p1")  # what a link leaves out is as on a fresh page
    page.wait("document.querySelector('#source').value === 'p1'")
    page.choose("#source", "p0")
    assert describe_view(page) == plain


def test_the_button_copies_the_link(page):
    page.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }; 0")
    page.choose("#source", "p3")
    page.click("#copy-link")
    link = page.wait("window.copied")
    assert link.startswith("file://")
    assert link.endswith("?figure=p3")
    assert page.run("document.querySelector('#copy-link').textContent") == "Copied"


def test_sections_are_still_linked_to_and_a_fresh_page_has_a_plain_address(page, large_page):
    assert page.run("location.hash") == ""
    page.click("nav a[href='#ranking']")
    page.wait("location.hash === '#ranking'")
    page.wait("Math.abs(document.querySelector('#ranking').getBoundingClientRect().top) < 200")
    page.choose("#table [data-filter=mechanism]", "frank")
    page.wait("location.hash.endsWith('?cells.mechanism=frank')")
    page.send("Page.navigate", url="about:blank")
    page.open(large_page, "#ranking?cells.mechanism=frank")
    page.wait("Math.abs(document.querySelector('#ranking').getBoundingClientRect().top) < 200")
    assert page.run("document.querySelector('#table [data-filter=mechanism]').value") == "frank"


HOSTILE = (
    "#<img src=x onerror=document.title='owned'>",
    "#curves?figure=p99&axis=constructor&hide=__proto__&without=everything&risk=1",
    "#curves?figure=__proto__&axis=__proto__&hold.__proto__=1&hold.constructor=x&hold.n=-1",
    "#table?cells.mechanism=<b>&cells.sort=<img>&cells.columns=<script>&cells.__proto__=x",
    "#table?cells.sort=-plot&slopes.sort=plot&ledger.sort=--epsilon&ranking.problem=-1",
    "#ranking?ranking.problem=1e9&ranking.hold.n=NaN&ranking.hold.toString=1",
    "#][\"'?%%%E0%A4%A&=&&==&figure",
    "#?" + "hide=x&" * 20_000,
    f"#?hide={quote(EVIL)}&figure={quote(EVIL)}&{quote(EVIL)}={quote(EVIL)}",
)


@pytest.mark.parametrize("fragment", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_link_shows_the_plain_page(page, large_page, fragment):
    plain, title = describe_view(page), page.run("document.title")
    page.send("Page.navigate", url="about:blank")
    page.open(large_page, fragment)
    assert describe_view(page) == plain
    assert page.run("document.title") == title
    assert page.run("document.querySelectorAll('img, main script').length") == 0
    assert page.run("Object.keys(Object.prototype).length === 0 && ({}).x === undefined")


def test_a_searched_word_of_a_link_is_text(page, large_page):
    page.open(large_page, f"#table?cells.text={quote(EVIL)}")
    box = "#table input[type=search]"
    page.wait(f"document.querySelector('{box}').value !== ''")
    assert page.run(f"document.querySelector('{box}').value") == EVIL
    assert page.run("document.querySelector('#table [role=status]').textContent").startswith("0 of")
    assert page.run("document.querySelectorAll('img').length") == 0


HOLD = """window.held = []; const usual = setTimeout;
window.setTimeout = (call, wait) => (wait === 150 ? held.push(call) : usual(call, wait));"""


def test_an_address_that_is_yet_to_be_shown_is_not_written_over(page, large_page):
    """What a part of the page wants to write comes between a new address and its event."""
    made = page.send("Page.addScriptToEvaluateOnNewDocument", source=HOLD)
    try:
        page.send("Page.navigate", url="about:blank")
        page.open(large_page)
    finally:
        page.send("Page.removeScriptToEvaluateOnNewDocument", identifier=made["identifier"])
    page.click("#table .controls input[type=checkbox]")
    assert page.run("held.length") > 0
    page.run("location.hash = '#table?cells.text=data4', held.forEach((call) => call())")
    page.wait("document.querySelector('#table input[type=search]').value === 'data4'")
    assert page.run("location.hash") == "#table?cells.text=data4"


def test_the_figure_of_an_experiment_is_saved_too(browser, experiment_page):
    browser.view(1280, 900)
    browser.open(experiment_page)
    before = json.loads(json.dumps(describe_view(browser)["curves"]))
    svg = read_svg(browser.downloaded("#save-svg")[1])
    assert len(drawn(svg, "dot")) == browser.run(
        "document.querySelectorAll('#curves .figure .dot').length"
    )
    assert describe_view(browser)["curves"] == before
    assert (browser.complaints(), browser.requests()) == ([], [])


@pytest.fixture
def small_page(browser, tmp_path):
    """A study of two calibrations and two settings, with the caption of its figure."""
    rows = [
        normalise(row)
        for calibration, steps, epsilon in itertools.product(
            ("tight", "paper"), (5, 50), (0.1, 1.0)
        )
        for row in trial_rows(
            f"{calibration}-{steps}-{epsilon}",
            (steps / epsilon, steps / epsilon + 1),
            epsilon=epsilon,
            steps=steps,
            calibration=calibration,
            floor_excess_risk=1e4,
            overrides={"mechanism": {"name": "noisy_gd", "steps": steps}},
        )
    ]
    made = html_study.payload(rows) | {"caption": ["What is seen.", "And what it costs."]}
    path = tmp_path / "report.html"
    path.write_bytes(html_page.page(made))
    browser.view(1280, 900)
    browser.open(path)
    yield browser
    assert browser.complaints() == []


def test_marks_are_filled_as_those_of_the_figure(small_page):
    """The part of a mark that has the colour tells curves of one mechanism apart, saved too."""
    filled = small_page.run("""[...document.querySelectorAll('#curves .figure .part')].map(
        (e) => [e.classList[1], getComputedStyle(e).clipPath])""")
    assert len(filled) == 6  # three of four curves at two budgets
    assert len({tuple(pair) for pair in filled}) == 3
    assert all(clip.startswith("inset(") for _, clip in filled)
    _, text = small_page.downloaded("#save-svg")
    parts = drawn(read_svg(text), "part")
    assert len(parts) == 6
    assert all(part.get("clip-path").startswith("inset(") for part in parts)


def test_a_swept_setting_is_an_axis_and_the_caption_is_read(small_page):
    small_page.choose("#axis", "mechanism.steps")
    labels = small_page.run(
        "[...document.querySelectorAll('#curves .figure text.label')].map((e) => e.textContent)"
    )
    assert any("steps" in label for label in labels)
    small_page.click("#figure-caption summary")
    assert "What is seen.\n\nAnd what it costs." in small_page.run(
        "document.querySelector('#figure-caption').innerText"
    )
