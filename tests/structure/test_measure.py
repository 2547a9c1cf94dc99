"""Each measure on small packages made up for it: what counts, what does not, and what surprises.

Here: imports, sizes and the command. What the code does by name is in ``test_habits.py`` and
``test_words.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.structure import measure, rooms
from tests.structure.conftest import PLUGINS, write_house
from tests.structure.measure import House


class TestCircles:
    """Imports that lead back to where they stand."""

    def test_two_modules_that_import_each_other(self, find):
        found = find(
            "circles",
            {"core/a.py": "import house.core.b\n", "core/b.py": "\nfrom house.core import a\n"},
        )
        assert found == ["core/a.py:1", "core/b.py:2"]

    def test_a_way_of_three_with_relative_imports(self, find):
        found = find(
            "circles",
            {
                "core/a.py": "from .deep.b import x\n",
                "core/deep/b.py": "from ..c import y as x\n",
                "core/c.py": "from . import a as other\ny = 1\n",
            },
        )
        assert found == ["core/a.py:1", "core/c.py:1", "core/deep/b.py:1"]

    def test_a_diamond_is_no_circle(self, find):
        modules = {
            "core/a.py": "from house.core import b, c\n",
            "core/b.py": "from house.core import d\n",
            "core/c.py": "from house.core import d\n",
            "core/d.py": "import os\nTEXT = 'from house.core import a'\n",
        }
        assert find("circles", modules) == []

    def test_a_package_that_offers_its_modules_is_none_but_one_that_they_read_is(self, find):
        offers = {"core/__init__.py": "from house.core.a import x\n", "core/a.py": "x = 1\n"}
        assert find("circles", offers) == []
        reads = {**offers, "core/a.py": "from house.core import x\n"}
        assert find("circles", reads) == ["core/__init__.py:1", "core/a.py:1"]

    def test_imports_inside_functions_are_apart(self, find, tmp_path):
        modules = {
            "core/a.py": "import house.core.b\n",
            "core/b.py": "def late():\n    import house.core.a\n",
        }
        assert find("circles", modules) == []
        assert find("circles-in-functions", modules) == ["core/b.py:2"]

    @pytest.mark.parametrize(
        "head",
        [
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n",
            "from typing import TYPE_CHECKING as T\nif T:\n",
            "import typing as t\nif t.TYPE_CHECKING:\n",
        ],
    )
    def test_imports_for_type_checkers_are_apart(self, find, head):
        modules = {
            "core/a.py": "import house.core.b\n",
            "core/b.py": head + "    import house.core.a\nelse:\n    import os\n",
        }
        assert find("circles", modules) == find("circles-in-functions", modules) == []
        assert find("circles-in-typing", modules) == ["core/b.py:3"]

    def test_what_runs_when_no_type_checker_looks_is_not_apart(self, find):
        text = "from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    import house.core.a\n"
        modules = {"core/a.py": "import house.core.b\n", "core/b.py": text}
        assert find("circles", modules) == ["core/a.py:1", "core/b.py:3"]

    def test_import_module_with_a_literal_is_an_import(self, find):
        text = "from importlib import import_module as get\ndef late():\n    get('house.core.a')\n"
        modules = {"core/a.py": "import house.core.b\n", "core/b.py": text}
        assert find("circles-in-functions", modules) == ["core/b.py:3"]


class TestArrows:
    """Imports against the order of the rooms."""

    def test_up_counts_and_down_does_not(self, find):
        modules = {
            "core/a.py": "from house.runner import b\n",
            "runner/b.py": "from house.core import a\n",
        }
        assert find("arrows", modules) == ["core/a.py:1"]

    def test_rooms_on_one_line_do_not_import_each_other(self, find):
        modules = {
            "results/a.py": "import house.audit.b as b\n",
            "audit/b.py": "def f():\n    from house.results.c import x\n",
            "results/c.py": "from house.results import a\nx = 1\n",
        }
        assert find("arrows", modules) == ["audit/b.py:2", "results/a.py:1"]

    def test_the_places_of_rooms_that_do_not_exist_yet(self, find):
        modules = {
            "losses/a.py": "from house.problem.b import x\n",
            "problem/b.py": "from house.losses import a\nx = 1\n",
            "solvers/c.py": "from house.losses import a\n",
        }
        assert find("arrows", modules) == ["problem/b.py:1"]

    def test_a_room_without_a_place(self, find):
        modules = {"attic/a.py": "from house.core import b\n", "core/b.py": ""}
        assert find("arrows", modules) == ["attic/a.py:1"]

    def test_type_checkers_apart(self, find):
        text = "import typing\nif typing.TYPE_CHECKING:\n    from house.runner.b import X\n"
        modules = {"core/a.py": text, "runner/b.py": "class X: ...\n"}
        assert find("arrows", modules) == []
        assert find("arrows-in-typing", modules) == ["core/a.py:3"]

    def test_the_package_itself_may_be_read_but_hides_no_room(self, find):
        modules = {
            "__init__.py": "from house.runner.b import run\n__version__ = '1'\n",
            "core/a.py": "from house import __version__\n",
            "core/b.py": "from house import run as r\n",
            "core/c.py": "from house import Study\n",
            "runner/b.py": "def run(): ...\n",
        }
        assert find("arrows", modules) == ["core/b.py:1", "core/c.py:1"]

    def test_every_room_has_one_place(self):
        listed = [room for line in rooms.LAYERS for room in line]
        assert len(listed) == len(set(listed))
        assert not rooms.points_upward("cli", "core")
        assert rooms.points_upward("core", "cli")


class TestPrivate:
    """Modules that say they are nobody else's business."""

    MODULES: Mapping[str, str] = {"core/_inner.py": "x = 1\n", "core/_deep/open.py": "x = 1\n"}

    @pytest.mark.parametrize(
        "line",
        [
            "from house.core import _inner",
            "from house.core._inner import x",
            "import house.core._inner as inner",
            "from ..core import _inner as inner",
            "from house.core._deep import open",
            "def f():\n    from house.core._inner import x",
        ],
    )
    def test_from_another_room(self, find, line):
        found = find("private", {**self.MODULES, "runner/a.py": f"{line}\n"})
        assert [place.partition(":")[0] for place in found] == ["runner/a.py"]

    @pytest.mark.parametrize(
        "line",
        [
            "from house.core import errors",
            "from house.core.errors import _hidden",
            "from house.runner import _near",
            "import _thread",
            '"""from house.core import _inner"""',
        ],
    )
    def test_no_private_module_of_another_room(self, find, line):
        others = {"core/errors.py": "_hidden = 1\n", "runner/_near.py": ""}
        assert find("private", {**self.MODULES, **others, "runner/a.py": f"{line}\n"}) == []

    def test_a_folder_of_the_same_room_may(self, find):
        assert find("private", {**self.MODULES, "core/deep/a.py": "from .. import _inner\n"}) == []


