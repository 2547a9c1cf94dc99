"""The leaderboard's page in a real browser: sorted, filtered, opened, and read on a phone."""

from __future__ import annotations

import csv

import pytest

from dperm_cli.core.files import write_files
from dperm_cli.results.leaderboard.peer_table import FILE, write_peers
from dperm_cli.results.leaderboard.site import SITE, TABLES, make_published, write_site
from tests.browser.test_page import column
from tests.results.html_study import EVIL
from tests.results.test_leaderboard import make_row

pytestmark = pytest.mark.browser

GRID = "[data-grid=leaderboard]"
RISKS = {"slow": 0.3, "quick": 0.1, "middle": 0.2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A page of two data sets at two epsilons, a refusal, and a name that is no HTML."""
    out = tmp_path_factory.mktemp("leaderboard")
    rows = [
        make_row(name, risk * scale, dataset=dataset, epsilon=epsilon)
        for dataset, scale in (("d", 1.0), ("e", 0.5)) for epsilon in (1.0, 2.0)
        for name, risk in RISKS.items()
    ]  # fmt: skip
    rows += [make_row("refuses", None, "unsupported", reason="losses are squared")]
    rows += [make_row(EVIL, 0.4, dataset="d")]
    (out / FILE).write_text(write_peers(rows))
    write_site(out)
    return out / SITE


@pytest.fixture
def board(browser, folder):
    browser.view(1280, 900)
    browser.open(folder / "index.html")
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == []


def test_a_published_page_opens_a_line_without_a_link_to_its_record(browser, tmp_path):
    write_files(tmp_path, make_published({"text": "all", "size": "full"}))
    browser.view(1280, 900)
    browser.open(tmp_path / "index.html")
    shown = browser.run("document.querySelector('#lead').textContent")
    assert "null" not in shown
    assert "size=" not in shown  # the lines come with dperm, whatever size they are of
    browser.click(f"{GRID} tbody tr.row td:nth-child(5)")
    opened = f"document.querySelector('{GRID} .more-of')"
    assert "made again by the command" in browser.run(f"{opened}.textContent")
    assert browser.run(f"{opened}.querySelectorAll('a').length") == 0
    assert browser.complaints() == browser.requests() == []


def count(board):
    return board.run("document.querySelector('#table [role=status]').textContent")


def test_the_lines_sort_and_filter(board):
    assert count(board) == "14 of 14 lines"
    board.click(f"{GRID} [data-key=excess_risk]")
    risks = [float(text) for text in column(board, GRID, "excess risk") if text != "-"]
    assert risks == sorted(risks)
    assert len(risks) == 13
    board.click(f"{GRID} [data-key=excess_risk]")
    assert column(board, GRID, "excess risk")[0] == "0.4"
    select = "[...document.querySelectorAll('#table .field')].find(" \
        "(one) => one.textContent.startsWith('dataset')).querySelector('select').id"  # fmt: skip
    board.choose("#" + board.run(select), "e")
    assert count(board) == "6 of 14 lines"
    board.type("#table input[type=search]", "QUICK logistic")
    assert count(board) == "2 of 14 lines"
    assert column(board, GRID, "method") == ["quick", "quick"]


def test_two_sets_of_one_name_are_told_apart(board):
    """The problems of the table of winners have the radius of their set."""
    problems = board.run("[...document.querySelectorAll('#winners td.problem')]"
                         ".map((one) => one.textContent)")  # fmt: skip
    assert len(problems) > 1
    assert all(" radius 1," in name for name in problems)


def test_a_number_leads_to_its_record_command_and_versions(board):
    board.click(f"{GRID} tbody tr.row td:nth-child(5)")
    told = board.run(f"document.querySelector('{GRID} .more-of').textContent")
    assert "key quick-key" in told
    link = board.run(f"document.querySelector('{GRID} .more-of a').getAttribute('href')")
    assert link == f"../{FILE}"
    board.click(f"{GRID} tbody tr.row td:nth-child(5)")
    assert board.run(f"document.querySelector('{GRID} .more-of')") is None


def test_ranks_follow_the_group_and_are_those_of_the_table(board, folder):
    lines = list(csv.DictReader((folder / "ranks.csv").read_text().splitlines()))
    ranking = "[...document.querySelectorAll('#ranking tbody tr')].map((tr) => tr.textContent)"
    titles = board.run("[...document.querySelectorAll('#ranks option')].map((one) => one.text)")
    assert titles == ["overall: all problems", "d", "e"]
    for i, group in enumerate(("all problems", "d", "e")):
        board.choose("#ranks select", str(i))
        names = [line["method"] for line in lines if line["group"] == group]
        shown = board.run(ranking)
        assert len(shown) == len(names)
        assert all(text.startswith(name) for text, name in zip(shown, names, strict=True))
        assert "Nemenyi" in board.run("document.querySelector('#ranking .sub').textContent")


def test_a_name_leads_to_its_card_and_files_lie_beside_the_page(board, folder):
    links = board.run("[...document.querySelectorAll('#winners a, #table a')]"
                      ".map((a) => decodeURI(a.getAttribute('href')).slice(1))")  # fmt: skip
    cards = board.run("[...document.querySelectorAll('#cards article')].map((one) => one.id)")
    assert set(links) <= set(cards) | {f".{FILE}"}
    files = board.run("[...document.querySelectorAll('#files a')].map((a) => a.textContent)")
    assert files == list(TABLES)
    assert all((folder / name).is_file() for name in files)
    assert "object" not in board.run("document.querySelector('#enter').textContent")
    assert "dperm peers install NAME" in board.run("document.querySelector('#enter').textContent")


@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits(board, folder, width):
    board.view(width, 844)
    board.open(folder / "index.html")
    assert board.run("document.documentElement.scrollWidth") == width
    first = "document.querySelector('#table tbody tr.row')"
    assert board.run(f"{first}.getBoundingClientRect().width") > 0
