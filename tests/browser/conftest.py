"""A browser for the tests of pages, and the pages they open."""

from __future__ import annotations

import pytest

from dperm_cli.results.claims import experiment_tables as experiments
from dperm_cli.results.page import html_page, page_data
from dperm_cli.results.records.summary import summarise
from tests.browser.chrome import Chrome, find
from tests.results import html_study


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One headless browser for all tests; without one they skip."""
    binary = find()
    if binary is None:
        pytest.skip("no Chromium found on the path, and DPERM_BROWSER names none")
    with Chrome(binary, tmp_path_factory.mktemp("browser")) as chrome:
        chrome.view(1280, 900)
        yield chrome


@pytest.fixture(scope="session")
def records():
    return html_study.large()


@pytest.fixture(scope="session")
def study(records):
    """Summary rows of the large study."""
    return summarise(records)


@pytest.fixture(scope="session")
def large_page(records, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html_study.page(records), "utf-8")
    return path


@pytest.fixture
def page(browser, large_page):
    """The page of the large study, fresh."""
    browser.view(1280, 900)
    browser.open(large_page)
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == []


@pytest.fixture(scope="session")
def experiment_page(records, tmp_path_factory):
    rows = [row for row in records if row["dataset"] == "data0" and row["epsilon"] == 1.0]
    about = html_study.experiment(rows)
    text = experiments.format_tables(rows, about)["csv"]
    finding = {"curve": "noisy_gd", "holds": True, "measured": "slope 0.1"}
    claim = {"id": "falls", "text": "risk falls", "verdict": "confirmed", "findings": [finding]}
    verdicts = {"experiment": "mine", "size": "small", "claims": [claim]}
    made = page_data.build_payload(summarise(rows), rows, html_study.manifest(), about, text, None,
                             claims=verdicts)  # fmt: skip
    path = tmp_path_factory.mktemp("experiment") / "report.html"
    path.write_bytes(html_page.page(made))
    (path.parent / "table.csv").write_text(text)
    return path