class TestSizes:
    """Lines of code, of functions and of modules."""

    def test_body_without_docstring_comments_and_blank_lines(self, tmp_path):
        text = (
            "def f(x,\n      y):\n"
            '    """One.\n\n    Two.\n    """\n'
            "    # a comment\n\n"
            "    return (\n        x  # note\n    )\n"
            "def g(): return 1\n"
        )
        house = write_house(tmp_path, {"core/a.py": text})
        assert [(length, place.line) for length, place in house.bodies] == [(3, 1), (1, 12)]
        assert measure.measure(house, "code").value == 6

    def test_what_only_declares_has_no_length(self, tmp_path):
        text = (
            'def f():\n    """Text."""\ndef g(): ...\ndef h():\n    pass\ndef i():\n    raise X\n'
        )
        house = write_house(tmp_path, {"core/a.py": text})
        assert [place.text for _, place in house.bodies] == ["i: 1 lines"]

    def test_a_function_inside_counts_by_itself_and_in_the_outer_one(self, tmp_path):
        text = (
            "class A:\n    def f(self):\n        def g():\n            return 1\n        return g\n"
        )
        house = write_house(tmp_path, {"core/a.py": text})
        assert [length for length, _ in house.bodies] == [3, 1]

    def test_a_long_string_is_code_and_its_blank_lines_are_not(self, tmp_path):
        text = 'X = """\none\n\n# two\n"""\n"""Prose below\nan attribute."""\n'
        house = write_house(tmp_path, {"core/a.py": text})
        assert measure.measure(house, "code").value == 4

    def test_median_and_percentile(self, tmp_path):
        bodies = ("".join(f"    x{i} = {i}\n" for i in range(n)) for n in range(1, 21))
        text = "".join(f"def f{i}():\n{body}" for i, body in enumerate(bodies))
        house = write_house(tmp_path, {"core/a.py": text})
        assert measure.measure(house, "median").value == 10
        ninetieth = measure.measure(house, "ninetieth")
        assert (ninetieth.value, ninetieth.met) == (18, False)
        assert [place.text for place in ninetieth.places[:2]] == ["f19: 20 lines", "f18: 19 lines"]

    def test_modules_above_five_hundred_lines(self, find):
        modules = {"core/a.py": "# x\n" * 501, "core/b.py": "x = 1\n" * 500}
        assert find("modules", modules) == ["core/a.py:1"]

    def test_the_tests_are_counted_apart(self, tmp_path):
        house = write_house(tmp_path, {"core/a.py": "x = 1\n"})
        assert measure.measure(house, "test-code").value == 0
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests" / "test_a.py").write_text('"""Prose."""\n\nx = 1\ny = 2\n')
        assert measure.measure(house, "test-code").value == 2
        assert measure.measure(house, "code").value == 1


class TestCommand:
    """What ``python -m tests.structure.measure`` prints."""

    @pytest.fixture
    def root(self, tmp_path, monkeypatch):
        text = "import os\ndef opened(x):\n    return getattr(x, 'name')\n"
        write_house(tmp_path, {**PLUGINS, "core/a.py": text})
        monkeypatch.setattr(measure, "House", lambda root: House(root, "house"))
        return str(tmp_path)

    def test_table(self, root, capsys):
        assert measure.main(["--root", root]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split()[:4] == ["measure", "now", "target", "met"]
        assert [line.split()[0] for line in lines[1:]] == list(measure.MEASURES)
        assert next(line for line in lines if line.startswith("getattr")).split()[1:5] == [
            "1", "<=", "14", "yes",
        ]  # fmt: skip

    def test_places(self, root, capsys):
        assert measure.main(["--root", root, "--where", "participles"]) == 0
        assert capsys.readouterr().out == "house/core/a.py:2: opened\n"

    def test_json(self, root, capsys):
        assert measure.main(["--root", root, "--json", "--where", "getattr"]) == 0
        assert json.loads(capsys.readouterr().out) == [
            {
                "measure": "getattr",
                "meaning": "getattr, hasattr, setattr with a literal name",
                "now": 1,
                "target": 14,
                "met": True,
                "places": [{"file": "house/core/a.py", "line": 3, "text": "getattr 'name'"}],
            }
        ]

    def test_an_unmet_target_ends_with_1(self, tmp_path, root):
        (tmp_path / "house" / "core" / "long.py").write_text("\n" * 501)
        assert measure.main(["--root", root, "--where", "modules"]) == 1

    def test_unknown_measure(self, root):
        with pytest.raises(SystemExit):
            measure.main(["--root", root, "--where", "beauty"])


def test_a_folder_without_python_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no Python file"):
        measure.measure(House(tmp_path, "house"), "modules")
