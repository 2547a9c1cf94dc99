"""Every page of the built site in a browser, at the width of a desk and of a phone."""

from __future__ import annotations

import pytest

from tests.browser.chrome import Chrome, find
from tests.website.test_site import SITE, needs_site
from website import check_site

WIDTHS = {"desk": 1280, "phone": 390}
# Words that reach over the right edge, where no box around them can be scrolled.
TOO_WIDE = """(() => {
  if (document.documentElement.scrollWidth <= innerWidth + 1) return "";
  const wide = [...document.querySelectorAll("main *")].filter(
    (e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(
      ".md-typeset__scrollwrap, pre, .highlight, math, .katex, table"));
  return wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 80)).join(" | ") || "wider than the page";
})()"""


@pytest.fixture(scope="module")
def chrome(tmp_path_factory):
    """One headless browser for all pages; without one the tests skip."""
    binary = find()
    if binary is None:
        pytest.skip("no Chromium found on the path, and DPERM_BROWSER names none")
    with Chrome(binary, tmp_path_factory.mktemp("site_browser")) as started:
        yield started


def find_faults(chrome, path):
    """What a browser complains of, fetches from another host, or shows beyond the right edge."""
    chrome.events.clear()
    chrome.send("Page.navigate", url=path.resolve().as_uri())
    chrome.wait(f"document.readyState === 'complete' && location.pathname === '{path}'")
    found = [*chrome.complaints(), *chrome.requests(), chrome.run(TOO_WIDE)]
    return [line for line in found if line]


@needs_site
@pytest.mark.parametrize("where", WIDTHS)
def test_every_page_opens_without_an_error_and_asks_no_other_host(chrome, where):
    chrome.view(WIDTHS[where], 900)
    pages = [path for path in check_site.list_pages(SITE) if path.name != "404.html"]
    faults = {path.name: find_faults(chrome, path) for path in pages}
    assert {name: found for name, found in faults.items() if found} == {}
    assert len(pages) > 100


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("<p>whole", None),
        ("<script>throw Error('broken')</script>", "broken"),
        ("<img src='http://127.0.0.1:9/x.png'>", "http://127.0.0.1:9/x.png"),
        ("<main><p style='width: 2000px'>long", "<p style="),
    ],
)
def test_what_is_wrong_with_a_page_is_found(chrome, tmp_path, page, told):
    chrome.view(WIDTHS["phone"], 900)
    path = tmp_path / "page.html"
    head = "<meta charset=utf-8><meta name=viewport content='width=device-width'>"
    path.write_text(f"<!doctype html>{head}<title>a page</title>{page}")
    found = find_faults(chrome, path)
    assert (not found) if told is None else any(told in line for line in found)
