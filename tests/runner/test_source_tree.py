"""Which source files of a package some modules need."""

from __future__ import annotations

import json

import pytest

from dperm_cli.runner.cells import source_tree
from dperm_cli.runner.cells.source_tree import SourceTree

FILES = {
    "__init__": "from pack import everything\n",
    "everything": "from pack import unused\n",
    "unused": "",
    "core/__init__": "",
    "core/errors": "",
    "core/numbers": "import numpy\nfrom pack.core.errors import Wrong\n",
    "losses/__init__": "",
    "losses/hinge": "from pack.core import numbers\n",
    "losses/linear": "",
    "losses/kinds": "from pack.losses.hinge import Hinge\n",
    "run": "def run():\n    from pack.losses import kinds\n    import pack.core.numbers as n\n",
    "typed": "if TYPE_CHECKING:\n    from pack import unused\nfrom pack.core import errors\n",
    "shown": "from pack import help_text, unused\n",
    "help_text": "from pack import run\n",
    "mechanisms/__init__": "",
    "mechanisms/gradient/__init__": "",
    "mechanisms/gradient/newton": "",
    "grouped": "def f():\n    return registry.load('mechanism', 'newton')\n",
    "named": "NAMES = ['linear']\n\ndef f(x):\n    return registry.load('loss', NAMES[x])\n",
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "pack" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "pack"


def closed(root, *modules, skipped=()):
    found = SourceTree(root).close_imports([f"pack.{name}" for name in modules], skipped)
    return {name.removeprefix("pack.") for name in found}


def test_imports_are_followed_at_any_depth_with_packages_and_without_the_front_door(root):
    assert closed(root, "run") == {
        "run", "losses", "losses.kinds", "losses.hinge", "core", "core.numbers", "core.errors",
    }  # fmt: skip
    assert closed(root, "core.errors") == {"core", "core.errors"}


def test_imports_for_type_checkers_are_left_out(root):
    assert closed(root, "typed") == {"typed", "core", "core.errors"}


def test_what_is_skipped_is_not_followed(root):
    assert closed(root, "shown", skipped=["pack.help_text"]) == {"shown", "unused"}
    assert closed(root, "run", skipped=["pack.losses", "pack.core"]) == {"run"}


def test_plugins_that_are_loaded_by_name_belong_to_it(root):
    assert closed(root, "named") == {"named", "losses", "losses.linear"}
    assert closed(root, "grouped") == {
        "grouped", "mechanisms", "mechanisms.gradient", "mechanisms.gradient.newton",
    }  # fmt: skip


def test_circles_end(root):
    (root / "core" / "errors.py").write_text("from pack import run\n")
    assert "losses.kinds" in closed(root, "core.errors")


def test_a_module_from_outside_is_read_where_it_was_loaded_from(root):
    (found,) = SourceTree(root).close_imports([__name__], ())
    assert found == __name__
    assert SourceTree(root).close_imports(["nowhere.at_all", "pack.gone"], ()) == {}


def test_what_was_read_is_remembered_by_its_bytes(root, tmp_path, monkeypatch):
    memo = tmp_path / "cache" / "sources.json"
    first = SourceTree(root, memo).close_imports(["pack.run"], ())
    read = []

    def spy(text):
        read.append(text)
        return real(text)

    real = source_tree.read_source
    monkeypatch.setattr(source_tree, "read_source", spy)
    assert SourceTree(root, memo).close_imports(["pack.run"], ()) == first
    assert not read
    (root / "losses" / "hinge.py").write_text("x = 1\n")
    second = SourceTree(root, memo).close_imports(["pack.run"], ())
    assert read == [b"x = 1\n"]
    assert set(first) == set(second)
    assert first["pack.losses.hinge"] != second["pack.losses.hinge"]
    assert SourceTree(root, memo).close_imports(["pack.run"], ()) == second


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "7", '{"a": 3}', '{"a": ["b"]}', '{"a": ["b", 5, []]}',
     '{"a": ["b", [], ["word"]]}', "[" * 100_000],
)  # fmt: skip
def test_a_damaged_memory_only_costs_time(content, root, tmp_path):
    memo = tmp_path / "sources.json"
    expected = SourceTree(root, memo).close_imports(["pack.run"], ())
    whole = json.loads(memo.read_bytes())
    memo.write_text(content)
    assert SourceTree(root, memo).close_imports(["pack.run"], ()) == expected
    assert json.loads(memo.read_bytes()) == whole


def test_what_another_reader_remembers_is_not_used(root, tmp_path, monkeypatch):
    memo = tmp_path / "sources.json"
    expected = SourceTree(root, memo).close_imports(["pack.run"], ())
    whole = json.loads(memo.read_bytes())
    (tmp_path / "reader.py").write_text("# another one")
    monkeypatch.setattr(source_tree.source_file, "__file__", str(tmp_path / "reader.py"))
    assert SourceTree(root, memo).close_imports(["pack.run"], ()) == expected
    again = json.loads(memo.read_bytes())
    assert len(again) == 2 * len(whole)
    assert whole.items() < again.items()


def test_a_memory_that_is_too_long_is_begun_anew(root, tmp_path, monkeypatch):
    memo = tmp_path / "sources.json"
    SourceTree(root, memo).close_imports(["pack.run"], ())
    first = json.loads(memo.read_bytes())
    monkeypatch.setattr(source_tree, "_MOST_REMEMBERED", len(first) - 1)
    (root / "run.py").write_text("x = 1\n")
    SourceTree(root, memo).close_imports(["pack.run"], ())
    assert len(json.loads(memo.read_bytes())) == 1


def test_a_folder_that_cannot_be_written_only_costs_time(root, tmp_path):
    (tmp_path / "file").write_text("")
    tree = SourceTree(root, tmp_path / "file" / "sources.json")
    assert "pack.run" in tree.close_imports(["pack.run"], ())
