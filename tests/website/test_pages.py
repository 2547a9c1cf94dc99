"""The pages of the site, read as Markdown: no broken link, a place for each, a reference of all."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dperm_cli.api.name_table import NAMES
from dperm_cli.cli import VERBS
from dperm_cli.core import catalogue
from website import links, pages, reference

SOURCES = pages.find_sources()
NAMES_OF_PAGES = [str(path.relative_to(pages.ROOT)) for path in SOURCES]


@pytest.mark.parametrize("name", NAMES_OF_PAGES)
def test_no_link_is_broken(name):
    assert links.find_broken(pages.ROOT / name) == []


def test_a_broken_link_is_found():
    text = (
        "[a](glossary.md) [b](nowhere.md) [c](glossary.md#no-such-heading) [d](#here)\n"
        "`[e](code.md)` E[q](2 + 1)\n\n# Here\n\n```sh\n[f](fence.md)\n```\n"
    )
    page = pages.ROOT / "docs" / "made_up.md"
    assert links.find_broken(page, text) == ["nowhere.md", "glossary.md#no-such-heading"]


def test_headings_have_the_names_of_links():
    text = "# The `way` of data\n\n## A: b, c\n\n## A: b, c\n\n```sh\n# no heading\n```\n"
    assert links.list_anchors(text) == {"the-way-of-data", "a-b-c", "a-b-c-1"}


def test_every_page_has_one_place():
    names = {*SOURCES.values(), *pages.MADE}
    order = pages.order_pages(names)
    listed = [page for entry in order for found in entry.values() for page in found]
    placed = [name for page in listed
              for name in (page.values() if isinstance(page, dict) else [page])]  # fmt: skip
    titles = [title for page in listed if isinstance(page, dict) for title in page]
    assert len(set(titles)) == len(titles) == len(pages.TITLES)
    assert sorted(placed) == sorted(names)
    with pytest.raises(KeyError, match=r"no place for other/page\.md"):
        pages.order_pages(names | {"other/page.md"})
    with pytest.raises(KeyError, match=r"no page index\.md"):
        pages.order_pages(names - {"index.md"})


def test_links_lead_to_the_pages_of_the_site():
    docs = pages.ROOT / "docs"
    places = {docs / "plan.md": "plan.md", docs / "proofs/a.md": "proofs/a.md"}
    text = "[p](../plan.md#x), [code](../../Makefile), [top](#here), `[p](../plan.md)`"
    moved = links.move_links(docs / "proofs/a.md", text, places)
    assert moved == "[p](../plan.md#x), code, [top](#here), `[p](../plan.md)`"


def test_lists_and_tables_stand_apart():
    text = "Text:\n- a\n  more\n- b\n\n```\nx\n- c\n```\nWords\n| a |\n|---|"
    apart = "Text:\n\n- a\n  more\n- b\n\n```\nx\n- c\n```\nWords\n\n| a |\n|---|"
    assert links.separate_blocks(text) == apart


def test_the_reference_has_every_verb():
    page = reference.write_verbs()
    assert [verb for verb in VERBS if f"\n## dperm {verb}\n" not in page] == []
    assert "{keys}" not in page


def test_the_reference_has_every_key_of_every_choice():
    page = reference.write_keys()
    for group in catalogue.GROUPS:
        for name, choice in catalogue.choices(group).items():
            part = page.split(f"\n### {group}={name}\n")[1].split("\n## ")[0].split("\n### ")[0]
            assert re.findall(r"^\| `(?:\w+)\.(\w+)`", part, re.M) == choice.key_names
    assert "| `epsilon` | `1.0` | number" in page


def test_the_reference_has_every_python_name_where_it_is_defined():
    page = reference.write_names()
    for name in NAMES:
        place = re.search(rf"^## {name}\n\n::: (\S+)\.(\w+)$", page, re.M)
        assert place, name
        path = pages.ROOT.joinpath(*place[1].split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        found = rf"^(class|def|async def) {place[2]}\b|^{place[2]}\b.*="
        assert re.search(found, path.read_text(), re.M), place[0]


def run_in_frame(worker: Path, messages: Path) -> str:
    """What a worker's script answers in the frame that takes its place in a folder."""
    here = Path(__file__).parent / "frame_worker.mjs"
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node")
    words = [node, here, pages.ROOT / "website/frame_worker.js", worker.as_uri(), messages]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_worker_runs_in_a_frame(tmp_path):
    (tmp_path / "more.js").write_text("var more = 2;")
    worker = tmp_path / "worker.js"
    worker.write_text(
        "addEventListener('message', async ({data}) => {"
        f" await importScripts({(tmp_path / 'more.js').as_uri()!r}); postMessage(data + more); }});"
    )
    (tmp_path / "asked.json").write_text("[40, 1]")
    assert run_in_frame(worker, tmp_path / "asked.json").split() == ["42", "3"]
