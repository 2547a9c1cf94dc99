"""The site as `make docs` built it; these skip where there is none."""

from __future__ import annotations

import json

import pytest

from tests.website.test_pages import run_in_frame
from website import check_site, pages

SITE = pages.ROOT / "site"
INDEX = SITE / "search" / "search_index.json"


def is_current() -> bool:
    """Whether there is a site that is younger than every page."""
    changed = max(path.stat().st_mtime for path in pages.find_sources())
    return INDEX.exists() and INDEX.stat().st_mtime > changed


needs_site = pytest.mark.skipif(not is_current(), reason="no site of these pages: make docs")


@needs_site
def test_the_site_is_whole_and_asks_no_other_host():
    assert check_site.find_faults(SITE) == []
    built = {path.relative_to(SITE).as_posix() for path in check_site.list_pages(SITE)}
    expected = {*pages.find_sources().values(), *pages.MADE}
    assert {name.removesuffix(".md") + ".html" for name in expected} - built == set()
    assert "leaderboard/index.html" in built


@needs_site
def test_the_search_answers_from_a_folder(tmp_path):
    index = json.loads(INDEX.read_text())
    given = {"config": index["config"], "docs": index["docs"], "options": {"suggest": False}}
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps([{"type": 0, "data": given}, {"type": 2, "data": "localization"}]))
    [worker] = (SITE / "assets/javascripts/workers").glob("search.*.js")
    _, answer = map(json.loads, run_in_frame(worker, asked).splitlines())
    assert answer["data"]["items"][0][0]["location"].startswith("proofs/localization.html")


@needs_site
def test_formulas_are_drawn_by_the_browser():
    page = (SITE / "tutorials/3_what_epsilon_means.html").read_text()
    assert page.count("<math") >= 2
    assert 'class="arithmatex"' not in page


def test_what_a_browser_would_fetch_is_found(tmp_path):
    (tmp_path / "a.css").write_text("body { background: url(//fonts.example/x.png) }")
    (tmp_path / "index.html").write_text(
        '<h1 id="top"></h1><a href="#top"></a><a href="#no"></a><a href="gone.html"></a>'
        '<a href="https://elsewhere.example"></a><script src="https://cdn.example/x.js"></script>'
        '<img src="a.css"><link rel="stylesheet" href="//fonts.example/f.css">'
    )
    assert check_site.find_faults(tmp_path) == [
        "index.html: fetches https://cdn.example/x.js",
        "index.html: fetches //fonts.example/f.css",
        "index.html: no #no",
        "index.html: no gone.html",
        "a.css: fetches //fonts.example/x.png",
    ]


def test_a_formula_becomes_mathml():
    pytest.importorskip("latex2mathml")
    from website.hooks import draw_formulas

    drawn = draw_formulas(r'<p><span class="arithmatex">\(e^{\varepsilon} &lt; 2\)</span></p>')
    assert "<msup>" in drawn
    assert "arithmatex" not in drawn


def test_an_example_of_a_docstring_is_a_block_of_code():
    pytest.importorskip("griffe")
    from website.examples import fence_examples

    text = "Add.\n\n    >>> 1 + 1\n    2\n\nMore."
    assert fence_examples(text) == "Add.\n\n    ```pycon\n    >>> 1 + 1\n    2\n    ```\n\nMore."
