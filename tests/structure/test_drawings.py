"""The drawings of ``docs/architecture.md`` are those of today's rooms and files."""

from __future__ import annotations

import pytest

from tests.structure.drawings import (
    ENDS,
    PACKAGE,
    PAGE,
    ROOT,
    WAY,
    draw_rooms,
    put_drawings,
    read_layers,
)


def test_the_page_has_them():
    page = PAGE.read_text("utf-8")
    assert put_drawings(page) == page, "run python -m tests.structure.drawings"


def test_every_room_is_drawn():
    folders = (ROOT / PACKAGE).glob("*/__init__.py")
    rooms = {room for layer in read_layers() for room in layer}
    assert {path.parent.name for path in folders} <= rooms
    assert all(f" {room} " in draw_rooms() for room in rooms)


def test_lines_are_short():
    assert max(map(len, draw_rooms().splitlines())) <= 120


@pytest.mark.parametrize("file", [file for _, file, *_ in (*WAY, *ENDS)])
def test_files_on_the_way_are_there(file):
    assert (ROOT / PACKAGE / file).is_file()


def test_layers_are_read_from_the_import_rules(tmp_path):
    rules = tmp_path / "pyproject.toml"
    rules.write_text(
        "[[tool.importlinter.contracts]]\ntype = 'layers'\nlayers = ['a.top', 'a.left | a.right']\n"
        "[[tool.importlinter.contracts]]\ntype = 'forbidden'\n"
    )
    assert read_layers(rules) == [["top"], ["left", "right"]]


def test_an_old_drawing_is_seen():
    page = PAGE.read_text("utf-8")
    assert put_drawings(page.replace("  core  ", "  cellar")) == page


def test_a_page_without_its_drawing():
    with pytest.raises(ValueError, match="unpack"):
        put_drawings("# Architecture\n")
