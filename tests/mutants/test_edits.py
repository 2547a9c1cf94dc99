"""An edit finds its symbol wherever it stands, and refuses what is not there once."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.edits import apply_edit, edit_source, find_symbol

SOURCE = """\
LIMIT, START = 3, 0


class Noise:
    scale: float = 1.0

    def draw(self, size):
        # as many as asked for
        drawn = sample(
            size, self.scale,
        )
        count(drawn)
        return drawn


def draw(size):
    return sample(size, 1.0)
"""


def _edit(name: str, old: str, new: str) -> str:
    return edit_source(SOURCE, name, old, new)


@pytest.mark.parametrize(
    ("name", "old", "new", "text", "by"),
    [
        # layout and comments do not matter
        ("Noise.draw", "sample(size, self.scale)", "zeros(size)",
         "sample(\n            size, self.scale,\n        )", "zeros(size)"),
        # the same expression in another function stays
        ("draw", "size", "1", "sample(size, 1.0)", "sample(1, 1.0)"),
        ("Noise.draw", "count(drawn)\\nreturn drawn", "return 2 * drawn",
         "count(drawn)\n        return drawn", "return 2 * drawn"),
        ("Noise.scale", "1.0", "0.5", "float = 1.0", "float = 0.5"),
        ("START", "(3, 0)", "(3, 1)", "3, 0", "3, 1"),
        ("draw", "return sample(size, 1.0)", "", "return sample(size, 1.0)", "pass"),
    ],
)  # fmt: skip
def test_the_piece_inside_the_symbol_is_replaced(name, old, new, text, by):
    assert SOURCE.count(text) == 1
    expected = ast.dump(ast.parse(SOURCE.replace(text, by)))
    assert ast.dump(ast.parse(_edit(name, old.replace("\\n", "\n"), new))) == expected


@pytest.mark.parametrize(
    ("name", "old", "said"),
    [
        ("Noise.draw", "nothing", "found 0 times"),
        ("Noise.draw", "drawn", "found 2 times"),
        ("Noise.draw", "drawn = 1", "found 0 times"),
        ("Noise.gone", "drawn", "no 'Noise.gone'"),
    ],
)
def test_what_is_not_there_once_is_refused(name, old, said):
    with pytest.raises(ValueError, match=said):
        _edit(name, old, "other")


def test_a_module_is_found_in_any_folder(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "base.py").write_text(f"def f():\n    return '{folder}'\n")
    (tmp_path / "a" / "noise.py").write_text(SOURCE)
    assert find_symbol(tmp_path, "noise.Noise.draw") == ("a/noise.py", "Noise.draw")
    assert apply_edit(tmp_path, "b.base.f", "'b'", "'c'") == (
        "b/base.py", "def f():\n    return 'c'\n"
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"a/base\.py, b/base\.py: it must be one"):
        find_symbol(tmp_path, "base.f")
    with pytest.raises(ValueError, match="symbol of no module"):
        find_symbol(tmp_path, "gone.f")
